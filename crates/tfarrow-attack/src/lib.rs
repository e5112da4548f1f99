//! Properties that must hold for every input, hostile input included: each attack is a function of
//! bytes that panics if a property does not hold.
//!
//! The fuzz targets in `fuzz/` call these functions, and so does a test that mutates files of
//! TensorFlow, on stable Rust. Most functions take the bytes as a stream. Those that test records
//! make a stream of the bytes with [`framed`] first, so that a fuzzer does not have to find valid
//! CRCs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a failure is told"
)]

use std::{
    io::{Cursor, Write},
    path::Path,
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{
    ExactColumn, FrameBuffer, Layout, Limits, MessageType, OnConflict, OnError, ReaderBuilder,
    RecordType, Records, Segment, Summary, VerifyCrc, WriterBuilder,
    diff::{Differ, DifferenceKind},
    frame::FrameRange,
};
use tfarrow_convert::{ConvertOptions, Progress, Target, convert};
use tfarrow_dataset::{
    Compression, ReadOptions, Shard, ShardFormat, ShardReader, ShardWriter, SharedReader,
    internals::AccessPoint,
};
use tfarrow_index::{IndexBuilder, IndexPlace, IndexWorker, write_index};
use tfarrow_testkit::{frame, oracle};

/// Limits that a small input can exceed.
const LIMITS: Limits = Limits {
    record_bytes: 1 << 16,
    record_features: 1 << 10,
    values: 1 << 14,
    key_bytes: 1 << 8,
    features: 1 << 8,
    name_bytes: 1 << 12,
    nesting: 100,
    recursion: 2,
    inflate_ratio: 250,
};

/// An attack on an input. Panics if a property does not hold.
pub type Attack = fn(&[u8]);

/// All attacks, by name.
pub const ALL: [(&str, Attack); 13] = [
    ("frame", frame),
    ("resync", resync),
    ("example", example),
    ("sequence", sequence),
    ("example_list", example_list),
    ("message", message),
    ("infer", infer),
    ("inflate", inflate),
    ("roundtrip", roundtrip),
    ("oracle", against_oracle),
    ("difference", difference),
    ("parquet", parquet),
    ("index", index),
];

/// Returns a stream of records. The length of each is the byte before it; 255 stands for the rest
/// of the bytes.
pub fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut payloads = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let length = if *length == 255 {
            rest.len()
        } else {
            usize::from(*length).min(rest.len())
        };
        let (payload, rest) = rest.split_at(length);
        payloads.push(payload);
        bytes = rest;
    }
    frame::file(payloads)
}

/// Returns the records of a stream before the first error, in chunks of about `target` bytes, and
/// whether there is no error.
fn chunks(stream: &[u8], target: usize) -> (Vec<Records>, bool) {
    let segments = FrameBuffer::new(target, LIMITS).segments(stream);
    let mut all = Vec::new();
    for segment in segments {
        match segment {
            Ok(segment) => all.extend(segment.into_records()),
            Err(_) => return (all, false),
        }
    }
    (all, true)
}

