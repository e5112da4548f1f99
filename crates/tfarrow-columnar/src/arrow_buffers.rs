//! The lengths that compressed buffers of Arrow messages claim.

use std::io::{Read, Seek, SeekFrom};

use arrow_ipc::Message;
use arrow_schema::ArrowError;

/// Maximum decompressed bytes of a buffer: 2^31 values of 16 bytes, the largest type.
const MAX_BUFFER_BYTES: i64 = 16 << 31;

/// Checks that the compressed buffers of a message, whose body begins at byte `body`, claim at most
/// [`MAX_BUFFER_BYTES`] each.
pub(crate) fn check_buffers(
    file: &mut (impl Read + Seek),
    message: &Message<'_>,
    body: u64,
) -> Result<(), ArrowError> {
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| {
        message
            .header_as_dictionary_batch()
            .and_then(|dictionary| dictionary.data())
    });
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
        return Ok(());
    };
    for buffer in batch
        .buffers()
        .into_iter()
        .flatten()
        .filter(|buffer| buffer.length() > 8)
    {
        let mut decompressed = [0; 8];
        file.seek(SeekFrom::Start(body.saturating_add_signed(buffer.offset())))?;
        if file.read_exact(&mut decompressed).is_ok()
            && i64::from_le_bytes(decompressed) > MAX_BUFFER_BYTES
        {
            return Err(ArrowError::ParseError(
                "the length of a compressed buffer is corrupt".to_owned(),
            ));
        }
    }
    Ok(())
}
