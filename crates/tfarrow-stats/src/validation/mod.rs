//! Validation of a data set against a schema, with the anomalies of TensorFlow Data Validation; and
//! the updated schema, which the data fits.
//!
//! ```text
//! schema ──▶ self check ──▶ SchemaObserver (one a thread) ─ merge ─▶ FeatureValidator ──▶ anomalies
//!                           every list of every record              every feature     ──▶ updated schema
//! records ─────────────────▶ StatisticsObserver ───────────────────────▲
//! ```
//!
//! Unlike TFDV, which validates statistics, the observer receives the records, so that an anomaly
//! has their number and the place of the first.

mod anomaly;
mod domains;
mod feature_check;
mod feature_validator;
mod observer;
mod self_check;
mod violations;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tfarrow_codec::{FeatureSummary, Role, infer::RecordObserver};
use tfarrow_dataset::{OnProgress, Result, Shard};
use tfarrow_scan::InferOptions;

pub use self::anomaly::{Anomaly, AnomalyKind};
use self::{
    feature_check::CheckState,
    feature_validator::{FeatureValidator, ObservedFeature},
    observer::SchemaObserver,
    self_check::check_schema,
};
use crate::{
    collect::{Statistics, StatisticsMerger, StatisticsState},
    proto::{Anomalies, Schema, feature::DomainInfo},
    schema::{each_feature, feature_path, infer, push_feature_list},
};

/// A feature with floats that are NaN or infinite. As in TFDV, these are not an anomaly unless the
/// `float_domain` of the schema sets `disallow_nan` or `disallow_inf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NonFinite {
    /// The feature, as a path of the schema.
    pub feature: String,
    /// Number of values that are NaN.
    pub nan: u64,
    /// Number of values that are infinite.
    pub infinite: u64,
    /// Number of all values.
    pub values: u64,
}

/// The result of validating a data set against a schema.
#[derive(Debug)]
pub struct Validation {
    /// The statistics of the data set.
    pub statistics: Statistics,
    /// The anomalies, ordered by feature.
    pub anomalies: Vec<Anomaly>,
    /// The schema with the smallest changes after which the data set has no anomalies.
    pub updated: Schema,
}

impl Validation {
    /// Validates the records of `shards` against `schema`. With an environment, features that the
    /// schema excludes from that environment are not required.
    ///
    /// # Errors
    /// The errors of [`infer_observed`](tfarrow_scan::infer_observed): unreadable, corrupt or
    /// truncated shards.
    pub fn validate(
        shards: &[Shard],
        schema: &Schema,
        environment: Option<&str>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self> {
        Ok(Self::validate_with(shards, schema, environment, options, progress, || ())?.0)
    }

    /// Validates as [`validate`](Self::validate), and passes each record to further observers.
    /// `observer` is called once for each thread; the observers are returned in no particular
    /// order.
    ///
    /// # Errors
    /// The errors of [`infer_observed`](tfarrow_scan::infer_observed): unreadable, corrupt or
    /// truncated shards.
    pub fn validate_with<O: RecordObserver + Send>(
        shards: &[Shard],
        schema: &Schema,
        environment: Option<&str>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
        observer: impl Fn() -> O + Sync,
    ) -> Result<(Self, Vec<O>)> {
        let checked = CheckedSchema::new(schema);
        let (statistics, found, others) = checked.observe(shards, options, progress, observer)?;
        Ok((checked.finish(statistics, environment, &found), others))
    }

    /// Observes the records of a [part](InferOptions::part) of `shards`, as
    /// [`validate_with`](Self::validate_with) does.
    ///
    /// # Errors
    /// The errors of [`infer_observed`](tfarrow_scan::infer_observed): unreadable, corrupt or
    /// truncated shards.
    pub fn validate_part<O: RecordObserver + Send>(
        shards: &[Shard],
        schema: &Schema,
        options: &InferOptions,
        progress: &OnProgress<'_>,
        observer: impl Fn() -> O + Sync,
    ) -> Result<(ValidationState, Vec<O>)> {
        let (statistics, found, others) =
            CheckedSchema::new(schema).observe(shards, options, progress, observer)?;
        Ok((
            ValidationState {
                statistics: statistics.into_state(),
                checks: found.into_states(),
            },
            others,
        ))
    }

    /// Returns the features with floats that are NaN or infinite.
    pub fn non_finite(&self) -> Vec<NonFinite> {
        let found = self.statistics.features().filter_map(|(feature, values)| {
            let floats = values.floats.as_ref()?;
            let nan = floats.nan;
            let infinite = floats.positive_infinities + floats.negative_infinities;
            let feature = feature_path(feature.role == Role::Sequence, &feature.name);
            (nan + infinite > 0).then_some(NonFinite {
                feature,
                nan,
                infinite,
                values: floats.count() + nan,
            })
        });
        found.collect()
    }

    /// Returns the anomalies as TFDV's message, with `schema` as its baseline.
    pub fn to_proto(&self, schema: &Schema) -> Anomalies {
        anomaly::to_proto(
            &self.anomalies,
            schema,
            self.statistics.inferred.summary.records(),
        )
    }
}

/// The observations of a part of a data set that is validated, which can be serialized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValidationState {
    statistics: StatisticsState,
    checks: Vec<CheckState>,
}

