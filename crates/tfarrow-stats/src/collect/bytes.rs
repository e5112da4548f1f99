//! The accumulator of byte strings: lengths, formats, distinct values and a sample.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize, Serializer};
use simple_hll::HyperLogLog;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    budget::Budget,
    formats::{ValueFormat, is_text},
    images::ImageAccumulator,
    sample::ValueSample,
};

/// Largest number of bytes that a sample keeps of a value.
const SAMPLED_BYTES: usize = 256;

/// Number of bits of a hash that select a register of a sketch.
const PRECISION: usize = 14;
/// Largest value of a register: the position of the first 1 in the other bits of the hash.
const MAX_RANK: u8 = 64 - PRECISION as u8 + 1;

/// The accumulated byte strings of one feature.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BytesAccumulator {
    /// Size of all values in bytes.
    pub(crate) bytes: u64,
    /// Lengths of the shortest and of the longest value in bytes.
    pub(crate) lengths: Option<(u64, u64)>,
    /// Number of values that are not UTF-8.
    pub(crate) invalid_utf8: u64,
    /// Number of values of each format, indexed by [`ValueFormat`].
    pub(crate) formats: [u64; ValueFormat::COUNT],
    /// Sizes of the values that look like images.
    pub(crate) images: ImageAccumulator,
    /// The distinct values, or their number.
    pub(crate) distinct: DistinctValues,
    /// A sample of the values, each cut to 256 bytes.
    pub(crate) sample: ValueSample<Box<[u8]>>,
}

impl BytesAccumulator {
    /// Adds a value. `key` is the hash of its place.
    pub(crate) fn add(&mut self, value: &[u8], key: u64, budget: Budget) {
        let length = value.len() as u64;
        self.bytes += length;
        self.lengths = Some(self.lengths.map_or((length, length), |(low, high)| (low.min(length), high.max(length))));
        let is_utf8 = value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok();
        self.invalid_utf8 += u64::from(!is_utf8);
        let format = ValueFormat::of(value, is_text(value, is_utf8));
        if let Some(count) = self.formats.get_mut(format as usize) {
            *count += 1;
        }
        if format.is_image() {
            self.images.add(value);
        }
        self.distinct.add(value, 1, budget);
        self.sample.add(key, budget, || sampled(value, is_utf8).into());
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.sample.seen()
    }

    /// Adds the values that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        self.bytes += other.bytes;
        self.lengths = match (self.lengths, other.lengths) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.invalid_utf8 += other.invalid_utf8;
        self.formats.iter_mut().zip(other.formats).for_each(|(count, more)| *count += more);
        self.images.merge(&other.images);
        self.distinct.merge(other.distinct, budget);
        self.sample.merge(other.sample, budget);
    }

    /// Reduces the accumulator to a smaller budget.
    pub(crate) fn shrink(&mut self, budget: Budget) {
        self.distinct.shrink(budget);
        self.sample.cut(budget);
    }
}

/// Returns the beginning of a value that a sample keeps; a UTF-8 value is cut between characters.
fn sampled(value: &[u8], is_text: bool) -> &[u8] {
    let is_inside = |at: usize| is_text && value.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (0..=SAMPLED_BYTES.min(value.len())).rev().find(|end| !is_inside(*end)).unwrap_or_default();
    value.get(..end).unwrap_or(value)
}

/// The exact counts of distinct values while they fit the budget; after that, an estimate of the number of distinct
/// values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DistinctValues {
    /// The number of occurrences of each value; `bytes` is the size of these values together, which
    /// [`merge`](Self::merge) computes again.
    Counted {
        #[serde(serialize_with = "by_value")]
        counts: HashMap<Box<[u8]>, u64, RandomState>,
        #[serde(skip)]
        bytes: usize,
    },
    /// Too many values to count each.
    Estimated(Box<DistinctEstimate>),
}

