//! Protobuf messages of an unknown type: their fields, as far as the wire has them.
//!
//! The wire has the numbers of fields and their sizes, and neither names nor types. Bytes with a
//! length may be text, bytes or a message; the most likely is assumed:
//!
//! ```text
//! 0a 03 'a' 'b' 'c'        1: "abc"                        text, unless it is also a message that begins with a line feed
//! 12 04 08 01 10 02        2: {1: 1, 2: 2}                 no text, and complete fields
//! 1a 02 ff fe              3: bytes                        neither
//! 21 00 .. f0 3f           4: 1.0                          eight bytes, which may be a double or an integer
//! ```
//!
//! Descriptors of the messages have all of this: `MessageType`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::text::has_control_character;
use crate::example::wire::{self, FIXED32, FIXED64, LEN, START_GROUP, VARINT};

/// Maximum depth of messages in messages that are looked into.
const MOST_DEPTH: usize = 8;
/// Maximum number of fields of a record, and of the messages nested in it. Nested messages beyond
/// it are bytes.
const MOST_FIELDS: usize = 100_000;
/// Maximum number of fields of a [`WireFields`].
const MOST_PATHS: usize = 1_000;

/// A value of a field of a message of unknown type.
#[derive(Clone, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// An integer, enum or boolean.
    Varint(u64),
    /// Eight bytes: a double or an integer.
    Fixed64(u64),
    /// Four bytes: a float or an integer.
    Fixed32(u32),
    /// Bytes that are UTF-8 without [control characters](has_control_character).
    Text(&'a str),
    /// Bytes that are neither text nor a message.
    Bytes(&'a [u8]),
    /// Bytes that are the fields of a message, or a group.
    Message(WireMessage<'a>),
}

/// All [kinds](WireValue::kind).
const KINDS: [&str; 6] = ["integer", "fixed64", "fixed32", "text", "bytes", "message"];

/// Deserializes numbers of values by kind. Bytes that are not trusted may have other names, which
/// are an error.
fn kinds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<&'static str, u64>, D::Error> {
    let found = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let mut known = BTreeMap::new();
    for (name, values) in found {
        let Some(kind) = KINDS.iter().find(|kind| **kind == name) else {
            return Err(D::Error::unknown_variant(&name, &KINDS));
        };
        known.insert(*kind, values);
    }
    Ok(known)
}

impl WireValue<'_> {
    /// The kind of the value, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Varint(_) => "integer",
            Self::Fixed64(_) => "fixed64",
            Self::Fixed32(_) => "fixed32",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Message(_) => "message",
        }
    }
}

/// The fields of a message, in the order of the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireMessage<'a> {
    /// The number and the value of each field.
    pub fields: Vec<(u32, WireValue<'a>)>,
}

impl<'a> WireMessage<'a> {
    /// Reads the fields of a record; `None` if it is no protobuf message, is empty, or has more
    /// than 100,000 fields. Messages nested in it are looked into until they have as many.
    ///
    /// ```
    /// use tfarrow_codec::infer::{WireMessage, WireValue};
    /// let message = WireMessage::parse(b"\x0a\x03abc\x10\x07").unwrap();
    /// assert_eq!(message.fields, [(1, WireValue::Text("abc")), (2, WireValue::Varint(7))]);
    /// assert_eq!(WireMessage::parse(b"a line of text"), None);
    /// ```
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let mut left = MOST_FIELDS;
        Self::read(record, MOST_DEPTH, &mut left).filter(|message| !message.fields.is_empty())
    }

    fn read(mut rest: &'a [u8], depth: usize, left: &mut usize) -> Option<Self> {
        let mut fields = Vec::new();
        while !rest.is_empty() {
            if depth < MOST_DEPTH {
                *left = left.checked_sub(1)?;
            } else if fields.len() == MOST_FIELDS {
                return None;
            }
            let (number, wire_type) = wire::tag(&mut rest).ok()?;
            let value = match wire_type {
                VARINT => WireValue::Varint(wire::varint(&mut rest).ok()?),
                FIXED64 => WireValue::Fixed64(u64::from_le_bytes(wire::fixed64(&mut rest).ok()?)),
                FIXED32 => WireValue::Fixed32(u32::from_le_bytes(wire::fixed32(&mut rest).ok()?)),
                LEN => Self::value(wire::bytes(&mut rest).ok()?, depth, left),
                START_GROUP => {
                    let body = wire::group(&mut rest, number, depth).ok()?;
                    match Self::read(body, depth.checked_sub(1)?, left) {
                        Some(message) => WireValue::Message(message),
                        None if *left == 0 => WireValue::Bytes(body),
                        None => return None,
                    }
                }
                _ => return None,
            };
            fields.push((number, value));
        }
        Some(Self { fields })
    }

    /// Decides what bytes with a length are.
    fn value(bytes: &'a [u8], depth: usize, left: &mut usize) -> WireValue<'a> {
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|_| !has_control_character(bytes));
        // A message whose first field is number 1 with a length begins with a line feed, as text
        // seldom does.
        if text.is_none() || bytes.first() == Some(&b'\n') {
            let mut after = *left;
            let message = depth
                .checked_sub(1)
                .and_then(|depth| Self::read(bytes, depth, &mut after));
            // Fields of bytes that are no message count too, so that the work has a limit.
            *left = after;
            if let Some(message) = message {
                return WireValue::Message(message);
            }
        }
        text.map_or(WireValue::Bytes(bytes), WireValue::Text)
    }
}

