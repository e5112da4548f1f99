//! The decompressor of a compression.

use super::{
    inflate::Inflate,
    input::{Failure, StoredInput},
    snappy_blocks::SnappyBlocks,
};
use crate::Compression;

/// Decompresses the stored bytes of a shard, and finds the next place after damage at which it can
/// continue.
pub(crate) enum Decompressor {
    /// gzip and zlib.
    Inflate(Box<Inflate>),
    Snappy(SnappyBlocks),
}

impl Decompressor {
    /// Creates the decompressor of a stream that begins with `stored`; `None` without compression.
    /// `ratio` is the largest allowed ratio of decompressed to compressed bytes; that of Snappy is
    /// never above 22.
    pub(crate) fn new(compression: Compression, stored: &[u8], ratio: usize) -> Option<Self> {
        match compression {
            Compression::None => None,
            Compression::Gzip | Compression::Zlib => Some(Self::Inflate(Box::new(Inflate::new(
                compression,
                stored,
                ratio,
            )))),
            Compression::Snappy => Some(Self::Snappy(SnappyBlocks::new(stored))),
        }
    }

    /// Returns the number of bytes that were read and are not decompressed yet.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Inflate(inflate) => inflate.waiting(),
            Self::Snappy(blocks) => blocks.waiting(),
        }
    }

    /// Returns whether compressed bytes are expected.
    pub(crate) fn goes_on(&self) -> bool {
        match self {
            Self::Inflate(inflate) => inflate.goes_on(),
            Self::Snappy(blocks) => blocks.goes_on(),
        }
    }

    /// Decompresses into `out`, which is not empty. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// An error of the source, or the damage of the stream.
    pub(crate) fn read(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        match self {
            Self::Inflate(inflate) => inflate.read(input, out),
            Self::Snappy(blocks) => blocks.read(input, out),
        }
    }

    /// Copies the bytes after damage as they are stored, up to the next place from which
    /// decompression can continue. Returns their number, 0 at that place and at the end.
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn read_stored(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        match self {
            Self::Inflate(inflate) => inflate.read_stored(input, out),
            Self::Snappy(blocks) => blocks.read_stored(input, out),
        }
    }
}
