//! TFRecord's envelope: `length: u64 | masked crc32c of length | data | masked crc32c of data`, all little-endian.
//!
//! Follows `tensorflow/core/lib/io/record_writer.h`. A length is never believed before its CRC. Nothing here knows what
//! the data is.

use crate::{Error, ErrorKind, Limits, MOST_RECORD_BYTES, Result, crc::masked};

/// Bytes before a record's data.
pub const HEADER: usize = 12;
/// Bytes after a record's data.
pub const FOOTER: usize = 4;

/// Where a record's data lies in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The length of a record's data, where `bytes` begins with a whole header whose CRC holds. What tells a TFRecord file
/// from any other: one in 2^32 of random beginnings passes, and no magic number does.
pub fn length(bytes: &[u8]) -> Option<u64> {
    let header = bytes.first_chunk::<HEADER>()?;
    let (length, expected, found) = split(header);
    (expected == found).then_some(length)
}

/// A header's length, the masked CRC that it should have, and the one that it has.
fn split(header: &[u8; HEADER]) -> (u64, u32, u32) {
    let [a, b, c, d, e, f, g, h, crc @ ..] = *header;
    let length = [a, b, c, d, e, f, g, h];
    (u64::from_le_bytes(length), masked(&length), u32::from_le_bytes(crc))
}

/// Writes one record's frame.
pub fn write(data: &[u8], out: &mut Vec<u8>) {
    begin(data.len(), out);
    out.extend_from_slice(data);
    out.extend_from_slice(&masked(data).to_le_bytes());
}

/// Writes the header of a record of `length` bytes.
pub(crate) fn begin(length: usize, out: &mut Vec<u8>) {
    let length = (length as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
}

/// Writes the footer of the record whose data is all of `out` from `start`.
pub(crate) fn end(start: usize, out: &mut Vec<u8>) {
    let crc = masked(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Cuts a stream into records, and counts them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Framer {
    /// Records cut so far: the number of the next one.
    pub(crate) record: u64,
    /// Bytes cut so far: the offset of the next frame.
    pub(crate) offset: u64,
    limits: Limits,
}

impl Framer {
    pub(crate) fn new(mut limits: Limits) -> Self {
        // No sum of lengths overflows, and no place in a record passes 32 bits.
        limits.record_bytes = limits.record_bytes.min(MOST_RECORD_BYTES);
        Self { limits, ..Self::default() }
    }

    /// The longest record that is taken, in bytes.
    pub(crate) fn record_bytes(&self) -> usize {
        self.limits.record_bytes
    }

    /// Notes where the data of each whole record of `chunk` lies, and returns how many bytes these records take.
    ///
    /// # Errors
    /// A length whose CRC does not hold, or that is past the limit. The records before it are in `spans` all the same.
    pub(crate) fn cut(&mut self, chunk: &[u8], spans: &mut Vec<Span>) -> Result<usize> {
        let mut taken = 0;
        while let Some(length) = self.header(chunk.get(taken..).unwrap_or_default())? {
            let frame = HEADER + length + FOOTER;
            if chunk.len() - taken < frame {
                break;
            }
            spans.push(Span { start: taken + HEADER, len: length });
            taken += frame;
            self.advance(frame);
        }
        Ok(taken)
    }

    /// Counts a record whose frame has `frame` bytes.
    pub(crate) fn advance(&mut self, frame: usize) {
        self.record += 1;
        self.offset += frame as u64;
    }

    /// The bytes that the frame at the head of `rest` has in all, where its header is there.
    pub(crate) fn need(&self, rest: &[u8]) -> Result<Option<usize>> {
        Ok(self.header(rest)?.map(|length| HEADER + length + FOOTER))
    }

    /// Declares the end of the stream, of which `rest` is what no record was cut from.
    pub(crate) fn finish(&self, rest: &[u8]) -> Result<()> {
        if rest.is_empty() { Ok(()) } else { self.cut_off(rest, rest.len() as u64) }
    }

    /// The error that the stream ends in a record, which begins with `rest`, and of which it has `found` bytes.
    pub(crate) fn cut_off(&self, rest: &[u8], found: u64) -> Result<()> {
        let expected = self.need(rest)?.map(|n| n as u64);
        Err(self.error(ErrorKind::Truncated { found, expected }))
    }

    fn header(&self, rest: &[u8]) -> Result<Option<usize>> {
        let Some(header) = rest.first_chunk::<HEADER>() else { return Ok(None) };
        let (length, expected, found) = split(header);
        if expected != found {
            return Err(self.error(ErrorKind::LengthCrc { expected, found }));
        }
        let limit = self.limits.record_bytes;
        match usize::try_from(length) {
            Ok(length) if length <= limit => Ok(Some(length)),
            _ => {
                let (what, name) = ("bytes in one record", Some("record-bytes"));
                Err(self.error(ErrorKind::Limit { what, limit: limit as u64, found: length, name }))
            }
        }
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::at(kind, self.record, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_what_it_wrote() {
        let mut bytes = Vec::new();
        for data in [&b"one"[..], b"", b"three"] {
            write(data, &mut bytes);
        }
        let mut framer = Framer::new(Limits::default());
        let mut spans = Vec::new();
        assert_eq!(framer.cut(&bytes, &mut spans).unwrap(), bytes.len());
        let data: Vec<_> = spans.iter().map(|s| &bytes[s.start..s.start + s.len]).collect();
        assert_eq!(data, [&b"one"[..], b"", b"three"]);
        assert_eq!((framer.record, framer.offset), (3, bytes.len() as u64));
        assert!(framer.finish(b"").is_ok());
        assert_eq!(
            framer.finish(b"x").unwrap_err().to_string(),
            format!("record 3 (byte {}): the file ends inside a record's header: found 1 of 12 bytes", bytes.len())
        );
    }

    #[test]
    fn believes_no_length_before_its_crc() {
        let mut bytes = Vec::new();
        write(b"data", &mut bytes);
        bytes[5] ^= 1;
        let error = Framer::default().cut(&bytes, &mut Vec::new()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::LengthCrc { .. }));
        assert_eq!(length(&bytes), None);
    }

    #[test]
    fn refuses_a_record_past_the_limit() {
        let mut bytes = Vec::new();
        write(&[0; 100], &mut bytes);
        let limits = Limits { record_bytes: 99, ..Limits::default() };
        let error = Framer::new(limits).cut(&bytes, &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "record 0 (byte 0): bytes in one record: found 100, the limit record-bytes is 99"
        );
        assert_eq!(error.limit_name(), Some("record-bytes"));
    }

    #[test]
    fn no_limit_lets_a_record_pass_that_32_bits_do_not_count() {
        let limits = Limits { record_bytes: 8 << 30, ..Limits::default() };
        for (length, is_refused) in [(1 << 31, true), ((1 << 31) - 1, false), (5 << 30, true)] {
            let mut header = Vec::new();
            begin(length, &mut header);
            let result = Framer::new(limits).cut(&header, &mut Vec::new());
            assert_eq!(result.is_err(), is_refused, "{length}");
            if let Err(error) = result {
                let found = format!("found {length}, the limit record-bytes is 2147483647, its maximum");
                assert!(error.to_string().ends_with(&found), "{error}");
                assert_eq!((error.category(), error.limit_name()), (crate::Category::Limit, None));
            }
        }
    }
}
