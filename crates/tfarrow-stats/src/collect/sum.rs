//! Sums of floats with compensated rounding, so that the order of the summands affects the last digits at most.

/// A sum of `f64` as an unevaluated sum of two: `low` accumulates the rounding errors of `high` (Neumaier's variant of
/// Kahan summation).
///
/// ```text
/// summand      1e16      1.0      -1e16
/// high         1e16      1e16      0.0
/// low          0.0       1.0       1.0         value() = high + low = 1.0
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompensatedSum {
    high: f64,
    low: f64,
}

impl CompensatedSum {
    /// Adds a finite value.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let sum = self.high + value;
        let taken = sum - self.high;
        self.low += (self.high - (sum - taken)) + (value - taken);
        self.high = sum;
    }

    /// Adds the square of a finite value. Its rounding error, which the fused multiply-add computes exactly, goes to
    /// `low`.
    #[inline]
    pub(crate) fn add_square(&mut self, value: f64) {
        let square = value * value;
        self.add(square);
        self.low += value.mul_add(value, -square);
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: Self) {
        self.add(other.high);
        self.low += other.low;
    }

    /// Returns the sum, rounded.
    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }

    /// Returns the population variance of `count` values, where `self` is the sum of their squares and `sum` their sum.
    pub(crate) fn variance(self, sum: Self, count: f64) -> f64 {
        self.normal().minus(sum.normal().square().divided(count)).max(0.0) / count
    }

    /// Returns the same sum where `high` is the sum rounded to nearest and `low` the rounding error.
    fn normal(self) -> Self {
        let mut normal = Self { high: self.high, low: 0.0 };
        normal.add(self.low);
        normal
    }

    /// Returns the square as a sum of two.
    fn square(self) -> Self {
        let high = self.high * self.high;
        let lost = self.high.mul_add(self.high, -high);
        Self { high, low: lost + 2.0 * self.high * self.low + self.low * self.low }
    }

    /// Returns the quotient by a float as a sum of two.
    fn divided(self, by: f64) -> Self {
        let high = self.high / by;
        let rest = (-high).mul_add(by, self.high);
        Self { high, low: (rest + self.low) / by }
    }

    /// Returns the difference, rounded.
    fn minus(self, other: Self) -> f64 {
        let mut difference = self;
        difference.add(-other.high);
        difference.high + (difference.low - other.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: impl Iterator<Item = f64>) -> (CompensatedSum, CompensatedSum) {
        let (mut sum, mut squares) = (CompensatedSum::default(), CompensatedSum::default());
        for value in values {
            sum.add(value);
            squares.add_square(value);
        }
        (sum, squares)
    }

    #[test]
    fn small_summands_are_not_lost_beside_large_ones() {
        let (sum, _) = sums([1e16, 1.0, -1e16].into_iter());
        assert_eq!(sum.value(), 1.0);
    }

    #[test]
    fn the_variance_of_large_numbers_with_small_differences_is_accurate() {
        // Seconds since 1970, a day long: 0, 1, .., 86399.
        let day = 86_400;
        let (sum, squares) = sums((0..day).map(|second| 1.7e9 + f64::from(second)));
        let expect = (f64::from(day).powi(2) - 1.0) / 12.0;
        let found = squares.variance(sum, f64::from(day));
        assert!((found / expect - 1.0).abs() < 1e-9, "{found} {expect}");
    }

    #[test]
    fn the_variance_of_one_repeated_large_number_is_zero_up_to_rounding() {
        let number = 1_700_000_000_123_456_789_i64 as f64;
        let (sum, squares) = sums(std::iter::repeat_n(number, 3_000_000));
        assert!(squares.variance(sum, 3e6).sqrt() < 1e-12 * number, "{}", squares.variance(sum, 3e6).sqrt());
    }

    #[test]
    fn the_result_does_not_depend_on_the_order() {
        let values: Vec<f64> = (0..10_000).map(|i| (f64::from(i) * 0.7).sin() * 10f64.powi(i % 12)).collect();
        let (forth, squares_forth) = sums(values.iter().copied());
        let (back, squares_back) = sums(values.iter().rev().copied());
        assert_eq!(forth.value(), back.value());
        assert_eq!(squares_forth.value(), squares_back.value());
    }
}
