//! The kind of the records of a data set, and rejection of data sets whose shards contain different
//! kinds.

use crate::{
    Error, ErrorKind, ReadOptions, Result, Shard, ShardReader, error::shown,
    format::payload::Payload,
};

/// Checks that all shards contain the same kind of records, as far as the first bytes of each
/// determine it.
///
/// # Errors
/// [`ErrorKind::MixedRecords`], with the number of files of each kind, and one file of each.
pub fn check_one_payload(shards: &[Shard]) -> Result<()> {
    let known = [
        Payload::Examples,
        Payload::ExampleLists,
        Payload::Events,
        Payload::Other,
    ];
    let kinds: Vec<_> = known
        .into_iter()
        .filter_map(|payload| describe(shards, payload))
        .collect();
    let is_mixed = match kinds.len() {
        0 | 1 => false,
        2 => are_two_kinds(shards),
        _ => true,
    };
    if !is_mixed {
        return Ok(());
    }
    let kinds = kinds.join(", and ");
    let message = format!(
        "two kinds of records in one data set: {kinds}; name the files of one kind, such as with a glob"
    );
    Err(Error::general(ErrorKind::MixedRecords {
        message,
        can_be_raw: true,
    }))
}

/// Returns whether shards that have two kinds of records by their first bytes really have two: a
/// long record whose first bytes are damaged also counts as another kind, until its CRC is checked.
fn are_two_kinds(shards: &[Shard]) -> bool {
    let mut has_others = false;
    for shard in shards {
        if shard.payload() == Payload::Other {
            if begins_with_sound_record(shard) {
                return true;
            }
            has_others = true;
        }
    }
    !has_others
}

/// Returns whether all shards are files of TensorBoard, as far as their first bytes show it.
pub fn are_events(shards: &[Shard]) -> bool {
    let mut has_events = false;
    for shard in shards {
        match shard.payload() {
            Payload::Events => has_events = true,
            Payload::Unknown => {}
            Payload::Examples | Payload::ExampleLists | Payload::Other => return false,
        }
    }
    has_events
}

/// Returns whether the CRC of a shard's first record matches.
fn begins_with_sound_record(shard: &Shard) -> bool {
    let reader = ShardReader::open(shard, &ReadOptions::default());
    let first = reader.and_then(|mut reader| reader.next()).ok().flatten();
    first.is_some_and(|records| records.check_crc(0).is_ok())
}

/// Describes how many files contain one kind of records, with the first of them; `None` if there is
/// none.
fn describe(shards: &[Shard], payload: Payload) -> Option<String> {
    let mut of_kind = shards.iter().filter(|shard| shard.payload() == payload);
    let first = of_kind.next()?;
    let count = 1 + of_kind.count();
    let s = if count == 1 { "" } else { "s" };
    Some(format!(
        "{count} file{s} of {payload} (such as {})",
        shown(&first.path)
    ))
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::frame::{self, HEADER};

    use super::*;

    /// `{"x": [1, 2]}`.
    const EXAMPLE: &[u8] = b"\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\x01\x02";

    #[test]
    fn a_damaged_first_record_is_not_another_kind() {
        let folder = tempfile::tempdir().unwrap();
        for is_damaged in [false, true] {
            let mut bytes = Vec::new();
            let mut long = EXAMPLE.to_vec();
            frame::write(EXAMPLE, &mut bytes);
            std::fs::write(folder.path().join("sound.tfrecord"), &bytes).unwrap();
            long.resize(5000, b'a');
            long[0] ^= 1;
            bytes.clear();
            frame::write(&long, &mut bytes);
            bytes[HEADER + 4999] ^= u8::from(is_damaged);
            std::fs::write(folder.path().join("long.tfrecord"), &bytes).unwrap();
            let shards = crate::resolve(&[folder.path()]).unwrap();
            assert_eq!(
                shards.iter().map(Shard::payload).collect::<Vec<_>>(),
                [Payload::Other, Payload::Examples]
            );
            assert_eq!(check_one_payload(&shards).is_ok(), is_damaged);
        }
    }
}
