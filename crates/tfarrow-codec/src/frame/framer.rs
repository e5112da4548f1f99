//! The framing loop, which goes from header to header.
//!
//! ```text
//! bytes   │ header │ payload     │ footer │ header │ payload │ footer │ head..
//!         └ at                            └ at += 12 + length + 4     └ at: more bytes needed
//! spans             start, len                      start, len
//! ```
//!
//! It reads only headers: the CRC of a payload is checked where the record is decoded, by
//! [`Records`](super::Records).

use std::ops::Range;

use super::{FOOTER, HEADER, split};
use crate::{Error, ErrorKind, Limit, Limits, MOST_RECORD_BYTES, Result, slices};

/// The position of a record's payload in the chunk of memory that holds its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index of the payload's first byte; never less than [`HEADER`].
    pub(crate) start: usize,
    /// Length of the payload in bytes.
    pub(crate) len: usize,
}

impl Span {
    /// The place of a message without bytes.
    pub(crate) const EMPTY: Self = Self {
        start: HEADER,
        len: 0,
    };

    /// The place of a message.
    pub(crate) fn new(start: usize, len: usize) -> Self {
        Self { start, len }
    }

    /// Bytes of the payload.
    pub(crate) fn payload(self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// Bytes of the frame: header, payload and footer.
    pub(crate) fn frame(self) -> Range<usize> {
        self.start - HEADER..self.start + self.len + FOOTER
    }
}

/// Finds the frames of a stream, and counts its records and bytes.
///
/// For [`FrameBuffer`](super::FrameBuffer), and for readers that load parts of a file out of order:
/// see [`cut_at`](Self::cut_at).
#[derive(Clone, Debug, Default)]
pub struct Framer {
    /// Number of records found so far, which is the number of the next one.
    pub(super) record: u64,
    /// Number of bytes of the stream before the next frame.
    pub(super) offset: u64,
    /// The limits, of which `record_bytes` is at most [`MOST_RECORD_BYTES`].
    limits: Limits,
}

impl Framer {
    /// Creates a framer at the beginning of a stream. A limit for records of more than
    /// [`MOST_RECORD_BYTES`] counts as that.
    pub fn new(mut limits: Limits) -> Self {
        // No sum of lengths overflows, and positions in a record fit into 32 bits.
        limits.record_bytes = limits.record_bytes.min(MOST_RECORD_BYTES);
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Sets the position of the first byte: the start of record `record`, at the offset `offset`.
    pub fn at(self, record: u64, offset: u64) -> Self {
        Self {
            record,
            offset,
            ..self
        }
    }

    /// Number of the next record.
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Offset in the stream of the next frame, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length in bytes of the longest payload that is accepted.
    pub(super) fn record_bytes(&self) -> usize {
        self.limits.record_bytes
    }

    /// Appends to `spans` each complete frame of `bytes` from index `start` on, and returns the
    /// index after the last one.
    ///
    /// # Errors
    /// The errors of [`cut_while`](Self::cut_while).
    pub(super) fn cut(
        &mut self,
        bytes: &[u8],
        start: usize,
        spans: &mut Vec<Span>,
    ) -> Result<usize> {
        self.cut_while(bytes, start, spans, |_| true)
    }

    /// Appends frames to `spans` as [`cut`](Self::cut) does, up to the first frame whose length in
    /// bytes `accept` rejects.
    ///
    /// # Errors
    /// A length whose CRC does not match or that exceeds the limit. The frames before it were
    /// appended to `spans`.
    #[inline]
    pub(super) fn cut_while(
        &mut self,
        bytes: &[u8],
        start: usize,
        spans: &mut Vec<Span>,
        mut accept: impl FnMut(usize) -> bool,
    ) -> Result<usize> {
        debug_assert!(
            start <= bytes.len(),
            "the first frame begins after the end of the bytes"
        );
        let mut at = start;
        while let Some(frame) = self.need(slices::part(bytes, at..))? {
            if bytes.len() - at < frame || !accept(frame) {
                break;
            }
            spans.push(Span {
                start: at + HEADER,
                len: frame - HEADER - FOOTER,
            });
            at += frame;
            self.advance(frame);
        }
        Ok(at)
    }

    /// Appends to `spans` the complete frames of `part` that no earlier call has found, where
    /// `part` is the part of the stream at `offset`. Returns by how many bytes `part` has to be
    /// extended to contain the rest of the next frame or, if that is not known yet, of its header;
    /// 0 if it ends with a frame.
    ///
    /// ```
    /// use tfarrow_codec::{Limits, frame::{self, Framer, Records}};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let mut stream = Vec::new();
    /// frame::write(b"one", &mut stream);
    /// frame::write(b"two", &mut stream);
    /// let mut framer = Framer::new(Limits::default());
    /// let mut spans = Vec::new();
    /// // The first record has 19 bytes. Of the second one, 17 are missing.
    /// assert_eq!(framer.cut_at(&stream[..21], 0, &mut spans)?, 10);
    /// assert_eq!(framer.cut_at(&stream[..31], 0, &mut spans)?, 7);
    /// assert_eq!(framer.cut_at(&stream, 0, &mut spans)?, 0);
    /// let records = Records::new(stream.into(), spans, 0, 0);
    /// assert_eq!(records.iter().collect::<Vec<_>>(), [b"one", b"two"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A length whose CRC does not match, or that exceeds the limit.
    pub fn cut_at(&mut self, part: &[u8], offset: u64, spans: &mut Vec<Span>) -> Result<usize> {
        let start = self.index_in(part, offset);
        let end = self.cut(part, start, spans)?;
        let rest = slices::part(part, end..);
        if rest.is_empty() {
            return Ok(0);
        }
        Ok(self
            .need(rest)?
            .unwrap_or(HEADER)
            .saturating_sub(rest.len()))
    }

    /// Returns the error that the stream, which has `size` bytes, ends inside the next frame.
    /// `part`, which is the part of the stream at `offset`, may contain its header.
    pub fn truncated_at(&self, part: &[u8], offset: u64, size: u64) -> Error {
        let rest = slices::part(part, self.index_in(part, offset)..);
        self.truncated(rest, size.saturating_sub(self.offset))
    }

    /// Index in `part`, which lies at `offset`, of the next frame; its length if that frame begins
    /// after it.
    fn index_in(&self, part: &[u8], offset: u64) -> usize {
        debug_assert!(
            offset <= self.offset,
            "the part begins after the next frame"
        );
        usize::try_from(self.offset.saturating_sub(offset))
            .unwrap_or(usize::MAX)
            .min(part.len())
    }

    /// Counts a record whose frame has `frame` bytes.
    pub(super) fn advance(&mut self, frame: usize) {
        self.record += 1;
        self.offset += frame as u64;
    }

    /// Length in bytes of the frame that `rest` begins with; `None` if `rest` is shorter than a
    /// header.
    ///
    /// # Errors
    /// A length whose CRC does not match or that exceeds the limit.
    #[inline]
    pub(super) fn need(&self, rest: &[u8]) -> Result<Option<usize>> {
        match rest.first_chunk() {
            Some(header) => self.frame(header).map(Some),
            None => Ok(None),
        }
    }

    /// Length in bytes of the frame with this header.
    ///
    /// # Errors
    /// A length whose CRC does not match or that exceeds the limit.
    #[inline]
    pub(super) fn frame(&self, header: &[u8; HEADER]) -> Result<usize> {
        let (length, expected, found) = split(header);
        if expected != found {
            return Err(self.error(ErrorKind::LengthCrc { expected, found }));
        }
        match usize::try_from(length) {
            Ok(length) if length <= self.limits.record_bytes => Ok(HEADER + length + FOOTER),
            _ => Err(self.error(too_long(length, self.limits.record_bytes))),
        }
    }

    /// Checks the end of the stream, whose bytes after the last complete frame are `rest`.
    ///
    /// # Errors
    /// The stream ends inside a frame, or the frame's length is corrupt or exceeds the limit.
    pub(super) fn finish(&self, rest: &[u8]) -> Result<()> {
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.truncated(rest, rest.len() as u64))
        }
    }

