//! What is wrong with a data set, held against a schema: the anomalies of TensorFlow Data Validation, each with the records
//! that have it, which TFDV does not know; and the schema that the data would fit.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Serialize, Serializer};
use tfarrow_codec::{FeatureSummary, Place, Role, infer::RecordObserver};
use tfarrow_dataset::{InferOptions, OnProgress, Result, Shard};

use crate::{
    infer_schema::{self, SEQUENCE, path_step},
    judge::{Judge, Seen},
    mend::mend,
    proto::{
        Anomalies, AnomalyInfo, Feature, FeatureType, Path, Schema, StructDomain,
        anomalies::{AnomalyNameFormat, BaselineSchema},
        anomaly_info::{Reason, Severity},
        feature::DomainInfo,
    },
    rules::{Finding, Rules},
    statistics::Statistics,
};

pub use crate::proto::anomaly_info::Type as AnomalyKind;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anomaly {
    /// The feature, as a path of the schema; `None` where it is the data set.
    pub feature: Option<String>,
    /// What is wrong, by TFDV's name.
    #[serde(rename = "type", serialize_with = "by_name")]
    pub kind: AnomalyKind,
    /// In a few words, which are TFDV's.
    pub short_description: String,
    /// In a sentence.
    pub description: String,
    /// How many records have it, where it is one of records.
    pub records: Option<u64>,
    /// The first of these.
    #[serde(skip)]
    pub first: Option<Place>,
}

fn by_name<S: Serializer>(kind: &AnomalyKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str_name())
}

impl Anomaly {
    pub(crate) fn new(kind: AnomalyKind, short_description: impl Into<String>, description: impl Into<String>) -> Self {
        let short_description = short_description.into();
        Self { feature: None, kind, short_description, description: description.into(), records: None, first: None }
    }

    pub(crate) fn in_records(self, finding: Finding) -> Self {
        Self { records: Some(finding.records), first: finding.first, ..self }
    }
}

/// A feature with floats that are NaN or infinite. As for TFDV these are no anomaly, unless the `float_domain` of the
/// schema says `disallow_nan` or `disallow_inf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NonFinite {
    /// The feature, as a path of the schema.
    pub feature: String,
    /// Values that are NaN.
    pub nan: u64,
    /// Values that are infinite.
    pub infinite: u64,
    /// All values.
    pub values: u64,
}

/// A data set that was held against a schema.
#[derive(Debug)]
pub struct Validation {
    /// What was counted of it.
    pub statistics: Statistics,
    /// What is wrong, by feature.
    pub anomalies: Vec<Anomaly>,
    /// The schema that the data fits.
    pub updated: Schema,
}

