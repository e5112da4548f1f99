//! Checksums in Parquet and Arrow files, with which corrupt files are found, as the CRCs of
//! TFRecord do.
//!
//! The file metadata in the footer has one entry with the key [`KEY`]. Its value is a list of
//! 64-bit [XXH3] hashes, each of 16 hexadecimal digits, separated by spaces. Together the hashes
//! cover every byte of the file:
//!
//! ```text
//! Parquet   PAR1, MARK     | row group 0 | row group 1 | .. | footer, length, PAR1
//! Arrow     ARROW1, schema | batch 0     | batch 1     | .. | end of stream, MARK, footer, length, ARROW1
//! hash      first          | second      | third       | .. | first
//! ```
//!
//! - The first hash is of the bytes before and after all parts, with the digit 0 in place of each
//!   digit of this hash.
//! - Each further hash is of one part: a row group of Parquet with the Bloom filters after it, or a
//!   batch of Arrow with the dictionaries before it. A part begins at the end of the part before
//!   it.
//!
//! A program that rewrites a file may copy its metadata to other rows, and a corrupt footer may
//! lose the entry. [`MARK`] therefore shows that the file has checksums, in a place that readers of
//! the format ignore.
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
use tfarrow_dataset::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::Xxh3;

/// The metadata key of the checksums.
pub const KEY: &str = "tfarrow.xxh3";

/// The mark of files with checksums: after Parquet's magic number, and before Arrow's footer.
pub const MARK: &[u8; 8] = b"TFARROW1";

/// The end of the batches in an [Arrow file].
///
/// [Arrow file]: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The offset of the first row group of a Parquet file with checksums, after the magic number and
/// [`MARK`].
const PARQUET_GROUPS: u64 = 12;

/// The beginning of `created_by` in the metadata of Parquet files with checksums, which ends with
/// the version, in the form that [parquet.thrift] asks for.
///
/// [parquet.thrift]:
/// https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
pub const CREATED_BY: &str = "tfarrow version ";

/// Digits of a checksum.
const DIGITS: usize = 16;

/// Bytes that are read and hashed at once.
const READ_BYTES: usize = 256 << 10;

/// A writer that hashes the parts of a file, and puts the checksums into its footer.
///
/// The calls are, in this order: writes of the head, [`begin`](Self::begin), writes of each part
/// followed by [`end_part`](Self::end_part), [`end_parts`](Self::end_parts), writes of the footer,
/// [`end`](Self::end) and [`take_inner`](Self::take_inner).
pub struct ChecksumWriter<W> {
    /// The output; `None` after it was taken.
    inner: Option<W>,
    /// The hash of the current part.
    hasher: Xxh3,
    /// The hash of the bytes that are in no part.
    rest: Xxh3,
    parts: Vec<u64>,
    /// Bytes of the head or the footer, which are held back until they are hashed as a whole.
    held: Option<Vec<u8>>,
}

impl<W: Write> ChecksumWriter<W> {
    /// A writer that holds back the head of the file until [`begin`](Self::begin).
    pub fn new(inner: W) -> Self {
        Self {
            inner: Some(inner),
            hasher: Xxh3::new(),
            rest: Xxh3::new(),
            parts: Vec::new(),
            held: Some(Vec::new()),
        }
    }

