//! Parquet and Arrow files as sources.
//!
//! The libraries that read them panic at some damage, and so each call to them is guarded.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_ipc::{
    Block, Footer,
    reader::{FileReader, read_footer_length},
    root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    file::metadata::RowGroupMetaData,
};
use tfarrow_codec::{
    Limits,
    schema::{check_columns, with_views},
};
use tfarrow_dataset::{Contents, Shard, guard};

use crate::{
    Error, Result,
    checksums::{BatchChecks, GroupChecks},
    parquet_rows,
};

/// Batches of rows, until an error.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The rows of a file: Parquet if it is, else Arrow.
///
/// # Errors
/// A file that cannot be read, at once or where its rows are damaged. Nothing comes after an error.
pub fn rows(shard: &Shard) -> Result<Batches> {
    if shard.contents != Contents::Parquet {
        return Ok(Box::new(arrow_batches(shard, None)?));
    }
    let file = ParquetFile::open(&shard.path, shard.local_path())?;
    let groups = 0..file.groups().len();
    Ok(Box::new(parquet_rows::rows(shard, &file, groups)?))
}

/// How many rows a file has: Parquet if it is, else Arrow.
///
/// # Errors
/// A file that cannot be read.
pub fn count(shard: &Shard) -> Result<u64> {
    if shard.contents != Contents::Parquet {
        return arrow_batches(shard, Some(Vec::new()))?.try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64));
    }
    let file = ParquetFile::open(&shard.path, shard.local_path())?;
    Ok(file.metadata.metadata().file_metadata().num_rows().try_into().unwrap_or(0))
}

/// What is known of a Parquet file once it was opened.
#[derive(Clone)]
pub(crate) struct ParquetFile {
    /// Bytes and text are views into the file's pages here, which spares a copy of them.
    pub(crate) metadata: ArrowReaderMetadata,
    /// What checks its row groups, where it has checksums.
    pub(crate) checks: Option<Arc<GroupChecks>>,
}

impl ParquetFile {
    /// Of the file whose bytes are at `local`, and which is called `path`.
    pub(crate) fn open(path: &Path, local: &Path) -> Result<Self> {
        let file = File::open(local).map_err(|e| Error::io(path, e))?;
        let parquet = |e| Error::parquet(path, e);
        guarded(path, || {
            let plain = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(parquet)?;
            let checks = GroupChecks::new(path, &file, plain.metadata())?.map(Arc::new);
            // Any number of rows without columns takes no bytes.
            let has_rows = plain.metadata().row_groups().iter().any(|group| group.num_rows() != 0);
            if has_rows && plain.schema().fields().is_empty() {
                return Err(Error::Usage(format!("{}: is said to have rows, and has no columns", path.display())));
            }
            let views = ArrowReaderOptions::new().with_schema(with_views(plain.schema(), true));
            let metadata = ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), views).map_err(parquet)?;
            Ok(Self { metadata, checks })
        })
    }

    pub(crate) fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }
}

/// The columns of a Parquet or Arrow file; `None` of any other.
pub(crate) fn schema(contents: Option<Contents>, path: &Path, local: &Path) -> Result<Option<SchemaRef>> {
    match contents {
        Some(Contents::Parquet) => ParquetFile::open(path, local).map(|file| Some(Arc::clone(file.metadata.schema()))),
        Some(Contents::Arrow) => arrow_reader(path, local, None).map(|(reader, _)| Some(reader.schema())),
        Some(Contents::TfRecord) | None => Ok(None),
    }
}

/// The same of a shard, whose columns are no more than `limits` allow: each takes memory wherever rows are.
pub(crate) fn schema_within(shard: &Shard, limits: &Limits) -> Result<Option<SchemaRef>> {
    let schema = schema(Some(shard.contents), &shard.path, shard.local_path())?;
    let checked = schema.as_ref().map_or(Ok(()), |schema| check_columns(schema, limits));
    checked.map_err(|e| Error::codec(&shard.path, e))?;
    Ok(schema)
}

/// The batches of an Arrow file, with these columns of it or all. Those of some columns are not checked: they are not read.
fn arrow_batches(
    shard: &Shard,
    columns: Option<Vec<usize>>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let path = shard.path.clone();
    let reads_all = columns.is_none();
    let (mut reader, checks) = arrow_reader(&path, shard.local_path(), columns)?;
    let mut checks = checks.filter(|_| reads_all);
    let mut rows = 0;
    Ok(until_error(move || {
        checks.iter_mut().try_for_each(|checks| checks.check_next(&path, rows))?;
        let batch = guarded(&path, || reader.next().transpose().map_err(|e| Error::arrow(&path, e)))?;
        rows += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        Ok(batch)
    }))
}

