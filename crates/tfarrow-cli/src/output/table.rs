//! Tables for people: aligned columns, shortened values, escaped control characters.
//!
//! The first rows determine the widths of the columns, and the other rows are streamed, so that
//! memory is bounded. On a screen, a table fits: text is narrowed, columns and rows in the middle
//! are left out, and a last line counts them.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_convert::schema_json::type_name;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    cell::{NULL, is_number, quoted_cells},
    humanize::{count, plural},
    rows::Rows,
    screen::{FAINT, Screen},
    table_layout::{Need, TableLayout},
};
use crate::text::escape;

/// Number of rows that determine the widths of the columns.
const MEASURED_ROWS: usize = 1000;

/// Writes batches as one table.
pub(super) struct Table<W> {
    out: W,
    columns: Vec<Column>,
    layout: Option<TableLayout>,
    screen: Screen,
    /// Whether values are shown in full, with their line breaks.
    full: bool,
    /// Maximum number of rows that are shown; `None` for all.
    most: Option<usize>,
    /// Number of rows so far.
    rows: usize,
    /// The rows that wait until the widths are determined.
    waiting: Vec<Row>,
    /// The last rows, of which some are shown if there are more than `most`.
    last: VecDeque<RecordBatch>,
    line: String,
}

/// The cells of a row; `None` for a null.
type Row = Vec<Option<String>>;

struct Column {
    name: String,
    /// The type of the values, which screens show.
    type_name: Option<String>,
    need: Need,
}

impl Column {
    fn new(name: &str, type_name: Option<String>, is_number: bool) -> Self {
        let name = escape(name);
        let header = name
            .width()
            .max(type_name.as_deref().map_or(0, UnicodeWidthStr::width));
        Self {
            name,
            type_name,
            need: Need {
                header,
                values: 0,
                first: 0,
                is_number,
            },
        }
    }
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
        let column = |field: &arrow_schema::FieldRef| {
            let type_name = screen.width.map(|_| type_name(field.data_type()));
            Column::new(field.name(), type_name, is_number(field.data_type()))
        };
        Self::of(
            out,
            schema.fields().iter().map(column).collect(),
            screen,
            full,
            most,
        )
    }

    /// A table of text cells. Cells of the columns that `numbers` marks are aligned to the right.
    pub(super) fn of_text(out: W, names: &[&str], numbers: &[bool], screen: Screen) -> Self {
        let columns = names
            .iter()
            .zip(numbers)
            .map(|(name, is_number)| Column::new(name, None, *is_number));
        Self::of(out, columns.collect(), screen, false, None)
    }

    fn of(out: W, columns: Vec<Column>, screen: Screen, full: bool, most: Option<usize>) -> Self {
        let (waiting, last, line) = Default::default();
        Self {
            out,
            columns,
            layout: None,
            screen,
            full,
            most,
            rows: 0,
            waiting,
            last,
            line,
        }
    }

    /// Writes a row of text cells.
    pub(super) fn text_row(&mut self, cells: Vec<String>) -> io::Result<()> {
        self.rows += 1;
        self.row(cells.into_iter().map(Some).collect())
    }

    fn row(&mut self, row: Row) -> io::Result<()> {
        if self.layout.is_some() {
            return self.print(&row);
        }
        self.waiting.push(row);
        // The widths of a table with a maximum are those of all rows that are shown.
        if self.most.is_some() || self.waiting.len() < MEASURED_ROWS {
            Ok(())
        } else {
            self.begin()
        }
    }

    /// Determines the widths of the columns, and prints the waiting rows.
    fn begin(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for row in &waiting {
            for (column, cell) in self.columns.iter_mut().zip(row) {
                let widest = cell
                    .as_deref()
                    .unwrap_or(NULL)
                    .lines()
                    .map(UnicodeWidthStr::width)
                    .max();
                column.need.values = column.need.values.max(widest.unwrap_or_default());
                column.need.first = column
                    .need
                    .first
                    .max(cell.as_deref().map_or(0, first_number));
            }
        }
        let needs: Vec<_> = self.columns.iter().map(|column| column.need).collect();
        self.layout = Some(TableLayout::of(
            &needs,
            if self.full { None } else { self.screen.width },
        ));
        self.rule()?;
        let header: Row = self
            .columns
            .iter()
            .map(|column| Some(column.name.clone()))
            .collect();
        self.print(&header)?;
        if self.columns.iter().any(|column| column.type_name.is_some()) {
            let types: Row = self
                .columns
                .iter()
                .map(|column| column.type_name.clone())
                .collect();
            self.print(&types)?;
        }
        self.rule()?;
        waiting.iter().try_for_each(|row| self.print(row))
    }

    fn rule(&mut self) -> io::Result<()> {
        let Some(layout) = &self.layout else {
            return Ok(());
        };
        self.line.clear();
        for width in layout.widths() {
            self.line.push('+');
            self.line.extend(std::iter::repeat_n('-', width + 2));
        }
        self.line.push_str("+\n");
        self.out.write_all(self.line.as_bytes())
    }

    /// Prints a row, which takes as many lines as its cell of most lines.
    fn print(&mut self, row: &Row) -> io::Result<()> {
        let Some(layout) = &self.layout else {
            return Ok(());
        };
        let cells = self
            .columns
            .iter()
            .zip(row)
            .map(|(column, cell)| (cell.as_deref(), column.need.is_number));
        let shown: Vec<_> = layout
            .pick(cells, (Some("…"), false))
            .into_iter()
            .zip(layout.widths())
            .collect();
        let mut lines: Vec<_> = shown
            .iter()
            .map(|((cell, _), _)| cell.unwrap_or(NULL).lines())
            .collect();
        for line in 0.. {
            let parts: Vec<_> = lines.iter_mut().map(Iterator::next).collect();
            if line > 0 && parts.iter().all(Option::is_none) {
                break;
            }
            self.line.clear();
            for (((cell, is_number), width), part) in shown.iter().zip(parts) {
                let text = padded(part.unwrap_or_default(), *width, *is_number);
                let text = if cell.is_none() {
                    self.screen.coloured(FAINT, &text)
                } else {
                    text
                };
                self.line.extend(["| ", &text, " "]);
            }
            self.line.push_str("|\n");
            self.out.write_all(self.line.as_bytes())?;
        }
        Ok(())
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

    /// Writes the rows after the first of a table with a maximum. Returns the number of rows that
    /// are shown.
    fn write_last(&mut self, most: usize) -> io::Result<usize> {
        let first = self.waiting.len();
        let last = (most / 2).min(self.rows - first);
        if first + last < self.rows {
            let gap = self.columns.iter().map(|_| Some("…".to_owned())).collect();
            self.row(gap)?;
        }
        let kept: usize = self.last.iter().map(RecordBatch::num_rows).sum();
        let mut skip = kept - last;
        for batch in std::mem::take(&mut self.last) {
            let begin = skip.min(batch.num_rows());
            skip -= begin;
            for row in begin..batch.num_rows() {
                let cells = quoted_cells(&batch, row, self.full)?;
                self.row(cells)?;
            }
        }
        Ok(first + last)
    }

    /// The numbers of rows and columns, where some are left out.
    fn counts(&self, shown: usize) -> Option<String> {
        let hidden = self.layout.as_ref().map_or(0, |layout| layout.hidden);
        let part = |all: usize, shown: usize, noun: &str| {
            let shown = (shown < all).then(|| format!(" ({} shown)", count(shown as u64)));
            format!("{}{}", plural(all as u64, noun), shown.unwrap_or_default())
        };
        let is_cut = hidden > 0 || shown < self.rows;
        let columns = self.columns.len();
        is_cut.then(|| {
            format!(
                "{}, {}",
                part(self.rows, shown, "row"),
                part(columns, columns - hidden, "column")
            )
        })
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
            let cells = quoted_cells(batch, row, self.full)?;
            self.row(cells)?;
        }
        if let Some(most) = self.most {
            self.keep_last(&batch.slice(direct, batch.num_rows() - direct), most);
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let shown = match self.most {
            Some(most) => self.write_last(most)?,
            None => self.rows,
        };
        if self.layout.is_none() {
            self.begin()?;
        }
        self.rule()?;
        if let Some(counts) = self.counts(shown) {
            writeln!(self.out, "{counts}")?;
        }
        self.out.flush()
    }
}

