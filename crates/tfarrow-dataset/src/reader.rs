//! Reads a shard: from the bytes of a file to whole records.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use arrow_buffer::Buffer;
use tfarrow_codec::{Category, Chunker, Limits, OnError, Records, frame};

use crate::{
    Compression, Error, ErrorKind, Result, Shard, SkippedRecords,
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
    /// Whether the reader goes on behind damage. By default damage is an error.
    pub on_error: OnError,
    /// Whether a last record that is cut short is an error, or the end: of a file that is still being written.
    pub partial_tail: PartialTail,
}

/// What becomes of a last record that is cut short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PartialTail {
    /// It is an error.
    #[default]
    Fail,
    /// It is not looked at, as if it were not there yet.
    Ignore,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES,
            limits: Limits::default(),
            on_error: OnError::Fail,
            partial_tail: PartialTail::Fail,
        }
    }
}

/// What comes next in a shard.
#[derive(Debug)]
pub enum Segment {
    /// Whole records.
    Records(Records),
    /// What no record can be made of. Only where the reader [goes on](OnError::Skip).
    Lost(Lost),
}

/// Bytes of a shard that no record can be made of: a stretch of it, or a part of one that is long.
#[derive(Debug)]
pub struct Lost {
    /// What is wrong; `None` where this goes on with the stretch that was told of before.
    pub error: Option<Error>,
    /// Where it lies in the decompressed shard, or in the file, where the bytes are as they are stored.
    pub offset: u64,
    /// The bytes, decompressed.
    pub bytes: Buffer,
    /// Whether the bytes are as they are stored: those of a compressed file behind the place where they no longer inflate,
    /// up to the next gzip member.
    pub is_stored: bool,
}

/// Bytes that do not inflate, and are handed on at once.
const STORED_BYTES: usize = 1 << 20;

