//! The distinct byte strings of one feature: each with its count while they are few, then an
//! estimate of their number.
//!
//! Values are told apart by a hash of the whole value, so that of long values only the beginnings
//! need to be kept.
//!
//! ```text
//! the distinct values                                     kept
//! fit the budget of bytes                                 Counted, whole
//! do not fit it, but their beginnings do                  Counted, cut to their beginnings
//! are more than the budget, or longer                     Estimated: none
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize, Serializer};
use simple_hll::HyperLogLog;
use xxhash_rust::xxh3::xxh3_64;

use super::{budget::Budget, sample::SampleValue};
use crate::excerpt::beginning;

/// Number of bits of a hash that select a register of a sketch.
const PRECISION: usize = 14;
/// Largest value of a register: the position of the first 1 in the other bits of the hash.
const MAX_RANK: u8 = 64 - PRECISION as u8 + 1;

/// A value with the hash that tells it apart from other values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedValue<'a> {
    /// XXH3 of the whole value, which is the same on every machine.
    hash: u64,
    /// The value, or its beginning.
    bytes: &'a [u8],
    /// Length of the whole value in bytes.
    length: u64,
}

impl<'a> HashedValue<'a> {
    /// Hashes a value.
    pub(crate) fn of(value: &'a [u8]) -> Self {
        Self {
            hash: xxh3_64(value),
            bytes: value,
            length: value.len() as u64,
        }
    }
}

/// A value that is kept, or the beginning of a long one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptValue {
    /// The value, or its beginning.
    pub(crate) bytes: Box<[u8]>,
    /// Length of the whole value in bytes.
    pub(crate) length: u64,
}

/// A value of a sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SampledValue {
    /// The hash of the whole value.
    pub(crate) hash: u64,
    /// The value, cut to its beginning.
    pub(crate) value: KeptValue,
}

impl SampledValue {
    /// Keeps the beginning of a value.
    pub(crate) fn of(value: HashedValue<'_>) -> Self {
        let bytes = beginning(value.bytes).into();
        Self {
            hash: value.hash,
            value: KeptValue {
                bytes,
                length: value.length,
            },
        }
    }
}

impl SampleValue for SampledValue {
    fn bytes(&self) -> usize {
        // 56 bytes approximate the allocator's and the sample's overhead of a value.
        self.value.bytes.len() + 56
    }
}

/// The exact counts of distinct values while they fit the budget; after that, an estimate of the
/// number of distinct values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DistinctValues {
    /// The number of occurrences of each value.
    Counted(CountedValues),
    /// Too many values to count each.
    Estimated(Box<DistinctEstimate>),
}

impl Default for DistinctValues {
    fn default() -> Self {
        Self::Counted(CountedValues::default())
    }
}

impl DistinctValues {
    /// Adds a value `times` times. The first value above the budget turns the counts into an
    /// estimate, which keeps no value.
    pub(crate) fn add(&mut self, value: HashedValue<'_>, times: u64, budget: Budget) {
        if let Self::Counted(counts) = self {
            if counts.add(value, times, budget) {
                return;
            }
            *self = Self::Estimated(Box::new(counts.estimate()));
        }
        if let Self::Estimated(distinct) = self {
            distinct.insert(value.hash);
        }
    }

    /// Reduces the counts to a smaller budget, or replaces them by an estimate.
    pub(crate) fn shrink(&mut self, budget: Budget) {
        if let Self::Counted(counts) = self
            && !counts.fit(budget)
        {
            *self = Self::Estimated(Box::new(counts.estimate()));
        }
    }

    /// Adds the values that another thread has counted.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        match other {
            Self::Counted(other) => {
                if let Self::Counted(counts) = self
                    && other.is_cut
                {
                    counts.cut();
                }
                for (hash, CountedValue { value, count }) in other.by_hash {
                    self.add(
                        HashedValue {
                            hash,
                            bytes: &value.bytes,
                            length: value.length,
                        },
                        count,
                        budget,
                    );
                }
            }
            Self::Estimated(mut more) => {
                match std::mem::take(self) {
                    Self::Estimated(distinct) => more.merge(*distinct),
                    Self::Counted(counts) => more.merge(counts.estimate()),
                }
                *self = Self::Estimated(more);
            }
        }
    }

    /// Returns the number of distinct values, and whether it is exact.
    pub(crate) fn count(&self) -> (u64, bool) {
        match self {
            Self::Counted(counts) => (counts.by_hash.len() as u64, true),
            Self::Estimated(estimate) => (estimate.count(), false),
        }
    }

    /// Returns the values with their counts; `None` unless all values are kept whole.
    pub(crate) fn whole(&self) -> Option<impl Iterator<Item = (&[u8], u64)>> {
        match self {
            Self::Counted(counts) if !counts.is_cut => Some(
                counts
                    .iter()
                    .map(|(_, held)| (&*held.value.bytes, held.count)),
            ),
            Self::Counted(_) | Self::Estimated(_) => None,
        }
    }
}

