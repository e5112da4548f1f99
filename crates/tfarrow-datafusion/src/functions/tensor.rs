//! `decode_tensor`, `tensor_shape` and `tensor_dtype`, for features that `tf.io.serialize_tensor`
//! has written.

use std::sync::Arc;

use arrow_array::{
    ArrayRef,
    builder::{
        ArrayBuilder, BinaryViewBuilder, Float32Builder, Float64Builder, Int64Builder, ListBuilder,
        StringViewBuilder,
    },
};
use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::{ScalarValue, exec_datafusion_err, exec_err, plan_err},
    error::{DataFusionError, Result},
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        TypeSignature, Volatility,
    },
};
use prost::bytes::Bytes;

use super::{
    BYTES, bytes_of, evaluate_unary,
    tensor_proto::{TensorError, TensorProto, TensorValues},
    unary_function,
};

/// Maximum number of values of all lists of a batch, which bounds memory.
const MAX_VALUES: usize = 1 << 27;

/// Maximum number of bytes that the values of a batch take beyond those of the tensors, which may
/// repeat a long string.
const MAX_GROWTH: usize = 8 * MAX_VALUES;

/// `decode_tensor(bytes [, type])`: the values of a tensor as a flat list, the last dimension
/// fastest.
///
/// The type of the items is DOUBLE by default, or FLOAT, BIGINT, BYTEA or VARCHAR. A value that the
/// type cannot represent exactly is an error.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DecodeTensor {
    signature: Signature,
}

impl DecodeTensor {
    pub(super) fn new() -> Self {
        let text = [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8];
        let alone = BYTES.map(|bytes| TypeSignature::Exact(vec![bytes]));
        let typed = BYTES.into_iter().flat_map(|bytes| {
            text.iter()
                .map(move |text| TypeSignature::Exact(vec![bytes.clone(), text.clone()]))
        });
        Self {
            signature: Signature::one_of(
                alone.into_iter().chain(typed).collect(),
                Volatility::Immutable,
            ),
        }
    }
}

/// The types of the items of a list.
#[derive(Clone, Copy)]
enum ItemType {
    Float,
    Double,
    BigInt,
    Bytea,
    Varchar,
}

impl ItemType {
    fn of(name: &ScalarValue) -> Result<Self> {
        let name = name.try_as_str().flatten().unwrap_or_default();
        Ok(match name.to_ascii_uppercase().as_str() {
            "FLOAT" | "REAL" => Self::Float,
            "DOUBLE" => Self::Double,
            "BIGINT" => Self::BigInt,
            "BYTEA" => Self::Bytea,
            "VARCHAR" => Self::Varchar,
            _ => {
                return plan_err!(
                    "decode_tensor: found type {name:?}, expected DOUBLE, FLOAT, BIGINT, BYTEA or VARCHAR"
                );
            }
        })
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::BigInt => DataType::Int64,
            Self::Bytea => DataType::BinaryView,
            Self::Varchar => DataType::Utf8View,
        }
    }
}

