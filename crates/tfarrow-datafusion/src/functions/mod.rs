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
    logical_expr::{ColumnarValue, ScalarUDF, Signature, SimpleScalarUDF, Volatility},
};

/// All of them. One that has the name of a function of DataFusion's takes its place.
pub(crate) fn all() -> impl Iterator<Item = ScalarUDF> {
    [
        octet_length::octet_length(),
        ScalarUDF::from(tensor::DecodeTensor::new()),
        tensor::tensor_shape(),
        tensor::tensor_dtype(),
        image_info::image_info(),
    ]
    .into_iter()
}

/// The types of bytes, however they are stored.
const BYTES: [DataType; 3] = [DataType::BinaryView, DataType::Binary, DataType::LargeBinary];

/// A function of one argument, which is of one of these types.
fn of_one(
    name: &str,
    types: Vec<DataType>,
    returns: DataType,
    answer: impl Fn(&ArrayRef) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let signature = Signature::uniform(1, types, Volatility::Immutable);
    let own_name = name.to_owned();
    let call = move |args: &[ColumnarValue]| {
        let [value] = take_function_args(&own_name, args)?;
        of_one_array(value, &answer)
    };
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(name, signature, returns, Arc::new(call)))
}

/// Answers a call with one argument, which may be a constant.
fn of_one_array(value: &ColumnarValue, answer: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(answer(array)?),
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
