//! Several threads that read one shard return the records and errors that one thread does.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use tfarrow_codec::{OnError, Position};
use tfarrow_dataset::{Compression, ReadOptions, ShardReader, SharedReader};

use super::{compressed, frames, shard_of, testdata, write_file};

/// Each record with its position, and the error at the end, if there is one.
type Found = (Vec<(Position, Vec<u8>)>, Option<String>);

/// Reads a shard with several threads.
fn found(path: &Path, chunk_bytes: usize, threads: usize) -> Found {
    let options = ReadOptions { chunk_bytes, ..ReadOptions::default() };
    let reader = match SharedReader::open(&shard_of(path), &options) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let found: Mutex<Found> = Mutex::default();
    let read = || {
        let mut memory = None;
        loop {
            let records = reader.next(memory.take(), |taken| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                assert!(found.1.is_none(), "nothing comes after an error");
                match taken {
                    Ok(taken) => {
                        let places = (0..taken.records.len()).map(|index| taken.records.position(index));
                        found.0.extend(places.zip(taken.records.iter().map(<[u8]>::to_vec)));
                        Some(taken.records)
                    }
                    Err(error) => {
                        found.1 = Some(error.to_string());
                        None
                    }
                }
            });
            match records {
                Some(Some(records)) => memory = records.reclaim(),
                Some(None) => {}
                None => return,
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(read))));
    found.into_inner().unwrap()
}

/// Reads a shard with one thread.
fn found_alone(path: &Path) -> Found {
    let mut found = Found::default();
    match ShardReader::open(&shard_of(path), &ReadOptions::default()) {
        Ok(reader) => {
            for records in reader {
                match records {
                    Ok(records) => {
                        let places = (0..records.len()).map(|index| records.position(index));
                        found.0.extend(places.zip(records.iter().map(<[u8]>::to_vec)));
                    }
                    Err(error) => found.1 = Some(error.to_string()),
                }
            }
        }
        Err(error) => found.1 = Some(error.to_string()),
    }
    found
}

#[track_caller]
fn check(path: &Path) {
    let alone = found_alone(path);
    for chunk_bytes in [1, 7, 16, 61, 300, 5000] {
        for threads in [1, 3] {
            assert_eq!(found(path, chunk_bytes, threads), alone, "{path:?} {chunk_bytes} {threads}");
        }
    }
}

#[test]
fn every_test_file_is_read_equally() {
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
fn records_of_all_lengths_are_found_for_all_sizes_of_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Vec<u8>> = (0..200usize).map(|i| vec![i as u8; (i * 37) % 101 * (1 + i % 7 / 6 * 90)]).collect();
    let bytes = frames(&records);
    check(&write_file(folder.path(), "a", &bytes));
    check(&write_file(folder.path(), "empty", b""));
    check(&write_file(folder.path(), "gz", &compressed(&bytes, Compression::Gzip)));
}

#[test]
fn truncation_is_reported_at_any_byte() {
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

/// The thread whose turn it is may wait for another one, as in a scan whose queue is full, which calls `lost` meanwhile.
#[test]
fn lost_does_not_wait_for_the_turn_of_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut bytes = frames(&[&b"one"[..], b"two", b"three"]);
    bytes[19] ^= 1;
    fs::write(&path, bytes).unwrap();
    let options = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
    let reader = Arc::new(SharedReader::open(&shard_of(&path), &options).unwrap());
    let turn = || {
        reader.next(None, |taken| {
            let other = Arc::clone(&reader);
            let (send, lost) = mpsc::channel();
            thread::spawn(move || send.send(other.lost()));
            (taken.unwrap().records.len(), lost.recv_timeout(Duration::from_secs(60)).expect("it waits for nobody"))
        })
    };
    let turns: Vec<_> = std::iter::from_fn(turn).collect();
    assert_eq!(turns.iter().map(|(records, _)| records).sum::<usize>(), 2);
    let rest = reader.lost();
    assert_eq!(turns.iter().map(|(_, lost)| lost.stretches).sum::<u64>() + rest.stretches, 1);
}
