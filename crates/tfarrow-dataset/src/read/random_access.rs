//! A shard of which bytes are read at any position.

use std::sync::Arc;

use super::{
    access_points::{AccessPoint, InflatedFile, InflatedReader},
    stored_bytes::{StoredBytes, compression_of},
};
use crate::{Compression, ReadOptions, Result, Shard, ShardReader};

/// A shard whose decompressed bytes are read at any position: a file, or an object in a store.
#[derive(Debug)]
pub struct RandomAccess {
    shard: Shard,
    bytes: RandomBytes,
}

#[derive(Debug)]
enum RandomBytes {
    Plain(StoredBytes),
    Inflated(InflatedFile),
}

/// Reads a [`RandomAccess`], fastest in the order of the shard.
pub struct RandomReader<'a>(BytesReader<'a>);

enum BytesReader<'a> {
    Plain(&'a StoredBytes),
    Inflated(Box<InflatedReader<'a>>),
}

impl RandomAccess {
    /// Opens a shard; `None` if it can be read only from its start to its end, as a compressed file
    /// without `points`.
    ///
    /// # Errors
    /// An I/O error, as [`ShardReader::open`].
    pub fn open(
        shard: &Shard,
        options: &ReadOptions,
        points: impl Into<Arc<[AccessPoint]>>,
    ) -> Result<Option<Self>> {
        let compression = compression_of(shard, options)?;
        let bytes = StoredBytes::of(shard)?;
        let bytes = match (bytes, compression) {
            (Some(bytes), Some(Compression::None)) => Some(RandomBytes::Plain(bytes)),
            (Some(bytes), Some(compression)) => {
                let file = InflatedFile::new(bytes, compression, &options.limits, points.into());
                file.map(RandomBytes::Inflated)
            }
            (None, _) | (_, None) => None,
        };
        Ok(bytes.map(|bytes| Self {
            shard: shard.clone(),
            bytes,
        }))
    }

    /// Whether the bytes are requested from a store.
    fn is_object(&self) -> bool {
        match &self.bytes {
            RandomBytes::Plain(bytes) => bytes.is_object(),
            RandomBytes::Inflated(file) => file.is_object(),
        }
    }

    /// Number of bytes of blocks that follow each other and are read at once.
    pub(super) fn joined_bytes(&self) -> usize {
        if self.is_object() { 8 << 20 } else { 0 }
    }

    /// Number of bytes that the shard has at most.
    pub fn most_bytes(&self) -> u64 {
        match &self.bytes {
            RandomBytes::Plain(bytes) => bytes.size(),
            RandomBytes::Inflated(file) => file.most_bytes(),
        }
    }

    /// A reader of the shard as without an index: from the record `record` on, at the offset `offset`,
    /// or from the first record of a compressed shard.
    ///
    /// # Errors
    /// As [`ShardReader::open`].
    pub(super) fn sequential(
        &self,
        options: &ReadOptions,
        record: u64,
        offset: u64,
    ) -> Result<ShardReader> {
        match self.bytes {
            RandomBytes::Plain(_) => ShardReader::resume(&self.shard, options, record, offset),
            RandomBytes::Inflated(_) => ShardReader::open(&self.shard, options),
        }
    }

    /// Starts to read.
    pub fn reader(&self) -> RandomReader<'_> {
        RandomReader(match &self.bytes {
            RandomBytes::Plain(bytes) => BytesReader::Plain(bytes),
            RandomBytes::Inflated(file) => BytesReader::Inflated(Box::new(file.reader())),
        })
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }
}

impl RandomReader<'_> {
    /// Fills `to` with the bytes at `at`.
    ///
    /// # Errors
    /// An I/O error, and a shard that has become shorter, or was replaced.
    pub fn read_at(&mut self, at: u64, to: &mut [u8]) -> Result<()> {
        match &mut self.0 {
            BytesReader::Plain(bytes) => bytes.read_exact_at(at, to),
            BytesReader::Inflated(inflated) => inflated.read_at(at, to),
        }
    }
}
