//! The rows of a CSV or JSON file in batches of bounded size, for given columns.
//!
//! ```text
//! TextReader ─▶ 256 KiB ─▶ decoder of arrow-csv or arrow-json ─▶ RecordBatch
//!                          8,192 rows, or the first row end after 4 MiB
//! ```
//!
//! The decoders name no line, or count rows as lines. After an error, the file is therefore parsed again, row by row, up to
//! the row of the error.

use std::{
    io::{self, Read},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use memchr::{memchr, memchr_iter};
use tfarrow_codec::BATCH_CELLS;
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    csv_header::csv_format,
    guarded::{guarded, until_error},
    parquet_rows::BATCH_ROWS,
    text_reader::{MAX_ROW_BYTES, TextReader},
    unreadable::{in_part, unreadable_arrow, unreadable_text},
};

/// Bytes of text after which a batch ends with the current row.
const BATCH_BYTES: usize = 4 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Reads the rows of a file, whose columns are `schema`, at most `max_rows`. No more of the file is parsed.
///
/// # Errors
/// A file that cannot be opened. A row that does not fit the columns is an error of the iterator, with its line.
pub(crate) fn text_rows(
    shard: &Shard,
    schema: &SchemaRef,
    max_rows: u64,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let (shard, schema) = (shard.clone(), Arc::clone(schema));
    let batch_rows = (BATCH_CELLS / schema.fields().len().max(1)).clamp(1, BATCH_ROWS);
    let (mut rows, mut row) = (TextRows::new(&shard, &schema, batch_rows, max_rows)?, 0);
    Ok(until_error(move || {
        let batch = guarded(&shard.path, || rows.next().map_err(|e| unreadable_text(&shard.path, e)));
        let batch = batch.map_err(|error| in_line(&shard, &schema, error, row))?;
        row += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        Ok(batch)
    }))
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
    let mut rows = TextRows::row_by_row(shard, schema).ok()?;
    for row in 0.. {
        let next = guarded(&shard.path, || {
            rows.skip_blank_lines().map_err(|e| Error::io(&shard.path, e))?;
            let line = rows.line_feeds + 1;
            Ok((line, rows.next().map_err(|e| unreadable_text(&shard.path, e))))
        });
        match next {
            Ok((_, Ok(Some(_)))) => {}
            Ok((line, Err(_))) => return Some((row, line)),
            Ok((_, Ok(None))) | Err(_) => return None,
        }
    }
    None
}

/// A parser that takes bytes.
enum TextDecoder {
    Csv(Box<arrow_csv::reader::Decoder>, usize),
    Json(Box<arrow_json::reader::Decoder>),
}

impl TextDecoder {
    /// A parser of batches of `batch_rows` rows. The text begins with the header of CSV if it `has_header`.
    fn new(shard: &Shard, schema: &SchemaRef, batch_rows: usize, has_header: bool) -> Result<Self, ArrowError> {
        let schema = Arc::clone(schema);
        if shard.format == ShardFormat::Json {
            // A column of text may have other values as well, which become text.
            let builder =
                arrow_json::ReaderBuilder::new(schema).with_batch_size(batch_rows).with_coerce_primitive(true);
            return Ok(Self::Json(Box::new(builder.build_decoder()?)));
        }
        let builder =
            arrow_csv::ReaderBuilder::new(schema).with_format(csv_format(&shard.path)).with_header(has_header);
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
    shard: Shard,
    schema: SchemaRef,
    text: TextReader,
    decoder: TextDecoder,
    /// Maximum number of rows of a batch, and of further rows.
    batch_rows: usize,
    left: u64,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read and not parsed.
    start: usize,
    end: usize,
    /// Number of bytes that were parsed since the last batch.
    parsed: usize,
    /// Number of line feeds among the bytes that were parsed.
    line_feeds: u64,
    is_at_end: bool,
    /// Maximum bytes of a row.
    max_row_bytes: usize,
}

impl TextRows {
    fn new(shard: &Shard, schema: &SchemaRef, batch_rows: usize, max_rows: u64) -> Result<Self> {
        let batch_rows = batch_rows.min(usize::try_from(max_rows).unwrap_or(usize::MAX)).max(1);
        let decoder = TextDecoder::new(shard, schema, batch_rows, true);
        Ok(Self {
            shard: shard.clone(),
            schema: Arc::clone(schema),
            text: TextReader::open(shard)?,
            decoder: decoder.map_err(|e| unreadable_arrow(&shard.path, e))?,
            batch_rows,
            left: max_rows,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            parsed: 0,
            line_feeds: 0,
            is_at_end: false,
            max_row_bytes: MAX_ROW_BYTES,
        })
    }

    /// Parses one row after the other, so that the lines before each are known. The header was parsed before.
    fn row_by_row(shard: &Shard, schema: &SchemaRef) -> Result<Self> {
        let mut rows = Self::new(shard, schema, 1, u64::MAX)?;
        if shard.format == ShardFormat::Csv {
            let names = schema.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
            let names = Arc::new(Schema::new(names.collect::<Fields>()));
            let unreadable = |e| unreadable_text(&shard.path, e);
            rows.decoder = TextDecoder::new(shard, &names, 1, false).map_err(unreadable)?;
            rows.next().map_err(unreadable)?;
            rows.decoder = TextDecoder::new(shard, schema, 1, false).map_err(unreadable)?;
        }
        Ok(rows)
    }

    /// Skips blank lines before a row.
    fn skip_blank_lines(&mut self) -> io::Result<()> {
        let is_json = self.shard.format == ShardFormat::Json;
        let is_blank = |byte: &&u8| matches!(**byte, b'\n' | b'\r') || is_json && byte.is_ascii_whitespace();
        loop {
            self.fill()?;
            let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let blank = bytes.iter().take_while(is_blank).count();
            self.line_feeds += memchr_iter(b'\n', bytes.get(..blank).unwrap_or_default()).count() as u64;
            self.start += blank;
            if self.start < self.end || self.is_at_end {
                return Ok(());
            }
        }
    }

    /// Reads bytes if all bytes of the buffer were parsed.
    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end && !self.is_at_end {
            (self.start, self.end) = (0, self.text.read(&mut self.buffer)?);
            self.is_at_end = self.end == 0;
        }
        Ok(())
    }

    /// Makes the last batch as small as the number of rows that are left, so that no row after them is parsed.
    fn limit_batch(&mut self) -> Result<(), ArrowError> {
        if let Some(left) = usize::try_from(self.left).ok().filter(|left| *left < self.batch_rows) {
            self.decoder = TextDecoder::new(&self.shard, &self.schema, left, false)?;
            self.batch_rows = left;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.limit_batch()?;
        loop {
            self.fill()?;
            if self.parse()? || self.is_at_end {
                let batch = self.decoder.flush()?;
                if batch.is_some() || self.is_at_end {
                    self.parsed = 0;
                    self.left -= batch.as_ref().map_or(0, |batch| batch.num_rows() as u64).min(self.left);
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
            let mut rows = TextRows::new(&shard, &schema, BATCH_ROWS, u64::MAX).unwrap();
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
