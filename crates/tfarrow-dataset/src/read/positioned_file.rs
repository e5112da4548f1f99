//! A plain file on this machine, which several threads read at positions of their own.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use crate::{Compression, Error, Result, Shard, ShardReader, sharding::listed_file::check_size};

/// A file that is read at any position.
#[derive(Debug)]
pub(super) struct PositionedFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl PositionedFile {
    /// Opens the file that `reader` has begun to read; `None` if it can only be read from its start
    /// to its end: a compressed file, a pipe, an object in a store, and any file on systems other
    /// than Unix.
    ///
    /// # Errors
    /// An I/O error, and a file that has become shorter since it was listed.
    pub(super) fn of(reader: &ShardReader, shard: &Shard) -> Result<Option<Self>> {
        match reader.compression() {
            Compression::None => Self::local(shard),
            Compression::Gzip | Compression::Zlib | Compression::Snappy => Ok(None),
        }
    }

    /// Opens the stored bytes of a file on this machine; `None` if the shard is none, or cannot be
    /// read at any position.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(super) fn local(shard: &Shard) -> Result<Option<Self>> {
        if shard.is_stream() || shard.is_remote() || cfg!(not(unix)) {
            return Ok(None);
        }
        let file = Self::open(shard).map_err(|error| Error::io(&shard.path, error))?;
        // Files of the system, such as those in /proc, have the size 0 and may have bytes.
        Ok((file.size > 0).then_some(file))
    }

    fn open(shard: &Shard) -> io::Result<Self> {
        let file = File::open(shard.local_path())?;
        let size = file.metadata()?.len();
        check_size(size, shard.size)?;
        Ok(Self {
            path: shard.path.clone(),
            file,
            size,
        })
    }

    /// The path of the shard, for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes that the file had when it was opened.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Checks that the file has as many bytes as when it was opened.
    ///
    /// # Errors
    /// An I/O error, and a file that has become shorter.
    pub(super) fn check_size(&self) -> Result<()> {
        let size = self.file.metadata().map(|metadata| metadata.len());
        size.and_then(|size| check_size(size, self.size))
            .map_err(|error| Error::io(&self.path, error))
    }

    /// Fills `to` with the bytes at `at`, which the file had when it was opened.
    ///
    /// # Errors
    /// An I/O error, and a file that has become shorter.
    pub(super) fn read_at(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let failed = |error| Error::io(&self.path, error);
        let mut filled = 0;
        while let Some(rest) = to.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_some_at(at + filled as u64, rest) {
                Ok(0) => return check_size(at + filled as u64, self.size).map_err(failed),
                Ok(count) => filled += count,
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Reads bytes at `at` into `to`. Returns their number, 0 at the end of the file.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn read_some_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match read_at(&self.file, to, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

#[cfg(not(unix))]
fn read_at(_file: &File, _to: &mut [u8], _at: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
