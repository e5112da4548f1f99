//! The only module that writes to standard output.

mod columnar;
mod csv;
mod json;
mod table;
mod value;
mod words;

use std::io::{self, BufWriter, IsTerminal, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub(crate) use json::{Cell, Style, write_to};
pub(crate) use words::{blob, count, escape, percent, range, short, size};

use crate::{args::Format, failure::Usage};

/// Standard output, buffered. Whoever takes it flushes it.
pub(crate) type Out = BufWriter<io::Stdout>;

/// What takes a result, batch by batch.
pub(crate) trait Rows: Send {
    /// Writes the rows of one batch.
    ///
    /// # Errors
    /// Where standard output takes no more.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes what comes after the last row.
    ///
    /// # Errors
    /// Where standard output takes no more.
    fn finish(&mut self) -> io::Result<()>;
}

/// Standard output.
pub(crate) fn stdout() -> Out {
    BufWriter::with_capacity(64 << 10, io::stdout())
}

/// A writer of rows of this schema. `full` tables elide nothing.
pub(crate) fn rows(format: Format, schema: &SchemaRef, full: bool) -> io::Result<Box<dyn Rows>> {
    let fit = if full { None } else { terminal_width() };
    Ok(match format {
        Format::Table => Box::new(table::Table::new(stdout(), schema, fit, full)),
        Format::Csv => Box::new(csv::Csv::new(stdout(), schema, quoting(','))?),
        Format::Tsv => Box::new(csv::Csv::new(stdout(), schema, quoting('\t'))?),
        Format::Json => Box::new(json::Json::new(stdout(), schema, false)?),
        Format::Ndjson => Box::new(json::Json::new(stdout(), schema, true)?),
        Format::Parquet => Box::new(columnar::Parquet::new(stdout(), schema)?),
        Format::Arrow => Box::new(columnar::Arrow::new(stdout(), schema)?),
    })
}

fn quoting(delimiter: char) -> csv::Quoting {
    csv::Quoting { delimiter, escape: io::stdout().is_terminal() }
}

/// Prints a table of text; the columns that `right` marks are aligned to the right.
pub(crate) fn text_table(names: &[&str], right: &[bool], rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = table::Table::of_text(stdout(), names, right, terminal_width());
    rows.into_iter().try_for_each(|row| table.row(row))?;
    table.finish()
}

/// Prints one line, or several.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// An error where standard output is a terminal, for what is to write bytes there.
pub(crate) fn refuse_terminal() -> Result<(), Usage> {
    let why = "a terminal shows no binary files: send the output to a file, or take another --format";
    if io::stdout().is_terminal() { Err(Usage(why.to_owned())) } else { Ok(()) }
}

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()
}

fn terminal_width() -> Option<usize> {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))?;
    io::stdout().is_terminal().then_some(width)
}
