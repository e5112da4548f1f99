//! Schemas and batches as streams of Arrow IPC.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use datafusion::{
    arrow::ipc::{reader::StreamDecoder, writer::StreamWriter},
    common::{exec_datafusion_err, exec_err},
    error::Result,
};
use tfarrow_dataset::guard;

/// A schema, with the metadata of its fields.
pub(super) fn schema_to_bytes(schema: &Schema) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    writer.finish()?;
    Ok(writer.into_inner()?)
}

/// The schema of a stream without batches.
pub(super) fn schema_of_bytes(bytes: &[u8]) -> Result<SchemaRef> {
    decoded(bytes).map(|(schema, _)| schema)
}

/// One batch.
pub(super) fn batch_to_bytes(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner()?)
}

/// The batch of a stream; no rows if it has none.
pub(super) fn batch_of_bytes(bytes: &[u8]) -> Result<RecordBatch> {
    let (schema, batch) = decoded(bytes)?;
    let empty =
        || RecordBatch::try_new_with_options(schema, Vec::new(), &RecordBatchOptions::new().with_row_count(Some(0)));
    Ok(batch.map_or_else(empty, Ok)?)
}

/// Decodes a stream with at most one batch. The decoder takes slices of the bytes, so that a length in them allocates nothing.
fn decoded(bytes: &[u8]) -> Result<(SchemaRef, Option<RecordBatch>)> {
    let read = || -> Result<_> {
        let (mut decoder, mut buffer) = (StreamDecoder::new(), Buffer::from(bytes));
        let batch = decoder.decode(&mut buffer)?;
        let more = if buffer.is_empty() { None } else { decoder.decode(&mut buffer)? };
        decoder.finish()?;
        match (decoder.schema(), batch, more) {
            (Some(schema), batch, None) => Ok((schema, batch)),
            _ => exec_err!("a stream of Arrow IPC in the plan has no schema, or several batches"),
        }
    };
    guard(read).map_err(|error| exec_datafusion_err!("a stream of Arrow IPC in the plan is {error}"))?
}
