//! Tables for people: aligned columns, shortened values, escaped control characters.
//!
//! The first rows determine the widths of the columns. The other rows are streamed, so that memory is bounded.

use std::io::{self, Write};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    humanize::{blob, count, shortened},
    json,
    rows::Rows,
    value::{Value, is_number},
};
use crate::text::{escape, escape_except};

/// Number of rows that determine the widths of the columns.
const MEASURED_ROWS: usize = 1000;
/// The least width to which a column is narrowed.
const NARROWEST: usize = 10;
/// Number of characters shown of a text.
const TEXT: usize = 200;
/// Length up to which binary values are shown in hexadecimal.
const BYTES: usize = 16;
/// Number of items shown of a list.
const ITEMS: usize = 6;

/// Writes batches as one table.
pub(super) struct Table<W> {
    out: W,
    columns: Vec<Column>,
    /// The rows that wait until the widths are determined.
    waiting: Vec<Vec<String>>,
    decided: bool,
    /// The width of the terminal, if any.
    fit: Option<usize>,
    /// Whether values are shown in full, with their line breaks.
    full: bool,
    line: String,
}

struct Column {
    name: String,
    width: usize,
    right: bool,
}

impl<W: Write> Table<W> {
    pub(super) fn new(out: W, schema: &SchemaRef, fit: Option<usize>, full: bool) -> Self {
        let column = |field: &arrow_schema::FieldRef| {
            let name = escape(field.name());
            Column { width: name.width(), right: is_number(field.data_type()), name }
        };
        let columns = schema.fields().iter().map(column).collect();
        Self { out, columns, waiting: Vec::new(), decided: false, fit, full, line: String::new() }
    }

    /// A table of text cells.
    pub(super) fn of_text(out: W, names: &[&str], right: &[bool], fit: Option<usize>) -> Self {
        let column = |(name, right): (&&str, &bool)| Column { name: escape(name), width: name.width(), right: *right };
        let columns = names.iter().zip(right).map(column).collect();
        Self { out, columns, waiting: Vec::new(), decided: false, fit, full: false, line: String::new() }
    }

    /// Writes a row of text cells.
    pub(super) fn row(&mut self, cells: Vec<String>) -> io::Result<()> {
        if self.decided {
            return self.print(&cells);
        }
        self.waiting.push(cells);
        if self.waiting.len() < MEASURED_ROWS { Ok(()) } else { self.decide() }
    }

    /// Determines the widths of the columns, and prints the waiting rows.
    fn decide(&mut self) -> io::Result<()> {
        self.decided = true;
        let waiting = std::mem::take(&mut self.waiting);
        for row in &waiting {
            for (column, cell) in self.columns.iter_mut().zip(row) {
                let widest = cell.lines().map(UnicodeWidthStr::width).max();
                column.width = column.width.max(widest.unwrap_or_default());
            }
        }
        if let Some(fit) = self.fit {
            narrow(&mut self.columns, fit);
        }
        self.rule()?;
        let header: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
        self.print(&header)?;
        self.rule()?;
        waiting.iter().try_for_each(|row| self.print(row))
    }

    fn rule(&mut self) -> io::Result<()> {
        self.line.clear();
        for column in &self.columns {
            self.line.push('+');
            self.line.extend(std::iter::repeat_n('-', column.width + 2));
        }
        self.line.push_str("+\n");
        self.out.write_all(self.line.as_bytes())
    }

    /// Prints a row, which takes as many lines as its cell of most lines.
    fn print(&mut self, cells: &[String]) -> io::Result<()> {
        let mut lines: Vec<_> = cells.iter().map(|cell| cell.lines()).collect();
        for at in 0.. {
            let parts: Vec<_> = lines.iter_mut().map(Iterator::next).collect();
            if at > 0 && parts.iter().all(Option::is_none) {
                break;
            }
            self.line.clear();
            for (column, part) in self.columns.iter().zip(parts) {
                self.line.push_str("| ");
                put(&mut self.line, column, part.unwrap_or_default());
                self.line.push(' ');
            }
            self.line.push_str("|\n");
            self.out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Rows for Table<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            let cell = |column: &arrow_array::ArrayRef| cell(column.as_ref(), row, self.full);
            let cells = batch.columns().iter().map(cell).collect::<io::Result<_>>()?;
            self.row(cells)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.decided {
            self.decide()?;
        }
        self.rule()?;
        self.out.flush()
    }
}

/// Narrows the widest columns until the table fits, or until all have the least width.
fn narrow(columns: &mut [Column], fit: usize) {
    let total = |columns: &[Column]| columns.iter().map(|c| c.width + 3).sum::<usize>() + 1;
    loop {
        let over = total(columns).saturating_sub(fit);
        let Some(widest) = columns.iter().map(|c| c.width).max() else { return };
        if over == 0 || widest <= NARROWEST {
            return;
        }
        // The widest columns are narrowed together, down to the next width.
        let next = columns.iter().map(|c| c.width).filter(|w| *w < widest).max().unwrap_or(0).max(NARROWEST);
        let many = columns.iter().filter(|c| c.width == widest).count();
        let width = widest.saturating_sub(over.div_ceil(many)).max(next);
        for column in columns.iter_mut().filter(|c| c.width == widest) {
            column.width = width;
        }
    }
}

/// Appends `text` padded or truncated to the width of its column.
fn put(line: &mut String, column: &Column, text: &str) {
    let width = text.width();
    let pad = column.width.saturating_sub(width);
    if width > column.width && column.width >= NARROWEST {
        return cut(line, text, column.width);
    }
    if column.right {
        line.extend(std::iter::repeat_n(' ', pad));
    }
    line.push_str(text);
    if !column.right {
        line.extend(std::iter::repeat_n(' ', pad));
    }
}

fn cut(line: &mut String, text: &str, width: usize) {
    let mut left = width - 1;
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        line.push(c);
        left = rest;
    }
    line.push('…');
    line.extend(std::iter::repeat_n(' ', left));
}