fn payloads(chunks: &[Records]) -> Vec<Vec<u8>> {
    chunks
        .iter()
        .flat_map(|records| records.iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect()
}

/// Checks that the records do not depend on how the stream is split, and that they are those of the
/// test kit's reader.
pub fn frame(stream: &[u8]) {
    let ((small, whole), (large, _)) = (chunks(stream, 0), chunks(stream, stream.len() + 1));
    assert_eq!(payloads(&small), payloads(&large));
    let sound = small
        .iter()
        .all(|records| records.verify(VerifyCrc::Always).is_ok());
    if let (Ok(read), true) = (frame::read(stream), whole) {
        assert!(sound && payloads(&small) == read);
    }
}

/// Checks that each byte of a corrupt stream is in a record or lost, and that the records do not
/// depend on how the stream is split.
pub fn resync(stream: &[u8]) {
    let read = |target| {
        let mut at = 0;
        let mut found = Vec::new();
        for segment in FrameBuffer::new(target, LIMITS)
            .with_on_error(OnError::Skip)
            .segments(stream)
        {
            match segment.unwrap() {
                Segment::Records(records) => {
                    assert_eq!(records.position(0).offset, at);
                    at += records.bytes() as u64;
                    found.extend(payloads(&[records]));
                }
                Segment::Lost(lost) => {
                    assert_eq!(lost.offset, at);
                    at += lost.bytes.len() as u64;
                }
            }
        }
        assert_eq!(at, stream.len() as u64);
        found
    };
    assert_eq!(read(0), read(stream.len() + 1));
}

/// Decodes the bytes as Examples: in both layouts, with and without view types, with errors and
/// with skipped records.
pub fn example(bytes: &[u8]) {
    decode(&framed(bytes), RecordType::Example);
}

/// Decodes the bytes as SequenceExamples, with the same options as [`example`].
pub fn sequence(bytes: &[u8]) {
    decode(&framed(bytes), RecordType::SequenceExample);
}

/// Decodes the bytes as ExampleListWithContext records, with the same options as [`example`].
pub fn example_list(bytes: &[u8]) {
    decode(&framed(bytes), RecordType::ExampleList);
}

/// The descriptors of the messages in `testdata/message`.
const DESCRIPTORS: &[u8] = include_bytes!("../../../testdata/message/shapes.desc");

/// Decodes the bytes as messages, with and without view types, with errors and with skipped
/// records. Checks that messages are encoded as messages that decode to the same rows.
pub fn message(bytes: &[u8]) {
    let (chunks, _) = chunks(&framed(bytes), 1 << 20);
    for name in ["tfarrow.test.Shape", "tfarrow.test.Legacy"] {
        let plain = MessageType::parse(DESCRIPTORS, name)
            .unwrap()
            .schema(&LIMITS)
            .unwrap();
        for schema in [tfarrow_codec::schema::with_views(&plain, true), plain] {
            let builder = ReaderBuilder::new(SchemaRef::clone(&schema)).with_limits(LIMITS);
            let mut decoder = builder
                .with_on_error(OnError::Skip)
                .build_batch_decoder()
                .unwrap();
            for batch in chunks
                .iter()
                .filter_map(|records| decoder.decode(records).ok())
            {
                check(&batch);
                let mut frames = Vec::new();
                WriterBuilder::new()
                    .build_encoder(SchemaRef::clone(&schema))
                    .unwrap()
                    .encode(&batch, &mut frames)
                    .unwrap();
                let records = Records::from_frames(frames, Limits::default()).unwrap();
                let decoder = ReaderBuilder::new(SchemaRef::clone(&schema))
                    .with_strict(true)
                    .build_batch_decoder();
                // Floats are compared by their bits.
                assert_eq!(
                    format!("{:?}", decoder.unwrap().decode(&records).unwrap()),
                    format!("{batch:?}")
                );
            }
        }
    }
}

fn schemas(chunks: &[Records], record_type: RecordType) -> Vec<SchemaRef> {
    let mut summary = Summary::with_limits(0, LIMITS);
    if chunks
        .iter()
        .any(|records| summary.observe(records, VerifyCrc::Always).is_err())
    {
        return Vec::new();
    }
    let schema = |layout| {
        summary
            .schema_with(layout, Some(record_type), OnConflict::Split)
            .unwrap()
    };
    let views = |schema: &SchemaRef| tfarrow_codec::schema::with_views(schema, true);
    let plain = [schema(Layout::List), schema(Layout::Auto)];
    plain.iter().map(views).chain(plain.clone()).collect()
}

fn decode(stream: &[u8], record_type: RecordType) {
    let (chunks, _) = chunks(stream, 1 << 20);
    let schemas = schemas(&chunks, record_type);
    for (index, schema) in schemas.iter().enumerate() {
        // Decodes all records with one schema, and only the first chunk with the next.
        let first = if index % 2 == 0 {
            chunks.len()
        } else {
            chunks.len().min(1)
        };
        for on_error in [OnError::Fail, OnError::Skip] {
            let builder = ReaderBuilder::new(SchemaRef::clone(schema))
                .with_limits(LIMITS)
                .with_on_error(on_error);
            let mut decoder = builder.build_batch_decoder().unwrap();
            for records in chunks.iter().take(first) {
                if let Ok(batch) = decoder.decode(records) {
                    check(&batch);
                }
            }
        }
    }
}

/// Checks the arrays with Arrow's own validation.
fn check(batch: &RecordBatch) {
    batch
        .columns()
        .iter()
        .for_each(|column| column.to_data().validate_full().unwrap());
}

/// Checks that inference does not depend on how the records are divided.
pub fn infer(bytes: &[u8]) {
    let (chunks, _) = chunks(&framed(bytes), 1 << 20);
    let mut all = Summary::with_limits(0, LIMITS);
    let mut parts = Summary::with_limits(0, LIMITS);
    for records in &chunks {
        let (one, other) = records.clone().split_at(records.len() / 2);
        let seen = all.observe(records, VerifyCrc::Always);
        for part in [other, one] {
            let mut summary = Summary::with_limits(0, LIMITS);
            if summary
                .observe(&part, VerifyCrc::Always)
                .and_then(|()| parts.merge(&summary))
                .is_err()
                || seen.is_err()
            {
                return;
            }
        }
    }
    assert_eq!(all.records(), parts.records());
    assert_eq!(all.record_type(), parts.record_type());
    assert_eq!(
        all.features().collect::<Vec<_>>(),
        parts.features().collect::<Vec<_>>()
    );
}

/// Decompresses the bytes, with or without skipping of corrupt data. Checks that the records before
/// the first error are the same, and that both agree if there is no error.
pub fn inflate(stored: &[u8]) {
    let read = |on_error| {
        let options = ReadOptions {
            limits: LIMITS,
            on_error,
            chunk_bytes: 4096,
            ..ReadOptions::default()
        };
        let source = Box::new(Cursor::new(stored.to_vec()));
        let mut found = Vec::new();
        let Ok(mut reader) = ShardReader::from_read(source, "attack", &options) else {
            return (found, false);
        };
        loop {
            match reader.next() {
                Ok(Some(records)) => found.extend(payloads(&[records])),
                Ok(None) => return (found, reader.lost().is_empty()),
                Err(_) => return (found, false),
            }
        }
    };
    let ((strict, whole), (patient, nothing_lost)) = (read(OnError::Fail), read(OnError::Skip));
    assert!(patient.starts_with(&strict));
    assert!(!whole || nothing_lost && patient.len() == strict.len());
}

/// Checks that decoded records encode to the same bytes with their exact form, and to records with
/// equal features without it.
pub fn roundtrip(bytes: &[u8]) {
    let (chunks, _) = chunks(&framed(bytes), 1 << 20);
    for record_type in [
        RecordType::Example,
        RecordType::SequenceExample,
        RecordType::ExampleList,
    ] {
        for schema in schemas(&chunks, record_type) {
            for records in &chunks {
                there_and_back(records, &schema, record_type);
            }
        }
    }
}

fn there_and_back(records: &Records, schema: &SchemaRef, record_type: RecordType) {
    let builder = ReaderBuilder::new(SchemaRef::clone(schema)).with_limits(LIMITS);
    let mut decoder = builder.build_batch_decoder().unwrap();
    let Ok(batch) = decoder.decode(records) else {
        return;
    };
    let lost = decoder.excess_features() + decoder.lost_unset();
    let is_told = lost > 0 || decoder.unknown_features().next().is_some();
    let mut plain = Vec::new();
    let mut exact = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut plain)
        .unwrap();
    let with_form = ExactColumn::new(SchemaRef::clone(schema))
        .unwrap()
        .add(&batch, records, |row| row)
        .unwrap();
    WriterBuilder::new()
        .build_encoder(with_form.schema())
        .unwrap()
        .encode(&with_form, &mut exact)
        .unwrap();
    assert_eq!(exact, records.frames());
    let mut differ = Differ::new(record_type, Limits::default());
    for (left, right) in records.iter().zip(frame::read(&plain).unwrap()) {
        // Without columns, the records were not parsed.
        if batch.num_columns() == 0 {
            continue;
        }
        let different = differ.compare(left, right).unwrap();
        // Unknown fields of a record are not in columns. Features without a column are reported by
        // the decoder.
        assert!(
            is_told
                || different
                    .iter()
                    .all(|difference| difference.what == DifferenceKind::Bytes),
            "{different:?}"
        );
    }
}

