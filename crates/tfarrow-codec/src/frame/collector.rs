//! Collecting the frames of one batch for the push [`Decoder`](crate::Decoder).
//!
//! ```text
//! push(input)   ─▶ push_frames: complete frames of the input, copied at once
//!               ─▶ push_part:   the rest of a header, then the rest of a frame, as far as the input goes
//!
//! buffer        [frame][frame][frame][beginning of a fra
//!               └──── framed ───────┘└─ part
//! spans         payload, payload, payload
//!
//! take()        [frame][frame][frame] become Records; the part begins the next buffer
//! ```
//!
//! The batch is full once it has `max_records` records, or if the next frame would exceed
//! `max_bytes`. A batch always takes one frame, however long.

use std::mem;

use arrow_buffer::Buffer;

use super::{Framer, HEADER, Records, Span};
use crate::{Limits, Result, slices};

/// Copies frames from input that arrives in parts, until there are enough for a batch.
///
/// A [`FrameBuffer`](super::FrameBuffer) returns the records of chunks, wherever these end. A
/// collector stops after exactly as many records as a batch has, at the price of a copy. The
/// batches thus do not depend on how the input is cut.
#[derive(Debug)]
pub(crate) struct FrameCollector {
    framer: Framer,
    /// Complete frames, and after them the beginning of the next one.
    buffer: Vec<u8>,
    /// The payloads of the complete frames.
    spans: Vec<Span>,
    /// Number of bytes of the complete frames.
    framed: usize,
    /// Whether the next frame has to wait for the next batch.
    is_full: bool,
    /// Maximum number of records of a batch; at least 1.
    max_records: usize,
    /// Maximum number of bytes of a batch, frames included, unless it has one record.
    max_bytes: usize,
}

impl FrameCollector {
    /// Creates a collector of at most `max_records` records with `max_bytes` bytes of frames for
    /// each batch, but always one record.
    pub(crate) fn new(max_records: usize, max_bytes: usize, limits: Limits) -> Self {
        let framer = Framer::new(limits);
        Self {
            framer,
            buffer: Vec::new(),
            spans: Vec::new(),
            framed: 0,
            is_full: false,
            max_records,
            max_bytes,
        }
    }

    /// Takes bytes off the front of `input`, and returns their number: fewer than there are only if
    /// the batch is full.
    ///
    /// # Errors
    /// A length that is corrupt or exceeds [`Limits::record_bytes`], once the records before it
    /// were taken.
    pub(crate) fn push(&mut self, input: &[u8]) -> Result<usize> {
        let mut rest = input;
        while !rest.is_empty() && self.capacity() > 0 {
            let mut taken = self.push_frames(rest);
            if taken == 0 {
                taken = self.push_part(rest)?;
            }
            rest = slices::part(rest, taken..);
        }
        Ok(input.len() - rest.len())
    }

    /// Number of records that still fit into the batch; 0 if it is full.
    pub(crate) fn capacity(&self) -> usize {
        if self.is_full {
            0
        } else {
            self.max_records - self.spans.len()
        }
    }

    /// Returns the records of the batch, and begins the next one; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<Records> {
        self.is_full = false;
        if self.spans.is_empty() {
            return None;
        }
        let part = self.buffer.split_off(self.framed);
        let frames = mem::replace(&mut self.buffer, part);
        self.buffer.reserve(frames.len().min(self.max_bytes));
        let spans = mem::take(&mut self.spans);
        let first = self.framer.record() - spans.len() as u64;
        let offset = self.framer.offset() - mem::take(&mut self.framed) as u64;
        Some(Records::new(Buffer::from_vec(frames), spans, first, offset))
    }

    /// Checks the end of the input.
    ///
    /// # Errors
    /// The input ends inside a frame.
    pub(crate) fn finish(&self) -> Result<()> {
        self.framer.finish(self.part())
    }

    /// The bytes of the next frame, which is not complete.
    fn part(&self) -> &[u8] {
        debug_assert!(
            self.framed <= self.buffer.len(),
            "a frame ends after the buffer"
        );
        slices::part(&self.buffer, self.framed..)
    }

    /// Takes the complete frames at the front of `input` that fit into the batch, and returns the
    /// number of their bytes.
    fn push_frames(&mut self, input: &[u8]) -> usize {
        if !self.part().is_empty() {
            return 0;
        }
        let before = self.spans.len();
        let framed = self.framed;
        let max_records = self.max_records;
        let max_bytes = self.max_bytes;
        let mut records = before;
        let mut bytes = framed;
        // `push_part` takes a corrupt header, and returns its error.
        self.framer
            .cut_while(input, 0, &mut self.spans, |frame| {
                records += 1;
                bytes += frame;
                records <= max_records && (records == 1 || bytes <= max_bytes)
            })
            .ok();
        let new = self.spans.get_mut(before..).unwrap_or_default();
        let taken = new.last().map_or(0, |last| last.frame().end);
        new.iter_mut().for_each(|span| span.start += framed);
        self.buffer.extend_from_slice(slices::part(input, ..taken));
        self.complete(taken);
        taken
    }

    /// Takes bytes of one frame: the rest of its header or, if that is complete, the rest of the
    /// frame. Returns their number; 0 if the frame has to wait for the next batch, which is then
    /// full.
    ///
    /// The error of a header waits until the records before it are taken, as a batch of their own.
    fn push_part(&mut self, input: &[u8]) -> Result<usize> {
        let part = self.part();
        let need = match self.framer.need(part) {
            Ok(Some(frame)) if !self.fits(frame) => None,
            Ok(need) => Some(need),
            Err(_) if !self.spans.is_empty() => None,
            Err(error) => return Err(error),
        };
        let Some(need) = need else {
            self.is_full = true;
            return Ok(0);
        };
        let missing = need.unwrap_or(HEADER).saturating_sub(part.len());
        let bytes = input.get(..missing).unwrap_or(input);
        self.buffer.extend_from_slice(bytes);
        if bytes.len() == missing && need.is_some() {
            self.framer
                .cut(&self.buffer, self.framed, &mut self.spans)?;
            self.complete(self.buffer.len() - self.framed);
        }
        Ok(bytes.len())
    }

    /// Returns `true` if a frame of `frame` bytes fits into the batch. The first one always does.
    fn fits(&self, frame: usize) -> bool {
        self.spans.is_empty() || self.framed + frame <= self.max_bytes
    }

    /// Counts `bytes` bytes of complete frames, and notes whether the batch has all the bytes that
    /// it may have.
    fn complete(&mut self, bytes: usize) {
        self.framed += bytes;
        self.is_full = self.framed > 0 && self.framed >= self.max_bytes;
    }
}
