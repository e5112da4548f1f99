//! Checksums of what Parquet and Arrow files hold, so that what becomes of such a file later is found as damage to TFRecord
//! is.
//!
//! The footer of each file that is written here has, under [`KEY`], what 64-bit [XXH3] gives of its parts, each as 16
//! hexadecimal digits: of the schema, and then of each row group or batch, in their order. The parts are
//!
//! - in Parquet, each node of the schema as a line (name, repetition, physical type or number of children, with tabs
//!   between them), and then the value of `ARROW:schema`; and of a row group the bytes of its column chunks, the number of its rows, and
//!   the number of values of each chunk (as `u64`, little-endian);
//! - in Arrow, the bytes before the first block, and for each batch those up to its end. The schema in the footer has to be
//!   the one before the first block.
//!
//! Whoever writes a Parquet file anew may copy its metadata, whatever the rows are now, and a single bit of a footer may hide
//! all of it. So [`MARK`] at the beginning of a file tells whether it has checksums.
//!
//! [XXH3]: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::Path,
};

use arrow_ipc::{Footer, convert::fb_to_schema, reader::StreamReader};
use parquet::{
    arrow::ARROW_SCHEMA_META_KEY,
    file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData},
    schema::types::Type,
};
use tfarrow_dataset::ErrorKind;
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result};

/// Where they stand in the metadata of a file.
pub(crate) const KEY: &str = "tfarrow.xxh3";

/// What stands behind Parquet's magic number in a file that has checksums. Other readers, which look where the footer tells
/// them to, do not see it.
pub(crate) const MARK: &[u8; 8] = b"TFARROW1";

/// Bytes of a file up to the end of the mark.
const MARKED: u64 = 12;

/// Bytes that are read at once to be hashed.
const READ_BYTES: usize = 256 << 10;

/// The checksums of a file that is being written.
#[derive(Default)]
pub(crate) struct Checksums(Vec<u64>);

impl Checksums {
    /// Of a Parquet file with this schema and these entries in its metadata, and no row groups yet.
    pub(crate) fn of_parquet(schema: &Type, entries: Option<&Vec<KeyValue>>) -> Self {
        Self(vec![parquet_schema(schema, entries)])
    }

    /// Adds a row group, whose bytes were hashed.
    pub(crate) fn add_row_group(&mut self, bytes: Xxh3, group: &RowGroupMetaData) {
        self.0.push(with_counts(bytes, group));
    }

    /// Adds what was hashed of an Arrow file.
    pub(crate) fn add(&mut self, bytes: &Xxh3) {
        self.0.push(bytes.digest());
    }

    /// What the footer is to say under [`KEY`].
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|sum| hex(*sum)).collect::<Vec<_>>().join(" ")
    }
}

/// A writer that hashes what it is given.
pub(crate) struct Hashing<W> {
    pub(crate) inner: W,
    hasher: Xxh3,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hasher: Xxh3::new() }
    }

    /// The hash of what came since it was last asked for.
    pub(crate) fn take(&mut self) -> Xxh3 {
        std::mem::take(&mut self.hasher)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Hashes what is left of `reader`.
pub(crate) fn hash(mut reader: impl Read, hasher: &mut Xxh3) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// Whether a Parquet file has checksums.
pub(crate) fn has_checksums(path: &Path, file: &File, metadata: &ParquetMetaData) -> Result<bool> {
    sums_of(path, file, metadata).map(|sums| sums.is_some())
}

/// Holds the footer of a Parquet file against what it says of itself: its schema, and how many row groups there are.
pub(crate) fn check_parquet(path: &Path, file: &File, metadata: &ParquetMetaData) -> Result<()> {
    let Some(sums) = sums_of(path, file, metadata)? else { return Ok(()) };
    let said = metadata.file_metadata();
    let schema = hex(parquet_schema(said.schema(), said.key_value_metadata()));
    let rows: i64 = metadata.row_groups().iter().map(RowGroupMetaData::num_rows).sum();
    // Each has a space or the end behind it.
    let is_whole = sums.len() + 1 == (metadata.num_row_groups() + 1) * (DIGITS + 1) && rows == said.num_rows();
    if is_whole && sum(sums, 0) == Some(&schema) { Ok(()) } else { Err(damaged_footer(path)) }
}

/// Holds a row group of a Parquet file against what the footer says of it.
pub(crate) fn check_row_group(path: &Path, mut file: &File, metadata: &ParquetMetaData, number: usize) -> Result<()> {
    let Some(sums) = sums_of(path, file, metadata)? else { return Ok(()) };
    let group = metadata.row_group(number);
    let mut hasher = Xxh3::new();
    for column in group.columns() {
        let (start, len) = column.byte_range();
        let hashed = file.seek(SeekFrom::Start(start)).and_then(|_| hash(file.take(len), &mut hasher));
        hashed.map_err(|e| Error::io(path, e))?;
    }
    if sum(sums, number + 1) == Some(&hex(with_counts(hasher, group))) {
        return Ok(());
    }
    let before: i64 = metadata.row_groups().iter().take(number).map(RowGroupMetaData::num_rows).sum();
    let part = format!("row group {number}, which has {} records from {before} on,", group.num_rows());
    Err(damaged(path, part, before.max(0) as u64))
}

/// Bytes that stand before the first block of an Arrow file, besides as many as the footer has.
const HEADER_BYTES: u64 = 1024;

/// The batches of an Arrow file, and what its footer says of them.
pub(crate) struct BatchChecks {
    file: File,
    sums: Vec<String>,
    /// Where batches end.
    ends: Vec<u64>,
    /// The batch that is next.
    next: usize,
}

impl BatchChecks {
    /// What is to be checked of a file with this footer, which stands at these bytes; nothing where it has no checksums. What
    /// stands before its batches is checked at once.
    pub(crate) fn new(path: &Path, mut file: File, footer: &Footer<'_>, at: Range<u64>) -> Result<Option<Self>> {
        let entries = footer.custom_metadata().into_iter().flatten();
        let Some(sums) = entries.filter(|entry| entry.key() == Some(KEY)).find_map(|entry| entry.value()) else {
            return Ok(None);
        };
        let mut sums = sums.split(' ').map(str::to_owned);
        let header = sums.next();
        let batches = footer.recordBatches().into_iter().flatten();
        let end = |block: &arrow_ipc::Block| block.offset() + i64::from(block.metaDataLength()) + block.bodyLength();
        let ends: Vec<_> = batches.map(|block| end(block).max(0) as u64).collect();
        let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
        let first = blocks.map(|block| block.offset().max(0) as u64).min();
        // The end of the stream stands between the last block and the footer.
        let start = first.unwrap_or(at.start.saturating_sub(8));
        // It is the schema, which the footer has as well.
        if start > at.end - at.start + HEADER_BYTES {
            return Err(damaged_footer(path));
        }
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| (&file).take(start).read_to_end(&mut bytes));
        read.map_err(|e| Error::io(path, e))?;
        let mut hasher = Xxh3::new();
        hasher.update(&bytes);
        let sums: Vec<_> = sums.collect();
        let is_whole = header == Some(hex(hasher.digest())) && sums.len() == ends.len();
        let is_schema = || schema_in(&bytes).is_some_and(|schema| footer.schema().map(fb_to_schema) == Some(schema));
        if is_whole && is_schema() { Ok(Some(Self { file, sums, ends, next: 0 })) } else { Err(damaged_footer(path)) }
    }

    /// Checks the next batch, if there is one. `record` is the number of its first.
    pub(crate) fn check_next(&mut self, path: &Path, record: u64) -> Result<()> {
        let number = self.next;
        let Some((sum, end)) = self.sums.get(number).zip(self.ends.get(number)) else { return Ok(()) };
        self.next += 1;
        let mut hasher = Xxh3::new();
        let at = self.file.stream_position().map_err(|e| Error::io(path, e))?;
        let len = end.saturating_sub(at);
        hash((&self.file).take(len), &mut hasher).map_err(|e| Error::io(path, e))?;
        if *sum == hex(hasher.digest()) {
            return Ok(());
        }
        Err(damaged(path, format!("batch {number}, which begins with record {record},"), record))
    }
}

