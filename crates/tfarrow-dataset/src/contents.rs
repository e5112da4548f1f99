//! What a file holds: told by its first bytes, never by its name.

use std::{fmt, fs::File, path::Path};

use bytes::{Buf, Bytes};
use tfarrow_codec::frame::length;

use crate::{
    Compression, Error, Result,
    compression::{Failure, Stream},
    looks,
};

/// What a shard holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contents {
    /// TFRecord, compressed or not.
    TfRecord,
    /// Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

impl Contents {
    /// What the file at `path` holds; `None` where it is nothing that is known here.
    ///
    /// Of a compressed file as much is inflated as tells what is in it. One that is damaged so early that this fails
    /// counts as TFRecord, so that it is not passed over in silence: reading it tells what is wrong.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        let stream = Stream::new(Box::new(file), usize::MAX).map_err(|failure| match failure {
            Failure::Io(error) => Error::io(path, error),
            Failure::Damage(_) => Error::io(path, std::io::ErrorKind::InvalidData.into()),
        })?;
        Ok(Self::of_stream(&stream))
    }

    /// What a file that begins so holds.
    pub(crate) fn of_head(head: Bytes) -> Option<Self> {
        Self::of_stream(&Stream::new(Box::new(head.reader()), usize::MAX).ok()?)
    }

    fn of_stream(stream: &Stream) -> Option<Self> {
        let head = stream.head();
        if length(head).is_some() {
            return Some(Self::TfRecord);
        }
        match stream.compression() {
            Compression::None if head.starts_with(b"PAR1") => Some(Self::Parquet),
            Compression::None if head.starts_with(b"ARROW1") => Some(Self::Arrow),
            Compression::None => None,
            // Nothing in it: a shard of no records. Zlib's magic number is weak, gzip's is not.
            _ if head.is_empty() && !stream.failed() => Some(Self::TfRecord),
            Compression::Gzip if stream.failed() && looks::known(head).is_none() => Some(Self::TfRecord),
            Compression::Gzip | Compression::Zlib => None,
        }
    }

    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::TfRecord => "TFRecord",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
