//! The records of a plain file by their offsets: one thread finds them by their headers, and any
//! thread reads them.
//!
//! ```text
//! FrameRanges   header ─▶ header ─▶ header ─▶ ..      one thread at a time, without the payloads
//!                 └── FrameRange ──┘
//! RangeFile     read ─▶ Records                       any thread
//! ```
//!
//! The ranges lie in the chunks in which a [`ShardReader`] reads the file, so that both give the
//! same batches.

use std::{io, path::PathBuf, sync::Arc};

use arrow_buffer::Buffer;
use tfarrow_codec::{
    Limits, OnError, Records, SharedFeatures,
    frame::{FrameRange, Framer, HEADER, Outline},
};

use super::positioned_file::PositionedFile;
use crate::{Error, ErrorKind, PartialTail, ReadOptions, Result, Segment, Shard, ShardReader};

/// Number of bytes that are read at once where many headers are in them.
const WINDOW: usize = 256 << 10;
/// Minimum mean size in bytes of records whose headers are read alone. Below it, reading everything
/// is faster.
const HOP_BYTES: u64 = 64 << 10;

/// Finds the records of a plain file by their headers. See the module.
pub struct FrameRanges {
    file: Arc<RangeFile>,
    options: ReadOptions,
    outline: Outline,
    window: Window,
}

/// A plain file whose records any thread reads.
#[derive(Debug)]
pub struct RangeFile {
    file: PositionedFile,
    cutter: RangeCutter,
    shard: Shard,
}

/// Cuts the bytes of ranges into records.
#[derive(Debug)]
pub(super) struct RangeCutter {
    path: PathBuf,
    limits: Limits,
    /// The features that all records have by the folders of the shard.
    shared: SharedFeatures,
}

/// The way to read a shard.
pub enum ShardAccess {
    /// By ranges, which any thread reads.
    Ranges(Box<FrameRanges>),
    /// From the start to the end.
    Stream(Box<ShardReader>),
}

impl ShardAccess {
    /// Opens a shard.
    ///
    /// # Errors
    /// As [`ShardReader::open`].
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let reader = ShardReader::open(shard, options)?;
        // A file that may grow is read up to the end that it has then.
        if reader.partial_tail() == PartialTail::Ignore {
            return Ok(Self::Stream(Box::new(reader)));
        }
        let Some(file) = PositionedFile::of(&reader, shard)? else {
            return Ok(Self::Stream(Box::new(reader)));
        };
        let options = ReadOptions {
            partial_tail: reader.partial_tail(),
            ..*options
        };
        Ok(Self::Ranges(Box::new(FrameRanges {
            file: Arc::new(RangeFile::new(file, shard, options.limits)),
            options,
            outline: Outline::new(options.chunk_bytes, options.limits),
            window: Window::default(),
        })))
    }
}

impl FrameRanges {
    /// The next records: at most `rows`, whose payloads have at most `bytes`, but at least one
    /// record, and all in one chunk; `None` at the end of the file.
    ///
    /// # Errors
    /// An I/O error, and a length that is corrupt or exceeds the limit. The records before are
    /// returned first.
    pub fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<FrameRange>> {
        let Self {
            file,
            outline,
            window,
            ..
        } = self;
        let mean = outline.offset() / outline.record().max(1);
        let count = if mean >= HOP_BYTES { HEADER } else { WINDOW };
        let next = outline.next(file.file.size(), rows, bytes, |at| {
            window.header(&file.file, at, count)
        });
        next.map_err(|error| match error {
            HeaderError::Read(error) => error,
            HeaderError::Codec(error) => Error::codec(file.file.path(), error),
        })
    }

    /// Whether the error of [`next`](Self::next) is about corrupt bytes, which a
    /// [reader](Self::to_reader) skips.
    pub fn skips(&self, error: &Error) -> bool {
        self.options.on_error == OnError::Skip && matches!(error.kind(), ErrorKind::Codec(_))
    }

    /// The file.
    pub fn file(&self) -> &Arc<RangeFile> {
        &self.file
    }

    /// The number of bytes of the file before the next record.
    pub fn bytes_read(&self) -> u64 {
        self.outline.offset()
    }

