//! Resynchronization: the search for the next record after a frame with a corrupt length.
//!
//! TFRecord has no sync marker. The search therefore tries every byte, until both CRCs of a frame
//! match there: that of the length and that of the payload. Among random bytes, one position in
//! 2^64 looks like that.
//!
//! ```text
//! stream   frame 0 │ frame 1, corrupt length     │ frame 2 │ ..
//!                  └ tried byte by byte: ✗ ✗ ✗ ✗ └ both CRCs match
//! segments records │ lost range                  │ records
//! ```
//!
//! If the length of a frame is valid but exceeds the limit, the end of the frame is known, and
//! bytes before it are not searched: a payload may contain TFRecord bytes, which are not records of
//! the stream.
//!
//! A candidate whose length is valid needs all bytes of its frame before its second CRC can be
//! checked. Many candidates may overlap, so that [`PrefixCrcs`] makes the cost of each check
//! independent of the length of the candidate.

use super::{
    FOOTER, HEADER,
    crc::{crc32c, mask, masked, shifted},
    length,
};
use crate::{Error, ErrorKind, slices};

/// A range of a stream that contains no record, while its end is searched.
#[derive(Debug)]
pub(super) struct LostRange {
    /// The error of the frame that the range begins with. It is taken with the first bytes of the
    /// range.
    pub(super) error: Option<Error>,
    end: End,
}

/// The end of a lost range.
#[derive(Debug)]
enum End {
    /// The range ends after this number of bytes.
    Known(u64),
    /// The range ends at the next record, which is searched.
    Unknown(Scan),
}

/// The part of the available bytes that belongs to a lost range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// This number of bytes. A record or the end of the stream follows.
    Whole(usize),
    /// This number of bytes. The range may continue in the bytes that follow.
    Part(usize),
    /// `before` bytes. A valid length follows them; `need` bytes in total are needed to check the
    /// CRC of its payload.
    Unsure { before: usize, need: usize },
}

impl LostRange {
    /// Creates the range that begins with the frame that `error` is about.
    ///
    /// | error | end of the range |
    /// |---|---|
    /// | the length exceeds the limit | the end of that frame |
    /// | the stream ends inside the frame | the end of the stream |
    /// | the CRC of the length does not match | searched |
    pub(super) fn of(error: Error) -> Self {
        let end = match error.kind() {
            ErrorKind::Limit { found, .. } => {
                End::Known(found.saturating_add((HEADER + FOOTER) as u64))
            }
            ErrorKind::Truncated { .. } => End::Known(u64::MAX),
            _ => End::Unknown(Scan::default()),
        };
        Self {
            error: Some(error),
            end,
        }
    }

    /// Returns the part of `bytes`, from the current position of the stream on, that belongs to the
    /// range. `ended` is true if no bytes follow; `most` is the largest length of a payload in
    /// bytes.
    ///
    /// May be called again with the same bytes and more of them. The search does not start over,
    /// until [`pass`](Self::pass) removes bytes from the front.
    pub(super) fn extent(&mut self, bytes: &[u8], ended: bool, most: usize) -> Extent {
        match &mut self.end {
            End::Unknown(scan) => scan.extent(bytes, ended, most),
            End::Known(left) => match usize::try_from(*left) {
                Ok(left) if left <= bytes.len() => Extent::Whole(left),
                _ if ended => Extent::Whole(bytes.len()),
                _ => Extent::Part(bytes.len()),
            },
        }
    }

    /// Removes the first `count` bytes, which were returned as lost.
    pub(super) fn pass(&mut self, count: usize) {
        match &mut self.end {
            End::Known(left) => *left -= (count as u64).min(*left),
            End::Unknown(scan) => scan.pass(count),
        }
    }
}

/// The search for the first record at or after a position of a stream, for readers that begin
/// there.
///
/// ```
/// use tfarrow_codec::frame::{self, RecordSearch, Searched};
/// let mut stream = b"no record".to_vec();
/// frame::write(b"one", &mut stream);
/// let mut search = RecordSearch::default();
/// // The header of the record is complete in 21 bytes, and the record in 28.
/// assert_eq!(search.find(&stream[..21], false, 100), Searched::Needs { searched: 9, bytes: 28 });
/// assert_eq!(search.find(&stream, false, 100), Searched::Found(9));
/// ```
#[derive(Debug, Default)]
pub struct RecordSearch(Scan);

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The index of the first byte of the record, or of the end of the stream.
    Found(usize),
    /// The search needs more bytes.
    Needs {
        /// Number of bytes at which no record begins.
        searched: usize,
        /// Number of bytes of the stream that the search needs at least.
        bytes: usize,
    },
}

impl RecordSearch {
    /// Continues the search in the first bytes of the stream: those of the last call, and more of
    /// them. `ended` is true if no bytes follow; `most` is the largest length of a payload in
    /// bytes.
    pub fn find(&mut self, bytes: &[u8], ended: bool, most: usize) -> Searched {
        match self.0.extent(bytes, ended, most) {
            Extent::Whole(at) => Searched::Found(at),
            Extent::Part(searched) => Searched::Needs {
                searched,
                bytes: bytes.len() + 1,
            },
            Extent::Unsure { before, need } => Searched::Needs {
                searched: before,
                bytes: need,
            },
        }
    }

