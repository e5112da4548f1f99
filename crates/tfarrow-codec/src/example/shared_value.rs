//! Features that all records of a shard have besides their own, such as the value of a folder
//! `label=7`.
//!
//! Protobuf merges messages that follow each other, and takes the last of several map entries with
//! one key. Shared features are therefore an `Example` that is read before each record, whose own
//! features replace shared ones of the same name. The context of a `SequenceExample` has the field
//! number and the form of the features of an `Example`.

use super::wire::{self, LEN};
use crate::{
    Result,
    frame::{self, Records, SharedFeatures},
};

/// Numbers of the lists of a `Feature`.
const BYTES_LIST: u32 = 1;
const INT64_LIST: u32 = 3;

/// The value of a shared feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedValue<'a> {
    /// An `Int64List` of one value.
    Int64(i64),
    /// A `BytesList` of one text.
    Text(&'a str),
}

impl SharedFeatures {
    /// Creates features with these names and values.
    pub fn new<'a>(features: impl IntoIterator<Item = (&'a str, SharedValue<'a>)>) -> Self {
        let mut entries = Vec::new();
        for (name, value) in features {
            let mut entry = Vec::new();
            put_field(1, name.as_bytes(), &mut entry);
            put_field(2, &feature(value), &mut entry);
            put_field(1, &entry, &mut entries);
        }
        if entries.is_empty() {
            return Self::default();
        }
        let mut example = Vec::new();
        put_field(1, &entries, &mut example);
        Self::of_example(example)
    }

    /// Appends the record `data`, an `Example` or a `SequenceExample`, with these features before
    /// its own.
    fn add_to(&self, data: &[u8], out: &mut Vec<u8>) {
        match (split_features(self.example()), split_features(data)) {
            (Some((shared, _)), Some((own, rest))) => {
                wire::put_tag(1, LEN, out);
                wire::put_varint((shared.len() + own.len()) as u64, out);
                out.extend_from_slice(shared);
                out.extend_from_slice(own);
                out.extend_from_slice(rest);
            }
            // Of two messages that follow each other, protobuf merges the features.
            _ => {
                out.extend_from_slice(self.example());
                out.extend_from_slice(data);
            }
        }
    }
}

impl Records {
    /// Returns the records with the shared features as features of their own, in frames with valid
    /// CRCs, which lie in memory of their own. They keep their numbers, and have no
    /// [offsets](Self::offset).
    ///
    /// # Errors
    /// A record that exceeds [`MOST_RECORD_BYTES`](crate::MOST_RECORD_BYTES) with the features.
    pub fn with_own_features(self) -> Result<Self> {
        let shared = self.shared_features();
        if shared.is_empty() {
            return Ok(self);
        }
        let mut frames = Vec::with_capacity(self.bytes());
        let mut record = Vec::new();
        for data in self.iter() {
            record.clear();
            shared.add_to(data, &mut record);
            frame::write(&record, &mut frames);
        }
        Self::from_rows(frames, self.first())
    }
}

/// The features at the start of a record, and the fields after them; `None` for a record that does
/// not begin with them.
fn split_features(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = data;
    let (1, LEN) = wire::tag(&mut rest).ok()? else {
        return None;
    };
    let features = wire::bytes(&mut rest).ok()?;
    Some((features, rest))
}

/// A `Feature` of one value.
fn feature(value: SharedValue<'_>) -> Vec<u8> {
    let mut list = Vec::new();
    let mut feature = Vec::new();
    match value {
        SharedValue::Int64(value) => {
            let mut packed = Vec::new();
            wire::put_varint(value.cast_unsigned(), &mut packed);
            put_field(1, &packed, &mut list);
            put_field(INT64_LIST, &list, &mut feature);
        }
        SharedValue::Text(text) => {
            put_field(1, text.as_bytes(), &mut list);
            put_field(BYTES_LIST, &list, &mut feature);
        }
    }
    feature
}

/// Writes a length-delimited field.
fn put_field(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    wire::put_tag(number, LEN, out);
    wire::put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_added_before_those_of_a_record() {
        let label = SharedFeatures::new([("l", SharedValue::Int64(7))]);
        let entry = [0x0a, 10, 0x0a, 1, b'l', 0x12, 5, 0x1a, 3, 0x0a, 1, 7];
        let with = |data: &[u8]| {
            let mut out = Vec::new();
            label.add_to(data, &mut out);
            out
        };
        let record = |own: &[u8], rest: &[u8]| {
            [&[0x0a, 12 + own.len() as u8], &entry[..], own, rest].concat()
        };
        assert_eq!(with(b""), record(&[], &[]));
        // An entry of its own, and the feature lists of a SequenceExample.
        assert_eq!(
            with(&[0x0a, 2, 0x0a, 0, 0x12, 0]),
            record(&[0x0a, 0], &[0x12, 0])
        );
        // Feature lists without a context, and a record that is no message.
        assert_eq!(with(&[0x12, 0]), record(&[], &[0x12, 0]));
        assert_eq!(
            with(&[0x0a, 9]),
            [&record(&[], &[])[..], &[0x0a, 9]].concat()
        );
        assert_eq!(SharedFeatures::new([]), SharedFeatures::default());
    }
}
