//! The bytes of a CSV or JSON text: decompressed, without a byte order mark, and JSON as lines.

use std::{
    io::{self, Chain, Cursor, Read},
    ops::Range,
};

use flate2::read::MultiGzDecoder;
use tfarrow_dataset::{Error, Result};

use crate::{
    json_array::JsonArray,
    json_numbers::{JsonNumbers, NotFinite},
    line_range::LineRange,
    text::Text,
    unreadable::unreadable,
};

/// Maximum bytes of a row. The parsers hold it in memory, in a buffer that doubles: below a power
/// of two, half of it is not unused.
pub(crate) const MAX_ROW_BYTES: usize = 240 << 20;

/// Bytes that are read at once, to find the first value of JSON.
const READ_BYTES: usize = 4 << 10;

/// The magic number of gzip, and the byte order marks of UTF-8 and of both orders of UTF-16.
const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF_16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Maximum bytes of blank space before the first value of JSON that are searched for the bracket of
/// an array.
const BLANK_BYTES: usize = 64 << 10;

/// Reads a text.
pub(crate) struct TextReader {
    bytes: Box<dyn Read + Send>,
    /// Whether the text is one array of JSON, whose items are read as lines.
    pub(crate) is_array: bool,
}

/// The first bytes of a text, and the rest.
type Begun = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

impl TextReader {
    /// Opens a text, which may be compressed with gzip, or those of its lines that begin in a range
    /// of its bytes; then it is not compressed. `not_finite` replaces numbers of JSON that are not
    /// finite.
    ///
    /// # Errors
    /// A text that cannot be opened or read, and one of UTF-16.
    pub(crate) fn open(
        text: &Text,
        lines: Option<&Range<u64>>,
        not_finite: NotFinite,
    ) -> Result<Self> {
        let begun = begin_text(text, lines).map_err(|e| Error::io(&text.path, e))?;
        let head = begun.get_ref().0.get_ref();
        if UTF_16.iter().any(|mark| head.starts_with(mark)) {
            let advice = "convert the file, such as with iconv -f utf-16 -t utf-8";
            return Err(unreadable(
                &text.path,
                format!("the text is UTF-16, and not UTF-8; {advice}"),
            ));
        }
        let is_array = text.is_json() && head.trim_ascii_start().starts_with(b"[");
        let bytes: Box<dyn Read + Send> = match is_array {
            true => Box::new(JsonNumbers::new(JsonArray::new(begun), not_finite)),
            false if text.is_json() => Box::new(JsonNumbers::new(begun, not_finite)),
            false => Box::new(begun),
        };
        Ok(Self { bytes, is_array })
    }
}

impl Read for TextReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(to)
    }
}

/// The text without the byte order mark of UTF-8. Of JSON, the first bytes have the first value
/// begin.
fn begin_text(text: &Text, lines: Option<&Range<u64>>) -> io::Result<Begun> {
    if let Some(lines) = lines.filter(|lines| lines.start > 0) {
        // A line begins after a line feed, which may be the byte before the range.
        let bytes = text.open_at(lines.start - 1)?;
        return Ok(Cursor::new(Vec::new()).chain(Box::new(LineRange::new(bytes, lines))));
    }
    let mut bytes = text.open_at(0)?;
    if let Some(lines) = lines {
        bytes = Box::new(LineRange::new(bytes, lines));
    }
    let (head, bytes) = begin(bytes, GZIP.len())?;
    let is_gzip = head == GZIP;
    let bytes = Cursor::new(head).chain(bytes);
    let bytes: Box<dyn Read + Send> = if is_gzip {
        Box::new(MultiGzDecoder::new(bytes))
    } else {
        Box::new(bytes)
    };
    let (mut head, mut bytes) = begin(bytes, BYTE_ORDER_MARK.len())?;
    if head == BYTE_ORDER_MARK {
        head.clear();
    }
    while text.is_json() && head.trim_ascii().is_empty() && head.len() < BLANK_BYTES {
        let more;
        (more, bytes) = begin(bytes, READ_BYTES)?;
        if more.is_empty() {
            break;
        }
        head.extend(more);
    }
    Ok(Cursor::new(head).chain(bytes))
}

/// Reads the first `count` bytes, or all if there are fewer. Returns them and the rest.
fn begin<R: Read>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    reader.by_ref().take(count as u64).read_to_end(&mut head)?;
    Ok((head, reader))
}
