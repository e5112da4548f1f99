//! The header of a CSV text.

use std::{collections::HashMap, io::Read};

use tfarrow_dataset::Result;

use crate::{
    catch_panic::catch_panic_in,
    json_numbers::NotFinite,
    json_type::MAX_COLUMNS,
    text::{CsvForm, Text},
    text_reader::TextReader,
    unreadable::{in_part, unreadable, unreadable_text},
};

/// Maximum bytes of the header.
const MAX_HEADER_BYTES: u64 = 32 << 20;

/// The names of the columns of a CSV text, which are its first row, or `column_1`, `column_2` ..
/// without a header.
///
/// # Errors
/// A text that cannot be read, has no first row, or has two columns of the same name.
pub(crate) fn header(text: &Text, form: &CsvForm) -> Result<Vec<String>> {
    let path = &text.path;
    let mut reader = TextReader::open(text, None, NotFinite::AsTexts)?.take(MAX_HEADER_BYTES);
    let found = catch_panic_in(path, || {
        form.format
            .infer_schema(&mut reader, Some(0))
            .map_err(|e| unreadable_text(path, e))
    });
    if reader.limit() == 0 {
        let advice = "a quote without an end makes one row of all that follows";
        let what = format!("the first row has more than {MAX_HEADER_BYTES} bytes; {advice}");
        return Err(in_part(
            path,
            unreadable(path, what),
            || "line 1".to_owned(),
            0,
        ));
    }
    let found = found.map_err(|error| in_part(path, error, || "line 1".to_owned(), 0));
    let names: Vec<_> = found?
        .0
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    if names.len() > MAX_COLUMNS {
        let what = format!(
            "the header has {} columns, at most {MAX_COLUMNS} are allowed",
            names.len()
        );
        return Err(unreadable(path, what));
    }
    if names.is_empty() {
        return Err(unreadable(
            path,
            "the file is empty; the first line of a CSV file has the names of the columns",
        ));
    }
    let mut known = HashMap::new();
    for (number, name) in (1..).zip(&names) {
        if let Some(first) = known.insert(name, number) {
            let what =
                format!("columns {first} and {number} have the name {name:?}; rename one of them");
            return Err(in_part(
                path,
                unreadable(path, what),
                || "line 1".to_owned(),
                0,
            ));
        }
    }
    Ok(names)
}
