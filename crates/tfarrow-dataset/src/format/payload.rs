//! The kind of a shard's records, determined from the first bytes, so that files of two kinds are
//! not read as one data set.

use std::fmt;

use memchr::memmem;
use tfarrow_codec::{
    Limits, Summary, VerifyCrc,
    frame::{self, HEADER, length},
};

/// The kind of a shard's records, as far as the first bytes determine it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payload {
    /// Unknown: the file was not read, is empty or damaged, or its first records are valid messages
    /// of any kind.
    #[default]
    Unknown,
    /// `tf.Example` or `tf.SequenceExample` messages.
    Examples,
    /// `ExampleListWithContext` messages.
    ExampleLists,
    /// TensorBoard events: `tf.Event` messages.
    Events,
    /// Other records.
    Other,
}

/// Tag of the first field of a message, if it has a length: a message, string or bytes.
const FIRST: u8 = 0x0a;
/// Tag of the second field of a message, if it has a length.
const SECOND: u8 = 0x12;
/// Tag of the first field of an event, its time in seconds since 1970, a double; and the largest
/// one that counts as a time.
const WALL_TIME: u8 = 0x09;
const LATEST_TIME: f64 = 1e11;
/// Tag of the step of an event, a number.
const STEP: u8 = 0x10;
/// Tags of the other fields of an event, which are text, bytes or messages: `file_version` to
/// `source_metadata`.
const EVENT_FIELDS: [u8; 8] = [0x1a, 0x22, 0x2a, 0x32, 0x3a, 0x42, 0x4a, 0x52];
/// Number of bytes at the start of a record in which TensorBoard's writer has its version,
/// [`EVENT`].
const EVENT_BYTES: usize = 64;
/// Start of the version in the first event of a file.
const EVENT: &[u8] = b"brain.Event:";

impl Payload {
    /// Determines the kind of a file that begins with `head`, decompressed.
    pub(crate) fn of(head: &[u8]) -> Self {
        let Some(length) = length(head) else {
            return Self::Unknown;
        };
        let data = head.get(HEADER..).unwrap_or_default();
        let data = data
            .get(..data.len().min(length as usize))
            .unwrap_or_default();
        let has_version = memmem::find(data.get(..EVENT_BYTES).unwrap_or(data), EVENT).is_some();
        if has_version || is_event(data, length) {
            return Self::Events;
        }
        Self::of_records(head).unwrap_or_else(|| Self::of_prefix(data, length))
    }

    /// Determines the kind of the complete records in `head`; `None` if there are none, or if they
    /// are valid messages of any kind.
    fn of_records(head: &[u8]) -> Option<Self> {
        let records = frame::records(head, Limits::default()).next()?.ok()?;
        let mut summary = Summary::new(0);
        // The reader of the file reports damage and exceeded limits.
        if summary.observe(&records, VerifyCrc::Always).is_err() {
            return Some(Self::Unknown);
        }
        let is_odd = summary.unparsable() > 0 || summary.foreign().is_some();
        Some(
            match (
                summary.examples() > 0,
                summary.first_list().is_some(),
                is_odd,
            ) {
                (true, _, _) => Self::Examples,
                (false, true, _) => Self::ExampleLists,
                (false, false, true) => Self::Other,
                // Messages with unknown fields only in their first message, or messages without
                // fields.
                (false, false, false) => return None,
            },
        )
    }

    /// Determines the kind of a record of `length` bytes by its first bytes, `data`.
    ///
    /// ```text
    /// 0a features   0a entry   0a key   12 value      as TensorFlow writes a map: Examples
    /// 0a features   0a ..                             Unknown, such as an ExampleListWithContext
    /// 0a features   ..                                Other: a map has entries only
    /// ..                                              Other
    /// ```
    fn of_prefix(data: &[u8], length: u64) -> Self {
        let Some((tag, features, rest)) = field(data) else {
            return Self::Unknown;
        };
        if tag != FIRST && tag != SECOND || features > length {
            return Self::Other;
        }
        if features > 0 && rest.first().is_some_and(|tag| *tag != FIRST) {
            return Self::Other;
        }
        let entry = field(rest).filter(|(tag, entry, _)| *tag == FIRST && *entry <= features);
        let key = entry.and_then(|(_, entry, rest)| {
            field(rest).filter(|(tag, key, _)| *tag == FIRST && *key <= entry)
        });
        let value = key.and_then(|(_, key, rest)| rest.get(usize::try_from(key).ok()?));
        if value == Some(&SECOND) {
            Self::Examples
        } else {
            Self::Unknown
        }
    }

    /// The name of the kind in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown records",
            Self::Examples => "tf.Example records",
            Self::ExampleLists => "ExampleListWithContext records",
            Self::Events => "TensorBoard events",
            Self::Other => "other records",
        }
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Splits a field into its tag, which has one byte, the length after it, and the rest.
fn field(data: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (tag, rest) = data.split_first()?;
    let mut length = 0u64;
    let mut shift = 0;
    for (index, byte) in rest.iter().enumerate().take(9) {
        length |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((*tag, length, rest.get(index + 1..)?));
        }
    }
    None
}

