//! Sums of numbers without rounding, so that they depend neither on the order of the summands nor
//! on how these are divided among threads and machines.

use serde::{Deserialize, Serialize};

/// A number that can be added without rounding.
pub(crate) trait Summand: Copy {
    /// The exponent of the power of two of which all numbers are multiples.
    const UNIT: i32;

    /// Returns the magnitude of a finite number in units, as an integer that is multiplied by 2 to
    /// the power of the second part.
    fn magnitude(self) -> (u64, u32);

    /// Returns whether the number is less than 0, or -0.
    fn is_negative(self) -> bool;
}

impl Summand for i64 {
    const UNIT: i32 = 0;

    fn magnitude(self) -> (u64, u32) {
        (self.unsigned_abs(), 0)
    }

    fn is_negative(self) -> bool {
        self < 0
    }
}

impl Summand for f32 {
    /// The smallest subnormal number.
    const UNIT: i32 = -149;

    #[inline]
    fn magnitude(self) -> (u64, u32) {
        let exponent = self.to_bits() >> 23 & 0xff;
        let fraction = self.to_bits() & 0x7f_ffff;
        match exponent {
            0 => (u64::from(fraction), 0),
            _ => (u64::from(fraction | 0x80_0000), exponent - 1),
        }
    }

    fn is_negative(self) -> bool {
        self.is_sign_negative()
    }
}

/// Number of 64-bit limbs of a sum: enough for 2^64 squares of the largest float32, in units of the
/// smallest one.
const LIMBS: usize = 10;

/// A sum of numbers that are not negative, as an integer multiple of a unit, the power of two that
/// divides all of them.
///
/// ```text
/// float32    value   mantissa * 2^shift units of 2^-149     bits 0 to 276, and 64 for 2^64 summands
///            square  mantissa² * 2^(2 shift) units of 2^-298      0 to 553
/// int64      value   magnitude units of 1                         0 to 63
///            square  magnitude² units of 1                        0 to 126
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ExactSum([u64; LIMBS]);

impl ExactSum {
    /// Adds `value * 2^shift` units. `value * 2^(shift % 64)` has at most 128 bits.
    #[inline]
    fn add(&mut self, value: u128, shift: u32) {
        let Some([low, high, rest @ ..]) = self.0.get_mut((shift / 64) as usize..) else {
            return;
        };
        let held = u128::from(*low) | u128::from(*high) << 64;
        let (sum, mut carry) = held.overflowing_add(value << (shift % 64));
        (*low, *high) = (sum as u64, (sum >> 64) as u64);
        for limb in rest {
            if !carry {
                break;
            }
            (*limb, carry) = limb.overflowing_add(1);
        }
    }

    /// Adds another sum of the same unit.
    fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, more) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = limb.overflowing_add(more);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
    }
}

/// Returns the product of two integers.
fn product(one: &[u64; LIMBS], other: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
    let mut product = [0; 2 * LIMBS];
    for (shift, limb) in one.iter().enumerate() {
        let mut carry = 0;
        // The last carry belongs to the limb above those of `other`.
        for (place, factor) in product.iter_mut().skip(shift).zip(other.iter().chain([&0])) {
            let sum = u128::from(*place) + u128::from(*limb) * u128::from(*factor) + carry;
            (*place, carry) = (sum as u64, sum >> 64);
        }
    }
    product
}

/// Returns whether an integer is less than another one.
fn is_less<const N: usize>(one: &[u64; N], other: &[u64; N]) -> bool {
    // The last limb is the most significant one.
    one.iter().rev().lt(other.iter().rev())
}

/// Returns the distance of two integers.
fn distance<const N: usize>(one: &[u64; N], other: &[u64; N]) -> [u64; N] {
    let (mut rest, less) = if is_less(one, other) {
        (*other, one)
    } else {
        (*one, other)
    };
    let mut borrow = false;
    for (limb, less) in rest.iter_mut().zip(less) {
        let (left, first) = limb.overflowing_sub(*less);
        let (left, second) = left.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (left, first || second);
    }
    rest
}

/// Returns an integer multiplied by 2^`unit`, rounded to nearest.
fn rounded(limbs: &[u64], unit: i32) -> f64 {
    let Some(top) = limbs.iter().rposition(|limb| *limb > 0) else {
        return 0.0;
    };
    let first = top.saturating_sub(1);
    let (low, high) = limbs.split_at(first);
    let mut value = high
        .iter()
        .take(2)
        .rev()
        .fold(0_u128, |value, limb| value << 64 | u128::from(*limb));
    // The lower limbs only decide between two floats that are equally near.
    value |= u128::from(low.iter().any(|limb| *limb > 0));
    value as f64 * power_of_two(unit + 64 * first as i32)
}

/// Returns 2^`exponent`, for exponents of normal floats.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// The sums of finite numbers and of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moments {
    positive: ExactSum,
    /// The sum of the magnitudes of negative numbers.
    negative: ExactSum,
    squares: ExactSum,
}

impl Moments {
    /// Adds a finite number.
    #[inline]
    pub(crate) fn add<T: Summand>(&mut self, value: T) {
        let (magnitude, shift) = value.magnitude();
        let side = if value.is_negative() {
            &mut self.negative
        } else {
            &mut self.positive
        };
        side.add(u128::from(magnitude), shift);
        self.squares
            .add(u128::from(magnitude) * u128::from(magnitude), 2 * shift);
    }

