//! Writers of results: tables, lines, Markdown, HTML, CSV, JSON, Parquet, Arrow IPC, TFRecord. The
//! only module that writes to standard output or to the file of results, except that `convert`
//! passes standard output to the library for the destination `-`.

mod cell;
mod columnar;
mod csv;
mod html;
mod json;
mod lines;
mod markdown;
mod pager;
mod replaced_file;
mod rows;
mod sink;
mod stdout;
mod table;
mod terminal;
mod tfrecord;
mod wire;

use std::io;

use arrow_schema::SchemaRef;

pub(crate) use json::{Cell, Style};
pub(crate) use pager::{is_paging, without_pager};
pub(crate) use replaced_file::refuse_other_file;
pub(crate) use rows::Rows;
pub(crate) use sink::{Out, Sink};
pub(crate) use stdout::{bytes, line, nothing, refuse_terminal, stdout, styled};
pub(crate) use terminal::screen;
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
    let most = screen
        .width
        .and((view.max_rows > 0 && !view.full).then_some(view.max_rows));
    Ok(match format {
        Format::Table => Box::new(table::Table::new(out, schema, screen, view.full, most)),
        Format::Line => Box::new(lines::Lines::new(out, schema, screen, view.full)),
        Format::Markdown => Box::new(markdown::Markdown::new(out, schema)?),
        Format::Html => Box::new(html::Html::new(out, schema)?),
        Format::Csv => Box::new(csv::Csv::new(out, schema, quoting(',', to))?),
        Format::Tsv => Box::new(csv::Csv::new(out, schema, quoting('\t', to))?),
        Format::Json => Box::new(json::Json::new(out, schema, false)?),
        Format::Ndjson => Box::new(json::Json::new(out, schema, true)?),
        Format::Parquet => Box::new(columnar::Parquet::new(out, schema)?),
        Format::Arrow => Box::new(columnar::Arrow::new(out, schema)?),
        Format::Tfrecord => Box::new(tfrecord::TfRecord::new(out, schema)?),
    })
}

/// The quoting of text for a destination.
fn quoting(delimiter: char, to: &Sink) -> csv::Quoting {
    csv::Quoting {
        delimiter,
        escape: to.is_terminal(),
    }
}
