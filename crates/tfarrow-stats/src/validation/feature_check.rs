//! The constraints that a schema sets on each list of one feature, and the records that violate
//! them.
//!
//! Constraints on all records together, such as the fraction of records that have a feature, are
//! checked after the pass (`feature_validator.rs`).

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    Kind, Place,
    infer::{BytesValues, ValueList},
};

use super::{
    anomaly::AnomalyKind,
    domains::{DomainCheck, StringDomains},
    violations::FeatureViolations,
};
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{Feature, FeatureType, ValueCount, feature::ShapeType},
    schema::{infer::feature_type, shape_size},
};

/// Largest number of distinct values outside of a domain that are kept for each feature. A domain
/// that more values would have to be added to is dropped from the updated schema.
const MAX_UNEXPECTED: usize = 400;
/// Largest size of these values in bytes, for all features of a schema together, in one thread.
const MAX_UNEXPECTED_BYTES: usize = 16 << 20;
/// Smallest share of [`MAX_UNEXPECTED_BYTES`] that one feature gets.
const MIN_UNEXPECTED_BYTES: usize = 8 << 10;

/// The constraints on the lists of one feature, and their violations.
#[derive(Clone, Debug)]
pub(crate) struct FeatureCheck {
    /// The expected type of lists.
    r#type: FeatureType,
    /// Smallest and largest number of values of a list.
    lengths: Option<(u64, u64)>,
    /// Smallest and largest number of steps of a feature list.
    steps: Option<(u64, u64)>,
    /// Whether it is a feature list.
    is_list: bool,
    /// Number of values that a fixed shape has, in all steps of a feature list together.
    shape: Option<u64>,
    /// The check of values.
    domain: DomainCheck,
    /// The violations.
    pub(super) found: FeatureViolations,
    /// Byte strings outside of the domain.
    unexpected: UnexpectedValues,
    /// Number of records that have a list.
    pub(super) present: u64,
    /// Number of the last record that has a list, by the count of its thread.
    pub(super) last_record: u64,
    /// The lists of the current record.
    lists: ListsOfRecord,
}

/// The lists that a record has of a feature: several for a feature list.
#[derive(Clone, Copy, Debug, Default)]
struct ListsOfRecord {
    /// Number of lists.
    count: u64,
    /// Number of values of all lists.
    values: u64,
    /// Number of lists whose length is that of the first one.
    even: u64,
    /// Length of the first list.
    length: u64,
}

impl ListsOfRecord {
    /// Adds a list with this number of values; `None` for a step without a kind.
    fn add(&mut self, length: Option<u64>) {
        if self.count == 0 {
            self.length = length.unwrap_or_default();
        }
        self.count += 1;
        self.values += length.unwrap_or_default();
        self.even += u64::from(length == Some(self.length));
    }

    /// Returns whether all lists have the same length, and this number of values together.
    fn have_shape(&self, size: u64) -> bool {
        self.even == self.count && self.values > 0 && self.values == size
    }
}

impl FeatureCheck {
    /// Reads the constraints of a feature of a schema. `domains` are the schema's string domains by
    /// name, and `features` is the number of features that share the budget for unexpected values.
    pub(super) fn new(
        feature: &Feature,
        is_list: bool,
        domains: &StringDomains<'_>,
        features: usize,
    ) -> Self {
        let mut lengths = None;
        let mut steps = None;
        let mut shape = None;
        match &feature.shape_type {
            Some(ShapeType::ValueCount(count)) if !is_list => lengths = Some(range(count)),
            Some(ShapeType::ValueCount(_)) => {}
            Some(ShapeType::ValueCounts(counts)) => {
                match (is_list, counts.value_count.as_slice()) {
                    (false, [count]) => lengths = Some(range(count)),
                    (true, [outer, inner]) => {
                        (steps, lengths) = (Some(range(outer)), Some(range(inner)))
                    }
                    // Another depth is one anomaly of the feature, VALUE_NESTEDNESS_MISMATCH.
                    _ => {}
                }
            }
            Some(ShapeType::Shape(fixed)) => shape = Some(shape_size(fixed)),
            None => {}
        }
        Self {
            r#type: feature.r#type(),
            lengths,
            steps,
            is_list,
            shape,
            domain: DomainCheck::new(feature, domains),
            found: FeatureViolations::default(),
            unexpected: UnexpectedValues::with_share_of(features),
            present: 0,
            last_record: 0,
            lists: ListsOfRecord::default(),
        }
    }

