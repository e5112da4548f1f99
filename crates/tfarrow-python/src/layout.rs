//! Batches of arrays of Arrow's C data interface.
//!
//! The interface has types beside arrays, and not in them: it takes the number of buffers and
//! children on trust, and the lengths of buffers from the type. What can be compared with the type
//! is compared here, before a value is read.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, StructArray, ffi::FFI_ArrowArray};
use arrow_data::layout;
use arrow_schema::{DataType, Fields, SchemaRef};
use tfarrow_dataset::internals::catch_panic;

use crate::{
    capsule::{child, has_buffer, values_of},
    mismatch::Mismatch,
};

/// Maximum number of rows of an array, with its offset: the bytes of no buffer of a type exceed the
/// address space.
const MAX_ROWS: usize = 1 << 48;

/// The batch of an array. All that its values depend on is checked: the structure, offsets, views,
/// keys of dictionaries, UTF-8, and the number of nulls.
///
/// # Errors
/// What is not of the schema.
pub(crate) fn batch_of(array: FFI_ArrowArray, schema: &SchemaRef) -> Result<RecordBatch, Mismatch> {
    // Arrow's Rust libraries panic on some arrays and types, such as binary of a negative length.
    catch_panic(|| checked_batch(array, schema)).map_err(Mismatch::of_rows)?
}

fn checked_batch(array: FFI_ArrowArray, schema: &SchemaRef) -> Result<RecordBatch, Mismatch> {
    if array.is_released() {
        return Err(Mismatch::of_rows("the array was read before"));
    }
    let rows = DataType::Struct(schema.fields().clone());
    check_columns(&array, &rows, schema.fields())?;
    let rows = values_of(array, rows).map_err(Mismatch::of_rows)?;
    for (field, column) in schema.fields().iter().zip(rows.child_data()) {
        column
            .validate_full()
            .map_err(|error| Mismatch::of_column(field.name(), error))?;
    }
    rows.validate().map_err(Mismatch::of_rows)?;
    if rows.null_count() > 0 {
        return Err(Mismatch::of_rows(
            "a row is null: expected null values in columns only",
        ));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = StructArray::from(rows).into_parts().1;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(Mismatch::of_rows)
}

/// Checks that the children of an array can be these columns.
fn check_columns(array: &FFI_ArrowArray, rows: &DataType, fields: &Fields) -> Result<(), Mismatch> {
    check_own(array, rows).map_err(Mismatch::of_rows)?;
    for (index, field) in fields.iter().enumerate() {
        check_child(array, index, field.data_type())
            .map_err(|text| Mismatch::of_column(field.name(), text))?;
    }
    Ok(())
}

/// Checks that an array can be one of a type, with its children and its dictionary. An error is
/// what differs.
fn check_array(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    check_own(array, data_type)?;
    for (index, child_type) in children(data_type).into_iter().enumerate() {
        check_child(array, index, child_type)?;
    }
    match (data_type, array.dictionary()) {
        (DataType::Dictionary(_, values), Some(dictionary)) => check_array(dictionary, values),
        (DataType::Dictionary(_, _), None) => {
            Err(format!("{data_type}: the dictionary is missing"))
        }
        (_, Some(_)) => Err(format!("{data_type} has no dictionary, found one")),
        (_, None) => Ok(()),
    }
}

fn check_child(array: &FFI_ArrowArray, index: usize, data_type: &DataType) -> Result<(), String> {
    match child(array, index) {
        Some(child) => check_array(child, data_type),
        None => Err(format!("{data_type}: the array is missing")),
    }
}

/// Checks an array itself.
fn check_own(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    check_lengths(array, data_type)?;
    check_buffers(array, data_type)?;
    let expected = children(data_type).len();
    if array.n_children != expected as i64 {
        return Err(format!(
            "{data_type} has {expected} children, found {}",
            array.n_children
        ));
    }
    Ok(())
}

fn check_lengths(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    let length = array.length;
    let offset = array.offset;
    let rows = usize::try_from(length)
        .ok()
        .zip(usize::try_from(offset).ok());
    let rows = rows.and_then(|(length, offset)| length.checked_add(offset));
    if rows.is_none_or(|rows| rows > MAX_ROWS) {
        return Err(format!(
            "{data_type}: no array has the length {length} and the offset {offset}"
        ));
    }
    if array.null_count < -1 || array.null_count > length {
        return Err(format!(
            "{data_type}: {} of {length} rows are null",
            array.null_count
        ));
    }
    Ok(())
}

fn check_buffers(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    let layout = layout(data_type);
    let validity = usize::from(layout.can_contain_null_mask);
    let buffers = validity + layout.buffers.len();
    let found = array.n_buffers;
    let fits = match usize::try_from(found) {
        // The last buffer has the lengths of those of values, of which there may be any number.
        Ok(found) if layout.variadic => found > buffers,
        Ok(found) => found == buffers,
        Err(_) => false,
    };
    if !fits {
        let least = if layout.variadic { "at least " } else { "" };
        let buffers = buffers + usize::from(layout.variadic);
        return Err(format!(
            "{data_type} has {least}{buffers} buffers, found {found}"
        ));
    }
    if array.null_count > 0 && validity == 1 && !has_buffer(array, 0) {
        return Err(format!(
            "{data_type}: {} rows are null, and no buffer says which",
            array.null_count
        ));
    }
    // The last offset is read to know how many values there are, as are the lengths of several
    // buffers of values.
    let has_offsets = !layout.variadic && layout.buffers.len() == 2;
    if has_offsets && array.length > 0 && !has_buffer(array, validity) {
        return Err(format!("{data_type}: the offsets are missing"));
    }
    if layout.variadic
        && array.num_buffers() > buffers + 1
        && !has_buffer(array, array.num_buffers() - 1)
    {
        return Err(format!(
            "{data_type}: the lengths of its buffers are missing"
        ));
    }
    Ok(())
}

/// The types of the children of an array.
fn children(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}