    /// Adds the sums of other numbers.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.positive.merge(&other.positive);
        self.negative.merge(&other.negative);
        self.squares.merge(&other.squares);
    }

    /// Returns the sum of the numbers, rounded. They have the type `T`.
    pub(crate) fn sum<T: Summand>(&self) -> f64 {
        let magnitude = rounded(&self.magnitude_of_sum(), T::UNIT);
        if is_less(&self.positive.0, &self.negative.0) {
            -magnitude
        } else {
            magnitude
        }
    }

    /// Returns the population variance of `count` numbers of the type `T`, rounded.
    ///
    /// ```text
    /// count * sum of squares - sum²     exact, so that large numbers with small differences have the right variance
    /// -----------------------------
    ///            count²
    /// ```
    pub(crate) fn variance<T: Summand>(&self, count: u64) -> f64 {
        let mut factor = [0; LIMBS];
        factor[0] = count;
        let sum = self.magnitude_of_sum();
        let numerator = distance(&product(&self.squares.0, &factor), &product(&sum, &sum));
        rounded(&numerator, 2 * T::UNIT) / count as f64 / count as f64
    }

    /// Returns the magnitude of the sum in units.
    fn magnitude_of_sum(&self) -> [u64; LIMBS] {
        distance(&self.positive.0, &self.negative.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments<T: Summand>(values: impl IntoIterator<Item = T>) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }

    #[test]
    fn small_summands_are_not_lost_beside_large_ones() {
        let smallest = f32::from_bits(1);
        for small in [1.0, smallest, -smallest, 1e-30, -3.5e7] {
            assert_eq!(
                moments([f32::MAX, small, -f32::MAX]).sum::<f32>(),
                f64::from(small)
            );
        }
        assert_eq!(moments([i64::MIN, 3, i64::MAX]).sum::<i64>(), 2.0);
        assert_eq!(moments([i64::MAX; 5]).sum::<i64>(), 5.0 * i64::MAX as f64);
        assert_eq!(moments::<f32>([]).sum::<f32>(), 0.0);
    }

    #[test]
    fn sums_are_those_of_integers_of_any_length() {
        // Multiples of 2^-100 of up to 2^27 fit in 128 bits.
        let values: Vec<f32> = (0..5_000_i32)
            .map(|i| ((i * 7919) % 4093 - 2000) as f32 * 2_f32.powi(i % 100 - 100))
            .collect();
        let unit = 2_f64.powi(-100);
        let exact: i128 = values
            .iter()
            .map(|value| (f64::from(*value) / unit) as i128)
            .sum();
        assert_eq!(moments(values).sum::<f32>(), exact as f64 * unit);
    }

    #[test]
    fn the_variance_of_large_numbers_with_small_differences_is_accurate() {
        // Seconds since 1970, a day long: 0, 1, .., 86399.
        let day = 86_400_i64;
        let moments = moments((0..day).map(|second| 1_700_000_000 + second));
        let expect = ((day as f64).powi(2) - 1.0) / 12.0;
        let found = moments.variance::<i64>(day as u64);
        assert!((found / expect - 1.0).abs() < 1e-12, "{found} {expect}");
    }

    #[test]
    fn the_variance_of_the_largest_integers_is_accurate() {
        // 0, 1, .., 99 below the largest integer.
        for sign in [1, -1] {
            let moments = moments((0..100).map(|less| sign * (i64::MAX - less)));
            assert_eq!(moments.variance::<i64>(100), (100_f64.powi(2) - 1.0) / 12.0);
        }
        assert_eq!(
            moments([i64::MIN, i64::MAX]).variance::<i64>(2),
            (2_f64.powi(64) / 2.0).powi(2)
        );
        assert_eq!(
            moments([f32::MAX, -f32::MAX]).variance::<f32>(2),
            f64::from(f32::MAX).powi(2)
        );
        let smallest = f32::from_bits(1);
        assert_eq!(
            moments([smallest, -smallest]).variance::<f32>(2),
            f64::from(smallest).powi(2)
        );
    }

    #[test]
    fn repeated_numbers_have_no_variance() {
        let moments_of = moments(std::iter::repeat_n(
            1_700_000_000_123_456_789_i64,
            3_000_000,
        ));
        assert!(moments_of.variance::<i64>(3_000_000) == 0.0);
        assert_eq!(
            moments(std::iter::repeat_n(0.1_f32, 300_000)).variance::<f32>(300_000),
            0.0
        );
    }

    #[test]
    fn the_result_does_not_depend_on_order_or_parts() {
        let values: Vec<f32> = (0..10_000)
            .map(|i| (i as f32 * 0.7).sin() * 10f32.powi(i % 60 - 30))
            .collect();
        let whole = moments(values.iter().copied());
        assert_eq!(moments(values.iter().rev().copied()), whole);
        for parts in [2, 3, 7] {
            let mut merged = Moments::default();
            for part in (0..parts).rev() {
                merged.merge(&moments(values.iter().copied().skip(part).step_by(parts)));
            }
            assert_eq!(merged, whole);
        }
    }

    #[test]
    fn carries_reach_all_limbs() {
        let mut sum = ExactSum([u64::MAX; LIMBS]);
        sum.add(1, 0);
        assert_eq!(sum, ExactSum::default());
        let mut sum = ExactSum([u64::MAX, u64::MAX, u64::MAX, 5, 0, 0, 0, 0, 0, 0]);
        sum.merge(&ExactSum([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(sum, ExactSum([0, 0, 0, 6, 0, 0, 0, 0, 0, 0]));
    }
}
