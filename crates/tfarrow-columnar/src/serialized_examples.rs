//! Parquet files whose rows are serialized Examples in one column of bytes, as TFDS writes them
//! (`file_format="parquet"`).

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use tfarrow_codec::{
    RecordType, Records, Summary, VerifyCrc, WriterBuilder,
    schema::{RECORD_TYPE, role_of},
};

/// Number of rows that determine whether the rows are Examples.
const EXAMINED_ROWS: usize = 8;

/// Returns the schema of a file. If its rows are serialized Examples, the metadata states that they
/// are the records, so that they are read and converted as such. The metadata of files of this
/// project states the type of the records anyway.
pub(crate) fn schema_of_records(file: &File, metadata: &ArrowReaderMetadata) -> SchemaRef {
    let schema = metadata.schema();
    let states_type = schema.metadata().contains_key(RECORD_TYPE);
    let is_candidate = match schema.fields().as_ref() {
        [field] => is_binary(field.data_type()) && role_of(field).is_none() && !states_type,
        _ => false,
    };
    if !is_candidate || !holds_examples(file, metadata) {
        return SchemaRef::clone(schema);
    }
    let mut stated = schema.metadata().clone();
    stated.insert(RECORD_TYPE.to_owned(), RecordType::Raw.name().to_owned());
    Schema::new_with_metadata(schema.fields().clone(), stated).into()
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// Returns whether the first rows are Examples with features. Rows that cannot be read are none:
/// reading them reports the error.
fn holds_examples(file: &File, metadata: &ArrowReaderMetadata) -> bool {
    let rows = file.try_clone().ok().and_then(|file| {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        builder
            .with_batch_size(1)
            .with_limit(EXAMINED_ROWS)
            .build()
            .ok()
    });
    let mut count = 0;
    for row in rows.into_iter().flatten() {
        if !row.is_ok_and(|row| is_example(&row).unwrap_or(false)) {
            return false;
        }
        count += 1;
    }
    count > 0
}

/// Returns whether the value of a row is an Example with features.
fn is_example(row: &RecordBatch) -> tfarrow_codec::Result<bool> {
    let mut frames = Vec::new();
    WriterBuilder::new()
        .with_record_type(RecordType::Raw)
        .build_encoder(row.schema())?
        .encode(row, &mut frames)?;
    let mut summary = Summary::new(0);
    summary.observe(
        &Records::from_rows(Buffer::from_vec(frames), 0)?,
        VerifyCrc::Never,
    )?;
    Ok(summary.examples() == 1 && summary.foreign().is_none())
}
