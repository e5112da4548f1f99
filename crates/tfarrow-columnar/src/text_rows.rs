//! The rows of a CSV or JSON file in batches of bounded size, for given columns.
//!
//! ```text
//! TextReader ─▶ 256 KiB ─▶ decoder of arrow-csv or arrow-json ─▶ RecordBatch
//!                          8,192 rows, or the first row end after 4 MiB
//! ```
//!
//! The decoders name no line, or count rows as lines. After an error, the file is therefore parsed
//! again, row by row, up to the row of the error.

use std::{
    io::{self, Read},
    ops::Range,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use memchr::{memchr, memchr_iter};
use tfarrow_codec::BATCH_CELLS;
use tfarrow_dataset::{Error, Result};

use crate::{
    catch_panic::catch_panic_in,
    json_numbers::NotFinite,
    parquet_rows::BATCH_ROWS,
    text::{CsvForm, Text, TextForm},
    text_reader::{MAX_ROW_BYTES, TextReader},
    unreadable::{in_part, unreadable_arrow, unreadable_text},
};

/// Bytes of text after which a batch ends with the current row.
const BATCH_BYTES: usize = 4 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What is read of a text.
#[derive(Clone, Debug)]
pub(crate) struct RowSelection {
    /// The indices of the columns of CSV that are parsed; `None`: all. Those of JSON are those of
    /// the schema.
    pub(crate) columns: Option<Vec<usize>>,
    /// Maximum number of rows. No more of the text is parsed.
    pub(crate) max_rows: u64,
    /// Maximum number of rows of a batch.
    pub(crate) batch_rows: usize,
    /// The range of bytes in which the rows begin, each on a line of its own; `None`: all rows.
    pub(crate) lines: Option<Range<u64>>,
}

impl Default for RowSelection {
    fn default() -> Self {
        Self {
            columns: None,
            max_rows: u64::MAX,
            batch_rows: BATCH_ROWS,
            lines: None,
        }
    }
}

impl RowSelection {
    /// Whether the header of CSV is before the rows.
    fn has_header(&self, form: &CsvForm) -> bool {
        form.has_header && self.lines.as_ref().is_none_or(|lines| lines.start == 0)
    }
}

/// The batches of a text, which end after the first error.
pub(crate) struct TextBatches {
    text: Text,
    schema: SchemaRef,
    selection: RowSelection,
    /// `None` after an error.
    rows: Option<TextRows>,
    /// The number of rows so far.
    row: u64,
}

impl TextBatches {
    /// Reads the rows of a text, whose columns are `schema`.
    ///
    /// # Errors
    /// A text that cannot be opened. A row that does not fit the columns is an error of the
    /// iterator, with its line.
    pub(crate) fn open(text: &Text, schema: &SchemaRef, selection: &RowSelection) -> Result<Self> {
        let rows = TextRows::new(text, schema, selection)?;
        let text = text.clone();
        let schema = Arc::clone(schema);
        let selection = selection.clone();
        Ok(Self {
            text,
            schema,
            selection,
            rows: Some(rows),
            row: 0,
        })
    }

    /// After all rows: whether each row is on a line of its own, so that each line feed ends a row,
    /// and no line is blank.
    pub(crate) fn has_row_per_line(&self) -> bool {
        let Some(rows) = &self.rows else { return false };
        let headers = match &rows.text.form {
            TextForm::Csv(form) => u64::from(self.selection.has_header(form)),
            TextForm::Json => 0,
        };
        rows.is_at_end && !rows.reader.is_array && rows.lines.count() == Some(self.row + headers)
    }

    /// Adds the line of the first row that cannot be parsed to an error. Parses the text again, row
    /// by row, but not `long_row`, whose number is known.
    fn in_line(&self, error: Error, long_row: Option<u64>) -> Error {
        // Rows of a range have no line numbers.
        let first = if self.selection.lines.is_none() {
            self.row
        } else {
            0
        };
        let found = first_unfit(&self.text, &self.schema, &self.selection, long_row)
            .filter(|(row, _)| *row >= first);
        in_part(
            &self.text.path,
            error,
            || match found {
                Some((row, line)) => format!("line {line} (row {row})"),
                None => format!("from row {first} on"),
            },
            found.map_or(first, |(row, _)| row),
        )
    }
}

impl Iterator for TextBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let path = &self.text.path;
        let rows = self.rows.as_mut()?;
        match catch_panic_in(path, || rows.next().map_err(|e| unreadable_text(path, e)))
            .transpose()?
        {
            Ok(batch) => {
                self.row += batch.num_rows() as u64;
                Some(Ok(batch))
            }
            Err(error) => {
                let long_row = rows
                    .has_long_row
                    .then(|| self.row + rows.decoder.rows() as u64);
                // Frees the memory of the rows.
                self.rows = None;
                Some(Err(self.in_line(
                    error,
                    long_row.filter(|_| self.selection.lines.is_none()),
                )))
            }
        }
    }
}

