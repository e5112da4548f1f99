//! The counts and first places of records that a summary has besides its features.
//!
//! All of them are in one struct, so that merging and serializing a summary cannot leave one out.

use serde::{Deserialize, Serialize};

use super::{Place, record::Traits};
use crate::WireError;

/// Counts and properties of all records of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordCounts {
    /// Number of records.
    pub(super) records: u64,
    /// Size of the payloads in bytes.
    pub(super) bytes: u64,
    /// The first record that is neither an Example nor a SequenceExample, with the parse error.
    pub(super) first_unparsable: Option<(Place, WireError)>,
    /// Number of such records.
    pub(super) unparsable: u64,
    /// Size of their payloads in bytes.
    pub(super) unparsable_bytes: u64,
    /// Number of records that have a feature with a value and no unknown field.
    pub(super) examples: u64,
    /// The first record with an unknown field, and the number of that field.
    pub(super) foreign: Option<(Place, u32)>,
    /// Properties of all records that parse.
    pub(super) traits: Traits,
    /// The first record that is an `ExampleListWithContext`.
    pub(super) first_list: Option<Place>,
    /// Number of the examples in such records.
    pub(super) listed_examples: u64,
}

impl RecordCounts {
    /// Counts a record and its bytes.
    pub(super) fn add(&mut self, data: &[u8]) {
        self.records += 1;
        self.bytes += data.len() as u64;
    }

    /// Counts a record that does not parse.
    #[cold]
    pub(super) fn add_unparsable(&mut self, data: &[u8], place: Place, error: WireError) {
        self.add(data);
        self.unparsable += 1;
        self.unparsable_bytes += data.len() as u64;
        self.first_unparsable = first(self.first_unparsable, Some((place, error)));
    }

    /// Notes that a record has an unknown field of this number, if it has one.
    pub(super) fn note_foreign(&mut self, place: Place, field: Option<u32>) {
        if let Some(field) = field {
            self.foreign = first(self.foreign, Some((place, field)));
        }
    }

    /// Notes that a record is an `ExampleListWithContext` of this number of examples.
    pub(super) fn note_list(&mut self, place: Place, examples: usize) {
        self.first_list = self.first_list.into_iter().chain([place]).min();
        self.listed_examples += examples as u64;
    }

    /// Sets the number of the shard of all places.
    pub(super) fn set_shard(&mut self, shard: u32) {
        let unparsable = self.first_unparsable.iter_mut().map(|(place, _)| place);
        let foreign = self.foreign.iter_mut().map(|(place, _)| place);
        for place in unparsable.chain(foreign).chain(&mut self.first_list) {
            place.shard = shard;
        }
    }

    /// Adds the counts of other records. Of two places, the smaller one is kept.
    pub(super) fn merge(&mut self, other: Self) {
        // Without `..`, so that the compiler finds a field that is not merged.
        let Self {
            records,
            bytes,
            first_unparsable,
            unparsable,
            unparsable_bytes,
            examples,
            foreign,
            traits,
            first_list,
            listed_examples,
        } = other;
        self.records += records;
        self.bytes += bytes;
        self.first_unparsable = first(self.first_unparsable, first_unparsable);
        self.unparsable += unparsable;
        self.unparsable_bytes += unparsable_bytes;
        self.examples += examples;
        self.foreign = first(self.foreign, foreign);
        self.traits.merge(traits);
        self.first_list = self.first_list.into_iter().chain(first_list).min();
        self.listed_examples += listed_examples;
    }
}

/// Returns the element with the smaller place.
fn first<T>(one: Option<(Place, T)>, other: Option<(Place, T)>) -> Option<(Place, T)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
        (one, other) => one.or(other),
    }
}
