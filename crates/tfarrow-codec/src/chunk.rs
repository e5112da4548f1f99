//! Chunks: megabytes of a stream, gathered, cut into whole records, and handed on reference-counted.

use std::{collections::VecDeque, mem};

use arrow_buffer::Buffer;

use crate::{
    Error, ErrorKind, Limits, Position, Result, VerifyCrc, WireError,
    crc::masked,
    frame::{FOOTER, Framer, HEADER, Span},
    resync::{Extent, Loss},
    walk,
};

/// Whole records that lie in one chunk. Cheap to clone and to slice; a unit of work for any thread.
#[derive(Clone, Debug)]
pub struct Records {
    chunk: Buffer,
    spans: Vec<Span>,
    /// The number in its shard of the first record.
    first: u64,
    /// The offset in its shard of the chunk's first byte.
    offset: u64,
}

impl Records {
    /// The records at these places of a chunk, which lies at `offset` in its shard.
    pub(crate) fn new(chunk: Buffer, spans: Vec<Span>, first: u64, offset: u64) -> Self {
        Self { chunk, spans, first, offset }
    }

    /// Copies the records out of a chunk that they fill a small part of, so that holding them never takes much more memory
    /// than they have bytes: damage can leave one record in a chunk of megabytes.
    fn detached(self) -> Self {
        let frames = self.frames();
        if frames.len() > self.chunk.capacity() / SPARSE {
            return self;
        }
        let start = self.spans.first().map_or(0, |span| span.start - HEADER);
        let chunk = Buffer::from_vec(frames.to_vec());
        let spans = self.spans.iter().map(|span| Span { start: span.start - start, ..*span }).collect();
        Self { chunk, spans, first: self.first, offset: self.offset + start as u64 }
    }

    /// The memory that the records lie in, where nobody else holds it: to be filled again.
    pub fn reclaim(self) -> Option<Vec<u8>> {
        self.chunk.into_vec().ok()
    }

    /// How many records these are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number in its shard of the first record.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Bytes of the shard that these records take, frames included.
    pub fn bytes(&self) -> usize {
        self.spans.iter().map(|s| HEADER + s.len + FOOTER).sum()
    }

    /// The data of record `index`, counted from the first of these.
    pub fn data(&self, index: usize) -> Option<&[u8]> {
        let span = self.spans.get(index)?;
        self.chunk.get(span.start..span.start + span.len)
    }

    /// The records as they stand in the shard, one frame after the other, CRCs and all.
    pub fn frames(&self) -> &[u8] {
        let (Some(first), Some(last)) = (self.spans.first(), self.spans.last()) else { return &[] };
        self.chunk.get(first.start - HEADER..last.start + last.len + FOOTER).unwrap_or_default()
    }

