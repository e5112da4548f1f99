//! Arrow IPC streams in files, as Hugging Face datasets writes them: a schema, and messages of
//! dictionaries and batches, without a footer.

use std::io::{Read, Seek, SeekFrom};

use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::ArrowError;

use crate::{arrow_buffers::check_buffers, arrow_types::check_types};

/// The marker before the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Returns whether a file begins as a stream and not as an Arrow file.
///
/// # Errors
/// An I/O error.
pub(crate) fn is_stream(file: &mut (impl Read + Seek)) -> Result<bool, ArrowError> {
    let mut head = [0; 4];
    file.rewind()?;
    let read = file.read_exact(&mut head);
    file.rewind()?;
    Ok(read.is_ok() && head == CONTINUATION)
}

/// Checks that the messages of a stream are within the file, and that compressed buffers do not
/// claim more bytes than an array can have: the reader allocates memory by these lengths. Returns
/// the number of batches.
///
/// # Errors
/// A message that is corrupt or truncated, and I/O errors.
pub(crate) fn check_stream(file: &mut (impl Read + Seek)) -> Result<usize, ArrowError> {
    let len = file.seek(SeekFrom::End(0))?;
    let mut start = 0;
    let mut batches = 0;
    while let Some(metadata_len) = message_len(file, start)? {
        let metadata_start = start + PREFIX_BYTES;
        let truncated =
            || ArrowError::ParseError(format!("the message at byte {start} is truncated"));
        if metadata_len > len - metadata_start {
            return Err(truncated());
        }
        let mut metadata = Vec::new();
        file.by_ref()
            .take(metadata_len)
            .read_to_end(&mut metadata)?;
        let message = root_as_message(&metadata).map_err(|_| {
            ArrowError::ParseError(format!("the message at byte {start} is corrupt"))
        })?;
        let body = metadata_start + metadata_len;
        let body_len = u64::try_from(message.bodyLength())
            .ok()
            .filter(|body_len| *body_len <= len - body);
        message
            .header_as_schema()
            .map_or(Ok(()), check_types)
            .map_err(ArrowError::ParseError)?;
        check_buffers(file, &message, body)?;
        batches += usize::from(message.header_type() == MessageHeader::RecordBatch);
        start = body + body_len.ok_or_else(truncated)?;
    }
    file.rewind()?;
    Ok(batches)
}

/// Bytes of the marker and the length before a message.
const PREFIX_BYTES: u64 = 8;

/// The length of the metadata of the message at byte `start`; `None` at the end of the stream,
/// which is marked by the length 0, or is the end of the file.
fn message_len(file: &mut (impl Read + Seek), start: u64) -> Result<Option<u64>, ArrowError> {
    file.seek(SeekFrom::Start(start))?;
    let mut prefix = Vec::new();
    file.by_ref().take(PREFIX_BYTES).read_to_end(&mut prefix)?;
    let corrupt = || {
        ArrowError::ParseError(format!(
            "the length of the message at byte {start} is corrupt"
        ))
    };
    match prefix.split_first_chunk() {
        None if prefix.is_empty() => Ok(None),
        Some((&CONTINUATION, len)) => {
            let len = len
                .try_into()
                .map(i32::from_le_bytes)
                .map_err(|_| corrupt())?;
            Ok(Some(u64::try_from(len).map_err(|_| corrupt())?).filter(|len| *len > 0))
        }
        _ => Err(corrupt()),
    }
}
