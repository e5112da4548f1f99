//! The accumulator of numbers: range, mean, variance and a sample.

use serde::{Deserialize, Serialize};

use super::{
    budget::Budget,
    sample::{SampleKey, SampleValue, ValueSample},
    sum::{Moments, Summand},
};

/// A number as it is in the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NumberValue {
    /// A value of an `Int64List`.
    Int64(i64),
    /// A value of a `FloatList`, which may be infinite, or NaN where there is no value.
    Float(f64),
}

impl NumberValue {
    /// Returns the number as a float; integers beyond 2^53 may be rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int64(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// A value of an `Int64List` or a `FloatList`.
pub(crate) trait Number:
    Summand + PartialOrd + SampleValue + std::fmt::Debug + 'static
{
    /// Returns the value as a float; integers beyond 2^53 may be rounded.
    fn to_f64(self) -> f64;

    /// Returns the value as it is.
    fn to_value(self) -> NumberValue;

    /// Returns the value, and 0 for -0: which of two equal values is the smallest would depend on
    /// their order.
    fn with_one_zero(self) -> Self;
}

impl Number for i64 {
    fn to_f64(self) -> f64 {
        self as f64
    }

    fn to_value(self) -> NumberValue {
        NumberValue::Int64(self)
    }

    fn with_one_zero(self) -> Self {
        self
    }
}

impl Number for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn to_value(self) -> NumberValue {
        NumberValue::Float(f64::from(self))
    }

    fn with_one_zero(self) -> Self {
        self + 0.0
    }
}

/// The accumulated numbers of one feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NumberAccumulator<T> {
    /// Number of values that are NaN.
    pub(crate) nan: u64,
    /// Number of values that are 0 or -0.
    pub(crate) zeros: u64,
    /// Number of values that are positive infinity.
    pub(crate) positive_infinities: u64,
    /// Number of values that are negative infinity.
    pub(crate) negative_infinities: u64,
    /// The smallest and the largest finite value.
    pub(crate) finite: Option<(T, T)>,
    /// The sums of the finite values and of their squares.
    moments: Moments,
    /// A sample of the values other than NaN.
    pub(crate) sample: ValueSample<T>,
}

impl<T> Default for NumberAccumulator<T> {
    fn default() -> Self {
        Self {
            nan: 0,
            zeros: 0,
            positive_infinities: 0,
            negative_infinities: 0,
            finite: None,
            moments: Moments::default(),
            sample: ValueSample::default(),
        }
    }
}

impl<T: Number> NumberAccumulator<T> {
    /// Adds the values of a list. `key` is the hash of the list's place.
    pub(crate) fn add(&mut self, values: &[T], key: SampleKey, budget: Budget) {
        for (index, &value) in values.iter().enumerate() {
            let number = value.to_f64();
            if number.is_nan() {
                self.nan += 1;
                continue;
            }
            if number.is_finite() {
                self.finite = widen(self.finite, value.with_one_zero());
                self.moments.add(value);
            } else if number > 0.0 {
                self.positive_infinities += 1;
            } else {
                self.negative_infinities += 1;
            }
            self.zeros += u64::from(number == 0.0);
            self.sample.add(key.of_value(index), budget, || value);
        }
    }

    /// Adds the values that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        self.nan += other.nan;
        self.zeros += other.zeros;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
        self.finite = union(self.finite, other.finite);
        self.moments.merge(&other.moments);
        self.sample.merge(other.sample, budget);
    }

    /// Returns the number of values that are not NaN.
    pub(crate) fn count(&self) -> u64 {
        self.sample.seen()
    }

    /// Returns the minimum and the maximum as floats.
    pub(crate) fn range(&self) -> (f64, f64) {
        let (min, max) = self.ends();
        (min.to_f64(), max.to_f64())
    }

    /// Returns the minimum and the maximum, which may be infinite; both are NaN if there is no
    /// value other than NaN.
    pub(crate) fn ends(&self) -> (NumberValue, NumberValue) {
        let below = (self.negative_infinities > 0).then_some(NumberValue::Float(f64::NEG_INFINITY));
        let above = (self.positive_infinities > 0).then_some(NumberValue::Float(f64::INFINITY));
        let low = self.finite.map(|(low, _)| low.to_value());
        let high = self.finite.map(|(_, high)| high.to_value());
        let none = NumberValue::Float(f64::NAN);
        (
            below.or(low).or(above).unwrap_or(none),
            above.or(high).or(below).unwrap_or(none),
        )
    }

    /// Returns the mean: infinite if there are infinities of one sign, NaN if there are infinities
    /// of both.
    pub(crate) fn mean(&self) -> f64 {
        self.infinite_sum()
            .unwrap_or_else(|| self.moments.sum::<T>() / self.count() as f64)
    }

    /// Returns the population standard deviation; NaN if a value is infinite.
    pub(crate) fn std_dev(&self) -> f64 {
        match self.infinite_sum() {
            Some(_) => f64::NAN,
            None => self.moments.variance::<T>(self.count()).sqrt(),
        }
    }

    /// Returns the sum of the infinities; `None` if there are none.
    fn infinite_sum(&self) -> Option<f64> {
        match (self.positive_infinities, self.negative_infinities) {
            (0, 0) => None,
            (_, 0) => Some(f64::INFINITY),
            (0, _) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

/// Extends a range to a value.
#[inline]
fn widen<T: Number>(range: Option<(T, T)>, value: T) -> Option<(T, T)> {
    Some(match range {
        None => (value, value),
        Some((low, high)) => (
            if value < low { value } else { low },
            if value > high { value } else { high },
        ),
    })
}

/// Returns the smallest range that contains two ranges.
fn union<T: Number>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match other {
        None => one,
        Some((low, high)) => widen(widen(one, low), high),
    }
}
