//! A random sample of a stream: the values with the smallest hashes of their places (bottom-k
//! sampling).
//!
//! A value's place is its shard, record, feature, list and index, so that the sample depends on the
//! data set alone: samples of parts merge to the sample of the union, whatever the number of
//! threads. (A quantile sketch would depend on the order of the values.) A sample that has not
//! reached its budget has all values.
//!
//! ```text
//! budget of 3 values           kept                    last
//! part 1: hashes 9 2 7 4       2 4 7                   7
//! part 2: hashes 8 3 5         3 5 8                   u64::MAX (nothing dropped)
//! merged                       2 3 4                   4
//! ```
//!
//! The error of a quantile of a sample of 16,384 values is below 0.0127, as a share of all values,
//! with a probability of 99 % (Dvoretzky, Kiefer and Wolfowitz).

use serde::{Deserialize, Serialize, Serializer};
use tfarrow_codec::Place;

use super::budget::Budget;

/// The hash of the place of a list. [`SampleKey::of_value`] derives the hashes of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleKey(u64);

impl SampleKey {
    /// Returns the key of a record.
    pub(crate) fn of_record(place: Place) -> Self {
        Self(mix(mix(u64::from(place.shard)) ^ place.record))
    }

    /// Returns the key of a list of the record, by the key of its feature and the list's index in
    /// the feature.
    pub(crate) fn of_list(self, feature: u64, list: u64) -> Self {
        Self(mix(self.0 ^ feature ^ list.wrapping_mul(ODD)))
    }

    /// Returns the hash of a value of the list, by the value's index.
    #[inline]
    pub(crate) fn of_value(self, value: usize) -> u64 {
        mix(self.0.wrapping_add((value as u64).wrapping_mul(ODD)))
    }
}

/// The golden ratio as a 64-bit fraction: SplitMix64's increment.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64, a bijection that mixes all bits.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A value that a sample can keep.
pub(crate) trait SampleValue {
    /// Returns the bytes of memory of the value besides its slot in the sample.
    fn bytes(&self) -> usize {
        0
    }
}

impl SampleValue for u64 {}
impl SampleValue for i64 {}
impl SampleValue for f32 {}

/// The values with the smallest keys, as many as the budget allows in number and in bytes. `kept`
/// may have up to twice the budget between two cuts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Serialize"))]
pub(crate) struct ValueSample<T> {
    /// The kept values with their keys, in no particular order.
    #[serde(serialize_with = "by_key")]
    kept: Vec<(u64, T)>,
    /// Bytes of the values that are kept. [`merge`](Self::merge) counts them again.
    #[serde(skip)]
    bytes: usize,
    /// Number of values that were added.
    seen: u64,
    /// The largest key that may still be kept: values with larger keys have been dropped.
    last: u64,
}

impl<T> Default for ValueSample<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            bytes: 0,
            seen: 0,
            last: u64::MAX,
        }
    }
}

impl<T: SampleValue> ValueSample<T> {
    /// Adds a value; `value` is called only if the sample keeps it.
    #[inline]
    pub(crate) fn add(&mut self, key: u64, budget: Budget, value: impl FnOnce() -> T) {
        self.seen += 1;
        if key <= self.last {
            let value = value();
            self.bytes += value.bytes();
            self.kept.push((key, value));
            if self.kept.len() >= 2 * budget.sample || self.bytes >= 2 * budget.sample_bytes {
                self.cut(budget);
            }
        }
    }

    /// Cuts the sample to its budget. The kept values are a prefix of all values in the order of
    /// their keys, so that earlier cuts to a larger budget do not affect the result.
    #[cold]
    pub(crate) fn cut(&mut self, budget: Budget) {
        if self.kept.len() > budget.sample && budget.sample > 0 {
            self.kept
                .select_nth_unstable_by_key(budget.sample - 1, |(key, _)| *key);
            self.kept.truncate(budget.sample);
            self.last = self
                .kept
                .iter()
                .map(|(key, _)| *key)
                .max()
                .unwrap_or(self.last);
            self.bytes = self.kept.iter().map(|(_, value)| value.bytes()).sum();
        }
        if self.bytes > budget.sample_bytes {
            self.kept.sort_unstable_by_key(|(key, _)| *key);
            let mut bytes = 0;
            let mut count = 0;
            for (_, value) in &self.kept {
                let with = bytes + value.bytes();
                if with > budget.sample_bytes {
                    break;
                }
                bytes = with;
                count += 1;
            }
            // A value that is added later, with a key below that of the first value that does not
            // fit, may fit.
            self.last = self
                .kept
                .get(count)
                .map_or(self.last, |(key, _)| key.saturating_sub(1));
            self.kept.truncate(count);
            self.bytes = bytes;
        }
    }

    /// Adds the values that another sample keeps, and cuts the union to the budget.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        self.seen += other.seen;
        self.last = self.last.min(other.last);
        let last = self.last;
        self.kept.retain(|(key, _)| *key <= last);
        self.kept
            .extend(other.kept.into_iter().filter(|(key, _)| *key <= last));
        self.bytes = self.kept.iter().map(|(_, value)| value.bytes()).sum();
        self.cut(budget);
    }

    /// Returns the number of values that were added, including the dropped ones.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns whether no value was dropped.
    pub(crate) fn is_all(&self) -> bool {
        self.kept.len() as u64 == self.seen
    }

    /// Returns the kept values in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.kept.iter().map(|(_, value)| value)
    }

    /// Returns the kept values for changes that leave their sizes as they are.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.kept.iter_mut().map(|(_, value)| value)
    }

    /// Returns the kept values in the order of their keys, which does not depend on threads.
    pub(crate) fn into_sorted(mut self) -> Vec<T> {
        self.kept.sort_unstable_by_key(|(key, _)| *key);
        self.kept.into_iter().map(|(_, value)| value).collect()
    }
}

