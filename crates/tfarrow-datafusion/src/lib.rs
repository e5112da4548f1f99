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
//! A query goes through these, a file each:
//!
//! ```text
//! name ─▶ url_table ─▶ TfRecordTable ─▶ DataSourceExec ─▶ TfRecordSource ─▶ TfRecordOpener ─▶ scan ─▶ batches
//!         finds shards  infers a schema  DataFusion's own  keeps the projection  one a partition  one file
//! ```
//!
//! - [`session_context`] makes a session in which names of files are tables; [`SessionContextTfRecordExt`] adds
//!   `read_tfrecord` and `register_tfrecord` to any session.
//! - [`TfRecordOptions`] are what `SET tfarrow.x` sets.
//! - Only the features that a query needs are decoded. One file is decoded by all cores; batches of one file stay in
//!   the file's order.
//!
//! # Errors
//! What is wrong with a file is a [`tfarrow_dataset::Error`] or, where the schema has to do with it, a [`MisfitError`]
//! around one, carried by [`DataFusionError::External`](datafusion::error::DataFusionError::External): file, record,
//! byte and feature. The crate prints nothing: features that have no column, and records that
//! were passed over, are told to [`SessionOptions::on_notice`], and [`explain_missing_column`] says what to add to "column not found".

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
mod long_rows;
mod metrics;
mod notice;
mod opener;
mod options;
mod origin;
mod outputs;
mod partitions;
mod pass_through;
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
mod table_function;
mod text_files;
mod url_table;
mod written;

pub use cancellation::Cancellation;
pub use error::MisfitError;
pub use factory::TfRecordTableFactory;
pub use headings::with_headings;
pub use long_rows::LongRows;
pub use notice::{Notice, OnNotice, UnknownFeatures};
pub use opener::TfRecordOpener;
pub use options::{BytesType, MetadataColumns, TfRecordOptions};
pub use origin::Origin;
pub use row_order::PreserveOrder;
pub use samples::explain_missing_column;
pub use session::{SessionContextTfRecordExt, SessionOptions, session_context};
pub use source::TfRecordSource;
pub use statements::{QueryLimits, Statements, statements};
pub use table::TfRecordTable;
pub use written::{check_names, without_views};