/// A reader of an Arrow file, with these columns of it or all, and what checks its batches where it has checksums.
pub(crate) fn arrow_reader(
    path: &Path,
    local: &Path,
    columns: Option<Vec<usize>>,
) -> Result<(FileReader<BufReader<File>>, Option<BatchChecks>)> {
    let open = || File::open(local).map_err(|e| Error::io(path, e));
    let mut file = BufReader::new(open()?);
    let arrow = |e| Error::arrow(path, e);
    guarded(path, || {
        let (footer, start) = read_footer(&mut file).map_err(arrow)?;
        // What the library says of it means nothing to whoever is not at home in it.
        let damaged = |_| arrow(ArrowError::ParseError("the footer is damaged".to_owned()));
        let footer = root_as_footer(&footer).map_err(damaged)?;
        check_blocks(&mut file, &footer).map_err(arrow)?;
        let checks = BatchChecks::new(path, open()?, &footer, start)?;
        Ok((FileReader::try_new(file, columns).map_err(arrow)?, checks))
    })
}

/// The footer of an Arrow file, and where it begins.
fn read_footer(file: &mut (impl Read + Seek)) -> Result<(Vec<u8>, u64), ArrowError> {
    let cut_short = || ArrowError::ParseError("it ends before its footer, or has none".to_owned());
    let mut end = [0; 10];
    let end_start = file.seek(SeekFrom::End(0))?.checked_sub(10).ok_or_else(cut_short)?;
    file.seek(SeekFrom::Start(end_start))?;
    file.read_exact(&mut end)?;
    let start = end_start.checked_sub(read_footer_length(end)? as u64).ok_or_else(cut_short)?;
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(end_start - start).read_to_end(&mut footer)?;
    Ok((footer, start))
}

/// Holds what the footer says of the file's blocks against the file's length, and what compressed buffers say of theirs
/// against what an array can hold: the reader takes memory for it.
fn check_blocks(file: &mut (impl Read + Seek), footer: &Footer<'_>) -> Result<(), ArrowError> {
    let len = file.seek(SeekFrom::End(0))?;
    for block in footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten() {
        let lengths = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
        let within = lengths.iter().try_fold(0, |end: u64, len| end.checked_add(u64::try_from(*len).ok()?));
        if within.is_none_or(|end| end > len) {
            return Err(ArrowError::ParseError("the footer tells of bytes past the file's end".to_owned()));
        }
        check_buffers(file, block)?;
    }
    file.rewind()?;
    Ok(())
}

/// Bytes that a buffer of one batch may become: values of the largest type that offsets of 32 bits can count.
const MOST_BUFFER_BYTES: i64 = 16 << 31;

/// Holds what the compressed buffers of a block say that they become against [`MOST_BUFFER_BYTES`]. What else is wrong with
/// them, the reader says.
fn check_buffers(file: &mut (impl Read + Seek), block: &Block) -> Result<(), ArrowError> {
    file.seek(SeekFrom::Start(block.offset() as u64))?;
    let mut metadata = Vec::new();
    file.by_ref().take(block.metaDataLength() as u64).read_to_end(&mut metadata)?;
    // A marker, which old files lack, and the message's length stand before it.
    let start = if metadata.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let Ok(message) = root_as_message(metadata.get(start..).unwrap_or_default()) else { return Ok(()) };
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else { return Ok(()) };
    let body = block.offset().saturating_add(block.metaDataLength().into());
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() > 8) {
        let mut becomes = [0; 8];
        file.seek(SeekFrom::Start(body.saturating_add(buffer.offset()).max(0) as u64))?;
        if file.read_exact(&mut becomes).is_ok() && i64::from_le_bytes(becomes) > MOST_BUFFER_BYTES {
            return Err(ArrowError::ParseError("a compressed buffer is said to become longer than any is".to_owned()));
        }
    }
    Ok(())
}

/// What `read` gives, or the error that its panic is. After that it must not be called again.
pub(crate) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    guard(read).map_err(|e: io::Error| Error::io(path, e)).flatten()
}

/// What `next` gives until there is no more, or an error.
pub(crate) fn until_error<T>(mut next: impl FnMut() -> Result<Option<T>>) -> impl Iterator<Item = Result<T>> {
    let mut ended = false;
    std::iter::from_fn(move || {
        let item = if ended { None } else { next().transpose() };
        ended = !matches!(item, Some(Ok(_)));
        item
    })
}
