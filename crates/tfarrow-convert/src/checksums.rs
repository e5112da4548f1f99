//! Checksums of what Parquet and Arrow files hold, so that what becomes of such a file later is found as damage to TFRecord
//! is.
//!
//! The metadata in the footer of each file that is written here has, under [`KEY`], what 64-bit [XXH3] gives of the file's
//! parts, each as 16 hexadecimal digits, with a space between them. The parts behind each other are the file:
//!
//! - a row group of Parquet, or a batch of Arrow with the dictionaries before it, from the end of the one before on;
//! - and the rest, which comes first in the list: what stands before and behind all of these, the footer included, with the
//!   digit 0 in place of each digit of this one checksum.
//!
//! Whoever writes a file anew may copy its metadata, whatever the rows are now, and what happens to a footer may hide all of
//! it. So [`MARK`] tells that a file has checksums, in a place where no reader looks that follows the footer.
//!
//! [XXH3]: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::Path,
};

use arrow_ipc::Footer;
use memchr::memmem;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use tfarrow_dataset::ErrorKind;
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result};

/// Where they stand in the metadata of a file.
pub(crate) const KEY: &str = "tfarrow.xxh3";

/// What tells that a file has checksums: behind Parquet's magic number, and before Arrow's footer.
pub(crate) const MARK: &[u8; 8] = b"TFARROW1";

/// What ends the stream of batches in an [Arrow file].
///
/// [Arrow file]: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Where the row groups of a Parquet file begin that has the magic number and [`MARK`] before them.
const PARQUET_GROUPS: u64 = 12;

/// What the name of who writes Parquet files with checksums begins with, in the form that [parquet.thrift] asks for: the
/// version follows.
///
/// [parquet.thrift]: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
pub(crate) const CREATED_BY: &str = "tfarrow version ";

/// Digits of a checksum.
const DIGITS: usize = 16;

/// Bytes that are read at once to be hashed.
const READ_BYTES: usize = 256 << 10;

/// A writer that hashes a file in parts, and writes their checksums into its footer.
pub(crate) struct ChecksumWriter<W> {
    /// `None` once it was taken.
    inner: Option<W>,
    /// The hash of what came since the last part ended.
    hasher: Xxh3,
    /// The hash of what is in no part.
    rest: Xxh3,
    parts: Vec<u64>,
    /// What is held back, to be changed before it is hashed and written.
    held: Option<Vec<u8>>,
}

impl<W: Write> ChecksumWriter<W> {
    /// What comes is held back until [`begin`](Self::begin).
    pub(crate) fn new(inner: W) -> Self {
        Self { inner: Some(inner), hasher: Xxh3::new(), rest: Xxh3::new(), parts: Vec::new(), held: Some(Vec::new()) }
    }

    /// What stands before the first part has come.
    ///
    /// # Errors
    /// What the inner writer says.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let head = self.held.take().unwrap_or_default();
        self.rest.update(&head);
        self.inner()?.write_all(&head)
    }

    /// A part has come.
    pub(crate) fn end_part(&mut self) {
        self.parts.push(std::mem::take(&mut self.hasher).digest());
    }

    /// All parts have come. What comes now is held back until [`end`](Self::end); the footer is to say this under [`KEY`].
    pub(crate) fn end_parts(&mut self) -> String {
        self.held = Some(Vec::new());
        // What stands for the one that is not known yet has to be found again, and must not be in any name.
        let sums = std::iter::once(self.rest.digest()).chain(self.parts.iter().copied());
        sums.map(hex).collect::<Vec<_>>().join(" ")
    }

    /// The footer of an Arrow file has come: the mark is to stand before it.
    pub(crate) fn mark_arrow(&mut self) {
        let Some(tail) = &mut self.held else { return };
        // Its length and the magic number follow it.
        let len = tail.len().checked_sub(10).and_then(|end| Some((end, tail.get(end..end + 4)?.try_into().ok()?)));
        let start = len.and_then(|(end, len)| end.checked_sub(u32::from_le_bytes(len) as usize));
        if let Some(start) = start {
            tail.splice(start..start, *MARK);
        }
    }

    /// The footer, which says `text`, has come.
    pub(crate) fn end(&mut self, text: &str) -> io::Result<()> {
        let mut tail = self.held.take().unwrap_or_default();
        let place = digits_of(&tail, text).ok_or_else(|| io::Error::other("the footer has not its checksums once"))?;
        tail.get_mut(place.clone()).unwrap_or_default().fill(b'0');
        self.rest.update(&tail);
        tail.get_mut(place).unwrap_or_default().copy_from_slice(hex(self.rest.digest()).as_bytes());
        self.inner()?.write_all(&tail)
    }

    /// Takes the inner writer out of a library's writer that does not part with this one. Nothing can be written after it.
    ///
    /// # Errors
    /// An internal error if it was taken before.
    pub(crate) fn take_inner(&mut self) -> io::Result<W> {
        self.inner.take().ok_or_else(closed)
    }

    fn inner(&mut self) -> io::Result<&mut W> {
        self.inner.as_mut().ok_or_else(closed)
    }
}

