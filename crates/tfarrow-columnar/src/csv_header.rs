//! The form of a CSV file, and its header.

use std::{collections::HashMap, io::Read, path::Path};

use tfarrow_dataset::{Result, Shard};

use crate::{
    guarded::guarded,
    json_type::MAX_COLUMNS,
    text_reader::{MAX_ROW_BYTES, TextReader},
    unreadable::{in_part, unreadable, unreadable_text},
};

/// CSV with a header, whose fields are separated by commas, or by tabs in a file named `.tsv`.
pub(crate) fn csv_format(path: &Path) -> arrow_csv::reader::Format {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let is_tsv = name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv");
    arrow_csv::reader::Format::default().with_header(true).with_delimiter(if is_tsv { b'\t' } else { b',' })
}

/// The names of the columns of a CSV file, which are its first row.
///
/// # Errors
/// A file that cannot be read, has no header, or has two columns of the same name.
pub(crate) fn header(shard: &Shard) -> Result<Vec<String>> {
    let path = &shard.path;
    let text = TextReader::open(shard)?.take(MAX_ROW_BYTES as u64);
    let found = guarded(path, || csv_format(path).infer_schema(text, Some(0)).map_err(|e| unreadable_text(path, e)));
    let found = found.map_err(|error| in_part(path, error, || "line 1".to_owned(), 0));
    let names: Vec<_> = found?.0.fields().iter().map(|field| field.name().clone()).collect();
    if names.len() > MAX_COLUMNS {
        let what = format!("the header has {} columns, at most {MAX_COLUMNS} are allowed", names.len());
        return Err(unreadable(path, what));
    }
    if names.is_empty() {
        return Err(unreadable(path, "the file is empty; the first line of a CSV file has the names of the columns"));
    }
    let mut known = HashMap::new();
    for (number, name) in (1..).zip(&names) {
        if let Some(first) = known.insert(name, number) {
            let what = format!("columns {first} and {number} have the name {name:?}; rename one of them");
            return Err(in_part(path, unreadable(path, what), || "line 1".to_owned(), 0));
        }
    }
    Ok(names)
}
