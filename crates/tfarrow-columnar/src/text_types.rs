//! The types of the columns of a CSV or JSON file, which all rows determine.
//!
//! | values of a column | CSV | JSON |
//! |---|---|---|
//! | `true`, `false` | boolean | boolean |
//! | integers within 64 bits | int64 | int64 |
//! | numbers | float64 | float64 |
//! | others, and values of several of these types | text | text |
//! | lists | | lists of the type of all items |
//! | objects | | structs |
//! | none | text | text |
//!
//! Dates are text, because records have no dates. Empty fields of CSV and nulls of JSON are no values.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    sync::Arc,
};

use arrow_array::{StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde_json::Value;
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    guarded::guarded,
    json_type::{Extent, MAX_COLUMNS, Misfit, ObjectType, name_of},
    scalar_type::ScalarType,
    text_reader::TextReader,
    text_rows::{MAX_ROW_BYTES, csv_format, text_rows},
    unreadable::{in_part, unreadable, unreadable_arrow},
};

/// Infers the columns of a file from its first rows, at most `max_rows`. Returns them, and the number of these rows.
///
/// # Errors
/// A file that cannot be read, and rows that cannot be parsed, with their line.
pub(crate) fn infer_columns(shard: &Shard, max_rows: u64) -> Result<(SchemaRef, u64)> {
    match shard.format {
        ShardFormat::Json => json_columns(shard, max_rows),
        _ => csv_columns(shard, max_rows),
    }
}

fn csv_columns(shard: &Shard, max_rows: u64) -> Result<(SchemaRef, u64)> {
    let names = header(shard)?;
    let texts = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect::<Fields>();
    let mut types = vec![ScalarType::None; names.len()];
    let mut rows = 0;
    for batch in text_rows(shard, &Arc::new(Schema::new(texts)))? {
        let batch = batch?;
        for (known, column) in types.iter_mut().zip(batch.columns()) {
            *known = of_column(*known, column.as_string());
        }
        rows += batch.num_rows() as u64;
        if rows >= max_rows {
            break;
        }
    }
    let field = |(name, of): (&String, &ScalarType)| Field::new(name, of.data_type(), true);
    Ok((Arc::new(Schema::new(names.iter().zip(&types).map(field).collect::<Fields>())), rows))
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

/// The names of the columns of a CSV file, which are its first row.
fn header(shard: &Shard) -> Result<Vec<String>> {
    let path = &shard.path;
    let text = TextReader::open(shard)?.take(MAX_ROW_BYTES as u64);
    let found = guarded(path, || csv_format(path).infer_schema(text, Some(0)).map_err(|e| unreadable_arrow(path, e)));
    let names: Vec<_> = found?.0.fields().iter().map(|field| field.name().clone()).collect();
    if names.len() > MAX_COLUMNS {
        let what = format!("the header has {} columns, at most {MAX_COLUMNS} are allowed", names.len());
        return Err(unreadable(path, what));
    }
    if names.is_empty() {
        return Err(unreadable(path, "the file is empty; the first line of a CSV file has the names of the columns"));
    }
    let mut known = HashMap::new();
    for (number, name) in (1..).zip(&names) {
        if let Some(first) = known.insert(name, number) {
            let what = format!("columns {first} and {number} have the name {name:?}; rename one of them");
            return Err(in_part(path, unreadable(path, what), || "line 1".to_owned(), 0));
        }
    }
    Ok(names)
}

fn json_columns(shard: &Shard, max_rows: u64) -> Result<(SchemaRef, u64)> {
    let mut text = BufReader::new(TextReader::open(shard)?);
    let (mut object, mut extent) = (ObjectType::default(), Extent::default());
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
        add_line(&mut object, &mut extent, &bytes).map_err(|what| {
            let part = || format!("line {line} (row {rows})");
            in_part(&shard.path, unreadable(&shard.path, what), part, rows)
        })?;
        rows += 1;
    }
    Ok((Arc::new(Schema::new(object.into_fields())), rows))
}

/// Adds the object in a line. An error is its message.
fn add_line(object: &mut ObjectType, extent: &mut Extent, line: &[u8]) -> Result<(), String> {
    if line.len() > MAX_ROW_BYTES {
        return Err(format!("the line has more than {MAX_ROW_BYTES} bytes; write one object a line"));
    }
    let lines = "expected one object a line; jq -c .[] writes the items of an array so, and jq -c . other objects";
    match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => object.add(&fields, extent).map_err(Misfit::message),
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
