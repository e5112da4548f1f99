//! The types of the columns of a CSV or JSON file, which all rows determine.
//!
//! | values of a column | CSV | JSON |
//! |---|---|---|
//! | `true`, `false` | boolean | boolean |
//! | integers within 64 bits | int64 | int64 |
//! | numbers, also with integers that float64 holds | float64 | float64 |
//! | others, and values of several of these types | text | text |
//! | lists | | lists of the type of all items |
//! | objects | | structs |
//! | none | text | text |
//!
//! Dates are text, because records have no dates. Empty fields of CSV and nulls of JSON are no
//! values.

use std::{
    io::{BufRead, BufReader, Read},
    sync::Arc,
};

use arrow_array::{StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use tfarrow_dataset::{Error, Result};

use crate::{
    csv_header::header,
    json_numbers::NotFinite,
    json_type::{LineFault, ObjectType, TypeSize},
    scalar_type::ScalarType,
    text::{CsvForm, Text, TextForm},
    text_reader::{MAX_ROW_BYTES, TextReader},
    text_rows::{RowSelection, TextBatches},
    unreadable::{in_part, unreadable},
};

/// What all rows of a text determine.
#[derive(Debug)]
pub(crate) struct InferredText {
    pub(crate) types: ObjectType,
    /// The number of rows.
    pub(crate) rows: u64,
    /// Whether each row is on a line of its own, so that a row begins after each line feed.
    pub(crate) has_row_per_line: bool,
}

/// Infers the types of the columns of a text from its first rows, at most `max_rows`.
///
/// # Errors
/// A text that cannot be read, and rows that cannot be parsed, with their line.
pub(crate) fn infer_types(text: &Text, max_rows: u64) -> Result<InferredText> {
    match &text.form {
        TextForm::Json => json_types(text, max_rows),
        TextForm::Csv(form) => csv_types(text, form, max_rows),
    }
}

fn csv_types(text: &Text, form: &CsvForm, max_rows: u64) -> Result<InferredText> {
    let names = header(text, form)?;
    let texts = names
        .iter()
        .map(|name| Field::new(name, DataType::Utf8, true))
        .collect::<Fields>();
    let mut types = vec![ScalarType::None; names.len()];
    let selection = RowSelection {
        max_rows,
        ..RowSelection::default()
    };
    let mut batches = TextBatches::open(text, &Arc::new(Schema::new(texts)), &selection)?;
    let mut rows = 0;
    for batch in batches.by_ref() {
        let batch = batch?;
        for (known, column) in types.iter_mut().zip(batch.columns()) {
            *known = of_column(*known, column.as_string());
        }
        rows += batch.num_rows() as u64;
    }
    let types = ObjectType::of_columns(names.into_iter().zip(types));
    Ok(InferredText {
        types,
        rows,
        has_row_per_line: batches.has_row_per_line(),
    })
}

/// The type of the fields of a column that had the type `known` before.
fn of_column(known: ScalarType, texts: &StringArray) -> ScalarType {
    let mut values = texts.iter().flatten();
    let mut known = known;
    // A text stays a text.
    while known != ScalarType::Text
        && let Some(value) = values.next()
    {
        known = known.merge(ScalarType::of_text(value));
    }
    known
}

fn json_types(text: &Text, max_rows: u64) -> Result<InferredText> {
    let reader = TextReader::open(text, None, NotFinite::AsFinite)?;
    let is_array = reader.is_array;
    let mut reader = BufReader::new(reader);
    let mut types = ObjectType::default();
    let mut size = TypeSize::default();
    let mut line = 0;
    let mut bytes = Vec::new();
    let mut rows = 0;
    while rows < max_rows {
        bytes.clear();
        let limited = reader
            .by_ref()
            .take(MAX_ROW_BYTES as u64 + 1)
            .read_until(b'\n', &mut bytes);
        if limited.map_err(|e| Error::io(&text.path, e))? == 0 {
            break;
        }
        line += 1;
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        add_line(&mut types, &mut size, &bytes).map_err(|what| {
            // The items of an array have no lines.
            let part = if is_array {
                format!("row {rows}")
            } else {
                format!("line {line} (row {rows})")
            };
            in_part(&text.path, unreadable(&text.path, what), || part, rows)
        })?;
        rows += 1;
    }
    Ok(InferredText {
        types,
        rows,
        has_row_per_line: !is_array && max_rows == u64::MAX,
    })
}

/// Adds the object in a line. An error is its message.
fn add_line(types: &mut ObjectType, size: &mut TypeSize, line: &[u8]) -> Result<(), String> {
    if line.len() > MAX_ROW_BYTES {
        return Err(format!(
            "the line has more than {MAX_ROW_BYTES} bytes; write one object a line"
        ));
    }
    let lines =
        "expected one object a line, or one array of objects; jq -c . writes objects as lines";
    if let Some(found) = form_of(line).filter(|found| *found != "an object") {
        return Err(format!("found {found}, {lines}"));
    }
    types.add(line, size).map_err(|error| match error {
        LineFault::Value(misfit) => misfit.message(),
        LineFault::Json(error) if error.is_eof() => {
            format!("found a part of a value that has several lines, {lines}")
        }
        LineFault::Json(error) => {
            format!("not JSON: {}; {lines}", without_line(&error.to_string()))
        }
    })
}

/// The form of the value that begins in a line; `None` if none begins.
fn form_of(line: &[u8]) -> Option<&'static str> {
    Some(match line.trim_ascii_start().first()? {
        b'{' => "an object",
        b'[' => "a list",
        b'"' => "a text",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        b'-' | b'0'..=b'9' => "a number",
        _ => return None,
    })
}

/// The message of an error of `serde_json` with the column, but without the line, which is
/// always 1.
fn without_line(message: &str) -> String {
    message.replace(" at line 1 column ", " at column ")
}