    /// Ends the head of the file: hashes and writes it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn begin(&mut self) -> io::Result<()> {
        let head = self.take_held()?;
        self.rest.update(&head);
        self.inner()?.write_all(&head)
    }

    /// Ends a part.
    pub fn end_part(&mut self) {
        self.parts.push(std::mem::take(&mut self.hasher).digest());
    }

    /// Ends the last part, and holds back the footer until [`end`](Self::end). Returns the
    /// checksums, which the footer must have under [`KEY`].
    pub fn end_parts(&mut self) -> String {
        self.held = Some(Vec::new());
        // The first checksum is not known yet. `end` searches for its placeholder, which must not
        // occur elsewhere.
        let sums = std::iter::once(self.rest.digest()).chain(self.parts.iter().copied());
        sums.map(hex).collect::<Vec<_>>().join(" ")
    }

    /// Inserts the mark before the footer of an Arrow file, which is held back.
    ///
    /// # Errors
    /// An internal error if no footer is held back.
    pub fn mark_arrow(&mut self) -> io::Result<()> {
        let tail = self.held.as_mut().ok_or_else(no_footer)?;
        // The length of the footer and the magic number follow it.
        let len = tail
            .len()
            .checked_sub(10)
            .and_then(|end| Some((end, tail.get(end..end + 4)?.try_into().ok()?)));
        let start = len.and_then(|(end, len)| end.checked_sub(u32::from_le_bytes(len) as usize));
        let start = start.ok_or_else(no_footer)?;
        tail.splice(start..start, *MARK);
        Ok(())
    }

    /// Ends the footer, which contains `checksums`: puts in the first checksum, and writes it.
    ///
    /// # Errors
    /// I/O errors, and an internal error if the footer does not contain the checksums exactly once.
    pub fn end(&mut self, checksums: &str) -> io::Result<()> {
        let mut tail = self.take_held()?;
        let digits = digits_of(&tail, checksums).ok_or_else(no_checksums)?;
        tail.get_mut(digits.clone())
            .ok_or_else(no_checksums)?
            .fill(b'0');
        self.rest.update(&tail);
        let first = hex(self.rest.digest());
        tail.get_mut(digits)
            .ok_or_else(no_checksums)?
            .copy_from_slice(first.as_bytes());
        self.inner()?.write_all(&tail)
    }

    /// Takes the output, also out of a library's writer that does not return its own. Nothing can
    /// be written after it.
    ///
    /// # Errors
    /// An internal error if the output was taken before.
    pub fn take_inner(&mut self) -> io::Result<W> {
        self.inner.take().ok_or_else(closed)
    }

    fn inner(&mut self) -> io::Result<&mut W> {
        self.inner.as_mut().ok_or_else(closed)
    }

    fn take_held(&mut self) -> io::Result<Vec<u8>> {
        self.held.take().ok_or_else(no_footer)
    }
}

fn closed() -> io::Error {
    io::Error::other("internal error: the output is closed already")
}

fn no_footer() -> io::Error {
    io::Error::other("internal error: no head or footer is held back")
}

fn no_checksums() -> io::Error {
    io::Error::other("internal error: the footer does not contain its checksums exactly once")
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let count = self.inner()?.write(bytes)?;
        self.hasher.update(transferred(bytes, count)?);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner()?.flush()
    }
}

/// Hashes the rest of `reader`, which has at most `len` bytes.
///
/// # Errors
/// I/O errors.
pub fn hash(mut reader: impl Read, len: u64, hasher: &mut Xxh3) -> io::Result<()> {
    let mut buffer = vec![
        0;
        usize::try_from(len)
            .unwrap_or(READ_BYTES)
            .clamp(1, READ_BYTES)
    ];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(transferred(&buffer, count)?),
        }
    }
}

/// The bytes that a reader or writer transferred, by the count that it returned.
///
/// # Errors
/// An internal error if the count exceeds the length of the buffer.
pub fn transferred(buffer: &[u8], count: usize) -> io::Result<&[u8]> {
    buffer.get(..count).ok_or_else(|| {
        io::Error::other("internal error: more bytes were transferred than requested")
    })
}

/// Verifies the row groups of a Parquet file.
pub struct RowGroupVerifier {
    sums: String,
    /// The offset of the end of each row group, which is the beginning of the next.
    ends: Vec<u64>,
}

impl RowGroupVerifier {
    /// Verifies the bytes that are in no row group. `None` if the file has no checksums.
    ///
    /// # Errors
    /// A corrupt head or footer, and I/O errors.
    pub fn new(path: &Path, file: &File, metadata: &ParquetMetaData) -> Result<Option<Self>> {
        let io = |e| Error::io(path, e);
        let metadata_of_file = metadata.file_metadata();
        let mut entries = metadata_of_file
            .key_value_metadata()
            .into_iter()
            .flatten()
            .filter(|entry| entry.key == KEY);
        let sums = entries.find_map(|entry| entry.value.clone());
        // Other programs that copy the metadata have another `created_by`. With ours, a missing
        // mark is corruption.
        let is_ours = sums.is_some()
            && metadata_of_file
                .created_by()
                .is_some_and(|name| name.starts_with(CREATED_BY));
        if !is_ours && !precedes(file, PARQUET_GROUPS, MARK).map_err(io)? {
            return Ok(None);
        }
        let sums = sums.ok_or_else(|| corrupt_footer(path))?;
        let ends: Vec<_> = metadata.row_groups().iter().map(end_of).collect();
        let parts = PARQUET_GROUPS..ends.last().copied().unwrap_or(PARQUET_GROUPS);
        let is_complete =
            ends.is_sorted_by(|one, next| one < next) && count(&sums) == ends.len() + 1;
        if !is_complete {
            return Err(corrupt_footer(path));
        }
        let footer_start = parquet_footer(file).map_err(io)?;
        if rest_is_valid(file, &sums, parts, footer_start).map_err(io)? {
            Ok(Some(Self { sums, ends }))
        } else {
            Err(corrupt_footer(path))
        }
    }

