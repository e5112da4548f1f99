//! Correlations of numeric features, from a sample of records.
//!
//! ```text
//! record        a = [1]  b = [2.5]  c = ["x"]  d = [1, 2]     row    a 1.0   b 2.5
//! ```
//!
//! A row has the features that have exactly one number in the record; lists and byte strings have
//! no place in a correlation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    Role,
    infer::{SeenRecord, ValueList},
};

use crate::collect::{
    budget::Budget,
    sample::{SampleKey, SampleValue, ValueSample},
};

/// Limits of the sampled rows of one thread, in number and in bytes. The standard error of a
/// correlation from 4,096 records is below 0.016.
const ROWS: Budget = Budget {
    sample: 4_096,
    sample_bytes: 16 << 20,
    distinct: 0,
    distinct_bytes: 0,
};
/// Largest number of features that are correlated, the first by name. Time grows with its square.
const MAX_FEATURES: usize = 200;
/// Smallest number of records with both features from which a correlation is computed.
const MIN_RECORDS: u64 = 20;

/// The linear correlations of numeric features.
#[derive(Clone, Debug, Default)]
pub struct Correlations {
    /// The names of the features that vary and have one number in at least 20 sampled records,
    /// sorted; at most 200.
    pub features: Vec<String>,
    /// Number of such features that were left out.
    pub omitted: usize,
    /// The correlation of each pair of features that at least 20 sampled records have both.
    pub pairs: Vec<Correlation>,
    /// Number of sampled records.
    pub records: u64,
    /// Whether the sample has all records.
    pub is_all: bool,
}

/// The correlation of two features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The first feature, as an index of [`Correlations::features`].
    pub one: usize,
    /// The second feature, a larger index.
    pub other: usize,
    /// Pearson's correlation coefficient, from -1 to 1.
    pub coefficient: f64,
    /// Number of sampled records that have both features.
    pub records: u64,
}

/// The numbers of one record, each with the number of its feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NumberRow(Box<[(u32, f64)]>);

impl SampleValue for NumberRow {
    fn bytes(&self) -> usize {
        // 32 bytes approximate the overhead of the allocation and of the sample.
        size_of_val(&*self.0) + 32
    }
}

/// A sample of the rows of the records that one thread reads.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct NumberRowSampler {
    rows: ValueSample<NumberRow>,
    /// The names of features by the numbers that rows have; empty for features that no row has.
    names: Vec<String>,
}

impl NumberRowSampler {
    /// Adds a record.
    pub(super) fn add(&mut self, record: &mut SeenRecord<'_>) {
        let key = SampleKey::of_record(record.place()).of_value(0);
        let names = &mut self.names;
        self.rows.add(key, ROWS, || {
            let mut row = Vec::new();
            record.each_list(|feature, list| {
                let number = match list {
                    ValueList::Float(&[value]) => f64::from(value),
                    ValueList::Int64(&[value]) => value as f64,
                    _ => return,
                };
                if feature.role != Role::Feature || !number.is_finite() {
                    return;
                }
                if feature.number >= names.len() {
                    names.resize_with(feature.number + 1, String::new);
                }
                if let Some(name) = names.get_mut(feature.number).filter(|name| name.is_empty()) {
                    feature.name.clone_into(name);
                }
                row.push((feature.number as u32, number));
            });
            NumberRow(row.into())
        });
    }

    /// Adds the rows of another thread, which has numbered the features in its own order.
    pub(super) fn merge(&mut self, mut other: Self) {
        let mut numbers: BTreeMap<String, u32> = self
            .names
            .iter()
            .enumerate()
            .map(|(number, name)| (name.clone(), number as u32))
            .collect();
        let mut renumbered = Vec::with_capacity(other.names.len());
        for name in other.names {
            let next = self.names.len() as u32;
            let number = *numbers.entry(name.clone()).or_insert(next);
            if number == next {
                self.names.push(name);
            }
            renumbered.push(number);
        }
        for (number, _) in other.rows.values_mut().flat_map(|row| row.0.iter_mut()) {
            *number = renumbered
                .get(*number as usize)
                .copied()
                .unwrap_or_default();
        }
        self.rows.merge(other.rows, ROWS);
    }

    /// Numbers the features in the order of their names, which does not depend on threads.
    pub(super) fn sort_names(&mut self) {
        let unsorted = std::mem::take(self);
        self.names = unsorted
            .names
            .iter()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect();
        self.names.sort_unstable();
        self.merge(unsorted);
        // The empty name is the last one: that of features that no row has, unless a row has a
        // feature without a name.
        let last = self.names.len().saturating_sub(1) as u32;
        let is_used = self
            .rows
            .values()
            .any(|row| row.0.iter().any(|(number, _)| *number == last));
        self.names.pop_if(|name| name.is_empty() && !is_used);
    }