/// Reads the records of one shard, a chunk at a time.
///
/// After an error, or the end, there is nothing more. All records before an error come first.
pub struct ShardReader {
    path: PathBuf,
    stream: Stream,
    chunker: Chunker,
    on_error: OnError,
    partial_tail: PartialTail,
    lost: SkippedRecords,
    /// Why the stream ended, where that was no proper end.
    failure: Option<Failure>,
    /// Whether that was told, of compressed bytes, and what follows them is still to be handed on.
    is_broken: bool,
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
        let ratio = options.limits.inflate_ratio;
        let stream = Stream::new(source, ratio).and_then(|mut stream| stream.settle(ratio).map(|()| stream));
        let stream = match stream {
            Ok(stream) => stream,
            Err(failure) => return Err(error(path, failure, Compression::None, 0, 0)),
        };
        // A shard whose first bytes are damaged looks like nothing known.
        let goes_on = |foreign: &ErrorKind| {
            options.on_error == OnError::Skip && matches!(foreign, ErrorKind::NotTfRecord { is_known: false, .. })
        };
        if let Some(foreign) = foreign(&stream, size, &path).filter(|foreign| !goes_on(foreign)) {
            return Err(Error::new(path, foreign));
        }
        let chunker = Chunker::new(options.chunk_bytes, options.limits);
        let ReadOptions { on_error, partial_tail, .. } = *options;
        let lost = SkippedRecords::default();
        Ok(Self {
            path,
            stream,
            chunker,
            on_error,
            partial_tail,
            lost,
            failure: None,
            is_broken: false,
            stream_ended: false,
            done: false,
        })
    }

    /// The next records; `None` at the end. What is lost before them is noted, see [`lost`](Self::lost).
    ///
    /// # Errors
    /// Damage and truncation, unless the reader goes on behind them, and what the system says. The records before come
    /// first.
    #[expect(clippy::should_implement_trait, reason = "the iterator is this, with the two wrappers changed about")]
    pub fn next(&mut self) -> Result<Option<Records>> {
        loop {
            match self.segment()? {
                None => return Ok(None),
                Some(Segment::Records(records)) => return Ok(Some(records)),
                Some(Segment::Lost(lost)) => self.lost.add_lost(lost),
            }
        }
    }

    /// What comes next, records or damage; `None` at the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn segment(&mut self) -> Result<Option<Segment>> {
        let outcome = match self.on_error {
            OnError::Fail => self.records().map(|records| records.map(Segment::Records)),
            OnError::Skip => self.read_on(),
        };
        self.done |= !matches!(outcome, Ok(Some(_)));
        outcome
    }

    /// What [`next`](Self::next) has passed over since this was last asked.
    pub fn lost(&mut self) -> SkippedRecords {
        std::mem::take(&mut self.lost)
    }

    fn records(&mut self) -> Result<Option<Records>> {
        while !self.done {
            self.fill();
            match self.chunker.cut().map_err(|error| Error::codec(&self.path, error))? {
                None if !self.stream_ended => {}
                None => return self.finish().map(|()| None),
                records => return Ok(records),
            }
        }
        Ok(None)
    }

    fn read_on(&mut self) -> Result<Option<Segment>> {
        while !self.done {
            self.fill();
            match self.chunker.read_on(self.stream_ended) {
                Some(tfarrow_codec::Segment::Records(records)) => return Ok(Some(Segment::Records(records))),
                Some(tfarrow_codec::Segment::Lost(lost)) => {
                    let tfarrow_codec::Lost { error, offset, bytes } = lost;
                    // Where the stream is cut short, so is its last record.
                    let tail = error.as_ref().filter(|error| error.category() == Category::Truncated);
                    let failure = tail.and_then(|error| Some((self.failure.take()?, error.position().record)));
                    let failure = failure.map(|(failure, record)| self.failed(failure, record)).transpose()?;
                    let error = failure.or_else(|| error.map(|error| Error::codec(&self.path, error)));
                    if let Some(lost) = self.stretch(error, offset, bytes) {
                        return Ok(Some(lost));
                    }
                }
                None if !self.stream_ended => {}
                None => match self.failure.take() {
                    Some(failure) => {
                        let error = Some(self.failed(failure, self.chunker.record())?);
                        self.chunker.count_lost();
                        if let Some(lost) = self.stretch(error, self.chunker.offset(), Buffer::default()) {
                            return Ok(Some(lost));
                        }
                    }
                    None if !self.is_broken => return Ok(None),
                    None => match self.stored()? {
                        None if self.stream.inflates() => {
                            (self.is_broken, self.stream_ended) = (false, false);
                        }
                        lost => return Ok(lost),
                    },
                },
            }
        }
        Ok(None)
    }

    /// A stretch that is lost, unless nobody minds.
    fn stretch(&mut self, error: Option<Error>, offset: u64, bytes: Buffer) -> Option<Segment> {
        if self.ignores(error.as_ref()) {
            return None;
        }
        let is_break = |error: &Error| matches!(error.kind(), ErrorKind::Damaged { .. });
        self.is_broken |= error.as_ref().is_some_and(is_break);
        Some(Segment::Lost(Lost { error, offset, bytes, is_stored: false }))
    }

    /// The next of the bytes behind the place where compressed ones break off; `None` where no more do not inflate.
    fn stored(&mut self) -> Result<Option<Segment>> {
        let mut bytes = vec![0; STORED_BYTES];
        let read = self.stream.read_stored(&mut bytes);
        let offset = self.stream.stored_bytes();
        let count = read.map_err(|failure| error(self.path.clone(), failure, self.compression(), offset, 0))?;
        let offset = offset - count as u64;
        bytes.truncate(count);
        let lost = Lost { error: None, offset, bytes: Buffer::from_vec(bytes), is_stored: true };
        Ok((count > 0).then_some(Segment::Lost(lost)))
    }

    /// Whether this is how a file ends that is still being written, and nobody minds.
    fn ignores(&self, error: Option<&Error>) -> bool {
        self.partial_tail == PartialTail::Ignore && error.is_some_and(Error::is_cut_short)
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
        let (failure, record) = (self.failure.take(), self.chunker.record());
        let failure = failure.map(|failure| self.failed(failure, record)).transpose()?;
        let tail = || self.chunker.finish().err().map(|error| Error::codec(&self.path, error));
        match failure.or_else(tail) {
            Some(error) if !self.ignores(Some(&error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// The error that damage to the stream is, in the record of this number.
    ///
    /// # Errors
    /// What the system says: that is no damage, and nothing is read on behind it.
    fn failed(&self, failure: Failure, record: u64) -> Result<Error> {
        let offset = self.stream.stored_bytes();
        match error(self.path.clone(), failure, self.compression(), offset, record) {
            error if error.is_damage() => Ok(error),
            error => Err(error),
        }
    }

    /// How the shard is compressed.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// How many bytes of the shard, as it is stored, were used so far.
    pub fn bytes_read(&self) -> u64 {
        self.stream.used_bytes()
    }

    /// The offset in the decompressed shard after all records and lost bytes returned so far.
    pub(crate) fn offset(&self) -> u64 {
        self.chunker.offset()
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
        // What begins like zlib by chance, as one file in a thousand does, and holds no record.
        let looks_like = looks::looks_like(stream.stored_head(), size, path);
        return Some(ErrorKind::NotTfRecord { looks_like, is_known: true });
    }
    // A bit of its header may have been hit.
    let is_broken_gzip = compression == Compression::None && head.starts_with(&[0x1f, 0x8b]);
    let known = match is_broken_gzip {
        true => Some("starts like gzip, but its header is damaged".to_owned()),
        false => looks::known(head),
    };
    let is_known = known.is_some() && !is_broken_gzip && !stream.holds_record();
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