/// The schema that an Arrow file begins with.
fn schema_in(header: &[u8]) -> Option<arrow_schema::Schema> {
    // It stands behind a magic number, and zeros for alignment.
    let message = header.get(b"ARROW1".len()..)?;
    let start = message.iter().position(|byte| *byte != 0)?;
    let reader = StreamReader::try_new(message.get(start..)?, None).ok()?;
    Some(reader.schema().as_ref().clone())
}

/// What a Parquet file says under [`KEY`], if it has checksums.
fn sums_of<'m>(path: &Path, mut file: &File, metadata: &'m ParquetMetaData) -> Result<Option<&'m str>> {
    let mut head = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(MARKED).read_to_end(&mut head));
    read.map_err(|e| Error::io(path, e))?;
    if !head.ends_with(MARK) {
        return Ok(None);
    }
    let entries = metadata.file_metadata().key_value_metadata();
    let sums = entries.into_iter().flatten().find(|entry| entry.key == KEY);
    sums.and_then(|entry| entry.value.as_deref()).map(Some).ok_or_else(|| damaged_footer(path))
}

fn parquet_schema(schema: &Type, entries: Option<&Vec<KeyValue>>) -> u64 {
    let mut hasher = Xxh3::new();
    let mut nodes = vec![schema];
    while let Some(node) = nodes.pop() {
        let info = node.get_basic_info();
        let repetition = if info.has_repetition() { info.repetition().to_string() } else { String::new() };
        let (kind, children) = match node {
            Type::PrimitiveType { physical_type, .. } => (physical_type.to_string(), &[][..]),
            Type::GroupType { fields, .. } => (fields.len().to_string(), fields.as_slice()),
        };
        hasher.update(format!("{}\t{repetition}\t{kind}\n", node.name()).as_bytes());
        nodes.extend(children.iter().rev().map(AsRef::as_ref));
    }
    for entry in entries.into_iter().flatten().filter(|entry| entry.key == ARROW_SCHEMA_META_KEY) {
        hasher.update(entry.value.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.digest()
}

/// The hash of a row group, when that of its bytes is known.
fn with_counts(mut bytes: Xxh3, group: &RowGroupMetaData) -> u64 {
    bytes.update(&group.num_rows().to_le_bytes());
    group.columns().iter().for_each(|column| bytes.update(&column.num_values().to_le_bytes()));
    bytes.digest()
}

/// Digits of a checksum.
const DIGITS: usize = 16;

fn hex(sum: u64) -> String {
    format!("{sum:0DIGITS$x}")
}

/// One of the checksums that a text has.
fn sum(sums: &str, number: usize) -> Option<&str> {
    let start = number.checked_mul(DIGITS + 1)?;
    sums.get(start..start + DIGITS)
}

fn damaged(path: &Path, part: String, record: u64) -> Error {
    tfarrow_dataset::Error::new(path, ErrorKind::Checksum { part, record }).into()
}

fn damaged_footer(path: &Path) -> Error {
    damaged(path, "its footer".to_owned(), 0)
}
