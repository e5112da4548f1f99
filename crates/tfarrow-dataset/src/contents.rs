//! What a file holds. Its first bytes tell; where they are damaged, its last do, and its name.

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use bytes::{Buf, Bytes};
use tfarrow_codec::frame::length;

use crate::{
    Compression, Error, Payload, Result,
    compression::{Failure, Stream, holds_record},
    looks,
};

/// Bytes in which a record is looked for behind a damaged one.
const LOOKED_BEHIND: u64 = 1 << 20;

/// Bytes of a file's end that tell what it holds.
pub(crate) const TAIL: u64 = 6;

/// What the first bytes of a shard tell besides its format.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peek {
    /// Its compression, where a sound record or nothing follows.
    pub(crate) compression: Option<Compression>,
    pub(crate) payload: Payload,
}

impl Peek {
    fn of(stream: &Stream) -> Self {
        let head = stream.head();
        let is_sound = length(head).is_some() || head.is_empty() && !stream.failed();
        Self { compression: is_sound.then(|| stream.compression()), payload: Payload::of(head) }
    }
}

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
    /// counts as TFRecord, so that it is not passed over in silence: reading it tells what is wrong. So does what begins
    /// like nothing known, and ends as Parquet and Arrow files do or is called so, as one of them.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        Self::look(path).map(|(contents, _)| contents)
    }

    /// The same, and what else the first bytes tell.
    pub(crate) fn look(path: &Path) -> Result<(Option<Self>, Peek)> {
        let wrap = |error| Error::io(path, error);
        let mut file = File::open(path).map_err(wrap)?;
        let head = file.try_clone().map_err(wrap)?;
        let stream = Stream::new(Box::new(head), usize::MAX).map_err(|failure| match failure {
            Failure::Io(error) => wrap(error),
            Failure::Damage(_) => wrap(std::io::ErrorKind::InvalidData.into()),
        })?;
        if let Some(known) = Self::of_stream(&stream) {
            return Ok((Some(known), Peek::of(&stream)));
        }
        let len = file.seek(SeekFrom::End(0)).map_err(wrap)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).map_err(wrap)?;
        file.read_to_end(&mut tail).map_err(wrap)?;
        Ok((Self::of_tail(&tail).or_else(|| Self::of_name(path)), Peek::default()))
    }

    /// What a file held that ends so.
    pub(crate) fn of_tail(tail: &[u8]) -> Option<Self> {
        if tail.ends_with(b"PAR1") { Some(Self::Parquet) } else { tail.ends_with(b"ARROW1").then_some(Self::Arrow) }
    }

    /// What a file is called that neither begins nor ends like anything known. It is damaged, and not to be passed over.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// Whether a file that begins like nothing known holds a record all the same, whose CRCs hold: the first one is
    /// damaged. So much is looked at as records usually take.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn is_behind_damage(path: &Path) -> Result<bool> {
        let wrap = |error| Error::io(path, error);
        let mut file = File::open(path).map_err(wrap)?;
        let mut head = Vec::new();
        file.by_ref().take(looks::HEAD_BYTES).read_to_end(&mut head).map_err(wrap)?;
        if looks::is_surely_known(&head) {
            return Ok(false);
        }
        file.take(LOOKED_BEHIND).read_to_end(&mut head).map_err(wrap)?;
        Ok(holds_record(&head))
    }

    /// What a file that begins so holds.
    pub(crate) fn of_head(head: Bytes) -> (Option<Self>, Peek) {
        let stream = Stream::new(Box::new(head.reader()), usize::MAX).ok();
        stream.map_or_else(Default::default, |stream| (Self::of_stream(&stream), Peek::of(&stream)))
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
