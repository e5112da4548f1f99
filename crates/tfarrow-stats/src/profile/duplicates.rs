//! Counting records that equal an earlier one, by the hashes of their payloads.
//!
//! Hashes are kept in a set of bounded size. Once it is full, it keeps the hashes below half of the
//! range of hashes, then those below a quarter, and so on; the duplicates among these are
//! extrapolated. The final range depends on the set of all hashes, and not on their order or on
//! threads (adaptive sampling, Flajolet 1990).

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

/// Largest number of distinct hashes that one thread keeps: 16 to 32 MiB. Up to this number of
/// distinct records, duplicates are counted and not estimated.
const MAX_HASHES: usize = 1 << 19;

/// The number of records that equal an earlier record, byte for byte. Records are compared by
/// 64-bit hashes (XXH3): among a million different records, two have the same hash with a
/// probability of 3e-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Number of records that equal an earlier one.
    pub records: u64,
    /// Number of occurrences of the most frequent record that was counted.
    pub most: u64,
    /// Whether the number is extrapolated from a sample of the distinct records.
    pub is_estimated: bool,
}

/// The hashes of the records that one thread reads, each with its number of records.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DuplicateCounter {
    #[serde(serialize_with = "by_hash")]
    counts: HashMap<u64, u64, RandomState>,
    /// Number of times that the range of kept hashes was halved.
    halvings: u32,
    /// Largest number of hashes.
    #[serde(skip)]
    max: usize,
}

impl Default for DuplicateCounter {
    fn default() -> Self {
        Self {
            counts: HashMap::default(),
            halvings: 0,
            max: MAX_HASHES,
        }
    }
}

impl DuplicateCounter {
    /// Adds a record.
    pub(super) fn add(&mut self, payload: &[u8]) {
        self.add_hash(xxh3_64(payload), 1);
    }

    /// Adds `records` records with a hash, if it is in the range of kept hashes.
    fn add_hash(&mut self, hash: u64, records: u64) {
        if !is_kept(hash, self.halvings) {
            return;
        }
        *self.counts.entry(hash).or_default() += records;
        while self.counts.len() > self.max {
            self.halve();
        }
    }

    /// Halves the range of kept hashes.
    fn halve(&mut self) {
        self.halvings += 1;
        let halvings = self.halvings;
        self.counts.retain(|hash, _| is_kept(*hash, halvings));
    }

    /// Adds the records of another thread.
    pub(super) fn merge(&mut self, other: Self) {
        // The number of another process is not trusted. No hash is left after 64.
        while self.halvings < other.halvings.min(u64::BITS) {
            self.halve();
        }
        other
            .counts
            .into_iter()
            .for_each(|(hash, records)| self.add_hash(hash, records));
    }

    /// Returns the number of duplicates.
    pub(super) fn count(&self) -> Duplicates {
        let duplicates: u64 = self
            .counts
            .values()
            .map(|records| records.saturating_sub(1))
            .sum();
        Duplicates {
            records: duplicates
                .saturating_mul(1_u64.checked_shl(self.halvings).unwrap_or(u64::MAX)),
            most: self.counts.values().copied().max().unwrap_or_default(),
            is_estimated: self.halvings > 0,
        }
    }
}

/// Serializes counts in the order of the hashes, so that equal counts have equal bytes.
fn by_hash<S: Serializer>(
    counts: &HashMap<u64, u64, RandomState>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    counts
        .iter()
        .collect::<BTreeMap<_, _>>()
        .serialize(serializer)
}

/// Returns whether a hash is in the range that is left after these halvings.
fn is_kept(hash: u64, halvings: u32) -> bool {
    hash.leading_zeros() >= halvings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(max: usize, records: impl Iterator<Item = u64>) -> DuplicateCounter {
        let mut counter = DuplicateCounter {
            max,
            ..DuplicateCounter::default()
        };
        records.for_each(|record| counter.add(&record.to_le_bytes()));
        counter
    }

    #[test]
    fn few_records_are_counted() {
        assert_eq!(
            counter(100, 0..100).count(),
            Duplicates {
                records: 0,
                most: 1,
                is_estimated: false
            }
        );
        let repeated = counter(100, (0..1_000).map(|i| i % 50)).count();
        assert_eq!(
            repeated,
            Duplicates {
                records: 950,
                most: 20,
                is_estimated: false
            }
        );
        assert_eq!(counter(100, 0..0).count(), Duplicates::default());
    }

    #[test]
    fn many_records_are_estimated() {
        let found = counter(10_000, (0..300_000).map(|i| i % 200_000)).count();
        assert!(
            found.is_estimated && (95_000..105_000).contains(&found.records),
            "{found:?}"
        );
    }

    #[test]
    fn the_result_does_not_depend_on_threads() {
        let records = |part: u64, parts: u64| {
            (0..50_000_u64)
                .filter(move |i| i % parts == part)
                .map(|i| i % 30_000)
        };
        let whole = counter(1_000, records(0, 1)).count();
        for order in [[0, 1, 2], [2, 0, 1]] {
            let mut merged = DuplicateCounter {
                max: 1_000,
                ..DuplicateCounter::default()
            };
            order
                .into_iter()
                .for_each(|part| merged.merge(counter(1_000, records(part, 3))));
            assert_eq!(merged.count(), whole);
        }
    }
}
