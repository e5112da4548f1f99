//! The comparison of floats that may differ.

/// How far two floats may differ to be equal: as in [`numpy.isclose`] with `equal_nan`, of which
/// the right one is the reference.
///
/// ```text
/// |left - right| <= absolute + relative * |right|
/// ```
///
/// Every NaN is equal to every NaN, an infinity only to itself, and -0 to 0.
///
/// [`numpy.isclose`]: https://numpy.org/doc/stable/reference/generated/numpy.isclose.html
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The allowed difference.
    pub absolute: f64,
    /// The allowed difference as a fraction of the right value.
    pub relative: f64,
}

impl Tolerance {
    /// Returns whether floats with these bits are equal.
    pub(super) fn holds(self, left: u32, right: u32) -> bool {
        if left == right {
            return true;
        }
        let [left, right] = [left, right].map(|bits| f64::from(f32::from_bits(bits)));
        match (left.is_nan(), right.is_nan()) {
            (true, true) => true,
            // An infinite tolerance would hold for every infinity.
            (false, false) if left.is_finite() && right.is_finite() => {
                (left - right).abs() <= self.absolute + self.relative * right.abs()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(absolute: f64, relative: f64, left: f32, right: f32, expect: bool) {
        let tolerance = Tolerance { absolute, relative };
        assert_eq!(
            tolerance.holds(left.to_bits(), right.to_bits()),
            expect,
            "{left} {right} {tolerance:?}"
        );
    }

    /// The results are those of `numpy.isclose(left, right, atol=absolute, rtol=relative,
    /// equal_nan=True)`.
    #[test]
    fn tolerances_are_those_of_numpy() {
        check(0.0, 0.0, 1.0, 1.0, true);
        check(0.0, 0.0, 1.0, 1.000_000_1, false);
        check(0.0, 0.0, -0.0, 0.0, true);
        check(0.5, 0.0, 1.0, 1.5, true);
        check(0.5, 0.0, 1.0, 1.500_000_1, false);
        check(0.0, 0.25, 3.0, 4.0, true);
        check(0.0, 0.25, 4.0, 3.0, false);
        check(0.25, 0.25, 4.0, 3.0, true);
        let nan = f32::from_bits(0xffc0_0001);
        check(0.0, 0.0, f32::NAN, nan, true);
        check(1e9, 1.0, f32::NAN, 0.0, false);
        check(1e9, 1.0, f32::INFINITY, f32::INFINITY, true);
        check(1e9, 1.0, f32::INFINITY, f32::NEG_INFINITY, false);
        check(1e9, 1.0, 1.0, f32::INFINITY, false);
        check(f64::INFINITY, 0.0, 1.0, f32::INFINITY, false);
    }
}
