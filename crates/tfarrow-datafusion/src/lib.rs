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
//!         parse, check  find files  schema,  rules of the  decode,        COPY, INSERT
//!                                   shards   plan          filter
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
mod cancellation;
mod clauses;
mod columns;
mod context;
mod decoders;
mod depth;
mod error;
mod exchanges;
mod factory;
mod file_names;
mod filter;
mod format;
mod functions;
mod headings;
mod home;
mod input;
mod listing;
mod listing_urls;
mod long_rows;
mod metrics;
mod notice;
mod opener;
mod options;
mod origin;
mod outputs;
mod partitions;
mod pass_through;
mod query_planner;
mod remedy;
mod row_order;
mod samples;
mod scan;
mod session;
mod sink;
mod source;
mod staging;
mod statements;
mod stores;
mod table;
mod table_files;
mod table_function;
mod table_registry;
mod text_files;
mod url_table;
mod written;

pub use cancellation::Cancellation;
pub use error::AdvisedError;
pub use factory::TfRecordTableFactory;
pub use headings::with_headings;
pub use long_rows::LongRows;
pub use notice::{Notice, OnNotice, UnknownFeatures};
pub use opener::TfRecordOpener;
pub use options::{BytesType, MetadataColumns, TfRecordOptions};
pub use origin::SchemaProvenance;
pub use remedy::{sql_advice, sql_rewrite};
pub use row_order::PreserveOrder;
pub use samples::explain_missing_column;
pub use session::{SessionContextTfRecordExt, SessionOptions, session_context};
pub use source::TfRecordSource;
pub use statements::{QueryLimits, Statements, statements};
pub use table::TfRecordTable;
pub use written::{check_names, without_views};
