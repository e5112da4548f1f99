//! HTML: a table with complete values, for a page or a mail.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use maud::{Markup, html};
use tfarrow_report::text::escape_except;

use super::{
    cell::{cells, is_number},
    rows::Rows,
    sink::Out,
};

/// Writes batches as one table element.
pub(super) struct Html {
    out: Out,
    /// Whether each column has numbers.
    numbers: Vec<bool>,
}

impl Html {
    pub(super) fn new(mut out: Out, schema: &SchemaRef) -> io::Result<Self> {
        let numbers = schema
            .fields()
            .iter()
            .map(|field| is_number(field.data_type()))
            .collect();
        let names = schema
            .fields()
            .iter()
            .map(|field| escape_except(field.name(), &['\n']));
        let head = html! { tr { @for name in names { th { (name) } } } };
        write!(
            out,
            "<table>\n<thead>{}</thead>\n<tbody>\n",
            head.into_string()
        )?;
        Ok(Self { out, numbers })
    }
}

impl Rows for Html {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            let cells = cells(batch, row, true)?;
            let row = html! { tr { @for (cell, number) in cells.iter().zip(&self.numbers) { (item(cell, *number)) } } };
            writeln!(self.out, "{}", row.into_string())?;
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        writeln!(self.out, "</tbody>\n</table>")?;
        self.out.flush()
    }
}

fn item(cell: &Option<String>, is_number: bool) -> Markup {
    let style = is_number.then_some("text-align:right");
    match cell {
        Some(text) => html! { td style=[style] { (text) } },
        None => html! { td style=[style] { i { "NULL" } } },
    }
}