/// The number of the first row that cannot be parsed, and its line; `None` if all rows can be
/// parsed. `long_row` is not parsed.
fn first_unfit(
    text: &Text,
    schema: &SchemaRef,
    selection: &RowSelection,
    long_row: Option<u64>,
) -> Option<(u64, u64)> {
    let mut rows = TextRows::row_by_row(text, schema, selection).ok()?;
    let path = &text.path;
    for row in 0.. {
        let next = catch_panic_in(path, || {
            rows.skip_blank_lines().map_err(|e| Error::io(path, e))?;
            let line = rows.lines.feeds + 1;
            let next = if long_row == Some(row) {
                Ok(None)
            } else {
                rows.next()
            };
            Ok((line, next.map_err(|e| unreadable_text(path, e))))
        });
        match next {
            Ok((line, _)) if long_row == Some(row) => return Some((row, line)),
            Ok((_, Ok(Some(_)))) => {}
            Ok((line, Err(_))) => return Some((row, line)),
            Ok((_, Ok(None))) | Err(_) => return None,
        }
    }
    None
}

/// The ends of the lines of a text.
#[derive(Debug, Default)]
struct LineEnds {
    /// Number of line feeds.
    feeds: u64,
    /// Whether there was a carriage return without a line feed.
    has_other: bool,
    last: Option<u8>,
}

impl LineEnds {
    fn add(&mut self, bytes: &[u8]) {
        self.feeds += memchr_iter(b'\n', bytes).count() as u64;
        let Some((first, last)) = bytes.first().zip(bytes.last()) else {
            return;
        };
        let mut follows = memchr_iter(b'\r', bytes).filter_map(|at| bytes.get(at + 1));
        self.has_other |=
            follows.any(|byte| *byte != b'\n') || self.last == Some(b'\r') && *first != b'\n';
        self.last = Some(*last);
    }

    /// The number of lines; `None` if other characters than line feeds may end lines.
    fn count(&self) -> Option<u64> {
        let is_cut = self.last.is_some_and(|last| last != b'\n');
        (!self.has_other && self.last != Some(b'\r')).then_some(self.feeds + u64::from(is_cut))
    }
}

/// A parser that takes bytes.
enum TextDecoder {
    Csv(Box<arrow_csv::reader::Decoder>, usize),
    Json(Box<arrow_json::reader::Decoder>),
}

impl TextDecoder {
    /// A parser of batches of `batch_rows` rows. The text begins with the header of CSV if it
    /// `has_header`.
    fn new(
        form: &TextForm,
        schema: &SchemaRef,
        columns: Option<&Vec<usize>>,
        batch_rows: usize,
        has_header: bool,
    ) -> Result<Self, ArrowError> {
        let schema = Arc::clone(schema);
        let TextForm::Csv(form) = form else {
            // A column of text may have other values as well, which become text.
            let builder = arrow_json::ReaderBuilder::new(schema)
                .with_batch_size(batch_rows)
                .with_coerce_primitive(true);
            return Ok(Self::Json(Box::new(builder.build_decoder()?)));
        };
        let mut builder = arrow_csv::ReaderBuilder::new(schema)
            .with_format(form.format.clone())
            .with_header(has_header)
            .with_batch_size(batch_rows);
        if let Some(columns) = columns {
            builder = builder.with_projection(columns.clone());
        }
        Ok(Self::Csv(Box::new(builder.build_decoder()), batch_rows))
    }

    /// Parses bytes until a batch is complete. Returns their number. No bytes are the end of the
    /// file.
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
    text: Text,
    schema: SchemaRef,
    /// The columns of CSV that are parsed; `None`: all.
    columns: Option<Vec<usize>>,
    reader: TextReader,
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
    /// The lines among the bytes that were parsed.
    lines: LineEnds,
    is_at_end: bool,
    /// Maximum bytes of a row.
    max_row_bytes: usize,
    /// Whether the next row has more bytes.
    has_long_row: bool,
}

impl TextRows {
    fn new(text: &Text, schema: &SchemaRef, selection: &RowSelection) -> Result<Self> {
        let RowSelection {
            columns,
            max_rows,
            batch_rows,
            lines,
        } = selection;
        let column_count = columns
            .as_ref()
            .map_or(schema.fields().len(), Vec::len)
            .max(1);
        let most = usize::try_from(*max_rows)
            .unwrap_or(usize::MAX)
            .min(*batch_rows);
        let batch_rows = (BATCH_CELLS / column_count)
            .clamp(1, BATCH_ROWS)
            .min(most)
            .max(1);
        let has_header = match &text.form {
            TextForm::Csv(form) => selection.has_header(form),
            TextForm::Json => false,
        };
        let decoder =
            TextDecoder::new(&text.form, schema, columns.as_ref(), batch_rows, has_header);
        Ok(Self {
            text: text.clone(),
            schema: Arc::clone(schema),
            columns: columns.clone(),
            reader: TextReader::open(text, lines.as_ref(), NotFinite::AsTexts)?,
            decoder: decoder.map_err(|e| unreadable_arrow(&text.path, e))?,
            batch_rows,
            left: *max_rows,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            parsed: 0,
            lines: LineEnds::default(),
            is_at_end: false,
            max_row_bytes: MAX_ROW_BYTES,
            has_long_row: false,
        })
    }

