//! The inferred schema, with the shards and the summary that it was inferred from.

use arrow_schema::SchemaRef;
use tfarrow_codec::{FeatureSummary, Layout, Place, RecordType, Role, schema::record_type_of};
use tfarrow_dataset::{Error, ReadOptions, Shard, ShardFormat, internals::ProbablePayload};
use tfarrow_scan::{Inferred, Sampled};

use crate::text::{count, escape, plural};

/// The schema of a data set, and the summary that it was inferred from.
#[derive(Debug)]
pub struct InferredSchema {
    shards: Vec<Shard>,
    inferred: Inferred,
    schema: SchemaRef,
    /// The record type that the caller states.
    stated_type: Option<RecordType>,
    /// The probable kind of raw records.
    probable: Option<ProbablePayload>,
}

impl InferredSchema {
    /// The schema of all features of at most one kind. `inferred` is the summary of `shards`;
    /// without `record_type`, the type of the records is the inferred one.
    ///
    /// # Errors
    /// Those of [`Inferred::schema`], except for features of more than one kind, which have no
    /// column.
    pub fn new(
        shards: Vec<Shard>,
        inferred: Inferred,
        layout: Layout,
        record_type: Option<RecordType>,
    ) -> Result<Self, Error> {
        let schema = unmixed_schema(&inferred, layout, record_type)?;
        Ok(Self {
            shards,
            inferred,
            schema,
            stated_type: record_type,
            probable: None,
        })
    }

    /// Reads the first records, if the records are raw and the caller does not state this, and
    /// decides what they probably are.
    ///
    /// # Errors
    /// A shard that cannot be read.
    pub fn with_probable_payload(mut self, read: &ReadOptions) -> Result<Self, Error> {
        let is_tfrecord = self
            .shards
            .iter()
            .all(|shard| shard.format == ShardFormat::TfRecord);
        if self.record_type() == RecordType::Raw && self.stated_type.is_none() && is_tfrecord {
            self.probable = ProbablePayload::of(&self.shards, read)?;
        }
        Ok(self)
    }

    /// Sets the probable kind of raw records.
    pub fn with_probable(self, probable: Option<ProbablePayload>) -> Self {
        Self { probable, ..self }
    }

    /// The probable kind of raw records.
    pub fn probable(&self) -> Option<&ProbablePayload> {
        self.probable.as_ref()
    }

    /// The shards of the data set.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The summary of the records.
    pub fn inferred(&self) -> &Inferred {
        &self.inferred
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The type of the records.
    pub fn record_type(&self) -> RecordType {
        record_type_of(&self.schema)
    }

    /// The record type that the caller states.
    pub(super) fn stated_type(&self) -> Option<RecordType> {
        self.stated_type
    }

    /// The features with their roles.
    pub(super) fn features(&self) -> impl Iterator<Item = (&FeatureSummary, Role)> {
        let record_type = self.record_type();
        let summary = &self.inferred.summary;
        summary
            .features_of(record_type)
            .map(move |feature| (feature, summary.role(feature, record_type)))
    }

    /// Returns whether a feature is the column of folders `key=value`, which the records of
    /// TFRecord do not have themselves.
    pub(super) fn is_folder(&self, feature: &FeatureSummary) -> bool {
        let first = self
            .shards
            .first()
            .filter(|shard| shard.format == ShardFormat::TfRecord);
        let mut keys = first
            .map_or(&[][..], Shard::folder_columns)
            .iter()
            .map(|column| &column.key);
        feature.role != Role::Sequence && keys.any(|key| *key == feature.name)
    }

    /// The numbers of records and shards, in one line.
    pub(super) fn headline(&self) -> String {
        let records = self.inferred.summary.records();
        let what = match self.record_type() {
            RecordType::Example => "tf.Example",
            RecordType::SequenceExample => "tf.SequenceExample",
            RecordType::ExampleList => "ExampleListWithContext",
            RecordType::Message => "message",
            RecordType::Raw => "raw",
        };
        let records = plural(records, &format!("{what} record"));
        match &self.inferred.sampled {
            None => format!("{records} in {}", plural(self.shards.len() as u64, "shard")),
            Some(Sampled {
                shards: looked, of, ..
            }) => {
                format!(
                    "{records}, a sample of {} of {}",
                    count(*looked as u64),
                    plural(*of as u64, "shard")
                )
            }
        }
    }

    /// The shard, the number and the offset of a record.
    pub(super) fn place(&self, place: Place) -> String {
        let name = self
            .inferred
            .names
            .get(place.shard as usize)
            .map_or("", String::as_str);
        format!("{}, {place}", escape(name))
    }
}

/// The schema of all features of at most one kind.
fn unmixed_schema(
    inferred: &Inferred,
    layout: Layout,
    record_type: Option<RecordType>,
) -> Result<SchemaRef, Error> {
    let summary = &inferred.summary;
    let record_type = record_type.unwrap_or_else(|| summary.record_type());
    match record_type {
        RecordType::Message | RecordType::Raw => inferred.schema(layout, Some(record_type)),
        _ => Ok(summary.schema_of_features(layout, record_type, |feature| !feature.is_mixed())),
    }
}
