//! Scalar functions for images, tensors and events, which DataFusion does not have.

pub(crate) mod event_value;
mod image_info;
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

/// All functions that queries can call.
pub(crate) fn all() -> impl Iterator<Item = ScalarUDF> {
    [
        ScalarUDF::from(tensor::DecodeTensor::new()),
        tensor::tensor_shape(),
        tensor::tensor_dtype(),
        image_info::image_info(),
    ]
    .into_iter()
}

/// Returns the function with this name that plans call, and queries cannot.
pub fn plan_function(name: &str) -> Option<Arc<ScalarUDF>> {
    let fields = event_value::EVENT_VALUE_COLUMNS.map(event_value::event_value_field);
    let mut functions = fields
        .into_iter()
        .chain([event_value::event_value(), event_value::event_time()]);
    functions
        .find(|function| function.name() == name)
        .map(Arc::new)
}

/// The types of byte strings.
pub const BYTES: [DataType; 3] = [
    DataType::BinaryView,
    DataType::Binary,
    DataType::LargeBinary,
];

/// Creates a function of one argument, whose type is one of `types`.
pub fn unary_function(
    name: &str,
    types: Vec<DataType>,
    returns: DataType,
    evaluate: impl Fn(&ArrayRef) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let signature = Signature::uniform(1, types, Volatility::Immutable);
    let own_name = name.to_owned();
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(
        name,
        signature,
        returns,
        Arc::new(move |args: &[ColumnarValue]| {
            let [value] = take_function_args(&own_name, args)?;
            evaluate_unary(value, &evaluate)
        }),
    ))
}

/// Evaluates a function of one argument, which may be a constant.
pub fn evaluate_unary(
    value: &ColumnarValue,
    evaluate: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(evaluate(array)?),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(ScalarValue::try_from_array(
            &evaluate(&value.to_array()?)?,
            0,
        )?),
    })
}

/// Casts an array of one of the types [`BYTES`] to views.
pub fn bytes_of(array: &ArrayRef) -> Result<BinaryViewArray> {
    let views = match array.data_type() {
        DataType::BinaryView => Arc::clone(array),
        _ => cast(array, &DataType::BinaryView)?,
    };
    Ok(views.as_binary_view().clone())
}
