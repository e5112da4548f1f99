//! Access points of gzip and zlib files: places from which they are inflated, so that their bytes
//! are read at any position.
//!
//! ```text
//! PointCollector   ─▶ all bytes of a file, and an access point about every 2 MiB     one thread
//! InflatedFile     ─▶ bytes at any position, from the last point before them         any thread
//! ```
//!
//! An access point in a member is the place of a deflate block, and the 32 KiB before it, to which
//! its data refer (RFC 1951). What is read from there has no checksum of gzip or zlib; records have
//! their own.

use std::{
    io::{self, Read, Seek, SeekFrom},
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rapidgzip_core::{
    Checkpoint, CheckpointKind, Decoder, DeflateIndex, IndexKind, IndexOptions, IndexedReader,
    IndexingDecoderReader, ReadAt, StoredWindow, WindowStorage, index::WINDOW_SIZE,
};
use tfarrow_codec::Limits;

use super::stored_bytes::{StoredBytes, compression_of};
use crate::{
    Compression, Error, ReadOptions, Result, Shard, ShardReader,
    format::inflate::{HARMLESS, is_bomb},
    lock::Lock,
};

/// Least number of decompressed bytes between a point in a gzip member and the point before it. What
/// one thread inflates at once should fit into the cache of its core, and the windows of points should
/// be small beside the data: some 1 %, if both compress alike.
const SPACING: NonZeroU64 = NonZeroU64::new(2 << 20).unwrap();
/// Least number of decompressed bytes between a point at the start of a gzip member, which has no
/// window, and the point before it.
const MEMBER_SPACING: u64 = 1 << 20;
/// Number of stored bytes that are read at once. A decompression bomb is detected so many bytes
/// late.
const PAGE_BYTES: usize = 64 << 10;
/// Number of bytes that are inflated at once to pass over them.
const SKIP_BYTES: usize = 64 << 10;

/// A place in a gzip or zlib file from which it can be inflated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// The offset in the decompressed file.
    pub offset: u64,
    /// The offset in the file as it is stored, in bits.
    pub bits: u64,
    /// The 32 KiB of the decompressed file before the point; empty at the start of a gzip member, and
    /// of a zlib file.
    pub window: Vec<u8>,
}

impl AccessPoint {
    /// Number of bytes of a window that is not empty.
    pub const WINDOW_BYTES: usize = WINDOW_SIZE;
}

/// The access points of a shard that is read. There are some once it was read to its end.
#[derive(Clone, Debug, Default)]
pub struct CollectedPoints(Arc<Lock<Vec<AccessPoint>>>);

impl CollectedPoints {
    /// Takes the points.
    pub fn take(&self) -> Vec<AccessPoint> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl ShardReader {
    /// Opens a gzip or zlib shard whose access points are collected while it is read; `None` for other
    /// shards, and for a header that the library does not read.
    ///
    /// The reader is stricter than that of [`open`](Self::open), and its errors are other ones: a
    /// caller reads the shard again after any error.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_collecting(
        shard: &Shard,
        options: &ReadOptions,
    ) -> Result<Option<(Self, CollectedPoints)>> {
        let compression = compression_of(shard, options)?;
        if !matches!(compression, Some(Compression::Gzip | Compression::Zlib)) {
            return Ok(None);
        }
        let Some(bytes) = StoredBytes::of(shard)? else {
            return Ok(None);
        };
        let stored = Arc::new(AtomicU64::new(0));
        let source = CountedBytes {
            bytes: bytes.read_ahead(),
            read: Arc::clone(&stored),
        };
        // With one thread, the points do not depend on the machine.
        let decoder = Decoder::builder()
            .decoder_threads(1)
            .input_page_size(PAGE_BYTES)
            .auto_detect_format();
        let index_options = IndexOptions {
            checkpoint_spacing: SPACING,
            window_storage: WindowStorage::Raw,
        };
        let Ok(decoder) = decoder.build() else {
            return Ok(None);
        };
        let Ok(inflating) = decoder.reader_with_index(source, index_options) else {
            return Ok(None);
        };
        let points = CollectedPoints::default();
        let collector = PointCollector {
            reader: Some(inflating),
            stored: Arc::clone(&stored),
            inflated: 0,
            ratio: options.limits.inflate_ratio as u64,
            points: points.clone(),
        };
        let reader = Self::of_inflated(Box::new(collector), shard, options, stored);
        Ok(Some((reader, points)))
    }
}

/// Stored bytes, which counts those that were read.
struct CountedBytes {
    bytes: StoredBytes,
    /// The end of the bytes that were read.
    read: Arc<AtomicU64>,
}

impl ReadAt for CountedBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.size())
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read_some_at(offset, to)?;
        self.read
            .fetch_max(offset + count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Inflates a file and collects its access points.
struct PointCollector {
    /// `None` after the end.
    reader: Option<IndexingDecoderReader>,
    /// Number of stored bytes that were read.
    stored: Arc<AtomicU64>,
    /// Number of bytes that were returned.
    inflated: u64,
    /// Largest allowed ratio of decompressed to compressed bytes.
    ratio: u64,
    points: CollectedPoints,
}

impl Read for PointCollector {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Some(reader) = &mut self.reader else {
            return Ok(0);
        };
        let count = reader.read(to)?;
        self.inflated += count as u64;
        if is_bomb(
            self.inflated,
            self.stored.load(Ordering::Relaxed),
            self.ratio,
        ) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if count == 0
            && !to.is_empty()
            && let Some(reader) = self.reader.take()
        {
            let report = reader.finish().map_err(io::Error::other)?;
            *self.points.0.lock() = points_of(&report.index)?;
        }
        Ok(count)
    }
}