    /// The data of each record.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.data(i).unwrap_or_default())
    }

    /// Parts the records in two: the first `count`, and the rest.
    pub fn split_at(mut self, count: usize) -> (Self, Self) {
        let rest = self.spans.split_off(count.min(self.spans.len()));
        let first = self.first + self.spans.len() as u64;
        let rest = Self { chunk: self.chunk.clone(), spans: rest, first, offset: self.offset };
        (self, rest)
    }

    /// How many of the first records hold at most `rows` records and `bytes` bytes; at least one where there is one.
    pub fn fit(&self, rows: usize, bytes: usize) -> usize {
        let mut sum = 0usize;
        let fits = |span: &&Span| {
            sum = sum.saturating_add(span.len);
            sum <= bytes
        };
        let count = self.spans.iter().take(rows).take_while(fits).count();
        count.max(1).min(self.spans.len())
    }

    /// The bytes that the records' data lies in.
    pub(crate) fn chunk(&self) -> &Buffer {
        &self.chunk
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Checks the data CRC of record `index`.
    ///
    /// # Errors
    /// [`ErrorKind::DataCrc`] where it does not hold.
    pub fn check_crc(&self, index: usize) -> Result<()> {
        let Some(span) = self.spans.get(index) else { return Ok(()) };
        let end = span.start + span.len;
        let data = self.chunk.get(span.start..end).unwrap_or_default();
        let footer = self.chunk.get(end..).unwrap_or_default();
        let found = footer.first_chunk::<FOOTER>().map_or(0, |crc| u32::from_le_bytes(*crc));
        let expected = masked(data);
        if expected == found { Ok(()) } else { Err(self.error(ErrorKind::DataCrc { expected, found }, index)) }
    }

    /// Checks the data CRC of every record.
    ///
    /// # Errors
    /// [`ErrorKind::DataCrc`] of the first for which it does not hold.
    pub fn verify(&self, verify: VerifyCrc) -> Result<()> {
        match verify {
            VerifyCrc::Always => (0..self.len()).try_for_each(|i| self.check_crc(i)),
            VerifyCrc::OnParseFailure | VerifyCrc::Never => Ok(()),
        }
    }

    /// Where record `index` of these stands in its shard.
    pub fn position(&self, index: usize) -> Position {
        let start = self.spans.get(index).map_or(0, |s| s.start - HEADER);
        Position { record: self.first + index as u64, offset: self.offset + start as u64, feature: None }
    }

    /// The error that a value of record `index` of these is not as a reader declared it.
    pub fn misfit(&self, index: usize, feature: &str, expected: String, found: String) -> Error {
        self.error(ErrorKind::Declared { expected, found }, index).with_feature(feature)
    }

    /// The error that record `index` of these cannot be read, or has more than `limits` allow.
    /// `lists` tells whether it may have feature lists.
    pub fn unreadable(&self, error: WireError, index: usize, lists: bool, limits: &Limits) -> Error {
        let data = self.data(index).unwrap_or_default();
        let mut feature = None;
        let (what, limit, found, name) = match error {
            WireError::LongKey => {
                let found = walk::longest_key(data, lists, limits.nesting);
                ("bytes in the name of a feature", limits.key_bytes, found, "key-bytes")
            }
            WireError::ManyFeatures => {
                let found = walk::count_entries(data, lists, limits.nesting).unwrap_or_default();
                ("features in one record", limits.record_features, found, "record-features")
            }
            WireError::ManyValues => {
                let found = walk::long_feature(data, lists, limits);
                let found = found.map_or(0, |(found, name)| {
                    feature = Some(name);
                    found
                });
                ("values", limits.values, found, "values")
            }
            _ => return self.error(ErrorKind::Wire(error), index),
        };
        let kind = ErrorKind::Limit { what, limit: limit as u64, found: found as u64, name: Some(name) };
        let error = self.error(kind, index);
        feature.into_iter().fold(error, |error, feature| error.with_feature(&feature))
    }

    /// The error that these records have more together than Arrow can count.
    pub(crate) fn overflow(&self, what: &'static str, found: u64, limit: u64) -> Error {
        self.error(ErrorKind::BatchLimit { what, limit, found, records: self.len() as u64 }, 0)
    }

    /// An error in record `index` of these.
    pub(crate) fn error(&self, kind: ErrorKind, index: usize) -> Error {
        Error::new(kind, self.position(index))
    }
}

/// What comes next in a stream that is read on behind damage.
#[derive(Debug)]
pub enum Segment {
    /// Whole records.
    Records(Records),
    /// Bytes that no record can be made of.
    Lost(Lost),
}

/// Bytes of a stream that no record can be made of: a stretch of it, or a part of one that is long.
#[derive(Debug)]
pub struct Lost {
    /// What is wrong; `None` where this goes on with the stretch that was told of before. A stretch counts as one record,
    /// for how many it was nobody can tell.
    pub error: Option<Error>,
    /// Where it lies in its shard.
    pub offset: u64,
    /// The bytes themselves.
    pub bytes: Buffer,
}

/// Gathers a stream's bytes into chunks and cuts these into whole records.
///
/// Read into [`spare`](Self::spare), tell how much with [`advance`](Self::advance), and [`cut`](Self::cut) once it
/// [`is_full`](Self::is_full). What is left of a record is carried over to the next chunk. A chunk is longer than its
/// target only where one record is, and grows no faster than bytes come in.
#[derive(Debug)]
pub struct Chunker {
    framer: Framer,
    buffer: Vec<u8>,
    filled: usize,
    target: usize,
    /// The size of the chunk in hand: grows to the target, so that the first records of a large shard come at once.
    size: usize,
    /// The last chunks that were handed on. Memory that nobody holds any more is filled again: it need not be cleared,
    /// and may still be in a core's cache.
    lent: VecDeque<Buffer>,
    /// Where the stream is read on behind damage: the chunk in hand, as long as there is something in it to hand on.
    frozen: Option<Frozen>,
    /// The stretch in hand that no record can be made of.
    loss: Option<Loss>,
}

