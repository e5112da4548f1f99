//! Tables of rows: shortened values, escaped control characters.
//!
//! On a screen, a table fits: text is narrowed, columns and rows in the middle are left out, and a
//! last line counts them.

use std::{
    collections::VecDeque,
    io::{self, Write},
    mem,
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_convert::schema_json::type_name;
use tfarrow_report::text::{MEASURED_ROWS, Screen, TableColumn, TextTable, count, plural};

use super::{
    cell::{is_number, quoted_cells},
    rows::Rows,
};

/// Writes batches as one table.
pub(super) struct Table<W> {
    table: TextTable<W>,
    /// Number of columns.
    columns: usize,
    /// Whether values are shown in full, with their line breaks.
    full: bool,
    /// Maximum number of rows that are shown; `None` for all.
    most: Option<usize>,
    /// Number of rows so far, and of those that are shown.
    rows: usize,
    shown: usize,
    /// The last rows, of which some are shown if there are more than `most`.
    last: VecDeque<RecordBatch>,
}

impl<W: Write> Table<W> {
    /// A table of the rows of a query. A screen shows the types of the columns, and at most `most`
    /// rows.
    pub(super) fn new(
        out: W,
        schema: &SchemaRef,
        screen: Screen,
        full: bool,
        most: Option<usize>,
    ) -> Self {
        let mut columns = Vec::new();
        for field in schema.fields() {
            let type_name = screen.width.map(|_| type_name(field.data_type()));
            let is_number = is_number(field.data_type());
            columns.push(TableColumn::new(field.name(), type_name, is_number));
        }
        // The widths of a table with a maximum are those of all rows that are shown.
        let measured_rows = most.map_or(MEASURED_ROWS, |_| usize::MAX);
        let screen = if full { screen.unbounded() } else { screen };
        Self {
            columns: columns.len(),
            table: TextTable::new(out, columns, screen, measured_rows),
            full,
            most,
            rows: 0,
            shown: 0,
            last: VecDeque::new(),
        }
    }

    /// Writes a row of a batch.
    fn write_row(&mut self, batch: &RecordBatch, row: usize) -> io::Result<()> {
        self.shown += 1;
        self.table.row(quoted_cells(batch, row, self.full)?)
    }

    /// Keeps the last rows of a table with a maximum: half of those that are shown.
    fn keep_last(&mut self, batch: &RecordBatch, most: usize) {
        self.last.push_back(batch.clone());
        let mut kept: usize = self.last.iter().map(RecordBatch::num_rows).sum();
        while let Some(first) = self.last.front()
            && kept - first.num_rows() >= most / 2
        {
            kept -= first.num_rows();
            self.last.pop_front();
        }
    }

    /// Writes the rows after the first of a table with a maximum.
    fn write_last(&mut self, most: usize) -> io::Result<()> {
        let last = (most / 2).min(self.rows - self.shown);
        if self.shown + last < self.rows {
            self.table.row(vec![Some("…".to_owned()); self.columns])?;
        }
        let kept: usize = self.last.iter().map(RecordBatch::num_rows).sum();
        let mut skip = kept - last;
        for batch in mem::take(&mut self.last) {
            let begin = skip.min(batch.num_rows());
            skip -= begin;
            for row in begin..batch.num_rows() {
                self.write_row(&batch, row)?;
            }
        }
        Ok(())
    }
}

/// A number of things, and of those that are shown if some are left out: `8 rows (5 shown)`.
fn shown_of(all: usize, shown: usize, noun: &str) -> String {
    let all_of_them = plural(all as u64, noun);
    if shown < all {
        format!("{all_of_them} ({} shown)", count(shown as u64))
    } else {
        all_of_them
    }
}

impl<W: Write + Send> Rows for Table<W> {
    /// A table with a maximum of rows holds them until the widths of all shown rows are known.
    fn is_waiting(&self) -> bool {
        self.most.is_some()
    }

    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        // Of an odd maximum, one row more is shown at the front.
        let first = self.most.map_or(usize::MAX, |most| most - most / 2);
        let direct = batch.num_rows().min(first.saturating_sub(self.rows));
        for row in 0..direct {
            self.write_row(batch, row)?;
        }
        if let Some(most) = self.most {
            self.keep_last(&batch.slice(direct, batch.num_rows() - direct), most);
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(most) = self.most {
            self.write_last(most)?;
        }
        let hidden = self.table.finish()?;
        if hidden > 0 || self.shown < self.rows {
            let rows = shown_of(self.rows, self.shown, "row");
            let columns = shown_of(self.columns, self.columns - hidden, "column");
            writeln!(self.table.output(), "{rows}, {columns}")?;
        }
        self.table.output().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn table(batches: &[RecordBatch], width: Option<usize>, most: Option<usize>) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(
            &mut out,
            &batches[0].schema(),
            Screen::plain(width),
            false,
            most,
        );
        batches
            .iter()
            .try_for_each(|batch| table.write(batch))
            .unwrap();
        table.finish().unwrap();
        drop(table);
        String::from_utf8(out).unwrap()
    }

    fn numbers(from: i64, to: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        RecordBatch::try_from_iter([("x", numbers)]).unwrap()
    }

    #[test]
    fn rows_in_the_middle_are_left_out() {
        let column = |text: &str| -> Vec<String> {
            let rows = text.lines().filter(|line| line.starts_with('|')).skip(1);
            rows.map(|line| line.trim_matches(['|', ' ']).to_owned())
                .collect()
        };
        for cuts in [
            vec![0, 100],
            vec![0, 1, 2, 3, 50, 98, 99, 100],
            vec![0, 97, 100],
        ] {
            let batches: Vec<_> = cuts.windows(2).map(|cut| numbers(cut[0], cut[1])).collect();
            let text = table(&batches, None, Some(5));
            assert_eq!(column(&text), ["0", "1", "2", "…", "98", "99"]);
            assert!(
                text.ends_with("+\n100 rows (5 shown), 1 column\n"),
                "{text}"
            );
            assert_eq!(column(&table(&batches, None, Some(100))).len(), 100);
            assert_eq!(column(&table(&batches, None, Some(99))).len(), 100);
            assert_eq!(column(&table(&batches, None, Some(1))), ["0", "…"]);
        }
        assert_eq!(column(&table(&[numbers(0, 0)], None, Some(5))), [""; 0]);
    }

    #[test]
    fn nulls_and_their_text_differ() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some("NULL"), Some("null")]));
        let text = table(
            &[RecordBatch::try_from_iter([("x", texts)]).unwrap()],
            Some(80),
            None,
        );
        assert_eq!(
            text,
            "+--------+\n| x      |\n| utf8   |\n+--------+\n| NULL   |\n| \"NULL\" |\n| null   |\n+--------+\n"
        );
    }

    #[test]
    fn columns_in_the_middle_are_left_out() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let number: ArrayRef = Arc::new(Int64Array::from(vec![123_456_789_012_345]));
        let batch =
            RecordBatch::try_from_iter(names.map(|name| (name, Arc::clone(&number)))).unwrap();
        let text = table(&[batch], Some(60), None);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(
            text.contains("|               a |               b | … |               f |\n"),
            "{text}"
        );
        assert!(text.ends_with("+\n1 row, 6 columns (3 shown)\n"), "{text}");
    }
}