    /// Removes the first `count` bytes, at which no record begins: the next call has the bytes
    /// after them.
    pub fn pass(&mut self, count: usize) {
        self.0.pass(count);
    }
}

/// The search for the next record, byte by byte.
#[derive(Debug, Default)]
struct Scan {
    /// Index of the next byte to try. No record begins before it.
    at: usize,
    sums: PrefixCrcs,
}

impl Scan {
    /// Continues the search, see [`LostRange::extent`].
    fn extent(&mut self, bytes: &[u8], ended: bool, most: usize) -> Extent {
        while let Some(rest) = bytes.get(self.at..).filter(|rest| rest.len() >= HEADER) {
            match length(rest)
                .and_then(|length| usize::try_from(length).ok())
                .filter(|length| *length <= most)
            {
                None => {}
                Some(length) => {
                    let end = self.at + HEADER + length + FOOTER;
                    if end > bytes.len() && !ended {
                        return Extent::Unsure {
                            before: self.at,
                            need: end,
                        };
                    }
                    if end <= bytes.len() && self.holds(bytes, self.at + HEADER, length) {
                        return Extent::Whole(self.at);
                    }
                }
            }
            self.at += 1;
        }
        if ended {
            Extent::Whole(bytes.len())
        } else {
            Extent::Part(self.at)
        }
    }

    /// Returns whether the CRC of the payload matches that begins at `start` and has `length`
    /// bytes. Short payloads are hashed directly, longer ones by [`PrefixCrcs`].
    fn holds(&mut self, bytes: &[u8], start: usize, length: usize) -> bool {
        let Some(footer) = bytes
            .get(start + length..)
            .and_then(<[u8]>::first_chunk::<FOOTER>)
        else {
            return false;
        };
        let found = u32::from_le_bytes(*footer);
        match bytes.get(start..start + length) {
            Some(data) if length <= STEP => masked(data) == found,
            _ => mask(self.sums.between(bytes, start, start + length)) == found,
        }
    }

    /// Removes the first `count` bytes.
    fn pass(&mut self, count: usize) {
        self.at -= count.min(self.at);
        self.sums = PrefixCrcs::default();
    }
}

/// CRCs of prefixes of some bytes, from which the CRC of any range of them is computed in a time
/// that does not depend on the length of the range.
///
/// Without them, the search is quadratic for bytes in which a valid length is at every position:
/// each of the candidates would be hashed from its start to its end.
///
/// ```text
/// bytes     0 ........ 4096 ........ 8192 ........ 12288
/// prefixes  crc(0..0)  crc(0..4096)  crc(0..8192)  ..
/// crc(start..end) = crc(0..end) ^ shifted(crc(0..start), end - start)
/// ```
#[derive(Debug, Default)]
struct PrefixCrcs(Vec<u32>);

/// Distance in bytes between the prefixes whose CRCs are kept. At most as many bytes are hashed for
/// each range.
const STEP: usize = 4096;

impl PrefixCrcs {
    /// Returns the CRC32C of `bytes[start..end]`, not masked.
    fn between(&mut self, bytes: &[u8], start: usize, end: usize) -> u32 {
        let before = self.up_to(bytes, start);
        self.up_to(bytes, end) ^ shifted(before, (end - start) as u64)
    }

    /// Returns the CRC32C of the first `end` bytes, and keeps those of the prefixes on the way.
    /// `bytes` must begin with the same bytes in each call.
    fn up_to(&mut self, bytes: &[u8], end: usize) -> u32 {
        if self.0.is_empty() {
            self.0.push(crc32c(&[]));
        }
        let known = self.0.len() - 1;
        for step in bytes.chunks_exact(STEP).take(end / STEP).skip(known) {
            let before = self.0.last().copied().unwrap_or_default();
            self.0.push(shifted(before, STEP as u64) ^ crc32c(step));
        }
        let steps = end / STEP;
        let rest = end % STEP;
        let before = slices::item(&self.0, steps);
        let rest = slices::part(bytes, steps * STEP..steps * STEP + rest);
        shifted(before, rest.len() as u64) ^ crc32c(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crcs_of_ranges_follow_from_those_of_prefixes() {
        let bytes: Vec<u8> = (0..50_000_u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 9) as u8)
            .collect();
        let mut sums = PrefixCrcs::default();
        for (start, end) in [
            (0, 0),
            (1, 1),
            (5, 20_000),
            (4096, 8192),
            (4095, 40_961),
            (0, 50_000),
            (49_999, 50_000),
        ] {
            assert_eq!(
                sums.between(&bytes, start, end),
                crc32c(&bytes[start..end]),
                "{start}..{end}"
            );
        }
    }
}
