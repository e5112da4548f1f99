//! Indexes of gzip and zlib files, whose records are read from access points on.

use std::{fs, ops::ControlFlow, path::Path};

use tfarrow_codec::{OnError, Summary, VerifyCrc, frame::FrameRange};
use tfarrow_dataset::{
    Compression, Error, ReadOptions, Segment, Shard, ShardReader, SharedReader, resolve,
};
use tfarrow_index::{Dataset, DatasetOptions, IndexPlace, OpenIndex};
use tfarrow_scan::{IndexOptions, Indexed, index};
use tfarrow_testkit::{frame, proto};

use crate::{compressed, index::builder_of, shard_of};

/// Records of a kilobyte, half of which does not compress.
pub(crate) fn payloads(count: u64) -> Vec<Vec<u8>> {
    let mut state = 1u64;
    let mut payloads = Vec::new();
    for id in 0..count {
        let mut noise = Vec::with_capacity(1000);
        for _ in 0..125 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(id | 1);
            noise.extend((state >> 16 & 0xffff_ffff).to_le_bytes());
        }
        payloads.push(proto::example([
            ("id", proto::KindOneof::ints([id as i64])),
            ("noise", proto::KindOneof::bytes(noise)),
        ]));
    }
    payloads
}

/// A file of some members.
fn write(folder: &Path, name: &str, parts: &[&[Vec<u8>]], compression: Compression) -> Shard {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(compressed(&frame::file(*part), compression));
    }
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    resolve(&[path]).unwrap().remove(0)
}

fn indexed(shard: &Shard) -> Indexed {
    let shards = std::slice::from_ref(shard);
    let options = IndexOptions {
        threads: 2,
        ..IndexOptions::default()
    };
    let mut indexed = index(shards, &options, &|_, _| ControlFlow::Continue(())).unwrap();
    indexed.remove(0)
}

fn opened(shard: &Shard) -> OpenIndex {
    assert!(matches!(indexed(shard), Indexed::Written { .. }));
    IndexPlace::Beside.open(shard).unwrap().unwrap()
}

/// Reads blocks by their access points, and checks their records.
fn check_blocks(shard: &Shard, index: &OpenIndex, blocks: &[FrameRange], payloads: &[Vec<u8>]) {
    let points = index.points(blocks).unwrap();
    let options = ReadOptions::default();
    let is_wanted = Box::new(|_: &_| true);
    let opened = SharedReader::open_blocks(shard, &options, blocks.to_vec(), points, is_wanted);
    let reader = opened.unwrap().unwrap();
    for block in blocks {
        let taken = reader.next(None, |taken| taken).unwrap().unwrap();
        let Segment::Records(records) = taken.segment else {
            panic!("{taken:?}");
        };
        assert_eq!(
            (records.first(), records.len()),
            (block.first, block.records)
        );
        let expected = &payloads[block.first as usize..][..block.records];
        assert!(records.iter().eq(expected.iter().map(Vec::as_slice)));
    }
    assert!(reader.next(None, |taken| taken.is_ok()).is_none());
}

#[test]
fn any_block_is_read_from_the_access_point_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(24_000);
    let (first, second) = payloads.split_at(9_000);
    let (second, third) = second.split_at(100);
    for (name, parts, compression) in [
        ("a.gz", vec![payloads.as_slice()], Compression::Gzip),
        ("b.gz", vec![first, second, &[], third], Compression::Gzip),
        ("c.zlib", vec![payloads.as_slice()], Compression::Zlib),
    ] {
        let shard = write(folder.path(), name, &parts, compression);
        let index = opened(&shard);
        let blocks = index.blocks().unwrap();
        assert!(
            (10..=13).contains(&blocks.len()),
            "{name}: {}",
            blocks.len()
        );
        let points = index.points(&blocks).unwrap();
        assert_eq!(points.len(), blocks.len());
        for (block, point) in blocks.iter().zip(&points) {
            let skipped = block.offset - point.offset;
            assert!(
                skipped < 300_000,
                "{name}: {skipped} bytes before {block:?}"
            );
        }
        check_blocks(&shard, &index, &blocks, &payloads);
        for block in blocks.iter().rev() {
            check_blocks(&shard, &index, &[*block], &payloads);
        }
        let some = [blocks[1], blocks[4]];
        check_blocks(&shard, &index, &some, &payloads);
    }
}

