//! Numbers that are not finite, as Python writes them into JSON: `NaN`, `Infinity` and `-Infinity`
//! without quotes. The parsers of JSON do not accept them.

use std::io::{self, Read};

use memchr::{memchr, memmem::find, memrchr};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The numbers, and the texts that arrow-json parses as floats.
const NUMBERS: [(&[u8], &[u8]); 3] = [
    (b"NaN", b"\"NaN\""),
    (b"Infinity", b"\"Infinity\""),
    (b"-Infinity", b"\"-Infinity\""),
];
/// The length of the longest one.
const NUMBER_BYTES: usize = b"-Infinity".len();
/// A finite number.
const FINITE: &[u8] = b"0.0";

/// What replaces the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFinite {
    /// Texts, from which floats are parsed.
    AsTexts,
    /// A finite number, which has the same type.
    AsFinite,
}

/// Reads JSON lines, in which it replaces these numbers.
pub(crate) struct JsonNumbers<R> {
    bytes: R,
    replace: NotFinite,
    /// Bytes that were read, of which the first `held` may begin a number.
    buffer: Vec<u8>,
    held: usize,
    /// Replaced bytes that were not read yet, from a byte on.
    ready: Vec<u8>,
    start: usize,
    /// Whether the next byte is in a text, and after a backslash there.
    in_text: bool,
    is_escaped: bool,
    is_at_end: bool,
}

impl<R: Read> JsonNumbers<R> {
    pub(crate) fn new(bytes: R, replace: NotFinite) -> Self {
        let buffer = vec![0; READ_BYTES];
        let ready = Vec::new();
        Self {
            bytes,
            replace,
            buffer,
            held: 0,
            ready,
            start: 0,
            in_text: false,
            is_escaped: false,
            is_at_end: false,
        }
    }

    /// Reads further bytes, and replaces their numbers.
    fn fill(&mut self) -> io::Result<()> {
        let count = self
            .bytes
            .read(self.buffer.get_mut(self.held..).unwrap_or_default())?;
        self.is_at_end = count == 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = buffer.get(..self.held + count).unwrap_or_default();
        self.held = if self.is_at_end { 0 } else { begun(read) };
        let end = read.len() - self.held;
        self.pass_on(read.get(..end).unwrap_or_default());
        buffer.copy_within(end..end + self.held, 0);
        self.buffer = buffer;
        Ok(())
    }

    /// Passes bytes on, with their numbers replaced.
    fn pass_on(&mut self, passed: &[u8]) {
        self.start = 0;
        self.ready.clear();
        if find(passed, b"NaN").is_none() && find(passed, b"Infinity").is_none() {
            self.ready.extend_from_slice(passed);
            // No text has a line feed.
            let line =
                memrchr(b'\n', passed).map_or(passed, |at| passed.get(at..).unwrap_or_default());
            line.iter().for_each(|byte| self.pass(*byte));
        } else {
            self.replace(passed);
        }
    }

    fn replace(&mut self, passed: &[u8]) {
        let mut at = 0;
        while let Some(rest @ [byte, ..]) = passed.get(at..) {
            let number = NUMBERS
                .iter()
                .find(|(number, _)| !self.in_text && rest.starts_with(number));
            if let Some((number, text)) = number {
                self.ready
                    .extend_from_slice(if self.replace == NotFinite::AsTexts {
                        text
                    } else {
                        FINITE
                    });
                at += number.len();
            } else {
                self.pass(*byte);
                self.ready.push(*byte);
                at += 1;
            }
        }
    }

    /// Notes whether a byte begins or ends a text.
    fn pass(&mut self, byte: u8) {
        match byte {
            b'\n' => (self.in_text, self.is_escaped) = (false, false),
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.in_text,
            b'"' => self.in_text = !self.in_text,
            _ => {}
        }
    }
}

/// The number of bytes at the end that may begin a number, or be one.
fn begun(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .take(NUMBER_BYTES)
        .take_while(|byte| memchr(**byte, b"-INafinty").is_some())
        .count()
}

impl<R: Read> Read for JsonNumbers<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.start == self.ready.len() && !self.is_at_end {
            self.fill()?;
        }
        let count = self.ready.get(self.start..).unwrap_or_default().read(to)?;
        self.start += count;
        Ok(count)
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

    #[test]
    fn numbers_are_replaced_and_texts_are_kept() {
        let json =
            r#"{"NaN":NaN,"x":[-Infinity, Infinity,-1,"NaN","\"Infinity","\\"],"y":"-Infinity"}"#;
        let texts = r#"{"NaN":"NaN","x":["-Infinity", "Infinity",-1,"NaN","\"Infinity","\\"],"y":"-Infinity"}"#;
        let finite = r#"{"NaN":0.0,"x":[0.0, 0.0,-1,"NaN","\"Infinity","\\"],"y":"-Infinity"}"#;
        for (replace, expected) in [(NotFinite::AsTexts, texts), (NotFinite::AsFinite, finite)] {
            let json = format!("{json}\n{json}\n");
            let expected = format!("{expected}\n{expected}\n");
            for at_once in [1, 2, 3, 7, 1000] {
                let mut found = String::new();
                JsonNumbers::new(Pieces(json.as_bytes(), at_once), replace)
                    .read_to_string(&mut found)
                    .unwrap();
                assert_eq!(found, expected, "{at_once}");
            }
        }
    }
}
