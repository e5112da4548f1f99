//! What SQL over records asks for and DataFusion's own functions do not answer: a file a function.

mod image_info;
mod octet_length;
mod tensor;
mod tensor_proto;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryViewArray, cast::AsArray};
use datafusion::{
    arrow::{compute::cast, datatypes::DataType},
    common::{ScalarValue, utils::take_function_args},
    error::Result,
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Signature, Volatility},
};

/// All of them. One that has the name of a function of DataFusion's takes its place.
pub(crate) fn all() -> impl Iterator<Item = ScalarUDF> {
    [
        ScalarUDF::from(octet_length::OctetLength::new()),
        ScalarUDF::from(tensor::DecodeTensor::new()),
        ScalarUDF::from(tensor::TensorShape::new()),
        ScalarUDF::from(tensor::TensorDtype::new()),
        ScalarUDF::from(image_info::ImageInfo::new()),
    ]
    .into_iter()
}

/// The types of bytes, however they are stored.
const BYTES: [DataType; 3] = [DataType::BinaryView, DataType::Binary, DataType::LargeBinary];

/// A function of bytes.
fn of_bytes() -> Signature {
    Signature::uniform(1, BYTES.to_vec(), Volatility::Immutable)
}

/// Answers a call with one argument, which may be a constant.
fn of_one_array(args: ScalarFunctionArgs, answer: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    let [value] = take_function_args("a function of one argument", args.args)?;
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(answer(&array)?),
        ColumnarValue::Scalar(value) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answer(&value.to_array()?)?, 0)?)
        }
    })
}

/// The bytes of such a function's argument.
fn bytes_of(array: &ArrayRef) -> Result<BinaryViewArray> {
    let views = match array.data_type() {
        DataType::BinaryView => Arc::clone(array),
        _ => cast(array, &DataType::BinaryView)?,
    };
    Ok(views.as_binary_view().clone())
}