/// The width of the beginning of a list of numbers that [`cut`] leaves, with its mark, where the
/// first number is shown; 0 for other text.
fn first_number(text: &str) -> usize {
    let numbers = text.trim_start_matches('[');
    let is_number =
        text.starts_with('[') && numbers.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if is_number {
        text.find([',', ']'])
            .map_or(0, |end| text.width().min(end + 2))
    } else {
        0
    }
}

/// `text` padded or truncated to a width.
fn padded(text: &str, width: usize, to_right: bool) -> String {
    let own = text.width();
    if own > width {
        return cut(text, width);
    }
    let pad = " ".repeat(width - own);
    if to_right {
        pad + text
    } else {
        text.to_owned() + &pad
    }
}

/// The beginning of `text`, which does not end within a number, padded to a width.
fn cut(text: &str, width: usize) -> String {
    let mut left = width.saturating_sub(1);
    let mut end = 0;
    for (start, c) in text.char_indices() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else {
            break;
        };
        left = rest;
        end = start + c.len_utf8();
    }
    let (begin, rest) = text.split_at(end);
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let is_in_number =
        rest.starts_with(is_digit) && begin.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let begin = if is_in_number {
        begin.trim_end_matches(is_digit)
    } else {
        begin
    };
    format!(
        "{begin}…{}",
        " ".repeat(width.saturating_sub(begin.width() + 1))
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

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
    fn texts_are_cut_by_display_width_and_not_within_numbers() {
        let check = |text: &str, width, expect: &str| {
            assert_eq!(cut(text, width), expect);
        };
        check("日本語日本語日本語", 10, "日本語日… ");
        check("[-0.32542, 0.77]", 10, "[-0.32542…");
        check("[-0.32542, 0.77]", 9, "[…       ");
        check("[-0.32542, 0.77]", 14, "[-0.32542, …  ");
        check("version 1 of it", 10, "version 1…");
        for (text, width) in [
            ("[-0.32542, 0.77]", 11),
            ("[1]", 3),
            ("[[1, 2]]", 5),
            ("[a, b]", 0),
            ("-1", 0),
        ] {
            assert_eq!(first_number(text), width, "{text}");
        }
        check("[-0.32542, 0.77]", 11, "[-0.32542,…");
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
