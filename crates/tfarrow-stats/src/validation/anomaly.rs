//! Anomalies, and their form as a `tensorflow.metadata.v0.Anomalies` message.

use serde::{Serialize, Serializer};
use tfarrow_codec::Place;

use super::violations::Violations;
use crate::{
    proto::{
        Anomalies, AnomalyInfo, Path, Schema,
        anomalies::{AnomalyNameFormat, BaselineSchema},
        anomaly_info::{Reason, Severity},
    },
    schema::path_names,
};

pub use crate::proto::anomaly_info::Type as AnomalyKind;

/// A violation of a schema, or of a bound on the distance from a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anomaly {
    /// The feature, as a path of the schema (see [`feature_path`](crate::feature_path)); `None` for
    /// the data set.
    pub feature: Option<String>,
    /// The kind of the anomaly; serialized by its name in `anomalies.proto`, such as
    /// `UNEXPECTED_DATA_TYPE`.
    #[serde(rename = "type", serialize_with = "by_name")]
    pub kind: AnomalyKind,
    /// A description of a few words, which are TFDV's.
    pub short_description: String,
    /// A description of one sentence, with the values expected and found.
    pub description: String,
    /// Number of records that have the anomaly; `None` for anomalies that are not counted by
    /// record.
    pub records: Option<u64>,
    /// The first of these records in data-set order.
    #[serde(skip)]
    pub first: Option<Place>,
}

/// Serializes a kind by its name.
fn by_name<S: Serializer>(kind: &AnomalyKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str_name())
}

impl Anomaly {
    /// Creates an anomaly of the data set, without records.
    pub(crate) fn new(
        kind: AnomalyKind,
        short_description: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let short_description = short_description.into();
        Self {
            feature: None,
            kind,
            short_description,
            description: description.into(),
            records: None,
            first: None,
        }
    }

    /// Sets the number of records that have the anomaly, and the first of them.
    pub(crate) fn in_records(self, violations: Violations) -> Self {
        Self {
            records: Some(violations.records),
            first: violations.first,
            ..self
        }
    }
}

/// Converts anomalies to TFDV's message; `schema` becomes its `baseline`, and `records` decides
/// `data_missing`.
pub(super) fn to_proto(anomalies: &[Anomaly], schema: &Schema, records: u64) -> Anomalies {
    let mut message = Anomalies {
        anomaly_name_format: Some(AnomalyNameFormat::SerializedPath.into()),
        data_missing: (records == 0).then_some(true),
        baseline_schema: Some(BaselineSchema::Baseline(schema.clone())),
        ..Anomalies::default()
    };
    for anomaly in anomalies {
        let info = match &anomaly.feature {
            Some(path) => message.anomaly_info.entry(path.clone()).or_default(),
            None => message.dataset_anomaly_info.get_or_insert_default(),
        };
        add_reason(info, anomaly);
    }
    message
}

/// Adds an anomaly to the message of its feature, which has one description for all of its
/// anomalies.
fn add_reason(info: &mut AnomalyInfo, anomaly: &Anomaly) {
    let several = !info.reason.is_empty();
    let text = info.description.get_or_insert_default();
    text.push_str(if several { " " } else { "" });
    text.push_str(&anomaly.description);
    info.short_description = Some(
        if several {
            "Multiple errors"
        } else {
            &anomaly.short_description
        }
        .to_owned(),
    );
    info.severity = Some(Severity::Error.into());
    info.path = anomaly.feature.as_ref().map(|path| Path {
        step: path_names(path),
    });
    info.reason.push(Reason {
        r#type: Some(anomaly.kind.into()),
        short_description: Some(anomaly.short_description.clone()),
        description: Some(anomaly.description.clone()),
    });
}
