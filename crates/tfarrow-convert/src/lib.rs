//! Conversion of TFRecord data sets to Parquet or Arrow IPC files and back, shard by shard and
//! without loss.
//!
//! ```text
//! shard ─▶ UnitReader ─▶ Unit ─▶ UnitWorker ─▶ piece ─▶ Ordered ─▶ PieceWriter ─▶ Output
//!          one thread at a time  any thread             in file order, one thread at a time
//! ```
//!
//! A *unit* is a part of a shard that one worker converts on its own: the records of a Parquet row
//! group, or a chunk. Reading takes little time and is done by one thread at a time. Decoding and
//! encoding use all cores, also for one file. The pieces of a shard are written in the order of
//! their units, so that the output does not depend on timing.
//!
//! | module | contains |
//! |---|---|
//! | `convert`, `dry_run`, `repair`, `diff` | the operations; `convert/speculative.rs` saves the pass that infers columns |
//! | `plan` | format and names of outputs, checks before anything is written, the jobs of a conversion |
//! | `input` | shards as units; `tfarrow-columnar` reads Parquet and Arrow files |
//! | `worker` | conversion of units to pieces; the scheduler of jobs; the pairs of input and output formats |
//! | `formats` | encoders and writers of Parquet, Arrow and TFRecord files |
//! | `output` | pieces in the order of units; files, existing outputs and streams; attempts of several processes at one output |
//! | `journal` | the record of complete outputs, with which an interrupted conversion is resumed |
//! | `damage` | the report of skipped records, and their quarantine |
//! | `schema` | schemas in files and as JSON |
//! | `selection`, `names` | the columns that a conversion takes; names and globs of columns and features |
//!
//! The modules have no import cycles.
//!
//! The crate also [repairs](repair()) TFRecord files, [compares](diff()) data sets, and reads and
//! writes [schemas as JSON](schema_json).
//!
//! # Engines
//!
//! A program that distributes a conversion, such as a scheduler of tasks on many machines, uses
//! these functions:
//!
//! | step | function |
//! |---|---|
//! | plan | [`dry_run`] with [`ConvertOptions::part`]: the sources and outputs of a part, and their columns, before anything is written |
//! | convert some shards | [`convert()`] with [`ConvertOptions::part`], in any process and order, and again after a failure |
//! | finish | the sums of [`ConvertReport`]: each part has its counts and its damage, and outputs with their names |
//!
//! Parts need neither a message nor a file of each other: each finds all shards, and agrees with
//! the others about names and columns. As many parts as shards make a task of each shard. The
//! columns can be passed to all parts as [`ConvertOptions::schema`], so that none infers them.
//!
//! ```
//! use std::path::Path;
//! use tfarrow_convert::{ConvertOptions, Progress, convert};
//! use tfarrow_dataset::Part;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (shards, parquet) = (folder.path().join("shards"), folder.path().join("parquet"));
//! # std::fs::create_dir(&shards)?;
//! # for name in ["a.tfrecord", "b.tfrecord", "c.tfrecord"] {
//! #     let mut bytes = Vec::new();
//! #     tfarrow_codec::frame::write(b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07", &mut bytes);
//! #     std::fs::write(shards.join(name), bytes)?;
//! # }
//! let mut records = 0;
//! for index in 0..2 {
//!     let options = ConvertOptions { part: Part::new(index, 2), ..ConvertOptions::default() };
//!     records += convert(&[&shards], &parquet, &options, &Progress::default())?.records;
//! }
//! assert_eq!((records, std::fs::read_dir(&parquet)?.count()), (3, 3));
//! # Ok(()) }
//! ```
//!
//! The crate uses threads and files. It has no `async` code, does not depend on DataFusion, and
//! does not print.

mod convert;
mod damage;
mod diff;
mod dry_run;
mod earlier;
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
mod worker;

pub use convert::{ConvertReport, convert};
pub use diff::{
    DataSetDiff, DiffOptions, KeyReport, OtherFiles, RecordDifference, RecordPosition, diff,
};
pub use dry_run::{ConversionPlan, dry_run};
pub use error::{Error, NotASchema, Result, SchemaJsonError};
pub use options::{
    ConvertOptions, NotASplit, OutputCompression, OutputSplit, Reshard, Target, TimestampUnit,
};
pub use output::OutputStream;
pub use plan::planned::{PlannedJob, PlannedOutputs, PlannedSource};
pub use progress::Progress;
pub use repair::repair;
pub use schema::{json as schema_json, read_schema};
