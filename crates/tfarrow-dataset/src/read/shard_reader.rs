//! Reads a shard: from the bytes of a file to complete records.
//!
//! ```text
//! Reading ─▶ Ended ───────────────────────────▶ Done
//!    ▲  └──▶ Failed (the stream breaks off) ──▶ Done          OnError::Fail
//!    │          └──▶ Salvaging (stored bytes) ─▶ Done          OnError::Skip
//!    └──────────────────┘ next gzip member
//! ```

use std::{
    io::Read,
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_buffer::Buffer;
use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    Category, FrameBuffer, Limits, OnError, Records, SharedFeatures,
    frame::{self, ChunkSize},
    named_values,
};

use crate::{
    Compression, DamageReport, Error, ErrorKind, Lost, Result, Segment, Shard,
    format::{
        magic,
        payload::Payload,
        stream::{Failure, Stream},
    },
};

/// Default size of a chunk in bytes. A chunk stays in the cache of a core from the CRC to the
/// columns, and the cost per chunk is negligible.
pub const CHUNK_BYTES: usize = 2 << 20;

/// Options of reading shards.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReadOptions {
    /// Number of bytes that are read, and whose records are returned, at once. By default
    /// [`CHUNK_BYTES`].
    pub chunk_bytes: usize,
    /// Limits for the memory and time that a shard can cost.
    pub limits: Limits,
    /// Whether corrupt bytes are an error or are skipped. By default they are an error.
    pub on_error: OnError,
    /// Whether a truncated last record is an error, or is ignored. By default, this depends on the
    /// file.
    pub partial_tail: PartialTail,
}

impl ReadOptions {
    /// Returns the options for a file with records of this kind, whose
    /// [`partial_tail`](Self::partial_tail) is not [`PartialTail::Auto`].
    #[must_use]
    pub fn of_payload(self, payload: Payload) -> Self {
        let partial_tail = match (self.partial_tail, payload) {
            (PartialTail::Auto, Payload::Events) => PartialTail::Ignore,
            (PartialTail::Auto, _) => PartialTail::Fail,
            (stated, _) => stated,
        };
        Self {
            partial_tail,
            ..self
        }
    }
}

/// The treatment of a truncated last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PartialTail {
    /// Ignore the record in the event files of TensorBoard, which are read while they are written,
    /// and report an error in other files.
    #[default]
    Auto,
    /// Report an error.
    Fail,
    /// Ignore the record: the file is still being written.
    Ignore,
}

named_values!(PartialTail {
    Auto = "auto": "Ignore it in TensorBoard's event files, and treat it as an error in others",
    Fail = "fail": "Treat it as an error",
    Ignore = "ignore": "Ignore it, as of a file that is still being written",
});

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES,
            limits: Limits::default(),
            on_error: OnError::Fail,
            partial_tail: PartialTail::default(),
        }
    }
}

/// Number of bytes that do not decompress and are returned at once.
const STORED_BYTES: usize = 1 << 20;

/// Reads the records of one shard, a chunk at a time.
///
/// After an error, or the end, it returns `None`. Records before an error are returned first.
pub struct ShardReader {
    path: PathBuf,
    stream: Stream,
    buffer: FrameBuffer,
    state: State,
    on_error: OnError,
    partial_tail: PartialTail,
    /// The damage that [`next`](Self::next) has skipped and [`lost`](Self::lost) has not returned
    /// yet.
    lost: DamageReport,
    /// The features that all records have by the folders of the shard.
    shared: SharedFeatures,
    /// Number of stored bytes that were read, if another reader decompresses them.
    stored: Option<Arc<AtomicU64>>,
}

/// The progress of reading a shard.
enum State {
    /// The stream has more bytes.
    Reading,
    /// The stream has ended. The buffer may contain more segments.
    Ended,
    /// The stream failed, which is not reported yet. The buffer may contain more segments.
    Failed(Failure),
    /// The failure of the stream is reported. After the segments in the buffer come the stored
    /// bytes up to the next gzip member, from which the stream continues.
    Salvaging,
    /// The end, or an error, was returned.
    Done,
}

