//! Writers of results: tables, CSV, JSON, Parquet, Arrow IPC. The only module that writes to standard output.

mod columnar;
mod csv;
mod humanize;
mod json;
mod table;
mod value;

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style as Colour;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use clap::builder::StyledStr;
use unicode_width::UnicodeWidthStr;

pub(crate) use humanize::{blob, count, frequent, image_sizes, percent, plural, range, short, size};
pub(crate) use json::{Cell, Style, pretty, write_to};

use crate::{args::Format, error::Usage};

/// Standard output with a buffer, which the owner has to flush.
pub(crate) type Out = BufWriter<io::Stdout>;

/// A writer of a result, batch by batch.
pub(crate) trait Rows: Send {
    /// Writes the rows of one batch.
    ///
    /// # Errors
    /// Standard output cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes the end of the format, after the last row.
    ///
    /// # Errors
    /// Standard output cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Standard output.
pub(crate) fn stdout() -> Out {
    BufWriter::with_capacity(64 << 10, io::stdout())
}

/// A writer of rows of this schema. A `full` table shows values in full.
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

/// Prints a table of text. The columns that `right` marks are aligned to the right. Where the terminal is too narrow, the
/// columns of `spare` are left out, one after the other, before cells are truncated.
pub(crate) fn text_table(names: &[&str], right: &[bool], spare: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
    let fit = terminal_width();
    let left = columns_that_fit(names, &rows, spare, fit.unwrap_or(usize::MAX));
    let pick = |all: &[String]| left.iter().filter_map(|index| all.get(*index).cloned()).collect();
    let names: Vec<_> = left.iter().filter_map(|index| names.get(*index).copied()).collect();
    let right: Vec<_> = left.iter().filter_map(|index| right.get(*index).copied()).collect();
    let mut table = table::Table::of_text(stdout(), &names, &right, fit);
    rows.iter().try_for_each(|row| table.row(pick(row)))?;
    table.finish()
}

/// The indices of the columns that a table of `fit` characters has room for.
fn columns_that_fit(names: &[&str], rows: &[Vec<String>], spare: &[&str], fit: usize) -> Vec<usize> {
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|row| Some(row.get(index)?.as_str()));
        cells.chain(names.get(index).copied()).map(UnicodeWidthStr::width).max().unwrap_or_default()
    };
    let mut left: Vec<usize> = (0..names.len()).collect();
    let mut spare = spare.iter();
    // A column has a space on either side and a line on one.
    while left.iter().map(|index| width(*index) + 3).sum::<usize>() + 1 > fit {
        let Some(name) = spare.next() else { break };
        left.retain(|index| names.get(*index) != Some(name));
    }
    left
}

/// Prints a text and a line feed.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// The style of errors and anomalies.
pub(crate) const BAD: Colour = anstyle::AnsiColor::Red.on_default().bold();
/// The style of success.
pub(crate) const GOOD: Colour = anstyle::AnsiColor::Green.on_default();
/// The style of headings.
pub(crate) const TITLE: Colour = Colour::new().bold();

/// Text in a style, where standard output shows styles: a terminal does, unless `NO_COLOR` or `TERM=dumb` is set.
pub(crate) fn coloured(colour: Colour, text: &str) -> String {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => text.to_owned(),
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => format!("{colour}{text}{colour:#}"),
    }
}

/// Refuses to write a binary format to a terminal.
///
/// # Errors
/// Standard output is a terminal.
pub(crate) fn refuse_terminal() -> Result<(), Usage> {
    let why = "a terminal cannot show a binary format: redirect the output to a file, or use another --format";
    if io::stdout().is_terminal() { Err(Usage(why.to_owned())) } else { Ok(()) }
}

/// Prints text without its styles where standard output shows none.
pub(crate) fn styled(text: &StyledStr) -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout());
    write!(out, "{}", text.ansi())?;
    out.flush()
}

/// Writes zero bytes, so that an empty result fails where standard output cannot be written, as any other does.
pub(crate) fn nothing() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // A buffer would not write at all.
        let mut out = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let _ = out.write(&[])?;
    }
    Ok(())
}

/// Writes bytes.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()
}

fn terminal_width() -> Option<usize> {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))?;
    io::stdout().is_terminal().then_some(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_columns_are_left_out_first() {
        let rows = vec![["a", "1234567890", "x"].map(str::to_owned).to_vec()];
        let fitting = |fit| columns_that_fit(&["name", "number", "bars"], &rows, &["number", "bars"], fit);
        assert_eq!(fitting(28), [0, 1, 2]);
        assert_eq!(fitting(27), [0, 2]);
        assert_eq!(fitting(14), [0]);
        assert_eq!(fitting(1), [0]);
    }
}
