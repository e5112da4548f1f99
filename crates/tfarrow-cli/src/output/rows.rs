//! The trait of all output formats.

use std::io;

use arrow_array::RecordBatch;

/// A writer of a result, batch by batch.
pub(crate) trait Rows: Send {
    /// Whether rows are held until [`finish`](Self::finish), so that none of them is printed before.
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