/// A schema without contradictions, and the anomalies of those that it had.
#[derive(Debug)]
struct CheckedSchema {
    schema: Schema,
    contradictions: Vec<Anomaly>,
}

impl CheckedSchema {
    fn new(schema: &Schema) -> Self {
        let mut schema = schema.clone();
        let contradictions = check_schema(&mut schema);
        Self {
            schema,
            contradictions,
        }
    }

    /// Reads the records, and merges the violations that all threads found.
    fn observe<O: RecordObserver + Send>(
        &self,
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        observer: impl Fn() -> O + Sync,
    ) -> Result<(Statistics, SchemaObserver, Vec<O>)> {
        let (statistics, observers) = Statistics::collect_with(shards, options, progress, || {
            (SchemaObserver::new(&self.schema), observer())
        })?;
        let (parts, others): (Vec<_>, Vec<_>) = observers.into_iter().unzip();
        let mut merged = SchemaObserver::new(&self.schema);
        parts.into_iter().for_each(|part| merged.merge(part));
        Ok((statistics, merged, others))
    }

    /// Returns the result, once all records are observed.
    fn finish(
        self,
        statistics: Statistics,
        environment: Option<&str>,
        found: &SchemaObserver,
    ) -> Validation {
        let (mut anomalies, updated) =
            validate_features(&statistics, self.schema, environment, found);
        anomalies.extend(self.contradictions);
        anomalies.sort_by(|a, b| a.feature.cmp(&b.feature));
        Validation {
            statistics,
            anomalies,
            updated,
        }
    }
}

/// Merges the observations of all parts of a data set, in any order, one after the other.
#[derive(Debug)]
pub(crate) struct ValidationMerger {
    schema: CheckedSchema,
    statistics: StatisticsMerger,
    found: SchemaObserver,
}

