//! TFRecord for [DataFusion](https://datafusion.apache.org): a table provider with its scan and
//! filters, a sink, options and functions.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
//! let context = SessionContext::new();
//! context.register_tfrecord("shards", &format!("{testdata}/shards/*.tfrecord"), &TfRecordOptions::default()).await?;
//! context.sql("SELECT count(*) AS records FROM shards").await?.show().await?;
//! # Ok(()) }
//! ```
//!
//! ```text
//! table ─▶ scan ─▶ rows ─▶ write
//! schema,  decode,         COPY,
//! shards   filter          INSERT
//! ```
//!
//! - [`TfRecordFormat`] is the format for listing tables: `register_listing_table` of DataFusion
//!   works with it.
//! - [`SessionContextTfRecordExt`] adds `read_tfrecord`, `register_tfrecord` and the statements for
//!   TFRECORD to any session. The crate `tfarrow-sql` creates sessions in which names of files are
//!   tables.
//! - [`TfRecordOptions`] are the options `tfarrow.x` of `SET`.
//! - A scan decodes only the features that a query needs. All cores decode one file; its batches
//!   keep the order of the file.
//!
//! # Errors
//! An error of a file is a [`tfarrow_dataset::Error`], or an [`AdvisedError`] with such an error if
//! SQL has a remedy. [`DataFusionError::External`](datafusion::error::DataFusionError::External)
//! contains it, with file, record, byte and feature. The crate prints nothing: features without a
//! column and skipped records are reported to a callback ([`OnNotice`]).

mod blocking;
mod error;
mod file_format;
mod functions;
mod home_dir;
mod notice;
mod optimizer;
mod options;
mod plan_future;
mod remedy;
mod row_message;
mod scan;
mod schema;
mod session;
mod table;
mod task_context;
mod write;

pub use error::AdvisedError;
pub use file_format::{TfRecordFormat, TfRecordFormatFactory};
pub use notice::{Notice, OnNotice, UnknownFeatures};
pub use optimizer::{
    long_rows::LongRows, preserve_order::PreserveOrder, skip_records::SkipRecords,
    sorted_files::SortedFiles,
};
pub use options::{BytesType, IndexChoice, MetadataColumns, TfRecordOptions};
pub use remedy::{sql_advice, sql_rewrite};
pub use row_message::{RowMessage, send_rows};
pub use scan::{opener::TfRecordOpener, source::TfRecordSource};
pub use schema::provenance::SchemaProvenance;
pub use session::SessionContextTfRecordExt;
pub use table::{
    TfRecordTable,
    builder::{TfRecordTableBuilder, message_of},
    event_table::EventTable,
    external_table::TfRecordTableFactory,
    registry::queried,
};
pub use write::{
    output_schema::{check_names, without_views},
    sink::TfRecordSink,
};

/// What `tfarrow-sql` is built of besides the public items. It changes with every version.
pub mod internals {
    pub use crate::{
        blocking::blocking,
        error::{PieceError, external, with_advice},
        functions::{BYTES, bytes_of, evaluate_unary, plan_function, unary_function},
        home_dir::HomeDir,
        notice::{NoticeSender, SessionNotices},
        optimizer::{
            long_rows::{CompactBatches, merge_stream_bytes},
            pass_through::{PassThrough, PassThroughExec},
        },
        plan_future::PlanFuture,
        remedy::{conflicting_feature, kind_advice, scan_advice},
        scan::{
            BATCH_SIZE, blocks::NORMALIZE, input::open_object, opener::uses_input_file_name,
            record_range::RecordRange,
        },
        schema::{columns::Columns, partition_columns::PartitionColumns},
        session::register_format_and_functions,
        table::{
            event_table::are_event_columns, files::spooled, partitioned_file, piece_of,
            registry::TableRegistry, urls,
        },
        task_context::copy_of,
        write::{
            output_folder::{OutputFolder, PART},
            outputs::{OutputStore, persist, persist_in},
        },
    };
}
