//! Where a table's schema comes from. Errors and hints that are about a type say it.

use std::fmt;

use tfarrow_codec::{FeatureSummary, KindSummary};
use tfarrow_dataset::{Inferred, Sampled};

/// What is known of how a table's schema came about.
#[derive(Debug, Default)]
pub struct Origin {
    /// `None` where the schema was declared.
    inferred: Option<Inferred>,
}

impl Origin {
    /// The schema was inferred.
    pub(crate) fn inferred(inferred: Inferred) -> Self {
        Self { inferred: Some(inferred) }
    }

    /// How much was looked at; `None` where that was everything, or where the schema was declared.
    pub fn sample(&self) -> Option<impl fmt::Display + use<>> {
        self.inferred.as_ref()?.sampled.map(Words)
    }

    /// What was seen of the features of this name, one a role.
    pub(crate) fn features<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FeatureSummary> {
        let features = self.inferred.iter().flat_map(|inferred| inferred.summary.features());
        features.filter(move |feature| feature.name == name)
    }

    /// The place where a kind was seen first: file, record and byte.
    pub(crate) fn first(&self, kind: &KindSummary) -> Option<String> {
        let place = kind.first;
        let shard = self.inferred.as_ref()?.names.get(place.shard as usize)?;
        Some(format!("{shard}: record {} (byte {})", place.record, place.offset))
    }
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
