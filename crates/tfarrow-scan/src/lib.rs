//! A pass over a data set of shards: all records or a sample of them, of files of any format, on
//! all cores.
//!
//! ```text
//! thread 1: shard 0 ─▶ shard 2 ─▶ shard 3 ──────────┐
//! thread 2: shard 1 ──────────────▶ helps with 3 ───┴▶ merge the summaries
//! ```
//!
//! The result does not depend on which thread reads which records: summaries merge in any order,
//! and of several errors the first in the order of the data set is returned.
//!
//! | module | contains |
//! |---|---|
//! | `crew` | the threads of a pass, and the tasks that they share |
//! | `ordered` | the results of many threads, in the order of their units |
//! | `scan` | the shards of a data set as tasks; each record is observed |
//! | `row_records`, `row_losses` | rows of Parquet, Arrow, CSV and JSON as the records that a conversion to TFRecord would write |
//! | `infer`, `inferred` | a summary of the features of a data set |
//! | `verify`, `verify_file` | verification of TFRecord files, and of other files |
//! | `count` | the number of records |
//! | `index` | the indexes of shards |
//! | `options`, `sample` | options of inference; how much of a data set is read |
//!
//! The crate does not print.

mod count;
mod crew;
mod index;
mod infer;
mod inferred;
mod options;
mod ordered;
mod row_losses;
mod row_records;
mod sample;
mod scan;
mod verify;
mod verify_file;

pub use count::{Counted, count};
pub use crew::{Begin, Crew, Member, Task};
pub use index::{IndexOptions, Indexed, index};
pub use infer::{infer, infer_observed};
pub use inferred::{Inferred, InferredMerger, InferredState, place_in, shown_names};
pub use options::InferOptions;
pub use ordered::{Ordered, PieceSink, Ticket};
pub use row_losses::RowLosses;
pub use row_records::{record_bytes, stated_records};
pub use sample::{NotASample, SAMPLE_BYTES, SAMPLE_RECORDS, SAMPLE_SHARDS, Sample, Sampled};
pub use verify::{Verified, VerifyOptions, verify};
