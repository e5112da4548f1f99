//! The rows of a CSV or JSON file in batches of bounded size, for given columns.
//!
//! ```text
//! TextReader ─▶ 256 KiB ─▶ decoder of arrow-csv or arrow-json ─▶ RecordBatch
//!                          8,192 rows, or the first row end after 4 MiB
//! ```
//!
//! The decoders name no line, or count rows as lines. After an error, the file is therefore parsed again, row by row, up to
//! the row of the error.

use std::{io::Read, path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use memchr::{memchr, memchr_iter};
use tfarrow_codec::BATCH_CELLS;
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    guarded::{guarded, until_error},
    parquet_rows::BATCH_ROWS,
    text_reader::TextReader,
    unreadable::{in_part, unreadable, unreadable_arrow},
};

/// Maximum bytes of a row. The decoders hold it in memory.
pub(crate) const MAX_ROW_BYTES: usize = 256 << 20;

/// Bytes of text after which a batch ends with the current row.
const BATCH_BYTES: usize = 4 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Maximum number of characters of the message of a decoder, which may quote the row.
const MESSAGE_CHARS: usize = 300;

/// Reads the rows of a file, whose columns are `schema`.
///
/// # Errors
/// A file that cannot be opened. A row that does not fit the columns is an error of the iterator, with its line.
pub(crate) fn text_rows(
    shard: &Shard,
    schema: &SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let (shard, schema) = (shard.clone(), Arc::clone(schema));
    let batch_rows = (BATCH_CELLS / schema.fields().len().max(1)).clamp(1, BATCH_ROWS);
    let (mut rows, mut row) = (TextRows::new(&shard, &schema, batch_rows)?, 0);
    Ok(until_error(move || {
        let batch = guarded(&shard.path, || rows.next().map_err(|e| unreadable_text(&shard.path, e)));
        let batch = batch.map_err(|error| in_line(&shard, &schema, error, row))?;
        row += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        Ok(batch)
    }))
}

/// CSV with a header, whose fields are separated by commas, or by tabs in a file named `.tsv`.
pub(crate) fn csv_format(path: &Path) -> arrow_csv::reader::Format {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let is_tsv = name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv");
    arrow_csv::reader::Format::default().with_header(true).with_delimiter(if is_tsv { b'\t' } else { b',' })
}

/// The error of a decoder, with advice for the errors that are frequent.
fn unreadable_text(path: &Path, error: ArrowError) -> Error {
    let message = match &error {
        ArrowError::CsvError(message) => wrong_fields(message).or_else(|| not_utf8(message)),
        ArrowError::IoError(..) => return unreadable_arrow(path, error),
        _ => None,
    };
    let short = || error.to_string().chars().take(MESSAGE_CHARS).collect();
    unreadable(path, message.unwrap_or_else(short))
}

/// Words the error of a row with more or fewer fields than the header. `arrow-csv` has the numbers in its message only.
fn wrong_fields(message: &str) -> Option<String> {
    let (_, numbers) = message.strip_prefix("incorrect number of fields ")?.split_once("expected ")?;
    let (expected, found) = numbers.split_once(" got ")?;
    let advice = "put quotes around a field that contains the delimiter or a line feed";
    Some(format!("found {found} fields, expected {expected} as in the header; {advice}"))
}

fn not_utf8(message: &str) -> Option<String> {
    let (_, field) = message.strip_prefix("Encountered invalid UTF-8 data ")?.split_once("and field ")?;
    Some(format!("field {field} is not UTF-8; convert the file, such as with iconv -f latin1 -t utf8"))
}

/// Adds the line of the first row that cannot be parsed, which is in the batch from row `first` on, to an error.
fn in_line(shard: &Shard, schema: &SchemaRef, error: Error, first: u64) -> Error {
    let found = first_unfit(shard, schema).filter(|(row, _)| *row >= first);
    let part =
        || found.map_or_else(|| format!("from row {first} on"), |(row, line)| format!("line {line} (row {row})"));
    in_part(&shard.path, error, part, found.map_or(first, |(row, _)| row))
}

/// The number of the first row that cannot be parsed, and its line; `None` if all rows can be parsed.
fn first_unfit(shard: &Shard, schema: &SchemaRef) -> Option<(u64, u64)> {
    let mut rows = TextRows::new(shard, schema, 1).ok()?;
    // The header is one line, unless it has line feeds in quotes.
    let (mut row, mut line) = (0, if shard.format == ShardFormat::Json { 1 } else { 2 });
    loop {
        let next = guarded(&shard.path, || rows.next().map_err(|e| unreadable_text(&shard.path, e)));
        match next {
            // The line feed after a carriage return is parsed with the next row.
            Ok(Some(_)) => (row, line) = (row + 1, rows.line_feeds + 1 + u64::from(rows.ends_with_return)),
            Ok(None) => return None,
            Err(_) => return Some((row, line)),
        }
    }
}

/// A parser that takes bytes.
enum TextDecoder {
    Csv(Box<arrow_csv::reader::Decoder>, usize),
    Json(Box<arrow_json::reader::Decoder>),
}

