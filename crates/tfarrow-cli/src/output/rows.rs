//! The trait of all output formats.

use std::io;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

/// A writer of a result, batch by batch.
pub(crate) trait Rows: Send {
    /// Whether rows are held until [`finish`](Self::finish), so that none of them is printed
    /// before.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Writes the rows of one batch.
    ///
    /// # Errors
    /// Standard output cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes the end of the format, after the last row.
    ///
    /// # Errors
    /// Standard output cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Returns the error inside an Arrow error: a closed pipe is recognized by its I/O error.
pub(super) fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        ArrowError::ExternalError(error) => io::Error::other(error),
        other => io::Error::other(other),
    }
}
