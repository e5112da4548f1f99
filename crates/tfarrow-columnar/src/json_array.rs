//! An array of objects as objects of a line each.

use std::io::{self, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Reads the items of one array as lines. The first byte of `bytes` that is not blank is the
/// bracket of the array.
pub(crate) struct JsonArray<R> {
    bytes: R,
    read: Vec<u8>,
    /// Lines that were not read yet, from a byte on.
    lines: Vec<u8>,
    start: usize,
    place: Place,
    /// Number of brackets and braces that are open, with that of the array.
    depth: usize,
    /// Whether an item has begun, and whether one has to follow a comma.
    has_item: bool,
    needs_item: bool,
}

/// The place of the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Value,
    Text,
    /// In a text, after a backslash.
    Escape,
    AfterArray,
}

impl<R: Read> JsonArray<R> {
    pub(crate) fn new(bytes: R) -> Self {
        let read = vec![0; READ_BYTES];
        let lines = Vec::new();
        Self {
            bytes,
            read,
            lines,
            start: 0,
            place: Place::Value,
            depth: 0,
            has_item: false,
            needs_item: false,
        }
    }

    fn add(&mut self, count: usize) -> io::Result<()> {
        (self.start, self.lines) = (0, Vec::with_capacity(count));
        for index in 0..count {
            let byte = self.read.get(index).copied().unwrap_or_default();
            match self.place {
                Place::Text | Place::Escape => self.add_to_text(byte),
                Place::Value => self.add_to_value(byte)?,
                Place::AfterArray if byte.is_ascii_whitespace() => {}
                Place::AfterArray => {
                    return Err(invalid("other text follows the array of objects"));
                }
            }
        }
        Ok(())
    }

    fn add_to_text(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (Place::Text, b'"') => Place::Value,
            (Place::Text, b'\\') => Place::Escape,
            _ => Place::Text,
        };
        self.lines.push(byte);
    }

    fn add_to_value(&mut self, byte: u8) -> io::Result<()> {
        match byte {
            b'[' if self.depth == 0 => {
                self.depth = 1;
                return Ok(());
            }
            b',' | b']' if self.depth == 1 => return self.end_item(byte),
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth = self.depth.saturating_sub(1).max(1),
            b'"' => self.place = Place::Text,
            _ => {}
        }
        let is_blank = byte.is_ascii_whitespace();
        self.has_item |= !is_blank;
        self.lines.push(if is_blank { b' ' } else { byte });
        Ok(())
    }

    /// Ends an item at a comma, or at the end of the array.
    fn end_item(&mut self, byte: u8) -> io::Result<()> {
        let is_end = byte == b']';
        if !self.has_item && (self.needs_item || !is_end) {
            return Err(invalid("the array of objects has a comma without an item"));
        }
        (self.has_item, self.needs_item) = (false, true);
        self.lines.push(b'\n');
        if is_end {
            self.place = Place::AfterArray;
        }
        Ok(())
    }
}

impl<R: Read> Read for JsonArray<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.start == self.lines.len() {
            let count = self.bytes.read(&mut self.read)?;
            match (count, self.place) {
                (0, Place::AfterArray) => return Ok(0),
                (0, _) => return Err(invalid("the array of objects has no end")),
                (count, _) => self.add(count)?,
            }
        }
        let count = self.lines.get(self.start..).unwrap_or_default().read(to)?;
        self.start += count;
        Ok(count)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(array: &str) -> io::Result<String> {
        let mut lines = String::new();
        JsonArray::new(array.as_bytes()).read_to_string(&mut lines)?;
        Ok(lines)
    }

    #[test]
    fn items_become_lines() {
        let lines = |array: &str| lines(array).unwrap().replace(' ', "");
        assert_eq!(lines("[]"), "\n");
        assert_eq!(
            lines("\n[{\"a\":\n[1,2]},\r\n {\"b\":\"],\\\"}\"} ]\n"),
            "{\"a\":[1,2]}\n{\"b\":\"],\\\"}\"}\n"
        );
    }

    #[test]
    fn what_is_no_array_is_an_error() {
        for array in ["[1,2", "[1,,2]", "[1,]", "[1] 2", "[\"a]"] {
            assert!(lines(array).is_err(), "{array}");
        }
    }
}
