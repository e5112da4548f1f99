//! Where a table's schema comes from. Errors and hints that are about a type say it.

use std::fmt;

use arrow_schema::Field;
use tfarrow_codec::{
    FeatureSummary, KindSummary, Role,
    schema::{FEATURE, role_of},
};
use tfarrow_dataset::{Inferred, Sampled};

/// What a value takes in an array, besides the bytes that it may have: a number's own size, or a view's half.
const VALUE_BYTES: u64 = 8;

/// What is known of how a table's schema came about, and of its records.
#[derive(Debug, Default)]
pub struct Origin {
    /// What was seen; `None` where nothing was looked at.
    seen: Option<Inferred>,
    /// Whether the schema was made of that.
    is_inferred: bool,
}

impl Origin {
    /// The schema was inferred.
    pub(crate) fn inferred(inferred: Inferred) -> Self {
        Self { seen: Some(inferred), is_inferred: true }
    }

    /// The schema was declared, and some records were looked at all the same.
    pub(crate) fn declared(seen: Option<Inferred>) -> Self {
        Self { seen, is_inferred: false }
    }

    /// Whether the schema was inferred, from whatever part of the records.
    pub(crate) fn is_inferred(&self) -> bool {
        self.is_inferred
    }

    /// What the schema was made of; `None` where it was declared.
    fn source(&self) -> Option<&Inferred> {
        self.seen.as_ref().filter(|_| self.is_inferred)
    }

    /// How much was looked at; `None` where that was everything, or where the schema was declared.
    pub fn sample(&self) -> Option<impl fmt::Display + use<>> {
        self.source()?.sampled.map(Words)
    }

    /// Why the records are taken as they are, where nobody said that they are raw; and whether it is for a few.
    pub(crate) fn why_raw(&self) -> Option<(String, bool)> {
        let source = self.source()?;
        Some((source.why_raw()?, source.has_strays()))
    }

    /// What was seen of the features of this name, one a role.
    pub(crate) fn features<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FeatureSummary> {
        self.source().into_iter().flat_map(move |inferred| features(inferred, name))
    }

    /// Bytes that a row of this column takes, on average; 0 where no sample tells.
    pub(crate) fn bytes_of(&self, field: &Field) -> usize {
        let Some(seen) = &self.seen else { return 0 };
        let summary = &seen.summary;
        let bytes = match role_of(field) {
            Some(Role::Record) => summary.bytes(),
            role => {
                let name = field.metadata().get(FEATURE).unwrap_or(field.name());
                let is_sequence = role == Some(Role::Sequence);
                let features = features(seen, name).filter(|feature| (feature.role == Role::Sequence) == is_sequence);
                let kinds = features.flat_map(FeatureSummary::kinds);
                kinds.map(|(_, seen)| seen.bytes + seen.values * VALUE_BYTES).sum()
            }
        };
        usize::try_from(bytes / summary.records().max(1)).unwrap_or(usize::MAX)
    }

    /// The place where a kind was seen first: file, record and byte.
    pub(crate) fn first(&self, kind: &KindSummary) -> Option<String> {
        let place = kind.first;
        let shard = self.source()?.names.get(place.shard as usize)?;
        Some(format!("{shard}: record {} (byte {})", place.record, place.offset))
    }
}

fn features<'a>(seen: &'a Inferred, name: &'a str) -> impl Iterator<Item = &'a FeatureSummary> {
    seen.summary.features().filter(move |feature| feature.name == name)
}

/// A sample in words.
struct Words(Sampled);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sampled { records, shards, of } = self.0;
        let (records_s, shards_s) = (if records == 1 { "" } else { "s" }, if of == 1 { "" } else { "s" });
        write!(f, "a sample of {records} record{records_s} of {shards} of {of} shard{shards_s}")
    }
}
