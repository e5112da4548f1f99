//! Conversion of TFRecord data sets to Parquet or Arrow IPC files and back, shard by shard and without loss.
//!
//! ```text
//! shard ─▶ UnitReader ─▶ Unit ─▶ UnitWorker ─▶ piece ─▶ Ordered ─▶ PieceWriter ─▶ Output
//!          one thread at a time  any thread             in file order, one thread at a time
//! ```
//!
//! A *unit* is a part of a shard that one worker converts on its own: the records of a Parquet row group, or a chunk.
//! Reading takes little time and is done by one thread at a time. Decoding and encoding use all cores, also for one file.
//! The pieces of a shard are written in the order of their units, so that the output does not depend on timing.
//!
//! The crate also [repairs](repair) TFRecord files, [compares](diff()) data sets, [verifies](verify()) Parquet and Arrow
//! files, and reads and writes [schemas as JSON](schema_json).
//!
//! The crate uses threads and files. It has no `async` code, does not depend on DataFusion, and does not print.

mod arrow_file;
mod checksums;
pub mod columnar;
mod damage;
mod diff;
mod error;
mod existing_file;
mod fingerprint;
mod folders;
mod formats;
mod guarded;
mod input;
mod job;
mod jobs;
mod journal;
mod lock_file;
mod options;
mod ordered;
mod origin;
mod output;
mod parquet_file;
mod parquet_lists;
mod parquet_rows;
mod plan;
mod progress;
mod quarantine;
mod records;
mod routes;
mod run;
mod schema_file;
pub mod schema_json;
mod setup;
mod speculative;
mod verify;
mod worker;

pub use diff::{DataSetDiff, DiffOptions, OtherFiles, RecordDifference, RecordPosition, diff};
pub use error::{Error, NotASchema, Result};
pub use options::{ConvertOptions, OutputCompression, Reshard, Target};
pub use output::OutputStream;
pub use progress::Progress;
pub use run::{ConvertReport, convert, repair};
pub use schema_file::read_schema;
pub use verify::{VerifiedFile, verify};