    /// Reads the file as a stream from the next record on, in the same chunks, for example to skip
    /// a corrupt one. Returns the reader, and the offset of its first byte.
    ///
    /// # Errors
    /// An I/O error.
    pub fn to_reader(&self) -> Result<(ShardReader, u64)> {
        let (first, offset, size) = self.outline.chunk();
        let mut reader =
            ShardReader::resume_chunk(&self.file.shard, &self.options, first, offset, size)?;
        let returned = self.outline.record() - first;
        if returned > 0 {
            match reader.segment()? {
                Some(Segment::Records(records)) if records.len() as u64 == returned => {}
                _ => return Err(self.file.cutter.changed()),
            }
        }
        Ok((reader, offset))
    }
}

impl RangeFile {
    fn new(file: PositionedFile, shard: &Shard, limits: Limits) -> Self {
        Self {
            file,
            cutter: RangeCutter::new(shard, limits),
            shard: shard.clone(),
        }
    }

    /// Reads records. `memory` is memory to read into, for example that of [`Records::reclaim`].
    ///
    /// # Errors
    /// An I/O error, and a file that was changed since the records were found.
    pub fn read(&self, range: &FrameRange, memory: Vec<u8>) -> Result<Records> {
        self.cutter.read(range, memory, self.file.size(), |bytes| {
            self.file.read_at(range.offset, bytes)
        })
    }

    /// Checks that the file has not become shorter: the data after the last header was not read.
    pub(super) fn check_size(&self) -> Result<()> {
        self.file.check_size()
    }
}

impl RangeCutter {
    pub(super) fn new(shard: &Shard, limits: Limits) -> Self {
        Self {
            path: shard.path.clone(),
            limits,
            shared: shard.shared_features(),
        }
    }

    /// Reads the records of a range into `memory` by `read`. The file has at most `most` bytes.
    ///
    /// # Errors
    /// Those of `read`, and a file that was changed since the records were found.
    pub(super) fn read(
        &self,
        range: &FrameRange,
        mut memory: Vec<u8>,
        most: u64,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Records> {
        // An index may be wrong. No memory is allocated for more than the file has.
        let end = range.offset.checked_add(range.bytes as u64);
        if end.is_none_or(|end| end > most) || range.records > range.bytes {
            return Err(self.changed());
        }
        if memory.len() < range.bytes || memory.len() / 2 > range.bytes {
            // Most later ranges fit into this room as well.
            memory = vec![0; range.bytes + range.bytes / 8];
        }
        let bytes = memory.get_mut(..range.bytes).unwrap_or_default();
        read(bytes)?;
        let mut spans = Vec::with_capacity(range.records);
        let mut framer = Framer::new(self.limits).at(range.first, range.offset);
        let cut = framer.cut_at(bytes, range.offset, &mut spans);
        if !matches!(cut, Ok(0)) || spans.len() != range.records {
            return Err(self.changed());
        }
        let records = Records::new(Buffer::from_vec(memory), spans, range.first, range.offset);
        Ok(records.with_shared_features(&self.shared))
    }

    fn changed(&self) -> Error {
        Error::io(
            &self.path,
            io::Error::other("the file was changed while it was read"),
        )
    }
}

/// The error of a header.
enum HeaderError {
    Read(Error),
    Codec(tfarrow_codec::Error),
}

impl From<tfarrow_codec::Error> for HeaderError {
    fn from(error: tfarrow_codec::Error) -> Self {
        Self::Codec(error)
    }
}

/// Some bytes of a file, among them the last header that was read.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// The offset of the first one.
    at: u64,
}

impl Window {
    /// The header at `at`, which lies in the file. Reads `count` bytes if it is not in the window.
    fn header(
        &mut self,
        file: &PositionedFile,
        at: u64,
        count: usize,
    ) -> Result<[u8; HEADER], HeaderError> {
        if let Some(header) = self.get(at) {
            return Ok(header);
        }
        let count = (file.size() - at).min(count as u64) as usize;
        self.bytes.resize(count, 0);
        self.at = at;
        if let Err(error) = file.read_at(at, &mut self.bytes) {
            // They are not the bytes of the file.
            self.bytes.clear();
            return Err(HeaderError::Read(error));
        }
        self.get(at).ok_or_else(|| {
            HeaderError::Read(Error::io(file.path(), io::ErrorKind::UnexpectedEof.into()))
        })
    }

    fn get(&self, at: u64) -> Option<[u8; HEADER]> {
        let index = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(index..)?.first_chunk().copied()
    }
}
