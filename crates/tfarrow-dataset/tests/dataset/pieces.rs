//! Pieces of a file: their records are those of the file, or a piece is an error.

use std::fs;

use proptest::prelude::*;
use tfarrow_codec::Limits;
use tfarrow_dataset::{
    Compression, Error, PartialTail, ReadOptions, Shard, ShardFormat, ShardReader,
    internals::FilePiece,
};

use super::{compressed, frames};

/// The records of a reader with their offsets, and the error at the end.
fn records(reader: Result<ShardReader, Error>) -> Result<Vec<(u64, Vec<u8>)>, Error> {
    let mut all = Vec::new();
    for records in reader? {
        let records = records?;
        let offsets = (0..records.len()).filter_map(|index| records.offset(index));
        all.extend(offsets.zip(records.iter().map(<[u8]>::to_vec)));
    }
    Ok(all)
}

/// The records of a file with these bytes: of the file as a whole, and of `count` pieces.
#[expect(clippy::type_complexity, reason = "two results of one kind")]
fn both(
    bytes: &[u8],
    count: u64,
) -> (
    Result<Vec<(u64, Vec<u8>)>, Error>,
    Result<Vec<(u64, Vec<u8>)>, Error>,
) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let size = bytes.len() as u64;
    let shard = Shard::file(
        file.path().to_owned(),
        "a".into(),
        size,
        ShardFormat::TfRecord,
    );
    let options = ReadOptions {
        chunk_bytes: 64,
        ..ReadOptions::default()
    };
    let pieces = (0..count).map(|index| FilePiece {
        bytes: size * index / count..size * (index + 1) / count,
        version: None,
    });
    let in_pieces = pieces.map(|piece| records(ShardReader::open_piece(&shard, &piece, &options)));
    let in_pieces = in_pieces
        .collect::<Result<Vec<_>, _>>()
        .map(|pieces| pieces.concat());
    (records(ShardReader::open(&shard, &options)), in_pieces)
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..20)
}

proptest! {
    #[test]
    fn pieces_have_the_records_of_the_file(payloads in payloads(), count in 1_u64..12) {
        let (whole, pieces) = both(&frames(&payloads), count);
        prop_assert_eq!(pieces.unwrap(), whole.unwrap());
    }

    #[test]
    fn files_with_records_in_records_are_read_rightly_or_not_at_all(
        inner in prop::collection::vec(payloads(), 1..6),
        count in 1_u64..12,
    ) {
        let records: Vec<_> = inner.iter().map(|payloads| frames(payloads)).collect();
        let (whole, pieces) = both(&frames(&records), count);
        if let Ok(pieces) = pieces {
            prop_assert_eq!(pieces, whole.unwrap());
        }
    }

    #[test]
    fn damaged_files_are_read_rightly_or_not_at_all(
        payloads in payloads(),
        count in 1_u64..12,
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = frames(&payloads);
        let at = at.index(bytes.len());
        bytes[at] = value;
        bytes.truncate(bytes.len() - length.index(8));
        let (whole, pieces) = both(&bytes, count);
        match (whole, pieces) {
            (Ok(whole), Ok(pieces)) => prop_assert_eq!(pieces, whole),
            (Err(_), Ok(pieces)) => prop_assert!(false, "the file is damaged, and its pieces have {} records", pieces.len()),
            (_, Err(_)) => {}
        }
    }
}

#[test]
fn records_longer_than_pieces_belong_to_one_of_them() {
    let (whole, pieces) = both(&frames(&[vec![1; 10], vec![2; 5000], vec![3; 10]]), 40);
    assert_eq!(pieces.unwrap(), whole.unwrap());
}

#[test]
fn records_longer_than_a_read_of_the_search() {
    // Bytes that are no header, and bytes that look like one, a record of which is not complete in
    // the first read.
    let noise: Vec<u8> = (0_u32..100_000)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let mut nested = noise.clone();
    nested[70_000..70_012].copy_from_slice(&frames(&[vec![0; 90_000]])[..12]);
    let (whole, pieces) = both(&frames(&[noise.clone(), nested, noise]), 7);
    assert_eq!(pieces.unwrap(), whole.unwrap());
}

#[test]
fn the_search_ends_after_the_longest_record() {
    let mut bytes = frames(&[vec![1; 100]]);
    bytes.resize(10 << 20, 0);
    let (_file, plain) = shard(&bytes);
    let limits = Limits {
        record_bytes: 1 << 20,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let piece = FilePiece {
        bytes: 1 << 20..u64::MAX,
        version: None,
    };
    let error = ShardReader::open_piece(&plain, &piece, &options)
        .map(drop)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("no record begins at the bytes 1048576 to 2097168"),
        "{error}"
    );
}

/// A file with 40 records, which is removed with the first of the results.
fn shard(bytes: &[u8]) -> (tempfile::NamedTempFile, Shard) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let shard = Shard::file(
        file.path().to_owned(),
        "a".into(),
        bytes.len() as u64,
        ShardFormat::TfRecord,
    );
    (file, shard)
}

#[test]
fn only_plain_files_of_some_length_are_divided() {
    let bytes = frames(&vec![[7; 100]; 40]);
    let (_file, plain) = shard(&bytes);
    let pieces = FilePiece::divide(&plain, 4, 1000).unwrap();
    assert_eq!(
        pieces
            .iter()
            .map(|piece| piece.bytes.clone())
            .collect::<Vec<_>>(),
        [0..1160, 1160..2320, 2320..3480, 3480..4640]
    );
    assert_eq!(FilePiece::divide(&plain, 4, 2000).unwrap().len(), 2);
    assert_eq!(FilePiece::divide(&plain, 4, 4000), None);
    assert_eq!(FilePiece::divide(&plain, 1, 1), None);
    let (_file, gzip) = shard(&compressed(&bytes, Compression::Gzip));
    assert_eq!(FilePiece::divide(&gzip, 4, 10), None);
}

#[test]
fn a_file_that_changes_is_an_error() {
    let bytes = frames(&vec![[7; 100]; 40]);
    let (file, plain) = shard(&bytes);
    let pieces = FilePiece::divide(&plain, 2, 100).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options()
        .write(true)
        .open(file.path())
        .unwrap()
        .set_modified(time)
        .unwrap();
    let error = ShardReader::open_piece(&plain, &pieces[1], &ReadOptions::default())
        .map(drop)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the file has changed since the query was planned"),
        "{error}"
    );
}

#[test]
fn a_truncated_record_is_ignored_at_the_end_of_the_file_only() {
    let mut bytes = frames(&vec![[7; 100]; 10]);
    bytes.truncate(bytes.len() - 3);
    let (_file, shard) = shard(&bytes);
    let options = ReadOptions {
        partial_tail: PartialTail::Ignore,
        ..ReadOptions::default()
    };
    let read = |bytes| {
        records(ShardReader::open_piece(
            &shard,
            &FilePiece {
                bytes,
                version: None,
            },
            &options,
        ))
    };
    assert_eq!(
        read(0..500).unwrap().len() + read(500..bytes.len() as u64).unwrap().len(),
        9
    );
}
