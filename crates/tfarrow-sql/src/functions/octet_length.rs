//! `octet_length` of text and bytes; DataFusion's function accepts text only.
//!
//! Workaround for DataFusion 55: apache/datafusion#24765, fixed in 56 by #24867. Delete with
//! DataFusion 56, whose result is int32.

use datafusion::{
    arrow::{
        array::ArrayRef,
        compute::{cast, kernels::length::length},
        datatypes::DataType,
    },
    error::Result,
    logical_expr::ScalarUDF,
};
use tfarrow_datafusion::internals::{BYTES, unary_function};

/// `octet_length(x)`: the length in bytes of text, as in DataFusion, or of bytes, such as an image.
pub(super) fn octet_length() -> ScalarUDF {
    let text = [DataType::Utf8View, DataType::Utf8, DataType::LargeUtf8];
    unary_function(
        "octet_length",
        text.into_iter().chain(BYTES).collect(),
        DataType::Int64,
        lengths,
    )
}

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&length(array.as_ref())?, &DataType::Int64)?)
}
