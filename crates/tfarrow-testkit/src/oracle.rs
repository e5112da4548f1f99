//! The model: a record as a map, with a reader and a writer that use `prost`.
//!
//! Absent, unset and empty features differ: an absent feature has no entry in the map, an unset one
//! has [`ModelValue::Unset`], and an empty one has a list without values. Floats are stored as
//! bits, so that equality is exact.

use std::collections::BTreeMap;

use prost::Message;

use crate::{
    Result,
    proto::{
        BytesList, Example, Feature, FeatureEntry, FeatureList, FeatureListEntry, FeatureLists,
        Features, FloatList, Int64List, KindOneof as Oneof, SequenceExample,
    },
};

/// The map of a record that an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelSide {
    /// `Example.features`, or `SequenceExample.context`.
    Features,
    /// `SequenceExample.feature_lists`
    Lists,
}

/// The kind of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelKind {
    /// `bytes_list`
    Bytes,
    /// `float_list`
    Float,
    /// `int64_list`
    Int64,
}

/// The value of one `Feature`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelValue {
    /// No kind.
    Unset,
    /// `bytes_list`
    Bytes(Vec<Vec<u8>>),
    /// `float_list`, as the bits of the values.
    Float(Vec<u32>),
    /// `int64_list`
    Int64(Vec<i64>),
}

