//! A buffer that a stream is read into, and that returns complete records.
//!
//! ```text
//! chunk 1  [frame][frame][frame][beginning of a fra
//!          └─ Records, without a copy ─┘└─ copied to the front of the next chunk
//! chunk 2  [beginning of a frame][frame][frame]..
//! ```
//!
//! A chunk becomes a reference-counted buffer when its records are returned. Its memory is used for
//! another chunk once the last record is dropped (`Pool`).

use std::{collections::VecDeque, mem};

use arrow_buffer::Buffer;

use super::{
    Framer, Records,
    chunk_size::ChunkSize,
    resync::{Extent, LostRange},
};
use crate::{Error, Limits, OnError, Result, slices};

/// The next part of a stream. All segments together are the complete stream.
#[derive(Debug)]
pub enum Segment<E = Error> {
    /// Complete records.
    Records(Records),
    /// Bytes that are skipped because they contain no complete record. Only with [`OnError::Skip`].
    Lost(Lost<E>),
}

impl<E> Segment<E> {
    /// Returns the records, or `None` if the segment is lost.
    pub fn into_records(self) -> Option<Records> {
        match self {
            Self::Records(records) => Some(records),
            Self::Lost(_) => None,
        }
    }
}

/// Bytes of a stream that are skipped because they contain no complete record: a corrupt range, or
/// a part of a long one.
///
/// `E` is the error of the reader: readers of files replace [`Error`] by an error that names the
/// file.
#[derive(Debug)]
pub struct Lost<E = Error> {
    /// The error at the beginning of the range; `None` if the bytes continue the range of the
    /// [`Lost`] before. A range counts as one record, because the number of records in it is
    /// unknown.
    pub error: Option<E>,
    /// Offset of the bytes in the decompressed stream, or in the file if
    /// [`is_stored`](Self::is_stored).
    pub offset: u64,
    /// The bytes.
    pub bytes: Buffer,
    /// Whether the bytes are as the file stores them because they could not be decompressed. Always
    /// `false` for segments of a [`FrameBuffer`], which reads decompressed bytes.
    pub is_stored: bool,
}

impl<E> Lost<E> {
    /// Replaces the error by the result of `f`, for instance by an error that names the file.
    pub fn map_error<F>(self, f: impl FnOnce(E) -> F) -> Lost<F> {
        let Self {
            error,
            offset,
            bytes,
            is_stored,
        } = self;
        Lost {
            error: error.map(f),
            offset,
            bytes,
            is_stored,
        }
    }
}

/// Collects the bytes of a stream in chunks, and returns the complete records of each chunk without
/// copying them.
///
/// Read into [`spare`](Self::spare), pass the number of bytes that were read to
/// [`advance`](Self::advance), and call [`next`](Self::next) until it returns `None`. The bytes of
/// an incomplete record are carried over to the next chunk. A chunk is longer than the target only
/// if a record is, and has at most eight times the bytes that have arrived. The memory of a chunk
/// is used again once no [`Records`] hold it.
///
/// ```
/// use std::io::Read;
/// use tfarrow_codec::{FrameBuffer, Limits, Segment, frame};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut stream = Vec::new();
/// # frame::write(b"one", &mut stream);
/// # frame::write(b"two", &mut stream);
/// # let mut input = stream.as_slice();
/// let mut buffer = FrameBuffer::new(2 << 20, Limits::default());
/// let (mut ended, mut count) = (false, 0);
/// while !ended {
///     // Fill the chunk, so that there are many records in it.
///     while !ended && !buffer.is_full() {
///         let read = input.read(buffer.spare())?;
///         buffer.advance(read);
///         ended = read == 0;
///     }
///     while let Some(Segment::Records(records)) = buffer.next(ended)? {
///         count += records.len();
///     }
/// }
/// assert_eq!(count, 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FrameBuffer {
    framer: Framer,
    /// Whether corrupt ranges are skipped.
    on_error: OnError,
    state: State,
    size: ChunkSize,
    /// The corrupt range that is being skipped.
    loss: Option<LostRange>,
    /// The memory of earlier chunks.
    pool: Pool,
}

/// Whether the buffer takes or returns bytes.
#[derive(Debug)]
enum State {
    /// Bytes are read into the memory, of which the first `filled` are taken.
    Filling { memory: Vec<u8>, filled: usize },
    /// The segments of a chunk are returned.
    Draining(Chunk),
    /// An error was returned. Nothing follows it.
    Failed,
}

