//! Cells of Arrow arrays as fields of CSV. Lists and bytes are JSON.

use std::{borrow::Cow, io, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};

use crate::{
    json_cell::{FullCell, JsonCell, json_text, not_finite},
    value::Value,
};

/// The text of a cell; `None` for a null. Texts are not quoted.
///
/// # Errors
/// A value has no text, such as a date out of range.
pub fn csv_text(array: &dyn Array, row: usize) -> io::Result<Option<Cow<'_, str>>> {
    let value = match Value::of(array, row).map_err(io::Error::other)? {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text),
        value => value,
    };
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Float(value) if !value.is_finite() => Cow::Borrowed(not_finite(value.into())),
        Value::Double(value) if !value.is_finite() => Cow::Borrowed(not_finite(value)),
        Value::Digits(text) | Value::Other(text) => Cow::Owned(text),
        Value::Bytes(_)
        | Value::List(_)
        | Value::Struct(..)
        | Value::Map(_)
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Double(_) => Cow::Owned(json_text(&JsonCell::new(array, row, FullCell))?),
    }))
}

/// Replaces the columns of a batch that `arrow-csv` does not write, or writes with other values, by
/// their texts.
///
/// # Errors
/// As [`csv_text`].
pub fn with_csv_texts(batch: &RecordBatch) -> io::Result<RecordBatch> {
    let schema = batch.schema_ref();
    let mut fields = Vec::new();
    let mut columns = Vec::<ArrayRef>::new();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if is_written(field.data_type()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        } else {
            let texts = (0..column.len())
                .map(|row| csv_text(column.as_ref(), row))
                .collect::<io::Result<Vec<_>>>()?;
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(Arc::new(StringArray::from_iter(texts)));
        }
    }
    let schema = Schema::new_with_metadata(Fields::from(fields), schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).map_err(|e: ArrowError| io::Error::other(e))
}

/// Whether `arrow-csv` writes the values of a type as [`csv_text`] does, or in the form that its
/// options select.
fn is_written(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_temporal()
        || data_type.is_decimal()
        || matches!(data_type, DataType::Null | DataType::Boolean)
        || matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
}
