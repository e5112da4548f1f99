//! The inferred schema, with the shards and the summary that it was inferred from.

use arrow_schema::SchemaRef;
use tfarrow_codec::{FeatureSummary, Place, RecordType, Role, schema::record_type_of};
use tfarrow_dataset::{Inferred, Sampled, Shard};

use crate::{output::count, text::escape};

/// The schema of a data set, and the summary that it was inferred from.
pub(super) struct InferredSchema<'a> {
    pub(super) shards: &'a [Shard],
    pub(super) inferred: &'a Inferred,
    pub(super) schema: SchemaRef,
}

impl InferredSchema<'_> {
    pub(super) fn record_type(&self) -> RecordType {
        record_type_of(&self.schema)
    }

    /// The features with their roles.
    pub(super) fn features(&self) -> impl Iterator<Item = (&FeatureSummary, Role)> {
        let record_type = self.record_type();
        let summary = &self.inferred.summary;
        let all = summary.features().filter(move |_| record_type != RecordType::Raw);
        all.map(move |feature| (feature, summary.role(feature, record_type)))
    }

    /// The numbers of records and shards, in one line.
    pub(super) fn headline(&self) -> String {
        let records = count(self.inferred.summary.records());
        let what = match self.record_type() {
            RecordType::Example => "tf.Example",
            RecordType::SequenceExample => "tf.SequenceExample",
            RecordType::Raw => "raw",
        };
        let shards = match self.shards.len() {
            1 => "1 shard".to_owned(),
            many => format!("{} shards", count(many as u64)),
        };
        match &self.inferred.sampled {
            None => format!("{records} {what} records in {shards}"),
            Some(Sampled { shards: looked, of, .. }) => {
                let looked = count(*looked as u64);
                format!("{records} {what} records, a sample of {looked} of {} shards", count(*of as u64))
            }
        }
    }

    /// The shard, the number and the offset of a record.
    pub(super) fn place(&self, place: Place) -> String {
        let name = self.inferred.names.get(place.shard as usize).map_or("", String::as_str);
        format!("{}, record {} (byte {})", escape(name), place.record, place.offset)
    }
}
