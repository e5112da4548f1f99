//! Cells of Arrow arrays as JSON, and rows as lines of JSON. Bytes are text where they are UTF-8,
//! else `{"b64": ".."}`. NaN and the infinities are texts, which the reader of JSON takes for
//! numbers beside other numbers.

use std::io;

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Schema};
use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

use crate::value::{self, Value};

/// How much of a long value is shown.
pub trait CellStyle: Copy {
    /// A shorter text; `None` for a text that is shown in full.
    fn shorter_text(self, text: &str) -> Option<String>;
    /// A text for bytes; `None` for bytes that are shown in full.
    fn shorter_bytes(self, bytes: &[u8]) -> Option<String>;
    /// The number of items of a list that are shown, and a note about the others; `None` for all
    /// items.
    fn fewer_items(self, items: usize) -> Option<(usize, String)>;
    /// Whether fields of structs that are null are shown.
    fn shows_nulls(self) -> bool;
}

/// Values are complete.
#[derive(Clone, Copy, Debug)]
pub struct FullCell;

impl CellStyle for FullCell {
    fn shorter_text(self, _: &str) -> Option<String> {
        None
    }

    fn shorter_bytes(self, _: &[u8]) -> Option<String> {
        None
    }

    fn fewer_items(self, _: usize) -> Option<(usize, String)> {
        None
    }

    fn shows_nulls(self) -> bool {
        true
    }
}

/// Writes rows as objects of JSON.
#[derive(Clone, Debug)]
pub struct JsonRows {
    /// The names of the columns, as JSON strings with a colon.
    names: Vec<Vec<u8>>,
}

impl JsonRows {
    /// A writer of rows of this schema.
    ///
    /// # Errors
    /// A name cannot be serialized.
    pub fn new(schema: &Schema) -> io::Result<Self> {
        let names = schema
            .fields()
            .iter()
            .map(|field| key(field.name()))
            .collect::<io::Result<_>>()?;
        Ok(Self { names })
    }

    /// Appends the object of a row, without a line feed.
    ///
    /// # Errors
    /// A value has no text, such as a date out of range.
    pub fn write(&self, batch: &RecordBatch, row: usize, line: &mut Vec<u8>) -> io::Result<()> {
        line.push(b'{');
        for (i, (name, column)) in self.names.iter().zip(batch.columns()).enumerate() {
            if i > 0 {
                line.push(b',');
            }
            line.extend_from_slice(name);
            write_json(line, &JsonCell::new(column.as_ref(), row, FullCell))?;
        }
        line.push(b'}');
        Ok(())
    }
}

fn key(name: &str) -> io::Result<Vec<u8>> {
    let mut key = Vec::new();
    write_json(&mut key, name)?;
    key.push(b':');
    Ok(key)
}

/// A cell of an array as a value that can be serialized.
#[derive(Clone, Copy, Debug)]
pub struct JsonCell<'a, S> {
    array: &'a dyn Array,
    row: usize,
    style: S,
}

impl<'a, S: CellStyle> JsonCell<'a, S> {
    /// The cell of `array` in `row`.
    pub fn new(array: &'a dyn Array, row: usize, style: S) -> Self {
        Self { array, row, style }
    }

    /// Whether the value is null: also one of the type Null, and one that a dictionary, a run or a
    /// union refers to.
    pub fn is_null(&self) -> bool {
        matches!(Value::of(self.array, self.row), Ok(Value::Null))
    }
}

impl<S: CellStyle> Serialize for JsonCell<'_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let value = Value::of(self.array, self.row)
            .map_err(|e: ArrowError| serde::ser::Error::custom(e))?;
        match value {
            Value::Null => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(value),
            Value::Int(value) => serializer.serialize_i64(value),
            Value::UInt(value) => serializer.serialize_u64(value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f32(value),
            Value::Float(value) => serializer.serialize_str(not_finite(value.into())),
            Value::Double(value) if value.is_finite() => serializer.serialize_f64(value),
            Value::Double(value) => serializer.serialize_str(not_finite(value)),
            Value::Text(text) => self.text(text, serializer),
            Value::Digits(text) | Value::Other(text) => serializer.serialize_str(&text),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.text(text, serializer),
                Err(_) => match self.style.shorter_bytes(bytes) {
                    Some(short) => serializer.serialize_str(&short),
                    None => base64(bytes, serializer),
                },
            },
            Value::List(items) => self.list(items.as_ref(), serializer),
            Value::Struct(fields, row) => self.fields(fields, row, serializer),
            Value::Map(map) => self.map(&map, serializer),
        }
    }
}

impl<S: CellStyle> JsonCell<'_, S> {
    fn text<T: Serializer>(&self, text: &str, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(self.style.shorter_text(text).as_deref().unwrap_or(text))
    }

    fn list<T: Serializer>(&self, items: &dyn Array, serializer: T) -> Result<T::Ok, T::Error> {
        let (shown, note) = self.style.fewer_items(items.len()).unzip();
        let mut list = serializer.serialize_seq(None)?;
        for row in 0..shown.unwrap_or(items.len()) {
            list.serialize_element(&JsonCell {
                array: items,
                row,
                style: self.style,
            })?;
        }
        if let Some(note) = &note {
            list.serialize_element(note)?;
        }
        list.end()
    }

    fn fields<T: Serializer>(
        &self,
        fields: &StructArray,
        row: usize,
        serializer: T,
    ) -> Result<T::Ok, T::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, array) in fields.column_names().into_iter().zip(fields.columns()) {
            let cell = JsonCell {
                array: array.as_ref(),
                row,
                style: self.style,
            };
            if self.style.shows_nulls() || !cell.is_null() {
                map.serialize_entry(name, &cell)?;
            }
        }
        map.end()
    }

    /// A map is an object, whose names are the keys as texts.
    fn map<T: Serializer>(&self, entries: &StructArray, serializer: T) -> Result<T::Ok, T::Error> {
        let entries =
            value::entries(entries).map_err(|e: ArrowError| serde::ser::Error::custom(e))?;
        let mut map = serializer.serialize_map(None)?;
        if let Some((keys, values)) = &entries {
            for (row, key) in keys.iter().enumerate() {
                map.serialize_entry(
                    key,
                    &JsonCell {
                        array: values.as_ref(),
                        row,
                        style: self.style,
                    },
                )?;
            }
        }
        map.end()
    }
}

fn base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    struct Text<'a>(&'a [u8]);
    impl Serialize for Text<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
        }
    }
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("b64", &Text(bytes))?;
    map.end()
}

/// The string for a float that JSON cannot represent as a number.
pub fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Appends `value` as JSON on one line.
///
/// # Errors
/// The value cannot be serialized.
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Plain);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// `value` as JSON on one line.
///
/// # Errors
/// As [`write_json`].
pub fn json_text<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    let mut out = Vec::new();
    write_json(&mut out, value)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// A formatter of compact JSON that escapes all control characters; serde_json escapes only those
/// below U+0020.
struct Plain;

impl serde_json::ser::Formatter for Plain {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if !fragment.contains(is_control) {
            return out.write_all(fragment.as_bytes());
        }
        for c in fragment.chars() {
            if is_control(c) {
                write!(out, "\\u{:04x}", u32::from(c))?
            } else {
                write!(out, "{c}")?
            }
        }
        Ok(())
    }
}

/// Whether a character changes the display of a terminal or a page: control characters, separators
/// of lines and paragraphs, and marks of the writing direction.
pub fn is_control(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_mark
}
