//! Errors of the libraries that read files, as errors of the file.

use std::{io, path::Path};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tfarrow_dataset::{Error, ErrorKind};

/// The error that the rows of a file cannot be read.
pub(crate) fn unreadable(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(path, ErrorKind::Rows { part: String::new(), row: 0, source: source.into() })
}

/// Adds the part of the file, and the number of its first row that may be affected, to an error that has no part yet.
pub(crate) fn in_part(path: &Path, error: Error, part: impl FnOnce() -> String, row: u64) -> Error {
    match error.into_kind() {
        ErrorKind::Rows { part: known, source, .. } if known.is_empty() => {
            Error::new(path, ErrorKind::Rows { part: part(), row, source })
        }
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
