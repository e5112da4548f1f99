//! Quantiles of a sample, and the two kinds of histograms of a `DatasetFeatureStatistics` message.

/// The sorted values of a sample.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    sorted: Vec<f64>,
    /// Number of values that the sample represents.
    count: f64,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct HistogramBucket {
    /// The lower bound, exclusive except in the first bucket.
    pub low: f64,
    /// The upper bound, inclusive.
    pub high: f64,
    /// Number of values in the bucket; a fraction where it is extrapolated from a sample.
    pub count: f64,
}

impl Quantiles {
    /// Sorts the values of a sample that represents `count` values.
    pub(crate) fn new(values: impl Iterator<Item = f64>, count: u64) -> Self {
        let mut sorted: Vec<_> = values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            sorted,
            count: count as f64,
        }
    }

    /// Returns the smallest value such that at least this share (0 to 1) of the values are less
    /// than or equal to it; NaN if there are none.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let index = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted
            .get(index.saturating_sub(1).min(last))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Returns the median: the middle value, or the mean of the two middle values.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        match (
            self.sorted.get(middle.wrapping_sub(1)),
            self.sorted.get(middle),
        ) {
            (Some(low), Some(high)) if self.sorted.len().is_multiple_of(2) => low.midpoint(*high),
            (_, Some(middle)) => *middle,
            _ => f64::NAN,
        }
    }

    /// Returns the skewness of the finite values: the third central moment, divided by the third
    /// power of the standard deviation. NaN if they do not vary.
    pub(crate) fn skewness(&self) -> f64 {
        let finite = self.finite();
        // Moments of values of a magnitude up to 1 cannot overflow.
        let scale = finite.iter().copied().map(f64::abs).fold(0.0, f64::max);
        let sum: f64 = finite.iter().map(|value| value / scale).sum();
        let mean = sum / finite.len() as f64;
        let variance = central_moment(finite, scale, mean, 2);
        // A remainder of rounding is no variation.
        if variance > 1e-24 {
            central_moment(finite, scale, mean, 3) / variance.powf(1.5)
        } else {
            f64::NAN
        }
    }

    /// Returns a histogram whose buckets have equal counts.
    pub(crate) fn equal_counts(&self, buckets: u32) -> Vec<HistogramBucket> {
        if self.sorted.is_empty() {
            return Vec::new();
        }
        let all = f64::from(buckets);
        let mut found = Vec::with_capacity(buckets as usize);
        for index in 0..buckets {
            found.push(HistogramBucket {
                low: self.at(f64::from(index) / all),
                high: self.at(f64::from(index + 1) / all),
                count: self.count / all,
            });
        }
        found
    }

    /// Returns the finite values, sorted.
    pub(crate) fn finite(&self) -> &[f64] {
        let first = self
            .sorted
            .partition_point(|value| *value == f64::NEG_INFINITY);
        let last = self.sorted.partition_point(|value| *value < f64::INFINITY);
        self.sorted.get(first..last).unwrap_or_default()
    }

    /// Returns the number of values that one value of the sample represents.
    pub(crate) fn weight(&self) -> f64 {
        self.count / self.sorted.len().max(1) as f64
    }

    /// Returns a histogram whose buckets have equal widths, from the smallest to the largest finite
    /// value. Infinite values are counted in the first and the last bucket, whose outer bound is
    /// then infinite.
    pub(crate) fn equal_widths(&self, buckets: u32) -> Vec<HistogramBucket> {
        let finite: Vec<_> = self
            .sorted
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        let weight = self.count / self.sorted.len() as f64;
        let below = self
            .sorted
            .iter()
            .filter(|value| **value == f64::NEG_INFINITY)
            .count() as f64
            * weight;
        let above = self
            .sorted
            .iter()
            .filter(|value| **value == f64::INFINITY)
            .count() as f64
            * weight;
        let (Some(&low), Some(&high)) = (finite.first(), finite.last()) else {
            return match (self.sorted.first(), self.sorted.last()) {
                (Some(&low), Some(&high)) => vec![HistogramBucket {
                    low,
                    high,
                    count: self.count,
                }],
                _ => Vec::new(),
            };
        };
        let buckets = if low == high { 1 } else { buckets };
        let mut rest = finite.as_slice();
        let mut found = Vec::with_capacity(buckets as usize);
        for index in 0..buckets {
            let from = bound_between(low, high, index, buckets);
            let to = bound_between(low, high, index + 1, buckets);
            let count = if index + 1 == buckets {
                rest.len()
            } else {
                rest.partition_point(|value| *value <= to)
            };
            rest = rest.get(count..).unwrap_or_default();
            found.push(HistogramBucket {
                low: from,
                high: to,
                count: count as f64 * weight,
            });
        }
        if let (Some(first), true) = (found.first_mut(), below > 0.0) {
            (first.low, first.count) = (f64::NEG_INFINITY, first.count + below);
        }
        if let (Some(last), true) = (found.last_mut(), above > 0.0) {
            (last.high, last.count) = (f64::INFINITY, last.count + above);
        }
        found
    }
}

