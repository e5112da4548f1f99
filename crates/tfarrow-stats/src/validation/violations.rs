//! The records that violate the constraints of a schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tfarrow_codec::Place;

use crate::proto::anomaly_info::Type as AnomalyKind;

/// Number of records that violate a constraint, and the first of them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Violations {
    /// Number of records.
    pub(crate) records: u64,
    /// The first record in data-set order.
    pub(crate) first: Option<Place>,
    /// The last record that was added.
    #[serde(skip)]
    last: Option<Place>,
}

impl Violations {
    /// Counts a record once, however often it is added: a thread adds one record at a time.
    pub(super) fn add(&mut self, place: Place) {
        if self.last != Some(place) {
            self.records += 1;
            self.last = Some(place);
        }
        self.first = Some(self.first.map_or(place, |first| first.min(place)));
    }

    /// Adds the violations that another thread found in other records.
    pub(super) fn merge(&mut self, other: Self) {
        self.records += other.records;
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

/// The violations of the constraints on one feature.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FeatureViolations {
    /// The violations of each kind.
    #[serde(serialize_with = "by_number", deserialize_with = "of_numbers")]
    pub(super) by_kind: BTreeMap<AnomalyKind, Violations>,
    /// Records that have no list.
    pub(super) missing: Violations,
    /// Number of byte strings outside of the domain.
    pub(super) unexpected_values: u64,
}

impl FeatureViolations {
    /// Adds a record that violates a constraint.
    pub(super) fn add(&mut self, kind: AnomalyKind, place: Place) {
        self.by_kind.entry(kind).or_default().add(place);
    }

    /// Adds the violations that another thread found in other records.
    pub(super) fn merge(&mut self, other: Self) {
        for (kind, violations) in other.by_kind {
            self.by_kind.entry(kind).or_default().merge(violations);
        }
        self.missing.merge(other.missing);
        self.unexpected_values += other.unexpected_values;
    }
}

/// Serializes kinds by their numbers in TensorFlow Metadata.
fn by_number<S: Serializer>(
    by_kind: &BTreeMap<AnomalyKind, Violations>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    by_kind
        .iter()
        .map(|(kind, found)| (*kind as i32, found))
        .collect::<BTreeMap<_, _>>()
        .serialize(serializer)
}

fn of_numbers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<AnomalyKind, Violations>, D::Error> {
    let mut by_kind = BTreeMap::new();
    for (number, found) in BTreeMap::<i32, Violations>::deserialize(deserializer)? {
        let kind = AnomalyKind::try_from(number).map_err(D::Error::custom)?;
        by_kind.insert(kind, found);
    }
    Ok(by_kind)
}
