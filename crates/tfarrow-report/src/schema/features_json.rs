//! The schema as `features.json`, the file in which TensorFlow Datasets stores the features of a
//! data set.
//!
//! The format is that of TFDS' `feature.proto` in JSON, as `FeaturesDict.save_config` writes it.

use serde_json::{Map, Value, json};
use tfarrow_codec::{Kind, RecordType, Role};

use super::{
    inferred_schema::InferredSchema,
    spec::{Lengths, Spec},
};

/// The Python module of the feature classes of TFDS.
const CLASSES: &str = "tensorflow_datasets.core.features";

/// The features as TFDS declares them, and the reasons why others are omitted; `None` for a record
/// type that TFDS does not read.
pub(super) fn document(found: &InferredSchema) -> Option<(Value, Vec<String>)> {
    if found.record_type() != RecordType::Example {
        return None;
    }
    let records = found.inferred().summary.records();
    let mut features = Map::new();
    let mut left_out = Vec::new();
    for (feature, _) in found.features() {
        match Spec::of(feature, Role::Feature, records) {
            _ if found.is_folder(feature) => {
                left_out.push(format!("{:?} is a folder of the files", feature.name))
            }
            Ok(spec) => {
                features.insert(feature.name.clone(), one(spec));
            }
            // The caller reports features of more than one kind.
            Err(_) if feature.is_mixed() => {}
            Err(why) => left_out.push(format!("feature {:?} {why}", feature.name)),
        }
    }
    Some((
        json!({"pythonClassName": class("features_dict.FeaturesDict"), "featuresDict": {"features": features}}),
        left_out,
    ))
}

fn class(name: &str) -> String {
    format!("{CLASSES}.{name}")
}

/// A feature. One that some records lack can only be a list of values, which may be empty.
fn one(spec: Spec<'_>) -> Value {
    match spec.lengths() {
        Lengths::One if spec.always => value(spec),
        Lengths::Fixed(count) if spec.always => {
            tensor(spec.kind, "tensor_feature.Tensor", &[count])
        }
        _ => json!({
            "pythonClassName": class("sequence_feature.Sequence"),
            "sequence": {"feature": value(spec), "length": "-1"},
        }),
    }
}

fn value(spec: Spec<'_>) -> Value {
    match spec.is_text() {
        true => json!({"pythonClassName": class("text_feature.Text"), "text": {}}),
        false => tensor(spec.kind, "scalar.Scalar", &[]),
    }
}

fn tensor(kind: Kind, name: &str, dimensions: &[u64]) -> Value {
    let dtype = match kind {
        Kind::Bytes => "string",
        Kind::Float => "float32",
        Kind::Int64 => "int64",
    };
    // The JSON mapping of protobuf has 64-bit integers as strings.
    let dimensions: Vec<_> = dimensions.iter().map(u64::to_string).collect();
    let shape = if dimensions.is_empty() {
        json!({})
    } else {
        json!({"dimensions": dimensions})
    };
    json!({"pythonClassName": class(name), "tensor": {"shape": shape, "dtype": dtype, "encoding": "none"}})
}