/// Checks that decoded Examples have the values that `prost` reads.
pub fn against_oracle(bytes: &[u8]) {
    let (chunks, _) = chunks(&framed(bytes), 1 << 20);
    for records in &chunks {
        for (index, payload) in records.iter().enumerate() {
            let Ok(row) = oracle::row_from_example(payload) else {
                continue;
            };
            let (_, rest) = records.clone().split_at(index);
            let (one, _) = rest.split_at(1);
            // Inference cannot determine the columns of a record that does not parse as a
            // SequenceExample, so that its schema has no columns.
            let schema = schemas(std::slice::from_ref(&one), RecordType::Example).pop();
            let Some(schema) = schema.filter(|schema| !schema.fields().is_empty()) else {
                continue;
            };
            let mut decoder = ReaderBuilder::new(schema)
                .with_limits(LIMITS)
                .build_batch_decoder()
                .unwrap();
            // TensorFlow skips a known field of another wire type, and `prost` rejects it; never
            // the reverse.
            let Ok(batch) = decoder.decode(&one) else {
                panic!("prost reads what is refused here: {payload:?}")
            };
            let mut again = Vec::new();
            WriterBuilder::new()
                .build_encoder(batch.schema())
                .unwrap()
                .encode(&batch, &mut again)
                .unwrap();
            let again = oracle::row_from_example(frame::read(&again).unwrap()[0]).unwrap();
            assert_eq!(again, row);
        }
    }
}

