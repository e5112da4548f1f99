//! Reads a shard: from the bytes of a file to whole records.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use tfarrow_codec::{Chunker, Limits, Records, frame};

use crate::{
    Compression, Error, ErrorKind, Result, Shard,
    compression::{Failure, Stream},
    looks,
};

/// The size of a chunk in bytes, by default. Small enough to stay in a core's cache on its way from the CRC to the
/// columns, large enough that the work for each chunk does not show.
pub const CHUNK_BYTES: usize = 2 << 20;

/// How shards are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Bytes that are read, and whose records are handed on, at once. By default [`CHUNK_BYTES`].
    pub chunk_bytes: usize,
    /// What a shard can make the reader hold.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { chunk_bytes: CHUNK_BYTES, limits: Limits::default() }
    }
}

/// Reads the records of one shard, a chunk at a time.
///
/// After an error, or the end, there is nothing more. All records before an error come first.
pub struct ShardReader {
    path: PathBuf,
    stream: Stream,
    chunker: Chunker,
    /// Why the stream ended, where that was no proper end.
    failure: Option<Failure>,
    stream_ended: bool,
    done: bool,
}

impl ShardReader {
    /// Opens a shard.
    ///
    /// # Errors
    /// What the system says, and [`ErrorKind::NotTfRecord`] where the file is something else.
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let source = shard.open().map_err(|error| Error::io(&shard.path, error))?;
        let size = (!shard.is_stream()).then_some(shard.size);
        Self::new(source, shard.path.clone(), size, options)
    }

    /// Reads a shard from any source of bytes. Errors call it `name`.
    ///
    /// # Errors
    /// What the source says, and [`ErrorKind::NotTfRecord`] where the bytes are something else.
    pub fn from_read(source: Box<dyn Read + Send>, name: impl Into<PathBuf>, options: &ReadOptions) -> Result<Self> {
        Self::new(source, name.into(), None, options)
    }

    fn new(source: Box<dyn Read + Send>, path: PathBuf, size: Option<u64>, options: &ReadOptions) -> Result<Self> {
        let stream = match Stream::new(source) {
            Ok(stream) => stream,
            Err(failure) => return Err(error(path, failure, Compression::None, 0, 0)),
        };
        if let Some(foreign) = foreign(&stream, size, &path) {
            return Err(Error::new(path, foreign));
        }
        let chunker = Chunker::new(options.chunk_bytes, options.limits);
        Ok(Self { path, stream, chunker, failure: None, stream_ended: false, done: false })
    }

    /// The next records; `None` at the end.
    ///
    /// # Errors
    /// Damage, truncation, and what the system says. The records before come first.
    #[expect(clippy::should_implement_trait, reason = "the iterator is this, with the two wrappers changed about")]
    pub fn next(&mut self) -> Result<Option<Records>> {
        while !self.done {
            self.fill();
            match self.chunker.cut() {
                Ok(None) if !self.stream_ended => {}
                Ok(None) => {
                    self.done = true;
                    self.finish()?;
                }
                Ok(records) => return Ok(records),
                Err(error) => {
                    self.done = true;
                    return Err(Error::codec(&self.path, error));
                }
            }
        }
        Ok(None)
    }

    /// Reads until the chunk is full or the stream ends.
    fn fill(&mut self) {
        while !self.stream_ended && !self.chunker.is_full() {
            match self.stream.read(self.chunker.spare()) {
                Ok(0) => self.stream_ended = true,
                Ok(count) => self.chunker.advance(count),
                Err(failure) => {
                    self.stream_ended = true;
                    self.failure = Some(failure);
                }
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            let (offset, record) = (self.stream.stored_bytes(), self.chunker.record());
            return Err(error(self.path.clone(), failure, self.compression(), offset, record));
        }
        self.chunker.finish().map_err(|error| Error::codec(&self.path, error))
    }

    /// How the shard is compressed.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// How many bytes of the shard, as it is stored, were used so far.
    pub fn bytes_read(&self) -> u64 {
        self.stream.stored_bytes()
    }

    /// The shard's path, or the name it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Iterator for ShardReader {
    type Item = Result<Records>;

    fn next(&mut self) -> Option<Self::Item> {
        Self::next(self).transpose()
    }
}

fn error(path: PathBuf, failure: Failure, compression: Compression, offset: u64, record: u64) -> Error {
    match failure {
        Failure::Io(error) => Error::io(path, error),
        Failure::Damage(damage) => Error::new(path, ErrorKind::Damaged { compression, damage, offset, record }),
    }
}

/// What the stream looks like, where it is no TFRecord. One too short to have a header, and like nothing known, is
/// left to the reader, who says that it is cut off.
fn foreign(stream: &Stream, size: Option<u64>, path: &Path) -> Option<ErrorKind> {
    let head = stream.head();
    if frame::length(head).is_some() {
        return None;
    }
    let compression = stream.compression();
    if compression == Compression::Zlib && stream.corrupt() {
        // What begins like zlib by chance, as one file in a thousand does.
        let looks_like = looks::looks_like(stream.stored_head(), size, path);
        return Some(ErrorKind::NotTfRecord { looks_like, is_known: true });
    }
    let known = looks::known(head);
    let is_known = known.is_some();
    let looks_like = match known {
        Some(known) => known,
        None if head.len() < frame::HEADER => return None,
        None if compression == Compression::None => looks::looks_like(head, size, path),
        None => looks::looks_like(head, None, path),
    };
    let looks_like = match compression {
        Compression::None => looks_like,
        _ => format!("{compression}, and what is compressed {looks_like}"),
    };
    Some(ErrorKind::NotTfRecord { looks_like, is_known })
}
