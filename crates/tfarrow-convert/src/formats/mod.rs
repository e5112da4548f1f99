//! File formats that conversions write, one module each.
//!
//! ```text
//! RecordBatch ─▶ RowEncoder ─▶ piece ─▶ PieceWriter ─▶ Output        Parquet, Arrow and TFRecord from rows
//! Records ─────────────────▶ piece ─▶ PieceWriter ─▶ Output        TFRecord from TFRecord: frames are copied
//!               any thread           one thread at a time
//! ```
//!
//! | format | piece | encoded by |
//! |---|---|---|
//! | [`ParquetFormat`](parquet::ParquetFormat) | an encoded row group | workers |
//! | [`ArrowFormat`](arrow::ArrowFormat) | a record batch | the writer |
//! | [`TfRecordFormat`](tfrecord::TfRecordFormat) | frames | workers; the writer compresses |
//!
//! The type of a piece is a type of its format, so that pieces of one format cannot reach a file of another.
//! If you add a format, you must also add it to [`Target`](crate::Target) and to `Conversion::job` (`jobs.rs`).

use std::{collections::BTreeMap, path::Path};

use arrow_array::RecordBatch;

use crate::{Result, output::Output};

pub(crate) mod arrow;
pub(crate) mod parquet;
pub(crate) mod tfrecord;

/// Passes a piece to the output of a job.
pub(crate) type WritePiece<'a, P> = dyn FnMut(P) -> Result<()> + 'a;

/// Values and features that were changed or left out because the output format cannot hold them, and how often.
pub(crate) type LossyChanges = BTreeMap<String, u64>;

/// A file format: how pieces become a file.
pub(crate) trait FileFormat: Clone + Send + Sync {
    /// A part of a file that one worker makes on its own.
    type Piece: Send;
    /// Writes one file.
    type Writer: PieceWriter<Piece = Self::Piece> + Send;

    /// Begins a file whose bytes go to `output`. Errors call it `path`.
    ///
    /// # Errors
    /// Errors of the output, and a schema that the format cannot hold.
    fn create(&self, path: &Path, output: Output) -> Result<Self::Writer>;

    /// Bytes of memory that a piece takes until it is written. A worker with too many of them waits for its turn.
    fn held_bytes(piece: &Self::Piece) -> usize;
}

/// A format whose pieces are made of rows.
pub(crate) trait RowFormat: FileFormat {
    /// Encodes the rows of one unit after the other.
    type Encoder<'f>: RowEncoder<Piece = Self::Piece>
    where
        Self: 'f;

    /// An encoder for one worker.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a column that the format cannot hold.
    fn encoder(&self) -> Result<Self::Encoder<'_>>;
}

/// Makes pieces of rows.
pub(crate) trait RowEncoder {
    /// What it makes.
    type Piece;

    /// Encodes rows of the unit in hand, which come from the file `path`, and passes on the pieces that are complete.
    ///
    /// # Errors
    /// Rows that cannot be encoded, and errors of `write`.
    fn encode(&mut self, path: &Path, batch: RecordBatch, write: &mut WritePiece<'_, Self::Piece>) -> Result<()>;

    /// Ends the unit in hand: passes on what is left of it.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn end_unit(&mut self, path: &Path, write: &mut WritePiece<'_, Self::Piece>) -> Result<()>;

    /// Values that were changed to fit the format, over all units.
    fn lossy_changes(&self) -> LossyChanges {
        LossyChanges::new()
    }
}

/// Writes the pieces of one file, in their order.
pub(crate) trait PieceWriter {
    /// What it writes.
    type Piece;

    /// Writes one piece.
    ///
    /// # Errors
    /// Errors of the output.
    fn write(&mut self, piece: Self::Piece) -> Result<()>;

    /// Ends the file and returns its output, which has taken all bytes.
    ///
    /// # Errors
    /// Errors of the output.
    fn finish(self) -> Result<Output>;
}