    /// Parses one row after the other, so that the lines before each are known. The header was
    /// parsed before.
    fn row_by_row(text: &Text, schema: &SchemaRef, selection: &RowSelection) -> Result<Self> {
        let selection = RowSelection {
            max_rows: u64::MAX,
            batch_rows: 1,
            lines: None,
            ..selection.clone()
        };
        let mut rows = Self::new(text, schema, &selection)?;
        if let TextForm::Csv(CsvForm {
            has_header: true, ..
        }) = text.form
        {
            let names = schema
                .fields()
                .iter()
                .map(|field| Field::new(field.name(), DataType::Utf8, true));
            let names = Arc::new(Schema::new(names.collect::<Fields>()));
            let unreadable = |e| unreadable_text(&text.path, e);
            rows.decoder =
                TextDecoder::new(&text.form, &names, None, 1, false).map_err(unreadable)?;
            rows.next().map_err(unreadable)?;
            rows.decoder = rows.decoder_of(1).map_err(unreadable)?;
        }
        Ok(rows)
    }

    /// A parser of further batches.
    fn decoder_of(&self, batch_rows: usize) -> Result<TextDecoder, ArrowError> {
        TextDecoder::new(
            &self.text.form,
            &self.schema,
            self.columns.as_ref(),
            batch_rows,
            false,
        )
    }

    /// Skips blank lines before a row.
    fn skip_blank_lines(&mut self) -> io::Result<()> {
        let is_json = self.text.is_json();
        loop {
            self.fill()?;
            let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let blank = bytes
                .iter()
                .take_while(|byte| {
                    matches!(**byte, b'\n' | b'\r') || is_json && byte.is_ascii_whitespace()
                })
                .count();
            self.lines.add(bytes.get(..blank).unwrap_or_default());
            self.start += blank;
            if self.start < self.end || self.is_at_end {
                return Ok(());
            }
        }
    }

    /// Reads bytes if all bytes of the buffer were parsed.
    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end && !self.is_at_end {
            (self.start, self.end) = (0, self.reader.read(&mut self.buffer)?);
            self.is_at_end = self.end == 0;
        }
        Ok(())
    }

    /// Makes the last batch as small as the number of rows that are left, so that no row after them
    /// is parsed.
    fn limit_batch(&mut self) -> Result<(), ArrowError> {
        if let Some(left) = usize::try_from(self.left)
            .ok()
            .filter(|left| *left < self.batch_rows)
        {
            self.decoder = self.decoder_of(left)?;
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
                    self.left -= batch
                        .as_ref()
                        .map_or(0, |batch| batch.num_rows() as u64)
                        .min(self.left);
                    return Ok(batch);
                }
            }
            if self.parsed > BATCH_BYTES + self.max_row_bytes {
                self.has_long_row = true;
                let max = self.max_row_bytes;
                let advice = "a quote without an end makes one row of all that follows";
                return Err(ArrowError::ParseError(format!(
                    "a row has more than {max} bytes; {advice}"
                )));
            }
        }
    }

    /// Parses bytes of the buffer: all of them, or up to a line feed if the batch is large enough.
    /// Returns whether the batch ends: it has its number of rows, or it is large enough and the
    /// line feed ends a row.
    fn parse(&mut self) -> Result<bool, ArrowError> {
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        let is_large = self.parsed >= BATCH_BYTES;
        let line_end = memchr(b'\n', bytes).filter(|_| is_large).map(|at| at + 1);
        let bytes = bytes
            .get(..line_end.unwrap_or(bytes.len()))
            .unwrap_or_default();
        let before = self.decoder.rows();
        let used = self.decoder.decode(bytes)?;
        let parsed = bytes.get(..used).unwrap_or_default();
        self.lines.add(parsed);
        self.start += used;
        self.parsed += used;
        // A carriage return may end a row of CSV too, after which the line feed may be in quotes.
        let inside = line_end.and_then(|_| parsed.strip_suffix(b"\n"));
        let inside = inside.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let is_row = inside.is_some_and(|line| memchr(b'\r', line).is_none())
            && self.decoder.rows() > before;
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
            let mut batches =
                TextBatches::open(&Text::of_shard(&shard), &schema, &RowSelection::default())
                    .unwrap();
            batches.rows.as_mut().unwrap().max_row_bytes = 1 << 20;
            batches.find_map(Result::err).map(|error| error.to_string())
        };
        let long = "x\n".repeat(4 << 20);
        let quote = error("a.csv", format!("a\nb\n\"{long}")).unwrap();
        assert!(quote.contains("line 3 (row 1): "), "{quote}");
        assert!(
            quote.contains("a row has more than 1048576 bytes; a quote without an end"),
            "{quote}"
        );
        let line = error(
            "a.jsonl",
            format!("{{\"a\": \"b\"}}\n{{\"a\": \"{}", long.replace('\n', "y")),
        )
        .unwrap();
        assert!(line.contains("a row has more than 1048576 bytes"), "{line}");
        // Many rows are no long row.
        assert_eq!(error("b.csv", format!("a\n{long}")), None);
    }
}
