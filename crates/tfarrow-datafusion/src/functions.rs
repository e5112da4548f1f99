//! What SQL over records asks for and DataFusion's own functions do not answer.

use datafusion::{
    arrow::{
        array::ArrayRef,
        compute::{cast, kernels::length::length},
        datatypes::DataType,
    },
    common::{ScalarValue, utils::take_function_args},
    error::Result,
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

/// All of them. Each takes the place of DataFusion's function of its name.
pub(crate) fn all() -> impl Iterator<Item = ScalarUDF> {
    [ScalarUDF::from(OctetLength::new())].into_iter()
}

/// `octet_length(x)`: the length in bytes of text, as in DataFusion, and of bytes, which images and the like are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OctetLength {
    signature: Signature,
}

impl OctetLength {
    fn new() -> Self {
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
        let [value] = take_function_args(self.name(), args.args)?;
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(lengths(&array)?),
            ColumnarValue::Scalar(value) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths(&value.to_array()?)?, 0)?)
            }
        })
    }
}

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&length(array.as_ref())?, &DataType::Int64)?)
}
