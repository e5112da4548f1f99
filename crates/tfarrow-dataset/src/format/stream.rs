//! The decompressed bytes of a shard.
//!
//! The first bytes determine the compression. Most shards begin with a valid record, compressed or
//! not. If one does not, [`Stream::settle`] determines whether it is another format, or TFRecord
//! whose first length is corrupt and happens to be a magic number.

use std::{io::Read, mem};

use tfarrow_codec::{
    FrameBuffer, Limits, OnError, Segment,
    frame::{FOOTER, HEADER, length},
};

pub(crate) use super::input::Failure;
use super::{
    decompressor::Decompressor,
    input::{StoredInput, copy},
    magic,
    snappy_blocks::decompress_after_damage,
};
use crate::{Compression, error::Damage, snappy};

/// Number of bytes at the start of a file, stored and decompressed, that determine its format.
const HEAD_BYTES: usize = 512;

/// Number of stored bytes that determine the compression: the header of a record takes fewer, also
/// in Snappy.
const RECOGNIZED: usize = 64;

/// Reads the decompressed bytes of a shard.
pub(crate) struct Stream {
    input: StoredInput,
    /// The decompressor; `None` for a plain shard.
    decompressor: Option<Decompressor>,
    compression: Compression,
    /// The first bytes as they are stored.
    stored: Vec<u8>,
    /// The first decompressed bytes, which were read to determine the format.
    head: Vec<u8>,
    /// Number of bytes of `head` that [`read`](Self::read) has returned, or that it need not
    /// return.
    head_read: usize,
    /// Largest number of stored bytes that were used so far: bytes after damage may be read again.
    used: u64,
    /// Failure while `head` was decompressed. It is reported after the bytes of `head`.
    failure: Option<Failure>,
    /// Set if the stored bytes contain a record although they begin like another format.
    holds_record: bool,
}

impl Stream {
    /// Reads as many bytes of `source` as are needed to determine the compression. `inflate_ratio`
    /// is the largest allowed ratio of decompressed to compressed bytes.
    ///
    /// # Errors
    /// An error of the source. Damage is reported by [`read`](Self::read) instead.
    pub(crate) fn new(source: Box<dyn Read + Send>, inflate_ratio: usize) -> Result<Self, Failure> {
        let mut input = StoredInput::new(source);
        let mut stored = vec![0; HEAD_BYTES];
        let count = fill(&mut stored, RECOGNIZED, |out| input.read(out))?;
        stored.truncate(count);
        let compression = Compression::of(&stored);
        Ok(Self::with_head(input, stored, compression, inflate_ratio))
    }

    /// Creates a stream of bytes that are known to be plain TFRecord, from any record on.
    pub(crate) fn plain(source: Box<dyn Read + Send>) -> Self {
        let mut input = StoredInput::new(source);
        input.take_kept();
        Self::with_head(input, Vec::new(), Compression::None, 0)
    }

    /// Creates a stream of bytes that begin with `stored`, which were read from `input`.
    fn with_head(
        input: StoredInput,
        stored: Vec<u8>,
        compression: Compression,
        inflate_ratio: usize,
    ) -> Self {
        let decompressor = Decompressor::new(compression, &stored, inflate_ratio);
        // A block of Snappy may be long: its start determines the format.
        let (head, head_read) = match compression {
            Compression::Snappy => (snappy::start(&stored, HEAD_BYTES), usize::MAX),
            _ => (stored.clone(), 0),
        };
        let used = 0;
        let failure = None;
        let holds_record = false;
        let mut stream = Self {
            input,
            decompressor,
            compression,
            stored,
            head,
            head_read,
            used,
            failure,
            holds_record,
        };
        if matches!(stream.decompressor, Some(Decompressor::Inflate(_))) {
            stream.inflate_head();
        }
        stream
    }

    /// Determines whether bytes that begin like another format, or like a compressed file without
    /// records, are a plain shard whose first length is corrupt: a length of 40,056 begins like
    /// zlib, one of 640 like a Python pickle. And whether bytes of no known format are Snappy whose
    /// first block is corrupt.
    ///
    /// Must be called before the first [`read`](Self::read).
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn settle(&mut self, inflate_ratio: usize) -> Result<(), Failure> {
        let Some(mut kept) = self.input.take_kept() else {
            return Ok(());
        };
        if self.begins_sound() || magic::is_archive(&self.stored) {
            return Ok(());
        }
        self.input.fill_searched(&mut kept)?;
        let holds_record = match self.compression {
            // A record is not searched for: stored blocks of gzip may contain records as they are.
            Compression::Gzip => is_followed_by_header(&kept),
            Compression::None | Compression::Zlib | Compression::Snappy => contains_record(&kept),
        };
        let is_unknown =
            self.compression == Compression::None && magic::known(&self.stored).is_none();
        let compression = match holds_record {
            true => Compression::None,
            false if is_unknown && contains_record(&decompress_after_damage(&kept)) => {
                Compression::Snappy
            }
            false => self.compression,
        };
        let input = self.input.restart(kept, self.stored.len());
        let stream = Self::with_head(
            input,
            mem::take(&mut self.stored),
            compression,
            inflate_ratio,
        );
        *self = Self {
            holds_record,
            ..stream
        };
        Ok(())
    }