impl ModelValue {
    /// Returns the kind, if there is one.
    pub fn kind(&self) -> Option<ModelKind> {
        match self {
            Self::Unset => None,
            Self::Bytes(_) => Some(ModelKind::Bytes),
            Self::Float(_) => Some(ModelKind::Float),
            Self::Int64(_) => Some(ModelKind::Int64),
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Unset => 0,
            Self::Bytes(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Int64(values) => values.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The value of one map entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelCell {
    /// A feature.
    One(ModelValue),
    /// A feature list: one value for each step.
    Steps(Vec<ModelValue>),
}

impl ModelCell {
    /// Returns the features.
    pub fn values(&self) -> &[ModelValue] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Steps(steps) => steps,
        }
    }
}

/// The features and feature lists of one record.
pub type ModelRow = BTreeMap<(ModelSide, String), ModelCell>;

/// Reads an Example.
///
/// # Errors
/// Errors of `prost`.
pub fn row_from_example(payload: &[u8]) -> Result<ModelRow> {
    let example = Example::decode(payload)?;
    Ok(feature_cells(example.features).collect())
}

/// Reads a SequenceExample.
///
/// # Errors
/// Errors of `prost`.
pub fn row_from_sequence_example(payload: &[u8]) -> Result<ModelRow> {
    let example = SequenceExample::decode(payload)?;
    let lists = example.feature_lists.unwrap_or_default().feature_list;
    let lists = lists.into_iter().map(|entry| {
        let steps = entry
            .value
            .unwrap_or_default()
            .feature
            .into_iter()
            .map(value_of)
            .collect();
        (
            (ModelSide::Lists, entry.key.unwrap_or_default()),
            ModelCell::Steps(steps),
        )
    });
    Ok(feature_cells(example.context).chain(lists).collect())
}

/// Returns the entries of a map in the order of the wire. Of several entries with one key, the last
/// counts.
fn feature_cells(
    features: Option<Features>,
) -> impl Iterator<Item = ((ModelSide, String), ModelCell)> {
    let entries = features.unwrap_or_default().feature.into_iter();
    entries.map(|entry| {
        (
            (ModelSide::Features, entry.key.unwrap_or_default()),
            ModelCell::One(value_of(entry.value.unwrap_or_default())),
        )
    })
}

fn value_of(feature: Feature) -> ModelValue {
    match feature.kind {
        None => ModelValue::Unset,
        Some(Oneof::Bytes(list)) => ModelValue::Bytes(list.value),
        Some(Oneof::Float(list)) => {
            ModelValue::Float(list.value.into_iter().map(f32::to_bits).collect())
        }
        Some(Oneof::Int64(list)) => ModelValue::Int64(list.value),
    }
}

/// Writes an Example as TensorFlow's deterministic serialization does: ordered by name.
pub fn example_from_row(row: &ModelRow) -> Vec<u8> {
    Example {
        features: features_of(row),
    }
    .encode_to_vec()
}

/// Writes a SequenceExample in the same form.
pub fn sequence_example_from_row(row: &ModelRow) -> Vec<u8> {
    SequenceExample {
        context: features_of(row),
        feature_lists: feature_lists_of(row),
    }
    .encode_to_vec()
}

fn features_of(row: &ModelRow) -> Option<Features> {
    let feature: Vec<_> = row
        .iter()
        .filter_map(|((_, name), cell)| match cell {
            ModelCell::One(value) => Some(FeatureEntry {
                key: Some(name.clone()),
                value: Some(feature_of(value)),
            }),
            ModelCell::Steps(_) => None,
        })
        .collect();
    (!feature.is_empty()).then_some(Features { feature })
}

fn feature_lists_of(row: &ModelRow) -> Option<FeatureLists> {
    let feature_list: Vec<_> = row
        .iter()
        .filter_map(|((_, name), cell)| match cell {
            ModelCell::One(_) => None,
            ModelCell::Steps(steps) => {
                let list = FeatureList {
                    feature: steps.iter().map(feature_of).collect(),
                };
                Some(FeatureListEntry {
                    key: Some(name.clone()),
                    value: Some(list),
                })
            }
        })
        .collect();
    (!feature_list.is_empty()).then_some(FeatureLists { feature_list })
}

fn feature_of(value: &ModelValue) -> Feature {
    let kind = match value {
        ModelValue::Unset => None,
        ModelValue::Bytes(values) => Some(Oneof::Bytes(BytesList {
            value: values.clone(),
        })),
        ModelValue::Float(bits) => Some(Oneof::Float(FloatList {
            value: bits.iter().map(|bits| f32::from_bits(*bits)).collect(),
        })),
        ModelValue::Int64(values) => Some(Oneof::Int64(Int64List {
            value: values.clone(),
        })),
    };
    Feature { kind }
}

/// Returns the kinds that each feature has in `rows`.
pub fn kinds(rows: &[ModelRow]) -> BTreeMap<(ModelSide, String), Vec<ModelKind>> {
    let mut kinds = BTreeMap::<_, Vec<ModelKind>>::new();
    for (key, cell) in rows.iter().flatten() {
        let known = kinds.entry(key.clone()).or_default();
        known.extend(cell.values().iter().filter_map(ModelValue::kind));
        known.sort_unstable();
        known.dedup();
    }
    kinds
}

/// Returns whether any feature has no kind. Steps of feature lists do not count.
pub fn has_unset(rows: &[ModelRow]) -> bool {
    rows.iter()
        .flatten()
        .any(|(_, cell)| *cell == ModelCell::One(ModelValue::Unset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_written_with_prost_are_read_again() {
        let one = |value| ModelCell::One(value);
        let mut row = ModelRow::from([
            (
                (ModelSide::Features, "".into()),
                one(ModelValue::Int64(vec![i64::MIN, -1, 0, i64::MAX])),
            ),
            (
                (ModelSide::Features, "b".into()),
                one(ModelValue::Bytes(vec![vec![0xff], vec![]])),
            ),
            (
                (ModelSide::Features, "e".into()),
                one(ModelValue::Float(vec![])),
            ),
            (
                (ModelSide::Features, "f".into()),
                one(ModelValue::Float(vec![0x7fa0_0001, 0x8000_0000])),
            ),
            ((ModelSide::Features, "u".into()), one(ModelValue::Unset)),
        ]);
        assert_eq!(row_from_example(&example_from_row(&row)).unwrap(), row);
        row.insert(
            (ModelSide::Lists, "b".into()),
            ModelCell::Steps(vec![ModelValue::Unset, ModelValue::Int64(vec![])]),
        );
        row.insert((ModelSide::Lists, "none".into()), ModelCell::Steps(vec![]));
        assert_eq!(
            row_from_sequence_example(&sequence_example_from_row(&row)).unwrap(),
            row
        );
        assert!(has_unset(&[row]));
    }

    #[test]
    fn the_messages_have_tensorflows_numbers() {
        // Example { features { feature { key: "x" value { int64_list { value: [7] } } } } }, as
        // TensorFlow writes it.
        let wire = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
        let row = ModelRow::from([(
            (ModelSide::Features, "x".into()),
            ModelCell::One(ModelValue::Int64(vec![7])),
        )]);
        assert_eq!(row_from_example(wire).unwrap(), row);
        assert_eq!(example_from_row(&row), wire);
    }
}
