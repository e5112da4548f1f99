//! Indexes of TFRecord files: where each record is, what the records of a shard have, and the
//! smallest and largest values of blocks of records.
//!
//! ```text
//! chunks of a shard ─▶ IndexWorker ─▶ IndexBuilder ─▶ write_index ─▶ a.tfrecord.tfindex
//!                      zones          blocks           Parquet
//! a.tfrecord.tfindex ─▶ IndexPlace ─▶ OpenIndex ─▶ records, summary, blocks, lengths, zones
//! ```
//!
//! An index is written only when it is asked for, and never trusted: one that is damaged, or is of
//! another version of its shard, is an [`UnusableIndex`].
//!
//! | module | contains |
//! |---|---|
//! | `zone` | the bounds of the values of a feature in a block |
//! | `sorted` | features whose values do not decrease from record to record |
//! | `builder` | blocks and zones of the chunks of a shard, in any order |
//! | `file` | the format |
//! | `shard_index` | reading |
//! | `place` | the names of indexes |
//! | `text_index` | the text index of other programs, as a hint |
//! | `places` | the places of the records of a shard, by its index or without one |
//! | `dataset` | random access to the records of a data set |
//! | `images` | columns of images, decoded to pixels |

mod builder;
mod dataset;
mod file;
#[cfg(test)]
mod hostile;
mod images;
mod place;
mod places;
mod shard_index;
mod sorted;
mod text_index;
mod zone;

pub use builder::{IndexBuilder, IndexWorker, ObservedChunk};
pub use dataset::{Dataset, DatasetOptions, Fetched, ShardColumn};
pub use file::{write_index, write_text_index};
pub use images::{ImageColumn, ImageColumnError};
pub use place::{IndexForm, IndexPlace};
pub use shard_index::{
    FeatureZones, IndexAddress, IndexFault, IndexedPart, OpenIndex, ShardIndex, UnusableIndex,
};
pub use sorted::{SortedFeature, SortedValue};