/// One cell as text.
fn cell(array: &dyn Array, row: usize, full: bool) -> io::Result<String> {
    let mut out = String::new();
    write(&mut out, array, row, full, false).map_err(|e: ArrowError| io::Error::other(e))?;
    Ok(out)
}

fn write(out: &mut String, array: &dyn Array, row: usize, full: bool, nested: bool) -> Result<(), ArrowError> {
    match Value::of(array, row)? {
        Value::Null => out.push_str("NULL"),
        Value::Text(text) => write_text(out, text, full, nested),
        Value::Bytes(bytes) => write_bytes(out, bytes, full, nested),
        Value::List(items) => {
            // The note of omitted items would take the room of two items.
            let shown = if full || items.len() <= ITEMS + 2 { items.len() } else { ITEMS };
            out.push('[');
            for row in 0..shown {
                if row > 0 {
                    out.push_str(", ");
                }
                write(out, items.as_ref(), row, full, true)?;
            }
            if shown < items.len() {
                out.push_str(&format!(", … {} more", count((items.len() - shown) as u64)));
            }
            out.push(']');
        }
        Value::Struct(fields, row) => {
            out.push('{');
            for (i, (name, column)) in fields.column_names().into_iter().zip(fields.columns()).enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(&escape(name));
                out.push_str(": ");
                write(out, column.as_ref(), row, full, true)?;
            }
            out.push('}');
        }
        Value::Digits(text) | Value::Other(text) => out.push_str(&text),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) => out.push_str(&plain(array, row)?),
        Value::Float(value) if value.is_finite() => out.push_str(&plain(array, row)?),
        Value::Double(value) if value.is_finite() => out.push_str(&plain(array, row)?),
        Value::Float(value) => out.push_str(json::not_finite(value.into())),
        Value::Double(value) => out.push_str(json::not_finite(value)),
    }
    Ok(())
}

/// A number or a boolean as in JSON.
fn plain(array: &dyn Array, row: usize) -> Result<String, ArrowError> {
    Ok(json::to_text(&json::Cell::new(array, row, json::Style::FULL))?)
}

fn write_text(out: &mut String, text: &str, full: bool, nested: bool) {
    let short = if full { None } else { shortened(text, TEXT) };
    let text = short.as_deref().unwrap_or(text);
    let text = if full && !nested { escape_except(text, &['\n']) } else { escape(text) };
    // In a list, an empty text or one with a comma would be ambiguous.
    let quoted = nested && (text.is_empty() || text.contains([',', '"', '[', ']', '{', '}']) || text.trim() != text);
    if quoted {
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
            bytes.iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
            out.push('\'');
        }
        Err(_) => out.push_str(&blob(bytes, bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(columns: &[usize], fit: usize) -> Vec<usize> {
        let column = |width: &usize| Column { name: String::new(), width: *width, right: false };
        let mut columns: Vec<_> = columns.iter().map(column).collect();
        narrow(&mut columns, fit);
        columns.iter().map(|c| c.width).collect()
    }

    #[test]
    fn the_widest_columns_are_narrowed_first() {
        assert_eq!(widths(&[5, 50, 20], 80), [5, 45, 20]);
        assert_eq!(widths(&[5, 50, 50], 60), [5, 22, 22]);
        assert_eq!(widths(&[5, 50, 20], 20), [5, 10, 10]);
        assert_eq!(widths(&[5, 6], 80), [5, 6]);
    }

    #[test]
    fn cells_are_truncated_by_display_width() {
        let mut line = String::new();
        cut(&mut line, "日本語日本語日本語", 10);
        assert_eq!(line, "日本語日… ");
    }
}