    /// Computes the correlations.
    pub(super) fn correlations(self) -> Correlations {
        let is_all = self.rows.is_all();
        let rows = self.rows.into_sorted();
        let mut seen: BTreeMap<&str, SeenNumbers> = BTreeMap::new();
        for &(number, value) in rows.iter().flat_map(|row| &row.0) {
            seen.entry(name_of(&self.names, number))
                .or_default()
                .add(value);
        }
        seen.retain(|_, numbers| numbers.is_varied());
        let omitted = seen.len().saturating_sub(MAX_FEATURES);
        let chosen = seen.into_keys().take(MAX_FEATURES);
        let mut columns: BTreeMap<&str, Column> =
            chosen.map(|name| (name, Column::new(rows.len()))).collect();
        for (record, row) in rows.iter().enumerate() {
            for &(number, value) in &row.0 {
                if let Some(column) = columns.get_mut(name_of(&self.names, number)) {
                    column.set(record, value);
                }
            }
        }
        let (features, mut columns): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, column)| (name.to_owned(), column))
            .unzip();
        columns.iter_mut().for_each(Column::center);
        let mut pairs = Vec::new();
        for (one, column) in columns.iter().enumerate() {
            for (other, second) in columns.iter().enumerate().skip(one + 1) {
                if let Some((coefficient, records)) = column.correlation(second) {
                    pairs.push(Correlation {
                        one,
                        other,
                        coefficient,
                        records,
                    });
                }
            }
        }
        Correlations {
            features,
            omitted,
            pairs,
            records: rows.len() as u64,
            is_all,
        }
    }
}

/// Returns the name of a feature by its number.
fn name_of(names: &[String], number: u32) -> &str {
    names.get(number as usize).map_or("", String::as_str)
}

/// The numbers of one feature. A column has a slot for each sampled record, so that only features
/// with a correlation get one.
#[derive(Default)]
struct SeenNumbers {
    count: u64,
    first: f64,
    differ: bool,
}

impl SeenNumbers {
    fn add(&mut self, value: f64) {
        if self.count == 0 {
            self.first = value;
        }
        self.count += 1;
        self.differ |= value != self.first;
    }

    /// Returns whether enough records have the feature, with more than one value.
    fn is_varied(&self) -> bool {
        self.count >= MIN_RECORDS && self.differ
    }
}

/// The values of one feature in all sampled records; NaN where a record does not have it.
struct Column {
    values: Vec<f64>,
    present: u64,
}

impl Column {
    fn new(records: usize) -> Self {
        Self {
            values: vec![f64::NAN; records],
            present: 0,
        }
    }

    fn set(&mut self, record: usize, value: f64) {
        if let Some(held) = self.values.get_mut(record) {
            self.present += u64::from(held.is_nan());
            *held = value;
        }
    }

    /// Subtracts the mean and divides by the largest magnitude, so that sums of squares neither
    /// cancel nor overflow.
    fn center(&mut self) {
        let scale = self.largest();
        let mean = self.present().map(|value| value / scale).sum::<f64>() / self.present as f64;
        self.values
            .iter_mut()
            .for_each(|value| *value = *value / scale - mean);
        let scale = self.largest();
        self.values.iter_mut().for_each(|value| *value /= scale);
    }

    fn present(&self) -> impl Iterator<Item = f64> {
        self.values.iter().copied().filter(|value| !value.is_nan())
    }