impl ShardReader {
    /// Opens a shard.
    ///
    /// # Errors
    /// An I/O error, and [`ErrorKind::NotTfRecord`] if the file has another format.
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let source = shard
            .open()
            .map_err(|error| Error::io(&shard.path, error))?;
        let size = (!shard.is_stream()).then_some(shard.size);
        let reader = Self::new(source, shard.path.clone(), size, options)?;
        Ok(Self {
            shared: shard.shared_features(),
            ..reader
        })
    }

    /// Reads a shard from any source of bytes. Errors have `name` as their path.
    ///
    /// # Errors
    /// An error of the source, and [`ErrorKind::NotTfRecord`] if the bytes have another format.
    pub fn from_read(
        source: Box<dyn Read + Send>,
        name: impl Into<PathBuf>,
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::new(source, name.into(), None, options)
    }

    fn new(
        source: Box<dyn Read + Send>,
        path: PathBuf,
        size: Option<u64>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let ratio = options.limits.inflate_ratio;
        let stream =
            Stream::new(source, ratio).and_then(|mut stream| stream.settle(ratio).map(|()| stream));
        let stream = match stream {
            Ok(stream) => stream,
            Err(failure) => return Err(error(path, failure, Compression::None, 0, 0)),
        };
        if let Some(foreign) = foreign(&stream, size, &path) {
            // A shard whose first bytes are corrupt has no known format.
            let is_unknown = matches!(
                foreign,
                ErrorKind::NotTfRecord {
                    is_known: false,
                    ..
                }
            );
            if options.on_error != OnError::Skip || !is_unknown {
                return Err(Error::new(path, foreign));
            }
        }
        let options = options.of_payload(Payload::of(stream.head()));
        Ok(Self::of_stream(stream, path, &options))
    }

    fn of_stream(stream: Stream, path: PathBuf, options: &ReadOptions) -> Self {
        let ReadOptions {
            chunk_bytes,
            limits,
            on_error,
            partial_tail,
        } = *options;
        let buffer = FrameBuffer::new(chunk_bytes, limits).with_on_error(on_error);
        let state = State::Reading;
        let lost = DamageReport::default();
        Self {
            path,
            stream,
            buffer,
            state,
            on_error,
            partial_tail,
            lost,
            shared: SharedFeatures::default(),
            stored: None,
        }
    }

    /// Reads a plain file on this machine from record `record` on, which starts at the offset
    /// `offset`.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn resume(
        shard: &Shard,
        options: &ReadOptions,
        record: u64,
        offset: u64,
    ) -> Result<Self> {
        let file = shard
            .open_at(offset)
            .map_err(|error| Error::io(&shard.path, error))?;
        let mut reader = Self::of_stream(Stream::plain(file), shard.path.clone(), options);
        reader.buffer = reader.buffer.starting_at(record, offset);
        reader.shared = shard.shared_features();
        Ok(reader)
    }

    /// Reads a plain file on this machine from the chunk on that begins with record `record` at the
    /// offset `offset`.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn resume_chunk(
        shard: &Shard,
        options: &ReadOptions,
        record: u64,
        offset: u64,
        size: ChunkSize,
    ) -> Result<Self> {
        let mut reader = Self::resume(shard, options, record, offset)?;
        reader.buffer = reader.buffer.with_chunk_size(size);
        Ok(reader)
    }

    /// Reads the records of `source`, which are those of a plain file from the byte `offset` on.
    /// Their numbers begin with 0.
    pub(super) fn of_plain(
        source: Box<dyn Read + Send>,
        path: PathBuf,
        options: &ReadOptions,
        offset: u64,
    ) -> Self {
        let mut reader = Self::of_stream(Stream::plain(source), path, options);
        reader.buffer = reader.buffer.starting_at(0, offset);
        reader
    }

    /// Reads the records of `source`, which are those of a compressed file from its start on. `stored`
    /// is the number of stored bytes that were read for them.
    pub(super) fn of_inflated(
        source: Box<dyn Read + Send>,
        shard: &Shard,
        options: &ReadOptions,
        stored: Arc<AtomicU64>,
    ) -> Self {
        let mut reader = Self::of_plain(source, shard.path.clone(), options, 0);
        reader.shared = shard.shared_features();
        reader.stored = Some(stored);
        reader
    }

    /// Returns the next records; `None` at the end. Damage that is skipped before them is counted,
    /// see [`lost`](Self::lost).
    ///
    /// # Errors
    /// An I/O error and, unless they are skipped, corrupt and truncated records. The records before
    /// are returned first.
    #[expect(
        clippy::should_implement_trait,
        reason = "the iterator returns the same with the two wrappers swapped"
    )]
    pub fn next(&mut self) -> Result<Option<Records>> {
        loop {
            match self.segment()? {
                None => return Ok(None),
                Some(Segment::Records(records)) => return Ok(Some(records)),
                Some(Segment::Lost(lost)) => self.lost.add_lost(0, lost),
            }
        }
    }

    /// Returns the next records or skipped bytes; `None` at the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn segment(&mut self) -> Result<Option<Segment>> {
        if matches!(self.state, State::Done) {
            return Ok(None);
        }
        let segment = self.read();
        if !matches!(segment, Ok(Some(_))) {
            self.state = State::Done;
        }
        segment
    }

    /// Returns the damage that [`next`](Self::next) has skipped since the last call.
    pub fn lost(&mut self) -> DamageReport {
        mem::take(&mut self.lost)
    }

    fn read(&mut self) -> Result<Option<Segment>> {
        loop {
            let ended = self.fill();
            match self.buffer.next(ended) {
                Ok(Some(tfarrow_codec::Segment::Records(records))) => {
                    return Ok(Some(Segment::Records(
                        records.with_shared_features(&self.shared),
                    )));
                }
                Ok(Some(tfarrow_codec::Segment::Lost(lost))) => {
                    if let Some(lost) = self.report(lost)? {
                        return Ok(Some(Segment::Lost(lost)));
                    }
                }
                Ok(None) if !ended => {}
                Ok(None) => match self.end()? {
                    None if matches!(self.state, State::Reading) => {}
                    lost => return Ok(lost.map(Segment::Lost)),
                },
                Err(error) => {
                    let error = self.explain(error)?;
                    return if self.ignores(&error) {
                        Ok(None)
                    } else {
                        Err(error)
                    };
                }
            }
        }
    }

    /// Reads until the chunk is full or the stream ends, and returns whether it has ended.
    fn fill(&mut self) -> bool {
        while matches!(self.state, State::Reading) && !self.buffer.is_full() {
            match self.stream.read(self.buffer.spare()) {
                Ok(0) => self.state = State::Ended,
                Ok(count) => self.buffer.advance(count),
                Err(failure) => self.state = State::Failed(failure),
            }
        }
        !matches!(self.state, State::Reading)
    }

    /// Adds the shard's name to the error of skipped bytes; `None` if they are a truncated record
    /// that is ignored.
    fn report(&mut self, lost: tfarrow_codec::Lost) -> Result<Option<Lost>> {
        let tfarrow_codec::Lost {
            error,
            offset,
            bytes,
            is_stored,
        } = lost;
        let error = error.map(|error| self.explain(error)).transpose()?;
        if error.as_ref().is_some_and(|error| self.ignores(error)) {
            self.state = State::Ended;
            return Ok(None);
        }
        Ok(Some(Lost {
            error,
            offset,
            bytes,
            is_stored,
        }))
    }

    /// Returns the error in the shard for an error of its records. If the stream failed, its last
    /// record is truncated, and the failure is returned instead.
    ///
    /// # Errors
    /// An I/O error, which cannot be skipped.
    fn explain(&mut self, error: tfarrow_codec::Error) -> Result<Error> {
        if error.category() == Category::Truncated
            && let Some(failure) = self.take_failure()
        {
            return self.failed(failure, error.position().record);
        }
        Ok(Error::codec(&self.path, error))
    }

    /// Continues after the last segment in the buffer: with the failure of the stream between two
    /// records, or with stored bytes. `None` at the end or, in the state [`State::Reading`], if the
    /// stream continues.
    fn end(&mut self) -> Result<Option<Lost>> {
        if let Some(failure) = self.take_failure() {
            let error = self.failed(failure, self.buffer.record())?;
            if self.ignores(&error) {
                self.state = State::Ended;
                return Ok(None);
            }
            if self.on_error == OnError::Fail {
                return Err(error);
            }
            self.buffer.count_lost();
            let offset = self.buffer.offset();
            let bytes = Buffer::default();
            return Ok(Some(Lost {
                error: Some(error),
                offset,
                bytes,
                is_stored: false,
            }));
        }
        if !matches!(self.state, State::Salvaging) {
            return Ok(None);
        }
        let lost = self.stored()?;
        if lost.is_none() && self.stream.inflates() {
            self.state = State::Reading;
        }
        Ok(lost)
    }

    /// Takes the failure of the stream, if it is not reported yet. Stored bytes follow it.
    fn take_failure(&mut self) -> Option<Failure> {
        match mem::replace(&mut self.state, State::Salvaging) {
            State::Failed(failure) => Some(failure),
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Creates the error that the stream failed in the record of this number.
    ///
    /// # Errors
    /// An I/O error, which cannot be skipped.
    fn failed(&self, failure: Failure, record: u64) -> Result<Error> {
        let offset = self.stream.stored_bytes();
        match error(
            self.path.clone(),
            failure,
            self.compression(),
            offset,
            record,
        ) {
            error if error.is_damage() => Ok(error),
            error => Err(error),
        }
    }

    /// Returns the next of the stored bytes that do not decompress; `None` if there are no more.
    fn stored(&mut self) -> Result<Option<Lost>> {
        let mut bytes = vec![0; STORED_BYTES];
        let read = self.stream.read_stored(&mut bytes);
        let offset = self.stream.stored_bytes();
        let count = read
            .map_err(|failure| error(self.path.clone(), failure, self.compression(), offset, 0))?;
        bytes.truncate(count);
        let offset = offset - count as u64;
        let bytes = Buffer::from_vec(bytes);
        Ok((count > 0).then_some(Lost {
            error: None,
            offset,
            bytes,
            is_stored: true,
        }))
    }

    /// Returns `true` if the error is a truncated end that is ignored, see [`PartialTail::Ignore`].
    fn ignores(&self, error: &Error) -> bool {
        self.partial_tail == PartialTail::Ignore && error.is_cut_short()
    }

    /// Whether a truncated last record is an error or is ignored: not [`PartialTail::Auto`].
    pub(super) fn partial_tail(&self) -> PartialTail {
        self.partial_tail
    }

    /// The compression of the shard.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// Number of bytes of the shard, as it is stored, that were read so far.
    pub fn bytes_read(&self) -> u64 {
        match &self.stored {
            Some(stored) => stored.load(Ordering::Relaxed),
            None => self.stream.used_bytes(),
        }
    }

    /// The shard's path, or the name that it was given.
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

/// Creates the error of a failure of the stream, in the file `path` at the stored byte `offset`.
fn error(
    path: PathBuf,
    failure: Failure,
    compression: Compression,
    offset: u64,
    record: u64,
) -> Error {
    match failure {
        Failure::Io(error) => Error::io(path, error),
        Failure::Damage(damage) => Error::new(
            path,
            ErrorKind::Damaged {
                compression,
                damage,
                offset,
                record,
            },
        ),
    }
}

/// Returns the error that the stream is not TFRecord, with the format that it looks like. `None` if
/// it is, and if it has no known format and is shorter than a header: reading it reports that it is
/// truncated.
fn foreign(stream: &Stream, size: Option<u64>, path: &Path) -> Option<ErrorKind> {
    let head = stream.head();
    if frame::length(head).is_some() {
        return None;
    }
    let compression = stream.compression();
    if compression == Compression::Zlib && stream.corrupt() {
        // One of a thousand files begins like zlib by chance. This one contains no record.
        let looks_like = magic::looks_like(stream.stored_head(), size, path);
        return Some(ErrorKind::NotTfRecord {
            looks_like,
            is_known: true,
        });
    }
    // The header of a gzip file may be corrupt.
    let is_broken_gzip = compression == Compression::None && head.starts_with(&[0x1f, 0x8b]);
    let known = match is_broken_gzip {
        true => Some("starts like gzip, but its header is corrupt".to_owned()),
        false => magic::known(head),
    };
    let is_known = known.is_some() && !is_broken_gzip && !stream.holds_record();
    let looks_like = match known {
        Some(known) => known,
        None if head.len() < frame::HEADER => return None,
        None if compression == Compression::None => magic::looks_like(head, size, path),
        None => magic::looks_like(head, None, path),
    };
    let looks_like = match compression {
        Compression::None => looks_like,
        _ => format!("{compression}, and what is compressed {looks_like}"),
    };
    Some(ErrorKind::NotTfRecord {
        looks_like,
        is_known,
    })
}