/// Serializes values in the order of their keys, so that equal samples have equal bytes.
fn by_key<T: Serialize, S: Serializer>(
    kept: &[(u64, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut sorted: Vec<_> = kept.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SampleValue for Box<[u8]> {
        fn bytes(&self) -> usize {
            self.len() + 40
        }
    }

    fn place(record: u64) -> Place {
        Place {
            shard: 3,
            record,
            offset: None,
        }
    }

    fn budget(sample: usize) -> Budget {
        Budget {
            sample,
            sample_bytes: 4_000,
            distinct: 0,
            distinct_bytes: 0,
        }
    }

    fn sampled<T: SampleValue>(
        records: impl Iterator<Item = u64>,
        size: usize,
        value: impl Fn(u64) -> T,
    ) -> ValueSample<T> {
        let mut sample = ValueSample::default();
        for record in records {
            let key = SampleKey::of_record(place(record))
                .of_list(0, 0)
                .of_value(0);
            sample.add(key, budget(size), || value(record));
        }
        sample
    }

    fn sample(records: impl Iterator<Item = u64>, size: usize) -> ValueSample<u64> {
        sampled(records, size, |record| record)
    }

    fn sorted<T: SampleValue + Clone + Ord>(sample: &ValueSample<T>) -> Vec<T> {
        let mut values: Vec<_> = sample.values().cloned().collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn samples_of_parts_merge_in_any_order() {
        for count in [10, 64, 65, 5_000] {
            let mut whole = sample(0..count, 64);
            whole.cut(budget(64));
            let odd = sample((0..count).rev().filter(|i| i % 2 == 1), 64);
            let even = sample((0..count).step_by(2), 64);
            let mut merged = even;
            merged.merge(odd, budget(64));
            merged.cut(budget(64));
            assert_eq!(sorted(&merged), sorted(&whole), "{count}");
            assert_eq!(merged.seen(), count);
            assert_eq!(whole.is_all(), count <= 64);
        }
    }

    #[test]
    fn long_values_are_bounded_in_bytes_in_any_order() {
        let value =
            |record: u64| vec![record as u8; 100 + 37 * (record % 9) as usize].into_boxed_slice();
        for count in [3, 10, 64, 5_000] {
            let mut whole = sampled(0..count, 64, value);
            assert!(whole.bytes < 2 * 4_000);
            whole.cut(budget(64));
            let odd = sampled((0..count).rev().filter(|i| i % 2 == 1), 64, value);
            let even = sampled((0..count).step_by(2), 64, value);
            let mut merged = odd;
            merged.merge(even, budget(64));
            assert_eq!(sorted(&merged), sorted(&whole), "{count}");
            assert_eq!(
                merged.bytes,
                whole.values().map(SampleValue::bytes).sum::<usize>()
            );
            assert!(
                whole.bytes <= 4_000 && (whole.bytes > 3_500 || whole.is_all()),
                "{count}: {}",
                whole.bytes
            );
        }
    }

    #[test]
    fn long_values_are_the_longest_prefix_whatever_the_order() {
        // Few values fit, so that parts have different first values that do not fit.
        let value = |record: u64| vec![0_u8; (record * 7_919 % 1_900) as usize].into_boxed_slice();
        let key = |record: u64| {
            SampleKey::of_record(place(record))
                .of_list(0, 0)
                .of_value(0)
        };
        for count in 1..60 {
            let mut records: Vec<_> = (0..count).collect();
            records.sort_unstable_by_key(|record| key(*record));
            let mut bytes = 0;
            let fits = |record: &u64| {
                bytes += value(*record).bytes();
                bytes <= 4_000
            };
            let mut longest: Vec<_> = records
                .into_iter()
                .take_while(fits)
                .map(|record| value(record).len())
                .collect();
            longest.sort_unstable();
            for parts in 1..=count {
                let mut merged = ValueSample::default();
                for part in 0..parts {
                    let records = (0..count).filter(|record| record % parts == part);
                    merged.merge(sampled(records, 64, value), budget(64));
                }
                let lengths: Vec<_> = sorted(&merged).iter().map(|value| value.len()).collect();
                assert_eq!(lengths, longest, "{count} values in {parts} parts");
            }
        }
    }

    #[test]
    fn a_sample_can_be_cut_to_a_smaller_budget() {
        let mut large = sample(0..1_000, 100);
        large.cut(budget(100));
        large.cut(budget(10));
        let mut small = sample(0..1_000, 10);
        small.cut(budget(10));
        assert_eq!(sorted(&large), sorted(&small));
    }

    #[test]
    fn a_sample_is_spread_over_all_records() {
        let mut sample = sample(0..100_000, 1_000);
        sample.cut(budget(1_000));
        let median = sorted(&sample)[500];
        assert!((45_000..55_000).contains(&median), "{median}");
    }
}
