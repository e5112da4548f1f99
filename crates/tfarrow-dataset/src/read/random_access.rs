//! A shard of which bytes are read at any position.

use std::io::{self, Read};

use super::{
    access_points::{AccessPoint, InflatedFile, InflatedReader},
    positioned_file::PositionedFile,
};
use crate::{Compression, Error, ReadOptions, Result, Shard, ShardReader};

/// A shard whose decompressed bytes are read at any position: a file, or a plain object in a store.
#[derive(Debug)]
pub struct RandomAccess {
    shard: Shard,
    bytes: RandomBytes,
}

#[derive(Debug)]
enum RandomBytes {
    File(PositionedFile),
    Inflated(InflatedFile),
    Object,
}

/// Reads a [`RandomAccess`], fastest in the order of the shard.
pub struct RandomReader<'a> {
    access: &'a RandomAccess,
    /// The reader of a compressed file.
    inflated: Option<InflatedReader<'a>>,
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
        points: Vec<AccessPoint>,
    ) -> Result<Option<Self>> {
        let bytes = Self::bytes(shard, options, points)?;
        Ok(bytes.map(|bytes| Self {
            shard: shard.clone(),
            bytes,
        }))
    }

    fn bytes(
        shard: &Shard,
        options: &ReadOptions,
        points: Vec<AccessPoint>,
    ) -> Result<Option<RandomBytes>> {
        // An object whose first bytes are known is not requested.
        if shard.is_remote() && shard.compression() == Some(Compression::None) {
            return Ok(Some(RandomBytes::Object));
        }
        let reader = ShardReader::open(shard, options)?;
        if let Some(file) = PositionedFile::of(&reader, shard)? {
            return Ok(Some(RandomBytes::File(file)));
        }
        if let Some(file) = InflatedFile::of(&reader, shard, &options.limits, points)? {
            return Ok(Some(RandomBytes::Inflated(file)));
        }
        let is_plain_object = shard.is_remote() && reader.compression() == Compression::None;
        Ok(is_plain_object.then_some(RandomBytes::Object))
    }

    /// Number of bytes of blocks that follow each other and are read at once.
    pub(super) fn joined_bytes(&self) -> usize {
        match self.bytes {
            RandomBytes::File(_) | RandomBytes::Inflated(_) => 0,
            RandomBytes::Object => 8 << 20,
        }
    }

    /// The number of bytes between two reads below which one read is faster: those that take as long
    /// as a call of the system, or a request.
    pub fn gap(&self) -> u64 {
        match self.bytes {
            RandomBytes::File(_) => 4 << 10,
            // A reader goes on from its position.
            RandomBytes::Inflated(_) => 0,
            RandomBytes::Object => 1 << 20,
        }
    }

    /// Number of bytes that the shard has at most.
    pub fn most_bytes(&self) -> u64 {
        match &self.bytes {
            RandomBytes::File(file) => file.size(),
            RandomBytes::Inflated(file) => file.most_bytes(),
            RandomBytes::Object => self.shard.size,
        }
    }

    /// Starts to read.
    pub fn reader(&self) -> RandomReader<'_> {
        RandomReader {
            access: self,
            inflated: match &self.bytes {
                RandomBytes::Inflated(file) => Some(file.reader()),
                RandomBytes::File(_) | RandomBytes::Object => None,
            },
        }
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
        if let Some(inflated) = &mut self.inflated {
            return inflated.read_at(at, to);
        }
        let shard = &self.access.shard;
        let wrap = |error| Error::io(&shard.path, error);
        let RandomBytes::File(file) = &self.access.bytes else {
            let source = shard.open_at(at).map_err(wrap)?;
            return source.take(to.len() as u64).read_exact(to).map_err(wrap);
        };
        if at.saturating_add(to.len() as u64) > file.size() {
            return Err(wrap(io::ErrorKind::UnexpectedEof.into()));
        }
        file.read_at(at, to)
    }
}
