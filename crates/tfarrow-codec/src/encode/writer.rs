//! Batches to anything that implements [`Write`].
//!
//! ```text
//! RecordBatch ─▶ Encoder ─▶ frames of one batch, in memory ─▶ Write
//! ```
//!
//! A batch is encoded completely before any of it is written, so that an error leaves only complete
//! batches in the output.

use std::io::Write;

use arrow_array::{RecordBatch, RecordBatchWriter};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Encoder, WriterBuilder};
use crate::Result;

/// Writes batches as TFRecord bytes, as arrow-csv's `Writer` does as CSV.
///
/// The bytes are not compressed; `ShardWriter` of `tfarrow-dataset` is a [`Write`] that compresses.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tfarrow_codec::{Writer, frame};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![1, 2, 3]));
/// let batch = RecordBatch::try_from_iter([("x", column)])?;
/// let mut writer = Writer::new(Vec::new(), batch.schema())?;
/// writer.write(&batch)?;
/// writer.finish()?;
/// let bytes = writer.into_inner();
/// assert!(frame::length(&bytes).is_some());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    /// The destination.
    output: W,
    encoder: Encoder,
    /// The frames of one batch.
    frames: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer of batches of this schema, with the defaults of [`WriterBuilder`].
    ///
    /// # Errors
    /// The errors of [`WriterBuilder::build`].
    pub fn new(output: W, schema: SchemaRef) -> Result<Self> {
        WriterBuilder::new().build(output, schema)
    }

    /// Writes a framed record for each row. Nothing of a batch is written if it cannot be encoded.
    ///
    /// # Errors
    /// The errors of [`Encoder::encode`], in [`ArrowError::ExternalError`], and an error of the
    /// output.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.frames.clear();
        self.encoder.encode(batch, &mut self.frames)?;
        self.output.write_all(&self.frames)?;
        Ok(())
    }

    /// Flushes the output. A TFRecord stream has no footer, so that more batches may follow.
    ///
    /// # Errors
    /// An error of the output.
    pub fn finish(&mut self) -> Result<(), ArrowError> {
        Ok(self.output.flush()?)
    }

    /// The encoder, which counts [changed values](Encoder::losses).
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}

impl<W: Write> RecordBatchWriter for Writer<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.write(batch)
    }

    fn close(mut self) -> Result<(), ArrowError> {
        self.finish()
    }
}

impl WriterBuilder {
    /// Builds a writer of batches of this schema. Wrap a [`File`](std::fs::File) only if batches
    /// are very small: each batch is written at once.
    ///
    /// # Errors
    /// The errors of [`build_encoder`](Self::build_encoder).
    pub fn build<W: Write>(self, output: W, schema: SchemaRef) -> Result<Writer<W>> {
        Ok(Writer {
            output,
            encoder: self.build_encoder(schema)?,
            frames: Vec::new(),
        })
    }
}
