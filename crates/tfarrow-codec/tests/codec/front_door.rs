//! The API that a user of arrow-csv expects: [`Reader`], [`Writer`], and payloads without frames.

use std::{io, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchReader, RecordBatchWriter};
use arrow_schema::ArrowError;
use tfarrow_codec::{
    Category, Error, ErrorKind, Limits, MOST_RECORD_BYTES, ReaderBuilder, Records, VerifyCrc,
    Writer, WriterBuilder, frame,
};

/// Returns a batch of the integers in `values`, and its file.
fn numbers(values: std::ops::Range<i64>) -> (RecordBatch, Vec<u8>) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let mut bytes = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut bytes)
        .unwrap();
    (batch, bytes)
}

#[test]
fn a_reader_returns_batches_of_the_batch_size_for_any_buffer() {
    let (batch, bytes) = numbers(0..1000);
    for capacity in [1, 7, 100, 1 << 20] {
        let input = io::BufReader::with_capacity(capacity, bytes.as_slice());
        let reader = ReaderBuilder::new(batch.schema())
            .with_batch_size(300)
            .build(input)
            .unwrap();
        assert_eq!(
            RecordBatchReader::schema(&reader).fields(),
            batch.schema().fields()
        );
        let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
        assert_eq!(
            batches
                .iter()
                .map(RecordBatch::num_rows)
                .collect::<Vec<_>>(),
            [300, 300, 300, 100]
        );
        let all = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
        assert_eq!(all.columns(), batch.columns());
    }
}

#[test]
fn a_reader_returns_the_batches_before_an_error_and_nothing_after_it() {
    let (batch, bytes) = numbers(0..10);
    let truncated = &bytes[..bytes.len() - 1];
    let mut reader = ReaderBuilder::new(batch.schema())
        .with_batch_size(4)
        .build(truncated)
        .unwrap();
    let rows: Vec<_> = reader
        .by_ref()
        .take(3)
        .map(|batch| batch.unwrap().num_rows())
        .collect();
    assert_eq!(rows, [4, 4, 1]);
    let Some(Err(ArrowError::ExternalError(error))) = reader.next() else {
        panic!("a truncated file is no error")
    };
    let error = error.downcast_ref::<Error>().unwrap();
    assert_eq!(
        (error.category(), error.position().record),
        (Category::Truncated, 9)
    );
    assert!(reader.next().is_none());
}

#[test]
fn a_reader_returns_the_errors_of_its_source() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    let (batch, _) = numbers(0..1);
    let mut reader = ReaderBuilder::new(batch.schema())
        .build(io::BufReader::new(Failing))
        .unwrap();
    assert!(matches!(reader.next(), Some(Err(ArrowError::IoError(..)))));
    assert!(reader.next().is_none());
}

#[test]
fn a_writer_writes_the_bytes_of_the_encoder() {
    let (batch, bytes) = numbers(0..10);
    let mut writer = Writer::new(Vec::new(), batch.schema()).unwrap();
    writer.write(&batch.slice(0, 3)).unwrap();
    writer.write(&batch.slice(3, 7)).unwrap();
    writer.finish().unwrap();
    assert_eq!(writer.into_inner(), bytes);
    let mut output = Vec::new();
    let mut writer = Writer::new(&mut output, batch.schema()).unwrap();
    RecordBatchWriter::write(&mut writer, &batch).unwrap();
    writer.close().unwrap();
    assert_eq!(output, bytes);
}

#[test]
fn a_writer_writes_nothing_of_a_batch_that_it_rejects() {
    let (batch, bytes) = numbers(0..10);
    let column: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["x"]));
    let other = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let mut writer = Writer::new(Vec::new(), batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    assert!(matches!(
        writer.write(&other),
        Err(ArrowError::ExternalError(_))
    ));
    assert_eq!(writer.into_inner(), bytes);
}

#[test]
fn payloads_without_frames_become_records() {
    let (_, bytes) = numbers(0..5);
    let framed = Records::from_frames(bytes.clone(), Limits::default()).unwrap();
    let records = Records::from_payloads(framed.iter()).unwrap();
    assert_eq!(records.frames(), bytes);
    assert!(records.verify(VerifyCrc::Always).is_ok());
    assert_eq!(
        (records.len(), records.first(), records.bytes()),
        (5, 0, bytes.len())
    );
    assert_eq!(records.position(4), framed.position(4));
    let none = Records::from_payloads([]).unwrap();
    assert!(none.is_empty() && none.frames().is_empty());
    let empty = Records::from_payloads([&b""[..], b""]).unwrap();
    assert_eq!(empty.iter().collect::<Vec<_>>(), [b"", b""]);
}

/// The payload takes no memory, since its length is rejected before its bytes are read.
#[test]
fn a_payload_above_the_limit_is_rejected_with_its_number() {
    let long = vec![0; MOST_RECORD_BYTES + 1];
    let error = Records::from_payloads([&b"one"[..], &long]).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Limit { limit, .. } if *limit == MOST_RECORD_BYTES as u64),
        "{error}"
    );
    assert_eq!(
        (
            error.category(),
            error.position().record,
            error.position().offset
        ),
        (Category::Limit, 1, 19)
    );
}

#[test]
fn incomplete_frames_and_frames_above_the_limit_are_rejected() {
    let (_, bytes) = numbers(0..2);
    let truncated =
        Records::from_frames(bytes[..bytes.len() - 1].to_vec(), Limits::default()).unwrap_err();
    assert_eq!(
        (truncated.category(), truncated.position().record),
        (Category::Truncated, 1)
    );
    let limits = Limits {
        record_bytes: 3,
        ..Limits::default()
    };
    assert_eq!(
        Records::from_frames(bytes.clone(), limits)
            .unwrap_err()
            .category(),
        Category::Limit
    );
    let items: Vec<_> = frame::records(&bytes[..bytes.len() - 1], Limits::default()).collect();
    assert!(
        matches!(&items[..], [Ok(records), Err(_)] if records.len() == 1),
        "records before the error come first"
    );
}
