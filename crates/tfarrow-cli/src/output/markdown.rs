//! Markdown: a table of GitHub's dialect, with complete values.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_report::text::escape_except;

use super::{
    cell::{cells, is_number},
    rows::Rows,
    sink::Out,
};

/// Writes batches as one Markdown table.
pub(super) struct Markdown {
    out: Out,
}

impl Markdown {
    pub(super) fn new(mut out: Out, schema: &SchemaRef) -> io::Result<Self> {
        let fields = schema.fields();
        line(
            &mut out,
            fields
                .iter()
                .map(|field| Some(escape_except(field.name(), &['\n']))),
        )?;
        line(
            &mut out,
            fields.iter().map(|field| {
                let is_number = is_number(field.data_type());
                let rule = if is_number { "--:" } else { "---" };
                Some(rule.to_owned())
            }),
        )?;
        Ok(Self { out })
    }
}

impl Rows for Markdown {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            line(&mut self.out, cells(batch, row, true)?.into_iter())?;
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a row. A null is in italics, and an empty text is an empty cell.
fn line(out: &mut Out, cells: impl Iterator<Item = Option<String>>) -> io::Result<()> {
    for cell in cells {
        match cell {
            Some(cell) => write!(out, "| {} ", escaped(&cell))?,
            // An empty cell is an empty text.
            None => out.write_all(b"| *NULL* ")?,
        }
    }
    writeln!(out, "|")
}

/// Text without what ends a cell, or is markup in it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' => out.extend(['\\', c]),
            '\n' => out.push_str("<br>"),
            c => out.push(c),
        }
    }
    out
}
