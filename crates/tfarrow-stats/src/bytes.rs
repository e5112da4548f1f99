//! What is counted of byte strings.

use std::{collections::HashMap, hash::DefaultHasher};

use cardinality_estimator::CardinalityEstimator;
use foldhash::fast::RandomState;
use xxhash_rust::xxh3::xxh3_64;

use crate::{formats::Format, sample::Sample};

/// Distinct values of one feature that are counted one by one.
const MOST_DISTINCT: usize = 20_000;
/// Bytes of them together.
const MOST_BYTES: usize = 8 << 20;
/// Bytes of a value that a sample keeps.
const SAMPLED_BYTES: usize = 256;

/// What was counted of the values of a feature that are byte strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    /// Of all values together.
    pub(crate) bytes: u64,
    /// Of the shortest and the longest.
    pub(crate) lengths: Option<(u64, u64)>,
    pub(crate) invalid_utf8: u64,
    /// How many values look like each format, by [`Format`] as an index.
    pub(crate) formats: [u64; Format::COUNT],
    pub(crate) values: Values,
    pub(crate) sample: Sample<Box<[u8]>>,
}

impl Bytes {
    /// Adds a value.
    pub(crate) fn add(&mut self, value: &[u8], key: u64, sample: usize) {
        let length = value.len() as u64;
        self.bytes += length;
        self.lengths = Some(self.lengths.map_or((length, length), |(low, high)| (low.min(length), high.max(length))));
        let is_text = value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok();
        self.invalid_utf8 += u64::from(!is_text);
        if let Some(count) = self.formats.get_mut(Format::of(value, is_text) as usize) {
            *count += 1;
        }
        self.values.add(value);
        self.sample.add(key, sample, || sampled(value, is_text).into());
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> u64 {
        self.sample.seen()
    }

    pub(crate) fn merge(&mut self, other: Self, sample: usize) {
        self.bytes += other.bytes;
        self.lengths = match (self.lengths, other.lengths) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.invalid_utf8 += other.invalid_utf8;
        self.formats.iter_mut().zip(other.formats).for_each(|(count, more)| *count += more);
        self.values.merge(other.values);
        self.sample.merge(other.sample, sample);
    }
}

/// What a sample keeps of a value: of text no part of a character.
fn sampled(value: &[u8], is_text: bool) -> &[u8] {
    let is_inside = |at: usize| is_text && value.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (0..=SAMPLED_BYTES.min(value.len())).rev().find(|end| !is_inside(*end)).unwrap_or_default();
    value.get(..end).unwrap_or(value)
}

/// How often there is each value, as long as they are few; else about how many there are.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// Each, and how often.
    Each { counts: HashMap<Box<[u8]>, u64, RandomState>, bytes: usize },
    /// Too many.
    Many(Box<Distinct>),
}

/// HyperLogLog with an error of 0.8 %, of hashes that are the same on every machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distinct(CardinalityEstimator<u64, DefaultHasher, 14, 6>);

impl Distinct {
    fn insert(&mut self, value: &[u8]) {
        self.0.insert_hash(xxh3_64(value));
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::Each { counts: HashMap::default(), bytes: 0 }
    }
}

impl Values {
    fn add(&mut self, value: &[u8]) {
        self.add_times(value, 1);
    }

    fn add_times(&mut self, value: &[u8], times: u64) {
        match self {
            Self::Each { counts, bytes } => {
                if let Some(count) = counts.get_mut(value) {
                    *count += times;
                    return;
                }
                if counts.len() < MOST_DISTINCT && *bytes + value.len() <= MOST_BYTES {
                    counts.insert(value.into(), times);
                    *bytes += value.len();
                    return;
                }
                let mut distinct = Distinct::default();
                counts.keys().for_each(|value| distinct.insert(value));
                distinct.insert(value);
                *self = Self::Many(Box::new(distinct));
            }
            Self::Many(distinct) => distinct.insert(value),
        }
    }

    fn merge(&mut self, other: Self) {
        match other {
            Self::Each { counts, .. } => counts.iter().for_each(|(value, times)| self.add_times(value, *times)),
            Self::Many(mut more) => {
                match self {
                    Self::Many(distinct) => more.0.merge(&distinct.0),
                    Self::Each { counts, .. } => counts.keys().for_each(|value| more.insert(value)),
                }
                *self = Self::Many(more);
            }
        }
    }

    /// How many distinct values there are, and whether that is exact.
    pub(crate) fn distinct(&self) -> (u64, bool) {
        match self {
            Self::Each { counts, .. } => (counts.len() as u64, true),
            Self::Many(distinct) => (distinct.0.estimate() as u64, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: impl Iterator<Item = u64>) -> Values {
        let mut values = Values::default();
        of.for_each(|i| values.add(&i.to_le_bytes()));
        values
    }

    #[test]
    fn few_are_counted_and_many_estimated() {
        assert_eq!(values((0..10_000).map(|i| i % 7)).distinct(), (7, true));
        assert_eq!(values(0..MOST_DISTINCT as u64).distinct(), (MOST_DISTINCT as u64, true));
        let (found, exact) = values(0..200_000).distinct();
        assert!(!exact && (195_000..205_000).contains(&found), "{found}");
    }

    #[test]
    fn the_order_does_not_show() {
        let parts = [values(0..15_000), values(10_000..26_000), values(26_000..90_000)];
        let whole = values((0..90_000).rev()).distinct();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut merged = Values::default();
            order.iter().for_each(|part| merged.merge(parts[*part].clone()));
            assert_eq!(merged.distinct(), whole);
        }
    }

    #[test]
    fn long_values_are_many_sooner() {
        let mut values = Values::default();
        let long = |i: u8| vec![i; MOST_BYTES / 2];
        values.add(&long(1));
        values.add(&long(2));
        assert_eq!(values.distinct(), (2, true));
        values.add(&long(3));
        assert_eq!(values.distinct(), (3, false));
    }
}
