//! Parquet, Arrow IPC, CSV and JSON files as sources of rows, with the checksums that tfarrow
//! writes into the first two.
//!
//! ```text
//! Parquet ─▶ ParquetFile ─▶ row_group_rows ─┬▶ parquet_lists: lists of numbers ──────────┬▶ batches
//!            metadata                       └▶ the reader of the parquet crate: the rest ─┘
//! Arrow ───▶ arrow_reader ───────────────────────────────────────────────────────────────▶ batches
//! CSV, JSON ▶ text_types: a pass for the types ─▶ text_rows ─────────────────────────────▶ batches
//! ```
//!
//! | module | contains |
//! |---|---|
//! | `rows` | the rows, the number of rows and the schema of a file of either format |
//! | `parquet_file`, `parquet_rows`, `parquet_lists` | Parquet: the metadata, the rows of row groups, the lists of numbers among them |
//! | `arrow_types` | types of Arrow that the libraries do not have |
//! | `extension_types` | the extension types of Arrow for annotations of Parquet |
//! | `arrow_file`, `arrow_stream`, `arrow_buffers` | Arrow files, and streams in files: a reader that checks lengths before memory is allocated by them |
//! | `text`, `text_file`, `text_types`, `text_columns`, `text_rows`, `text_reader`, `csv_header` | CSV and JSON: the columns by all rows, the rows, and the text |
//! | `line_range`, `json_array`, `json_numbers` | some lines of a text; JSON as lines that its parsers accept |
//! | `folder_columns` | the columns of folders `key=value`, after those of a file |
//! | `scalar_type`, `json_type` | the types of values of text |
//! | `value`, `json_cell`, `csv_text` | values of Arrow arrays as JSON and CSV, for all outputs of text |
//! | [`checksums`] | checksums of both formats: the writer, and the verifiers |
//! | `catch_panic`, `unreadable` | panics and errors of the libraries as errors of the file |
//!
//! The libraries that read these files panic on some corrupt files, so that every call to them is
//! within [`catch_panic_in`].
//!
//! The crate reads files, and makes the texts of values. It writes no files, and does not print.

mod arrow_buffers;
mod arrow_file;
mod arrow_stream;
mod arrow_types;
mod catch_panic;
pub mod checksums;
mod csv_header;
mod csv_text;
mod extension_types;
mod folder_columns;
mod json_array;
mod json_cell;
mod json_numbers;
mod json_type;
mod line_range;
mod parquet_file;
mod parquet_lists;
mod parquet_rows;
mod rows;
mod scalar_type;
mod serialized_examples;
mod text;
mod text_columns;
mod text_file;
mod text_reader;
mod text_rows;
mod text_types;
mod unreadable;
mod value;

pub use arrow_file::{ArrowReader, arrow_batch, arrow_batches, arrow_reader};
pub use arrow_types::{check_message_types, check_stored_types};
pub use catch_panic::catch_panic_in;
pub use csv_text::{csv_text, with_csv_texts};
pub use json_cell::{
    CellStyle, FullCell, JsonCell, JsonRows, is_control, json_text, not_finite, write_json,
};
pub use parquet_file::{ParquetFile, check_rows};
pub use parquet_rows::{BATCH_ROWS, row_group_rows};
pub use rows::{
    Batches, count, first_rows, rows, rows_of, schema, schema_within, with_folder_columns,
};
pub use text::{CsvForm, Text, TextForm};
pub use text_columns::{TextColumns, TextSchema, unify, unify_text};
pub use text_file::TextFile;
pub use value::{Value, entries};