/// The points of an index.
fn points_of(index: &DeflateIndex) -> io::Result<Vec<AccessPoint>> {
    let mut points: Vec<AccessPoint> = Vec::new();
    for checkpoint in index.checkpoints() {
        let offset = checkpoint.uncompressed_offset_in_bytes;
        let bits = checkpoint.compressed_offset_in_bits;
        let member = match checkpoint.kind {
            CheckpointKind::GzipMemberHeader | CheckpointKind::ZlibHeader => Some(bits),
            CheckpointKind::GzipMemberDeflate {
                header_offset_in_bytes,
            } => Some(header_offset_in_bytes * 8),
            _ => None,
        };
        let is_far = points
            .last()
            .is_none_or(|last| offset - last.offset >= MEMBER_SPACING);
        match (member, index.windows().get(bits)) {
            (Some(bits), _) if is_far => points.push(AccessPoint {
                offset,
                bits,
                window: Vec::new(),
            }),
            (None, Some(window)) => points.push(AccessPoint {
                offset,
                bits,
                window: window
                    .decompressed()
                    .map_err(io::Error::other)?
                    .into_owned(),
            }),
            _ => {}
        }
    }
    Ok(points)
}

/// A gzip or zlib shard whose decompressed bytes are read at any position.
#[derive(Debug)]
pub(super) struct InflatedFile {
    bytes: StoredBytes,
    kind: IndexKind,
    /// In the order of the file.
    points: Arc<[AccessPoint]>,
    /// Number of decompressed bytes that the file has at most.
    most: u64,
}

impl InflatedFile {
    /// The shard of this compression whose stored bytes are `bytes`. `None` if it is not compressed by
    /// gzip or zlib, or there are no points.
    pub(super) fn new(
        bytes: StoredBytes,
        compression: Compression,
        limits: &Limits,
        points: Arc<[AccessPoint]>,
    ) -> Option<Self> {
        let kind = match compression {
            Compression::Gzip => IndexKind::Gzip,
            Compression::Zlib => IndexKind::Zlib,
            Compression::None | Compression::Snappy => return None,
        };
        if points.is_empty() {
            return None;
        }
        let most = bytes.size().saturating_mul(limits.inflate_ratio as u64);
        Some(Self {
            bytes,
            kind,
            points,
            most: most.max(HARMLESS),
        })
    }

    /// Whether the shard is an object in a store.
    pub(super) fn is_object(&self) -> bool {
        self.bytes.is_object()
    }

    /// Number of decompressed bytes that the file has at most.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most
    }

    /// Starts to read the file.
    pub(super) fn reader(&self) -> InflatedReader<'_> {
        InflatedReader {
            file: self,
            reader: None,
        }
    }
}

/// Reads an [`InflatedFile`]. It goes on from its position where that is faster than the last point
/// before the wanted bytes.
pub(super) struct InflatedReader<'f> {
    file: &'f InflatedFile,
    reader: Option<IndexedReader<StoredBytes>>,
}

impl InflatedReader<'_> {
    /// Fills `to` with the decompressed bytes at `at`.
    ///
    /// # Errors
    /// An I/O error, and a file that is not the one of the points.
    pub(super) fn read_at(&mut self, at: u64, to: &mut [u8]) -> Result<()> {
        let path = self.file.bytes.path();
        self.read_exact_at(at, to).map_err(|error| {
            let is_content = matches!(
                error.kind(),
                io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::UnexpectedEof
            );
            let error = match is_content {
                true => io::Error::other(CHANGED),
                false => error,
            };
            Error::io(path, error)
        })
    }

    fn read_exact_at(&mut self, at: u64, to: &mut [u8]) -> io::Result<()> {
        let points = &self.file.points;
        let after = points.partition_point(|point| point.offset <= at);
        let Some(point) = after.checked_sub(1).and_then(|index| points.get(index)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut reader = match self.reader.take() {
            Some(reader) if (point.offset..=at).contains(&reader.position()) => reader,
            _ => self.begin(point)?,
        };
        let mut skipped = [0; SKIP_BYTES];
        while reader.position() < at {
            let count = (at - reader.position()).min(SKIP_BYTES as u64) as usize;
            reader.read_exact(skipped.get_mut(..count).unwrap_or_default())?;
        }
        reader.read_exact(to)?;
        self.reader = Some(reader);
        Ok(())
    }

    /// A reader from a point on.
    fn begin(&self, point: &AccessPoint) -> io::Result<IndexedReader<StoredBytes>> {
        let (kind, window) = match (point.window.is_empty(), self.file.kind) {
            (true, IndexKind::Zlib) => (CheckpointKind::ZlibHeader, StoredWindow::empty()),
            (true, _) => (CheckpointKind::GzipMemberHeader, StoredWindow::empty()),
            (false, _) => {
                let window = StoredWindow::from_raw(point.window.clone()).map_err(invalid)?;
                (CheckpointKind::DeflateBlock, window)
            }
        };
        let checkpoint = Checkpoint {
            compressed_offset_in_bits: point.bits,
            uncompressed_offset_in_bytes: point.offset,
            kind,
            line_offset: None,
        };
        let mut index = DeflateIndex::new();
        index.set_kind(self.file.kind);
        index.set_compressed_size(Some(self.file.bytes.size()));
        index.push(checkpoint, window).map_err(invalid)?;
        let bytes = self.file.bytes.another();
        let mut reader = IndexedReader::new(bytes, index).map_err(invalid)?;
        reader.seek(SeekFrom::Start(point.offset))?;
        Ok(reader)
    }
}

/// The error of a point that does not fit to its file.
fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

const CHANGED: &str = "the file was changed after its access points were collected";
