//! Several threads that read a shard together find the same segments as one reader.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use tfarrow_codec::{OnError, Position, Records};
use tfarrow_dataset::{
    Compression, Error, PartialTail, ReadOptions, Segment, ShardReader, SharedReader, Taken,
    internals::Lock,
};

use super::{compressed, frames, shard_of, testdata, write_file};

/// The segments of a shard: each record with its position, each range of lost bytes, and the error
/// at the end.
#[derive(Debug, Default, PartialEq)]
struct Found {
    records: Vec<(Position, Vec<u8>)>,
    lost: Vec<(String, u64, bool, Vec<u8>)>,
    error: Option<String>,
}

impl Found {
    fn add(&mut self, segment: Result<Segment, Error>) -> Option<Records> {
        assert!(self.error.is_none(), "nothing comes after an error");
        match segment {
            Ok(Segment::Records(records)) => {
                let positions = (0..records.len()).map(|index| records.position(index));
                self.records
                    .extend(positions.zip(records.iter().map(<[u8]>::to_vec)));
                return Some(records);
            }
            Ok(Segment::Lost(lost)) => match (lost.error, self.lost.last_mut()) {
                (Some(error), _) => {
                    self.lost.push((
                        error.to_string(),
                        lost.offset,
                        lost.is_stored,
                        lost.bytes.to_vec(),
                    ));
                }
                // Readers split a range at different positions.
                (None, Some((_, _, is_stored, bytes))) if *is_stored == lost.is_stored => {
                    bytes.extend_from_slice(&lost.bytes);
                }
                (None, _) => self.lost.push((
                    String::new(),
                    lost.offset,
                    lost.is_stored,
                    lost.bytes.to_vec(),
                )),
            },
            Err(error) => self.error = Some(error.to_string()),
        }
        None
    }
}

/// The segments that several threads read together.
fn found(path: &Path, options: &ReadOptions, threads: usize) -> Found {
    let reader = match SharedReader::open(&shard_of(path), options) {
        Ok(reader) => reader,
        Err(error) => {
            return Found {
                error: Some(error.to_string()),
                ..Found::default()
            };
        }
    };
    let (found, bytes, ended) = (
        Lock::<Found>::default(),
        AtomicU64::new(0),
        AtomicBool::new(false),
    );
    let read = || {
        let mut memory = None;
        let enter = |taken: Result<Taken, Error>| {
            assert!(
                !ended.load(Ordering::Relaxed),
                "nothing comes after the end that any thread was told"
            );
            let segment = taken.map(
                |Taken {
                     segment,
                     bytes: read,
                 }| {
                    bytes.fetch_add(read, Ordering::Relaxed);
                    segment
                },
            );
            found.lock().add(segment)
        };
        while let Some(records) = reader.next(memory.take(), enter) {
            memory = records.and_then(Records::reclaim);
        }
        ended.store(true, Ordering::Relaxed);
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(read))));
    let found = found.into_inner();
    assert!(
        bytes.into_inner() <= fs::metadata(path).unwrap().len(),
        "more bytes were read than the file has"
    );
    found
}

/// The segments that one reader finds.
fn found_alone(path: &Path, options: &ReadOptions) -> Found {
    let mut found = Found::default();
    match ShardReader::open(&shard_of(path), options) {
        Ok(mut reader) => {
            while let Some(segment) = reader.segment().transpose() {
                found.add(segment);
            }
        }
        Err(error) => found.error = Some(error.to_string()),
    }
    found
}

#[track_caller]
fn check(path: &Path) {
    for on_error in [OnError::Fail, OnError::Skip] {
        for partial_tail in [PartialTail::Fail, PartialTail::Ignore] {
            let options = ReadOptions {
                on_error,
                partial_tail,
                ..ReadOptions::default()
            };
            let alone = found_alone(path, &options);
            for chunk_bytes in [1, 7, 16, 61, 300, 5000] {
                for threads in [1, 3] {
                    let options = ReadOptions {
                        chunk_bytes,
                        ..options
                    };
                    assert_eq!(
                        found(path, &options, threads),
                        alone,
                        "{path:?} {options:?} {threads}"
                    );
                }
            }
        }
    }
}

#[test]
fn several_threads_read_every_test_file_like_one_reader() {
    let mut files = 0;
    for folder in ["", "shards", "corrupt"] {
        for entry in fs::read_dir(testdata(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && fs::metadata(&path).unwrap().len() < 200_000 {
                check(&path);
                files += 1;
            }
        }
    }
    assert!(files > 20, "{files}");
}

#[test]
fn records_of_all_lengths_are_found_in_pieces_of_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Vec<u8>> = (0..200usize)
        .map(|i| vec![i as u8; (i * 37) % 101 * (1 + i % 7 / 6 * 90)])
        .collect();
    let bytes = frames(&records);
    check(&write_file(folder.path(), "a", &bytes));
    check(&write_file(folder.path(), "empty", b""));
    check(&write_file(
        folder.path(),
        "gz",
        &compressed(&bytes, Compression::Gzip),
    ));
}

#[test]
fn truncation_anywhere_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = frames(&[&b"one"[..], b"", &[7; 100], b"four"]);
    for end in 0..=bytes.len() {
        check(&write_file(folder.path(), "a", &bytes[..end]));
    }
}

#[test]
fn a_changed_byte_is_reported_at_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = frames(&[&b"one"[..], &[7; 30], b"four"]);
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        check(&write_file(folder.path(), "a", &damaged));
    }
}

/// A reader of records that starts in the middle of a file has their numbers and offsets.
#[test]
fn records_after_a_corrupt_length_keep_their_positions() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Vec<u8>> = (0..300usize).map(|i| vec![i as u8; 20 + i % 50]).collect();
    let mut bytes = frames(&records);
    for place in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 30] {
        bytes[place..place + 25].fill(0xa5);
    }
    check(&write_file(folder.path(), "a", &bytes));
}