/// Returns a central moment of values that are divided by `scale`; `mean` is the mean of these.
fn central_moment(values: &[f64], scale: f64, mean: f64, power: i32) -> f64 {
    let sum: f64 = values
        .iter()
        .map(|value| (value / scale - mean).powi(power))
        .sum();
    sum / values.len() as f64
}

/// Returns a bound of buckets of equal width: the lower one of bucket `index`. Interpolates without
/// `high - low`, which may overflow.
fn bound_between(low: f64, high: f64, index: u32, buckets: u32) -> f64 {
    if index == buckets {
        return high;
    }
    let share = f64::from(index) / f64::from(buckets);
    low * (1.0 - share) + high * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values_are_among_them() {
        let quantiles = Quantiles::new([3.0, 1.0, 2.0, 4.0].into_iter(), 4);
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|share| quantiles.at(share)),
            [1.0, 1.0, 2.0, 4.0]
        );
        assert_eq!(quantiles.median(), 2.5);
        assert!(Quantiles::new(std::iter::empty(), 0).median().is_nan());
    }

    #[test]
    fn skewness_is_that_of_the_distribution() {
        let of =
            |values: &[f64]| Quantiles::new(values.iter().copied(), values.len() as u64).skewness();
        assert!(of(&[1.0, 2.0, 3.0]).abs() < 1e-12);
        // A share p of ones among zeros: (1 - 2 p) / sqrt(p (1 - p)).
        let few = [[1.0].as_slice(), &[0.0; 9]].concat();
        assert!((of(&few) - 0.8 / 0.3).abs() < 1e-9, "{}", of(&few));
        assert!(
            (of(&few.iter().map(|value| -1e300 * value).collect::<Vec<_>>()) + 0.8 / 0.3).abs()
                < 1e-9
        );
        assert!(of(&[5.0, 5.0]).is_nan() && of(&[]).is_nan() && of(&[f64::INFINITY, 1.0]).is_nan());
    }

    #[test]
    fn buckets_hold_all_values() {
        let quantiles = Quantiles::new((0..1_000).map(f64::from), 10_000);
        for buckets in [quantiles.equal_counts(10), quantiles.equal_widths(10)] {
            assert_eq!(buckets.len(), 10);
            assert_eq!((buckets[0].low, buckets[9].high), (0.0, 999.0));
            assert_eq!(
                buckets.iter().map(|bucket| bucket.count).sum::<f64>(),
                10_000.0
            );
        }
    }

    #[test]
    fn equal_and_infinite_values_have_buckets() {
        let one = Quantiles::new([5.0, 5.0].into_iter(), 2).equal_widths(10);
        assert_eq!(
            one,
            [HistogramBucket {
                low: 5.0,
                high: 5.0,
                count: 2.0
            }]
        );
        let values = [f64::NEG_INFINITY, 0.0, 1.0, f64::INFINITY, f64::INFINITY];
        let buckets = Quantiles::new(values.into_iter(), 5).equal_widths(2);
        assert_eq!(
            buckets[0],
            HistogramBucket {
                low: f64::NEG_INFINITY,
                high: 0.5,
                count: 2.0
            }
        );
        assert_eq!(
            buckets[1],
            HistogramBucket {
                low: 0.5,
                high: f64::INFINITY,
                count: 3.0
            }
        );
        let wide = Quantiles::new([f64::MIN, f64::MAX].into_iter(), 2).equal_widths(10);
        assert!(
            wide.iter()
                .all(|bucket| bucket.low.is_finite() && bucket.high.is_finite()),
            "{wide:?}"
        );
        assert_eq!(
            Quantiles::new([f64::INFINITY].into_iter(), 1)
                .equal_widths(10)
                .len(),
            1
        );
    }
}
