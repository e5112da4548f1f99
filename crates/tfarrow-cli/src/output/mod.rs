//! Writers of results: tables, lines, Markdown, HTML, CSV, JSON, Parquet, Arrow IPC, TFRecord. The
//! only module that writes to standard output or to the file of results, except that `convert`
//! passes standard output to the library for the destination `-`.

mod cell;
mod columnar;
mod csv;
mod html;
mod humanize;
mod json;
mod sink;

mod lines;
mod markdown;
mod pager;
mod replaced_file;
mod rows;
mod screen;
mod stdout;
mod table;
mod table_layout;
mod tfrecord;
mod wire;

use std::io;

use arrow_schema::SchemaRef;
use unicode_width::UnicodeWidthStr;

pub(crate) use humanize::{
    blob, count, frequent, image_sizes, number, percent, plural, range, short, size,
};
pub(crate) use json::{Cell, Style, pretty};
pub(crate) use pager::{is_paging, without_pager};
pub(crate) use replaced_file::refuse_other_file;
pub(crate) use rows::Rows;
pub(crate) use screen::{BAD, GOOD, Screen, TITLE};
pub(crate) use sink::{Out, Sink};
pub(crate) use stdout::{bytes, line, nothing, refuse_terminal, stdout, styled};
pub(crate) use wire::WireJson;

use crate::args::Format;

/// How tables are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Whether values are shown in full, and not fitted to the screen.
    pub(crate) full: bool,
    /// Maximum number of rows of a table on a terminal; 0 for all.
    pub(crate) max_rows: usize,
    /// The number of characters that a table on a terminal fits; `None` for the width of the
    /// terminal.
    pub(crate) width: Option<usize>,
}

/// A writer of rows of this schema to a destination.
pub(crate) fn rows(
    format: Format,
    schema: &SchemaRef,
    view: View,
    to: &Sink,
) -> io::Result<Box<dyn Rows>> {
    let out = to.writer();
    let screen = to.screen().with_width(view.width);
    let quoting = |delimiter| csv::Quoting {
        delimiter,
        escape: to.is_terminal(),
    };
    let most = screen
        .width
        .and((view.max_rows > 0 && !view.full).then_some(view.max_rows));
    Ok(match format {
        Format::Table => Box::new(table::Table::new(out, schema, screen, view.full, most)),
        Format::Line => Box::new(lines::Lines::new(out, schema, screen, view.full)),
        Format::Markdown => Box::new(markdown::Markdown::new(out, schema)?),
        Format::Html => Box::new(html::Html::new(out, schema)?),
        Format::Csv => Box::new(csv::Csv::new(out, schema, quoting(','))?),
        Format::Tsv => Box::new(csv::Csv::new(out, schema, quoting('\t'))?),
        Format::Json => Box::new(json::Json::new(out, schema, false)?),
        Format::Ndjson => Box::new(json::Json::new(out, schema, true)?),
        Format::Parquet => Box::new(columnar::Parquet::new(out, schema)?),
        Format::Arrow => Box::new(columnar::Arrow::new(out, schema)?),
        Format::Tfrecord => Box::new(tfrecord::TfRecord::new(out, schema)?),
    })
}

/// A table of text, without a line feed at its end. The columns that `numbers` marks are aligned to
/// the right. Where the screen is too narrow, the columns of `spare` are left out, one after the
/// other, before cells are truncated; a line after the table names them.
pub(crate) fn text_table(
    names: &[&str],
    numbers: &[bool],
    spare: &[&str],
    rows: Vec<Vec<String>>,
    screen: Screen,
) -> String {
    let shown = columns_that_fit(names, &rows, spare, screen.width.unwrap_or(usize::MAX));
    let pick = |all: &[String]| {
        shown
            .iter()
            .filter_map(|index| all.get(*index).cloned())
            .collect()
    };
    let shown_names: Vec<_> = shown
        .iter()
        .filter_map(|index| names.get(*index).copied())
        .collect();
    let numbers: Vec<_> = shown
        .iter()
        .filter_map(|index| numbers.get(*index).copied())
        .collect();
    let mut text: Vec<u8> = Vec::new();
    let mut table = table::Table::of_text(&mut text, &shown_names, &numbers, screen);
    // Writing to a `Vec` cannot fail.
    let _ = rows.iter().try_for_each(|row| table.text_row(pick(row)));
    let _ = table.finish();
    text.pop();
    let text = String::from_utf8(text).unwrap_or_default();
    let left_out: Vec<_> = names
        .iter()
        .filter(|name| !shown_names.contains(name))
        .copied()
        .collect();
    if left_out.is_empty() {
        text
    } else {
        format!("{text}\nleft out for lack of room: {}", left_out.join(", "))
    }
}

/// The indices of the columns that a table of `fit` characters has room for.
fn columns_that_fit(
    names: &[&str],
    rows: &[Vec<String>],
    spare: &[&str],
    fit: usize,
) -> Vec<usize> {
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|row| Some(row.get(index)?.as_str()));
        cells
            .chain(names.get(index).copied())
            .map(UnicodeWidthStr::width)
            .max()
            .unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_columns_are_left_out_first() {
        let rows = vec![["a", "1234567890", "x"].map(str::to_owned).to_vec()];
        let fitting =
            |fit| columns_that_fit(&["name", "number", "bars"], &rows, &["number", "bars"], fit);
        assert_eq!(fitting(28), [0, 1, 2]);
        assert_eq!(fitting(27), [0, 2]);
        assert_eq!(fitting(14), [0]);
        assert_eq!(fitting(1), [0]);
    }
}