/// A field of messages of one unknown type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireField {
    /// Number of messages that have the field.
    pub present: u64,
    /// Number of values.
    pub values: u64,
    /// The [kinds](WireValue::kind) of its values, with their numbers.
    #[serde(deserialize_with = "kinds")]
    pub kinds: BTreeMap<&'static str, u64>,
}

/// The fields of messages of one unknown type, by their path: field numbers from the record on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFields {
    /// Number of records.
    pub records: u64,
    /// The fields, at most 1,000.
    pub fields: BTreeMap<Vec<u32>, WireField>,
}

impl WireFields {
    /// Adds a record.
    pub fn add(&mut self, record: &WireMessage<'_>) {
        self.records += 1;
        self.add_at(&mut Vec::new(), record);
    }

    fn add_at(&mut self, path: &mut Vec<u32>, message: &WireMessage<'_>) {
        let mut seen = BTreeSet::new();
        for (number, value) in &message.fields {
            path.push(*number);
            if self.fields.len() < MOST_PATHS || self.fields.contains_key(path) {
                let field = self.fields.entry(path.clone()).or_default();
                field.values += 1;
                *field.kinds.entry(value.kind()).or_default() += 1;
                field.present += u64::from(seen.insert(*number));
                if let WireValue::Message(message) = value {
                    self.add_at(path, message);
                }
            }
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_a_message_or_bytes() {
        let kinds = |record: &[u8]| {
            WireMessage::parse(record).map(|message| {
                message
                    .fields
                    .iter()
                    .map(|(_, v)| v.kind())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(kinds(b"\x0a\x03abc"), Some(vec!["text"]));
        assert_eq!(kinds(b"\x12\x04\x08\x01\x10\x02"), Some(vec!["message"]));
        // A line feed, a length and as many characters: a message rather than text.
        assert_eq!(
            kinds(b"\x0a\x22\x0a\x20abcdefghijklmnopqrstuvwxyzabcdef"),
            Some(vec!["message"])
        );
        assert_eq!(kinds(b"\x0a\x07\nline\n."), Some(vec!["text"]));
        assert_eq!(kinds(b"\x1a\x02\xff\xfe"), Some(vec!["bytes"]));
        assert_eq!(
            kinds(b"\x0d\0\0\x80\x3f\x11\0\0\0\0\0\0\xf0\x3f"),
            Some(vec!["fixed32", "fixed64"])
        );
        assert_eq!(kinds(b"\x0b\x08\x01\x0c"), Some(vec!["message"]));
        for none in [&b""[..], b"text", b"\x0a\x05abc", b"\0\0", b"\x0f"] {
            assert_eq!(kinds(none), None, "{none:?}");
        }
    }

    #[test]
    fn nesting_and_fields_have_limits() {
        let nested = (0..MOST_DEPTH as u8 + 4).fold(vec![8, 1], |inner, _| {
            [vec![0x12, inner.len() as u8], inner].concat()
        });
        assert!(WireMessage::parse(&nested).is_some());
        assert_eq!(WireMessage::parse(&[8, 1].repeat(MOST_FIELDS + 1)), None);
        // Each level of these bytes is tried as a message once.
        let groups = [0x0b; 100_000];
        assert_eq!(WireMessage::parse(&groups), None);
    }

    #[test]
    fn a_record_with_many_fields_in_nested_messages_is_a_message() {
        let nested = [8, 1].repeat(MOST_FIELDS - 40_000);
        let mut field = vec![0x12, 0xc0, 0xa9, 0x07];
        assert_eq!(nested.len(), 0x40 | 0x29 << 7 | 0x07 << 14);
        field.extend_from_slice(&nested);
        let record = [&field[..], &field, b"\x08\x07"].concat();
        let message = WireMessage::parse(&record).unwrap();
        let kinds: Vec<_> = message
            .fields
            .iter()
            .map(|(_, value)| value.kind())
            .collect();
        assert_eq!(kinds, ["message", "bytes", "integer"]);
    }

    #[test]
    fn fields_are_counted_by_path() {
        let mut fields = WireFields::default();
        for record in [&b"\x0a\x02\x08\x01\x0a\x02\x08\x02"[..], b"\x12\x01a"] {
            fields.add(&WireMessage::parse(record).unwrap());
        }
        let field = |path: &[u32]| {
            fields
                .fields
                .get(path)
                .map(|field| (field.present, field.values))
        };
        assert_eq!(fields.records, 2);
        assert_eq!(
            [field(&[1]), field(&[1, 1]), field(&[2])],
            [Some((1, 2)), Some((2, 2)), Some((1, 1))]
        );
    }
}
