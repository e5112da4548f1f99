//! Tells from the first bytes of a TFRecord file which kind of records it holds, so that files of two kinds are not read as
//! one data set.

use std::{fmt, path::Path};

use memchr::memmem;
use tfarrow_codec::{
    Limits, Summary, VerifyCrc,
    frame::{self, HEADER, length},
};

use crate::{Error, ErrorKind, ReadOptions, Result, Shard, ShardReader, error::shown, names::file_name};

/// The kind of records that a shard holds, as far as its first records tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payload {
    /// Not known: the file was not read, is empty or damaged, or its first records may be anything.
    #[default]
    Unknown,
    /// `tf.Example` or `tf.SequenceExample` messages.
    Examples,
    /// Events of TensorBoard: `tf.Event` messages.
    Events,
    /// Records that are neither.
    Other,
}

/// The first field of a message, of type message, string or bytes.
const FIRST: u8 = 0x0a;
/// The same of the second.
const SECOND: u8 = 0x12;
/// Bytes of a record in which TensorBoard's writer has its mark, and the mark.
const EVENT_BYTES: usize = 64;
const EVENT: &[u8] = b"brain.Event:";

impl Payload {
    /// The kind of the records of a file that begins with `head`, decompressed.
    pub(crate) fn of(head: &[u8]) -> Self {
        let Some(length) = length(head) else { return Self::Unknown };
        let data = head.get(HEADER..).unwrap_or_default();
        let data = data.get(..data.len().min(length as usize)).unwrap_or_default();
        if memmem::find(data.get(..EVENT_BYTES).unwrap_or(data), EVENT).is_some() {
            return Self::Events;
        }
        Self::of_records(head).unwrap_or_else(|| Self::of_prefix(data, length))
    }

    /// The kind of the whole records in `head`; `None` where there are none.
    fn of_records(head: &[u8]) -> Option<Self> {
        let records = frame::records(head, Limits::default()).next()?.ok()?;
        let mut summary = Summary::new(0);
        // The reader of the file reports damage and exceeded limits.
        if summary.observe(&records, VerifyCrc::Always).is_err() {
            return Some(Self::Unknown);
        }
        let is_odd = summary.unparsable() > 0 || summary.foreign().is_some();
        Some(match (summary.examples() > 0, is_odd) {
            (true, _) => Self::Examples,
            (false, true) => Self::Other,
            (false, false) => Self::Unknown,
        })
    }

    /// The kind of a record of `length` bytes that begins with `data`: a map's first entry is as TensorFlow writes it, or
    /// the record is no message that begins with features or feature lists at all.
    fn of_prefix(data: &[u8], length: u64) -> Self {
        let Some((tag, features, rest)) = field(data) else { return Self::Unknown };
        if tag != FIRST && tag != SECOND || features > length {
            return Self::Other;
        }
        let entry = field(rest).filter(|(tag, entry, _)| *tag == FIRST && *entry <= features);
        let key = entry.and_then(|(_, entry, rest)| field(rest).filter(|(tag, key, _)| *tag == FIRST && *key <= entry));
        let value = key.and_then(|(_, key, rest)| rest.get(usize::try_from(key).ok()?));
        if value == Some(&SECOND) { Self::Examples } else { Self::Unknown }
    }

    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown records",
            Self::Examples => "tf.Example records",
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

/// A tag of one byte, the length after it, and the rest.
fn field(data: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (tag, rest) = data.split_first()?;
    let (mut length, mut shift) = (0u64, 0);
    for (index, byte) in rest.iter().enumerate().take(9) {
        length |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((*tag, length, rest.get(index + 1..)?));
        }
    }
    None
}

/// Whether a file is called as TensorBoard's are, such as `events.out.tfevents.1700000000.host`.
pub(crate) fn is_called_events(path: &Path) -> bool {
    memmem::find(file_name(path), b".tfevents.").is_some()
}

/// Refuses shards of more than one kind of records, as far as the first bytes of each tell.
///
/// # Errors
/// [`ErrorKind::MixedRecords`], with the number of files of each kind, and one of them.
pub fn check_one_payload(shards: &[Shard]) -> Result<()> {
    let known = [Payload::Examples, Payload::Events, Payload::Other];
    let kinds: Vec<_> = known.into_iter().filter_map(|payload| kind_of(shards, payload)).collect();
    let is_other = |shard: &&Shard| shard.payload() == Payload::Other;
    // The beginning of a long record may be damaged, and no other record.
    let has_others = || shards.iter().filter(is_other).any(begins_with_sound_record);
    let is_mixed = match kinds.len() {
        0 | 1 => false,
        2 => !shards.iter().any(|shard| is_other(&shard)) || has_others(),
        _ => true,
    };
    if !is_mixed {
        return Ok(());
    }
    Err(Error::general(ErrorKind::MixedRecords(format!(
        "two kinds of records in one data set: {}; name the files of one kind, such as with a glob, or read all records as \
         they are with the record type raw",
        kinds.join(", and ")
    ))))
}

