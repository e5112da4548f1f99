//! The result of inference, and its merge over the parts of a data set.

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    FeatureSummary, Layout, OnConflict, OnError, Place, RecordType, Role, Summary, SummaryState,
};
use tfarrow_dataset::{DamageReport, Error, ErrorKind, Fault, Result, Shard, internals::shown};

use crate::{options::InferOptions, row_losses::RowLosses, sample::Sampled};

/// The result of inference.
#[derive(Debug)]
pub struct Inferred {
    /// The summary of each feature.
    pub summary: Summary,
    /// The name of each shard. [`Place::shard`] is an index of these names.
    pub names: Vec<String>,
    /// The size of the sample; `None` if all records were read, or all records of a
    /// [part](InferOptions::part).
    pub sampled: Option<Sampled>,
    /// The corrupt records and bytes that were skipped.
    pub skipped: DamageReport,
    /// The differences between the rows of files of other formats and their records. None for
    /// TFRecord.
    pub losses: RowLosses,
    /// Whether the shards are [files of TensorBoard](tfarrow_dataset::internals::are_events), whose records
    /// have no features.
    pub is_events: bool,
}

/// The inference of a part of a data set, which can be serialized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InferredState {
    summary: SummaryState,
    skipped: DamageReport,
    losses: RowLosses,
    is_events: bool,
}

impl Inferred {
    /// The inference of TFRecord files with these names, of which `summary` has all records that
    /// are used.
    pub fn of_summary(summary: Summary, names: Vec<String>) -> Self {
        let skipped = DamageReport::default();
        let losses = RowLosses::default();
        Self {
            summary,
            names,
            sampled: None,
            skipped,
            losses,
            is_events: false,
        }
    }

    /// The inference of TFRecord files with these names, of which `summary` has all records.
    pub fn of_all_records(summary: Summary, names: Vec<String>, on_error: OnError) -> Self {
        let mut inferred = Self::of_summary(summary, names);
        inferred.finish(on_error);
        inferred
    }

    /// Returns the state of the inference of a part.
    pub fn into_state(self) -> InferredState {
        let Self {
            summary,
            skipped,
            losses,
            is_events,
            ..
        } = self;
        InferredState {
            summary: summary.state(),
            skipped,
            losses,
            is_events,
        }
    }

    /// Returns the schema of the data set for records of this type; by default of the inferred
    /// type.
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] if a feature has more than one kind, with the first place of each
    /// kind.
    pub fn schema(&self, layout: Layout, record_type: Option<RecordType>) -> Result<SchemaRef> {
        self.schema_with(layout, record_type, OnConflict::Fail)
    }

    /// Returns the schema, as [`schema`](Self::schema) does. With [`OnConflict::Split`], a feature
    /// of more than one kind has a column for each kind.
    ///
    /// # Errors
    /// As [`schema`](Self::schema), unless features are split.
    pub fn schema_with(
        &self,
        layout: Layout,
        record_type: Option<RecordType>,
        on_conflict: OnConflict,
    ) -> Result<SchemaRef> {
        if on_conflict == OnConflict::Fail {
            self.check_kinds(record_type, &|_, _| true)?;
        }
        let schema = self.summary.schema_with(layout, record_type, on_conflict);
        schema.map_err(|error| Error::general(ErrorKind::Codec(error)))
    }

    /// Checks that no feature has more than one kind, of those for whose role and name `is_wanted`
    /// is true. Records have the type `record_type`; by default the inferred type.
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] for the first such feature, by name, with the first place of each
    /// kind.
    pub fn check_kinds(
        &self,
        record_type: Option<RecordType>,
        is_wanted: &dyn Fn(Role, &str) -> bool,
    ) -> Result<()> {
        let record_type = record_type.unwrap_or_else(|| self.summary.record_type());
        for feature in self.summary.features_of(record_type) {
            let role = self.summary.role(feature, record_type);
            if is_wanted(role, &feature.name) && feature.is_mixed() {
                return Err(Error::general(ErrorKind::MixedKinds {
                    feature: feature.name.to_string(),
                    message: mixed_kinds(feature, &self.names),
                }));
            }
        }
        Ok(())
    }

    /// Returns the reason why the inferred type is [`RecordType::Raw`], with the place of the first
    /// such record; `None` for another type.
    pub fn why_raw(&self) -> Option<String> {
        let summary = &self.summary;
        if summary.record_type() != RecordType::Raw || summary.records() == 0 {
            return None;
        }
        let why = if let Some(why) = self.unreadable() {
            why
        } else if let Some((place, field)) = summary.foreign() {
            let place = place_in(place, &self.names);
            format!("{place} has a field {field} that is none of a tf.Example's")
        } else if let Some(place) = summary.first_list() {
            let place = place_in(place, &self.names);
            format!("{place} is an ExampleListWithContext, and other records are none")
        } else {
            "no record has a feature".to_owned()
        };
        Some(format!("{why}, so all records are taken as they are"))
    }

    /// Describes the first record that does not parse: its place and the error.
    pub fn unreadable(&self) -> Option<String> {
        let (place, error) = self.summary.first_unparsable()?;
        let name = match self.summary.parsed_type() {
            RecordType::ExampleList => "ExampleListWithContext",
            _ => "tf.Example",
        };
        Some(format!(
            "{} is no {name} ({error})",
            place_in(place, &self.names)
        ))
    }

    /// Decides about the records that do not parse once all records are known: if most records are
    /// of another type, and corrupt records are skipped, these are skipped as well.
    pub(crate) fn finish(&mut self, on_error: OnError) {
        let skips = on_error == OnError::Skip && self.has_strays();
        if let Some((strays, shard, error)) =
            skips.then(|| self.summary.drop_unparsable()).flatten()
        {
            let path = self.names.get(shard as usize).cloned().unwrap_or_default();
            self.skipped.records += strays;
            self.skipped
                .add(Fault::of(shard as usize, Error::codec(path, error)));
        }
    }

    /// Returns `true` if the records are raw because of a minority: at least half of them have one
    /// feature in common or, if there are too many names to remember, have features.
    pub fn has_strays(&self) -> bool {
        let summary = &self.summary;
        let has_odd = summary.first_unparsable().is_some() || summary.foreign().is_some();
        let half = summary.records().div_ceil(2);
        has_odd
            && match summary.has_excess_names() {
                true => summary.examples() >= half,
                false => summary.features().any(|feature| feature.present >= half),
            }
    }
}

