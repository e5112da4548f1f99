//! Protobuf messages of an unknown type as JSON: an object whose keys are field numbers.
//!
//! ```text
//! {"1": "chr1", "2": {"1": 17}, "5": [1, 2], "7": 0.5, "9": {"b64": "/w=="}}
//! ```
//!
//! A field with several values is a list. Eight or four bytes are shown as a float if it has a
//! usual size, and otherwise as an integer.

use std::collections::BTreeMap;

use arrow_array::{BinaryArray, StringArray};
use serde::{Serialize, Serializer, ser::SerializeMap};
use tfarrow_codec::infer::{WireMessage, WireValue};

use super::json::{Cell, Style};

/// A message that can be serialized.
pub(crate) struct WireJson<'a> {
    pub(crate) message: &'a WireMessage<'a>,
    pub(crate) style: Style,
}

impl Serialize for WireJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields: BTreeMap<u32, Vec<ValueJson<'_>>> = BTreeMap::new();
        for (number, value) in &self.message.fields {
            fields.entry(*number).or_default().push(ValueJson {
                value,
                style: self.style,
            });
        }
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (number, values) in &fields {
            match values.as_slice() {
                [value] => map.serialize_entry(number, value)?,
                values => map.serialize_entry(number, values)?,
            }
        }
        map.end()
    }
}

struct ValueJson<'a> {
    value: &'a WireValue<'a>,
    style: Style,
}

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            // Negative integers are in two's complement.
            WireValue::Varint(value) => serializer.serialize_i64(*value as i64),
            WireValue::Fixed64(bits) => match f64::from_bits(*bits) {
                value if is_usual(value) => serializer.serialize_f64(value),
                _ => serializer.serialize_i64(*bits as i64),
            },
            WireValue::Fixed32(bits) => match f32::from_bits(*bits) {
                value if is_usual(value.into()) => serializer.serialize_f32(value),
                _ => serializer.serialize_i32(*bits as i32),
            },
            WireValue::Text(text) => {
                Cell::new(&StringArray::from_iter_values([text]), 0, self.style)
                    .serialize(serializer)
            }
            WireValue::Bytes(bytes) => {
                Cell::new(&BinaryArray::from_iter_values([bytes]), 0, self.style)
                    .serialize(serializer)
            }
            WireValue::Message(message) => WireJson {
                message,
                style: self.style,
            }
            .serialize(serializer),
        }
    }
}

/// Returns whether a float has a size that measured values have, and that the bits of small
/// integers do not.
fn is_usual(value: f64) -> bool {
    value == 0.0 || (1e-12..1e18).contains(&value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfarrow_columnar::write_json;

    #[test]
    fn fields_are_keyed_by_their_numbers() {
        let record = b"\x0a\x04chr1\x12\x02\x08\x11\x28\x01\x28\x02\x3d\0\0\0\x3f\x4a\x01\xff\x51\x05\0\0\0\0\0\0\0";
        let message = WireMessage::parse(record).unwrap();
        let mut json = Vec::new();
        write_json(
            &mut json,
            &WireJson {
                message: &message,
                style: Style::FULL,
            },
        )
        .unwrap();
        let expected = r#"{"1": "chr1", "2": {"1": 17}, "5": [1, 2], "7": 0.5, "9": {"b64": "/w=="}, "10": 5}"#;
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            json,
            serde_json::from_str::<serde_json::Value>(expected).unwrap()
        );
    }
}
