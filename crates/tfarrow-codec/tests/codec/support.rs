//! Functions that all tests use to drive the codec.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{
    Decoder, FrameBuffer, Layout, Limits, ReaderBuilder, RecordType, Records, Result, Summary,
    VerifyCrc, schema,
};
use tfarrow_testkit::generate::DataSet;

/// The combinations of options for decoding: each layout, with and without views.
pub(crate) const WAYS: [(Layout, bool); 4] = [
    (Layout::List, false),
    (Layout::List, true),
    (Layout::Auto, false),
    (Layout::Auto, true),
];

/// Returns the folder of files that TensorFlow wrote.
pub(crate) fn testdata() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "testdata"]
        .iter()
        .collect()
}

/// Returns the record type of a data set.
pub(crate) fn record_type(sequence: bool) -> RecordType {
    if sequence {
        RecordType::SequenceExample
    } else {
        RecordType::Example
    }
}

/// Returns the records of a complete file, in chunks of about `target` bytes.
pub(crate) fn chunks(file: &[u8], target: usize) -> Result<Vec<Records>> {
    let segments = FrameBuffer::new(target, Limits::default()).segments(file);
    segments
        .map(|segment| segment.map(|segment| segment.into_records().unwrap()))
        .collect()
}

/// Returns the summary of a complete file.
pub(crate) fn summary(file: &[u8]) -> Result<Summary> {
    let mut summary = Summary::new(0);
    for records in chunks(file, 1 << 20)? {
        summary.observe(&records, VerifyCrc::Always)?;
    }
    Ok(summary)
}

/// Returns the schema that is inferred from a complete file.
pub(crate) fn schema_of(
    file: &[u8],
    sequence: bool,
    (layout, views): (Layout, bool),
) -> Result<SchemaRef> {
    let schema = summary(file)?.schema(layout, Some(record_type(sequence)))?;
    Ok(schema::with_views(&schema, views))
}

/// Decodes a complete file.
pub(crate) fn decode(file: &[u8], builder: ReaderBuilder) -> Result<Vec<RecordBatch>> {
    let mut decoder = builder.build_decoder()?;
    let mut batches = push(&mut decoder, file)?;
    batches.extend(finish(&mut decoder)?);
    Ok(batches)
}

/// Pushes bytes into the decoder, and returns the batches that are full.
pub(crate) fn push(decoder: &mut Decoder, mut bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let taken = decoder.decode(bytes)?;
        bytes = &bytes[taken..];
        if decoder.capacity() == 0 {
            batches.extend(decoder.flush()?);
        } else {
            assert!(
                bytes.is_empty(),
                "bytes are left over only where a batch is full"
            );
        }
    }
    Ok(batches)
}

/// Ends the input of the decoder, and returns the remaining batches.
pub(crate) fn finish(decoder: &mut Decoder) -> Result<Vec<RecordBatch>> {
    decoder.finish()?;
    let mut batches = Vec::new();
    while let Some(batch) = decoder.flush()? {
        batches.push(batch);
    }
    Ok(batches)
}

/// Decodes a complete file with one combination of options, by the schema that is inferred from it.
pub(crate) fn decode_way(
    file: &[u8],
    sequence: bool,
    way: (Layout, bool),
) -> Result<Vec<RecordBatch>> {
    decode(file, ReaderBuilder::new(schema_of(file, sequence, way)?))
}

/// Returns the offset of each record in the file of a data set, and the length of the file.
pub(crate) fn offsets<P: AsRef<[u8]>>(payloads: &[P]) -> Vec<u64> {
    let mut offsets = vec![0];
    for payload in payloads {
        offsets.push(offsets[offsets.len() - 1] + 16 + payload.as_ref().len() as u64);
    }
    offsets
}

/// Returns three records with all kinds and shapes, small enough to try each bit of their file.
pub(crate) fn small(sequence: bool) -> DataSet {
    use tfarrow_testkit::oracle::{ModelCell, ModelRow, ModelSide, ModelValue};
    let feature = |name: &str, value| {
        (
            (ModelSide::Features, name.to_owned()),
            ModelCell::One(value),
        )
    };
    let list = |name: &str, steps| ((ModelSide::Lists, name.to_owned()), ModelCell::Steps(steps));
    let mut rows = vec![
        ModelRow::from([
            feature("b", ModelValue::Bytes(vec![b"one".to_vec(), vec![0xff]])),
            feature("i", ModelValue::Int64(vec![-1, 300])),
            feature("u", ModelValue::Unset),
        ]),
        ModelRow::from([
            feature("f", ModelValue::Float(vec![0x3fc0_0000])),
            feature("i", ModelValue::Int64(vec![])),
        ]),
        ModelRow::from([
            feature("b", ModelValue::Unset),
            feature("i", ModelValue::Int64(vec![7])),
        ]),
    ];
    if sequence {
        rows[0].extend([
            list("i", vec![ModelValue::Float(vec![1, 2]), ModelValue::Unset]),
            list("t", vec![]),
        ]);
        rows[2].extend([list("t", vec![ModelValue::Bytes(vec![b"two".to_vec()])])]);
    }
    DataSet { sequence, rows }
}
