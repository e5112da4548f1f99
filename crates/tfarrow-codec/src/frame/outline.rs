//! The offsets of records, found by their headers alone.
//!
//! ```text
//! chunks   │ 256 KiB           │ 512 KiB                       │ ..     as a FrameBuffer returns them
//! headers  ├──┬────┬──┬────────┼───┬───────┬───┬──────────┬────┼───
//! ranges   └─ range ─┴─ range ─┴──── range ────┴─ range ───┴────┴───   each is a part of one chunk
//! ```

use super::{FOOTER, Framer, HEADER, chunk_size::ChunkSize};
use crate::{ErrorKind, Limits, Result};

/// Consecutive records of a stream, whose offsets are known and which were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    /// The number of the first record.
    pub first: u64,
    /// The number of records.
    pub records: usize,
    /// The offset in the stream of the first record's frame.
    pub offset: u64,
    /// The number of bytes of all frames.
    pub bytes: usize,
}

/// Finds the records of a stream by their headers, in the chunks in which a
/// [`FrameBuffer`](super::FrameBuffer) returns them. Readers of these ranges therefore make the
/// same batches as a reader of the stream.
#[derive(Clone, Debug)]
pub struct Outline {
    framer: Framer,
    size: ChunkSize,
    /// The first record of the chunk, and the offset of the chunk.
    first: u64,
    offset: u64,
}

impl Outline {
    /// Creates an outline of a stream from its beginning, with chunks of `target` bytes.
    pub fn new(target: usize, limits: Limits) -> Self {
        Self {
            framer: Framer::new(limits),
            size: ChunkSize::new(target),
            first: 0,
            offset: 0,
        }
    }

    /// The number of the next record.
    pub fn record(&self) -> u64 {
        self.framer.record()
    }

    /// The offset of the next record.
    pub fn offset(&self) -> u64 {
        self.framer.offset()
    }

    /// The chunk that contains the next record: the number of its first record, its offset, and its
    /// size.
    pub fn chunk(&self) -> (u64, u64, ChunkSize) {
        (self.first, self.offset, self.size)
    }

    /// The next records of a stream of `size` bytes: at most `rows`, whose payloads have at most
    /// `bytes`, but at least one record; `None` at the end of the stream. `header` returns the
    /// header of a frame at an offset.
    ///
    /// # Errors
    /// Errors of `header`; a length that is corrupt or exceeds the limit, and a stream that ends
    /// inside a frame. The records before these are returned first.
    pub fn next<E: From<crate::Error>>(
        &mut self,
        size: u64,
        rows: usize,
        bytes: usize,
        mut header: impl FnMut(u64) -> Result<[u8; HEADER], E>,
    ) -> Result<Option<FrameRange>, E> {
        let first = self.framer.record();
        let offset = self.framer.offset();
        let mut payload = 0usize;
        let mut records = 0;
        while records < rows.max(1) && self.framer.offset() < size {
            let frame = match self.frame(size, &mut header) {
                Ok(frame) => frame,
                Err(_) if records > 0 => break,
                Err(error) => return Err(error),
            };
            if !self.holds(frame) {
                if records > 0 {
                    break;
                }
                self.begin_chunk(frame);
                continue;
            }
            payload = payload.saturating_add(frame - HEADER - FOOTER);
            if records > 0 && payload > bytes {
                break;
            }
            self.framer.advance(frame);
            records += 1;
        }
        let bytes = (self.framer.offset() - offset) as usize;
        Ok((records > 0).then_some(FrameRange {
            first,
            records,
            offset,
            bytes,
        }))
    }

    /// The length of the next frame, which is complete.
    fn frame<E: From<crate::Error>>(
        &self,
        size: u64,
        header: &mut impl FnMut(u64) -> Result<[u8; HEADER], E>,
    ) -> Result<usize, E> {
        let left = size - self.framer.offset();
        let truncated = |expected| ErrorKind::Truncated {
            found: left,
            expected,
        };
        if left < HEADER as u64 {
            return Err(self.framer.error(truncated(None)).into());
        }
        let frame = self.framer.frame(&header(self.framer.offset())?)?;
        if frame as u64 > left {
            return Err(self.framer.error(truncated(Some(frame as u64))).into());
        }
        Ok(frame)
    }

    /// Whether the chunk contains all of the next frame, which has `frame` bytes.
    fn holds(&self, frame: usize) -> bool {
        self.framer.offset() + frame as u64 <= self.offset + self.size.bytes() as u64
    }

    /// Begins the chunk that contains the next frame.
    fn begin_chunk(&mut self, frame: usize) {
        while !self.holds(frame) {
            let taken = self.framer.offset() - self.offset;
            let rest = (self.size.bytes() as u64).saturating_sub(taken) as usize;
            let need = (rest >= HEADER).then_some(frame);
            self.size.advance(taken > 0, rest, need);
            (self.first, self.offset) = (self.framer.record(), self.framer.offset());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FrameBuffer, frame::write};

    /// The ranges of a stream, or those before an error.
    fn ranges(
        stream: &[u8],
        target: usize,
        rows: usize,
        bytes: usize,
    ) -> (Vec<FrameRange>, Option<String>) {
        let mut outline = Outline::new(target, Limits::default());
        let mut all = Vec::new();
        loop {
            let header =
                |at: u64| Ok::<_, crate::Error>(*stream[at as usize..].first_chunk().unwrap());
            match outline.next(stream.len() as u64, rows, bytes, header) {
                Ok(Some(range)) => all.push(range),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    /// The ranges of the records that a buffer returns, as `Records::fit` divides them.
    fn read(
        stream: &[u8],
        target: usize,
        rows: usize,
        bytes: usize,
    ) -> (Vec<FrameRange>, Option<String>) {
        let mut all = Vec::new();
        for segment in FrameBuffer::new(target, Limits::default()).segments(stream) {
            let mut records = match segment {
                Ok(segment) => segment.into_records().unwrap(),
                Err(error) => return (all, Some(error.to_string())),
            };
            while !records.is_empty() {
                let (some, rest) = records.clone().split_at(records.fit(rows, bytes));
                let first = some.first();
                let offset = some.position(0).offset;
                all.push(FrameRange {
                    first,
                    records: some.len(),
                    offset,
                    bytes: some.bytes(),
                });
                records = rest;
            }
        }
        (all, None)
    }

    proptest! {
        #[test]
        fn ranges_are_those_of_the_chunks_of_a_buffer(
            lengths in prop::collection::vec(
                prop_oneof![0..100usize, 2000..9000usize, 0..150_000usize, 0..900_000usize],
                0..30,
            ),
            target in prop_oneof![1..40_000usize, 200_000..3_000_000usize],
            rows in prop_oneof![1..20usize, Just(usize::MAX)],
            bytes in prop_oneof![1..20_000usize, Just(usize::MAX)],
            cut in 0..40usize,
            flip in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut stream = Vec::new();
            for length in lengths {
                write(&vec![7; length], &mut stream);
            }
            stream.truncate(stream.len().saturating_sub(cut));
            if let Some(flip) = flip && !stream.is_empty() {
                let at = flip.index(stream.len());
                stream[at] ^= 1;
            }
            prop_assert_eq!(ranges(&stream, target, rows, bytes), read(&stream, target, rows, bytes));
        }
    }
}
