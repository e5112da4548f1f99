//! Column chunks of floats: statistics and Bloom filters that are right for every reader.
//!
//! Parquet's writer leaves NaN out of the minimum and the maximum, and a Bloom filter hashes bits.
//! Readers do not agree on the order of NaN, and for most of them NaN is one value and -0.0 equals
//! 0.0: a filter that is pushed down to the chunk would lose rows.

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::DataType;
use parquet::{
    basic::Type as PhysicalType, bloom_filter::Sbbf, column::writer::ColumnCloseResult,
    errors::ParquetError, file::statistics::Statistics,
};

use super::encoding::leaf;

/// Returns whether an array, or a list or struct in it, has NaN.
pub(super) fn has_nan(array: &ArrayRef) -> bool {
    let values = leaf(array);
    match values.data_type() {
        DataType::Float32 => floats_have_nan::<Float32Type>(&values),
        DataType::Float64 => floats_have_nan::<Float64Type>(&values),
        DataType::Struct(_) => values.as_struct().columns().iter().any(has_nan),
        _ => false,
    }
}

/// The first loop has no early end, so that it is compiled to vector instructions. It also looks at
/// the values of nulls.
fn floats_have_nan<T: ArrowPrimitiveType>(array: &ArrayRef) -> bool {
    let floats = array.as_primitive::<T>();
    floats
        .values()
        .iter()
        .fold(false, |found, value| found | is_nan(*value))
        && floats.iter().flatten().any(is_nan)
}

/// Returns whether a float is NaN, which alone has no order to itself.
#[inline]
fn is_nan<N: PartialOrd>(value: N) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Corrects a chunk that is complete. `has_nan`: whether its column has NaN.
///
/// # Errors
/// The metadata of the chunk is not valid.
pub(super) fn correct(chunk: &mut ColumnCloseResult, has_nan: bool) -> Result<(), ParquetError> {
    if has_nan {
        remove_bounds(chunk)?;
    }
    let column_type = chunk.metadata.column_type();
    match (&mut chunk.bloom_filter, column_type) {
        (Some(filter), PhysicalType::FLOAT) => {
            add_equals(filter, [0.0_f32, -0.0], has_nan.then_some(f32::NAN))
        }
        (Some(filter), PhysicalType::DOUBLE) => {
            add_equals(filter, [0.0_f64, -0.0], has_nan.then_some(f64::NAN))
        }
        _ => {}
    }
    Ok(())
}

/// Removes minimum and maximum of a chunk, and of its pages. Chunks of other types in a column with
/// NaN keep them.
fn remove_bounds(chunk: &mut ColumnCloseResult) -> Result<(), ParquetError> {
    let without = match chunk.metadata.statistics() {
        Some(Statistics::Float(found)) => Statistics::float(
            None,
            None,
            found.distinct_count(),
            found.null_count_opt(),
            false,
        ),
        Some(Statistics::Double(found)) => Statistics::double(
            None,
            None,
            found.distinct_count(),
            found.null_count_opt(),
            false,
        ),
        _ => return Ok(()),
    };
    chunk.metadata = chunk
        .metadata
        .clone()
        .into_builder()
        .set_statistics(without)
        .build()?;
    chunk.column_index = None;
    Ok(())
}

/// Adds the values that equal those of a filter: the other zero, and the NaN that readers look up.
fn add_equals<T: parquet::data_type::AsBytes>(filter: &mut Sbbf, zeros: [T; 2], nan: Option<T>) {
    if zeros.iter().any(|zero| filter.check(zero)) {
        zeros.iter().for_each(|zero| filter.insert(zero));
    }
    if let Some(nan) = nan {
        filter.insert(&nan);
    }
}
