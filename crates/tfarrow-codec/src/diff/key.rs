//! The key of a record: the values of some of its features.

use std::borrow::Cow;

use super::{
    found::FoundFeatures,
    values::{FeatureValue, List, list},
};
use crate::{
    Kind, Limits, RecordType, WireError,
    example::{keys::Keys, list::ExampleList, walk::Side},
};

/// The values of the key features of a record. Keys are equal if all features have the same kinds
/// and values. As in joins of SQL, all NaNs are one value, and -0.0 equals 0.0.
///
/// The bytes are those of each feature, one after the other: the kind, the number of values, and
/// the values. Byte strings are preceded by their length. Numbers are little-endian.
///
/// ```text
/// id = [7]            02 01000000 0700000000000000
/// name = ["ab"]       00 01000000 02000000 'a' 'b'
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordKey(Box<[u8]>);

impl RecordKey {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the values of each feature.
    pub fn values(&self) -> Vec<Vec<FeatureValue>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(|| values(&mut rest)).collect()
    }
}

/// Takes the values of a feature off the front of `bytes`; `None` at the end.
fn values(bytes: &mut &[u8]) -> Option<Vec<FeatureValue>> {
    let kind = take::<1>(bytes)?[0];
    let count = u32::from_le_bytes(take(bytes)?);
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(match Kind::ALL.get(usize::from(kind))? {
            Kind::Int64 => FeatureValue::Int64(i64::from_le_bytes(take(bytes)?)),
            Kind::Float => FeatureValue::Float(u32::from_le_bytes(take(bytes)?)),
            Kind::Bytes => {
                let len = u32::from_le_bytes(take(bytes)?) as usize;
                let (value, rest) = bytes.split_at_checked(len)?;
                *bytes = rest;
                FeatureValue::Bytes(value.to_vec())
            }
        });
    }
    Some(values)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Reads the keys of records. Reuse it: it learns the order of keys of their maps.
#[derive(Debug)]
pub struct KeyReader {
    record_type: RecordType,
    keys: [Keys; 2],
    /// Number of key features, which have the first numbers of the features' map.
    count: usize,
    /// Whether a record had the feature.
    seen: Vec<bool>,
    found: FoundFeatures,
}

impl KeyReader {
    /// Creates a reader of keys of these features, which are those of the context of records that
    /// have one.
    pub fn new(features: &[String], record_type: RecordType, limits: Limits) -> Self {
        let features_keys = Keys::new(features.iter().map(String::as_str), limits);
        let count = features_keys.names().len();
        let keys = [features_keys, Keys::new([], limits)];
        Self {
            record_type,
            keys,
            count,
            seen: vec![false; count],
            found: FoundFeatures::default(),
        }
    }

    /// Returns the key of a record; `None` if it does not have one of the features, or has one
    /// without a kind.
    ///
    /// # Errors
    /// [`WireError`] for a record that does not parse.
    pub fn key(&mut self, record: &[u8]) -> Result<Option<RecordKey>, WireError> {
        let nesting = self.keys[0].limits().nesting;
        let record = match self.record_type {
            RecordType::ExampleList => ExampleList::parse(record, nesting)?
                .context
                .unwrap_or_default(),
            _ => Cow::Borrowed(record),
        };
        self.found.read(
            &record,
            self.record_type == RecordType::SequenceExample,
            &mut self.keys,
        )?;
        let mut bytes = Vec::new();
        let mut is_complete = true;
        for (id, seen) in self.seen.iter_mut().enumerate() {
            let message = self.found.message(Side::Features, id, &record);
            *seen |= message.is_some();
            let list = message.map_or(Ok(List::Unset), |message| list(message, nesting))?;
            is_complete &= write(&list, &mut bytes);
        }
        Ok(is_complete.then(|| RecordKey(bytes.into())))
    }

    /// Returns the names of the key features that no record had so far.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let names = self.keys[0].names().iter().zip(&self.seen);
        names.filter(|(_, seen)| !**seen).map(|(name, _)| &**name)
    }

    /// Returns the names of the other features that records had so far.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.keys[0]
            .names()
            .iter()
            .skip(self.count)
            .map(|name| &**name)
    }
}

/// Appends the values of a key feature. Returns whether it has a kind.
fn write(list: &List, bytes: &mut Vec<u8>) -> bool {
    let Some(kind) = list.kind() else {
        return false;
    };
    bytes.push(kind as u8);
    match list {
        List::Unset => {}
        List::Int64(values) => {
            bytes.extend(length(values.len()));
            values
                .iter()
                .for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        List::Float(values) => {
            bytes.extend(length(values.len()));
            values
                .iter()
                .for_each(|bits| bytes.extend(normalized(*bits).to_le_bytes()));
        }
        List::Bytes(values) => {
            bytes.extend(length(values.len()));
            for value in values {
                bytes.extend(length(value.len()));
                bytes.extend(value);
            }
        }
    }
    true
}

/// A number of values, or of bytes, in a key. A record has less than 4 GiB.
fn length(len: usize) -> [u8; 4] {
    (len as u32).to_le_bytes()
}

/// The bits of a float in a key: those of one NaN, and those of 0.0 for -0.0.
fn normalized(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        (value + 0.0).to_bits()
    }
}
