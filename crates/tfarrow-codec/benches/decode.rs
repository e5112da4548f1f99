//! Frame, walk, decode and infer, in bytes and in rows a second: `cargo bench -p
//! tfarrow-codec --bench decode`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::{hint::black_box, sync::Arc};

use arrow_array::{ArrayRef, BinaryArray, Float32Array, Int64Array, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, SchemaRef};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use tfarrow_codec::{
    Layout, Limits, ReaderBuilder, Records, Summary, VerifyCrc, WriterBuilder, frame, infer,
};

/// About 4 MB of records of one shape.
struct Corpus {
    name: &'static str,
    bytes: Vec<u8>,
    records: Vec<Records>,
    schema: SchemaRef,
}

impl Corpus {
    fn new(name: &'static str, columns: Vec<(String, ArrayRef)>) -> Self {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut bytes)
            .unwrap();
        let schema = infer::infer_schema(bytes.as_slice(), Layout::Auto, None).unwrap();
        Self {
            name,
            records: cut(&bytes),
            bytes,
            schema,
        }
    }

    fn rows(&self) -> usize {
        self.records.iter().map(Records::len).sum()
    }
}

fn cut(bytes: &[u8]) -> Vec<Records> {
    frame::records(bytes, Limits::default())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn list(values: ArrayRef, len: usize) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(len, values.len() / len));
    Arc::new(ListArray::new(field, offsets, values, None))
}

/// Returns pseudorandom numbers, which are the same in every run.
fn numbers(count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|i| (i ^ 0x9e37).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
}

fn ints(count: usize, below: u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        numbers(count).map(|n| (n % below) as i64),
    ))
}

fn corpora() -> Vec<Corpus> {
    let code = |n: u64| format!("{:08x}", n as u32);
    let tabular = (0..14)
        .map(|i| (format!("int_{i:02}"), ints(4000, 1 << 20)))
        .chain((0..26).map(|i| {
            let codes: ArrayRef = Arc::new(BinaryArray::from_iter_values(numbers(4000).map(code)));
            (format!("cat_{i:02}"), codes)
        }));
    let tokens = ["input_ids", "input_mask", "segment_ids"]
        .map(|name| (name.to_owned(), list(ints(4000 * 128, 30_522), 128)));
    let floats: ArrayRef = Arc::new(Float32Array::from_iter_values(
        numbers(1300 * 768).map(|n| n as f32),
    ));
    let images: ArrayRef = Arc::new(BinaryArray::from_iter_values(
        numbers(36).map(|n| vec![n as u8; 110_000]),
    ));
    vec![
        Corpus::new("tabular", tabular.collect()),
        Corpus::new("tokens", tokens.into()),
        Corpus::new(
            "embedding",
            vec![
                ("embedding".to_owned(), list(floats, 768)),
                ("label".to_owned(), ints(1300, 10)),
            ],
        ),
        Corpus::new(
            "images",
            vec![
                ("image".to_owned(), images),
                ("label".to_owned(), ints(36, 10)),
            ],
        ),
    ]
}

/// Measures `run` over a corpus, in bytes of its frames and in rows.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, corpus: &Corpus, mut run: impl FnMut()) {
    group.throughput(Throughput::Bytes(corpus.bytes.len() as u64));
    group.bench_function(format!("{}/bytes", corpus.name), |b| b.iter(&mut run));
    group.throughput(Throughput::Elements(corpus.rows() as u64));
    group.bench_function(format!("{}/rows", corpus.name), |b| b.iter(&mut run));
}

fn benches(c: &mut Criterion) {
    let corpora = corpora();
    let mut group = c.benchmark_group("frame");
    for corpus in &corpora {
        measure(&mut group, corpus, || drop(black_box(cut(&corpus.bytes))));
    }
    drop(group);
    for (name, verify) in [
        ("walk", VerifyCrc::Never),
        ("crc and walk", VerifyCrc::Always),
    ] {
        let mut group = c.benchmark_group(name);
        for corpus in &corpora {
            let last = corpus.schema.fields().len() - 1;
            let builder = ReaderBuilder::new(Arc::clone(&corpus.schema)).with_verify_crc(verify);
            let mut decoder = builder
                .with_projection(vec![last])
                .build_batch_decoder()
                .unwrap();
            measure(&mut group, corpus, || decode(&mut decoder, &corpus.records));
        }
    }
    let mut group = c.benchmark_group("decode");
    for corpus in &corpora {
        let mut decoder = ReaderBuilder::new(Arc::clone(&corpus.schema))
            .build_batch_decoder()
            .unwrap();
        measure(&mut group, corpus, || decode(&mut decoder, &corpus.records));
    }
    drop(group);
    let mut group = c.benchmark_group("infer");
    for corpus in &corpora {
        measure(&mut group, corpus, || {
            let mut summary = Summary::new(0);
            corpus
                .records
                .iter()
                .for_each(|records| summary.observe(records, VerifyCrc::Never).unwrap());
            black_box(summary.records());
        });
    }
}

fn decode(decoder: &mut tfarrow_codec::BatchDecoder, records: &[Records]) {
    for records in records {
        black_box(decoder.decode(records).unwrap());
    }
}

criterion_group!(all, benches);
criterion_main!(all);
