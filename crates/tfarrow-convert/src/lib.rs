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
//! | module | contains |
//! |---|---|
//! | `convert`, `dry_run`, `repair`, `diff`, `verify`, `count` | the operations; `convert/speculative.rs` saves the pass that infers columns |
//! | `plan` | format and names of outputs, checks before anything is written, the jobs of a conversion |
//! | `input` | shards as units; `tfarrow-columnar` reads Parquet and Arrow files |
//! | `worker` | conversion of units to pieces; the scheduler of jobs; the pairs of input and output formats |
//! | `formats` | encoders and writers of Parquet, Arrow and TFRecord files |
//! | `output` | pieces in the order of units; files, existing files and streams |
//! | `journal` | the record of complete outputs, with which an interrupted conversion is resumed |
//! | `damage` | the report of skipped records, and their quarantine |
//! | `schema` | schemas in files and as JSON |
//! | `selection`, `names` | the columns that a conversion takes; names and globs of columns and features |
//!
//! The modules have no import cycles.
//!
//! The crate also [repairs](repair()) TFRecord files, [compares](diff()), [verifies](verify_data_set()) and
//! [counts](count()) data sets, and reads and writes [schemas as JSON](schema_json).
//!
//! The crate uses threads and files. It has no `async` code, does not depend on DataFusion, and does not print.

mod convert;
mod count;
mod damage;
mod diff;
mod differs;
mod dry_run;
mod error;
mod formats;
mod input;
mod journal;
mod names;
mod options;
mod output;
mod plan;
mod progress;
mod repair;
mod schema;
mod selection;
mod verify;
mod worker;

pub use convert::{ConvertReport, convert};
pub use count::{Counted, count};
pub use diff::{DataSetDiff, DiffOptions, KeyReport, OtherFiles, RecordDifference, RecordPosition, diff};
pub use dry_run::{ConversionPlan, dry_run};
pub use error::{Error, NotASchema, Result, SchemaJsonError};
pub use options::{ConvertOptions, OutputCompression, Reshard, Target};
pub use output::OutputStream;
pub use plan::planned::{PlannedJob, PlannedOutputs, PlannedSource};
pub use progress::Progress;
pub use repair::repair;
pub use schema::{json as schema_json, read_schema};
pub use verify::{VerifiedDataSet, verify_data_set};