/// Compares the two halves of the bytes: a record is equal to itself, and equality does not depend
/// on the order of the two.
pub fn difference(bytes: &[u8]) {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    for record_type in [
        RecordType::Example,
        RecordType::SequenceExample,
        RecordType::ExampleList,
    ] {
        let mut differ = Differ::new(record_type, LIMITS);
        assert!(
            differ
                .compare(left, left)
                .is_ok_and(|found| found.is_empty())
        );
        let one = differ.compare(left, right);
        let other = differ.compare(right, left);
        assert_eq!(
            one.is_ok_and(|found| found.is_empty()),
            other.is_ok_and(|found| found.is_empty())
        );
    }
}

/// Takes the bytes as a shard, whose index has all records, and as an index, which is none of it.
pub fn index(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let [path, beside] = ["a", "a.tfindex"].map(|name| folder.path().join(name));
    let stream = framed(bytes);
    std::fs::write(&path, &stream).unwrap();
    let shard = Shard::file(path, "a".into(), stream.len() as u64, ShardFormat::TfRecord);
    std::fs::write(&beside, bytes).unwrap();
    assert!(IndexPlace::Beside.open(&shard).is_err());
    let mut builder = IndexBuilder::new(shard.size, LIMITS);
    let mut worker = IndexWorker::new(LIMITS);
    for (number, records) in (0..).zip(chunks(&stream, 64).0) {
        let Ok(observed) = worker.observe(&records) else {
            return;
        };
        builder.add(number, observed, &mut worker);
    }
    builder.merge(&worker).unwrap();
    let identity = shard.identity().unwrap();
    let written = write_index(builder, Vec::new(), identity, Vec::new()).unwrap();
    std::fs::write(&beside, written).unwrap();
    let index = IndexPlace::Beside.open(&shard).unwrap().unwrap();
    let payloads = frame::read(&stream).unwrap();
    let lengths: Vec<_> = payloads.iter().map(|it| it.len() as u32).collect();
    assert_eq!(index.lengths().unwrap(), lengths);
    let blocks = index.blocks().unwrap();
    // An empty file has no positions.
    if !stream.is_empty() {
        assert!(read_blocks(&shard, &blocks, Vec::new(), &payloads));
        compressed_blocks(bytes, folder.path(), &stream, &blocks);
    }
}

