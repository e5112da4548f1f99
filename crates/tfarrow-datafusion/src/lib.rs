//! TFRecord as SQL tables, for [DataFusion](https://datafusion.apache.org).
//!
//! ```
//! use tfarrow_datafusion::{SessionOptions, session_context};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
//! let context = session_context(SessionOptions::default())?;
//! let query = format!("SELECT count(*) AS records FROM '{testdata}/shards/*.tfrecord'");
//! context.sql(&query).await?.show().await?;
//! # Ok(()) }
//! ```
//!
//! A query passes through these stages, one module each:
//!
//! ```text
//! text ─▶ statements ─▶ catalog ─▶ table ─▶ optimizer ─▶ scan ─▶ rows ─▶ write
//!         parse,        find       schema,  change       decode,         COPY,
//!         check         files      shards   plans        filter          INSERT
//! ```
//!
//! - [`session_context`] creates a session in which names of files are tables; [`SessionContextTfRecordExt`] adds
//!   `read_tfrecord` and `register_tfrecord` to any session.
//! - [`TfRecordOptions`] are the options `tfarrow.x` of `SET`.
//! - A scan decodes only the features that a query needs. All cores decode one file; its batches keep the order of the file.
//!
//! # Errors
//! An error of a file is a [`tfarrow_dataset::Error`], or an [`AdvisedError`] with such an error if SQL has a remedy.
//! [`DataFusionError::External`](datafusion::error::DataFusionError::External) contains it, with file, record, byte and
//! feature. The crate prints nothing: features without a column and skipped records are reported to
//! [`SessionOptions::on_notice`], and [`explain_missing_column`] returns a hint for "column not found".

mod blocking;
mod catalog;
mod engine;
mod error;
mod functions;
mod home_dir;
mod notice;
mod optimizer;
mod options;
mod plan_future;
mod progress;
mod remedy;
mod row_message;
mod scan;
mod schema;
mod session;
mod statements;
mod table;
mod task_context;
mod text;
pub mod wire;
mod write;

pub use catalog::{external_table::TfRecordTableFactory, registry::queried};
pub use engine::{Engine, RemoteExec, TaskError, TaskNotices, TaskProgress, with_task_notices, with_whole_files};
pub use error::AdvisedError;
pub use notice::{Notice, OnNotice, UnknownFeatures};
pub use optimizer::{cancellation::Cancellation, long_rows::LongRows, preserve_order::PreserveOrder};
pub use options::{BytesType, MetadataColumns, TfRecordOptions};
pub use progress::{ScanProgress, scan_progress};
pub use remedy::{sql_advice, sql_rewrite};
pub use row_message::{RowMessage, send_rows};
pub use scan::{opener::TfRecordOpener, source::TfRecordSource};
pub use schema::provenance::SchemaProvenance;
pub use session::{
    SessionContextTfRecordExt, SessionOptions, column_hints::explain_missing_column, plan_statement::plan_statement,
    session_context,
};
pub use statements::{QueryLimits, Statements, headings::with_headings, statements};
pub use table::TfRecordTable;
pub use write::output_schema::{check_names, without_views};