/// The number of occurrences of each value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CountedValues {
    #[serde(serialize_with = "in_order")]
    by_hash: HashMap<u64, CountedValue, RandomState>,
    /// Size of what is kept of all values together, which [`merge`](DistinctValues::merge) computes
    /// again.
    #[serde(skip)]
    bytes: usize,
    /// Whether only the beginnings of values are kept: the values are larger than the budget.
    is_cut: bool,
}

/// A value, and the number of its occurrences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CountedValue {
    pub(crate) value: KeptValue,
    pub(crate) count: u64,
}

impl CountedValues {
    /// Adds a value `times` times. Returns false for a new value that the budget has no place for.
    fn add(&mut self, value: HashedValue<'_>, times: u64, budget: Budget) -> bool {
        if let Some(held) = self.by_hash.get_mut(&value.hash) {
            held.count += times;
            return true;
        }
        if self.bytes + value.bytes.len() > budget.distinct_bytes {
            self.cut();
        }
        let bytes = if self.is_cut {
            beginning(value.bytes)
        } else {
            value.bytes
        };
        if self.by_hash.len() >= budget.distinct || self.bytes + bytes.len() > budget.distinct_bytes
        {
            return false;
        }
        self.bytes += bytes.len();
        let kept = KeptValue {
            bytes: bytes.into(),
            length: value.length,
        };
        self.by_hash.insert(
            value.hash,
            CountedValue {
                value: kept,
                count: times,
            },
        );
        true
    }

    /// Cuts all values to their beginnings.
    #[cold]
    fn cut(&mut self) {
        if self.is_cut {
            return;
        }
        self.is_cut = true;
        self.bytes = 0;
        for held in self.by_hash.values_mut() {
            held.value.bytes = beginning(&held.value.bytes).into();
            self.bytes += held.value.bytes.len();
        }
    }

    /// Cuts the values if they exceed the budget. Returns whether they fit it then.
    fn fit(&mut self, budget: Budget) -> bool {
        if self.bytes > budget.distinct_bytes {
            self.cut();
        }
        self.by_hash.len() <= budget.distinct && self.bytes <= budget.distinct_bytes
    }

    /// Creates the estimate of the number of these values.
    fn estimate(&self) -> DistinctEstimate {
        let mut distinct = DistinctEstimate::default();
        for hash in self.by_hash.keys() {
            distinct.insert(*hash);
        }
        distinct
    }

    /// Returns the values with their hashes, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &CountedValue)> {
        self.by_hash.iter().map(|(hash, held)| (*hash, held))
    }
}

/// Serializes counts in the order of their hashes, so that equal counts have equal bytes.
fn in_order<S: Serializer>(
    counts: &HashMap<u64, CountedValue, RandomState>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    counts
        .iter()
        .collect::<BTreeMap<_, _>>()
        .serialize(serializer)
}

/// The number of distinct values, from hashes that are the same on every machine. It depends on the
/// set of values alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DistinctEstimate {
    /// The hashes, while they are few: a slice has a sketch for each of its features.
    Few(BTreeSet<u64>),
    /// A HyperLogLog sketch with a standard error of about 0.8 %: 2^14 registers of 8 bits, from
    /// which the number is computed.
    Many(#[serde(with = "registers")] HyperLogLog<PRECISION>),
}

/// Largest number of hashes that are kept.
const MAX_HASHES: usize = 512;

impl Default for DistinctEstimate {
    fn default() -> Self {
        Self::Few(BTreeSet::new())
    }
}

impl DistinctEstimate {
    /// Adds a value by its hash.
    fn insert(&mut self, hash: u64) {
        match self {
            Self::Few(hashes) => {
                hashes.insert(hash);
                if hashes.len() > MAX_HASHES {
                    let mut sketch = HyperLogLog::default();
                    hashes.iter().for_each(|hash| sketch.add_hash(*hash));
                    *self = Self::Many(sketch);
                }
            }
            Self::Many(sketch) => sketch.add_hash(hash),
        }
    }

    /// Adds the values of another estimate.
    fn merge(&mut self, other: Self) {
        match other {
            Self::Few(hashes) => hashes.into_iter().for_each(|hash| self.insert(hash)),
            Self::Many(mut sketch) => {
                match self {
                    Self::Few(hashes) => hashes.iter().for_each(|hash| sketch.add_hash(*hash)),
                    Self::Many(own) => sketch.merge(own),
                }
                *self = Self::Many(sketch);
            }
        }
    }

