//! A scan of a data set: every record, or a sample, is passed to a summary and an observer by several threads.
//!
//! ```text
//! thread 1: shard 0 ─▶ shard 2 ─▶ shard 3 ──────────┐
//! thread 2: shard 1 ──────────────▶ helps with 3 ───┴▶ merge the summaries
//! ```
//!
//! Shards of other formats are opened through the interface in `rows`, and become records before they are observed.
//!
//! Each thread takes shards of its own, and then helps with the largest shards that are still being read, so that one large
//! file keeps all cores busy. The result does not depend on which thread reads which records: summaries merge in any
//! order, and of several errors the first in the order of the data set is returned.

mod infer;
mod options;
mod rows;
mod sample;
mod verify;
mod workers;

pub use self::{
    infer::{
        Inferred, InferredMerger, InferredState, infer, infer_observed, infer_observed_by, infer_with, place_in,
        shown_names,
    },
    options::{InferOptions, OnProgress},
    rows::{EncodedRows, OpenRows, RowLosses, RowPart, RowShard},
    sample::{NotASample, SAMPLE_BYTES, SAMPLE_RECORDS, SAMPLE_SHARDS, Sample, Sampled},
    verify::{Verified, verify},
};
