//! A file that is truncated while it is read is an error in every reader, also if it then ends
//! between two records.

use std::fs::File;

use tempfile::TempDir;
use tfarrow_codec::OnError;
use tfarrow_dataset::{
    Compression, Error, PartialTail, ReadOptions, Shard, ShardReader, SharedReader, Taken, count,
    internals::FilePiece,
};

use super::{compressed, frames, shard_of, write_file};

/// Number of bytes of a record's data, and of its frame.
const DATA: usize = 84;
const FRAME: u64 = 100;

/// A file of records, listed as a shard.
fn listed(records: usize, data: usize) -> (TempDir, Shard) {
    let folder = TempDir::new().unwrap();
    let shard = shard_of(&write_file(
        folder.path(),
        "a.tfrecord",
        &frames(&vec![vec![7; data]; records]),
    ));
    (folder, shard)
}

fn truncate(shard: &Shard, size: u64) {
    File::options()
        .write(true)
        .open(&shard.path)
        .unwrap()
        .set_len(size)
        .unwrap();
}

#[track_caller]
fn check(error: &Error, listed: u64, size: u64) {
    let expected = format!(
        "the file was truncated while it was read: it had {listed} bytes, and ends at byte {size}"
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert!(!error.is_damage() && !error.is_machine());
}

/// The error of opening or reading a shard.
fn error_of(opened: Result<ShardReader, Error>) -> Error {
    match opened {
        Ok(mut reader) => reader.find_map(Result::err).unwrap(),
        Err(error) => error,
    }
}

/// The options under which truncated ends of other files are no errors.
fn all_options() -> [ReadOptions; 2] {
    let lenient = ReadOptions {
        on_error: OnError::Skip,
        partial_tail: PartialTail::Ignore,
        ..ReadOptions::default()
    };
    [ReadOptions::default(), lenient]
}

#[test]
fn a_file_that_became_shorter_since_it_was_listed() {
    for options in all_options() {
        let (_folder, shard) = listed(10, DATA);
        truncate(&shard, 5 * FRAME);
        let reader = ShardReader::open(&shard, &options).unwrap();
        let read: u64 = reader
            .map_while(Result::ok)
            .map(|records| records.len() as u64)
            .sum();
        assert_eq!(read, 5);
        check(&error_of(ShardReader::open(&shard, &options)), 1000, 500);
        check(
            &SharedReader::open(&shard, &options).err().unwrap(),
            1000,
            500,
        );
        check(&count(&shard, &options).unwrap_err(), 1000, 500);
        let piece = FilePiece {
            bytes: 300..1000,
            version: None,
        };
        check(
            &error_of(ShardReader::open_piece(&shard, &piece, &options)),
            1000,
            500,
        );
    }
}

#[test]
fn a_compressed_file_that_became_shorter_between_two_members() {
    let folder = TempDir::new().unwrap();
    let member = compressed(&frames(&[[7; DATA]]), Compression::Gzip);
    let shard = shard_of(&write_file(
        folder.path(),
        "a.tfrecord.gz",
        &[member.as_slice(), &member].concat(),
    ));
    truncate(&shard, member.len() as u64);
    for options in all_options() {
        check(
            &error_of(ShardReader::open(&shard, &options)),
            2 * member.len() as u64,
            member.len() as u64,
        );
    }
}

#[test]
fn a_file_that_several_threads_read_is_truncated_between_two_pieces() {
    for options in all_options() {
        let (_folder, shard) = listed(10, DATA);
        let options = ReadOptions {
            chunk_bytes: 2 * FRAME as usize,
            ..options
        };
        let reader = SharedReader::open(&shard, &options).unwrap();
        let next = || reader.next(None, |taken: Result<Taken, Error>| taken.err());
        assert!(next().unwrap().is_none());
        truncate(&shard, 4 * FRAME);
        let errors: Vec<_> = std::iter::from_fn(next).flatten().collect();
        assert_eq!(errors.len(), 1);
        check(&errors[0], 1000, 400);
    }
}

#[test]
fn the_count_of_long_records_notices_a_shorter_file() {
    let (_folder, shard) = listed(40, 100_000);
    assert_eq!(count(&shard, &ReadOptions::default()).unwrap(), 40);
    truncate(&shard, 30 * 100_016);
    check(
        &count(&shard, &ReadOptions::default()).unwrap_err(),
        40 * 100_016,
        30 * 100_016,
    );
}
