//! The probable kind of records that are no Examples, from their first bytes and the wire of their
//! fields.
//!
//! A message does not name its type. A type is probable if all fields of the records are among its
//! fields, with the same wire types, those that such messages always have are there, and no record
//! has several members of a `oneof`.

use serde::{Deserialize, Serialize};
use tfarrow_codec::infer::{WireFields, WireMessage, WireValue, has_control_character};

use super::shard_reader::{ReadOptions, ShardReader};
use crate::{Result, Shard, format::magic, images::ImageHeader};

/// Maximum number of records that are looked at, and of their bytes.
const SAMPLE_RECORDS: usize = 1_000;
const SAMPLE_BYTES: usize = 4 << 20;

/// The probable kind of records that are no Examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbablePayload {
    /// The kind, such as "JPEG images" or "tensorflow.TensorProto messages".
    pub name: String,
    /// Number of records that were looked at.
    pub records: u64,
    /// Whether the records are text, which can be read without a decoder.
    pub is_text: bool,
    /// The fields, if all of these records are protobuf messages.
    pub fields: Option<WireFields>,
}

impl ProbablePayload {
    /// Reads the first records of a data set, up to 1,000 or 4 MiB; `None` if they have no kind in
    /// common.
    ///
    /// # Errors
    /// A shard that cannot be read. A corrupt record ends the sample.
    pub fn of(shards: &[Shard], read: &ReadOptions) -> Result<Option<Self>> {
        let sample = Self::sample(shards, read)?;
        Ok(Self::of_records(
            &sample.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        ))
    }

    /// Reads the first records of a data set, up to 1,000 or 4 MiB.
    ///
    /// # Errors
    /// A shard that cannot be read. A corrupt record ends the sample.
    fn sample(shards: &[Shard], read: &ReadOptions) -> Result<Vec<Vec<u8>>> {
        let mut sample = Vec::new();
        let mut bytes = 0;
        'shards: for shard in shards {
            let mut reader = ShardReader::open(shard, read)?;
            while let Ok(Some(records)) = reader.next() {
                for record in records.iter() {
                    if sample.len() >= SAMPLE_RECORDS || bytes >= SAMPLE_BYTES {
                        break 'shards;
                    }
                    bytes += record.len();
                    sample.push(record.to_vec());
                }
            }
        }
        Ok(sample)
    }

    /// Decides what all of these records are; `None` if they have no kind in common.
    pub fn of_records(records: &[&[u8]]) -> Option<Self> {
        // An empty record may be of any type.
        let mut not_empty = Vec::with_capacity(records.len());
        for record in records {
            if !record.is_empty() {
                not_empty.push(*record);
            }
        }
        let first = not_empty.first()?;
        let (name, fields, is_text) = if let Some(header) = ImageHeader::read(first) {
            for record in &not_empty {
                if ImageHeader::read(record).map(|other| other.format) != Some(header.format) {
                    return None;
                }
            }
            let format = format!("{:?}", header.format).to_uppercase();
            (format!("{format} images"), None, false)
        } else if let Some(name) = magic::name(first) {
            if not_empty
                .iter()
                .any(|record| magic::name(record) != Some(name))
            {
                return None;
            }
            (name.to_owned(), None, false)
        } else if let Some((name, fields)) = messages(&not_empty) {
            (name, Some(fields), false)
        } else {
            (text_name(&not_empty)?.to_owned(), None, true)
        };
        Some(Self {
            name,
            records: records.len() as u64,
            is_text,
            fields,
        })
    }
}

/// The name of the messages that all records can be, and their fields.
fn messages(records: &[&[u8]]) -> Option<(String, WireFields)> {
    let mut fields = WireFields::default();
    let mut candidates: Vec<_> = KNOWN.iter().collect();
    for record in records {
        let message = WireMessage::parse(record)?;
        candidates.retain(|known| known.has_one_member(&message));
        fields.add(&message);
    }
    let name = match candidates.iter().find(|known| known.fits(&fields)) {
        Some(known) => format!("{} messages", known.name),
        None => "protobuf messages".to_owned(),
    };
    Some((name, fields))
}

/// The name of the text that all records are.
fn text_name(records: &[&[u8]]) -> Option<&'static str> {
    let mut is_json = true;
    for record in records {
        if std::str::from_utf8(record).is_err() || has_control_character(record) {
            return None;
        }
        let record = record.trim_ascii();
        is_json &= matches!(
            (record.first(), record.last()),
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
        );
    }
    Some(if is_json { "JSON" } else { "text" })
}

/// The wire of a field: the [kinds](WireValue::kind) that its values can be taken for.
#[derive(Clone, Copy)]
enum FieldWire {
    /// An integer, enum or boolean.
    Varint,
    /// A double or an integer of eight bytes.
    Fixed64,
    /// Text, bytes, a message or packed numbers.
    Len,
    /// Numbers that are packed or not.
    Numbers,
}

