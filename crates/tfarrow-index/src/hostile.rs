//! Indexes that are valid Parquet files with valid checksums, and are wrong about their shard.

use std::{fs, io::Write, ops::ControlFlow, path::Path};

use proptest::prelude::*;
use tfarrow_codec::{Kind, Layout, Limits, ReaderBuilder, Summary, VerifyCrc, frame};
use tfarrow_dataset::{
    Compression, ReadOptions, Segment, Shard, ShardWriter, SharedReader, internals::AccessPoint,
    resolve,
};

use crate::{
    Dataset, DatasetOptions, IndexPlace,
    builder::{BuiltBlock, BuiltBlocks},
    file::{IndexHead, VERSION, write},
    zone::Zone,
};

/// Number of records of the shard.
const RECORDS: usize = 50;

/// {"x": n}
fn payload(n: u8) -> Vec<u8> {
    vec![10, 12, 10, 10, 10, 1, b'x', 18, 5, 26, 3, 10, 1, n & 0x7f]
}

fn write_shard(folder: &Path, compression: Compression) -> Shard {
    let mut bytes = Vec::new();
    for n in 0..RECORDS {
        frame::write(&payload(n as u8), &mut bytes);
    }
    let path = folder.join("a");
    let mut writer = ShardWriter::new(Vec::new(), compression);
    writer.write_all(&bytes).unwrap();
    fs::write(&path, writer.finish().unwrap()).unwrap();
    resolve(&[path]).unwrap().remove(0)
}

/// A number near those of the shard, or any number.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..2000u64, Just(u64::MAX), Just(1 << 63), any::<u64>()]
}

fn block() -> impl Strategy<Value = BuiltBlock> {
    let length = prop_oneof![Just(14u32), any::<u32>()];
    (number(), number(), prop::collection::vec(length, 0..60)).prop_map(
        |(first, offset, lengths)| BuiltBlock {
            first,
            offset,
            lengths,
            zones: vec![Zone::Empty],
        },
    )
}

/// Blocks that follow each other, or do not.
fn blocks() -> impl Strategy<Value = Vec<BuiltBlock>> {
    (prop::collection::vec(block(), 0..4), any::<bool>()).prop_map(|(mut blocks, follow)| {
        let mut first = 0;
        let mut offset = 0;
        for block in blocks.iter_mut().filter(|_| follow) {
            (block.first, block.offset) = (first, offset);
            first += block.lengths.len() as u64;
            offset += block.bytes();
        }
        blocks
    })
}

fn point() -> impl Strategy<Value = AccessPoint> {
    let bits = prop_oneof![Just(0), Just(80), 0..2000u64, any::<u64>()];
    let window = prop_oneof![Just(0), Just(100), Just(AccessPoint::WINDOW_BYTES)];
    (prop_oneof![Just(0), number()], bits, window).prop_map(|(offset, bits, window)| AccessPoint {
        offset,
        bits,
        window: vec![10; window],
    })
}

proptest! {
    #[test]
    fn wrong_access_points_are_errors_and_no_panics(
        points in prop::collection::vec(point(), 3),
        compression in prop_oneof![Just(Compression::Gzip), Just(Compression::Zlib)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let shard = write_shard(folder.path(), compression);
        let mut blocks = Vec::new();
        for (first, records) in [(0, 20), (20, 20), (40, 10)] {
            blocks.push(BuiltBlock {
                first,
                offset: first * (16 + payload(0).len() as u64),
                lengths: vec![payload(0).len() as u32; records],
                zones: Vec::new(),
            });
        }
        let head = IndexHead {
            version: VERSION,
            shard: shard.identity().unwrap(),
            records: RECORDS as u64,
            summary: Summary::new(0).state(),
            sorted: Vec::new(),
        };
        let built = BuiltBlocks { features: Vec::new(), sorted: Vec::new(), blocks, points };
        let bytes = write(&head, &built, Vec::new()).unwrap();
        fs::write(folder.path().join("a.tfindex"), bytes).unwrap();
        let index = IndexPlace::Beside.open(&shard).unwrap().unwrap();
        let blocks = index.blocks().unwrap();
        let Ok(points) = index.points(&blocks) else {
            return Ok(());
        };
        let options = ReadOptions::default();
        let reader = SharedReader::open_blocks(&shard, &options, blocks, points, Box::new(|_| true));
        let reader = reader.unwrap().unwrap();
        while let Some(Ok(taken)) = reader.next(None, |taken| taken) {
            let Segment::Records(records) = taken.segment else { continue };
            for (number, record) in (records.first()..).zip(records.iter()) {
                prop_assert_eq!(record, payload(number as u8));
            }
        }
    }

    #[test]
    fn wrong_indexes_are_errors_and_no_panics(blocks in blocks(), records in number()) {
        let folder = tempfile::tempdir().unwrap();
        let shard = write_shard(folder.path(), Compression::None);
        let mut summary = Summary::new(0);
        let one = tfarrow_codec::Records::from_payloads([payload(1).as_slice()]).unwrap();
        summary.observe(&one, VerifyCrc::Always).unwrap();
        let held: usize = blocks.iter().map(|block| block.lengths.len()).sum();
        let head = IndexHead {
            version: VERSION,
            shard: shard.identity().unwrap(),
            records: if records < 2000 { held as u64 } else { records },
            summary: summary.state(),
            sorted: Vec::new(),
        };
        let built = BuiltBlocks {
            features: vec![("x".to_owned(), Kind::Int64)],
            sorted: Vec::new(),
            blocks,
            points: Vec::new(),
        };
        let bytes = write(&head, &built, Vec::new()).unwrap();
        fs::write(folder.path().join("a.tfindex"), bytes).unwrap();
        let index = IndexPlace::Beside.open(&shard).unwrap().unwrap();
        let _ = (index.summary(0, Limits::default()), index.zones("x"), index.lengths());
        if let Ok(blocks) = index.blocks() {
            let options = ReadOptions::default();
            let reader = SharedReader::open_blocks(&shard, &options, blocks, Vec::new(), Box::new(|_| true));
            let reader = reader.unwrap().unwrap();
            while let Some(Ok(taken)) = reader.next(None, |taken| taken) {
                let Segment::Records(records) = taken.segment else { continue };
                // What is read is right: the frames are checked.
                for (number, record) in (records.first()..).zip(records.iter()) {
                    prop_assert_eq!(record, payload(number as u8));
                }
            }
        }
        let schema = summary.schema(Layout::Auto, None).unwrap();
        let dataset = Dataset::open(
            vec![shard],
            ReaderBuilder::new(schema),
            &DatasetOptions::default(),
            &|_, _| ControlFlow::Continue(()),
        );
        if let Ok(fetched) = dataset.unwrap().fetch(&[0, 49, 7], 1) {
            for (place, number) in [0, 49, 7].into_iter().enumerate() {
                prop_assert_eq!(fetched.records().data(place).unwrap(), payload(number));
            }
        }
    }
}
