//! Converting Arrow values to the types of features. Values are checked in one fast pass; the row
//! of a value that would change is only searched for if there is one.
//!
//! ```text
//! bool, int8 .. uint32, uint64   ─▶ int64       uint64 from 2^63 on changes
//! float16, float64, decimals     ─▶ float32     most float64 and decimals change
//! dates, times, durations        ─▶ int64       the unit is lost
//! large and fixed-size bytes     ─▶ views       no copy
//! dictionary of T                ─▶ as T
//! ```
//!
//! A value under a null, or in a null list, does not count: no record has it. Functions here
//! therefore take `row_of`, which maps the index of a value to its row, or to `None`.
//!
//! All conversions keep the number of values, so that the offsets of lists and the nulls remain
//! valid.
//!
//! Decimals are parsed from their digits instead of being cast, and `uint64` is reinterpreted: both
//! are rules of `WriterBuilder::with_lossy`, which Arrow's casts do not have.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, FixedSizeBinaryArray, Float32Array,
    Int64Array, PrimitiveArray, StringViewArray,
    builder::BinaryViewBuilder,
    cast::AsArray,
    types::{
        Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
        Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
        UInt32Type, UInt64Type,
    },
};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::{losses::Ledger, plan::Leaf};
use crate::{Result, Values};

/// A function from the index of a value to its row; `None` for a value that is in no row.
pub(super) type RowOf<'a> = &'a dyn Fn(usize) -> Option<usize>;

/// Replaces the keys of a dictionary by its values, and returns these with their conversion. Bytes
/// are converted to views first, so that they are not copied.
///
/// ```text
/// dictionary: keys 0 1 0, values ["a", "b"]     views "a" "b" "a", of one buffer
/// ```
pub(super) fn unpack(array: &ArrayRef, leaf: &Leaf) -> Result<(ArrayRef, Leaf)> {
    let (Leaf::Dictionary(inner), Some(dictionary)) = (leaf, array.as_any_dictionary_opt()) else {
        return Ok((Arc::clone(array), leaf.clone()));
    };
    let (values, leaf) = match views(dictionary.values(), inner)? {
        Some((views, values)) => (views, Leaf::Same(values)),
        None => (Arc::clone(dictionary.values()), Leaf::clone(inner)),
    };
    Ok((take(&values, dictionary.keys(), None)?, leaf))
}

/// Converts bytes or text to views, which refer to the buffer of `array`. Returns the array and its
/// type, or `None` for other values.
fn views(array: &ArrayRef, leaf: &Leaf) -> Result<Option<(ArrayRef, Values)>> {
    let array: ArrayRef = match leaf {
        Leaf::Same(Values::Binary) => Arc::new(BinaryViewArray::from(array.as_binary::<i32>())),
        Leaf::Same(Values::Utf8) => Arc::new(StringViewArray::from(array.as_string::<i32>())),
        Leaf::Same(Values::BinaryView | Values::Utf8View) => Arc::clone(array),
        Leaf::LargeBinary => Arc::new(BinaryViewArray::from(array.as_binary::<i64>())),
        Leaf::LargeUtf8 => Arc::new(StringViewArray::from(array.as_string::<i64>())),
        Leaf::FixedSizeBinary => Arc::new(fixed_views(array.as_fixed_size_binary())?),
        Leaf::Same(Values::Float32 | Values::Int64)
        | Leaf::Null
        | Leaf::Boolean
        | Leaf::Int8
        | Leaf::Int16
        | Leaf::Int32
        | Leaf::UInt8
        | Leaf::UInt16
        | Leaf::UInt32
        | Leaf::UInt64
        | Leaf::Float16
        | Leaf::Float64
        | Leaf::Time
        | Leaf::Decimal32
        | Leaf::Decimal64
        | Leaf::Decimal128
        | Leaf::Decimal256
        | Leaf::Dictionary(_) => return Ok(None),
    };
    let values = if *array.data_type() == DataType::Utf8View {
        Values::Utf8View
    } else {
        Values::BinaryView
    };
    Ok(Some((array, values)))
}

/// Converts values of a fixed size to views, which refer to the buffer of `array`: the offset of a
/// value is its row times the size.
fn fixed_views(array: &FixedSizeBinaryArray) -> Result<BinaryViewArray> {
    if u32::try_from(array.values().len()).is_err() {
        // The offsets of views have 32 bits; a larger array is copied to several buffers.
        return Ok(array.iter().collect());
    }
    let mut views = BinaryViewBuilder::with_capacity(array.len());
    let block = views.append_block(array.values().clone());
    let size = array.value_length() as u32;
    for row in 0..array.len() {
        if array.is_null(row) {
            views.append_null();
        } else {
            views.try_append_view(block, row as u32 * size, size)?;
        }
    }
    Ok(views.finish())
}