impl TextDecoder {
    fn new(shard: &Shard, schema: &SchemaRef, batch_rows: usize) -> Result<Self, ArrowError> {
        let schema = Arc::clone(schema);
        if shard.format == ShardFormat::Json {
            // A column of text may have other values as well, which become text.
            let builder =
                arrow_json::ReaderBuilder::new(schema).with_batch_size(batch_rows).with_coerce_primitive(true);
            return Ok(Self::Json(Box::new(builder.build_decoder()?)));
        }
        let builder = arrow_csv::ReaderBuilder::new(schema).with_format(csv_format(&shard.path));
        Ok(Self::Csv(Box::new(builder.with_batch_size(batch_rows).build_decoder()), batch_rows))
    }

    /// Parses bytes until a batch is complete. Returns their number. No bytes are the end of the file.
    fn decode(&mut self, bytes: &[u8]) -> Result<usize, ArrowError> {
        match self {
            Self::Csv(decoder, _) => decoder.decode(bytes),
            Self::Json(decoder) => decoder.decode(bytes),
        }
    }

    /// The number of complete rows since the last batch.
    fn rows(&self) -> usize {
        match self {
            Self::Csv(decoder, batch_rows) => batch_rows - decoder.capacity(),
            Self::Json(decoder) => decoder.len() - usize::from(decoder.has_partial_record()),
        }
    }

    /// The rows that were parsed; `None` if there are none.
    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        match self {
            Self::Csv(decoder, _) => decoder.flush(),
            Self::Json(decoder) => decoder.flush(),
        }
    }
}

/// Parses a text batch by batch.
struct TextRows {
    text: TextReader,
    decoder: TextDecoder,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read and not parsed.
    start: usize,
    end: usize,
    /// Number of bytes that were parsed since the last batch.
    parsed: usize,
    /// Number of line feeds among the bytes that were parsed.
    line_feeds: u64,
    /// Whether the last byte that was parsed is a carriage return.
    ends_with_return: bool,
    is_at_end: bool,
    /// Maximum bytes of a row.
    max_row_bytes: usize,
}

impl TextRows {
    fn new(shard: &Shard, schema: &SchemaRef, batch_rows: usize) -> Result<Self> {
        let text = TextReader::open(shard)?;
        let decoder = TextDecoder::new(shard, schema, batch_rows).map_err(|e| unreadable_arrow(&shard.path, e))?;
        let buffer = vec![0; READ_BYTES];
        let (start, end, parsed, line_feeds) = (0, 0, 0, 0);
        let (ends_with_return, is_at_end, max_row_bytes) = (false, false, MAX_ROW_BYTES);
        Ok(Self { text, decoder, buffer, start, end, parsed, line_feeds, ends_with_return, is_at_end, max_row_bytes })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if self.start == self.end && !self.is_at_end {
                (self.start, self.end) = (0, self.text.read(&mut self.buffer)?);
                self.is_at_end = self.end == 0;
            }
            if self.parse()? || self.is_at_end {
                let batch = self.decoder.flush()?;
                if batch.is_some() || self.is_at_end {
                    self.parsed = 0;
                    return Ok(batch);
                }
            }
            if self.parsed > BATCH_BYTES + self.max_row_bytes {
                let (max, advice) = (self.max_row_bytes, "a quote without an end makes one row of all that follows");
                return Err(ArrowError::ParseError(format!("a row has more than {max} bytes; {advice}")));
            }
        }
    }

    /// Parses bytes of the buffer: all of them, or up to a line feed if the batch is large enough. Returns whether the batch
    /// ends: it has its number of rows, or it is large enough and the line feed ends a row.
    fn parse(&mut self) -> Result<bool, ArrowError> {
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        let is_large = self.parsed >= BATCH_BYTES;
        let line_end = memchr(b'\n', bytes).filter(|_| is_large).map(|at| at + 1);
        let bytes = bytes.get(..line_end.unwrap_or(bytes.len())).unwrap_or_default();
        let before = self.decoder.rows();
        let used = self.decoder.decode(bytes)?;
        let parsed = bytes.get(..used).unwrap_or_default();
        self.line_feeds += memchr_iter(b'\n', parsed).count() as u64;
        self.ends_with_return = parsed.last().map_or(self.ends_with_return, |last| *last == b'\r');
        self.start += used;
        self.parsed += used;
        // A carriage return may end a row of CSV too, after which the line feed may be in quotes.
        let inside = line_end.and_then(|_| parsed.strip_suffix(b"\n"));
        let inside = inside.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let is_row = inside.is_some_and(|line| memchr(b'\r', line).is_none()) && self.decoder.rows() > before;
        Ok(used < bytes.len() || is_row)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow_schema::{DataType, Field, Schema};
    use tfarrow_dataset::resolve;

    use super::*;

    #[test]
    fn a_row_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        let error = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            let shard = resolve(&[&path]).unwrap().remove(0);
            let mut rows = TextRows::new(&shard, &schema, BATCH_ROWS).unwrap();
            rows.max_row_bytes = 1 << 20;
            loop {
                match rows.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(error.to_string()),
                }
            }
        };
        let long = "x\n".repeat(4 << 20);
        let quote = error("a.csv", format!("a\nb\n\"{long}")).unwrap();
        assert!(quote.contains("a row has more than 1048576 bytes; a quote without an end"), "{quote}");
        let line = error("a.jsonl", format!("{{\"a\": \"b\"}}\n{{\"a\": \"{}", long.replace('\n', "y"))).unwrap();
        assert!(line.contains("a row has more than 1048576 bytes"), "{line}");
        // Many rows are no long row.
        assert_eq!(error("b.csv", format!("a\n{long}")), None);
    }
}
