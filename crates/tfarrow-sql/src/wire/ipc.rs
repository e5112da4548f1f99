//! Schemas and batches as streams of Arrow IPC.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use datafusion::{
    arrow::ipc::{reader::StreamDecoder, root_as_message, writer::StreamWriter},
    common::{exec_datafusion_err, exec_err},
    error::Result,
};
use tfarrow_dataset::internals::catch_panic;

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
    match batch {
        Some(batch) => Ok(batch),
        None => {
            let options = RecordBatchOptions::new().with_row_count(Some(0));
            Ok(RecordBatch::try_new_with_options(
                schema,
                Vec::new(),
                &options,
            )?)
        }
    }
}

/// Decodes a stream with at most one batch. The decoder takes slices of the bytes, so that a length
/// in them allocates nothing: a compressed buffer would, and is an error.
fn decoded(bytes: &[u8]) -> Result<(SchemaRef, Option<RecordBatch>)> {
    catch_panic(|| decode_stream(bytes))
        .map_err(|error| exec_datafusion_err!("a stream of Arrow IPC in the plan is {error}"))?
}

/// As [`decoded`], but may panic.
fn decode_stream(bytes: &[u8]) -> Result<(SchemaRef, Option<RecordBatch>)> {
    check_compression(bytes)?;
    let mut decoder = StreamDecoder::new();
    let mut buffer = Buffer::from(bytes);
    let batch = decoder.decode(&mut buffer)?;
    let more = if buffer.is_empty() {
        None
    } else {
        decoder.decode(&mut buffer)?
    };
    decoder.finish()?;
    match (decoder.schema(), batch, more) {
        (Some(schema), batch, None) => Ok((schema, batch)),
        _ => exec_err!("a stream of Arrow IPC in the plan has no schema, or several batches"),
    }
}

/// Refuses compressed buffers, which [`batch_to_bytes`] does not write.
fn check_compression(mut bytes: &[u8]) -> Result<()> {
    while let Some((length, rest)) = message_length(bytes) {
        let Some((metadata, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let Ok(message) = root_as_message(metadata) else {
            break;
        };
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| {
            message
                .header_as_dictionary_batch()
                .and_then(|dictionary| dictionary.data())
        });
        if batch.is_some_and(|batch| batch.compression().is_some()) {
            return exec_err!("a stream of Arrow IPC in the plan is compressed");
        }
        let Some(rest) = usize::try_from(message.bodyLength())
            .ok()
            .and_then(|length| rest.get(length..))
        else {
            break;
        };
        bytes = rest;
    }
    Ok(())
}

/// The length of the metadata of the next message, and the bytes after it; `None` at the end.
fn message_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    // Since Arrow 0.15, a marker is before the length.
    let (length, rest) = bytes
        .strip_prefix(&[0xff; 4])
        .unwrap_or(bytes)
        .split_first_chunk()?;
    usize::try_from(u32::from_le_bytes(*length))
        .ok()
        .filter(|length| *length > 0)
        .map(|length| (length, rest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};
    use datafusion::arrow::ipc::{CompressionType, writer::IpcWriteOptions};

    use super::*;

    #[test]
    fn compressed_batches_are_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(1000)]));
        let batch = RecordBatch::try_from_iter([("text", text)]).unwrap();
        assert_eq!(
            batch_of_bytes(&batch_to_bytes(&batch).unwrap()).unwrap(),
            batch
        );

        let options = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::LZ4_FRAME))
            .unwrap();
        let mut writer =
            StreamWriter::try_new_with_options(Vec::new(), batch.schema_ref(), options).unwrap();
        writer.write(&batch).unwrap();
        let error = batch_of_bytes(&writer.into_inner().unwrap())
            .unwrap_err()
            .to_string();
        assert!(error.contains("is compressed"), "{error}");
    }
}
