//! Where records go on behind a frame whose length cannot be believed.
//!
//! Looked for is the next place where both CRCs of a frame hold, that of the length and that of the data: of any other
//! place, one in 2^64 looks like that. Where a length could be read, whatever its data is, the frame's end is known, and
//! nothing is looked for before it: a record may hold TFRecord bytes, which are not records of the stream.

use super::{
    FOOTER, HEADER,
    crc::{crc32c, mask, masked, shifted},
    length,
};
use crate::{Error, ErrorKind};

/// A stretch that no record can be made of, while its end is looked for.
#[derive(Debug)]
pub(crate) struct Loss {
    /// What is wrong, until it is told.
    pub(crate) error: Option<Error>,
    end: End,
}

#[derive(Debug)]
enum End {
    /// So many bytes on.
    Known(u64),
    /// Looked for.
    Unknown(Scan),
}

/// How much of the bytes in hand is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many bytes: then comes a record, or the end of the stream.
    Whole(usize),
    /// So many bytes, and maybe more.
    Part(usize),
    /// So many bytes, and whether a record follows them can be told once there are `need` bytes in all.
    Unsure { before: usize, need: usize },
}

impl Loss {
    /// The loss that begins with a frame of which this is wrong.
    pub(crate) fn of(error: Error) -> Self {
        let end = match error.kind() {
            ErrorKind::Limit { found, .. } => End::Known(found.saturating_add((HEADER + FOOTER) as u64)),
            ErrorKind::Truncated { .. } => End::Known(u64::MAX),
            _ => End::Unknown(Scan::default()),
        };
        Self { error: Some(error), end }
    }

    /// How much of `bytes` is lost. It is asked again with more of them, until [`pass`](Self::pass) is called. `ended`
    /// says that there are no more, `most` how long a record may be.
    pub(crate) fn extent(&mut self, bytes: &[u8], ended: bool, most: usize) -> Extent {
        match &mut self.end {
            End::Unknown(scan) => scan.extent(bytes, ended, most),
            End::Known(left) => match usize::try_from(*left) {
                Ok(left) if left <= bytes.len() => Extent::Whole(left),
                _ if ended => Extent::Whole(bytes.len()),
                _ => Extent::Part(bytes.len()),
            },
        }
    }

    /// Goes on behind the first `count` bytes.
    pub(crate) fn pass(&mut self, count: usize) {
        match &mut self.end {
            End::Known(left) => *left -= (count as u64).min(*left),
            End::Unknown(scan) => scan.pass(count),
        }
    }
}

/// Looks for a record at each byte.
#[derive(Debug, Default)]
struct Scan {
    /// No record begins before this byte.
    at: usize,
    sums: Sums,
}

impl Scan {
    fn extent(&mut self, bytes: &[u8], ended: bool, most: usize) -> Extent {
        while let Some(rest) = bytes.get(self.at..).filter(|rest| rest.len() >= HEADER) {
            match length(rest).and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= most) {
                None => {}
                Some(length) => {
                    let end = self.at + HEADER + length + FOOTER;
                    if end > bytes.len() && !ended {
                        return Extent::Unsure { before: self.at, need: end };
                    }
                    if end <= bytes.len() && self.holds(bytes, self.at + HEADER, length) {
                        return Extent::Whole(self.at);
                    }
                }
            }
            self.at += 1;
        }
        if ended { Extent::Whole(bytes.len()) } else { Extent::Part(self.at) }
    }

    /// Whether the CRC holds of the data of this length that begins at `start`.
    fn holds(&mut self, bytes: &[u8], start: usize, length: usize) -> bool {
        let Some(footer) = bytes.get(start + length..).and_then(<[u8]>::first_chunk::<FOOTER>) else { return false };
        let found = u32::from_le_bytes(*footer);
        match bytes.get(start..start + length) {
            Some(data) if length <= STEP => masked(data) == found,
            _ => mask(self.sums.between(bytes, start, start + length)) == found,
        }
    }

    fn pass(&mut self, count: usize) {
        self.at -= count.min(self.at);
        self.sums = Sums::default();
    }
}

/// CRCs of the beginnings of some bytes, from which that of any part of them follows at a price that does not depend on
/// the part's length. Without them, bytes that begin a long record at each place could keep a reader busy for years.
#[derive(Debug, Default)]
struct Sums(Vec<u32>);

/// The beginnings are this many bytes apart.
const STEP: usize = 4096;

impl Sums {
    fn between(&mut self, bytes: &[u8], start: usize, end: usize) -> u32 {
        let before = self.up_to(bytes, start);
        self.up_to(bytes, end) ^ shifted(before, (end - start) as u64)
    }

    /// The CRC of the first `end` bytes.
    fn up_to(&mut self, bytes: &[u8], end: usize) -> u32 {
        if self.0.is_empty() {
            self.0.push(crc32c(&[]));
        }
        let known = self.0.len() - 1;
        for step in bytes.chunks_exact(STEP).take(end / STEP).skip(known) {
            let before = self.0.last().copied().unwrap_or_default();
            self.0.push(shifted(before, STEP as u64) ^ crc32c(step));
        }
        let (steps, rest) = (end / STEP, end % STEP);
        let before = self.0.get(steps).copied().unwrap_or_default();
        let rest = bytes.get(steps * STEP..steps * STEP + rest).unwrap_or_default();
        shifted(before, rest.len() as u64) ^ crc32c(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_parts() {
        let bytes: Vec<u8> = (0..50_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 9) as u8).collect();
        let mut sums = Sums::default();
        for (start, end) in [(0, 0), (1, 1), (5, 20_000), (4096, 8192), (4095, 40_961), (0, 50_000), (49_999, 50_000)] {
            assert_eq!(sums.between(&bytes, start, end), crc32c(&bytes[start..end]), "{start}..{end}");
        }
    }
}
