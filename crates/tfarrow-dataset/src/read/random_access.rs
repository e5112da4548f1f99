//! A plain shard, of which bytes are read at any position.

use std::io::{self, Read};

use super::positioned_file::PositionedFile;
use crate::{Compression, Error, ReadOptions, Result, Shard, ShardReader};

/// A plain file, or a plain object in a store, that is read at any position.
#[derive(Debug)]
pub struct RandomAccess {
    shard: Shard,
    /// The file; `None` for an object.
    file: Option<PositionedFile>,
}

impl RandomAccess {
    /// Opens a shard; `None` if it can be read only from its start to its end, as a compressed file.
    ///
    /// # Errors
    /// An I/O error, as [`ShardReader::open`].
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Option<Self>> {
        let reader = ShardReader::open(shard, options)?;
        let file = PositionedFile::of(&reader, shard)?;
        let is_plain_object = shard.is_remote() && reader.compression() == Compression::None;
        Ok((file.is_some() || is_plain_object).then(|| Self {
            shard: shard.clone(),
            file,
        }))
    }

    /// The number of bytes between two reads below which one read is faster: those that take as long
    /// as a call of the system, or a request.
    pub fn gap(&self) -> u64 {
        match self.file {
            Some(_) => 4 << 10,
            None => 1 << 20,
        }
    }

    /// Fills `to` with the bytes at `at`.
    ///
    /// # Errors
    /// An I/O error, and a shard that has become shorter, or was replaced.
    pub fn read_at(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let wrap = |error| Error::io(&self.shard.path, error);
        let Some(file) = &self.file else {
            let source = self.shard.open_at(at).map_err(wrap)?;
            return source.take(to.len() as u64).read_exact(to).map_err(wrap);
        };
        if at.saturating_add(to.len() as u64) > file.size() {
            return Err(wrap(io::ErrorKind::UnexpectedEof.into()));
        }
        file.read_at(at, to)
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }
}