impl Validation {
    /// Holds `shards` against `schema`, in an environment of it.
    ///
    /// # Errors
    /// As [`infer_observed`](tfarrow_dataset::infer_observed).
    pub fn of(
        shards: &[Shard],
        schema: &Schema,
        environment: Option<&str>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self> {
        Ok(Self::with(shards, schema, environment, options, progress, || ())?.0)
    }

    /// Likewise, and tells others of each record as well: one a thread, which come back in no order.
    ///
    /// # Errors
    /// As [`infer_observed`](tfarrow_dataset::infer_observed).
    pub fn with<O: RecordObserver + Send>(
        shards: &[Shard],
        schema: &Schema,
        environment: Option<&str>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
        others: impl Fn() -> O + Sync,
    ) -> Result<(Self, Vec<O>)> {
        let mut mended = schema.clone();
        let own = mend_all(&mut mended);
        let begin = || (Rules::new(&mended), others());
        let (statistics, seen) = Statistics::collect_with(shards, options, progress, begin)?;
        let (parts, others): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        let mut rules = Rules::new(&mended);
        parts.into_iter().for_each(|part| rules.merge(part));
        let (mut anomalies, updated) = judge(&statistics, mended, environment, &rules);
        anomalies.extend(own);
        anomalies.sort_by(|a, b| a.feature.cmp(&b.feature));
        Ok((Self { statistics, anomalies, updated }, others))
    }

    /// The features with floats that are NaN or infinite.
    pub fn non_finite(&self) -> Vec<NonFinite> {
        let found = self.statistics.features().filter_map(|(feature, values)| {
            let floats = values.floats.as_ref()?;
            let (nan, infinite) = (floats.nan, floats.positive_infinities + floats.negative_infinities);
            let feature = path_of(feature.role == Role::Sequence, &feature.name);
            (nan + infinite > 0).then_some(NonFinite { feature, nan, infinite, values: floats.count() + nan })
        });
        found.collect()
    }

    /// The anomalies as TFDV says them, for `schema`.
    pub fn to_proto(&self, schema: &Schema) -> Anomalies {
        let mut found = Anomalies {
            anomaly_name_format: Some(AnomalyNameFormat::SerializedPath.into()),
            data_missing: (self.statistics.inferred.summary.records() == 0).then_some(true),
            baseline_schema: Some(BaselineSchema::Baseline(schema.clone())),
            ..Anomalies::default()
        };
        for anomaly in &self.anomalies {
            let info = match &anomaly.feature {
                Some(path) => found.anomaly_info.entry(path.clone()).or_default(),
                None => found.dataset_anomaly_info.get_or_insert_default(),
            };
            add(info, anomaly);
        }
        found
    }
}

/// Adds an anomaly to those of its feature, which have one description for all.
fn add(info: &mut AnomalyInfo, anomaly: &Anomaly) {
    let several = !info.reason.is_empty();
    let text = info.description.get_or_insert_default();
    text.push_str(if several { " " } else { "" });
    text.push_str(&anomaly.description);
    info.short_description = Some(if several { "Multiple errors" } else { &anomaly.short_description }.to_owned());
    info.severity = Some(Severity::Error.into());
    info.path = anomaly.feature.as_ref().map(|path| {
        let own = |step: &str| match step.strip_prefix('\'').and_then(|step| step.strip_suffix('\'')) {
            Some(quoted) => quoted.replace("''", "'"),
            None => step.to_owned(),
        };
        let step = match path.strip_prefix(SEQUENCE).and_then(|rest| rest.strip_prefix('.')) {
            Some(step) => vec![SEQUENCE.to_owned(), own(step)],
            None => vec![own(path)],
        };
        Path { step }
    });
    info.reason.push(Reason {
        r#type: Some(anomaly.kind.into()),
        short_description: Some(anomaly.short_description.clone()),
        description: Some(anomaly.description.clone()),
    });
}

/// Mends what the schema says against itself, and tells it.
fn mend_all(schema: &mut Schema) -> Vec<Anomaly> {
    let domains: HashSet<String> = schema.string_domain.iter().map(|domain| domain.name().to_owned()).collect();
    let mut found = Vec::new();
    each_feature(schema, |feature, is_list, _| {
        let path = path_of(is_list, feature.name());
        let own = mend(feature, &domains);
        found.extend(own.into_iter().map(|anomaly| Anomaly { feature: Some(path.clone()), ..anomaly }));
    });
    found
}

/// What is wrong, and the schema for which nothing is.
fn judge(
    statistics: &Statistics,
    mut updated: Schema,
    environment: Option<&str>,
    rules: &Rules,
) -> (Vec<Anomaly>, Schema) {
    let records = statistics.inferred.summary.records();
    let mut anomalies = dataset(&mut updated, records);
    if records == 0 {
        return (anomalies, updated);
    }
    let mut new: [BTreeMap<&str, Seen<'_>>; 2] = Default::default();
    for seen in statistics.features() {
        new[usize::from(seen.0.role == Role::Sequence)].insert(&seen.0.name, seen);
    }
    let mut judged = HashSet::new();
    each_feature(&mut updated, |feature, is_list, schema| {
        let Some(rule) = rules.of(is_list, feature.name()) else { return };
        if feature.name.is_none() || !judged.insert((is_list, feature.name().to_owned())) {
            return;
        }
        let seen = new[usize::from(is_list)].remove(feature.name());
        let (unexpected, is_complete, found) = (HashMap::new(), true, Vec::new());
        let mut judge = Judge { feature, is_list, schema, rule, records, environment, unexpected, is_complete, found };
        judge.all(seen);
        let path = path_of(is_list, judge.feature.name());
        anomalies.extend(judge.found.into_iter().map(|found| Anomaly { feature: Some(path.clone()), ..found }));
    });
    let mut names: HashSet<String> = updated.string_domain.iter().map(|domain| domain.name().to_owned()).collect();
    for (summary, values) in new.into_iter().flat_map(BTreeMap::into_values) {
        anomalies.push(new_column(summary));
        let (mut feature, mut domain) = infer_schema::feature(summary, values, records);
        if let (Some(domain), Some(DomainInfo::Domain(name))) = (&mut domain, &mut feature.domain_info) {
            // Another domain may have the name.
            let wanted = name.clone();
            let mut free =
                (1_u64..).map(|number| if number == 1 { wanted.clone() } else { format!("{wanted}{number}") });
            *name = free.find(|name| names.insert(name.clone())).unwrap_or_default();
            domain.name = Some(name.clone());
        }
        updated.string_domain.extend(domain);
        match summary.role {
            Role::Sequence => steps_of(&mut updated).feature.push(feature),
            _ => updated.feature.push(feature),
        }
    }
    (anomalies, updated)
}

/// The path of a feature, or of a feature list, in a schema, as one string.
pub fn path_of(is_list: bool, name: &str) -> String {
    match is_list {
        true => format!("{SEQUENCE}.{}", path_step(name)),
        false => path_step(name),
    }
}

/// Calls `then` with each feature, whether it is a feature list, and the rest of the schema.
pub(crate) fn each_feature(schema: &mut Schema, mut then: impl FnMut(&mut Feature, bool, &mut Schema)) {
    let mut features = std::mem::take(&mut schema.feature);
    for feature in &mut features {
        if feature.name() != SEQUENCE {
            then(feature, false, schema);
        } else if let Some(DomainInfo::StructDomain(steps)) = &mut feature.domain_info {
            steps.feature.iter_mut().for_each(|step| then(step, true, schema));
        }
    }
    schema.feature = features;
}

/// Where a schema has its feature lists.
fn steps_of(schema: &mut Schema) -> &mut StructDomain {
    let index = schema.feature.iter().position(|feature| feature.name() == SEQUENCE).unwrap_or_else(|| {
        schema.feature.push(Feature {
            name: Some(SEQUENCE.to_owned()),
            r#type: Some(FeatureType::Struct.into()),
            ..Feature::default()
        });
        schema.feature.len() - 1
    });
    let domain = &mut schema.feature[index].domain_info;
    if !matches!(domain, Some(DomainInfo::StructDomain(_))) {
        *domain = Some(DomainInfo::StructDomain(StructDomain::default()));
    }
    match domain {
        Some(DomainInfo::StructDomain(steps)) => steps,
        _ => unreachable!("it was just put there"),
    }
}

/// What is wrong with how many records there are.
fn dataset(schema: &mut Schema, records: u64) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let Some(constraints) = &mut schema.dataset_constraints else { return found };
    let count = records as i64;
    if let Some(least) = constraints.min_examples_count.as_mut().filter(|least| count < **least) {
        let text = format!("There are {records} records, where at least {least} are expected.");
        found.push(Anomaly::new(AnomalyKind::DatasetLowNumExamples, "Low num examples in dataset.", text));
        *least = count;
    }
    if let Some(most) = constraints.max_examples_count.as_mut().filter(|most| count > **most) {
        let text = format!("There are {records} records, where at most {most} are expected.");
        found.push(Anomaly::new(AnomalyKind::DatasetHighNumExamples, "High num examples in dataset.", text));
        *most = count;
    }
    found
}

fn new_column(summary: &FeatureSummary) -> Anomaly {
    let first = summary.kinds().map(|(_, seen)| seen.first).min();
    Anomaly {
        feature: Some(path_of(summary.role == Role::Sequence, &summary.name)),
        records: Some(summary.present),
        first,
        ..Anomaly::new(AnomalyKind::SchemaNewColumn, "New column", "The data has it, the schema has not.")
    }
}