/// A chunk whose segments are returned.
#[derive(Debug)]
struct Chunk {
    bytes: Buffer,
    /// Index of the first byte that was not returned yet.
    at: usize,
    /// Index after the last byte that was read.
    filled: usize,
}

impl Chunk {
    /// Returns the bytes that were not returned yet.
    fn rest(&self) -> &[u8] {
        debug_assert!(
            self.at <= self.filled && self.filled <= self.bytes.len(),
            "more was returned than was read"
        );
        slices::part(&self.bytes, self.at..self.filled)
    }
}

/// The result of looking for the next segment of a chunk.
enum Step {
    Segment(Segment),
    /// More bytes are needed: this number in total, if it is known.
    Need(Option<usize>),
}

/// Maximum number of lost bytes that are held back until a frame that may follow them is complete.
/// More of them are returned as lost in any case, so that memory is bounded.
const MAX_PENDING_LOSS: usize = 64 << 20;

impl FrameBuffer {
    /// Creates a buffer with chunks of `target` bytes: at least 4 KiB, and at most 1 GiB, because
    /// positions in a chunk are counted in 32 bits.
    pub fn new(target: usize, limits: Limits) -> Self {
        Self {
            framer: Framer::new(limits),
            on_error: OnError::Fail,
            state: State::Filling {
                memory: Vec::new(),
                filled: 0,
            },
            size: ChunkSize::new(target),
            loss: None,
            pool: Pool::default(),
        }
    }

    /// Sets whether a length that is corrupt or exceeds the limit, and a stream that ends inside a
    /// frame, are errors, or are skipped as [`Segment::Lost`]. By default they are errors.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets the position of the first byte: the stream continues another reader's stream at the
    /// start of record `record`, which lies at the offset `offset`.
    pub fn starting_at(mut self, record: u64, offset: u64) -> Self {
        self.framer = self.framer.at(record, offset);
        self
    }

    /// Sets the size of the first chunk.
    pub fn with_chunk_size(mut self, size: ChunkSize) -> Self {
        self.size = size;
        self
    }

    /// Memory for the next bytes of the stream; not empty unless the buffer [is
    /// full](Self::is_full).
    pub fn spare(&mut self) -> &mut [u8] {
        self.refill(None);
        let State::Filling { memory, filled } = &mut self.state else {
            return &mut [];
        };
        if memory.is_empty() {
            *memory = vec![0; self.size.bytes()];
        }
        memory.get_mut(*filled..).unwrap_or_default()
    }

    /// Declares that the first `count` bytes of [`spare`](Self::spare) were written.
    pub fn advance(&mut self, count: usize) {
        if let State::Filling { memory, filled } = &mut self.state {
            debug_assert!(
                count <= memory.len() - *filled,
                "more bytes than there was room for"
            );
            *filled = (*filled + count).min(memory.len());
        }
    }

    /// Returns `true` if [`next`](Self::next) has to be called before the buffer takes more bytes:
    /// the chunk has no room left, or was not returned completely.
    pub fn is_full(&self) -> bool {
        match &self.state {
            State::Filling { filled, .. } => *filled >= self.size.bytes(),
            State::Draining(_) | State::Failed => true,
        }
    }