impl FieldWire {
    fn fits(self, kind: &str) -> bool {
        match self {
            Self::Varint => kind == WireValue::Varint(0).kind(),
            Self::Fixed64 => kind == WireValue::Fixed64(0).kind(),
            Self::Len => ["text", "bytes", "message"].contains(&kind),
            Self::Numbers => true,
        }
    }
}

/// A type of messages that data sets have.
struct KnownMessage {
    name: &'static str,
    /// The paths of the fields that such messages of a data set have: numbers from the message on.
    required: &'static [&'static [u32]],
    /// All fields of the message itself, by number.
    fields: &'static [(u32, FieldWire)],
    /// The numbers of the members of its `oneof`; empty if it has none. Writers set at most one
    /// member.
    oneof: &'static [u32],
}

impl KnownMessage {
    /// Returns whether a record has at most one member of the `oneof`.
    fn has_one_member(&self, record: &WireMessage<'_>) -> bool {
        record
            .fields
            .iter()
            .filter(|(number, _)| self.oneof.contains(number))
            .count()
            <= 1
    }

    fn fits(&self, found: &WireFields) -> bool {
        for (path, field) in &found.fields {
            let [number] = path.as_slice() else {
                continue;
            };
            let Some((_, wire)) = self.fields.iter().find(|(other, _)| other == number) else {
                return false;
            };
            if !field.kinds.keys().all(|kind| wire.fits(kind)) {
                return false;
            }
        }
        for path in self.required {
            let Some(field) = found.fields.get(*path) else {
                return false;
            };
            if path.len() == 1 && field.present != found.records {
                return false;
            }
        }
        true
    }
}

