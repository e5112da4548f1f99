//! The lines of a text that begin in a range of its bytes.

use std::{
    io::{self, Read},
    ops::Range,
};

use memchr::memchr;

/// Reads the lines that begin in a range of a text. `bytes` are those from the byte before the
/// range on, or from the first byte on for a range that begins there.
pub(crate) struct LineRange<R> {
    bytes: R,
    /// Whether the line before the first one of the range has not ended yet.
    is_before: bool,
    /// Number of bytes up to the end of the range. A line that begins before it is read to its end.
    left: u64,
    is_at_end: bool,
}

impl<R: Read> LineRange<R> {
    pub(crate) fn new(bytes: R, lines: &Range<u64>) -> Self {
        let is_before = lines.start > 0;
        let left = lines.end.saturating_sub(lines.start) + u64::from(is_before);
        Self {
            bytes,
            is_before,
            left,
            is_at_end: lines.is_empty(),
        }
    }

    /// The bytes among `read` that are in the lines.
    fn take(&mut self, read: &[u8]) -> Range<usize> {
        let mut from = 0;
        if self.is_before {
            from = memchr(b'\n', read).map_or(read.len(), |at| at + 1);
            self.is_before = from == read.len() && read.last() != Some(&b'\n');
            if from as u64 >= self.left {
                // The next line begins after the range.
                self.is_at_end = true;
                return 0..0;
            }
        }
        // The last byte of the range, or a later one, ends the last line.
        let last = usize::try_from(self.left - 1)
            .unwrap_or(usize::MAX)
            .max(from);
        let line_end = read.get(last..).and_then(|rest| memchr(b'\n', rest));
        self.left = self.left.saturating_sub(read.len() as u64).max(1);
        match line_end {
            Some(at) => {
                self.is_at_end = true;
                from..last + at + 1
            }
            None => from..read.len(),
        }
    }
}

impl<R: Read> Read for LineRange<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !self.is_at_end {
            let count = self.bytes.read(to)?;
            if count == 0 {
                break;
            }
            let taken = self.take(to.get(..count).unwrap_or_default());
            let length = taken.len();
            to.copy_within(taken, 0);
            if length > 0 {
                return Ok(length);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a few bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let most = to.len().min(self.1);
            self.0.read(&mut to[..most])
        }
    }

    fn lines(text: &[u8], range: Range<u64>, at_once: usize) -> Vec<u8> {
        let from = usize::try_from(range.start.saturating_sub(1)).unwrap();
        let mut found = Vec::new();
        LineRange::new(Pieces(&text[from..], at_once), &range)
            .read_to_end(&mut found)
            .unwrap();
        found
    }

    #[test]
    fn ranges_have_each_line_once() {
        for text in [&b"ab\nc\n\ndef\ng"[..], b"ab\nc\n", b"\n\n", b"a", b""] {
            let length = text.len() as u64;
            for at_once in [1, 2, 100] {
                for one in 0..=length {
                    for two in one..=length {
                        let ranges = [0..one, one..two, two..length];
                        let found: Vec<_> = ranges
                            .into_iter()
                            .flat_map(|range| lines(text, range, at_once))
                            .collect();
                        assert_eq!(found, text, "{one} {two} {at_once}");
                    }
                }
            }
        }
        assert_eq!(lines(b"ab\nc\nd", 3..4, 100), b"c\n");
        assert_eq!(lines(b"ab\nc\nd", 1..3, 100), b"");
    }
}
