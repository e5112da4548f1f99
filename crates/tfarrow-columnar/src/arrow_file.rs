//! Arrow IPC files, and streams in files: a reader that verifies checksums, and checks lengths
//! before the `arrow-ipc` crate allocates by them.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_ipc::{
    Block, Footer,
    reader::{FileReader, StreamReader, read_footer_length},
    root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use tfarrow_dataset::{Error, Result, Shard};

use crate::{
    arrow_buffers::check_buffers,
    arrow_stream::{check_stream, is_stream},
    arrow_types::check_types,
    catch_panic::{catch_panic_in, until_error},
    checksums::BatchVerifier,
    folder_columns::FolderColumns,
    unreadable::{in_part, unreadable, unreadable_arrow},
};

/// The number of batches of an Arrow file, and the batches, with these columns, whose indices are
/// in ascending order, or with all. The columns of its folders follow its own. Checksums are
/// verified unless no column is read.
///
/// # Errors
/// A file that cannot be read, or whose footer is corrupt. Corrupt batches are errors of the
/// iterator.
pub fn arrow_batches(
    shard: &Shard,
    columns: Option<Vec<usize>>,
) -> Result<(
    usize,
    impl Iterator<Item = Result<RecordBatch>> + Send + use<>,
)> {
    let path = shard.path.clone();
    let reads_values = columns.as_ref().is_none_or(|columns| !columns.is_empty());
    let own = match shard.folder_columns() {
        [] => Arc::new(Schema::empty()),
        _ => arrow_reader(&path, shard.local_path(), None)?.0.schema(),
    };
    let mut folders = FolderColumns::of(shard, &own);
    let columns = match columns {
        Some(wanted) if !shard.folder_columns().is_empty() => {
            Some(folders.keep(&wanted, own.fields().len()))
        }
        columns => columns,
    };
    let (mut reader, verifier) = arrow_reader(&path, shard.local_path(), columns)?;
    let mut verifier = verifier.filter(|_| reads_values);
    let batches = reader.num_batches();
    let mut number = 0;
    let mut row = 0;
    let rows = until_error(move || {
        verifier
            .iter_mut()
            .try_for_each(|verifier| verifier.verify_next(&path, row))?;
        let batch = catch_panic_in(&path, || {
            reader
                .next()
                .transpose()
                .map_err(|e| unreadable_arrow(&path, e))
        });
        let batch = batch.map_err(|e| {
            in_part(
                &path,
                e,
                || format!("batch {number}, from row {row} on"),
                row,
            )
        })?;
        number += 1;
        row += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        batch.map(|batch| folders.add(batch)).transpose()
    });
    Ok((batches, rows))
}

/// Reads the batches of an Arrow file, or of a stream in a file, one after the other.
pub enum ArrowReader {
    /// A file with a footer.
    File(FileReader<BufReader<File>>),
    /// A stream, and its number of batches.
    Stream(StreamReader<BufReader<File>>, usize),
}

impl ArrowReader {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::File(reader) => reader.schema(),
            Self::Stream(reader, _) => reader.schema(),
        }
    }

    /// The number of batches.
    pub fn num_batches(&self) -> usize {
        match self {
            Self::File(reader) => reader.num_batches(),
            Self::Stream(_, batches) => *batches,
        }
    }
}

impl Iterator for ArrowReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Stream(reader, _) => reader.next(),
        }
    }
}

/// A reader of an Arrow file, with these columns or with all, and the verifier of its batches if it
/// has checksums.
///
/// # Errors
/// A file that cannot be read, or whose footer or a message of whose stream is corrupt.
pub fn arrow_reader(
    path: &Path,
    local: &Path,
    columns: Option<Vec<usize>>,
) -> Result<(ArrowReader, Option<BatchVerifier>)> {
    let mut file = BufReader::new(open(path, local)?);
    let arrow = |e| unreadable_arrow(path, e);
    catch_panic_in(path, || {
        if is_stream(&mut file).map_err(arrow)? {
            let batches = check_stream(&mut file).map_err(arrow)?;
            let reader = StreamReader::try_new(file, columns).map_err(arrow)?;
            return Ok((ArrowReader::Stream(reader, batches), None));
        }
        let (footer, start) = read_footer(&mut file).map_err(arrow)?;
        // The message of the flatbuffers library names tables of the Arrow format, which does not
        // help the user.
        let footer = root_as_footer(&footer)
            .map_err(|_| arrow(ArrowError::ParseError("the footer is corrupt".to_owned())))?;
        footer
            .schema()
            .map_or(Ok(()), check_types)
            .map_err(|error| unreadable(path, error))?;
        check_blocks(&mut file, &footer).map_err(arrow)?;
        let verifier = BatchVerifier::new(path, open(path, local)?, &footer, start)?;
        Ok((
            ArrowReader::File(FileReader::try_new(file, columns).map_err(arrow)?),
            verifier,
        ))
    })
}

