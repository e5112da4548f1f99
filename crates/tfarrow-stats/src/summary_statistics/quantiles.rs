//! Quantiles of a sample, and the histograms that `DatasetFeatureStatistics` has.

/// Sorted values that stand for all there are.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    sorted: Vec<f64>,
    /// How many values these stand for.
    count: f64,
}

/// A part of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct HistogramBucket {
    /// The lower bound.
    pub low: f64,
    /// The upper bound; values equal to it are in this bucket, and not in the next.
    pub high: f64,
    /// How many values there are, of all.
    pub count: f64,
}

impl Quantiles {
    /// Of these values, which stand for `count`.
    pub(crate) fn new(values: impl Iterator<Item = f64>, count: u64) -> Self {
        let mut sorted: Vec<_> = values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { sorted, count: count as f64 }
    }

    /// The value below which this share of all is, from 0 to 1; NaN where there are none.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let index = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(index.saturating_sub(1).min(last)).copied().unwrap_or(f64::NAN)
    }

    /// The middle value, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        match (self.sorted.get(middle.wrapping_sub(1)), self.sorted.get(middle)) {
            (Some(low), Some(high)) if self.sorted.len().is_multiple_of(2) => low.midpoint(*high),
            (_, Some(middle)) => *middle,
            _ => f64::NAN,
        }
    }

    /// Buckets that hold about as many values each, from the smallest to the largest.
    pub(crate) fn equal_counts(&self, buckets: u32) -> Vec<HistogramBucket> {
        if self.sorted.is_empty() {
            return Vec::new();
        }
        let bound = |index: u32| self.at(f64::from(index) / f64::from(buckets));
        let count = self.count / f64::from(buckets);
        (0..buckets).map(|index| HistogramBucket { low: bound(index), high: bound(index + 1), count }).collect()
    }

    /// Buckets of one width, from the smallest finite value to the largest; values that are infinite are in the first
    /// and the last, which then have no bound.
    pub(crate) fn equal_widths(&self, buckets: u32) -> Vec<HistogramBucket> {
        let finite: Vec<_> = self.sorted.iter().copied().filter(|value| value.is_finite()).collect();
        let weight = self.count / self.sorted.len() as f64;
        let below = self.sorted.iter().filter(|value| **value == f64::NEG_INFINITY).count() as f64 * weight;
        let above = self.sorted.iter().filter(|value| **value == f64::INFINITY).count() as f64 * weight;
        let (Some(&low), Some(&high)) = (finite.first(), finite.last()) else {
            return match (self.sorted.first(), self.sorted.last()) {
                (Some(&low), Some(&high)) => vec![HistogramBucket { low, high, count: self.count }],
                _ => Vec::new(),
            };
        };
        let buckets = if low == high { 1 } else { buckets };
        // The difference of the two may be more than a float holds.
        let bound = |index: u32| {
            let share = f64::from(index) / f64::from(buckets);
            if index == buckets { high } else { low * (1.0 - share) + high * share }
        };
        let mut rest = finite.as_slice();
        let mut found: Vec<_> = (0..buckets)
            .map(|index| {
                let high = bound(index + 1);
                let count =
                    if index + 1 == buckets { rest.len() } else { rest.partition_point(|value| *value <= high) };
                rest = rest.get(count..).unwrap_or_default();
                HistogramBucket { low: bound(index), high, count: count as f64 * weight }
            })
            .collect();
        if let (Some(first), true) = (found.first_mut(), below > 0.0) {
            (first.low, first.count) = (f64::NEG_INFINITY, first.count + below);
        }
        if let (Some(last), true) = (found.last_mut(), above > 0.0) {
            (last.high, last.count) = (f64::INFINITY, last.count + above);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values_are_those_values() {
        let quantiles = Quantiles::new([3.0, 1.0, 2.0, 4.0].into_iter(), 4);
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| quantiles.at(share)), [1.0, 1.0, 2.0, 4.0]);
        assert_eq!(quantiles.median(), 2.5);
        assert!(Quantiles::new(std::iter::empty(), 0).median().is_nan());
    }

    #[test]
    fn buckets_hold_all_values() {
        let quantiles = Quantiles::new((0..1_000).map(f64::from), 10_000);
        for buckets in [quantiles.equal_counts(10), quantiles.equal_widths(10)] {
            assert_eq!(buckets.len(), 10);
            assert_eq!((buckets[0].low, buckets[9].high), (0.0, 999.0));
            assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<f64>(), 10_000.0);
        }
    }

    #[test]
    fn odd_values_have_their_buckets() {
        let one = Quantiles::new([5.0, 5.0].into_iter(), 2).equal_widths(10);
        assert_eq!(one, [HistogramBucket { low: 5.0, high: 5.0, count: 2.0 }]);
        let values = [f64::NEG_INFINITY, 0.0, 1.0, f64::INFINITY, f64::INFINITY];
        let buckets = Quantiles::new(values.into_iter(), 5).equal_widths(2);
        assert_eq!(buckets[0], HistogramBucket { low: f64::NEG_INFINITY, high: 0.5, count: 2.0 });
        assert_eq!(buckets[1], HistogramBucket { low: 0.5, high: f64::INFINITY, count: 3.0 });
        let wide = Quantiles::new([f64::MIN, f64::MAX].into_iter(), 2).equal_widths(10);
        assert!(wide.iter().all(|bucket| bucket.low.is_finite() && bucket.high.is_finite()), "{wide:?}");
        assert_eq!(Quantiles::new([f64::INFINITY].into_iter(), 1).equal_widths(10).len(), 1);
    }
}
