//! One form of each float: [`normalize_nan_and_zero`].
//!
//! Arrow compares, sorts and hashes floats by their bits. NaN has many bit patterns, some of which
//! sort below all numbers, and zero has two.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, FixedSizeListArray, GenericListArray,
    OffsetSizeTrait, StructArray,
    cast::AsArray,
    types::{Float16Type, Float32Type, Float64Type},
};
use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::{ScalarValue, utils::take_function_args},
    error::Result,
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
};
use half::f16;
use tfarrow_datafusion::internals::{NORMALIZE, evaluate_unary};

/// `normalize_nan_and_zero(x)`: `x` with one NaN, which sorts above all numbers, and with 0.0
/// for -0.0. Values of other types than floats, and of lists, structs and dictionaries of floats, do
/// not change.
///
/// Plans call the function, queries cannot.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NormalizeNanAndZero {
    signature: Signature,
}

/// Returns the function [`NormalizeNanAndZero`].
pub(crate) fn normalize_nan_and_zero() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(NormalizeNanAndZero { signature }))
    });
    Arc::clone(&FUNCTION)
}

/// Returns whether a function is [`NormalizeNanAndZero`].
pub(crate) fn is_normalize(function: &ScalarUDF) -> bool {
    function.inner().is::<NormalizeNanAndZero>()
}

impl ScalarUDFImpl for NormalizeNanAndZero {
    fn name(&self) -> &'static str {
        NORMALIZE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [value] = take_function_args(self.name(), types)?;
        Ok(value.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [value] = take_function_args(self.name(), args.arg_fields)?;
        Ok(Arc::new(Field::new(
            self.name(),
            value.data_type().clone(),
            value.is_nullable(),
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = take_function_args(self.name(), &args.args)?;
        evaluate_unary(value, normalized)
    }
}

/// Returns whether values of a type are floats, or have floats in them that [`NormalizeNanAndZero`]
/// changes.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_floats(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::Dictionary(_, value) => has_floats(value),
        _ => false,
    }
}

/// Returns the form of a constant.
pub(crate) fn normalized_scalar(value: &ScalarValue) -> Result<ScalarValue> {
    ScalarValue::try_from_array(&normalized(&value.to_array()?)?, 0)
}

/// Returns the form of each value. Arrays that have it already are not copied.
fn normalized(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Float16 => normalized_floats::<Float16Type>(array, f16::NAN),
        DataType::Float32 => normalized_floats::<Float32Type>(array, f32::NAN),
        DataType::Float64 => normalized_floats::<Float64Type>(array, f64::NAN),
        DataType::List(item) => normalized_lists::<i32>(array, item)?,
        DataType::LargeList(item) => normalized_lists::<i64>(array, item)?,
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let values = normalized(lists.values())?;
            let nulls = lists.nulls().cloned();
            Arc::new(FixedSizeListArray::try_new_with_length(
                Arc::clone(item),
                *size,
                values,
                nulls,
                lists.len(),
            )?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = structs
                .columns()
                .iter()
                .map(normalized)
                .collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(
                fields.clone(),
                columns,
                structs.nulls().cloned(),
            )?)
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            dictionary.with_values(normalized(dictionary.values())?)
        }
        _ => Arc::clone(array),
    })
}

fn normalized_lists<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef> {
    let lists = array.as_list::<O>();
    let offsets = lists.offsets().clone();
    let nulls = lists.nulls().cloned();
    Ok(Arc::new(GenericListArray::try_new(
        Arc::clone(item),
        offsets,
        normalized(lists.values())?,
        nulls,
    )?))
}

/// Looks at all values before it copies any: hardly any array has values to change.
fn normalized_floats<T: ArrowPrimitiveType>(array: &ArrayRef, nan: T::Native) -> ArrayRef {
    let floats = array.as_primitive::<T>();
    let mut differs = false;
    // Without an early end, the loop is compiled to vector instructions.
    for value in floats.values().iter() {
        differs |= !normalized_float(*value, nan).is_eq(*value);
    }
    if !differs {
        return Arc::clone(array);
    }
    Arc::new(floats.unary::<_, T>(|value| normalized_float(value, nan)))
}

fn normalized_float<N: ArrowNativeTypeOp>(value: N, nan: N) -> N {
    let is_nan = value.partial_cmp(&value).is_none();
    // The sum of -0.0 and 0.0 is 0.0.
    if is_nan {
        nan
    } else {
        value.add_wrapping(N::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array, ListArray};

    use super::*;

    fn bits(array: &ArrayRef) -> Vec<Option<u32>> {
        array
            .as_primitive::<Float32Type>()
            .iter()
            .map(|value| value.map(f32::to_bits))
            .collect()
    }

    #[test]
    fn every_nan_and_every_zero_has_one_form() {
        let nans = [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff].map(f32::from_bits);
        let array: ArrayRef = Arc::new(Float32Array::from_iter_values(nans));
        assert_eq!(
            bits(&normalized(&array).unwrap()),
            [Some(f32::NAN.to_bits()); 4]
        );
        let others = [
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MIN,
            f32::from_bits(1),
            -f32::from_bits(1),
            1.0,
        ];
        let values = others
            .into_iter()
            .map(Some)
            .chain([Some(0.0), None, Some(-0.0)]);
        let array: ArrayRef = Arc::new(values.collect::<Float32Array>());
        let expect = others
            .into_iter()
            .map(Some)
            .chain([Some(0.0), None, Some(0.0)]);
        assert_eq!(
            bits(&normalized(&array).unwrap()),
            expect.map(|v| v.map(f32::to_bits)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn floats_in_lists_structs_and_dictionaries_have_one_form_too() {
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some([Some(-0.0), Some(f64::NAN)]),
            None,
        ]);
        let lists: ArrayRef = Arc::new(lists);
        let structs = StructArray::try_from(vec![("x", Arc::clone(&lists))]).unwrap();
        let found = normalized(&(Arc::new(structs) as ArrayRef)).unwrap();
        let found = found
            .as_struct()
            .column(0)
            .as_list::<i32>()
            .values()
            .as_primitive::<Float64Type>()
            .clone();
        assert_eq!(found.value(0).to_bits(), 0);
        assert_eq!(found.value(1).to_bits(), f64::NAN.to_bits());
    }

    #[test]
    fn arrays_that_have_the_form_are_not_copied() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 0.0, f64::NAN]));
        let same = normalized(&array).unwrap();
        assert_eq!(
            array.to_data().buffers()[0].as_ptr(),
            same.to_data().buffers()[0].as_ptr()
        );
    }
}
