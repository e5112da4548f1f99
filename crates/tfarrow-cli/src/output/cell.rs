//! Cells of a result as text for people: shortened values, escaped control characters.

use std::io;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use tfarrow_columnar::{FullCell, JsonCell, Value, entries, json_text, not_finite};
use tfarrow_report::text::{NULL, blob, count, escape, escape_except, shortened};

/// Number of characters shown of a text.
const TEXT: usize = 200;
/// Length up to which binary values are shown in hexadecimal.
const BYTES: usize = 16;
/// Number of items shown of a list.
const ITEMS: usize = 6;

/// A cell as text; `None` for a null. In `full`, values are complete, with their line breaks.
pub(super) fn cell(array: &dyn Array, row: usize, full: bool) -> io::Result<Option<String>> {
    let value = Value::of(array, row).map_err(io::Error::other)?;
    if let Value::Null = value {
        return Ok(None);
    }
    let mut out = String::new();
    write_value(&mut out, value, (array, row), full, false).map_err(io::Error::other)?;
    Ok(Some(out))
}

/// The cells of a row, for formats that show nulls by the letters of [`NULL`]: a text of these
/// letters is in quotes.
pub(super) fn quoted_cells(
    batch: &RecordBatch,
    row: usize,
    full: bool,
) -> io::Result<Vec<Option<String>>> {
    let mut cells = cells(batch, row, full)?;
    for cell in cells.iter_mut().flatten() {
        if *cell == NULL {
            *cell = format!("\"{NULL}\"");
        }
    }
    Ok(cells)
}

/// The cells of a row.
pub(super) fn cells(
    batch: &RecordBatch,
    row: usize,
    full: bool,
) -> io::Result<Vec<Option<String>>> {
    batch
        .columns()
        .iter()
        .map(|column| cell(column.as_ref(), row, full))
        .collect()
}

fn write(out: &mut String, array: &dyn Array, row: usize, full: bool) -> Result<(), ArrowError> {
    write_value(out, Value::of(array, row)?, (array, row), full, true)
}

/// Appends a value, which is at a row of an array. In a list or a struct it is `nested`.
fn write_value(
    out: &mut String,
    value: Value<'_>,
    (array, row): (&dyn Array, usize),
    full: bool,
    nested: bool,
) -> Result<(), ArrowError> {
    match value {
        Value::Null => out.push_str(NULL),
        Value::Text(text) => write_text(out, text, full, nested),
        Value::Bytes(bytes) => write_bytes(out, bytes, full, nested),
        Value::List(items) => {
            // The note of omitted items would take the room of two items.
            let shown = if full || items.len() <= ITEMS + 2 {
                items.len()
            } else {
                ITEMS
            };
            out.push('[');
            for row in 0..shown {
                if row > 0 {
                    out.push_str(", ");
                }
                write(out, items.as_ref(), row, full)?;
            }
            if shown < items.len() {
                out.push_str(&format!(", … {} more", count((items.len() - shown) as u64)));
            }
            out.push(']');
        }
        Value::Struct(fields, row) => {
            out.push('{');
            for (i, (name, column)) in fields
                .column_names()
                .into_iter()
                .zip(fields.columns())
                .enumerate()
            {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(&escape(name));
                out.push_str(": ");
                write(out, column.as_ref(), row, full)?;
            }
            out.push('}');
        }
        Value::Map(map) => {
            out.push('{');
            if let Some((keys, values)) = entries(&map)? {
                for (row, key) in keys.iter().enumerate() {
                    out.push_str(if row > 0 { ", " } else { "" });
                    write_text(out, key, full, true);
                    out.push_str(": ");
                    write(out, values.as_ref(), row, full)?;
                }
            }
            out.push('}');
        }
        Value::Digits(text) | Value::Other(text) => out.push_str(&text),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) => out.push_str(&plain(array, row)?),
        Value::Float(value) if value.is_finite() => out.push_str(&plain(array, row)?),
        Value::Double(value) if value.is_finite() => out.push_str(&plain(array, row)?),
        Value::Float(value) => out.push_str(not_finite(value.into())),
        Value::Double(value) => out.push_str(not_finite(value)),
    }
    Ok(())
}

/// A number or a boolean as in JSON.
fn plain(array: &dyn Array, row: usize) -> Result<String, ArrowError> {
    Ok(json_text(&JsonCell::new(array, row, FullCell))?)
}

fn write_text(out: &mut String, text: &str, full: bool, nested: bool) {
    let short = if full { None } else { shortened(text, TEXT) };
    let text = short.as_deref().unwrap_or(text);
    let text = if full && !nested {
        escape_except(text, &['\n'])
    } else {
        escape(text)
    };
    // In a list, an empty text or one with a comma would be ambiguous.
    let is_quoted = nested
        && (text == NULL
            || text.is_empty()
            || text.contains([',', '"', '[', ']', '{', '}'])
            || text.trim() != text);
    if is_quoted {
        out.push('"');
        out.push_str(&text.replace('"', "\\\""));
        out.push('"');
    } else {
        out.push_str(&text);
    }
}

fn write_bytes(out: &mut String, bytes: &[u8], full: bool, nested: bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_text(out, text, full, nested),
        Err(_) if full || bytes.len() <= BYTES => {
            out.push_str("x'");
            bytes
                .iter()
                .for_each(|byte| out.push_str(&format!("{byte:02x}")));
            out.push('\'');
        }
        Err(_) => out.push_str(&blob(bytes, bytes.len())),
    }
}

/// Whether values of this type are numbers, which tables align to the right.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || matches!(data_type, DataType::Dictionary(_, value) if value.is_numeric())
}