/// A chunk that parts are handed on of.
#[derive(Debug)]
struct Frozen {
    chunk: Buffer,
    /// What was handed on, and up to where there are bytes.
    at: usize,
    filled: usize,
}

impl Frozen {
    fn rest(&self) -> &[u8] {
        self.chunk.get(self.at..self.filled).unwrap_or_default()
    }
}

/// Bytes that are known to be lost, and are held back at most, while a record's end is waited for.
const LOST: usize = 64 << 20;

/// Records that fill less than this part of their chunk are copied out of it.
const SPARSE: usize = 4;

/// How many chunks are looked after: as many as are usually at work at once.
const LENT: usize = 4;

/// What the first chunk of a stream holds, in bytes.
const FIRST_CHUNK: usize = 256 << 10;

impl Chunker {
    /// Chunks of `target` bytes; at least 4 KiB, and at most 1 GiB: places in a chunk are counted in 32 bits.
    pub fn new(target: usize, limits: Limits) -> Self {
        let target = target.clamp(4 << 10, 1 << 30);
        let (size, lent) = (target.min(FIRST_CHUNK), VecDeque::new());
        Self {
            framer: Framer::new(limits),
            buffer: Vec::new(),
            filled: 0,
            target,
            size,
            lent,
            frozen: None,
            loss: None,
        }
    }

    /// Room for the stream's next bytes; never empty while the chunk is not full.
    pub fn spare(&mut self) -> &mut [u8] {
        self.thaw(None);
        if self.buffer.len() < self.size {
            self.buffer.resize(self.size, 0);
        }
        self.buffer.get_mut(self.filled..).unwrap_or_default()
    }