    /// Checks a list of the current record.
    pub(super) fn check(&mut self, list: ValueList<'_>, place: Place) {
        let (kind, length) = match list {
            ValueList::Unset => return self.lists.add(None),
            ValueList::Bytes(values) => (Kind::Bytes, self.check_bytes(values, place)),
            ValueList::Float(values) => (Kind::Float, self.check_floats(values, place)),
            ValueList::Int64(values) => (Kind::Int64, self.check_ints(values, place)),
        };
        if feature_type(Some(kind)) != self.r#type {
            self.found.add(AnomalyKind::UnexpectedDataType, place);
        }
        self.lists.add(Some(length));
        if !self.is_list && self.shape.is_some_and(|shape| shape != length) {
            self.found.add(AnomalyKind::InvalidFeatureShape, place);
        }
        self.check_count(self.lengths, length, place);
    }

    /// Checks a number of values or steps against its bounds.
    fn check_count(&mut self, range: Option<(u64, u64)>, count: u64, place: Place) {
        let (min, max) = range.unwrap_or((0, u64::MAX));
        if count < min {
            self.found
                .add(AnomalyKind::FeatureTypeLowNumberValues, place);
        }
        if count > max {
            self.found
                .add(AnomalyKind::FeatureTypeHighNumberValues, place);
        }
    }

    /// Checks byte strings and returns their number.
    fn check_bytes(&mut self, values: BytesValues<'_>, place: Place) -> u64 {
        let mut length = 0;
        values.each(|value| {
            length += 1;
            let mut is_unexpected = false;
            let domain = &self.domain;
            let found = &mut self.found;
            domain.check_string(value, &mut |kind| {
                is_unexpected = true;
                found.add(kind, place);
            });
            if is_unexpected {
                self.found.unexpected_values += 1;
                self.unexpected.add(value, 1);
            }
        });
        length
    }

    /// Checks floats and returns their number.
    fn check_floats(&mut self, values: &[f32], place: Place) -> u64 {
        if !self.domain.is_any() {
            for value in values {
                self.domain
                    .check_float(*value, &mut |kind| self.found.add(kind, place));
            }
        }
        values.len() as u64
    }

    /// Checks integers and returns their number.
    fn check_ints(&mut self, values: &[i64], place: Place) -> u64 {
        if !self.domain.is_any() {
            for value in values {
                self.domain
                    .check_int(*value, &mut |kind| self.found.add(kind, place));
            }
        }
        values.len() as u64
    }

    /// Returns the byte strings outside of the domain with their counts, and whether these are all
    /// of them.
    ///
    /// They come from the counts of distinct values where the accumulator has these values whole,
    /// else from the first ones in their order.
    pub(super) fn unexpected<'a>(
        &'a self,
        values: &'a FeatureAccumulator,
    ) -> (HashMap<&'a [u8], u64>, bool) {
        let Some(counts) = values
            .bytes
            .as_ref()
            .and_then(|bytes| bytes.distinct.whole())
        else {
            let known = self
                .unexpected
                .counts
                .iter()
                .map(|(value, count)| (&**value, *count));
            return (known.collect(), self.unexpected.cut.is_none());
        };
        let mut unexpected = HashMap::new();
        for (value, count) in counts {
            let mut is_unexpected = false;
            self.domain
                .check_string(value, &mut |_| is_unexpected = true);
            if is_unexpected {
                unexpected.insert(value, count);
            }
        }
        let is_complete = unexpected.len() <= MAX_UNEXPECTED;
        (unexpected, is_complete)
    }

    /// Notes that the current record, the `record`th of this thread, has the feature. Returns
    /// whether that is new.
    pub(super) fn mark_present(&mut self, record: u64) -> bool {
        let is_first = self.last_record != record;
        self.last_record = record;
        self.present += u64::from(is_first);
        is_first
    }

    /// Ends a record that has the feature: checks the steps of a feature list.
    pub(super) fn end_record(&mut self, place: Place) {
        let lists = std::mem::take(&mut self.lists);
        self.check_count(self.steps, lists.count, place);
        if self.is_list && self.shape.is_some_and(|size| !lists.have_shape(size)) {
            self.found.add(AnomalyKind::InvalidFeatureShape, place);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.merge_found(other.into_state());
    }

    /// Returns the violations.
    pub(super) fn into_state(self) -> CheckState {
        CheckState {
            found: self.found,
            unexpected: self.unexpected,
        }
    }

    /// Adds violations of the same constraints.
    pub(super) fn merge_found(&mut self, other: CheckState) {
        self.found.merge(other.found);
        self.unexpected.merge(other.unexpected);
    }
}

/// The violations of the constraints on one feature in a part of a data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CheckState {
    found: FeatureViolations,
    unexpected: UnexpectedValues,
}

/// Counts of the byte strings outside of a domain, bounded in number and in bytes: the first ones
/// in their order, so that these do not depend on threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct UnexpectedValues {
    counts: BTreeMap<Box<[u8]>, u64>,
    /// Number of bytes of these values together.
    #[serde(skip)]
    bytes: usize,
    /// Maximum number of bytes.
    #[serde(skip)]
    budget: usize,
    /// The first value that was left out.
    cut: Option<Box<[u8]>>,
}

impl UnexpectedValues {
    /// Creates the counts of one of `features` features.
    fn with_share_of(features: usize) -> Self {
        let budget = (MAX_UNEXPECTED_BYTES / features.max(1)).max(MIN_UNEXPECTED_BYTES);
        Self {
            budget,
            ..Self::default()
        }
    }

    fn add(&mut self, value: &[u8], times: u64) {
        if self.cut.as_deref().is_some_and(|cut| value >= cut) {
            return;
        }
        if let Some(count) = self.counts.get_mut(value) {
            *count += times;
            return;
        }
        self.counts.insert(value.into(), times);
        self.bytes += value.len();
        while self.counts.len() > MAX_UNEXPECTED || self.bytes > self.budget {
            let Some((last, _)) = self.counts.pop_last() else {
                break;
            };
            self.bytes -= last.len();
            self.cut = Some(last);
        }
    }

    fn merge(&mut self, other: Self) {
        if let Some(cut) = other.cut {
            let first = self.cut.take().map_or(cut.clone(), |own| own.min(cut));
            let dropped = self.counts.split_off(&first);
            self.bytes -= dropped.keys().map(|value| value.len()).sum::<usize>();
            self.cut = Some(first);
        }
        other
            .counts
            .iter()
            .for_each(|(value, count)| self.add(value, *count));
    }
}

/// Returns the bounds of a `ValueCount`; a negative one is 0.
fn range(count: &ValueCount) -> (u64, u64) {
    let min = count.min.unwrap_or(0);
    let min = u64::try_from(min).unwrap_or_default();
    let max = match count.max {
        Some(max) => u64::try_from(max).unwrap_or_default(),
        None => u64::MAX,
    };
    (min, max)
}
