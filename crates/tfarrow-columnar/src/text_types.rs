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
//! Dates are text, because records have no dates. Empty fields of CSV and nulls of JSON are no values.

use std::{
    io::{BufRead, BufReader, Read},
    sync::Arc,
};

use arrow_array::{StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use serde_json::Value;
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    csv_header::header,
    json_type::{Misfit, ObjectType, TypeSize, name_of},
    scalar_type::ScalarType,
    text_reader::{MAX_ROW_BYTES, TextReader},
    text_rows::text_rows,
    unreadable::{in_part, unreadable},
};

/// Infers the types of the columns of a file from its first rows, at most `max_rows`. Returns them, and the number of these rows.
///
/// # Errors
/// A file that cannot be read, and rows that cannot be parsed, with their line.
pub(crate) fn infer_types(shard: &Shard, max_rows: u64) -> Result<(ObjectType, u64)> {
    match shard.format {
        ShardFormat::Json => json_types(shard, max_rows),
        _ => csv_types(shard, max_rows),
    }
}

fn csv_types(shard: &Shard, max_rows: u64) -> Result<(ObjectType, u64)> {
    let names = header(shard)?;
    let texts = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect::<Fields>();
    let mut types = vec![ScalarType::None; names.len()];
    let mut rows = 0;
    for batch in text_rows(shard, &Arc::new(Schema::new(texts)), max_rows)? {
        let batch = batch?;
        for (known, column) in types.iter_mut().zip(batch.columns()) {
            *known = of_column(*known, column.as_string());
        }
        rows += batch.num_rows() as u64;
    }
    Ok((ObjectType::of_columns(names.into_iter().zip(types)), rows))
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

fn json_types(shard: &Shard, max_rows: u64) -> Result<(ObjectType, u64)> {
    let mut text = BufReader::new(TextReader::open(shard)?);
    let (mut object, mut size) = (ObjectType::default(), TypeSize::default());
    let (mut line, mut bytes, mut rows) = (0, Vec::new(), 0);
    while rows < max_rows {
        bytes.clear();
        let limited = text.by_ref().take(MAX_ROW_BYTES as u64 + 1).read_until(b'\n', &mut bytes);
        if limited.map_err(|e| Error::io(&shard.path, e))? == 0 {
            break;
        }
        line += 1;
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        add_line(&mut object, &mut size, &bytes).map_err(|what| {
            let part = || format!("line {line} (row {rows})");
            in_part(&shard.path, unreadable(&shard.path, what), part, rows)
        })?;
        rows += 1;
    }
    Ok((object, rows))
}

/// Adds the object in a line. An error is its message.
fn add_line(object: &mut ObjectType, size: &mut TypeSize, line: &[u8]) -> Result<(), String> {
    if line.len() > MAX_ROW_BYTES {
        return Err(format!("the line has more than {MAX_ROW_BYTES} bytes; write one object a line"));
    }
    let lines = "expected one object a line; jq -c .[] writes the items of an array so, and jq -c . other objects";
    match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => object.add(&fields, size).map_err(Misfit::message),
        Ok(other) => Err(format!("found {}, {lines}", name_of(&other))),
        Err(error) if line.trim_ascii_start().starts_with(b"[") || error.is_eof() => {
            Err(format!("found a part of a value that has several lines, {lines}"))
        }
        Err(error) => Err(format!("not JSON: {}; {lines}", without_line(&error.to_string()))),
    }
}

/// The message of an error of `serde_json` with the column, but without the line, which is always 1.
fn without_line(message: &str) -> String {
    message.replace(" at line 1 column ", " at column ")
}
