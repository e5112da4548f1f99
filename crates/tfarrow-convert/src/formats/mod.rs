//! The file formats that conversions write, with one module for each.
//!
//! ```text
//! RecordBatch ─▶ RowEncoder ─▶ piece ─▶ PieceWriter ─▶ Output        Parquet, Arrow and TFRecord from rows
//! Records ─────────────────▶ piece ─▶ PieceWriter ─▶ Output        TFRecord from TFRecord: frames are copied
//!               any thread           one thread at a time
//! ```
//!
//! | format | piece | encoded by |
//! |---|---|---|
//! | [`ParquetFileFormat`](parquet::ParquetFileFormat) | an encoded row group | workers |
//! | [`ArrowFileFormat`](arrow::ArrowFileFormat) | a record batch | the writer |
//! | [`TfRecordFileFormat`](tfrecord::TfRecordFileFormat) | frames | workers; the writer compresses |
//!
//! The type of a piece belongs to its format, so that pieces of one format cannot be written to a
//! file of another. If you add a format, you must also add it to [`Target`](crate::Target) and to
//! `Jobs::job` in `plan/jobs.rs`.

use std::{collections::BTreeMap, path::Path};

use arrow_array::RecordBatch;

use crate::{Result, output::Output};

pub(crate) mod arrow;
pub(crate) mod parquet;
pub(crate) mod tfrecord;

/// Passes a piece to the output of a job.
pub(crate) type WritePiece<'a, P> = dyn FnMut(P) -> Result<()> + 'a;

/// Values and features that were changed or left out because the output format cannot hold them,
/// and how often.
pub(crate) type LossyChanges = BTreeMap<String, u64>;

/// A file format: writes pieces to a file.
pub(crate) trait FileFormat: Clone + Send + Sync {
    /// A part of a file that one worker encodes on its own.
    type Piece: Send;
    /// Writes one file.
    type Writer: PieceWriter<Piece = Self::Piece> + Send;

    /// Creates a writer of a file, whose bytes go to `output`. Errors have the path `path`.
    ///
    /// # Errors
    /// Errors of the output, and a schema that the format cannot hold.
    fn create(&self, path: &Path, output: Output) -> Result<Self::Writer>;

    /// Bytes of memory that a piece takes until it is written. A worker that holds too many bytes
    /// waits for its turn.
    fn held_bytes(piece: &Self::Piece) -> usize;
}

/// A format whose pieces are encoded from rows.
pub(crate) trait RowFormat: FileFormat {
    /// Encodes the rows of units, one unit after the other.
    type Encoder<'f>: RowEncoder<Piece = Self::Piece>
    where
        Self: 'f;

    /// An encoder for one worker.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a column that the format cannot hold.
    fn encoder(&self) -> Result<Self::Encoder<'_>>;
}

/// Encodes rows to pieces.
pub(crate) trait RowEncoder {
    /// A part of a file.
    type Piece;

    /// Begins the rows of a file, which is text if `is_text`: floats that were written with digits
    /// may be rounded.
    fn begin_file(&mut self, _is_text: bool) {}

    /// Encodes rows of the current unit, which are from the file `path`, and passes complete pieces
    /// to `write`.
    ///
    /// # Errors
    /// Rows that cannot be encoded, and errors of `write`.
    fn encode(
        &mut self,
        path: &Path,
        batch: RecordBatch,
        write: &mut WritePiece<'_, Self::Piece>,
    ) -> Result<()>;

    /// Ends the current unit: passes its last piece to `write`.
    ///
    /// # Errors
    /// Rows that cannot be encoded, and errors of `write`.
    fn end_unit(&mut self, path: &Path, write: &mut WritePiece<'_, Self::Piece>) -> Result<()>;

    /// Values of all units that were changed to fit the format.
    fn lossy_changes(&self) -> LossyChanges {
        LossyChanges::new()
    }
}

/// Writes the pieces of one file, in their order.
pub(crate) trait PieceWriter {
    /// A part of the file.
    type Piece;

    /// Writes one piece.
    ///
    /// # Errors
    /// Errors of the output.
    fn write(&mut self, piece: Self::Piece) -> Result<()>;

    /// Ends the file, and returns its output after the last byte.
    ///
    /// # Errors
    /// Errors of the output.
    fn finish(self) -> Result<Output>;
}
