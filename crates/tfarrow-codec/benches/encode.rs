//! Batches to framed records, in bytes of records a second.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot be set up has nothing better to do"
)]

use std::{hint::black_box, sync::Arc};

use arrow_array::{
    ArrayRef, BinaryArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray,
    types::{Float32Type, Int64Type},
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tfarrow_codec::{RecordType, WriterBuilder};

/// Returns pseudorandom numbers, which are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn float(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0
    }
}

fn batch(columns: impl IntoIterator<Item = (String, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// 40 columns of one value each: 20 floats, 14 integers, 6 short texts.
fn scalars(rows: usize) -> RecordBatch {
    let mut numbers = Numbers(1);
    batch((0..40).map(|column| {
        let array: ArrayRef = match column {
            0..20 => Arc::new(
                (0..rows)
                    .map(|_| Some(numbers.float()))
                    .collect::<Float32Array>(),
            ),
            20..34 => Arc::new(
                (0..rows)
                    .map(|_| Some(numbers.below(100_000) as i64))
                    .collect::<Int64Array>(),
            ),
            _ => Arc::new(
                (0..rows)
                    .map(|_| Some(format!("category_{}", numbers.below(1000))))
                    .collect::<StringArray>(),
            ),
        };
        (format!("feature_{column:02}"), array)
    }))
}

/// 512 token ids a row, and as many flags.
fn tokens(rows: usize) -> RecordBatch {
    let mut numbers = Numbers(2);
    let mut lists = |end: u64| -> ArrayRef {
        let row = |_| {
            Some(
                (0..512)
                    .map(|_| Some(numbers.below(end) as i64))
                    .collect::<Vec<_>>(),
            )
        };
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
            (0..rows).map(row),
        ))
    };
    batch([
        ("input_ids".to_owned(), lists(50_000)),
        ("mask".to_owned(), lists(2)),
    ])
}

/// 768 floats a row.
fn embedding(rows: usize) -> RecordBatch {
    let mut numbers = Numbers(3);
    let row = |_| Some((0..768).map(|_| Some(numbers.float())).collect::<Vec<_>>());
    let array: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..rows).map(row),
    ));
    batch([("embedding".to_owned(), array)])
}

/// 110 kB of bytes and a label a row.
fn images(rows: usize) -> RecordBatch {
    let mut numbers = Numbers(4);
    let image: Vec<u8> = (0..110_000 + rows).map(|_| numbers.next() as u8).collect();
    let images: ArrayRef = Arc::new(BinaryArray::from_iter_values(
        (0..rows).map(|row| &image[row..row + 110_000]),
    ));
    let labels: ArrayRef = Arc::new(
        (0..rows)
            .map(|_| Some(numbers.below(1000) as i64))
            .collect::<Int64Array>(),
    );
    batch([
        ("image/encoded".to_owned(), images),
        ("label".to_owned(), labels),
    ])
}

/// A feature list of 20 steps of 40 floats a row, and a context feature.
fn sequence(rows: usize) -> RecordBatch {
    let mut numbers = Numbers(5);
    let steps = 20 * rows;
    let step = |_| Some((0..40).map(|_| Some(numbers.float())).collect::<Vec<_>>());
    let steps = ListArray::from_iter_primitive::<Float32Type, _, _>((0..steps).map(step));
    let field = Arc::new(arrow_schema::Field::new_list_field(
        arrow_array::Array::data_type(&steps).clone(),
        true,
    ));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(std::iter::repeat_n(20, rows));
    let frames: ArrayRef = Arc::new(ListArray::new(field, offsets, Arc::new(steps), None));
    let rates: ArrayRef = Arc::new(Int64Array::from(vec![16_000; rows]));
    batch([("frame".to_owned(), frames), ("rate".to_owned(), rates)])
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for (name, batch) in [
        ("scalars_40", scalars(8192)),
        ("tokens", tokens(8192)),
        ("embedding_768", embedding(4096)),
        ("images_110kB", images(128)),
        ("sequence", sequence(4096)),
    ] {
        let record_type = if name == "sequence" {
            RecordType::SequenceExample
        } else {
            RecordType::Example
        };
        let mut encoder = WriterBuilder::new()
            .with_record_type(record_type)
            .build_encoder(batch.schema())
            .unwrap();
        let mut out = Vec::new();
        encoder.encode(&batch, &mut out).unwrap();
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encoder.encode(black_box(&batch), &mut out).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
