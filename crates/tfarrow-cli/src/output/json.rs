//! JSON: an array of objects, or one object per line.

use std::{
    fmt,
    io::{self, Write},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_columnar::{CellStyle, JsonCell, JsonRows};
use tfarrow_report::text::{blob, count, shortened};

use super::{rows::Rows, sink::Out};

/// Writes batches as JSON.
pub(super) struct Json {
    out: Out,
    objects: JsonRows,
    /// Whether each object is a line, and not an item of one array.
    lines: bool,
    rows: u64,
    line: Vec<u8>,
}

impl Json {
    pub(super) fn new(out: Out, schema: &SchemaRef, lines: bool) -> io::Result<Self> {
        Ok(Self {
            out,
            objects: JsonRows::new(schema)?,
            lines,
            rows: 0,
            line: Vec::new(),
        })
    }
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
            self.objects.write(batch, row, &mut self.line)?;
            if self.lines {
                self.line.push(b'\n');
            }
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
    pub(crate) const FULL: Self = Self {
        bytes: usize::MAX,
        text: usize::MAX - 16,
        items: usize::MAX,
        nulls: true,
    };
    /// Limits that keep a record readable.
    pub(crate) const SHORT: Self = Self {
        bytes: 64,
        text: 2000,
        items: 1000,
        nulls: true,
    };

    /// Leaves out the fields of structs that are null.
    pub(crate) fn without_nulls(self) -> Self {
        Self {
            nulls: false,
            ..self
        }
    }
}

/// A cell of an array as a value that can be serialized.
pub(crate) type Cell<'a> = JsonCell<'a, Style>;

impl CellStyle for Style {
    fn shorter_text(self, text: &str) -> Option<String> {
        (text.len() > self.text)
            .then(|| shortened(text, self.text))
            .flatten()
    }

    fn shorter_bytes(self, bytes: &[u8]) -> Option<String> {
        (bytes.len() > self.bytes).then(|| blob(bytes, bytes.len()))
    }

    fn fewer_items(self, items: usize) -> Option<(usize, String)> {
        let shown = self.items / 10;
        (items > self.items).then(|| (shown, format!("<{} more>", count((items - shown) as u64))))
    }

    fn shows_nulls(self) -> bool {
        self.nulls
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json")
            .field("lines", &self.lines)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