impl ScalarUDFImpl for DecodeTensor {
    fn name(&self) -> &str {
        "decode_tensor"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        plan_err!("decode_tensor: the type depends on the arguments")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let to = match args.scalar_arguments {
            [_] => ItemType::Double,
            [_, Some(name)] => ItemType::of(name)?,
            _ => return plan_err!("decode_tensor: the type must be a constant, such as 'BIGINT'"),
        };
        let item = Field::new_list_field(to.data_type(), true);
        Ok(Arc::new(Field::new(
            self.name(),
            DataType::List(Arc::new(item)),
            true,
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (tensors, to) = match args.args.as_slice() {
            [tensors] => (tensors, ItemType::Double),
            [tensors, ColumnarValue::Scalar(name)] => (tensors, ItemType::of(name)?),
            _ => return plan_err!("decode_tensor: the type must be a constant, such as 'BIGINT'"),
        };
        evaluate_unary(tensors, |tensors| match to {
            ItemType::Float => lists(tensors, Float32Builder::new(), |list, values| {
                floats(values)?
                    .into_iter()
                    .for_each(|value| list.append_value(value));
                Ok(())
            }),
            ItemType::Double => lists(tensors, Float64Builder::new(), |list, values| {
                doubles(values)?
                    .into_iter()
                    .for_each(|value| list.append_value(value));
                Ok(())
            }),
            ItemType::BigInt => lists(tensors, Int64Builder::new(), |list, values| {
                integers(values)?
                    .into_iter()
                    .for_each(|value| list.append_value(value));
                Ok(())
            }),
            ItemType::Bytea => lists(tensors, BinaryViewBuilder::new(), |list, values| {
                strings(values)?
                    .iter()
                    .for_each(|value| list.append_value(value));
                Ok(())
            }),
            ItemType::Varchar => lists(tensors, StringViewBuilder::new(), |list, values| {
                for value in strings(values)? {
                    let Ok(text) = std::str::from_utf8(&value) else {
                        return exec_err!(
                            "decode_tensor: a string is not UTF-8; use decode_tensor(x, 'BYTEA')"
                        );
                    };
                    list.append_value(text);
                }
                Ok(())
            }),
        })
    }
}

/// Makes a list of the values of each tensor, which `push` appends to a builder.
fn lists<B: ArrayBuilder>(
    tensors: &ArrayRef,
    values: B,
    push: impl Fn(&mut B, TensorValues) -> Result<()>,
) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(values);
    let mut growth = 0usize;
    for tensor in &bytes_of(tensors)? {
        if let Some(tensor) = tensor {
            let proto = parse(tensor)?;
            growth = growth.saturating_add(proto.growth(tensor.len()).map_err(tensor_error)?);
            if growth > MAX_GROWTH {
                return exec_err!(
                    "decode_tensor: the values of one batch take more than {MAX_GROWTH} bytes beyond those of their tensors"
                );
            }
            push(lists.values(), proto.values().map_err(tensor_error)?)?;
            if lists.values().len() > MAX_VALUES {
                return exec_err!("decode_tensor: more than {MAX_VALUES} values in one batch");
            }
        }
        lists.append(tensor.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

fn parse(tensor: &[u8]) -> Result<TensorProto> {
    TensorProto::parse(tensor).map_err(tensor_error)
}

fn tensor_error(error: TensorError) -> DataFusionError {
    exec_datafusion_err!("tensor: {error}")
}

fn doubles(values: TensorValues) -> Result<Vec<f64>> {
    match values {
        TensorValues::Floats(values) => Ok(values),
        TensorValues::Ints(values) => values
            .into_iter()
            .map(|value| double_of(value.into()))
            .collect(),
        TensorValues::Unsigned(values) => values
            .into_iter()
            .map(|value| double_of(value.into()))
            .collect(),
        TensorValues::Strings(_) => {
            exec_err!("decode_tensor: found strings; use decode_tensor(x, 'VARCHAR')")
        }
    }
}

/// The DOUBLE that represents an integer exactly.
fn double_of(value: i128) -> Result<f64> {
    match value as f64 {
        double if double as i128 == value => Ok(double),
        _ => exec_err!(
            "decode_tensor: {value} is not exact as DOUBLE; use decode_tensor(x, 'BIGINT')"
        ),
    }
}

fn floats(values: TensorValues) -> Result<Vec<f32>> {
    doubles(values)?.into_iter().map(float_of).collect()
}

/// The FLOAT that represents a number exactly.
fn float_of(value: f64) -> Result<f32> {
    match value as f32 {
        float if f64::from(float) == value || value.is_nan() => Ok(float),
        _ => exec_err!(
            "decode_tensor: {value} is not exact as FLOAT; use decode_tensor(x, 'DOUBLE')"
        ),
    }
}

fn integers(values: TensorValues) -> Result<Vec<i64>> {
    match values {
        TensorValues::Ints(values) => Ok(values),
        TensorValues::Unsigned(values) => values.into_iter().map(integer_of).collect(),
        TensorValues::Floats(_) => {
            exec_err!("decode_tensor: found floats; use decode_tensor(x, 'DOUBLE')")
        }
        TensorValues::Strings(_) => {
            exec_err!("decode_tensor: found strings; use decode_tensor(x, 'VARCHAR')")
        }
    }
}

/// The BIGINT that represents an unsigned integer.
fn integer_of(value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| exec_datafusion_err!("decode_tensor: {value} is out of range of BIGINT"))
}

fn strings(values: TensorValues) -> Result<Vec<Bytes>> {
    match values {
        TensorValues::Strings(values) => Ok(values),
        _ => exec_err!("decode_tensor: found numbers; use decode_tensor(x, 'DOUBLE') or 'BIGINT'"),
    }
}

/// `tensor_shape(bytes)`: the dimensions of a tensor as a list of BIGINT; empty for a scalar.
pub(super) fn tensor_shape() -> ScalarUDF {
    let returns = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    unary_function("tensor_shape", BYTES.to_vec(), returns, |tensors| {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for tensor in &bytes_of(tensors)? {
            if let Some(tensor) = tensor {
                lists
                    .values()
                    .append_slice(&parse(tensor)?.shape().map_err(tensor_error)?);
            }
            lists.append(tensor.is_some());
        }
        Ok(Arc::new(lists.finish()))
    })
}

/// `tensor_dtype(bytes)`: TensorFlow's name of the dtype of a tensor, such as `float32`.
pub(super) fn tensor_dtype() -> ScalarUDF {
    unary_function(
        "tensor_dtype",
        BYTES.to_vec(),
        DataType::Utf8View,
        |tensors| {
            let mut names = StringViewBuilder::new();
            for tensor in &bytes_of(tensors)? {
                names.append_option(
                    tensor
                        .map(|tensor| parse(tensor).map(|proto| proto.dtype()))
                        .transpose()?,
                );
            }
            Ok(Arc::new(names.finish()))
        },
    )
}