/// The internal error that a writer is used after its output was taken.
fn closed() -> io::Error {
    io::Error::other("the output is closed already")
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let count = self.inner()?.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner()?.flush()
    }
}

/// Hashes what is left of `reader`, which is at most so long.
pub(crate) fn hash(mut reader: impl Read, len: u64, hasher: &mut Xxh3) -> io::Result<()> {
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(READ_BYTES).clamp(1, READ_BYTES)];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// The row groups of a Parquet file, and its checksums.
pub(crate) struct GroupChecks {
    sums: String,
    /// Where each row group ends, and the next begins.
    ends: Vec<u64>,
}

impl GroupChecks {
    /// What is to be checked of a file with this metadata; nothing where it has no checksums. All that is in no row group is
    /// checked at once.
    pub(crate) fn new(path: &Path, file: &File, metadata: &ParquetMetaData) -> Result<Option<Self>> {
        let io = |e| Error::io(path, e);
        let said = metadata.file_metadata();
        let mut entries = said.key_value_metadata().into_iter().flatten().filter(|entry| entry.key == KEY);
        let sums = entries.find_map(|entry| entry.value.clone());
        // Who copies the metadata says his own name. So a mark that is damaged is missed.
        let is_ours = sums.is_some() && said.created_by().is_some_and(|name| name.starts_with(CREATED_BY));
        if !is_ours && !stands_before(file, PARQUET_GROUPS, MARK).map_err(io)? {
            return Ok(None);
        }
        let sums = sums.ok_or_else(|| damaged_footer(path))?;
        let ends: Vec<_> = metadata.row_groups().iter().map(end_of).collect();
        let parts = PARQUET_GROUPS..ends.last().copied().unwrap_or(PARQUET_GROUPS);
        let is_whole = ends.is_sorted_by(|one, next| one < next) && count(&sums) == ends.len() + 1;
        let holds = || rest_holds(file, &sums, parts, parquet_footer(file)?);
        if is_whole && holds().map_err(io)? { Ok(Some(Self { sums, ends })) } else { Err(damaged_footer(path)) }
    }

    /// Checks one of the row groups, `groups`.
    pub(crate) fn check(&self, path: &Path, file: &File, groups: &[RowGroupMetaData], number: usize) -> Result<()> {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(PARQUET_GROUPS);
        let end = self.ends.get(number).copied().unwrap_or(start);
        if part_holds(file, &self.sums, number, start..end).map_err(|e| Error::io(path, e))? {
            return Ok(());
        }
        let mut rows = groups.iter().map(|group| group.num_rows().max(0) as u64);
        let before = rows.by_ref().take(number).fold(0, u64::saturating_add);
        let rows = rows.next().unwrap_or_default();
        let part = format!("row group {number} ({rows} records from {before} on, at byte {start})");
        Err(damaged(path, part, before, start))
    }
}

/// Where the footer of a Parquet file begins.
fn parquet_footer(mut file: &File) -> io::Result<u64> {
    let mut len = [0; 4];
    let end = file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut len)?;
    Ok(end.saturating_sub(u32::from_le_bytes(len).into()))
}

/// Where a row group ends.
fn end_of(group: &RowGroupMetaData) -> u64 {
    let ends = group.columns().iter().map(|column| {
        let (start, len) = column.byte_range();
        start.saturating_add(len)
    });
    ends.max().unwrap_or_default()
}

/// The batches of an Arrow file, and its checksums.
pub(crate) struct BatchChecks {
    file: File,
    sums: String,
    /// Where the next batch begins, with the dictionaries before it, and where those that are left end.
    start: u64,
    ends: std::vec::IntoIter<u64>,
    /// The number of the next batch.
    next: usize,
}

