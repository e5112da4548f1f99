//! The only module that writes to standard output.

mod columnar;
mod csv;
mod json;
mod table;
mod value;
mod words;

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style as Colour;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use clap::builder::StyledStr;
use unicode_width::UnicodeWidthStr;

pub(crate) use json::{Cell, Style, pretty, write_to};
pub(crate) use words::{blob, count, escape, frequent, image_sizes, is_control, percent, plural, range, short, size};

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

/// Prints a table of text; the columns that `right` marks are aligned to the right. Where a terminal is too narrow, those
/// of `spare` are left out, one after the other, before any is cut.
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

/// The columns that a table of so many characters has room for, by their numbers.
fn columns_that_fit(names: &[&str], rows: &[Vec<String>], spare: &[&str], fit: usize) -> Vec<usize> {
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|row| Some(row.get(index)?.as_str()));
        cells.chain(names.get(index).copied()).map(UnicodeWidthStr::width).max().unwrap_or_default()
    };
    let mut left: Vec<usize> = (0..names.len()).collect();
    let mut spare = spare.iter();
    // A column has a space on either side, and a line on one.
    while left.iter().map(|index| width(*index) + 3).sum::<usize>() + 1 > fit {
        let Some(name) = spare.next() else { break };
        left.retain(|index| names.get(*index) != Some(name));
    }
    left
}

/// Prints one line, or several.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// What is wrong.
pub(crate) const BAD: Colour = anstyle::AnsiColor::Red.on_default().bold();
/// What is as it should be.
pub(crate) const GOOD: Colour = anstyle::AnsiColor::Green.on_default();
/// What begins a part of the output.
pub(crate) const TITLE: Colour = Colour::new().bold();

/// Text in a colour, where standard output shows colours: a terminal does, unless `NO_COLOR` or `TERM=dumb` is set.
pub(crate) fn coloured(colour: Colour, text: &str) -> String {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => text.to_owned(),
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => format!("{colour}{text}{colour:#}"),
    }
}

/// An error where standard output is a terminal, for what is to write bytes there.
pub(crate) fn refuse_terminal() -> Result<(), Usage> {
    let why = "a terminal shows no binary files: send the output to a file, or take another --format";
    if io::stdout().is_terminal() { Err(Usage(why.to_owned())) } else { Ok(()) }
}

/// Prints text that has styles, which are left out where standard output shows none.
pub(crate) fn styled(text: &StyledStr) -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout());
    write!(out, "{}", text.ansi())?;
    out.flush()
}

/// Writes nothing, so that an answer of no lines fails as others do where standard output is a device that takes nothing.
pub(crate) fn nothing() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // Past the buffers, which have nothing to write.
        let mut out = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let _ = out.write(&[])?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_spared_goes_first() {
        let rows = vec![["a", "1234567890", "x"].map(str::to_owned).to_vec()];
        let fitting = |fit| columns_that_fit(&["name", "number", "bars"], &rows, &["number", "bars"], fit);
        assert_eq!(fitting(28), [0, 1, 2]);
        assert_eq!(fitting(27), [0, 2]);
        assert_eq!(fitting(14), [0]);
        assert_eq!(fitting(1), [0]);
    }
}
