//! Distributions of numbers in the form of charts: histograms of two data sets with common buckets,
//! and percentiles.
//!
//! The histograms of [`NumberStatistics`](super::NumberStatistics) are TFDV's, with ten buckets of
//! each data set's own.

use std::collections::BTreeMap;

use tfarrow_codec::{Kind, Role};

use super::{quantiles::Quantiles, summarize::number_quantiles};
use crate::collect::{Statistics, feature::FeatureAccumulator};

/// Numbers of buckets of a histogram: twice the square root of the number of values, within these
/// limits.
const MIN_BUCKETS: usize = 8;
const MAX_BUCKETS: usize = 30;

/// The percentages at which a [`DistributionSide`] has percentiles.
pub const PERCENTAGES: [f64; 15] = [
    0.0, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0,
];

/// The distribution of the numbers of one feature and kind, in a data set and in its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The name of the feature.
    pub name: String,
    /// Whether it is a feature list.
    pub is_list: bool,
    /// The kind, `float_list` or `int64_list`.
    pub kind: &'static str,
    /// The bounds of the histogram's buckets, one more than there are buckets: up to 30 buckets of
    /// equal width, from the smallest to the largest finite value of both data sets. Those of
    /// integers lie between integers (`-0.5`, `0.5`, `1.5` for the values 0 and 1). Empty if there
    /// are no two different finite values.
    pub bounds: Vec<f64>,
    /// The distribution in the data set; `None` if it does not have the feature with this kind.
    pub now: Option<DistributionSide>,
    /// The distribution in the baseline.
    pub before: Option<DistributionSide>,
}

/// The distribution in one data set.
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionSide {
    /// The number of values in each bucket; fractions where they are extrapolated from a sample.
    pub counts: Vec<f64>,
    /// The percentiles at [`PERCENTAGES`], then the maximum.
    pub percentiles: Vec<f64>,
}

impl Statistics {
    /// Computes the distributions of all numbers, sorted by name, role and kind.
    pub fn distributions(&self, baseline: Option<&Self>) -> Vec<Distribution> {
        let mut all: BTreeMap<_, [Option<Quantiles>; 2]> = BTreeMap::new();
        for (side, statistics) in [Some(self), baseline].into_iter().enumerate() {
            for (seen, values) in statistics.into_iter().flat_map(Self::features) {
                for (kind, quantiles) in quantiles(values) {
                    let key = (
                        seen.name.as_str(),
                        seen.role == Role::Sequence,
                        kind as usize,
                    );
                    if let Some(held) = all.entry(key).or_default().get_mut(side) {
                        *held = Some(quantiles);
                    }
                }
            }
        }
        let mut distributions = Vec::with_capacity(all.len());
        for ((name, is_list, index), sides) in all {
            let kind = Kind::ALL.get(index).copied().unwrap_or(Kind::Int64);
            distributions.push(distribution(name, is_list, kind, sides));
        }
        distributions
    }
}

/// Returns the quantiles of the numbers of each kind.
fn quantiles(values: &FeatureAccumulator) -> impl Iterator<Item = (Kind, Quantiles)> {
    let floats = values
        .floats
        .as_deref()
        .map(|floats| (Kind::Float, number_quantiles(floats)));
    let ints = values
        .ints
        .as_deref()
        .map(|ints| (Kind::Int64, number_quantiles(ints)));
    floats.into_iter().chain(ints)
}

fn distribution(
    name: &str,
    is_list: bool,
    kind: Kind,
    sides: [Option<Quantiles>; 2],
) -> Distribution {
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    let mut values = 0_usize;
    for side in sides.iter().flatten() {
        let finite = side.finite();
        if let (Some(first), Some(last)) = (finite.first(), finite.last()) {
            low = low.min(*first);
            high = high.max(*last);
        }
        values = values.max(finite.len());
    }
    let buckets = (2 * values.isqrt()).clamp(MIN_BUCKETS, MAX_BUCKETS);
    let bounds = match low < high {
        true if kind == Kind::Int64 => integer_bounds(low, high),
        true => equal_bounds(low, high, buckets),
        false => Vec::new(),
    };
    let [now, before] = sides.map(|side| side.map(|side| DistributionSide::of(&side, &bounds)));
    Distribution {
        name: name.to_owned(),
        is_list,
        kind: kind.name(),
        bounds,
        now,
        before,
    }
}

/// Returns the bounds of buckets of equal width.
fn equal_bounds(low: f64, high: f64, buckets: usize) -> Vec<f64> {
    let mut bounds = Vec::with_capacity(buckets + 1);
    for index in 0..buckets {
        let share = index as f64 / buckets as f64;
        // Interpolates without `high - low`, which may overflow.
        bounds.push(low * (1.0 - share) + high * share);
    }
    bounds.push(high);
    bounds
}

