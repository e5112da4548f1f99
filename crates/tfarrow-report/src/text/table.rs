//! Tables of text for people: aligned columns that fit a screen.
//!
//! The first rows determine the widths of the columns, and the other rows are streamed, so that
//! memory is bounded.

use std::{
    io::{self, Write},
    mem,
};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    escape::escape,
    screen::{FAINT, Screen},
    table_layout::{Need, TableLayout},
};

/// How a null is shown.
pub const NULL: &str = "NULL";

/// Number of rows that determine the widths of the columns, unless a table waits for all rows.
pub const MEASURED_ROWS: usize = 1000;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    name: String,
    /// The type of the values, below the name.
    type_name: Option<String>,
    need: Need,
}

impl TableColumn {
    /// A column of this name, whose cells are aligned to the right, and not truncated, if they are
    /// numbers. The header has the type as well, if it is given.
    pub fn new(name: &str, type_name: Option<String>, is_number: bool) -> Self {
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

/// Writes rows of text as a table.
#[derive(Debug)]
pub struct TextTable<W> {
    out: W,
    columns: Vec<TableColumn>,
    layout: Option<TableLayout>,
    screen: Screen,
    /// Number of rows that determine the widths.
    measured_rows: usize,
    /// The rows that wait until the widths are determined.
    waiting: Vec<TableRow>,
    line: String,
}

/// The cells of a row; `None` for a null. A cell may have several lines.
pub type TableRow = Vec<Option<String>>;

impl<W: Write> TextTable<W> {
    /// A table whose first rows, of this number, determine the widths of the columns. They are
    /// written when the widths are known.
    pub fn new(out: W, columns: Vec<TableColumn>, screen: Screen, measured_rows: usize) -> Self {
        Self {
            out,
            columns,
            layout: None,
            screen,
            measured_rows,
            waiting: Vec::new(),
            line: String::new(),
        }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn row(&mut self, row: TableRow) -> io::Result<()> {
        if self.layout.is_some() {
            return self.print(&row);
        }
        self.waiting.push(row);
        if self.waiting.len() < self.measured_rows {
            return Ok(());
        }
        self.begin()
    }

    /// Writes the end of the table. Returns the number of columns that were left out, because the
    /// screen is too narrow.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(&mut self) -> io::Result<usize> {
        if self.layout.is_none() {
            self.begin()?;
        }
        self.rule()?;
        Ok(self.layout.as_ref().map_or(0, |layout| layout.hidden))
    }

    /// The output, for lines after the table.
    pub fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Determines the widths of the columns, and prints the waiting rows.
    fn begin(&mut self) -> io::Result<()> {
        let waiting = mem::take(&mut self.waiting);
        for row in &waiting {
            for (column, cell) in self.columns.iter_mut().zip(row) {
                let text = cell.as_deref().unwrap_or(NULL);
                let need = &mut column.need;
                for line in text.lines() {
                    need.values = need.values.max(line.width());
                }
                if let Some(text) = cell {
                    need.first = need.first.max(first_number(text));
                }
            }
        }
        let needs: Vec<_> = self.columns.iter().map(|column| column.need).collect();
        self.layout = Some(TableLayout::of(&needs, self.screen.width));
        self.rule()?;
        let names: TableRow = self
            .columns
            .iter()
            .map(|column| Some(column.name.clone()))
            .collect();
        self.print(&names)?;
        if self.columns.iter().any(|column| column.type_name.is_some()) {
            let types: TableRow = self
                .columns
                .iter()
                .map(|column| column.type_name.clone())
                .collect();
            self.print(&types)?;
        }
        self.rule()?;
        for row in &waiting {
            self.print(row)?;
        }
        Ok(())
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
    fn print(&mut self, row: &[Option<String>]) -> io::Result<()> {
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
}

/// Returns a table of text cells, without a line feed at its end. The columns that `numbers` marks
/// are aligned to the right. Where the screen is too narrow, the columns of `spare` are left out,
/// one after the other, before cells are truncated; a line after the table names them.
pub fn text_table(
    names: &[&str],
    numbers: &[bool],
    spare: &[&str],
    rows: Vec<Vec<String>>,
    screen: Screen,
) -> String {
    let shown = columns_that_fit(names, &rows, spare, screen.width.unwrap_or(usize::MAX));
    let shown_names: Vec<_> = shown
        .iter()
        .filter_map(|index| names.get(*index).copied())
        .collect();
    let numbers: Vec<_> = shown
        .iter()
        .filter_map(|index| numbers.get(*index).copied())
        .collect();
    let mut text: Vec<u8> = Vec::new();
    let columns = shown_names
        .iter()
        .zip(&numbers)
        .map(|(name, is_number)| TableColumn::new(name, None, *is_number))
        .collect();
    let mut table = TextTable::new(&mut text, columns, screen, MEASURED_ROWS);
    for row in &rows {
        let cells = shown.iter().filter_map(|index| row.get(*index).cloned());
        // Writing to a `Vec` cannot fail.
        let _ = table.row(cells.map(Some).collect());
    }
    let _ = table.finish();
    text.pop();
    let text = String::from_utf8(text).unwrap_or_default();
    let left_out: Vec<_> = names
        .iter()
        .filter(|name| !shown_names.contains(name))
        .copied()
        .collect();
    if left_out.is_empty() {
        text
    } else {
        format!("{text}\nleft out for lack of room: {}", left_out.join(", "))
    }
}

/// The indices of the columns that a table of `fit` characters has room for.
fn columns_that_fit(
    names: &[&str],
    rows: &[Vec<String>],
    spare: &[&str],
    fit: usize,
) -> Vec<usize> {
    let mut left: Vec<usize> = (0..names.len()).collect();
    let mut spare = spare.iter();
    // A column has a space on either side and a line on one.
    while left
        .iter()
        .map(|index| column_width(names, rows, *index) + 3)
        .sum::<usize>()
        + 1
        > fit
    {
        let Some(name) = spare.next() else { break };
        left.retain(|index| names.get(*index) != Some(name));
    }
    left
}

/// The width of the name of a column, or of its widest cell.
fn column_width(names: &[&str], rows: &[Vec<String>], index: usize) -> usize {
    let mut widest = names.get(index).map_or(0, |name| name.width());
    for row in rows {
        widest = widest.max(row.get(index).map_or(0, |cell| cell.width()));
    }
    widest
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
    let is_in_number =
        rest.starts_with(is_of_number) && begin.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let begin = if is_in_number {
        begin.trim_end_matches(is_of_number)
    } else {
        begin
    };
    format!(
        "{begin}…{}",
        " ".repeat(width.saturating_sub(begin.width() + 1))
    )
}

/// Whether a character may be one of a number.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_columns_are_left_out_first() {
        let rows = vec![["a", "1234567890", "x"].map(str::to_owned).to_vec()];
        let fitting =
            |fit| columns_that_fit(&["name", "number", "bars"], &rows, &["number", "bars"], fit);
        assert_eq!(fitting(28), [0, 1, 2]);
        assert_eq!(fitting(27), [0, 2]);
        assert_eq!(fitting(14), [0]);
        assert_eq!(fitting(1), [0]);
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
}
