//! JSON: an array of objects, or one object per line. Bytes are text where they are UTF-8, else `{"b64": ".."}`. NaN and the
//! infinities are strings.

use std::{
    fmt,
    io::{self, Write},
};

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

use super::{
    humanize::{blob, shortened},
    rows::Rows,
    sink::Out,
    value::{self, Value},
};
use crate::text::is_control;

/// Writes batches as JSON.
pub(super) struct Json {
    out: Out,
    /// The names of the columns, as JSON strings with a colon.
    names: Vec<Vec<u8>>,
    /// Whether each object is a line, and not an item of one array.
    lines: bool,
    rows: u64,
    line: Vec<u8>,
}

impl Json {
    pub(super) fn new(out: Out, schema: &SchemaRef, lines: bool) -> io::Result<Self> {
        let names = schema.fields().iter().map(|field| key(field.name())).collect::<io::Result<_>>()?;
        Ok(Self { out, names, lines, rows: 0, line: Vec::new() })
    }
}

fn key(name: &str) -> io::Result<Vec<u8>> {
    let mut key = Vec::new();
    write_to(&mut key, name)?;
    key.push(b':');
    Ok(key)
}

impl Rows for Json {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            self.line.clear();
            self.line.extend_from_slice(match (self.lines, self.rows) {
                (true, _) => b"",
                (false, 0) => b"[",
                (false, _) => b",\n ",
            });
            self.rows += 1;
            self.line.push(b'{');
            for (i, (name, column)) in self.names.iter().zip(batch.columns()).enumerate() {
                if i > 0 {
                    self.line.push(b',');
                }
                self.line.extend_from_slice(name);
                write_to(&mut self.line, &Cell::new(column.as_ref(), row, Style::FULL))?;
            }
            self.line.extend_from_slice(if self.lines { b"}\n" } else { b"}" });
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        match (self.lines, self.rows) {
            (true, 0) => super::stdout::nothing()?,
            (true, _) => {}
            (false, 0) => self.out.write_all(b"[]\n")?,
            (false, _) => self.out.write_all(b"]\n")?,
        }
        self.out.flush()
    }
}

/// Limits from which on values are shortened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Length of binary values in bytes.
    bytes: usize,
    /// Length of text in characters.
    text: usize,
    /// Length of lists in items.
    items: usize,
    /// Whether fields of structs that are null are shown.
    nulls: bool,
}

impl Style {
    /// No limits.
    pub(crate) const FULL: Self = Self { bytes: usize::MAX, text: usize::MAX - 16, items: usize::MAX, nulls: true };
    /// Limits that keep a record readable.
    pub(crate) const SHORT: Self = Self { bytes: 64, text: 2000, items: 1000, nulls: true };

    /// Leaves out the fields of structs that are null.
    pub(crate) fn without_nulls(self) -> Self {
        Self { nulls: false, ..self }
    }
}

/// A cell of an array as a value that can be serialized.
pub(crate) struct Cell<'a> {
    array: &'a dyn Array,
    row: usize,
    style: Style,
}

impl<'a> Cell<'a> {
    pub(crate) fn new(array: &'a dyn Array, row: usize, style: Style) -> Self {
        Self { array, row, style }
    }

    /// Whether the value is null: also one of the type Null, and one that a dictionary, a run or a union refers to.
    pub(crate) fn is_null(&self) -> bool {
        matches!(Value::of(self.array, self.row), Ok(Value::Null))
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = Value::of(self.array, self.row).map_err(|e: ArrowError| serde::ser::Error::custom(e))?;
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
                Err(_) if bytes.len() > self.style.bytes => serializer.serialize_str(&blob(bytes, bytes.len())),
                Err(_) => base64(bytes, serializer),
            },
            Value::List(items) => self.list(items.as_ref(), serializer),
            Value::Struct(fields, row) => self.fields(fields, row, serializer),
            Value::Map(map) => self.map(&map, serializer),
        }
    }
}

impl Cell<'_> {
    fn text<S: Serializer>(&self, text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        let short = (text.len() > self.style.text).then(|| shortened(text, self.style.text)).flatten();
        serializer.serialize_str(short.as_deref().unwrap_or(text))
    }

    fn list<S: Serializer>(&self, items: &dyn Array, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = if items.len() > self.style.items { self.style.items / 10 } else { items.len() };
        let mut list = serializer.serialize_seq(None)?;
        for row in 0..shown {
            list.serialize_element(&Cell { array: items, row, style: self.style })?;
        }
        if shown < items.len() {
            list.serialize_element(&format!("<{} more>", super::humanize::count((items.len() - shown) as u64)))?;
        }
        list.end()
    }

    fn fields<S: Serializer>(&self, fields: &StructArray, row: usize, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, array) in fields.column_names().into_iter().zip(fields.columns()) {
            let cell = Cell { array: array.as_ref(), row, style: self.style };
            if self.style.nulls || !cell.is_null() {
                map.serialize_entry(name, &cell)?;
            }
        }
        map.end()
    }

    /// A map is an object, whose names are the keys as texts.
    fn map<S: Serializer>(&self, entries: &StructArray, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = value::entries(entries).map_err(|e: ArrowError| serde::ser::Error::custom(e))?;
        let mut map = serializer.serialize_map(None)?;
        if let Some((keys, values)) = &entries {
            for (row, key) in keys.iter().enumerate() {
                map.serialize_entry(key, &Cell { array: values.as_ref(), row, style: self.style })?;
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
pub(super) fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Appends `value` as JSON on one line.
pub(crate) fn write_to<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Plain);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// `value` as JSON on one line.
pub(crate) fn to_text<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    let mut out = Vec::new();
    write_to(&mut out, value)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// `value` as indented JSON. Control characters are escaped, except the line feeds between values.
pub(crate) fn pretty<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Line feeds of values are escaped already. The control characters that JSON leaves have 16 bits.
        if c != '\n' && is_control(c) { out.push_str(&format!("\\u{:04x}", u32::from(c))) } else { out.push(c) }
    }
    Ok(out)
}

/// A formatter of compact JSON that escapes all control characters; serde_json escapes only those below U+0020.
struct Plain;

impl serde_json::ser::Formatter for Plain {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if !fragment.contains(is_control) {
            return out.write_all(fragment.as_bytes());
        }
        for c in fragment.chars() {
            if is_control(c) { write!(out, "\\u{:04x}", u32::from(c))? } else { write!(out, "{c}")? }
        }
        Ok(())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("lines", &self.lines).field("rows", &self.rows).finish_non_exhaustive()
    }
}
