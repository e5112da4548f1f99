//! Errors of the libraries that read files, as errors of the file.

use std::{io, path::Path};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tfarrow_dataset::{Error, ErrorKind};

/// Maximum number of characters of the message of a decoder, which may quote the row.
const MESSAGE_CHARS: usize = 300;

/// The error that the rows of a file cannot be read.
pub(crate) fn unreadable(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::new(
        path,
        ErrorKind::Rows {
            part: String::new(),
            row: 0,
            source: source.into(),
        },
    )
}

/// Adds the part of the file, and the number of its first row that may be affected, to an error
/// that has no part yet.
pub(crate) fn in_part(path: &Path, error: Error, part: impl FnOnce() -> String, row: u64) -> Error {
    match error.into_kind() {
        ErrorKind::Rows {
            part: known,
            source,
            ..
        } if known.is_empty() => Error::new(
            path,
            ErrorKind::Rows {
                part: part(),
                row,
                source,
            },
        ),
        kind => Error::new(path, kind),
    }
}

/// Converts an error of the `parquet` crate. An I/O error in it becomes an I/O error of the file.
pub(crate) fn unreadable_parquet(path: &Path, source: ParquetError) -> Error {
    match source {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Error::io(path, *error),
            Err(error) => unreadable(path, ParquetError::External(error)),
        },
        source => unreadable(path, source),
    }
}

/// Converts an error of the `arrow` crates. An I/O error in it becomes an I/O error of the file.
pub(crate) fn unreadable_arrow(path: &Path, source: ArrowError) -> Error {
    match source {
        ArrowError::IoError(_, error) => Error::io(path, error),
        source => unreadable(path, source),
    }
}

/// The error of a decoder, with advice for the errors that are frequent.
pub(crate) fn unreadable_text(path: &Path, error: ArrowError) -> Error {
    let message = match &error {
        ArrowError::CsvError(message) => wrong_fields(message).or_else(|| not_utf8(message)),
        ArrowError::IoError(..) => return unreadable_arrow(path, error),
        _ => None,
    };
    unreadable(
        path,
        message.unwrap_or_else(|| error.to_string().chars().take(MESSAGE_CHARS).collect()),
    )
}

/// Words the error of a row with more or fewer fields than the header. `arrow-csv` has the numbers
/// in its message only.
fn wrong_fields(message: &str) -> Option<String> {
    let (_, numbers) = message
        .strip_prefix("incorrect number of fields ")?
        .split_once("expected ")?;
    let (expected, found) = numbers.split_once(" got ")?;
    let advice = "put quotes around a field that contains the delimiter or a line feed";
    Some(format!(
        "found {found} fields, expected {expected} as in the header; {advice}"
    ))
}

/// Words the error of a row, or of the header, that is not UTF-8.
fn not_utf8(message: &str) -> Option<String> {
    let what = match message.strip_prefix("Encountered invalid UTF-8 data ") {
        Some(place) => format!("field {}", place.split_once("and field ")?.1),
        None => message
            .strip_prefix("Encountered UTF-8 error ")
            .map(|_| "a name of a column".to_owned())?,
    };
    Some(format!(
        "{what} is not UTF-8; convert the file, such as with iconv -f latin1 -t utf8"
    ))
}