    /// Declares the first `count` bytes of [`spare`](Self::spare) written.
    pub fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buffer.len());
    }

    /// Copies as much off the front of `input` as there is room for, and returns how much that is.
    pub fn fill(&mut self, input: &[u8]) -> usize {
        let spare = self.spare();
        let count = spare.len().min(input.len());
        if let (Some(to), Some(from)) = (spare.get_mut(..count), input.get(..count)) {
            to.copy_from_slice(from);
        }
        self.advance(count);
        count
    }

    /// Whether the chunk has no room left, or something to hand on before it takes more.
    pub fn is_full(&self) -> bool {
        self.frozen.is_some() || self.filled >= self.size
    }

    /// The number of the next record that will be cut.
    pub fn record(&self) -> u64 {
        self.framer.record
    }

    /// The offset in the stream of the next record.
    pub fn offset(&self) -> u64 {
        self.framer.offset
    }

    /// Counts a stretch of the stream that is lost before its bytes came.
    pub fn count_lost(&mut self) {
        self.framer.record += 1;
    }

    /// Takes the whole records gathered so far; `None` where there is none.
    ///
    /// # Errors
    /// What [`frame`](crate::frame) says of a header. Records before it come first: the error is the next call's.
    pub fn cut(&mut self) -> Result<Option<Records>> {
        let (first, offset) = (self.framer.record, self.framer.offset);
        let mut spans = Vec::new();
        let filled = self.buffer.get(..self.filled).unwrap_or_default();
        if let Err(error) = self.framer.cut(filled, &mut spans)
            && spans.is_empty()
        {
            return Err(error);
        }
        let Some(last) = spans.last() else {
            let need = self.framer.need(self.buffer.get(..self.filled).unwrap_or_default())?;
            self.grow(need);
            return Ok(None);
        };
        let taken = last.start + last.len + FOOTER;
        self.size = (self.size * 2).min(self.target);
        let rest = taken..self.filled;
        self.size = self.size.max(rest.len() + 1);
        let next = self.memory();
        let full = mem::replace(&mut self.buffer, next);
        self.filled = rest.len();
        if let (Some(head), Some(rest)) = (self.buffer.get_mut(..rest.len()), full.get(rest)) {
            head.copy_from_slice(rest);
        }
        let chunk = Buffer::from_vec(full);
        if chunk.len() <= self.target {
            self.lent.push_back(chunk.clone());
        }
        Ok(Some(Records { chunk, spans, first, offset }.detached()))
    }

    /// What comes next, damage included; `None` where more bytes are needed, or, where the stream has `ended`, at its
    /// end. Behind a frame whose length cannot be believed, records go on where both CRCs of a frame hold.
    ///
    /// ```
    /// use tfarrow_codec::{Chunker, Limits, Segment, frame};
    /// let mut stream = Vec::new();
    /// frame::write(b"one", &mut stream);
    /// frame::write(b"two", &mut stream);
    /// stream[0] ^= 1;
    /// let mut chunker = Chunker::new(1 << 20, Limits::default());
    /// chunker.fill(&stream);
    /// let Some(Segment::Lost(lost)) = chunker.read_on(true) else { panic!() };
    /// assert_eq!((lost.offset, lost.bytes.len()), (0, 19));
    /// let Some(Segment::Records(records)) = chunker.read_on(true) else { panic!() };
    /// assert_eq!(records.iter().collect::<Vec<_>>(), [b"two"]);
    /// assert!(chunker.read_on(true).is_none());
    /// ```
    pub fn read_on(&mut self, ended: bool) -> Option<Segment> {
        if self.frozen.is_none() {
            let chunk = Buffer::from_vec(mem::take(&mut self.buffer));
            self.frozen = Some(Frozen { chunk, at: 0, filled: mem::take(&mut self.filled) });
        }
        let segment = self.segment(ended);
        match segment {
            Err(need) => {
                self.thaw(need);
                None
            }
            Ok(segment) => Some(segment),
        }
    }

    /// What comes next in the frozen chunk; else how many bytes it takes to tell, as far as that is known.
    fn segment(&mut self, ended: bool) -> Result<Segment, Option<usize>> {
        loop {
            let Some(frozen) = &self.frozen else { return Err(None) };
            let extent = self.loss.as_mut().map(|loss| loss.extent(frozen.rest(), ended, self.framer.record_bytes()));
            match extent {
                None => {}
                Some(Extent::Whole(bytes)) => return Ok(Segment::Lost(self.lose(bytes, true))),
                Some(Extent::Part(bytes)) if bytes > 0 => return Ok(Segment::Lost(self.lose(bytes, false))),
                Some(Extent::Unsure { before, .. }) if before >= LOST => {
                    return Ok(Segment::Lost(self.lose(before, false)));
                }
                // A little more, so that the next place that looks like a record does not ask for so many bytes anew.
                Some(Extent::Unsure { need, .. }) => return Err(Some(need + need / 8)),
                Some(Extent::Part(_)) => return Err(None),
            }
            let (first, offset) = (self.framer.record, self.framer.offset - frozen.at as u64);
            let mut spans = Vec::new();
            let cut = self.framer.cut(frozen.rest(), &mut spans);
            if let Some(last) = spans.last() {
                let (at, taken) = (frozen.at, last.start + last.len + FOOTER);
                spans.iter_mut().for_each(|span| span.start += at);
                let records = Records { chunk: frozen.chunk.clone(), spans, first, offset }.detached();
                self.pass(taken);
                return Ok(Segment::Records(records));
            }
            let rest = frozen.rest();
            match cut.and_then(|_| if ended { self.framer.finish(rest) } else { Ok(()) }) {
                Err(error) => self.loss = Some(Loss::of(error)),
                Ok(()) => return Err(self.framer.need(rest).unwrap_or_default()),
            }
        }
    }

    /// Goes on behind so many bytes of the frozen chunk.
    fn pass(&mut self, bytes: usize) {
        if let Some(frozen) = &mut self.frozen {
            frozen.at += bytes;
        }
    }

    /// Hands on the first bytes of the loss in hand, which ends with them where they are its `last`.
    fn lose(&mut self, bytes: usize, last: bool) -> Lost {
        let offset = self.framer.offset;
        self.framer.offset += bytes as u64;
        let lost = self.frozen.as_ref().map(|frozen| frozen.chunk.slice_with_length(frozen.at, bytes));
        self.pass(bytes);
        let error = self.loss.as_mut().and_then(|loss| {
            loss.pass(bytes);
            loss.error.take()
        });
        if last {
            self.loss = None;
            self.framer.record += 1;
        }
        Lost { error, offset, bytes: lost.unwrap_or_default() }
    }

    /// Makes room behind what is left of the frozen chunk: in its own memory, where nobody holds it any more.
    fn thaw(&mut self, need: Option<usize>) {
        let Some(Frozen { chunk, at, filled }) = self.frozen.take() else { return };
        let rest = filled - at;
        self.filled = rest;
        match chunk.into_vec() {
            Ok(mut memory) => {
                memory.copy_within(at..filled, 0);
                self.buffer = memory;
            }
            Err(chunk) => {
                self.buffer = vec![0; self.size.max(rest)];
                if let (Some(to), Some(from)) = (self.buffer.get_mut(..rest), chunk.get(at..filled)) {
                    to.copy_from_slice(from);
                }
            }
        }
        self.size = self.size.max(self.target).max(rest);
        self.grow(need);
    }

    /// Memory for the next chunk.
    fn memory(&mut self) -> Vec<u8> {
        for _ in 0..self.lent.len() {
            match self.lent.pop_front().map(Buffer::into_vec) {
                Some(Ok(memory)) if memory.len() == self.size => return memory,
                Some(Err(held)) if self.lent.len() + 1 < LENT => self.lent.push_back(held),
                _ => {}
            }
        }
        vec![0; self.size]
    }

    /// Declares the end of the stream.
    ///
    /// # Errors
    /// Where bytes are left that are no whole record.
    pub fn finish(&self) -> Result<()> {
        self.framer.finish(self.buffer.get(..self.filled).unwrap_or_default())
    }

    /// Makes room for a record that is longer than the chunk, and `need`s so many bytes in it: twice what is there, for a
    /// length is only a word until its bytes have come.
    fn grow(&mut self, need: Option<usize>) {
        if self.is_full() {
            let twice = self.size.saturating_mul(2);
            self.size = need.map_or(twice, |need| twice.min(need.max(self.size + 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    /// A stream of `count` records that fill a chunk each, and cuts it with `keep` chunks held. Returns where each lay.
    fn places(count: u8, keep: usize) -> Vec<*const u8> {
        let mut stream = Vec::new();
        for record in 0..count {
            frame::begin(4096 - HEADER - FOOTER, &mut stream);
            let start = stream.len();
            stream.resize(start + 4096 - HEADER - FOOTER, record);
            frame::end(start, &mut stream);
        }
        let mut chunker = Chunker::new(4096, Limits::default());
        let (mut held, mut places) = (VecDeque::new(), Vec::new());
        for (number, mut rest) in (0..).zip(stream.chunks(4096)) {
            while !rest.is_empty() {
                rest = &rest[chunker.fill(rest)..];
            }
            let records = chunker.cut().unwrap().unwrap();
            places.push(records.chunk.as_ptr());
            held.push_back((number, records));
            assert!(held.iter().all(|(number, records)| records.data(0).unwrap().iter().all(|byte| byte == number)));
            held.drain(..held.len() - keep.min(held.len()));
        }
        places
    }

    #[test]
    fn memory_that_is_free_is_filled_again() {
        let places = places(20, 1);
        assert!(places[10..].iter().all(|place| places[..10].contains(place)));
    }

    /// Bytes of memory that the records of a stream with one record of 1 KiB in each 64 KiB of it hold together.
    fn held_by_sparse_records(junk: &[u8]) -> (usize, usize) {
        let (mut stream, payload) = (Vec::new(), [7; 1024]);
        for _ in 0..100 {
            frame::write(&payload, &mut stream);
            stream.extend_from_slice(junk);
        }
        let mut chunker = Chunker::new(64 << 10, Limits::default());
        let (mut rest, mut all) = (stream.as_slice(), Vec::new());
        while !rest.is_empty() || chunker.is_full() {
            let taken = chunker.fill(rest);
            rest = &rest[taken..];
            while let Some(segment) = chunker.read_on(rest.is_empty()) {
                if let Segment::Records(records) = segment {
                    let position = records.position(0);
                    assert_eq!(position.offset as usize % (payload.len() + HEADER + FOOTER + junk.len()), 0);
                    assert_eq!(records.data(0), Some(payload.as_slice()));
                    assert!(records.check_crc(0).is_ok());
                    all.push(records);
                }
            }
        }
        (all.len(), all.iter().map(|records| records.chunk.capacity()).sum())
    }

    #[test]
    fn records_among_junk_hold_no_more_memory_than_their_bytes_need() {
        let (records, held) = held_by_sparse_records(&[0xa5; 63 << 10]);
        assert_eq!(records, 100);
        assert!(held <= SPARSE * 100 * (1024 + HEADER + FOOTER), "{held}");
    }

    #[test]
    fn memory_that_is_held_is_not() {
        let mut places = places(20, 20);
        places.sort();
        places.dedup();
        assert_eq!(places.len(), 20);
    }
}