impl BatchChecks {
    /// What is to be checked of a file with this footer, which stands at `footer_start`; nothing where it has no checksums.
    /// All that is in no batch is checked at once.
    pub(crate) fn new(path: &Path, file: File, footer: &Footer<'_>, footer_start: u64) -> Result<Option<Self>> {
        let io = |e| Error::io(path, e);
        let mut entries = footer.custom_metadata().into_iter().flatten().filter(|entry| entry.key() == Some(KEY));
        let Some(sums) = entries.find_map(|entry| entry.value()) else {
            return if stands_before(&file, footer_start, MARK).map_err(io)? {
                Err(damaged_footer(path))
            } else {
                Ok(None)
            };
        };
        // Who copies the metadata ends his stream directly before the footer. No damage makes this of our mark by chance.
        if stands_before(&file, footer_start, &END_OF_STREAM).map_err(io)? {
            return Ok(None);
        }
        let end = |block: &arrow_ipc::Block| {
            let lengths = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
            lengths.into_iter().fold(0, |end: u64, len| end.saturating_add(len.max(0) as u64))
        };
        let ends: Vec<_> = footer.recordBatches().into_iter().flatten().map(end).collect();
        let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
        let start = blocks.map(|block| block.offset().max(0) as u64).min().unwrap_or(footer_start);
        let parts = start..ends.last().copied().unwrap_or(start);
        let is_whole = ends.is_sorted_by(|one, next| one < next) && count(sums) == ends.len() + 1;
        if is_whole && rest_holds(&file, sums, parts, footer_start).map_err(io)? {
            Ok(Some(Self { file, sums: sums.to_owned(), start, ends: ends.into_iter(), next: 0 }))
        } else {
            Err(damaged_footer(path))
        }
    }

    /// Checks the next batch, if there is one. So many records are known before it.
    pub(crate) fn check_next(&mut self, path: &Path, before: u64) -> Result<()> {
        let Some(end) = self.ends.next() else { return Ok(()) };
        let (number, start) = (self.next, self.start);
        (self.next, self.start) = (number + 1, end);
        if part_holds(&self.file, &self.sums, number, start..end).map_err(|e| Error::io(path, e))? {
            return Ok(());
        }
        Err(damaged(path, format!("batch {number} (at byte {start})"), before, start))
    }
}

/// Whether these bytes stand before this place.
fn stands_before(mut file: &File, place: u64, bytes: &[u8; 8]) -> io::Result<bool> {
    let mut before = Vec::new();
    file.seek(SeekFrom::Start(place.saturating_sub(bytes.len() as u64)))?;
    file.take(bytes.len() as u64).read_to_end(&mut before)?;
    Ok(before == bytes)
}

/// Whether what is in none of the `parts` is what its checksum says.
fn rest_holds(mut file: &File, sums: &str, parts: Range<u64>, footer_start: u64) -> io::Result<bool> {
    let mut hasher = Xxh3::new();
    hash_range(file, 0..parts.start, &mut hasher)?;
    hash_range(file, parts.end..footer_start, &mut hasher)?;
    let mut footer = Vec::new();
    file.seek(SeekFrom::Start(footer_start))?;
    file.read_to_end(&mut footer)?;
    let Some(place) = digits_of(&footer, sums) else { return Ok(false) };
    footer.get_mut(place).unwrap_or_default().fill(b'0');
    hasher.update(&footer);
    Ok(parts.end <= footer_start && sum(sums, 0) == Some(&hex(hasher.digest())))
}

/// Where the first of these checksums stands in a footer, if they are there once.
fn digits_of(footer: &[u8], sums: &str) -> Option<Range<usize>> {
    let start = memmem::find(footer, sums.as_bytes())?;
    Some(start..start + DIGITS).filter(|_| memmem::rfind(footer, sums.as_bytes()) == Some(start))
}

/// Whether a part, which has these bytes, is what its checksum says.
fn part_holds(file: &File, sums: &str, number: usize, bytes: Range<u64>) -> io::Result<bool> {
    let mut hasher = Xxh3::new();
    hash_range(file, bytes, &mut hasher)?;
    Ok(sum(sums, number + 1) == Some(&hex(hasher.digest())))
}

fn hash_range(mut file: &File, bytes: Range<u64>, hasher: &mut Xxh3) -> io::Result<()> {
    file.seek(SeekFrom::Start(bytes.start))?;
    let len = bytes.end.saturating_sub(bytes.start);
    hash(file.take(len), len, hasher)
}

fn hex(sum: u64) -> String {
    format!("{sum:0DIGITS$x}")
}

/// One of the checksums that a text has, each with a space or the end behind it.
fn sum(sums: &str, number: usize) -> Option<&str> {
    let start = number.checked_mul(DIGITS + 1)?;
    sums.get(start..start + DIGITS)
}

/// How many checksums a text has.
fn count(sums: &str) -> usize {
    (sums.len() + 1) / (DIGITS + 1)
}

fn damaged(path: &Path, part: String, record: u64, offset: u64) -> Error {
    tfarrow_dataset::Error::new(path, ErrorKind::Checksum { part, record, offset }).into()
}

fn damaged_footer(path: &Path) -> Error {
    damaged(path, "its schema or footer".to_owned(), 0, 0)
}