/// Whether the CRC of a shard's first record holds.
fn begins_with_sound_record(shard: &Shard) -> bool {
    let reader = ShardReader::open(shard, &ReadOptions::default());
    let first = reader.and_then(|mut reader| reader.next()).ok().flatten();
    first.is_some_and(|records| records.check_crc(0).is_ok())
}

/// How many files have records of a kind, in words, with the first of them; `None` where there is none.
fn kind_of(shards: &[Shard], payload: Payload) -> Option<String> {
    let mut of_kind = shards.iter().filter(|shard| shard.payload() == payload);
    let first = of_kind.next()?;
    let count = 1 + of_kind.count();
    let s = if count == 1 { "" } else { "s" };
    Some(format!("{count} file{s} of {payload} (such as {})", shown(&first.path)))
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::frame;

    use super::*;

    fn of(records: &[&[u8]], head: usize) -> Payload {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| frame::write(record, &mut bytes));
        Payload::of(bytes.get(..head).unwrap_or(&bytes))
    }

    /// `{"x": [1, 2]}`, and the same with so much padding before it.
    const EXAMPLE: &[u8] = b"\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\x01\x02";

    #[test]
    fn records_are_told_by_what_they_are() {
        assert_eq!(of(&[EXAMPLE], 512), Payload::Examples);
        assert_eq!(of(&[b"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2"], 512), Payload::Events);
        assert_eq!(of(&[b"some text", b"more text"], 512), Payload::Other);
        assert_eq!(of(&[b"\x0a\x05hello"], 512), Payload::Other);
        // One that is none may stand among Examples.
        assert_eq!(of(&[b"some text", EXAMPLE], 512), Payload::Examples);
        // An Example without features has no kind to compare.
        assert_eq!(of(&[b""], 512), Payload::Unknown);
        assert_eq!(Payload::of(b""), Payload::Unknown);
    }

    #[test]
    fn a_damaged_first_record_does_not_make_another_kind() {
        let mut bytes = Vec::new();
        frame::write(EXAMPLE, &mut bytes);
        bytes[HEADER] ^= 1;
        assert_eq!(Payload::of(&bytes), Payload::Unknown);
        // Of a long one that is known once all of it was read.
        let folder = tempfile::tempdir().unwrap();
        for is_damaged in [false, true] {
            let (mut bytes, mut long) = (Vec::new(), EXAMPLE.to_vec());
            frame::write(EXAMPLE, &mut bytes);
            std::fs::write(folder.path().join("sound.tfrecord"), &bytes).unwrap();
            long.resize(5000, b'a');
            long[0] ^= 1;
            bytes.clear();
            frame::write(&long, &mut bytes);
            bytes[HEADER + 4999] ^= u8::from(is_damaged);
            std::fs::write(folder.path().join("long.tfrecord"), &bytes).unwrap();
            let shards = crate::resolve(&[folder.path()]).unwrap();
            assert_eq!(shards.iter().map(Shard::payload).collect::<Vec<_>>(), [Payload::Other, Payload::Examples]);
            assert_eq!(check_one_payload(&shards).is_ok(), is_damaged);
        }
    }

    #[test]
    fn a_record_that_is_cut_off_is_told_by_its_beginning() {
        let mut long = b"\x0a\xd3\x0f\x0a\xd0\x0f\x0a\x05image\x12\xc6\x0f\x0a\xc3\x0f\x0a\xc0\x0f".to_vec();
        long.extend([0xff; 1984]);
        assert_eq!(of(&[&long], 5000), Payload::Examples);
        assert_eq!(of(&[&long], 512), Payload::Examples);
        for head in 0..22 + HEADER {
            assert!([Payload::Unknown, Payload::Examples].contains(&of(&[&long], head)), "{head}");
        }
        assert_eq!(of(&[&[b'a'; 2000]], 512), Payload::Other);
        // The first field is text.
        let text = [b"\x0a\xc0\x0f".as_slice(), &[b'a'; 1984]].concat();
        assert_eq!(of(&[&text], 512), Payload::Unknown);
    }
}