/// Returns whether a record of `length` bytes that begins with `data` has the shape of a
/// `tf.Event`, as writers write it: a time, perhaps a step, and other fields of an event. Not each
/// writer begins a file with the version.
fn is_event(data: &[u8], length: u64) -> bool {
    let Some((time, mut rest)) = data
        .strip_prefix(&[WALL_TIME])
        .and_then(|data| data.split_first_chunk())
    else {
        return false;
    };
    if !(0.0..LATEST_TIME).contains(&f64::from_le_bytes(*time)) {
        return false;
    }
    if let Some((STEP, _, after)) = field(rest) {
        rest = after;
    }
    let mut left = length.saturating_sub((data.len() - rest.len()) as u64);
    let mut fields = 0;
    while left > 0 {
        let Some((tag, size, body)) = field(rest) else {
            return fields > 0 && (data.len() as u64) < length;
        };
        let head = (rest.len() - body.len()) as u64;
        let Some(after) = left
            .checked_sub(head)
            .and_then(|left| left.checked_sub(size))
        else {
            return false;
        };
        if !EVENT_FIELDS.contains(&tag) {
            return false;
        }
        fields += 1;
        left = after;
        rest = usize::try_from(size)
            .ok()
            .and_then(|size| body.get(size..))
            .unwrap_or_default();
    }
    fields > 0
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::frame;

    use super::*;

    fn of(records: &[&[u8]], head: usize) -> Payload {
        let mut bytes = Vec::new();
        records
            .iter()
            .for_each(|record| frame::write(record, &mut bytes));
        Payload::of(bytes.get(..head).unwrap_or(&bytes))
    }

    /// `{"x": [1, 2]}`.
    const EXAMPLE: &[u8] = b"\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\x01\x02";

    #[test]
    fn complete_records_determine_the_kind() {
        assert_eq!(of(&[EXAMPLE], 512), Payload::Examples);
        assert_eq!(
            of(&[b"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2"], 512),
            Payload::Events
        );
        assert_eq!(of(&[b"some text", b"more text"], 512), Payload::Other);
        assert_eq!(of(&[b"\x0a\x05hello"], 512), Payload::Other);
        // One other record does not change the kind of Examples.
        assert_eq!(of(&[b"some text", EXAMPLE], 512), Payload::Examples);
        // TFDV's statistics: a data set with a number of examples and a feature, but no name.
        assert_eq!(
            of(&[b"\x0a\x07\x10\x05\x1a\x03\x0a\x01x"], 512),
            Payload::Other
        );
        assert_eq!(
            of(
                &[&[b"\x0a\xc0\x0f\x10\x05".as_slice(), &[0x1a; 1982]].concat()],
                512
            ),
            Payload::Other
        );
        assert_eq!(of(&[b"\x0a\0", b"\x12\0"], 512), Payload::Unknown);
        // An Example without features is a valid message of any kind.
        assert_eq!(of(&[b""], 512), Payload::Unknown);
        assert_eq!(Payload::of(b""), Payload::Unknown);
    }

    #[test]
    fn events_are_known_by_their_shape_without_a_version() {
        // The time 1,700,000,000 seconds, and the step 7.
        let time = b"\x09\0\0\0\x40\x1f\xd5\xd9\x41".as_slice();
        let summary = [time, b"\x10\x07\x2a\x0a\x0a\x08\x0a\x01a\x15\0\0\0\0"].concat();
        assert_eq!(of(&[&summary], 512), Payload::Events);
        for head in HEADER + 13..summary.len() {
            assert_eq!(of(&[&summary], head), Payload::Events, "{head}");
        }
        let long = [time, b"\x2a\xd0\x0f", &[0; 2000]].concat();
        assert_eq!(of(&[&long], 512), Payload::Events);
        for other in [
            // No other field; a field that no event has; a field that is longer than the record; a
            // time that is none.
            time.to_vec(),
            [time, b"\x62\x01a"].concat(),
            [time, b"\x2a\x05a"].concat(),
            [b"\x09\0\0\0\0\0\0\xf0\xff".as_slice(), b"\x2a\x01a"].concat(),
        ] {
            assert_eq!(of(&[&other], 512), Payload::Other, "{other:x?}");
        }
    }

    #[test]
    fn a_corrupt_first_record_is_unknown() {
        let mut bytes = Vec::new();
        frame::write(EXAMPLE, &mut bytes);
        bytes[HEADER] ^= 1;
        assert_eq!(Payload::of(&bytes), Payload::Unknown);
    }

    #[test]
    fn the_prefix_of_a_long_record_determines_the_kind() {
        let mut long =
            b"\x0a\xd3\x0f\x0a\xd0\x0f\x0a\x05image\x12\xc6\x0f\x0a\xc3\x0f\x0a\xc0\x0f".to_vec();
        long.extend([0xff; 1984]);
        assert_eq!(of(&[&long], 5000), Payload::Examples);
        assert_eq!(of(&[&long], 512), Payload::Examples);
        for head in 0..22 + HEADER {
            assert!(
                [Payload::Unknown, Payload::Examples].contains(&of(&[&long], head)),
                "{head}"
            );
        }
        assert_eq!(of(&[&[b'a'; 2000]], 512), Payload::Other);
        // The first field is text, or it begins as a map.
        let text = |first: u8| [b"\x0a\xc0\x0f".as_slice(), &[first], &[b'a'; 1983]].concat();
        assert_eq!(
            [b'a', b'\n'].map(|first| of(&[&text(first)], 512)),
            [Payload::Other, Payload::Unknown]
        );
    }
}