    /// Returns whether the shard begins with a header whose CRC matches, or is empty.
    pub(crate) fn begins_sound(&self) -> bool {
        length(&self.head).is_some() || self.head.is_empty() && !self.failed()
    }

    /// Returns whether [`settle`](Self::settle) found a record in bytes that begin like another
    /// format.
    pub(crate) fn holds_record(&self) -> bool {
        self.holds_record
    }

    /// Decompresses the first bytes, at least a record's header.
    fn inflate_head(&mut self) {
        let mut head = vec![0; HEAD_BYTES];
        let mut filled = 0;
        while filled < HEADER {
            match self.read_payload(head.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        head.truncate(filled);
        self.head = head;
    }

    /// The compression of the shard.
    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// The first decompressed bytes: all of them, or at least a record's header.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The first bytes as they are stored.
    pub(crate) fn stored_head(&self) -> &[u8] {
        &self.stored
    }

    /// Returns whether decompression of the first bytes failed.
    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns whether decompression of the first bytes failed because they are corrupt.
    pub(crate) fn corrupt(&self) -> bool {
        matches!(self.failure, Some(Failure::Damage(Damage::Corrupt(_))))
    }

    /// Number of stored bytes read, without those that are not decompressed yet.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let waiting = self.decompressor.as_ref().map_or(0, Decompressor::waiting);
        self.input.bytes - waiting as u64
    }

    /// Largest value of [`stored_bytes`](Self::stored_bytes) so far, for progress: after damage the
    /// value may decrease.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.max(self.stored_bytes())
    }

    /// Reads decompressed bytes into `out`, which is not empty. Returns their number, 0 at the end.
    ///
    /// # Errors
    /// An error of the source, or damage of the compressed bytes. All bytes before it are returned
    /// first.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        let head = self.head.get(self.head_read..).unwrap_or_default();
        if !head.is_empty() {
            let count = copy(head, out);
            self.head_read += count;
            return Ok(count);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.read_payload(out)
    }

    /// Reads the stored bytes after damage, up to the next gzip member or block of Snappy, where
    /// [decompression](Self::inflates) continues. Returns their number, 0 at the member or at the
    /// end.
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn read_stored(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.decompressor.as_mut().map_or(Ok(0), |decompressor| {
            decompressor.read_stored(&mut self.input, out)
        })
    }

    /// Returns whether the stream is inside of a compressed member, or blocks are expected.
    pub(crate) fn inflates(&self) -> bool {
        self.decompressor
            .as_ref()
            .is_some_and(Decompressor::goes_on)
    }

    fn read_payload(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.used = self.used_bytes();
        match &mut self.decompressor {
            None => self.input.read(out),
            Some(decompressor) => decompressor.read(&mut self.input, out),
        }
    }
}

/// Returns whether these bytes of a plain stream contain a record whose CRCs match.
pub(crate) fn contains_record(bytes: &[u8]) -> bool {
    let buffer = FrameBuffer::new(bytes.len(), Limits::default()).with_on_error(OnError::Skip);
    buffer
        .segments(bytes)
        .any(|segment| matches!(segment, Ok(Segment::Records(_))))
}

/// Returns whether a frame follows the first one, on the assumption that only the CRC of the first
/// length is corrupt.
fn is_followed_by_header(bytes: &[u8]) -> bool {
    second_length(bytes).is_some()
}

/// Returns the length of the second record; `None` if no header is where it would begin.
fn second_length(bytes: &[u8]) -> Option<u64> {
    let data = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    length(bytes.get(data.checked_add(HEADER + FOOTER)?..)?)
}

/// Reads until `out` holds at least `enough` bytes or there are no more. Returns their number.
fn fill(
    out: &mut [u8],
    enough: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Failure>,
) -> Result<usize, Failure> {
    let mut filled = 0;
    while filled < enough {
        match read(out.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