#[test]
fn a_shard_is_divided_at_its_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(24_000);
    for (name, compression) in [
        ("a.tfrecord", Compression::None),
        ("a.gz", Compression::Gzip),
    ] {
        let shard = write(folder.path(), name, &[&payloads], compression);
        let index = opened(&shard);
        let blocks = index.blocks().unwrap();
        let parts = index.divide(4, 1000).unwrap().unwrap();
        assert_eq!(parts.len(), 4);
        let mut next = 0;
        for part in &parts {
            assert_eq!(part.records.start, next);
            assert!(blocks.iter().any(|block| block.first == next));
            let is_near = part.bytes.abs_diff(shard.size / 4) < shard.size / 12;
            assert!(is_near, "{parts:?}");
            next = part.records.end;
        }
        assert_eq!(next, 24_000);
        let least = index.divide(4, shard.size / 3).unwrap();
        assert_eq!(least.unwrap().len(), 3);
        assert_eq!(index.divide(4, shard.size).unwrap(), None);
        let many = index.divide(1000, 1).unwrap();
        assert_eq!(many.unwrap().len(), blocks.len());
    }
    let shard = write(folder.path(), "a.sz", &[&payloads], Compression::Snappy);
    assert_eq!(opened(&shard).divide(4, 1000).unwrap(), None);
}

#[test]
fn records_of_compressed_files_are_taken_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(12_000);
    let (first, second) = payloads.split_at(7_000);
    let shards = vec![
        write(folder.path(), "a.gz", &[first], Compression::Gzip),
        write(folder.path(), "b.zlib", &[second], Compression::Zlib),
    ];
    assert!(matches!(
        indexed(&shards[0]),
        Indexed::Written { records: 7_000, .. }
    ));
    let numbers = [11_999, 0, 6_999, 7_000, 3, 4, 5_500, 0];
    let builder = builder_of(&shards, OnError::Fail).unwrap();
    let progress = |_, _| ControlFlow::Continue(());
    for indexes in [Some(IndexPlace::Beside), None] {
        let options = DatasetOptions {
            indexes,
            ..DatasetOptions::default()
        };
        let dataset = Dataset::open(shards.clone(), builder.clone(), &options, &progress).unwrap();
        assert_eq!(dataset.len(), 12_000);
        let fetched = dataset.fetch(&numbers, 1).unwrap();
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(
                fetched.records().data(place).unwrap(),
                payloads[*number as usize]
            );
        }
    }
}

#[test]
fn damage_after_indexing_is_the_error_of_reading_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(12_000);
    let shard = write(folder.path(), "a.gz", &[&payloads], Compression::Gzip);
    let index = opened(&shard);
    let blocks = index.blocks().unwrap();
    let points = index.points(&blocks).unwrap();
    let mut bytes = fs::read(&shard.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 1000].fill(0xff);
    fs::write(&shard.path, bytes).unwrap();
    let options = ReadOptions::default();
    let reader =
        SharedReader::open_blocks(&shard, &options, blocks, points, Box::new(|_| true)).unwrap();
    let reader = reader.unwrap();
    let mut last = Ok(());
    while let Some(taken) = reader.next(None, |taken| taken) {
        last = taken.map(drop);
    }
    let error = last.unwrap_err().to_string();
    assert!(error.contains("a.gz"), "{error}");
    let mut reader = ShardReader::open(&shard, &options).unwrap();
    let expected = loop {
        if let Err(error) = reader.next() {
            break error;
        }
    };
    assert_eq!(error, expected.to_string());
}

/// The error of reading a shard from its start.
fn first_error(shard: &Shard) -> Error {
    let mut reader = ShardReader::open(shard, &ReadOptions::default()).unwrap();
    let mut summary = Summary::new(0);
    loop {
        let records = match reader.next() {
            Ok(records) => records.unwrap(),
            Err(error) => return error,
        };
        if let Err(error) = summary.observe(&records, VerifyCrc::Always) {
            return Error::codec(&shard.path, error);
        }
    }
}

#[test]
fn a_damaged_compressed_file_has_no_index_and_its_own_error() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(3_000);
    let gzip = compressed(&frame::file(&payloads), Compression::Gzip);
    let mut corrupt = gzip.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 20].fill(0xff);
    let mut wrong_trailer = gzip.clone();
    let trailer = wrong_trailer.len() - 8;
    wrong_trailer[trailer] ^= 1;
    let trailing = [gzip.as_slice(), b"something else"].concat();
    for (name, bytes) in [
        ("cut.gz", &gzip[..gzip.len() - 5]),
        ("corrupt.gz", &corrupt),
        ("crc.gz", &wrong_trailer),
        ("trailing.gz", &trailing),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let shard = shard_of(&path);
        let Indexed::Failed(error) = indexed(&shard) else {
            panic!("{name} has an index");
        };
        assert!(error.is_damage(), "{error}");
        assert_eq!(error.to_string(), first_error(&shard).to_string());
    }
}

#[test]
fn zeros_after_a_zlib_file_leave_the_access_points_out() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(3_000);
    let mut bytes = compressed(&frame::file(&payloads), Compression::Zlib);
    bytes.extend([0; 512]);
    let path = folder.path().join("a.zlib");
    fs::write(&path, bytes).unwrap();
    let shard = shard_of(&path);
    let index = opened(&shard);
    assert_eq!(index.records(), 3_000);
    assert!(index.points(&index.blocks().unwrap()).unwrap().is_empty());
}