    /// Verifies row group `number` of `groups`.
    ///
    /// # Errors
    /// A corrupt row group, and I/O errors.
    pub fn verify(
        &self,
        path: &Path,
        file: &File,
        groups: &[RowGroupMetaData],
        number: usize,
    ) -> Result<()> {
        let start = number
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(PARQUET_GROUPS);
        let end = self.ends.get(number).copied().unwrap_or(start);
        if part_is_valid(file, &self.sums, number, start..end).map_err(|e| Error::io(path, e))? {
            return Ok(());
        }
        let mut rows = groups.iter().map(|group| group.num_rows().max(0) as u64);
        let before = rows.by_ref().take(number).fold(0, u64::saturating_add);
        let rows = rows.next().unwrap_or_default();
        let part = format!("row group {number} ({rows} records from {before} on, at byte {start})");
        Err(corrupt(path, part, before, start))
    }
}

/// The offset of the footer of a Parquet file.
fn parquet_footer(mut file: &File) -> io::Result<u64> {
    let mut len = [0; 4];
    let end = file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut len)?;
    Ok(end.saturating_sub(u32::from_le_bytes(len).into()))
}

/// The offset of the end of a row group, with the Bloom filters after its columns.
fn end_of(group: &RowGroupMetaData) -> u64 {
    let ends = group.columns().iter().flat_map(|column| {
        let filter = column
            .bloom_filter_offset()
            .zip(column.bloom_filter_length());
        let filter = filter.map(|(start, len)| (start.max(0) as u64, len.max(0) as u64));
        [Some(column.byte_range()), filter]
            .into_iter()
            .flatten()
            .map(|(start, len)| start.saturating_add(len))
    });
    ends.max().unwrap_or_default()
}

/// The offset of the end of a batch.
fn end_of_block(block: &arrow_ipc::Block) -> u64 {
    let lengths = [
        block.offset(),
        block.metaDataLength().into(),
        block.bodyLength(),
    ];
    lengths
        .into_iter()
        .fold(0, |end: u64, len| end.saturating_add(len.max(0) as u64))
}

/// Verifies the batches of an Arrow file, one after the other.
pub struct BatchVerifier {
    file: File,
    sums: String,
    /// The offset of the next batch, with the dictionaries before it.
    start: u64,
    /// The offsets of the ends of the remaining batches.
    ends: std::vec::IntoIter<u64>,
    /// The number of the next batch.
    next: usize,
}

