//! Batches of shards of all compressions, with and without damage.

use std::{io::Cursor, sync::Arc};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchReader, cast::AsArray, types::Int64Type,
};
use arrow_schema::ArrowError;
use tfarrow_codec::{OnError, ReaderBuilder, Writer};
use tfarrow_dataset::{
    Compression, Error, ReadOptions, ShardBatchReader, ShardReader, ShardWriter,
};

/// Returns a shard of the integers from 0 to 999 with this compression, and a batch of them.
fn shard(compression: Compression) -> (Vec<u8>, RecordBatch) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    let mut writer =
        Writer::new(ShardWriter::new(Vec::new(), compression), batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    (writer.into_inner().finish().unwrap(), batch)
}

fn reader(bytes: Vec<u8>, batch: &RecordBatch, on_error: OnError) -> ShardBatchReader {
    let options = ReadOptions {
        on_error,
        chunk_bytes: 4096,
        ..ReadOptions::default()
    };
    let reader = ShardReader::from_read(Box::new(Cursor::new(bytes)), "x", &options).unwrap();
    let builder = ReaderBuilder::new(batch.schema())
        .with_batch_size(100)
        .with_on_error(on_error);
    ShardBatchReader::new(reader, builder).unwrap()
}

fn values(batch: &RecordBatch) -> Vec<i64> {
    batch
        .column(0)
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

#[test]
fn batches_of_all_compressions_have_all_rows_and_at_most_the_batch_size() {
    for compression in Compression::ALL {
        let (bytes, batch) = shard(compression);
        let reader = reader(bytes, &batch, OnError::Fail);
        assert_eq!(
            RecordBatchReader::schema(&reader).fields(),
            batch.schema().fields()
        );
        let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
        assert!(
            batches
                .iter()
                .all(|batch| (1..=100).contains(&batch.num_rows()))
        );
        assert_eq!(
            batches.iter().flat_map(values).collect::<Vec<_>>(),
            values(&batch)
        );
    }
}

#[test]
fn an_error_names_the_shard_and_ends_the_batches() {
    let (mut bytes, batch) = shard(Compression::None);
    bytes.pop();
    let mut reader = reader(bytes, &batch, OnError::Fail);
    let rows: usize = reader
        .by_ref()
        .map_while(|batch| batch.ok())
        .map(|batch| batch.num_rows())
        .sum();
    assert_eq!(rows, 999);
    assert!(reader.next().is_none());
    let (mut bytes, batch) = shard(Compression::None);
    bytes.pop();
    let error = self::reader(bytes, &batch, OnError::Fail).find_map(|batch| batch.err());
    let Some(ArrowError::ExternalError(error)) = error else {
        panic!("a truncated shard is no error")
    };
    assert!(
        error
            .downcast_ref::<Error>()
            .unwrap()
            .to_string()
            .starts_with("x: "),
        "{error}"
    );
}

#[test]
fn corrupt_bytes_and_records_are_skipped_and_counted() {
    let (mut bytes, batch) = shard(Compression::None);
    // The length of the first record, and the payload of the last one.
    bytes[0] ^= 1;
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    let mut reader = reader(bytes, &batch, OnError::Skip);
    let found: Vec<_> = reader
        .by_ref()
        .flat_map(|batch| values(&batch.unwrap()))
        .collect();
    assert_eq!(found, (1..999).collect::<Vec<_>>());
    let skipped = reader.take_skipped();
    assert_eq!(
        (skipped.records, skipped.corrupt, skipped.ranges),
        (1, 1, 1)
    );
    assert!(reader.take_skipped().is_empty());
}