/// The known types. Each requires fields that together are rare.
const KNOWN: &[KnownMessage] = &[
    // tensorflow/core/util/event.proto
    KnownMessage {
        name: "tensorflow.Event",
        required: &[&[1]],
        fields: &[
            (1, FieldWire::Fixed64),
            (2, FieldWire::Varint),
            (3, FieldWire::Len),
            (4, FieldWire::Len),
            (5, FieldWire::Len),
            (6, FieldWire::Len),
            (7, FieldWire::Len),
            (8, FieldWire::Len),
            (9, FieldWire::Len),
            (10, FieldWire::Len),
        ],
        oneof: &[3, 4, 5, 6, 7, 8, 9],
    },
    // tensorflow/core/framework/tensor.proto
    KnownMessage {
        name: "tensorflow.TensorProto",
        required: &[&[1], &[2]],
        fields: &[
            (1, FieldWire::Varint),
            (2, FieldWire::Len),
            (3, FieldWire::Varint),
            (4, FieldWire::Len),
            (5, FieldWire::Numbers),
            (6, FieldWire::Numbers),
            (7, FieldWire::Numbers),
            (8, FieldWire::Len),
            (9, FieldWire::Numbers),
            (10, FieldWire::Numbers),
            (11, FieldWire::Numbers),
            (12, FieldWire::Numbers),
            (13, FieldWire::Numbers),
            (14, FieldWire::Len),
            (15, FieldWire::Len),
            (16, FieldWire::Numbers),
            (17, FieldWire::Numbers),
        ],
        oneof: &[],
    },
    // tensorflow_metadata/proto/v0/statistics.proto
    KnownMessage {
        name: "tensorflow.metadata.v0.DatasetFeatureStatisticsList",
        required: &[&[1], &[1, 2], &[1, 3]],
        fields: &[(1, FieldWire::Len)],
        oneof: &[],
    },
    // waymo_open_dataset/protos/scenario.proto
    KnownMessage {
        name: "waymo.open_dataset.Scenario",
        required: &[&[1], &[2], &[5], &[10]],
        fields: &[
            (1, FieldWire::Numbers),
            (2, FieldWire::Len),
            (4, FieldWire::Numbers),
            (5, FieldWire::Len),
            (6, FieldWire::Varint),
            (7, FieldWire::Len),
            (8, FieldWire::Len),
            (10, FieldWire::Varint),
            (11, FieldWire::Len),
            (12, FieldWire::Len),
            (13, FieldWire::Len),
        ],
        oneof: &[],
    },
    // waymo_open_dataset/dataset.proto
    KnownMessage {
        name: "waymo.open_dataset.Frame",
        required: &[&[1], &[2], &[3], &[4]],
        fields: &[
            (1, FieldWire::Len),
            (2, FieldWire::Varint),
            (3, FieldWire::Len),
            (4, FieldWire::Len),
            (5, FieldWire::Len),
            (6, FieldWire::Len),
            (8, FieldWire::Len),
            (9, FieldWire::Len),
            (10, FieldWire::Len),
            (11, FieldWire::Len),
        ],
        oneof: &[],
    },
    // note_seq/protobuf/music.proto
    KnownMessage {
        name: "tensorflow.magenta.NoteSequence",
        required: &[&[4], &[8]],
        fields: &[
            (1, FieldWire::Len),
            (2, FieldWire::Len),
            (3, FieldWire::Len),
            (4, FieldWire::Varint),
            (5, FieldWire::Len),
            (6, FieldWire::Len),
            (7, FieldWire::Len),
            (8, FieldWire::Len),
            (9, FieldWire::Fixed64),
            (10, FieldWire::Len),
            (11, FieldWire::Len),
            (12, FieldWire::Len),
            (13, FieldWire::Len),
            (14, FieldWire::Len),
            (15, FieldWire::Len),
            (16, FieldWire::Len),
            (17, FieldWire::Fixed64),
            (18, FieldWire::Varint),
            (19, FieldWire::Len),
            (20, FieldWire::Len),
            (21, FieldWire::Len),
            (22, FieldWire::Len),
            (23, FieldWire::Len),
            (24, FieldWire::Len),
        ],
        oneof: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn name(records: &[&[u8]]) -> Option<String> {
        ProbablePayload::of_records(records).map(|probable| probable.name)
    }

    #[test]
    fn records_of_one_kind_have_a_name() {
        let mut png = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(1, 1)
            .write_to(&mut png, image::ImageFormat::Png)
            .unwrap();
        assert_eq!(
            name(&[png.get_ref(), png.get_ref()]).as_deref(),
            Some("PNG images")
        );
        assert_eq!(
            name(&[b"\x1f\x8b\x08\0\0", b"\x1f\x8b\x08\0\x01"]).as_deref(),
            Some("gzip")
        );
        assert_eq!(
            name(&[b"{\"a\": 1}", b" {\"a\": 2}\n"]).as_deref(),
            Some("JSON")
        );
        assert_eq!(
            name(&["grün".as_bytes(), b"a line"]).as_deref(),
            Some("text")
        );
        // dtype: 1, tensor_shape: {dim: {size: 1}}, float_val: 1
        let tensor = b"\x08\x01\x12\x04\x12\x02\x08\x01\x2d\0\0\x80\x3f";
        assert_eq!(
            name(&[tensor]).as_deref(),
            Some("tensorflow.TensorProto messages")
        );
        assert_eq!(
            name(&[b"\x0a\x03abc", b"\x0a\x01b"]).as_deref(),
            Some("protobuf messages")
        );
        // datasets: {num_examples: 7, features: {}}
        let name_of_statistics = "tensorflow.metadata.v0.DatasetFeatureStatisticsList messages";
        assert_eq!(
            name(&[b"\x0a\x04\x10\x07\x1a\0"]).as_deref(),
            Some(name_of_statistics)
        );
        assert_eq!(name(&[b"\xff\xfe\xfd", b"text"]), None);
        // Empty records are of any type.
        assert_eq!(
            name(&[b"", b"\x0a\x03abc", b""]).as_deref(),
            Some("protobuf messages")
        );
        assert_eq!(name(&[b"", b""]), None);
        assert_eq!(name(&[]), None);
    }

    /// Fields of the wire types of an event, of which an event has one: `oneof what {3 to 9}`.
    #[test]
    fn messages_with_several_members_of_a_oneof_are_no_events() {
        // wall_time: 0, step: 1
        let head = [&b"\x09\0\0\0\0\0\0\0\0"[..], b"\x10\x01"].concat();
        let event = |members: &[u8]| [&head, members].concat();
        let version = event(b"\x1a\x03abc");
        let summary = event(b"\x2a\x02\x0a\0");
        assert_eq!(
            name(&[&version, &summary, &head]).as_deref(),
            Some("tensorflow.Event messages")
        );
        let both = event(b"\x1a\x03abc\x2a\x02\x0a\0");
        assert_eq!(
            name(&[&version, &both, &summary]).as_deref(),
            Some("protobuf messages")
        );
        assert_eq!(
            name(&[&event(b"\x4a\x01a\x4a\x01b")]).as_deref(),
            Some("protobuf messages")
        );
        // The source of the metadata (10) is no member.
        assert_eq!(
            name(&[&event(b"\x1a\x03abc\x52\x02\x0a\0")]).as_deref(),
            Some("tensorflow.Event messages")
        );
    }

    #[test]
    fn messages_have_their_fields() {
        let fields = ProbablePayload::of_records(&[b"\x0a\x03abc\x12\x02\x08\x07"])
            .unwrap()
            .fields
            .unwrap();
        assert_eq!(
            fields.fields.keys().cloned().collect::<Vec<_>>(),
            [vec![1], vec![2], vec![2, 1]]
        );
    }
}