impl ValidationMerger {
    /// Creates a merger of parts that were observed with this schema, and read with these options.
    pub(crate) fn new(schema: &Schema, options: &InferOptions) -> Self {
        let schema = CheckedSchema::new(schema);
        let found = SchemaObserver::new(&schema.schema);
        Self {
            schema,
            statistics: StatisticsMerger::new(options),
            found,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// More names of features than the limits allow.
    pub(crate) fn add(&mut self, part: ValidationState) -> Result<()> {
        self.found.merge_states(part.checks);
        self.statistics.add(part.statistics)
    }

    /// Validates the data set in an environment, once all parts were added. `names` are those of
    /// all shards.
    pub(crate) fn finish(self, names: Vec<String>, environment: Option<&str>) -> Validation {
        self.schema
            .finish(self.statistics.finish(names), environment, &self.found)
    }
}

/// Returns the anomalies of the data set and of all features, and the updated schema.
fn validate_features(
    statistics: &Statistics,
    mut updated: Schema,
    environment: Option<&str>,
    checks: &SchemaObserver,
) -> (Vec<Anomaly>, Schema) {
    let records = statistics.inferred.summary.records();
    let mut anomalies = validate_record_count(&mut updated, records);
    if records == 0 {
        return (anomalies, updated);
    }
    let mut unknown: [BTreeMap<&str, ObservedFeature<'_>>; 2] = Default::default();
    for seen in statistics.features() {
        unknown[usize::from(seen.0.role == Role::Sequence)].insert(&seen.0.name, seen);
    }
    let mut validated = HashSet::new();
    each_feature(&mut updated, |feature, is_list, schema| {
        let Some(check) = checks.check(is_list, feature.name()) else {
            return;
        };
        if feature.name.is_none() || !validated.insert((is_list, feature.name().to_owned())) {
            return;
        }
        let seen = unknown[usize::from(is_list)].remove(feature.name());
        let path = feature_path(is_list, feature.name());
        let (unexpected, is_complete) = seen.map_or((HashMap::new(), true), |(_, values)| {
            check.unexpected(values)
        });
        let mut validator = FeatureValidator {
            feature,
            is_list,
            schema,
            found: &check.found,
            records,
            environment,
            unexpected,
            is_complete,
            anomalies: Vec::new(),
        };
        validator.validate(seen);
        anomalies.extend(validator.anomalies.into_iter().map(|found| Anomaly {
            feature: Some(path.clone()),
            ..found
        }));
    });
    anomalies.extend(
        unknown
            .iter()
            .flat_map(BTreeMap::values)
            .map(|(summary, _)| new_column(summary)),
    );
    add_features(
        &mut updated,
        unknown.into_iter().flat_map(BTreeMap::into_values),
        records,
    );
    (anomalies, updated)
}

/// Adds features to a schema as TFDV would infer them. A string domain whose name is taken gets a
/// number.
fn add_features<'a>(
    schema: &mut Schema,
    new: impl Iterator<Item = ObservedFeature<'a>>,
    records: u64,
) {
    let mut names: HashSet<String> = schema
        .string_domain
        .iter()
        .map(|domain| domain.name().to_owned())
        .collect();
    for (summary, values) in new {
        let (mut feature, mut domain) = infer::feature(summary, values, records);
        if let (Some(domain), Some(DomainInfo::Domain(name))) =
            (&mut domain, &mut feature.domain_info)
        {
            let numbered = (2_u64..).map(|number| format!("{name}{number}"));
            let mut candidates = std::iter::once(name.clone()).chain(numbered);
            let free = candidates
                .find(|candidate| names.insert(candidate.clone()))
                .unwrap_or_default();
            domain.name = Some(free.clone());
            *name = free;
        }
        schema.string_domain.extend(domain);
        match summary.role {
            Role::Sequence => push_feature_list(schema, feature),
            _ => schema.feature.push(feature),
        }
    }
}

/// Reports a number of records outside of the schema's `dataset_constraints`, and moves the bound.
fn validate_record_count(schema: &mut Schema, records: u64) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let Some(constraints) = &mut schema.dataset_constraints else {
        return found;
    };
    let count = records as i64;
    if let Some(min) = constraints
        .min_examples_count
        .as_mut()
        .filter(|min| count < **min)
    {
        let text = format!("There are {records} records; at least {min} are expected.");
        found.push(Anomaly::new(
            AnomalyKind::DatasetLowNumExamples,
            "Low num examples in dataset.",
            text,
        ));
        *min = count;
    }
    if let Some(max) = constraints
        .max_examples_count
        .as_mut()
        .filter(|max| count > **max)
    {
        let text = format!("There are {records} records; at most {max} are expected.");
        found.push(Anomaly::new(
            AnomalyKind::DatasetHighNumExamples,
            "High num examples in dataset.",
            text,
        ));
        *max = count;
    }
    found
}

/// Reports a feature that the schema does not have.
fn new_column(summary: &FeatureSummary) -> Anomaly {
    let first = summary.kinds().map(|(_, seen)| seen.first).min();
    Anomaly {
        feature: Some(feature_path(summary.role == Role::Sequence, &summary.name)),
        records: Some(summary.present),
        first,
        ..Anomaly::new(
            AnomalyKind::SchemaNewColumn,
            "New column",
            "The feature is in the data but not in the schema.",
        )
    }
}
