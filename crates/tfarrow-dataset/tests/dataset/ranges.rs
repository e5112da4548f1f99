//! Records by their offsets: the chunks of a reader from start to end, with and without damage.

use std::fs;

use proptest::prelude::*;
use tfarrow_codec::{OnError, Records};
use tfarrow_dataset::{
    ErrorKind, ReadOptions, Result, Segment, ShardReader,
    internals::{FrameRanges, ShardAccess},
};

use crate::{frames, shard_of, write_file};

/// A part of a file: records with their first number, or lost bytes with their offset.
#[derive(Debug, PartialEq)]
enum Part {
    Records(u64, Vec<Vec<u8>>),
    Lost(u64, usize),
    Error(String),
}

impl Part {
    fn records(records: &Records) -> Self {
        Self::Records(
            records.first(),
            records.iter().map(<[u8]>::to_vec).collect(),
        )
    }
}

/// The parts that a reader returns, divided by `rows` and `bytes`.
fn read(mut reader: ShardReader, rows: usize, bytes: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    loop {
        match reader.segment() {
            Ok(None) => return parts,
            Ok(Some(Segment::Lost(lost))) => parts.push(Part::Lost(lost.offset, lost.bytes.len())),
            Ok(Some(Segment::Records(mut records))) => {
                while !records.is_empty() {
                    let count = records.fit(rows, bytes);
                    let (some, rest) = records.split_at(count);
                    parts.push(Part::records(&some));
                    records = rest;
                }
            }
            Err(error) => {
                parts.push(Part::Error(error.to_string()));
                return parts;
            }
        }
    }
}

/// The parts by their offsets, and those of the reader that continues after an error that is
/// skipped.
fn find(mut ranges: FrameRanges, rows: usize, bytes: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut memory = Vec::new();
    loop {
        match ranges.next(rows, bytes) {
            Ok(None) => return parts,
            Ok(Some(range)) => {
                let records = ranges.file().read(&range, memory).unwrap();
                parts.push(Part::records(&records));
                memory = records.reclaim().unwrap();
            }
            Err(error) if ranges.skips(&error) => {
                parts.extend(read(ranges.to_reader().unwrap().0, rows, bytes));
                return parts;
            }
            Err(error) => {
                parts.push(Part::Error(error.to_string()));
                return parts;
            }
        }
    }
}

fn ranges_of(access: Result<ShardAccess>) -> FrameRanges {
    match access.unwrap() {
        ShardAccess::Ranges(ranges) => *ranges,
        ShardAccess::Stream(_) => panic!("a plain file is read by ranges"),
    }
}

proptest! {
    #[test]
    fn ranges_are_the_chunks_of_a_reader(
        lengths in prop::collection::vec(prop_oneof![0..200_usize, 3000..6000_usize, 0..100_000_usize], 1..40),
        rows in prop_oneof![1..9_usize, Just(usize::MAX)],
        bytes in prop_oneof![1..9000_usize, Just(usize::MAX)],
        damage in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        skips in any::<bool>(),
        cut in 0..30_usize,
    ) {
        let payloads: Vec<Vec<u8>> = lengths.iter().zip(1_u8..).map(|(length, value)| vec![value; *length]).collect();
        let mut stored = frames(&payloads);
        // The first header shows that the file is TFRecord.
        for at in &damage {
            let at = 12 + at.index(stored.len() - 12);
            stored[at] ^= 1;
        }
        stored.truncate((stored.len() - cut.min(stored.len())).max(12));
        let folder = tempfile::tempdir().unwrap();
        let shard = shard_of(&write_file(folder.path(), "a.tfrecord", &stored));
        let on_error = if skips { OnError::Skip } else { OnError::Fail };
        let options = ReadOptions { chunk_bytes: 4096, on_error, ..ReadOptions::default() };
        let expected = read(ShardReader::open(&shard, &options).unwrap(), rows, bytes);
        let found = find(ranges_of(ShardAccess::open(&shard, &options)), rows, bytes);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_file_that_changes_between_finding_and_reading_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_file(folder.path(), "a.tfrecord", &frames(&[[1; 100], [2; 100]]));
    let mut ranges = ranges_of(ShardAccess::open(&shard_of(&path), &ReadOptions::default()));
    let range = ranges.next(usize::MAX, usize::MAX).unwrap().unwrap();
    assert_eq!((range.records, range.bytes), (2, 232));
    fs::write(&path, frames(&[[1; 100]; 1])).unwrap();
    let shorter = ranges.file().read(&range, Vec::new()).unwrap_err();
    assert!(
        shorter
            .to_string()
            .contains("was truncated while it was read"),
        "{shorter}"
    );
    fs::write(&path, frames(&[vec![1; 50], vec![2; 250]])).unwrap();
    let changed = ranges.file().read(&range, Vec::new()).unwrap_err();
    assert!(
        changed
            .to_string()
            .contains("was changed while it was read"),
        "{changed}"
    );
    assert!(matches!(changed.kind(), ErrorKind::Io(_)));
}

#[test]
fn files_that_are_read_from_their_start_have_no_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let stored = crate::compressed(&frames(&[[1; 100]]), tfarrow_dataset::Compression::Gzip);
    let shard = shard_of(&write_file(folder.path(), "a.gz", &stored));
    assert!(matches!(
        ShardAccess::open(&shard, &ReadOptions::default()),
        Ok(ShardAccess::Stream(_))
    ));
}

/// A read that fails leaves no bytes that could be taken for headers.
#[test]
fn a_file_that_becomes_shorter_while_records_are_found_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_file(folder.path(), "a.tfrecord", &frames(&vec![[1; 984]; 2000]));
    let options = ReadOptions {
        chunk_bytes: 4096,
        ..ReadOptions::default()
    };
    let mut ranges = ranges_of(ShardAccess::open(&shard_of(&path), &options));
    let first = ranges.next(usize::MAX, usize::MAX).unwrap().unwrap();
    assert_eq!((first.records, first.bytes), (4, 4000));
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(300_000)
        .unwrap();
    let mut found = first.records;
    let error = loop {
        match ranges.next(usize::MAX, usize::MAX) {
            Ok(range) => found += range.expect("the file does not end").records,
            Err(error) => break error,
        }
    };
    assert!(
        error
            .to_string()
            .contains("was truncated while it was read"),
        "{error}"
    );
    assert!(found <= 300, "{found} records of 1000 bytes");
    assert!(
        ranges.next(usize::MAX, usize::MAX).is_err(),
        "the error stays"
    );
}
