//! The model: what a record holds, as a plain map, and `prost` reading and writing it.
//!
//! Absent, unset and empty are three different things here: no entry in the map, [`Value::Unset`], and a list of
//! nothing. Floats are bits, so that equal means equal.

use std::collections::BTreeMap;

use prost::Message;

use crate::{
    Result,
    proto::{
        BytesList, Example, Feature, FeatureEntry, FeatureList, FeatureListEntry, FeatureLists, Features, FloatList,
        Int64List, Kind as Oneof, SequenceExample,
    },
};

/// Which map of a record an entry stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// `Example.features`, or `SequenceExample.context`.
    Features,
    /// `SequenceExample.feature_lists`
    Lists,
}

/// The kind of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `bytes_list`
    Bytes,
    /// `float_list`
    Float,
    /// `int64_list`
    Int64,
}

/// What one `Feature` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No kind.
    Unset,
    /// `bytes_list`
    Bytes(Vec<Vec<u8>>),
    /// `float_list`, as bits.
    Float(Vec<u32>),
    /// `int64_list`
    Int64(Vec<i64>),
}

impl Value {
    /// Its kind, if any.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Unset => None,
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Float(_) => Some(Kind::Float),
            Self::Int64(_) => Some(Kind::Int64),
        }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Unset => 0,
            Self::Bytes(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Int64(values) => values.len(),
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What one map entry holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A feature.
    One(Value),
    /// A feature list: a value a step.
    Steps(Vec<Value>),
}

impl Cell {
    /// The features in it.
    pub fn values(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Steps(steps) => steps,
        }
    }
}

/// What one record holds.
pub type Row = BTreeMap<(Side, String), Cell>;

/// Reads an Example.
///
/// # Errors
/// What `prost` says.
pub fn row_from_example(payload: &[u8]) -> Result<Row> {
    let example = Example::decode(payload)?;
    Ok(feature_cells(example.features).collect())
}

/// Reads a SequenceExample.
///
/// # Errors
/// What `prost` says.
pub fn row_from_sequence_example(payload: &[u8]) -> Result<Row> {
    let example = SequenceExample::decode(payload)?;
    let lists = example.feature_lists.unwrap_or_default().feature_list;
    let lists = lists.into_iter().map(|entry| {
        let steps = entry.value.unwrap_or_default().feature.into_iter().map(value_of).collect();
        ((Side::Lists, entry.key.unwrap_or_default()), Cell::Steps(steps))
    });
    Ok(feature_cells(example.context).chain(lists).collect())
}

/// The entries of a map in the order of the wire: the last of a key is the one to keep.
fn feature_cells(features: Option<Features>) -> impl Iterator<Item = ((Side, String), Cell)> {
    let entries = features.unwrap_or_default().feature.into_iter();
    entries.map(|entry| {
        ((Side::Features, entry.key.unwrap_or_default()), Cell::One(value_of(entry.value.unwrap_or_default())))
    })
}

fn value_of(feature: Feature) -> Value {
    match feature.kind {
        None => Value::Unset,
        Some(Oneof::Bytes(list)) => Value::Bytes(list.value),
        Some(Oneof::Float(list)) => Value::Float(list.value.into_iter().map(f32::to_bits).collect()),
        Some(Oneof::Int64(list)) => Value::Int64(list.value),
    }
}

/// Writes an Example as TensorFlow does when it is asked to be deterministic: in the order of names.
pub fn example_from_row(row: &Row) -> Vec<u8> {
    Example { features: features_of(row) }.encode_to_vec()
}

/// Writes a SequenceExample likewise.
pub fn sequence_example_from_row(row: &Row) -> Vec<u8> {
    SequenceExample { context: features_of(row), feature_lists: feature_lists_of(row) }.encode_to_vec()
}

fn features_of(row: &Row) -> Option<Features> {
    let feature: Vec<_> = row
        .iter()
        .filter_map(|((_, name), cell)| match cell {
            Cell::One(value) => Some(FeatureEntry { key: Some(name.clone()), value: Some(feature_of(value)) }),
            Cell::Steps(_) => None,
        })
        .collect();
    (!feature.is_empty()).then_some(Features { feature })
}

fn feature_lists_of(row: &Row) -> Option<FeatureLists> {
    let feature_list: Vec<_> = row
        .iter()
        .filter_map(|((_, name), cell)| match cell {
            Cell::One(_) => None,
            Cell::Steps(steps) => {
                let list = FeatureList { feature: steps.iter().map(feature_of).collect() };
                Some(FeatureListEntry { key: Some(name.clone()), value: Some(list) })
            }
        })
        .collect();
    (!feature_list.is_empty()).then_some(FeatureLists { feature_list })
}

fn feature_of(value: &Value) -> Feature {
    let kind = match value {
        Value::Unset => None,
        Value::Bytes(values) => Some(Oneof::Bytes(BytesList { value: values.clone() })),
        Value::Float(bits) => {
            Some(Oneof::Float(FloatList { value: bits.iter().map(|bits| f32::from_bits(*bits)).collect() }))
        }
        Value::Int64(values) => Some(Oneof::Int64(Int64List { value: values.clone() })),
    };
    Feature { kind }
}

/// The kinds that each feature has anywhere in `rows`.
pub fn kinds(rows: &[Row]) -> BTreeMap<(Side, String), Vec<Kind>> {
    let mut kinds = BTreeMap::<_, Vec<Kind>>::new();
    for (key, cell) in rows.iter().flatten() {
        let known = kinds.entry(key.clone()).or_default();
        known.extend(cell.values().iter().filter_map(Value::kind));
        known.sort_unstable();
        known.dedup();
    }
    kinds
}

/// Whether any feature (not a step of a feature list) has no kind.
pub fn has_unset(rows: &[Row]) -> bool {
    rows.iter().flatten().any(|(_, cell)| *cell == Cell::One(Value::Unset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prost_reads_what_it_wrote() {
        let one = |value| Cell::One(value);
        let mut row = Row::from([
            ((Side::Features, "".into()), one(Value::Int64(vec![i64::MIN, -1, 0, i64::MAX]))),
            ((Side::Features, "b".into()), one(Value::Bytes(vec![vec![0xff], vec![]]))),
            ((Side::Features, "e".into()), one(Value::Float(vec![]))),
            ((Side::Features, "f".into()), one(Value::Float(vec![0x7fa0_0001, 0x8000_0000]))),
            ((Side::Features, "u".into()), one(Value::Unset)),
        ]);
        assert_eq!(row_from_example(&example_from_row(&row)).unwrap(), row);
        row.insert((Side::Lists, "b".into()), Cell::Steps(vec![Value::Unset, Value::Int64(vec![])]));
        row.insert((Side::Lists, "none".into()), Cell::Steps(vec![]));
        assert_eq!(row_from_sequence_example(&sequence_example_from_row(&row)).unwrap(), row);
        assert!(has_unset(&[row]));
    }

    #[test]
    fn the_messages_have_tensorflows_numbers() {
        // Example { features { feature { key: "x" value { int64_list { value: [7] } } } } }, as TensorFlow writes it.
        let wire = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
        let row = Row::from([((Side::Features, "x".into()), Cell::One(Value::Int64(vec![7])))]);
        assert_eq!(row_from_example(wire).unwrap(), row);
        assert_eq!(example_from_row(&row), wire);
    }
}