    /// Returns the next segment of the bytes read so far. `None` if more bytes are needed or, if
    /// `ended` is true, at the end of the stream.
    ///
    /// With [`OnError::Skip`], records continue after a corrupt length at the next position where
    /// both CRCs of a frame match, and after a length that exceeds the limit at the end of that
    /// frame.
    ///
    /// ```
    /// use tfarrow_codec::{FrameBuffer, Limits, OnError, Segment, frame};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let mut stream = Vec::new();
    /// frame::write(b"one", &mut stream);
    /// frame::write(b"two", &mut stream);
    /// stream[0] ^= 1;
    /// let mut buffer = FrameBuffer::new(1 << 20, Limits::default()).with_on_error(OnError::Skip);
    /// buffer.spare()[..stream.len()].copy_from_slice(&stream);
    /// buffer.advance(stream.len());
    /// let Some(Segment::Lost(lost)) = buffer.next(true)? else { panic!() };
    /// assert_eq!((lost.offset, lost.bytes.len()), (0, 19));
    /// let Some(Segment::Records(records)) = buffer.next(true)? else { panic!() };
    /// assert_eq!(records.iter().collect::<Vec<_>>(), [b"two"]);
    /// assert!(buffer.next(true)?.is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// With [`OnError::Fail`]: a length that is corrupt or exceeds [`Limits::record_bytes`], and a
    /// stream that ends inside a frame. Records before the error are returned first. After an
    /// error, the buffer returns `None` and takes no bytes.
    pub fn next(&mut self, ended: bool) -> Result<Option<Segment>> {
        match &mut self.state {
            State::Failed => return Ok(None),
            State::Draining(_) => {}
            State::Filling { memory, filled } => {
                let bytes = Buffer::from_vec(mem::take(memory));
                let filled = *filled;
                self.state = State::Draining(Chunk {
                    bytes,
                    at: 0,
                    filled,
                });
            }
        }
        match self.step(ended) {
            Ok(Step::Segment(segment)) => Ok(Some(segment)),
            Ok(Step::Need(need)) => {
                self.refill(need);
                Ok(None)
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
        }
    }

    /// Returns the segments of a complete stream that is in memory. The bytes are copied chunk by
    /// chunk.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next); an error is the last item.
    pub fn segments(mut self, bytes: &[u8]) -> impl Iterator<Item = Result<Segment>> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            loop {
                rest = slices::part(rest, self.copy(rest)..);
                match self.next(rest.is_empty()) {
                    Ok(None) if !rest.is_empty() && !matches!(self.state, State::Failed) => {}
                    next => return next.transpose(),
                }
            }
        })
    }

    /// Copies as many bytes of `input` as the buffer takes before [`next`](Self::next) has to be
    /// called, and returns their number.
    fn copy(&mut self, input: &[u8]) -> usize {
        if self.is_full() {
            return 0;
        }
        let count = copy_prefix(input, self.spare());
        self.advance(count);
        count
    }

    /// Number of the next record.
    pub fn record(&self) -> u64 {
        self.framer.record()
    }

    /// Offset in the stream of the next segment, in bytes.
    pub fn offset(&self) -> u64 {
        self.framer.offset()
    }

    /// Counts a record whose bytes cannot be decompressed, so that the reader skipped them.
    pub fn count_lost(&mut self) {
        self.framer.record += 1;
    }

    /// Returns the next segment of the chunk: lost bytes, if a corrupt range is being skipped, or
    /// else records. If there is neither, the header of the next frame decides whether more bytes
    /// are needed or a corrupt range begins.
    fn step(&mut self, ended: bool) -> Result<Step> {
        loop {
            if let Some(step) = self.lost(ended) {
                return Ok(step);
            }
            if let Some(records) = self.records() {
                return Ok(Step::Segment(Segment::Records(records)));
            }
            let State::Draining(chunk) = &self.state else {
                return Ok(Step::Need(None));
            };
            let rest = chunk.rest();
            let need = if ended {
                self.framer.finish(rest).map(|()| None)
            } else {
                self.framer.need(rest)
            };
            match need {
                Ok(need) => return Ok(Step::Need(need)),
                Err(error) if self.on_error == OnError::Fail => return Err(error),
                Err(error) => self.loss = Some(LostRange::of(error)),
            }
        }
    }

    /// Takes the complete records at the front of the chunk; `None` if it begins with anything
    /// else.
    fn records(&mut self) -> Option<Records> {
        let State::Draining(chunk) = &mut self.state else {
            return None;
        };
        let bytes = chunk.bytes.get(..chunk.filled)?;
        let first = self.framer.record();
        let offset = self.framer.offset() - chunk.at as u64;
        let mut spans = Vec::new();
        // An error in a header is found again once the records before it are returned.
        self.framer.cut(bytes, chunk.at, &mut spans).ok();
        chunk.at = spans.last()?.frame().end;
        let records = Records::new(chunk.bytes.clone(), spans, first, offset).detached();
        if chunk.at == chunk.filled && self.size.is_grown() {
            // The memory of a long record is released with its records, and not only when the next
            // record is read.
            self.size.advance(true, 0, None);
            self.state = State::Filling {
                memory: Vec::new(),
                filled: 0,
            };
        }
        Some(records)
    }

    /// Takes lost bytes from the front of the chunk; `None` if no corrupt range is being skipped.
    fn lost(&mut self, ended: bool) -> Option<Step> {
        let State::Draining(chunk) = &self.state else {
            return None;
        };
        let (count, is_last) =
            match self
                .loss
                .as_mut()?
                .extent(chunk.rest(), ended, self.framer.record_bytes())
            {
                Extent::Whole(count) => (count, true),
                Extent::Part(0) => return Some(Step::Need(None)),
                Extent::Part(count) => (count, false),
                Extent::Unsure { before, .. } if before >= MAX_PENDING_LOSS => (before, false),
                // An eighth more, so that not each further position that looks like a record needs
                // more bytes.
                Extent::Unsure { need, .. } => return Some(Step::Need(Some(need + need / 8))),
            };
        self.lose(count, is_last)
            .map(|lost| Step::Segment(Segment::Lost(lost)))
    }

    /// Takes `count` lost bytes from the front of the chunk. `is_last` is true if the corrupt range
    /// ends with them.
    fn lose(&mut self, count: usize, is_last: bool) -> Option<Lost> {
        let State::Draining(chunk) = &mut self.state else {
            return None;
        };
        let loss = self.loss.as_mut()?;
        let lost = Lost {
            error: loss.error.take(),
            offset: self.framer.offset,
            bytes: chunk.bytes.slice_with_length(chunk.at, count),
            is_stored: false,
        };
        loss.pass(count);
        chunk.at += count;
        self.framer.offset += count as u64;
        if is_last {
            self.loss = None;
            self.framer.record += 1;
        }
        Some(lost)
    }

    /// Makes room for more bytes after the rest of the chunk, which moves to the front: of the same
    /// memory if no records hold it. `need` is the number of bytes that the chunk has to have to go
    /// on, if that is known.
    fn refill(&mut self, need: Option<usize>) {
        let State::Draining(Chunk { bytes, at, filled }) = &mut self.state else {
            return;
        };
        let bytes = mem::take(bytes);
        let at = *at;
        let filled = *filled;
        let rest = filled - at;
        self.size.advance(at > 0, rest, need);
        let size = self.size.bytes();
        let memory = match bytes.into_vec() {
            Ok(mut memory) if memory.len() == size => {
                memory.copy_within(at..filled, 0);
                memory
            }
            Ok(memory) => self.pool.copy(slices::part(&memory, at..filled), size),
            Err(bytes) => {
                let memory = self.pool.copy(slices::part(&bytes, at..filled), size);
                if bytes.len() <= self.size.target() {
                    self.pool.add(bytes);
                }
                memory
            }
        };
        self.state = State::Filling {
            memory,
            filled: rest,
        };
    }
}