/// Converts values to the type of [`Leaf::values`]. Nulls stay where they are.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a value that would change, unless losses are
/// allowed.
pub(super) fn convert(
    array: &ArrayRef,
    leaf: &Leaf,
    row_of: RowOf<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    match leaf {
        Leaf::Null | Leaf::Same(_) => Ok(Arc::clone(array)),
        Leaf::LargeBinary | Leaf::LargeUtf8 | Leaf::FixedSizeBinary => {
            Ok(views(array, leaf)?.map_or_else(|| Arc::clone(array), |(views, _)| views))
        }
        Leaf::Boolean => {
            let array = array.as_boolean();
            let values = array.values().iter().map(i64::from).collect();
            Ok(Arc::new(Int64Array::new(values, array.nulls().cloned())))
        }
        Leaf::Int8 => Ok(widened::<Int8Type>(array)),
        Leaf::Int16 => Ok(widened::<Int16Type>(array)),
        Leaf::Int32 => Ok(widened::<Int32Type>(array)),
        Leaf::UInt8 => Ok(widened::<UInt8Type>(array)),
        Leaf::UInt16 => Ok(widened::<UInt16Type>(array)),
        Leaf::UInt32 => Ok(widened::<UInt32Type>(array)),
        Leaf::UInt64 => uint64(array.as_primitive(), row_of, ledger),
        Leaf::Float16 => Ok(Arc::new(
            array
                .as_primitive::<Float16Type>()
                .unary::<_, Float32Type>(f32::from),
        )),
        Leaf::Float64 => float64(array.as_primitive(), row_of, ledger),
        Leaf::Time => time(array, row_of, ledger),
        Leaf::Decimal32 => Ok(decimal::<Decimal32Type>(array, row_of, ledger)),
        Leaf::Decimal64 => Ok(decimal::<Decimal64Type>(array, row_of, ledger)),
        Leaf::Decimal128 => Ok(decimal::<Decimal128Type>(array, row_of, ledger)),
        Leaf::Decimal256 => Ok(decimal::<Decimal256Type>(array, row_of, ledger)),
        Leaf::Dictionary(_) => {
            let (array, leaf) = unpack(array, leaf)?;
            convert(&array, &leaf, row_of, ledger)
        }
    }
}

/// Converts integers of a type whose values all fit in an `i64`.
fn widened<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef) -> ArrayRef {
    Arc::new(array.as_primitive::<T>().unary::<_, Int64Type>(Into::into))
}

/// Converts `uint64`, whose values from 2^63 on would become negative.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for such a value, unless losses are allowed.
fn uint64(
    array: &PrimitiveArray<UInt64Type>,
    row_of: RowOf<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    check(
        array,
        |value: u64| i64::try_from(value).is_err(),
        |ledger: &Ledger<'_>, row, value| {
            let found = format!("{value}, past the end of int64");
            ledger.refuse_type(row, found, &[DataType::Utf8, DataType::Float32])
        },
        "uint64 past int64 written as negative int64 of the same bits",
        row_of,
        ledger,
    )?;
    Ok(Arc::new(array.unary::<_, Int64Type>(|value| value as i64)))
}

/// Converts `float64`, most of whose values are not exact in `float32`. NaN becomes NaN, which does
/// not count as a change.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a value that is not exact, unless losses are
/// allowed.
fn float64(
    array: &PrimitiveArray<Float64Type>,
    row_of: RowOf<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    check(
        array,
        |value: f64| f64::from(value as f32) != value && !value.is_nan(),
        |ledger: &Ledger<'_>, row, value| {
            let found = format!("{value:?}, which float32 cannot hold exactly");
            ledger.refuse_rounding(row, found)
        },
        "float64 rounded to float32",
        row_of,
        ledger,
    )?;
    Ok(Arc::new(
        array.unary::<_, Float32Type>(|value| value as f32),
    ))
}

/// Checks all values, and reports those that change with their rows. `refuse` makes the error of a
/// row and its value, unless the change is allowed, and `what` describes the change.
///
/// ```text
/// values [1.5, 0.1, null]     changes: 0.1 (float32 holds 0.100000001..), so that its row is reported
/// ```
fn check<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    changes: impl Fn(T::Native) -> bool,
    refuse: impl Fn(&Ledger<'_>, usize, T::Native) -> Result<()>,
    what: &'static str,
    row_of: RowOf<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<()> {
    if !array
        .values()
        .iter()
        .fold(false, |any, value| any | changes(*value))
    {
        return Ok(());
    }
    let mut times = 0;
    for (index, value) in array.values().iter().enumerate() {
        if changes(*value)
            && array.is_valid(index)
            && let Some(row) = row_of(index)
        {
            refuse(ledger, row, *value)?;
            times += 1;
        }
    }
    ledger.count(what, times);
    Ok(())
}

/// Converts times to their stored integers. The plan rejects them unless losses are allowed.
///
/// ```text
/// Timestamp(ms) 1970-01-01T00:00:01  ─▶  1000        Date32 1970-01-02  ─▶  1
/// ```
fn time(array: &ArrayRef, row_of: RowOf<'_>, ledger: &mut Ledger<'_>) -> Result<ArrayRef> {
    ledger.count(
        "times written as int64 in their unit",
        values(array, row_of),
    );
    let narrow = array.data_type().primitive_width() == Some(4);
    let stored = if narrow {
        DataType::Int32
    } else {
        DataType::Int64
    };
    let data = array.to_data().into_builder().data_type(stored).build()?;
    Ok(if narrow {
        widened::<Int32Type>(&arrow_array::make_array(data))
    } else {
        Arc::new(Int64Array::from(data))
    })
}

/// Converts decimals to the nearest floats, through their digits: by way of `f64` there would be
/// two roundings, whose result is not always the nearest. The plan rejects decimals unless losses
/// are allowed.
fn decimal<T: DecimalType>(
    array: &ArrayRef,
    row_of: RowOf<'_>,
    ledger: &mut Ledger<'_>,
) -> ArrayRef {
    ledger.count(
        "decimals written as the nearest float32",
        values(array, row_of),
    );
    let array = array.as_primitive::<T>();
    let floats = (0..array.len()).map(|row| {
        let is_valid = array.is_valid(row);
        is_valid.then(|| array.value_as_string(row).parse().unwrap_or(f32::NAN))
    });
    Arc::new(floats.collect::<Float32Array>())
}

/// Returns the number of values that are not null and are in a row: those that count as changed.
fn values(array: &ArrayRef, row_of: RowOf<'_>) -> u64 {
    (0..array.len())
        .filter(|index| array.is_valid(*index) && row_of(*index).is_some())
        .count() as u64
}
