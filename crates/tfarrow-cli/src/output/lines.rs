//! Rows with one line for each value.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_report::text::{FAINT, NULL, Screen, escape};
use unicode_width::UnicodeWidthStr;

use super::{cell::quoted_cells, rows::Rows, sink::Out};

/// Writes batches as lines of names and values, with an empty line after each row.
pub(super) struct Lines {
    out: Out,
    /// The names of the columns, aligned to the right.
    names: Vec<String>,
    screen: Screen,
    /// Whether values are shown in full, with their line breaks.
    full: bool,
}

impl Lines {
    pub(super) fn new(out: Out, schema: &SchemaRef, screen: Screen, full: bool) -> Self {
        let names: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| escape(field.name()))
            .collect();
        let width = names
            .iter()
            .map(|name| name.width())
            .max()
            .unwrap_or_default();
        let names = names
            .iter()
            .map(|name| format!("{}{name}", " ".repeat(width - name.width())))
            .collect();
        Self {
            out,
            names,
            screen,
            full,
        }
    }
}

impl Rows for Lines {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            for (name, cell) in self.names.iter().zip(quoted_cells(batch, row, self.full)?) {
                let value = cell.unwrap_or_else(|| self.screen.coloured(FAINT, NULL));
                writeln!(self.out, "{name} = {value}")?;
            }
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