    /// Returns the error that the stream ends after `found` bytes of the frame that begins with
    /// `rest`, or the error in that frame's header.
    fn truncated(&self, rest: &[u8], found: u64) -> Error {
        let need = self.need(rest);
        need.map_or_else(
            |error| error,
            |expected| {
                self.error(ErrorKind::Truncated {
                    found,
                    expected: expected.map(|bytes| bytes as u64),
                })
            },
        )
    }

    /// Makes an error at the next frame.
    #[cold]
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::at(kind, self.record, self.offset)
    }
}

/// The error that a payload of `found` bytes exceeds `limit`.
pub(super) fn too_long(found: u64, limit: usize) -> ErrorKind {
    let what = "bytes in one record";
    let name = Some(Limit::RecordBytes);
    ErrorKind::Limit {
        what,
        limit: limit as u64,
        found,
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{begin, length, write};

    #[test]
    fn frames_that_are_written_are_found() {
        let mut bytes = Vec::new();
        for data in [&b"one"[..], b"", b"three"] {
            write(data, &mut bytes);
        }
        let mut framer = Framer::new(Limits::default());
        let mut spans = Vec::new();
        assert_eq!(framer.cut(&bytes, 0, &mut spans).unwrap(), bytes.len());
        let data: Vec<_> = spans
            .iter()
            .map(|s| &bytes[s.start..s.start + s.len])
            .collect();
        assert_eq!(data, [&b"one"[..], b"", b"three"]);
        assert_eq!((framer.record, framer.offset), (3, bytes.len() as u64));
        assert!(framer.finish(b"").is_ok());
        assert_eq!(
            framer.finish(b"x").unwrap_err().to_string(),
            format!(
                "record 3 (byte {}): the file ends inside a record's header: found 1 of 12 bytes",
                bytes.len()
            )
        );
    }

    #[test]
    fn a_length_with_another_crc_is_an_error() {
        let mut bytes = Vec::new();
        write(b"data", &mut bytes);
        bytes[5] ^= 1;
        let error = Framer::default()
            .cut(&bytes, 0, &mut Vec::new())
            .unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::LengthCrc { .. }));
        assert_eq!(length(&bytes), None);
    }

    #[test]
    fn a_record_above_the_limit_is_rejected() {
        let mut bytes = Vec::new();
        write(&[0; 100], &mut bytes);
        let limits = Limits {
            record_bytes: 99,
            ..Limits::default()
        };
        let error = Framer::new(limits)
            .cut(&bytes, 0, &mut Vec::new())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "record 0 (byte 0): bytes in one record: found 100, the limit record-bytes is 99"
        );
        assert_eq!(error.limit(), Some(Limit::RecordBytes));
    }

    #[test]
    fn records_of_2_gib_are_rejected_under_any_limit() {
        let limits = Limits {
            record_bytes: 8 << 30,
            ..Limits::default()
        };
        for (length, is_refused) in [(1 << 31, true), ((1 << 31) - 1, false), (5 << 30, true)] {
            let mut header = Vec::new();
            begin(length, &mut header);
            let result = Framer::new(limits).cut(&header, 0, &mut Vec::new());
            assert_eq!(result.is_err(), is_refused, "{length}");
            if let Err(error) = result {
                let found =
                    format!("found {length}, the limit record-bytes is 2147483647, its maximum");
                assert!(error.to_string().ends_with(&found), "{error}");
                assert_eq!(
                    (error.category(), error.limit()),
                    (crate::Category::Limit, None)
                );
            }
        }
    }
}
