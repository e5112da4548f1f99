//! CSV as in RFC 4180, with a header, and TSV, with tabs in place of commas. Lists and binary
//! values are JSON. A null is an empty field and an empty text is `""`, which neither the `csv`
//! crate nor arrow-csv can distinguish.

use std::io::{self, Write};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use tfarrow_columnar::csv_text;
use tfarrow_report::text::escape_except;

use super::{rows::Rows, sink::Out};

/// Writes batches as CSV.
pub(super) struct Csv {
    out: Out,
    style: Quoting,
    line: Vec<u8>,
}

/// The quoting of text.
#[derive(Clone, Copy)]
pub(super) struct Quoting {
    /// The delimiter of values: a comma or a tab.
    pub(super) delimiter: char,
    /// Whether control characters are escaped, as for a terminal.
    pub(super) escape: bool,
}

impl Csv {
    pub(super) fn new(mut out: Out, schema: &SchemaRef, style: Quoting) -> io::Result<Self> {
        let mut line = Vec::new();
        for (i, field) in schema.fields().iter().enumerate() {
            if i > 0 {
                line.push(style.delimiter as u8);
            }
            text(&mut line, field.name(), style);
        }
        line.push(b'\n');
        out.write_all(&line)?;
        Ok(Self { out, style, line })
    }

    fn cell(&mut self, column: &dyn Array, row: usize) -> io::Result<()> {
        let value = csv_text(column, row)?;
        if let Some(value) = &value {
            // Numbers are not quoted, and have no characters that would be.
            text(&mut self.line, value, self.style);
        }
        Ok(())
    }
}

impl Rows for Csv {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    self.line.push(self.style.delimiter as u8);
                }
                self.cell(column.as_ref(), row)?;
            }
            // Readers skip empty lines, and would lose a row whose only value is null.
            if self.line.is_empty() {
                self.line.extend_from_slice(b"\"\"");
            }
            self.line.push(b'\n');
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Appends `value`, in quotes where necessary.
fn text(line: &mut Vec<u8>, value: &str, style: Quoting) {
    let escaped = style.escape.then(|| escape_except(value, &['\n', '\t']));
    let value = escaped.as_deref().unwrap_or(value);
    let is_plain = value
        .chars()
        .all(|c| c != style.delimiter && !matches!(c, '"' | '\n' | '\r'));
    if !value.is_empty() && is_plain && value.trim().len() == value.len() {
        return line.extend_from_slice(value.as_bytes());
    }
    line.push(b'"');
    line.extend_from_slice(value.replace('"', "\"\"").as_bytes());
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_where_necessary() {
        let cases = [
            ("a", "a"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            (" a", "\" a\""),
            ("a\nb", "\"a\nb\""),
        ];
        for (value, written) in cases {
            let mut line = Vec::new();
            text(
                &mut line,
                value,
                Quoting {
                    delimiter: ',',
                    escape: false,
                },
            );
            assert_eq!(String::from_utf8(line).unwrap(), written);
        }
        let mut line = Vec::new();
        text(
            &mut line,
            "a,b",
            Quoting {
                delimiter: '\t',
                escape: false,
            },
        );
        text(
            &mut line,
            "a\tb",
            Quoting {
                delimiter: '\t',
                escape: false,
            },
        );
        assert_eq!(String::from_utf8(line).unwrap(), "a,b\"a\tb\"");
    }
}