    fn largest(&self) -> f64 {
        self.present()
            .map(f64::abs)
            .fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Returns Pearson's coefficient, and the number of records that have both features. `None` if
    /// there are too few, or if one of the features does not vary among them.
    fn correlation(&self, other: &Self) -> Option<(f64, u64)> {
        let mut count = 0_u64;
        let mut sums = [0.0; 2];
        let mut squares = [0.0; 2];
        let mut product = 0.0;
        for (a, b) in self
            .values
            .iter()
            .zip(&other.values)
            .filter(|(a, b)| !a.is_nan() && !b.is_nan())
        {
            count += 1;
            sums = [sums[0] + a, sums[1] + b];
            squares = [squares[0] + a * a, squares[1] + b * b];
            product += a * b;
        }
        let all = count as f64;
        let deviations = [0, 1].map(|side| squares[side] - sums[side] * sums[side] / all);
        // A remainder of rounding is no variation.
        if count < MIN_RECORDS || (0..2).any(|side| deviations[side] <= 1e-12 * squares[side]) {
            return None;
        }
        let coefficient =
            (product - sums[0] * sums[1] / all) / (deviations[0].sqrt() * deviations[1].sqrt());
        Some((coefficient.clamp(-1.0, 1.0), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: impl IntoIterator<Item = f64>) -> Column {
        let values: Vec<_> = values.into_iter().collect();
        let mut column = Column::new(values.len());
        values
            .iter()
            .enumerate()
            .filter(|(_, value)| !value.is_nan())
            .for_each(|(i, value)| column.set(i, *value));
        column.center();
        column
    }

    fn coefficient(one: &Column, other: &Column) -> f64 {
        one.correlation(other).unwrap().0
    }

    #[test]
    fn linear_relations_have_a_coefficient_of_one() {
        // Seconds since 1970, whose squares have few exact digits.
        let time = column((0..100).map(|i| 1.7e9 + f64::from(i)));
        let falling = column((0..100).map(|i| 3.0 - 1e-3 * f64::from(i)));
        assert!((coefficient(&time, &falling) + 1.0).abs() < 1e-9);
        let square = column((0..100).map(|i| f64::from(i * i)));
        // The exact value is sqrt(15) / 4 for a continuous range from 0.
        assert!(
            (coefficient(&time, &square) - 0.968).abs() < 1e-3,
            "{}",
            coefficient(&time, &square)
        );
        let wide = column((0..100).map(|i| f64::MAX / 100.0 * f64::from(i)));
        assert!((coefficient(&time, &wide) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn records_without_one_of_the_features_are_left_out() {
        let gaps = column((0..100).map(|i| if i % 2 == 0 { f64::from(i) } else { f64::NAN }));
        let noisy = column((0..100).map(|i| if i % 2 == 0 { f64::from(i) } else { 1e6 }));
        let (coefficient, records) = gaps.correlation(&noisy).unwrap();
        assert!(
            coefficient > 0.999 && records == 50,
            "{coefficient} {records}"
        );
        assert_eq!(column([1.0, 2.0]).correlation(&column([1.0, 2.0])), None);
    }

    /// The rows of records with all of these features.
    fn sampler(records: std::ops::Range<u64>, names: &[&str]) -> NumberRowSampler {
        let known = names.iter().map(|name| String::from(*name)).collect();
        let mut sampler = NumberRowSampler {
            names: known,
            ..NumberRowSampler::default()
        };
        for record in records {
            let place = tfarrow_codec::Place {
                shard: 0,
                record,
                offset: None,
            };
            let number = |feature: usize| ((record + 3) * (feature as u64 + 5) % 17) as f64;
            let row = (0..names.len()).map(|feature| (feature as u32, number(feature)));
            sampler
                .rows
                .add(SampleKey::of_record(place).of_value(0), ROWS, || {
                    NumberRow(row.collect())
                });
        }
        sampler
    }

    #[test]
    fn a_feature_without_a_name_keeps_its_values_in_a_merge() {
        let names = ["", "x", "a"];
        let mut merged = NumberRowSampler::default();
        for records in [0..30, 30..60] {
            let mut part = sampler(records, &names);
            part.sort_names();
            merged.merge(part);
        }
        let found = merged.correlations();
        let whole = sampler(0..60, &names).correlations();
        assert_eq!(found.features, ["", "a", "x"]);
        assert_eq!(format!("{found:?}"), format!("{whole:?}"));
        // A feature that no row has leaves no name.
        let mut part = sampler(0..30, &["x"]);
        part.names.push(String::new());
        part.sort_names();
        assert_eq!(part.names, ["x"]);
    }

    /// A column for each of these features would take 2 GB.
    #[test]
    fn features_of_few_records_take_no_column() {
        let mut sampler = sampler(0..4_000, &["x", "y"]);
        let mut next = 2_u32;
        for row in sampler.rows.values_mut() {
            let rare = (next..next + 16).map(|number| (number, f64::from(number)));
            row.0 = row.0.iter().copied().chain(rare).collect();
            next += 16;
        }
        sampler
            .names
            .extend((2..next).map(|number| format!("rare {number}")));
        let found = sampler.correlations();
        assert_eq!(
            (found.features, found.omitted, found.pairs.len()),
            (vec!["x".to_owned(), "y".to_owned()], 0, 1)
        );
    }

    #[test]
    fn constant_features_have_no_coefficient() {
        let steps = column((0..60).map(|i| if i < 30 { 7.0 } else { f64::from(i) }));
        let late = column((0..60).map(|i| if i < 30 { f64::from(i) } else { f64::NAN }));
        assert_eq!(steps.correlation(&late), None);
    }
}
