//! The column `_tfarrow_exact`, which is added to batches of decoded records.
//!
//! ```text
//! batch ─▶ Encoder ─▶ canonical records ─┐
//!                                        ├─▶ difference of each record ─▶ batch with the column
//! records (original bytes) ──────────────┘
//! ```
//!
//! `exact.rs` has the format of a difference. Each one is restored while the column is made, so
//! that the round trip is checked when a file is written.

use std::sync::Arc;

use arrow_array::{RecordBatch, builder::BinaryBuilder};
use arrow_schema::SchemaRef;

use super::{Encoder, WriterBuilder};
use crate::{
    Records, Result,
    exact::Differences,
    frame,
    schema::{EXACT_COLUMN, with_exact},
};

/// Adds the column `_tfarrow_exact` to batches of decoded records, so that encoding them restores
/// the original bytes.
///
/// ```
/// use tfarrow_codec::{ReaderBuilder, WriterBuilder, ExactColumn, Layout, Records, frame, infer::infer_schema};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The `tf.Example` message {"x": 1}, whose list is not packed, as no encoder of TensorFlow writes it.
/// let payload = [10, 11, 10, 9, 10, 1, b'x', 18, 4, 26, 2, 8, 1];
/// let mut file = Vec::new();
/// frame::write(&payload, &mut file);
/// let schema = infer_schema(file.as_slice(), Layout::Auto, None)?;
/// let records = Records::from_payloads([payload.as_slice()])?;
/// let batch = ReaderBuilder::new(schema.clone()).build_batch_decoder()?.decode(&records)?;
///
/// let mut exact = ExactColumn::new(schema)?;
/// let batch = exact.add(&batch, &records, |row| row)?;
/// let mut encoded = Vec::new();
/// WriterBuilder::new().build_encoder(batch.schema())?.encode(&batch, &mut encoded)?;
/// assert_eq!(encoded, file);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ExactColumn {
    /// The schema with the column.
    schema: SchemaRef,
    /// Makes the canonical records.
    encoder: Encoder,
    /// Frames of the canonical records of a batch.
    canonical: Vec<u8>,
}

impl ExactColumn {
    /// Creates the column for batches of this schema, which records are decoded to.
    ///
    /// # Errors
    /// The errors of [`WriterBuilder::build`]: a schema that cannot be encoded.
    pub fn new(schema: SchemaRef) -> Result<Self> {
        let encoder = WriterBuilder::new().build_encoder(SchemaRef::clone(&schema))?;
        Ok(Self {
            schema: with_exact(&schema),
            encoder,
            canonical: Vec::new(),
        })
    }

    /// Returns the schema of batches with the column.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns `batch` with the column. `rows` maps a row of the batch to the index of its record
    /// in `records`; see [`BatchDecoder::record_of`](crate::BatchDecoder::record_of).
    ///
    /// # Errors
    /// The errors of [`Encoder::encode`], and an error with the column's name if the differences
    /// take more than 2^31 - 1 bytes.
    pub fn add(
        &mut self,
        batch: &RecordBatch,
        records: &Records,
        rows: impl Fn(usize) -> usize,
    ) -> Result<RecordBatch> {
        self.canonical.clear();
        self.encoder.encode(batch, &mut self.canonical)?;
        let mut column = BinaryBuilder::new();
        let mut differences = Differences::default();
        let mut bytes = 0;
        let limit = i32::MAX as u64;
        for (row, (_, canonical)) in frame::frames(&self.canonical).enumerate() {
            let original = records.data(rows(row)).unwrap_or_default();
            // An empty value instead of a null: a null bitmap would take more space than it saves.
            let difference = differences
                .difference(original, canonical)
                .unwrap_or_default();
            bytes += difference.len() as u64;
            if bytes > limit {
                let error = records.overflow("bytes of one column of a batch", bytes, limit);
                return Err(error.with_feature(EXACT_COLUMN));
            }
            column.append_value(difference);
        }
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(column.finish()));
        Ok(RecordBatch::try_new(
            SchemaRef::clone(&self.schema),
            columns,
        )?)
    }
}
