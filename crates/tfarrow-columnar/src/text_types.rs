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
    mem,
    sync::Arc,
};

use arrow_array::{
    StringArray,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use arrow_cast::parse::Parser;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde_json::{Map, Value};
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    guarded::guarded,
    text_reader::TextReader,
    text_rows::{MAX_ROW_BYTES, csv_format, text_rows},
    unreadable::{in_part, unreadable, unreadable_arrow},
};

/// Maximum number of columns, and of fields of an object, of which each takes memory for every batch.
const MAX_COLUMNS: usize = 100_000;

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

/// The type of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScalarType {
    /// There are no values.
    #[default]
    None,
    Boolean,
    Integer,
    Number,
    Text,
}

impl ScalarType {
    /// The type of a field of CSV.
    fn of_text(text: &str) -> Self {
        // The decoder parses with these functions.
        if Int64Type::parse(text).is_some() {
            Self::Integer
        } else if Float64Type::parse(text).is_some() {
            Self::Number
        } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Boolean
        } else {
            Self::Text
        }
    }

    /// The type of values of two types.
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::None, one) | (one, Self::None) => one,
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::None | Self::Text => DataType::Utf8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Text => "a text",
        }
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

/// The type of the values of a field of JSON.
#[derive(Debug)]
enum JsonType {
    Scalar(ScalarType),
    List(Box<JsonType>),
    Object(ObjectType),
}

impl Default for JsonType {
    fn default() -> Self {
        Self::Scalar(ScalarType::None)
    }
}

/// The fields of objects, in the order of their first values.
#[derive(Debug, Default)]
struct ObjectType {
    fields: Vec<(String, JsonType)>,
    /// The index of each field by its name.
    indices: HashMap<String, usize>,
}

/// A value that does not fit the type of others: the names of the fields and of the lists around it, from the innermost on.
struct Misfit {
    within: Vec<String>,
    what: String,
}

impl JsonType {
    /// Adds a value.
    fn add(&mut self, value: &Value) -> Result<(), Misfit> {
        if matches!(self, Self::Scalar(ScalarType::None)) {
            match value {
                Value::Array(_) => *self = Self::List(Box::default()),
                Value::Object(_) => *self = Self::Object(ObjectType::default()),
                _ => {}
            }
        }
        match (self, value) {
            (_, Value::Null) => Ok(()),
            (Self::List(item), Value::Array(values)) => values.iter().try_for_each(|value| item.add(value)),
            (Self::Object(object), Value::Object(fields)) => object.add(fields),
            (Self::Scalar(known), Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                *known = known.merge(scalar_of(value));
                Ok(())
            }
            (known, value) => {
                let what = format!("found {}, expected {} as in earlier rows", name_of(value), known.name());
                Err(Misfit { within: Vec::new(), what })
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Scalar(of) => of.name(),
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Scalar(of) => of.data_type(),
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(), true))),
            Self::Object(object) => DataType::Struct(object.into_fields()),
        }
    }
}

impl ObjectType {
    fn add(&mut self, object: &Map<String, Value>) -> Result<(), Misfit> {
        for (index, (name, value)) in object.iter().enumerate() {
            // Most objects have the same fields in the same order.
            let is_next = self.fields.get(index).is_some_and(|(known, _)| known == name);
            let index = if is_next { index } else { self.index_of(name) };
            let Some((_, known)) = self.fields.get_mut(index) else { continue };
            known.add(value).map_err(|mut misfit| {
                misfit.within.push(name.clone());
                misfit
            })?;
        }
        if self.fields.len() > MAX_COLUMNS {
            let advice = "name fields by what they mean, and not by their values";
            let what = format!("found more than {MAX_COLUMNS} fields; {advice}");
            return Err(Misfit { within: Vec::new(), what });
        }
        Ok(())
    }

    /// The index of a field, which is added if it is new.
    fn index_of(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        self.indices.insert(name.to_owned(), self.fields.len());
        self.fields.push((name.to_owned(), JsonType::default()));
        self.fields.len() - 1
    }

    fn into_fields(self) -> Fields {
        self.fields.into_iter().map(|(name, of)| Field::new(name, of.data_type(), true)).collect()
    }
}

fn scalar_of(value: &Value) -> ScalarType {
    match value {
        Value::Bool(_) => ScalarType::Boolean,
        Value::Number(number) if number.is_i64() => ScalarType::Integer,
        Value::Number(_) => ScalarType::Number,
        Value::String(_) => ScalarType::Text,
        Value::Null | Value::Array(_) | Value::Object(_) => ScalarType::None,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        value => scalar_of(value).name(),
    }
}

fn json_columns(shard: &Shard, max_rows: u64) -> Result<(SchemaRef, u64)> {
    let mut text = BufReader::new(TextReader::open(shard)?);
    let (mut object, mut line, mut bytes, mut rows) = (ObjectType::default(), 0, Vec::new(), 0);
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
        add_line(&mut object, &bytes).map_err(|what| {
            let part = || format!("line {line} (row {rows})");
            in_part(&shard.path, unreadable(&shard.path, what), part, rows)
        })?;
        rows += 1;
    }
    Ok((Arc::new(Schema::new(object.into_fields())), rows))
}

/// Adds the object in a line. An error is its message.
fn add_line(object: &mut ObjectType, line: &[u8]) -> Result<(), String> {
    if line.len() > MAX_ROW_BYTES {
        return Err(format!("the line has more than {MAX_ROW_BYTES} bytes; write one object a line"));
    }
    let lines = "expected one object a line; jq -c .[] writes the items of an array so, and jq -c . other objects";
    match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => object.add(&fields).map_err(Misfit::message),
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

impl Misfit {
    fn message(mut self) -> String {
        self.within.reverse();
        let within = mem::take(&mut self.within);
        if within.is_empty() {
            return self.what;
        }
        format!(
            "field {:?}: {}; a field has values of one form, so that one value is a list too: [1]",
            within.join("."),
            self.what
        )
    }
}