/// Merges the inference of all parts of a data set, in any order.
#[derive(Debug)]
pub struct InferredMerger {
    merged: Inferred,
    options: InferOptions,
}

impl InferredMerger {
    /// Creates a merger of parts that were inferred with these options.
    pub fn new(options: &InferOptions) -> Self {
        let summary =
            Summary::with_limits(0, options.read.limits).with_record_type(options.record_type);
        Self {
            merged: Inferred::of_summary(summary, Vec::new()),
            options: *options,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// More names than the limits allow.
    pub fn add(&mut self, part: InferredState) -> Result<()> {
        let codec = |error| Error::general(ErrorKind::Codec(error));
        let InferOptions {
            record_type, read, ..
        } = self.options;
        let summary = Summary::from_state(part.summary, read.limits, record_type).map_err(codec)?;
        self.merged.summary.merge(&summary).map_err(codec)?;
        self.merged.skipped.merge(part.skipped);
        self.merged.losses.merge(part.losses);
        self.merged.is_events |= part.is_events;
        Ok(())
    }

    /// Returns the summary of the parts so far.
    pub fn summary(&self) -> &Summary {
        &self.merged.summary
    }

    /// Returns the inference of the data set, once all parts were added. `names` are those of all
    /// shards.
    pub fn finish(self, names: Vec<String>) -> Inferred {
        let mut inferred = Inferred {
            names,
            ..self.merged
        };
        inferred.finish(self.options.read.on_error);
        inferred
    }
}

fn mixed_kinds(feature: &FeatureSummary, names: &[String]) -> String {
    let mut kinds: Vec<_> = feature.kinds().collect();
    kinds.sort_by_key(|(_, seen)| seen.first);
    let places: Vec<_> = kinds
        .iter()
        .map(|(kind, seen)| format!("{} in {}", kind.name(), place_in(seen.first, names)))
        .collect();
    let count = if places.len() == 2 { "two" } else { "three" };
    format!(
        "feature {:?} has {count} kinds: {}; one column cannot hold them",
        feature.name,
        places.join(", ")
    )
}

/// Returns the paths of shards as messages show them.
pub fn shown_names(shards: &[Shard]) -> Vec<String> {
    shards.iter().map(|shard| shown(&shard.path)).collect()
}

/// Describes the place of a record: the name of its shard, and its number and offset or its row.
pub fn place_in(place: Place, names: &[String]) -> String {
    let name = names.get(place.shard as usize).map_or("?", String::as_str);
    format!("{name}: {place}")
}
