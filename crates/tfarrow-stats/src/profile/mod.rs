//! The profile of the records of a data set, for reports: what statistics of single features do not
//! show.
//!
//! ```text
//! thread 1: records ─▶ RecordProfiler ─┬ ExampleSampler ────┐
//!                                      ├ NumberRowSampler ──┤
//!                                      ├ DuplicateCounter ──┼─ merge ─▶ RecordProfile
//!                                      └ shard counts ──────┘
//! ```
//!
//! Statistics of the values of one feature belong to `collect/`.

mod correlations;
mod duplicates;
mod examples;

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    Place, WireError,
    infer::{RecordObserver, SeenRecord},
};

use self::{
    correlations::NumberRowSampler, duplicates::DuplicateCounter, examples::ExampleSampler,
};
pub use self::{
    correlations::{Correlation, Correlations},
    duplicates::Duplicates,
    examples::{ExampleFeature, ExampleRecord, ExampleValues},
};

/// The profile of the records of a data set. It does not depend on the number of threads.
#[derive(Clone, Debug, Default)]
pub struct RecordProfile {
    /// Some records, in data-set order.
    pub examples: Vec<ExampleRecord>,
    /// The correlations of numeric features.
    pub correlations: Correlations,
    /// The number of records that equal an earlier one.
    pub duplicates: Duplicates,
    /// The size of each shard, by the numbers that [`Place`]s have. Shards after the last one with
    /// a record are left out.
    pub shards: Vec<ShardRecords>,
}

/// The records of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecords {
    /// Number of records, including those that do not parse.
    pub records: u64,
    /// Size of their payloads in bytes.
    pub bytes: u64,
}

/// An observer that profiles the records that one thread reads. It can be serialized, to be merged
/// by another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordProfiler {
    examples: ExampleSampler,
    numbers: NumberRowSampler,
    duplicates: DuplicateCounter,
    shards: Vec<ShardRecords>,
}

impl RecordProfiler {
    /// Creates a profiler that keeps `examples` records.
    pub fn new(examples: usize) -> Self {
        Self {
            examples: ExampleSampler::new(examples),
            numbers: NumberRowSampler::default(),
            duplicates: DuplicateCounter::default(),
            shards: Vec::new(),
        }
    }

    /// Adds the records of another thread, or of another part of the data set.
    pub fn merge(&mut self, other: Self) {
        self.examples.merge(other.examples);
        self.numbers.merge(other.numbers);
        self.duplicates.merge(other.duplicates);
        self.shards.resize(
            self.shards.len().max(other.shards.len()),
            ShardRecords::default(),
        );
        for (all, more) in self.shards.iter_mut().zip(other.shards) {
            all.records += more.records;
            all.bytes += more.bytes;
        }
    }

    /// Merges the profilers of all threads into one with `examples` records.
    pub fn merged(examples: usize, parts: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self::new(examples);
        parts.into_iter().for_each(|part| merged.merge(part));
        merged.numbers.sort_names();
        merged
    }

    /// Returns the profile.
    pub fn finish(self) -> RecordProfile {
        RecordProfile {
            examples: self.examples.into_examples(),
            correlations: self.numbers.correlations(),
            duplicates: self.duplicates.count(),
            shards: self.shards,
        }
    }

    /// Counts a record of a shard.
    fn count(&mut self, place: Place, bytes: u64) {
        let shard = place.shard as usize;
        if shard >= self.shards.len() {
            self.shards.resize(shard + 1, ShardRecords::default());
        }
        if let Some(shard) = self.shards.get_mut(shard) {
            shard.records += 1;
            shard.bytes += bytes;
        }
    }
}

impl RecordObserver for RecordProfiler {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        self.count(record.place(), record.data().len() as u64);
        self.duplicates.add(record.data());
        self.numbers.add(record);
        self.examples.add(record);
    }

    fn unparsable(&mut self, place: Place, _: WireError, bytes: u64) {
        self.count(place, bytes);
    }
}