    /// Returns the estimated number of distinct values.
    fn count(&self) -> u64 {
        match self {
            Self::Few(hashes) => hashes.len() as u64,
            Self::Many(sketch) => sketch.count() as u64,
        }
    }
}

/// The form of a sketch in bytes: its registers, which are checked.
mod registers {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
    use simple_hll::HyperLogLog;

    use super::{MAX_RANK, PRECISION};

    pub(super) fn serialize<S: Serializer>(
        sketch: &HyperLogLog<PRECISION>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        sketch.get_registers().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<HyperLogLog<PRECISION>, D::Error> {
        let registers = Vec::<u8>::deserialize(deserializer)?;
        let is_valid = registers.len() == HyperLogLog::<PRECISION>::number_registers()
            && registers.iter().all(|rank| *rank <= MAX_RANK);
        if is_valid {
            Ok(HyperLogLog::with_registers(registers))
        } else {
            Err(D::Error::custom("no sketch"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        sample: 100,
        sample_bytes: 1 << 20,
        distinct: 20_000,
        distinct_bytes: 1 << 20,
    };

    fn values(of: impl Iterator<Item = u64>) -> DistinctValues {
        let mut values = DistinctValues::default();
        of.for_each(|i| values.add(HashedValue::of(&i.to_le_bytes()), 1, BUDGET));
        values
    }

    #[test]
    fn few_distinct_values_are_counted_and_many_estimated() {
        assert_eq!(values((0..10_000).map(|i| i % 7)).count(), (7, true));
        assert_eq!(
            values(0..BUDGET.distinct as u64).count(),
            (BUDGET.distinct as u64, true)
        );
        let (found, exact) = values(0..200_000).count();
        assert!(!exact && (195_000..205_000).contains(&found), "{found}");
    }

    #[test]
    fn the_result_does_not_depend_on_the_order() {
        let parts = [
            values(0..15_000),
            values(10_000..26_000),
            values(26_000..90_000),
        ];
        let whole = values((0..90_000).rev()).count();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = DistinctValues::default();
            order
                .iter()
                .for_each(|part| merged.merge(parts[*part].clone(), BUDGET));
            assert_eq!(merged.count(), whole);
        }
    }

    #[test]
    fn merged_counts_above_the_budget_become_an_estimate() {
        let small = Budget {
            distinct: 100,
            ..BUDGET
        };
        let mut merged = DistinctValues::default();
        merged.merge(values(0..150), small);
        assert!(matches!(merged, DistinctValues::Estimated(_)));
        let mut merged = DistinctValues::default();
        merged.merge(values(0..100), small);
        assert_eq!(merged.count(), (100, true));
    }

    /// The counts of these values, added in this order.
    fn counted(values: &[Vec<u8>], budget: Budget) -> DistinctValues {
        let mut counts = DistinctValues::default();
        values
            .iter()
            .for_each(|value| counts.add(HashedValue::of(value), 1, budget));
        counts
    }

    #[test]
    fn values_that_exceed_the_budget_of_bytes_are_cut_to_their_beginnings() {
        let budget = Budget {
            distinct_bytes: 1_100,
            ..BUDGET
        };
        let values: Vec<_> = (0..4_u8)
            .map(|i| [vec![b'a'; 299], vec![i]].concat())
            .collect();
        assert_eq!(counted(&values[..3], budget).whole().unwrap().count(), 3);
        assert!(counted(&values, budget).whole().is_none());
        // Beginnings of 256 bytes.
        assert_eq!(
            counted(
                &values[..3],
                Budget {
                    distinct_bytes: 3 * 256,
                    ..BUDGET
                }
            )
            .count(),
            (3, true)
        );
        assert_eq!(
            counted(
                &values,
                Budget {
                    distinct_bytes: 3 * 256,
                    ..BUDGET
                }
            )
            .count(),
            (4, false)
        );
    }

    #[test]
    fn long_values_with_a_common_beginning_are_different_values() {
        let budget = Budget {
            distinct_bytes: 3_000,
            ..BUDGET
        };
        let value = |i: u8| [vec![b'a'; 1_500], vec![i]].concat();
        let values = [value(1), value(2), value(1), value(3)];
        let bytes = |counts: &DistinctValues| postcard::to_stdvec(counts).unwrap();
        let whole = counted(&values, budget);
        let DistinctValues::Counted(counts) = &whole else {
            panic!("{whole:?}")
        };
        let mut found: Vec<_> = counts
            .iter()
            .map(|(_, held)| (held.count, held.value.bytes.len()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(1, 256), (1, 256), (2, 256)]);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
            let mut merged = DistinctValues::default();
            order
                .iter()
                .for_each(|at| merged.merge(counted(&values[*at..=*at], budget), budget));
            assert_eq!(bytes(&merged), bytes(&whole));
        }
    }
}
