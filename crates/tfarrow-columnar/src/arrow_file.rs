//! Arrow IPC files: a reader that verifies checksums, and checks lengths before the `arrow-ipc` crate allocates by
//! them.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_ipc::{
    Block, Footer,
    reader::{FileReader, read_footer_length},
    root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, Schema};
use tfarrow_dataset::{Error, Result, Shard};

use crate::{
    checksums::BatchVerifier,
    folder_columns::FolderColumns,
    guarded::{guarded, until_error},
    unreadable::{in_part, unreadable_arrow},
};

/// The number of batches of an Arrow file, and the batches, with these columns, whose indices are in ascending order, or with
/// all. The columns of its folders follow its own. Checksums are verified unless no column is read.
///
/// # Errors
/// A file that cannot be read, or whose footer is corrupt. Corrupt batches are errors of the iterator.
pub(crate) fn arrow_batches(
    shard: &Shard,
    columns: Option<Vec<usize>>,
) -> Result<(usize, impl Iterator<Item = Result<RecordBatch>> + Send + use<>)> {
    let path = shard.path.clone();
    let reads_values = columns.as_ref().is_none_or(|columns| !columns.is_empty());
    let own = match shard.folder_columns() {
        [] => Arc::new(Schema::empty()),
        _ => arrow_reader(&path, shard.local_path(), None)?.0.schema(),
    };
    let mut folders = FolderColumns::of(shard, &own);
    let columns = match columns {
        Some(wanted) if !shard.folder_columns().is_empty() => Some(folders.keep(&wanted, own.fields().len())),
        columns => columns,
    };
    let (mut reader, verifier) = arrow_reader(&path, shard.local_path(), columns)?;
    let mut verifier = verifier.filter(|_| reads_values);
    let (batches, mut number, mut row) = (reader.num_batches(), 0, 0);
    let rows = until_error(move || {
        verifier.iter_mut().try_for_each(|verifier| verifier.verify_next(&path, row))?;
        let batch = guarded(&path, || reader.next().transpose().map_err(|e| unreadable_arrow(&path, e)));
        let part = || format!("batch {number}, from row {row} on");
        let batch = batch.map_err(|e| in_part(&path, e, part, row))?;
        number += 1;
        row += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        batch.map(|batch| folders.add(batch)).transpose()
    });
    Ok((batches, rows))
}

/// A reader of an Arrow file, with these columns or with all, and the verifier of its batches if it has checksums.
///
/// # Errors
/// A file that cannot be read, or whose footer is corrupt.
pub fn arrow_reader(
    path: &Path,
    local: &Path,
    columns: Option<Vec<usize>>,
) -> Result<(FileReader<BufReader<File>>, Option<BatchVerifier>)> {
    let open = || File::open(local).map_err(|e| Error::io(path, e));
    let mut file = BufReader::new(open()?);
    let arrow = |e| unreadable_arrow(path, e);
    guarded(path, || {
        let (footer, start) = read_footer(&mut file).map_err(arrow)?;
        // The message of the flatbuffers library names tables of the Arrow format, which does not help the user.
        let corrupt = |_| arrow(ArrowError::ParseError("the footer is corrupt".to_owned()));
        let footer = root_as_footer(&footer).map_err(corrupt)?;
        check_blocks(&mut file, &footer).map_err(arrow)?;
        let verifier = BatchVerifier::new(path, open()?, &footer, start)?;
        Ok((FileReader::try_new(file, columns).map_err(arrow)?, verifier))
    })
}

/// Reads batch `number` of a file.
///
/// # Errors
/// A corrupt batch, and a number that the file does not have.
pub fn arrow_batch(path: &Path, reader: &mut FileReader<BufReader<File>>, number: usize) -> Result<RecordBatch> {
    let none = || ArrowError::IpcError(format!("the file has no batch {number}"));
    guarded(path, || {
        let batch = reader.set_index(number).and_then(|()| reader.next().unwrap_or_else(|| Err(none())));
        batch.map_err(|e| unreadable_arrow(path, e))
    })
}

/// Reads the footer of an Arrow file. Returns it and its offset.
fn read_footer(file: &mut (impl Read + Seek)) -> Result<(Vec<u8>, u64), ArrowError> {
    let truncated = || ArrowError::ParseError("the file is truncated, or has no footer".to_owned());
    let mut end = [0; 10];
    let end_start = file.seek(SeekFrom::End(0))?.checked_sub(10).ok_or_else(truncated)?;
    file.seek(SeekFrom::Start(end_start))?;
    file.read_exact(&mut end)?;
    let start = end_start.checked_sub(read_footer_length(end)? as u64).ok_or_else(truncated)?;
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(end_start - start).read_to_end(&mut footer)?;
    Ok((footer, start))
}

/// Checks that the blocks in the footer are within the file, and that compressed buffers do not claim more bytes than an
/// array can have. The reader allocates memory by these lengths.
fn check_blocks(file: &mut (impl Read + Seek), footer: &Footer<'_>) -> Result<(), ArrowError> {
    let len = file.seek(SeekFrom::End(0))?;
    for block in footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten() {
        let lengths = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
        let within = lengths.iter().try_fold(0, |end: u64, len| end.checked_add(u64::try_from(*len).ok()?));
        if within.is_none_or(|end| end > len) {
            return Err(ArrowError::ParseError("the footer has a block beyond the end of the file".to_owned()));
        }
        check_buffers(file, block)?;
    }
    file.rewind()?;
    Ok(())
}

/// Maximum decompressed bytes of a buffer: 2^31 values of 16 bytes, the largest type.
const MAX_BUFFER_BYTES: i64 = 16 << 31;

/// Checks that the compressed buffers of a block claim at most [`MAX_BUFFER_BYTES`] each. The reader reports all other
/// errors.
fn check_buffers(file: &mut (impl Read + Seek), block: &Block) -> Result<(), ArrowError> {
    file.seek(SeekFrom::Start(block.offset() as u64))?;
    let mut metadata = Vec::new();
    file.by_ref().take(block.metaDataLength() as u64).read_to_end(&mut metadata)?;
    // The message is after its length, and in files since Arrow 0.15 after a marker before the length.
    let start = if metadata.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let Ok(message) = root_as_message(metadata.get(start..).unwrap_or_default()) else { return Ok(()) };
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else { return Ok(()) };
    let body = block.offset().saturating_add(block.metaDataLength().into());
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() > 8) {
        let mut decompressed = [0; 8];
        file.seek(SeekFrom::Start(body.saturating_add(buffer.offset()).max(0) as u64))?;
        if file.read_exact(&mut decompressed).is_ok() && i64::from_le_bytes(decompressed) > MAX_BUFFER_BYTES {
            return Err(ArrowError::ParseError("the length of a compressed buffer is corrupt".to_owned()));
        }
    }
    Ok(())
}