/// The number of distinct values, from hashes that are the same on every machine. It depends on the set of values alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DistinctEstimate {
    /// The hashes, while they are few: a slice has a sketch for each of its features.
    Few(BTreeSet<u64>),
    /// A HyperLogLog sketch with a standard error of about 0.8 %: 2^14 registers of 8 bits, from which the number is computed.
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
    /// Creates the estimate of these values.
    fn of<'a>(values: impl Iterator<Item = &'a Box<[u8]>>) -> Self {
        let mut distinct = Self::default();
        values.for_each(|value| distinct.insert(value));
        distinct
    }

    /// Adds a value.
    fn insert(&mut self, value: &[u8]) {
        self.insert_hash(xxh3_64(value));
    }

    fn insert_hash(&mut self, hash: u64) {
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
            Self::Few(hashes) => hashes.into_iter().for_each(|hash| self.insert_hash(hash)),
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

    pub(super) fn serialize<S: Serializer>(sketch: &HyperLogLog<PRECISION>, serializer: S) -> Result<S::Ok, S::Error> {
        sketch.get_registers().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HyperLogLog<PRECISION>, D::Error> {
        let registers = Vec::<u8>::deserialize(deserializer)?;
        let is_valid = registers.len() == HyperLogLog::<PRECISION>::number_registers()
            && registers.iter().all(|rank| *rank <= MAX_RANK);
        if is_valid { Ok(HyperLogLog::with_registers(registers)) } else { Err(D::Error::custom("no sketch")) }
    }
}

/// Serializes counts in the order of the values, so that equal counts have equal bytes.
fn by_value<S: Serializer>(counts: &HashMap<Box<[u8]>, u64, RandomState>, serializer: S) -> Result<S::Ok, S::Error> {
    counts.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}

impl Default for DistinctValues {
    fn default() -> Self {
        Self::Counted { counts: HashMap::default(), bytes: 0 }
    }
}

impl DistinctValues {
    /// Adds a value `times` times. The first value above the budget turns the counts into an estimate, which keeps no
    /// value.
    fn add(&mut self, value: &[u8], times: u64, budget: Budget) {
        match self {
            Self::Counted { counts, bytes } => {
                if let Some(count) = counts.get_mut(value) {
                    *count += times;
                    return;
                }
                if counts.len() < budget.distinct && *bytes + value.len() <= budget.distinct_bytes {
                    counts.insert(value.into(), times);
                    *bytes += value.len();
                    return;
                }
                let mut distinct = DistinctEstimate::of(counts.keys());
                distinct.insert(value);
                *self = Self::Estimated(Box::new(distinct));
            }
            Self::Estimated(distinct) => distinct.insert(value),
        }
    }

    /// Replaces the counts by an estimate if they exceed a smaller budget.
    fn shrink(&mut self, budget: Budget) {
        if let Self::Counted { counts, bytes } = self
            && (counts.len() > budget.distinct || *bytes > budget.distinct_bytes)
        {
            *self = Self::Estimated(Box::new(DistinctEstimate::of(counts.keys())));
        }
    }

    /// Adds the values that another thread has counted.
    fn merge(&mut self, other: Self, budget: Budget) {
        match other {
            Self::Counted { counts, .. } => counts.iter().for_each(|(value, times)| self.add(value, *times, budget)),
            Self::Estimated(mut more) => {
                match std::mem::take(self) {
                    Self::Estimated(distinct) => more.merge(*distinct),
                    Self::Counted { counts, .. } => counts.keys().for_each(|value| more.insert(value)),
                }
                *self = Self::Estimated(more);
            }
        }
    }

    /// Returns the number of distinct values, and whether it is exact.
    pub(crate) fn count(&self) -> (u64, bool) {
        match self {
            Self::Counted { counts, .. } => (counts.len() as u64, true),
            Self::Estimated(estimate) => (estimate.count(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { sample: 100, sample_bytes: 1 << 20, distinct: 20_000, distinct_bytes: 1 << 20 };

    fn values(of: impl Iterator<Item = u64>) -> DistinctValues {
        let mut values = DistinctValues::default();
        of.for_each(|i| values.add(&i.to_le_bytes(), 1, BUDGET));
        values
    }

    #[test]
    fn few_distinct_values_are_counted_and_many_estimated() {
        assert_eq!(values((0..10_000).map(|i| i % 7)).count(), (7, true));
        assert_eq!(values(0..BUDGET.distinct as u64).count(), (BUDGET.distinct as u64, true));
        let (found, exact) = values(0..200_000).count();
        assert!(!exact && (195_000..205_000).contains(&found), "{found}");
    }

    #[test]
    fn the_result_does_not_depend_on_the_order() {
        let parts = [values(0..15_000), values(10_000..26_000), values(26_000..90_000)];
        let whole = values((0..90_000).rev()).count();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = DistinctValues::default();
            order.iter().for_each(|part| merged.merge(parts[*part].clone(), BUDGET));
            assert_eq!(merged.count(), whole);
        }
    }

    #[test]
    fn merged_counts_above_the_budget_become_an_estimate() {
        let small = Budget { distinct: 100, ..BUDGET };
        let mut merged = DistinctValues::default();
        merged.merge(values(0..150), small);
        assert!(matches!(merged, DistinctValues::Estimated(_)));
        let mut merged = DistinctValues::default();
        merged.merge(values(0..100), small);
        assert_eq!(merged.count(), (100, true));
    }

    #[test]
    fn the_budget_counts_bytes() {
        let mut values = DistinctValues::default();
        let mut add = |i: u8| {
            values.add(&vec![i; BUDGET.distinct_bytes / 2], 1, BUDGET);
            values.count()
        };
        add(1);
        assert_eq!(add(2), (2, true));
        assert_eq!(add(3), (3, false));
    }
}