impl BatchVerifier {
    /// Verifies the bytes that are in no batch. `None` if the file has no checksums. `footer_start`
    /// is the offset of the footer.
    ///
    /// # Errors
    /// A corrupt head or footer, and I/O errors.
    pub fn new(
        path: &Path,
        file: File,
        footer: &Footer<'_>,
        footer_start: u64,
    ) -> Result<Option<Self>> {
        let io = |e| Error::io(path, e);
        let mut entries = footer
            .custom_metadata()
            .into_iter()
            .flatten()
            .filter(|entry| entry.key() == Some(KEY));
        let Some(sums) = entries.find_map(|entry| entry.value()) else {
            return if precedes(&file, footer_start, MARK).map_err(io)? {
                Err(corrupt_footer(path))
            } else {
                Ok(None)
            };
        };
        // Other programs that copy the metadata write the end of the stream directly before the
        // footer. It differs from the mark in every byte, so that corruption does not turn one into
        // the other by chance.
        if precedes(&file, footer_start, &END_OF_STREAM).map_err(io)? {
            return Ok(None);
        }
        let ends: Vec<_> = footer
            .recordBatches()
            .into_iter()
            .flatten()
            .map(end_of_block)
            .collect();
        let blocks = footer
            .dictionaries()
            .into_iter()
            .chain(footer.recordBatches())
            .flatten();
        let start = blocks
            .map(|block| block.offset().max(0) as u64)
            .min()
            .unwrap_or(footer_start);
        let parts = start..ends.last().copied().unwrap_or(start);
        let is_complete =
            ends.is_sorted_by(|one, next| one < next) && count(sums) == ends.len() + 1;
        if is_complete && rest_is_valid(&file, sums, parts, footer_start).map_err(io)? {
            Ok(Some(Self {
                file,
                sums: sums.to_owned(),
                start,
                ends: ends.into_iter(),
                next: 0,
            }))
        } else {
            Err(corrupt_footer(path))
        }
    }

    /// Verifies the next batch, if there is one. `before` is the number of records in the batches
    /// before it.
    ///
    /// # Errors
    /// A corrupt batch, and I/O errors.
    pub fn verify_next(&mut self, path: &Path, before: u64) -> Result<()> {
        let Some(end) = self.ends.next() else {
            return Ok(());
        };
        let number = self.next;
        let start = self.start;
        (self.next, self.start) = (number + 1, end);
        if part_is_valid(&self.file, &self.sums, number, start..end)
            .map_err(|e| Error::io(path, e))?
        {
            return Ok(());
        }
        Err(corrupt(
            path,
            format!("batch {number} (at byte {start})"),
            before,
            start,
        ))
    }
}

/// Whether the file has `bytes` directly before `offset`.
fn precedes(mut file: &File, offset: u64, bytes: &[u8; 8]) -> io::Result<bool> {
    let mut before = Vec::new();
    file.seek(SeekFrom::Start(offset.saturating_sub(bytes.len() as u64)))?;
    file.take(bytes.len() as u64).read_to_end(&mut before)?;
    Ok(before == bytes)
}

/// Whether the first checksum is that of the bytes outside of `parts`.
fn rest_is_valid(
    mut file: &File,
    sums: &str,
    parts: Range<u64>,
    footer_start: u64,
) -> io::Result<bool> {
    let mut hasher = Xxh3::new();
    hash_range(file, 0..parts.start, &mut hasher)?;
    hash_range(file, parts.end..footer_start, &mut hasher)?;
    let mut footer = Vec::new();
    file.seek(SeekFrom::Start(footer_start))?;
    file.read_to_end(&mut footer)?;
    let Some(digits) = digits_of(&footer, sums).and_then(|digits| footer.get_mut(digits)) else {
        return Ok(false);
    };
    digits.fill(b'0');
    hasher.update(&footer);
    Ok(parts.end <= footer_start && sum(sums, 0) == Some(&hex(hasher.digest())))
}

/// The range of the first checksum in a footer; `None` unless the checksums occur exactly once.
fn digits_of(footer: &[u8], sums: &str) -> Option<Range<usize>> {
    let start = memmem::find(footer, sums.as_bytes())?;
    Some(start..start + DIGITS).filter(|_| memmem::rfind(footer, sums.as_bytes()) == Some(start))
}

/// Whether the checksum of part `number`, which is the range `bytes` of the file, is valid.
fn part_is_valid(file: &File, sums: &str, number: usize, bytes: Range<u64>) -> io::Result<bool> {
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

/// Checksum `number` of a list; `None` if there is no such checksum.
fn sum(sums: &str, number: usize) -> Option<&str> {
    let start = number.checked_mul(DIGITS + 1)?;
    sums.get(start..start + DIGITS)
}

/// The number of checksums in a list.
fn count(sums: &str) -> usize {
    (sums.len() + 1) / (DIGITS + 1)
}

fn corrupt(path: &Path, part: String, record: u64, offset: u64) -> Error {
    Error::new(
        path,
        ErrorKind::Checksum {
            part,
            record,
            offset,
        },
    )
}

fn corrupt_footer(path: &Path) -> Error {
    corrupt(path, "its schema or footer".to_owned(), 0, 0)
}
