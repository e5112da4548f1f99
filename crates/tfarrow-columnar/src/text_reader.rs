//! The text of a CSV or JSON file: decompressed, and without a byte order mark.

use std::io::{self, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;
use tfarrow_dataset::{Error, Result, Shard};

use crate::unreadable::unreadable;

/// Maximum bytes of a row. The parsers hold it in memory.
pub(crate) const MAX_ROW_BYTES: usize = 256 << 20;

/// The magic number of gzip, and the byte order marks of UTF-8 and of both orders of UTF-16.
const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF_16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Reads a text file.
pub(crate) struct TextReader {
    text: Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>,
}

impl TextReader {
    /// Opens a file, which may be compressed with gzip.
    ///
    /// # Errors
    /// A file that cannot be opened or read, and one of UTF-16.
    pub(crate) fn open(shard: &Shard) -> Result<Self> {
        let opened = shard.open().and_then(Self::of_file);
        let (head, text) = opened.map_err(|e| Error::io(&shard.path, e))?;
        if UTF_16.iter().any(|mark| head.starts_with(mark)) {
            let advice = "convert the file, such as with iconv -f utf-16 -t utf-8";
            return Err(unreadable(&shard.path, format!("the text is UTF-16, and not UTF-8; {advice}")));
        }
        Ok(Self { text: Cursor::new(head).chain(text) })
    }

    /// The first bytes of the text without the byte order mark of UTF-8, and the rest.
    fn of_file(file: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
        let (head, file) = begin(file, GZIP.len())?;
        let is_gzip = head == GZIP;
        let file = Cursor::new(head).chain(file);
        let text: Box<dyn Read + Send> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        let (mut head, text) = begin(text, BYTE_ORDER_MARK.len())?;
        if head == BYTE_ORDER_MARK {
            head.clear();
        }
        Ok((head, text))
    }
}

impl Read for TextReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.text.read(to)
    }
}

/// Reads the first `count` bytes, or all if there are fewer. Returns them and the rest.
fn begin<R: Read>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    reader.by_ref().take(count as u64).read_to_end(&mut head)?;
    Ok((head, reader))
}
