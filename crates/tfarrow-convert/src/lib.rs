//! TFRecord data sets to Parquet or Arrow IPC files and back, shard by shard, losing nothing.
//!
//! ```text
//! shard ─▶ UnitReader ─▶ Unit ─▶ pieces ─▶ Ordered ─▶ Sink ─▶ OutputFile      any number of workers a shard
//!          one at a time         in parallel  in file order
//! ```
//!
//! A *unit* is what one worker turns into output on its own: a Parquet row group's worth of records, or a chunk. Reading
//! is serial and costs next to nothing; decoding and encoding run on all cores, also for one file; a shard's pieces are
//! written in their order, so that the output never depends on timing.
//!
//! No `async`, no DataFusion: threads and files.

mod checksums;
pub mod columnar;
mod damage;
mod diff;
mod error;
mod folders;
mod formats;
mod identity;
mod input;
mod job;
mod jobs;
mod journal;
mod lock_file;
mod options;
mod ordered;
mod output;
mod parquet_lists;
mod parquet_rows;
mod plan;
mod present;
mod progress;
mod quarantine;
mod records;
mod routes;
mod run;
mod schema_file;
pub mod schema_json;
mod trial;
mod verify;
mod worker;

pub use diff::{DataSetDiff, DiffOptions, RecordDifference, RecordPlace, diff};
pub use error::{Error, Result};
pub use options::{ConvertOptions, OutputCompression, Recut, Target};
pub use output::OutputStream;
pub use progress::Progress;
pub use run::{Report, convert, repair};
pub use schema_file::read_schema;
pub use verify::{VerifiedFile, verify};