/// Reads blocks of a gzip file from an access point, and from another place that the bytes state.
fn compressed_blocks(bytes: &[u8], folder: &Path, stream: &[u8], blocks: &[FrameRange]) {
    let mut writer = ShardWriter::new(Vec::new(), Compression::Gzip);
    writer.write_all(stream).unwrap();
    let gzip = writer.finish().unwrap();
    let path = folder.join("b.gz");
    std::fs::write(&path, &gzip).unwrap();
    let shard = Shard::file(
        path,
        "b.gz".into(),
        gzip.len() as u64,
        ShardFormat::TfRecord,
    );
    let payloads = frame::read(stream).unwrap();
    let collecting = ShardReader::open_collecting(&shard, &ReadOptions::default());
    let (mut reader, points) = collecting.unwrap().unwrap();
    let mut records = 0;
    while let Some(next) = reader.next().unwrap() {
        records += next.len();
    }
    assert_eq!(records, payloads.len());
    assert!(read_blocks(&shard, blocks, points.take(), &payloads));
    let mut bits = [0; 8];
    for (bit, byte) in bits.iter_mut().zip(bytes) {
        *bit = *byte;
    }
    let is_member = bytes.last().is_some_and(|byte| byte % 2 == 0);
    let window = bytes.iter().copied().cycle();
    let wrong = AccessPoint {
        offset: 0,
        bits: u64::from_le_bytes(bits) % (8 * shard.size + 8),
        window: match is_member {
            true => Vec::new(),
            false => window.take(AccessPoint::WINDOW_BYTES).collect(),
        },
    };
    read_blocks(&shard, blocks, vec![wrong], &payloads);
}

/// Whether blocks can be read. The records that are read must be right.
fn read_blocks(
    shard: &Shard,
    blocks: &[FrameRange],
    points: Vec<AccessPoint>,
    payloads: &[&[u8]],
) -> bool {
    let options = ReadOptions::default();
    let is_wanted = Box::new(|_: &_| true);
    let opened = SharedReader::open_blocks(shard, &options, blocks.to_vec(), points, is_wanted);
    let reader = opened.unwrap().unwrap();
    let mut summary = Summary::with_limits(0, LIMITS);
    let mut read = 0;
    while let Some(taken) = reader.next(None, |taken| taken) {
        let Ok(tfarrow_dataset::Segment::Records(records)) = taken.map(|taken| taken.segment)
        else {
            return false;
        };
        // Whoever decodes the records checks the CRCs of their data.
        if summary.observe(&records, VerifyCrc::Always).is_err() {
            return false;
        }
        let expected = payloads.get(read..read + records.len()).unwrap();
        assert!(records.iter().eq(expected.iter().copied()));
        read += records.len();
    }
    read == payloads.len()
}

/// Converts bytes that begin like a Parquet or an Arrow file. After an error, there is no output.
pub fn parquet(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let [source, dest] = ["a", "b.tfrecord"].map(|name| folder.path().join(name));
    std::fs::write(&source, bytes).unwrap();
    let options = ConvertOptions {
        to: Some(Target::TfRecord),
        jobs: 1,
        ..ConvertOptions::default()
    };
    let columnar = bytes.starts_with(b"PAR1") || bytes.starts_with(b"ARROW1");
    if columnar && convert(&[&source], &dest, &options, &Progress::default()).is_err() {
        assert!(!Path::new(&dest).exists());
    }
}
