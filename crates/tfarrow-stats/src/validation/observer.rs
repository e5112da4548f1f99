//! The observer that checks each record against the schema while the statistics are collected.

use std::collections::HashMap;

use tfarrow_codec::{
    Place, Role,
    infer::{RecordObserver, SeenFeature, SeenRecord, ValueList},
};

use super::{
    domains::StringDomains,
    feature_check::{CheckState, FeatureCheck},
};
use crate::{proto::Schema, schema::features};

/// Checks the records that one thread reads. The observers of all threads are merged after the
/// pass.
#[derive(Clone, Debug)]
pub(super) struct SchemaObserver {
    checks: Vec<FeatureCheck>,
    /// Indices into `checks` by name: of features, and of feature lists.
    by_name: [HashMap<String, usize>; 2],
    /// Indices into `checks` by the numbers that this thread gives to features and to feature
    /// lists. The outer `None` is a feature that was not looked up yet, the inner one a feature
    /// without a check.
    by_number: [Vec<Option<Option<usize>>>; 2],
    /// Number of records that this thread has read.
    records: u64,
    /// Place of the last of them.
    last: Option<Place>,
    /// Checks whose features are in the current record.
    present: Vec<usize>,
    /// Checks whose features are in all records since places last went backwards. Only the first
    /// record without a feature is reported, so that a check leaves this list at the first record
    /// that lacks its feature.
    never_missing: Vec<usize>,
}

impl SchemaObserver {
    /// Creates an observer with a check for each named feature of the schema.
    pub(super) fn new(schema: &Schema) -> Self {
        let mut domains = StringDomains::new();
        for domain in &schema.string_domain {
            domains.entry(domain.name()).or_insert(domain);
        }
        let named: Vec<_> = features(schema)
            .filter(|(_, feature)| feature.name.is_some())
            .collect();
        let mut checks = Vec::with_capacity(named.len());
        let mut by_name: [HashMap<String, usize>; 2] = Default::default();
        for (index, (is_list, feature)) in named.iter().enumerate() {
            checks.push(FeatureCheck::new(feature, *is_list, &domains, named.len()));
            // The first of several features with one name is the one that counts.
            by_name[usize::from(*is_list)]
                .entry(feature.name().to_owned())
                .or_insert(index);
        }
        Self {
            checks,
            by_name,
            by_number: Default::default(),
            records: 0,
            last: None,
            present: Vec::new(),
            never_missing: (0..named.len()).collect(),
        }
    }

    /// Returns the check of a feature, or with `is_list` of a feature list, by name.
    pub(super) fn check(&self, is_list: bool, name: &str) -> Option<&FeatureCheck> {
        self.checks
            .get(*self.by_name[usize::from(is_list)].get(name)?)
    }

    /// Adds the violations that another thread found. `self` has read no records itself.
    pub(super) fn merge(&mut self, other: Self) {
        for (check, mut part) in self.checks.iter_mut().zip(other.checks) {
            part.found.missing.records = other.records - part.present;
            check.merge(part);
        }
    }

    /// Returns the violations of each feature of the schema.
    pub(super) fn into_states(self) -> Vec<CheckState> {
        self.checks
            .into_iter()
            .map(FeatureCheck::into_state)
            .collect()
    }

    /// Adds the violations that another process found with the same schema.
    pub(super) fn merge_states(&mut self, states: Vec<CheckState>) {
        self.checks
            .iter_mut()
            .zip(states)
            .for_each(|(check, state)| check.merge_found(state));
    }

    /// Notes that the current record has the feature of a check.
    fn mark_present(&mut self, index: usize) {
        if self.checks[index].mark_present(self.records) {
            self.present.push(index);
        }
    }

    /// Returns the check of a feature of the data, looked up by name once for each feature.
    fn index_of(&mut self, feature: SeenFeature<'_>) -> Option<usize> {
        let side = usize::from(feature.role == Role::Sequence);
        let known = &mut self.by_number[side];
        if feature.number >= known.len() {
            known.resize(feature.number + 1, None);
        }
        *known[feature.number].get_or_insert_with(|| self.by_name[side].get(feature.name).copied())
    }

    /// Notes the first record without a feature, for each feature that all records before had.
    fn note_missing(&mut self, place: Place) {
        let checks = &mut self.checks;
        let record = self.records;
        self.never_missing.retain(|index| {
            let check = &mut checks[*index];
            if check.last_record != record {
                check.found.missing.first = Some(
                    check
                        .found
                        .missing
                        .first
                        .map_or(place, |first| first.min(place)),
                );
            }
            check.last_record == record
        });
    }
}

impl RecordObserver for SchemaObserver {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let place = record.place();
        self.records += 1;
        if self.last.is_some_and(|last| place < last) {
            self.never_missing = (0..self.checks.len()).collect();
        }
        self.last = Some(place);
        // A feature list without a step is present, and `each_list` has no list of it.
        for list in record
            .features()
            .filter(|feature| feature.role == Role::Sequence)
        {
            if let Some(index) = self.index_of(list) {
                self.mark_present(index);
            }
        }
        record.each_list(|feature, list| {
            let Some(index) = self.index_of(feature) else {
                return;
            };
            if !matches!(list, ValueList::Unset) {
                self.mark_present(index);
            }
            self.checks[index].check(list, place);
        });
        for index in self.present.drain(..) {
            self.checks[index].end_record(place);
        }
        self.note_missing(place);
    }
}