/// Opens the file `local`. An error has the path `path`.
fn open(path: &Path, local: &Path) -> Result<File> {
    File::open(local).map_err(|e| Error::io(path, e))
}

/// Reads batch `number` of a file. Batches of a stream can be read in their order only, which
/// `number` has to follow.
///
/// # Errors
/// A corrupt batch, and a number that the file does not have.
pub fn arrow_batch(path: &Path, reader: &mut ArrowReader, number: usize) -> Result<RecordBatch> {
    catch_panic_in(path, || {
        let position = match reader {
            ArrowReader::File(reader) => reader.set_index(number),
            ArrowReader::Stream(..) => Ok(()),
        };
        let batch = position.and_then(|()| match reader.next() {
            Some(batch) => batch,
            None => Err(ArrowError::IpcError(format!(
                "the file has no batch {number}"
            ))),
        });
        batch.map_err(|e| unreadable_arrow(path, e))
    })
}

/// Reads the footer of an Arrow file. Returns it and its offset.
fn read_footer(file: &mut (impl Read + Seek)) -> Result<(Vec<u8>, u64), ArrowError> {
    let truncated = || ArrowError::ParseError("the file is truncated, or has no footer".to_owned());
    let mut end = [0; 10];
    let end_start = file
        .seek(SeekFrom::End(0))?
        .checked_sub(10)
        .ok_or_else(truncated)?;
    file.seek(SeekFrom::Start(end_start))?;
    file.read_exact(&mut end)?;
    let start = end_start
        .checked_sub(read_footer_length(end)? as u64)
        .ok_or_else(truncated)?;
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(end_start - start).read_to_end(&mut footer)?;
    Ok((footer, start))
}

/// Checks that the blocks in the footer are within the file, and that compressed buffers do not
/// claim more bytes than an array can have. The reader allocates memory by these lengths.
fn check_blocks(file: &mut (impl Read + Seek), footer: &Footer<'_>) -> Result<(), ArrowError> {
    let len = file.seek(SeekFrom::End(0))?;
    for block in footer
        .dictionaries()
        .into_iter()
        .chain(footer.recordBatches())
        .flatten()
    {
        let lengths = [
            block.offset(),
            block.metaDataLength().into(),
            block.bodyLength(),
        ];
        let within = lengths.iter().try_fold(0, |end: u64, len| {
            end.checked_add(u64::try_from(*len).ok()?)
        });
        if within.is_none_or(|end| end > len) {
            return Err(ArrowError::ParseError(
                "the footer has a block beyond the end of the file".to_owned(),
            ));
        }
        check_block(file, block)?;
    }
    file.rewind()?;
    Ok(())
}

/// Checks the compressed buffers of a block. The reader reports all other errors.
fn check_block(file: &mut (impl Read + Seek), block: &Block) -> Result<(), ArrowError> {
    file.seek(SeekFrom::Start(block.offset() as u64))?;
    let mut metadata = Vec::new();
    file.by_ref()
        .take(block.metaDataLength() as u64)
        .read_to_end(&mut metadata)?;
    // The message is after its length, and in files since Arrow 0.15 after a marker before the
    // length.
    let start = if metadata.starts_with(&[0xff; 4]) {
        8
    } else {
        4
    };
    let Ok(message) = root_as_message(metadata.get(start..).unwrap_or_default()) else {
        return Ok(());
    };
    let body = block.offset().saturating_add(block.metaDataLength().into());
    check_buffers(file, &message, u64::try_from(body).unwrap_or(u64::MAX))
}
