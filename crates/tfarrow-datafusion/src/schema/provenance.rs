//! The provenance of a table's schema: inferred from a sample of records, or declared. Errors and
//! hints about types name it.

use std::{collections::HashMap, fmt};

use arrow_schema::{Field, FieldRef};
use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Role, schema::role_of};
use tfarrow_scan::{Inferred, Sampled};

use crate::schema::columns::feature_of;

/// Bytes of a value in an array, without those of a string: the size of a number, or half of a
/// view.
const VALUE_BYTES: u64 = 8;

/// The provenance of a table's schema, with a summary of the records that were read to infer it.
#[derive(Debug, Default)]
pub struct SchemaProvenance {
    /// The records that were read; `None` if none were.
    seen: Option<Inferred>,
    /// Whether the schema was inferred from them.
    is_inferred: bool,
}

impl SchemaProvenance {
    /// The schema is inferred from these records.
    pub(crate) fn inferred(inferred: Inferred) -> Self {
        Self {
            seen: Some(inferred),
            is_inferred: true,
        }
    }

    /// The schema is declared. Some records may have been read to find their type and average
    /// length.
    pub(crate) fn declared(seen: Option<Inferred>) -> Self {
        Self {
            seen,
            is_inferred: false,
        }
    }

    /// Returns whether the schema was inferred, from all records or from a sample.
    pub(crate) fn is_inferred(&self) -> bool {
        self.is_inferred
    }

    /// The records from which the schema was inferred; `None` for a declared schema.
    fn source(&self) -> Option<&Inferred> {
        self.seen.as_ref().filter(|_| self.is_inferred)
    }

    /// The size of the sample in words, such as "a sample of 1000 records of 1 of 4 shards"; `None`
    /// if all records were read, or if the schema was declared.
    pub fn sample(&self) -> Option<impl fmt::Display + use<>> {
        self.source()?.sampled.map(SampleSize)
    }

    /// The reason why the records are read as raw records, if no option sets it, and whether only a
    /// few records cause it.
    pub fn why_raw(&self) -> Option<(String, bool)> {
        let source = self.source()?;
        Some((source.why_raw()?, source.has_strays()))
    }

    /// The summaries of the features of this name, one per role.
    pub fn features<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FeatureSummary> {
        self.source()
            .into_iter()
            .flat_map(move |inferred| features(inferred, name))
    }

    /// Average bytes of each of these columns per row; 0 if no records were read.
    pub(crate) fn bytes_of(&self, fields: &[&FieldRef]) -> Vec<usize> {
        let Some(seen) = &self.seen else {
            return vec![0; fields.len()];
        };
        let mut features = HashMap::<&str, Vec<&FeatureSummary>>::new();
        for feature in seen.summary.features() {
            features.entry(&feature.name).or_default().push(feature);
        }
        let records = seen.summary.records().max(1);
        let mut average = Vec::with_capacity(fields.len());
        for field in fields {
            let name = feature_of(field);
            let bytes = match role_of(field) {
                // Those of the context are few beside them.
                Some(Role::Record | Role::Examples) => seen.summary.bytes(),
                role => bytes_of_kinds(features.get(name).into_iter().flatten(), role),
            };
            average.push(usize::try_from(bytes / records).unwrap_or(usize::MAX));
        }
        average
    }

    /// Average bytes of a record; 0 if no records were read.
    pub(crate) fn record_bytes(&self) -> usize {
        let bytes = self.seen.as_ref().map_or(0, |seen| {
            seen.summary.bytes() / seen.summary.records().max(1)
        });
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The number of values of this column in each record of the source, if it is the same in all,
    /// and the values are numbers.
    pub(crate) fn fixed_length(&self, field: &Field) -> Option<u64> {
        let source = self.source()?;
        match role_of(field) {
            None | Some(Role::Feature | Role::Context) => {}
            Some(Role::Index | Role::Offset) => return Some(1),
            Some(Role::Sequence | Role::Examples | Role::Record | Role::Unset | Role::Exact) => {
                return None;
            }
        }
        let name = feature_of(field);
        let mut features = features(source, name).filter(|feature| feature.role == Role::Feature);
        let feature = features.next().filter(|_| features.next().is_none())?;
        let kind = feature.kind()?;
        let (_, seen) = feature.kinds().next()?;
        let is_fixed = seen.min_len == seen.max_len
            && seen.lists == source.summary.records()
            && kind != Kind::Bytes;
        is_fixed.then_some(seen.max_len)
    }

    /// The position of the first record with this kind: file, record and byte.
    pub(crate) fn first(&self, kind: &KindSummary) -> Option<String> {
        let place = kind.first;
        let shard = self.source()?.names.get(place.shard as usize)?;
        Some(format!("{shard}: {place}"))
    }
}

/// The bytes of the features that a column of this role has.
fn bytes_of_kinds<'a>(
    features: impl Iterator<Item = &'a &'a FeatureSummary>,
    role: Option<Role>,
) -> u64 {
    let is_sequence = role == Some(Role::Sequence);
    let mut bytes = 0;
    for feature in features {
        let is_of_column = match feature.role {
            Role::Sequence => is_sequence,
            Role::Examples => false,
            _ => !is_sequence,
        };
        if is_of_column {
            for (_, seen) in feature.kinds() {
                bytes += seen.bytes + seen.values * VALUE_BYTES;
            }
        }
    }
    bytes
}

fn features<'a>(seen: &'a Inferred, name: &'a str) -> impl Iterator<Item = &'a FeatureSummary> {
    seen.summary
        .features()
        .filter(move |feature| feature.name == name)
}

/// The size of a sample in words.
struct SampleSize(Sampled);

impl fmt::Display for SampleSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sampled {
            records,
            shards,
            of,
        } = self.0;
        let records_s = if records == 1 { "" } else { "s" };
        let shards_s = if of == 1 { "" } else { "s" };
        write!(
            f,
            "a sample of {records} record{records_s} of {shards} of {of} shard{shards_s}"
        )
    }
}
