//! Texts for people: numbers in words, tables, JSON, escapes of control characters.
//!
//! The texts have no control characters besides line feeds and, on a [`Screen`] with styles, those
//! of the styles.

mod escape;
mod humanize;
mod screen;
mod suggestion;
mod table;
mod table_layout;

pub use escape::{escape, escape_except, is_control, pretty_json};
pub use humanize::{
    blob, count, frequent, image_sizes, number, percent, plural, range, short, shortened, size,
};
pub use screen::{BAD, FAINT, GOOD, Screen, TITLE};
pub use suggestion::{nearest, similar};
pub use table::{MEASURED_ROWS, NULL, TableColumn, TableRow, TextTable, text_table};