/// Copies as many bytes of `from` as fit into `to`, and returns their number.
fn copy_prefix(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    to.split_at_mut(count)
        .0
        .copy_from_slice(from.split_at(count).0);
    count
}

/// The memory of the last chunks that were returned as records. Memory that is used again need not
/// be cleared, and may still be in a core's cache.
#[derive(Debug, Default)]
struct Pool(VecDeque<Buffer>);

/// Number of chunks in the pool: as many as are usually decoded at the same time.
const POOLED: usize = 4;

impl Pool {
    /// Remembers memory that records still hold.
    fn add(&mut self, chunk: Buffer) {
        self.0.push_back(chunk);
    }

    /// Returns memory of `size` bytes that begins with a copy of `rest`.
    fn copy(&mut self, rest: &[u8], size: usize) -> Vec<u8> {
        debug_assert!(
            rest.len() <= size,
            "the rest of a chunk is longer than the next chunk"
        );
        let mut memory = self.take(size);
        copy_prefix(rest, &mut memory);
        memory
    }

    /// Returns memory of `size` bytes: that of a chunk that no records hold, or new memory.
    fn take(&mut self, size: usize) -> Vec<u8> {
        for _ in 0..self.0.len() {
            match self.0.pop_front().map(Buffer::into_vec) {
                Some(Ok(memory)) if memory.len() == size => return memory,
                Some(Err(held)) if self.0.len() + 1 < POOLED => self.0.push_back(held),
                _ => {}
            }
        }
        vec![0; size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{self, FOOTER, HEADER, chunk_size::GROWTH, records::SPARSE};

    /// Reads a stream of `count` records that fill a chunk each, while the last `keep` chunks are
    /// held. Returns the address of each record.
    fn places(count: u8, keep: usize) -> Vec<*const u8> {
        let mut stream = Vec::new();
        for record in 0..count {
            frame::begin(4096 - HEADER - FOOTER, &mut stream);
            let start = stream.len();
            stream.resize(start + 4096 - HEADER - FOOTER, record);
            frame::end(start, &mut stream);
        }
        let mut buffer = FrameBuffer::new(4096, Limits::default());
        let mut held = VecDeque::new();
        let mut places = Vec::new();
        for (number, mut rest) in (0..).zip(stream.chunks(4096)) {
            while !rest.is_empty() {
                rest = &rest[buffer.copy(rest)..];
            }
            let records = buffer.next(false).unwrap().unwrap().into_records().unwrap();
            places.push(records.chunk().as_ptr());
            held.push_back((number, records));
            assert!(buffer.next(false).unwrap().is_none());
            assert!(held.iter().all(|(number, records)| {
                records.data(0).unwrap().iter().all(|byte| byte == number)
            }));
            held.drain(..held.len() - keep.min(held.len()));
        }
        places
    }

    #[test]
    fn memory_of_dropped_records_is_used_again() {
        let places = places(20, 1);
        assert!(
            places[10..]
                .iter()
                .all(|place| places[..10].contains(place))
        );
    }

    /// Reads a stream with a record of 1 KiB in every 64 KiB. Returns the number of records, and
    /// the bytes of memory that they hold together.
    fn held_by_sparse_records(junk: &[u8]) -> (usize, usize) {
        let mut stream = Vec::new();
        let payload = [7; 1024];
        for _ in 0..100 {
            frame::write(&payload, &mut stream);
            stream.extend_from_slice(junk);
        }
        let buffer = FrameBuffer::new(64 << 10, Limits::default()).with_on_error(OnError::Skip);
        let mut all = Vec::new();
        for segment in buffer.segments(&stream) {
            if let Segment::Records(records) = segment.unwrap() {
                let position = records.position(0);
                assert_eq!(
                    position.offset as usize % (payload.len() + HEADER + FOOTER + junk.len()),
                    0
                );
                assert_eq!(records.data(0), Some(payload.as_slice()));
                assert!(records.check_crc(0).is_ok());
                all.push(records);
            }
        }
        (
            all.len(),
            all.iter().map(|records| records.chunk().capacity()).sum(),
        )
    }

    #[test]
    fn sparse_records_hold_a_bounded_multiple_of_their_bytes() {
        let (records, held) = held_by_sparse_records(&[0xa5; 63 << 10]);
        assert_eq!(records, 100);
        assert!(held <= SPARSE * 100 * (1024 + HEADER + FOOTER), "{held}");
    }

    /// The sizes of the chunks that a record of this length is read into, and the record.
    fn sizes_of_chunks(length: usize) -> (Vec<usize>, Records) {
        let mut stream = Vec::new();
        frame::write(&vec![7; length], &mut stream);
        let mut buffer = FrameBuffer::new(4096, Limits::default());
        let mut rest = stream.as_slice();
        let mut sizes = vec![buffer.size.bytes()];
        loop {
            while !rest.is_empty() && !buffer.is_full() {
                rest = &rest[buffer.copy(rest)..];
            }
            if let Some(segment) = buffer.next(false).unwrap() {
                return (sizes, segment.into_records().unwrap());
            }
            sizes.push(buffer.size.bytes());
        }
    }

    #[test]
    fn the_last_chunk_before_that_of_a_long_record_has_a_fraction_of_it() {
        for length in [
            4096,
            20_000,
            32_751,
            32_752,
            32_753,
            40_000,
            65_535,
            1 << 20,
            5_000_001,
        ] {
            let (sizes, records) = sizes_of_chunks(length);
            let frame = length + HEADER + FOOTER;
            let [.., before, last] = sizes[..] else {
                panic!("{sizes:?}")
            };
            assert_eq!((last, records.chunk().len()), (frame, frame), "{sizes:?}");
            assert!(before <= (frame.div_ceil(GROWTH)).max(4096), "{sizes:?}");
            assert!(
                sizes.windows(2).all(|pair| pair[1] <= GROWTH * pair[0]),
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn only_its_records_hold_the_memory_of_a_long_record() {
        let mut stream = Vec::new();
        for length in [1 << 20, 100, 1 << 20] {
            frame::write(&vec![7; length], &mut stream);
        }
        let mut buffer = FrameBuffer::new(4096, Limits::default());
        let mut rest = stream.as_slice();
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            rest = &rest[buffer.copy(rest)..];
            while let Some(segment) = buffer.next(rest.is_empty()).unwrap() {
                let records = segment.into_records().unwrap();
                lengths.extend(records.iter().map(<[u8]>::len));
                assert!(
                    records.len() > 1
                        || lengths.last() == Some(&100)
                        || records.reclaim().is_some()
                );
            }
        }
        assert_eq!(lengths, [1 << 20, 100, 1 << 20]);
    }

    #[test]
    fn memory_of_held_records_is_not_used_again() {
        let mut places = places(20, 20);
        places.sort();
        places.dedup();
        assert_eq!(places.len(), 20);
    }
}
