//! `octet_length`: also of bytes, which DataFusion's own refuses.

use datafusion::{
    arrow::{
        array::ArrayRef,
        compute::{cast, kernels::length::length},
        datatypes::DataType,
    },
    error::Result,
    logical_expr::ScalarUDF,
};

use super::{BYTES, of_one};

/// `octet_length(x)`: the length in bytes of text, as in DataFusion, and of bytes, which images and the like are.
pub(super) fn octet_length() -> ScalarUDF {
    let text = [DataType::Utf8View, DataType::Utf8, DataType::LargeUtf8];
    of_one("octet_length", text.into_iter().chain(BYTES).collect(), DataType::Int64, lengths)
}

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&length(array.as_ref())?, &DataType::Int64)?)
}
