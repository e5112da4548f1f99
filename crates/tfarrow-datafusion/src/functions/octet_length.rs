//! `octet_length`: also of bytes, which DataFusion's own refuses.

use datafusion::{
    arrow::{
        array::ArrayRef,
        compute::{cast, kernels::length::length},
        datatypes::DataType,
    },
    error::Result,
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};

use super::of_one_array;

/// `octet_length(x)`: the length in bytes of text, as in DataFusion, and of bytes, which images and the like are.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OctetLength {
    signature: Signature,
}

impl OctetLength {
    pub(super) fn new() -> Self {
        let types = vec![
            DataType::Utf8View,
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::BinaryView,
            DataType::Binary,
            DataType::LargeBinary,
        ];
        Self { signature: Signature::uniform(1, types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for OctetLength {
    fn name(&self) -> &str {
        "octet_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one_array(args, lengths)
    }
}

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&length(array.as_ref())?, &DataType::Int64)?)
}