/// Returns the bounds of buckets of integers, which lie between integers. All buckets have the same
/// number of integers if few values allow it: otherwise bars of even data would be uneven.
fn integer_bounds(low: f64, high: f64) -> Vec<f64> {
    // Integers of this size have no half between them, and are as dense as floats.
    if high - low > 1e15 || low.abs().max(high.abs()) > 1e15 {
        return equal_bounds(low, high, MAX_BUCKETS);
    }
    let first = low - 0.5;
    let values = high - low + 1.0;
    let buckets = match values as usize {
        few @ ..=MAX_BUCKETS => few,
        _ => (MAX_BUCKETS / 2..=MAX_BUCKETS)
            .rev()
            .find(|buckets| values % *buckets as f64 == 0.0)
            .unwrap_or(MAX_BUCKETS),
    };
    // Of so many values, a bucket with one more than its neighbours does not stand out.
    if values % buckets as f64 == 0.0 || values > 20.0 * MAX_BUCKETS as f64 {
        return equal_bounds(first, high + 0.5, buckets);
    }
    let width = (values / MAX_BUCKETS as f64).ceil();
    (0..=(values / width).ceil() as usize)
        .map(|index| first + index as f64 * width)
        .collect()
}

impl DistributionSide {
    fn of(quantiles: &Quantiles, bounds: &[f64]) -> Self {
        let mut rest = quantiles.finite();
        let mut counts = Vec::new();
        for (index, bound) in bounds.iter().enumerate().skip(1) {
            let is_last = index + 1 == bounds.len();
            let count = if is_last {
                rest.len()
            } else {
                rest.partition_point(|value| value <= bound)
            };
            rest = rest.get(count..).unwrap_or_default();
            counts.push(count as f64 * quantiles.weight());
        }
        let percentiles = PERCENTAGES
            .into_iter()
            .chain([100.0])
            .map(|percent| quantiles.at(percent / 100.0))
            .collect();
        Self {
            counts,
            percentiles,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, now: &[f64], before: Option<&[f64]>) -> Distribution {
        let quantiles =
            |values: &[f64]| Quantiles::new(values.iter().copied(), 10 * values.len() as u64);
        distribution(
            "x",
            false,
            kind,
            [Some(quantiles(now)), before.map(quantiles)],
        )
    }

    #[test]
    fn integers_have_buckets_of_their_own() {
        let found = of(Kind::Int64, &[0.0, 3.0, 3.0, 1.0], None);
        assert_eq!(found.bounds, [-0.5, 0.5, 1.5, 2.5, 3.5]);
        assert_eq!(found.now.unwrap().counts, [10.0, 10.0, 0.0, 20.0]);
        let wide: Vec<f64> = (0..100).map(f64::from).collect();
        let found = of(Kind::Int64, &wide, None);
        assert_eq!((found.bounds.len(), found.bounds[1]), (26, 3.5));
        assert!(found.now.unwrap().counts.iter().all(|count| *count == 40.0));
        let bounds = of(Kind::Int64, &[0.0, 36.0], None).bounds;
        assert_eq!((bounds.len(), bounds[1], bounds[19]), (20, 1.5, 37.5));
        let bounds = of(Kind::Int64, &[1.0, 997.0], None).bounds;
        assert_eq!((bounds.len(), bounds[0], bounds[30]), (31, 0.5, 997.5));
    }

    #[test]
    fn both_data_sets_have_the_same_buckets() {
        let found = of(Kind::Float, &[0.0, 1.0], Some(&[29.5, 30.0, f64::INFINITY]));
        assert_eq!(
            (found.bounds.len(), found.bounds[0], found.bounds[8]),
            (9, 0.0, 30.0)
        );
        let now = found.now.unwrap();
        let before = found.before.unwrap();
        assert_eq!((now.counts[0], now.counts[7]), (20.0, 0.0));
        // Infinite values are in no bucket.
        assert_eq!(
            (before.counts[7], before.counts.iter().sum::<f64>()),
            (20.0, 20.0)
        );
        assert_eq!(
            (before.percentiles.len(), before.percentiles[15]),
            (16, f64::INFINITY)
        );
    }

    #[test]
    fn constant_and_extreme_values_have_finite_bounds() {
        assert!(of(Kind::Float, &[5.0, 5.0], None).bounds.is_empty());
        assert!(of(Kind::Float, &[f64::INFINITY], None).bounds.is_empty());
        for kind in [Kind::Float, Kind::Int64] {
            let found = of(kind, &[f64::MIN, f64::MAX], None);
            assert!(
                found.bounds.len() > MIN_BUCKETS
                    && found.bounds.iter().all(|bound| bound.is_finite()),
                "{found:?}"
            );
        }
    }
}
