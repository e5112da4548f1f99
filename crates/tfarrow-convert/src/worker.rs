//! Workers: each turns the units of a job into pieces of its format, one unit after the other.
//!
//! | worker | unit | pieces of |
//! |---|---|---|
//! | [`DecodeWorker`] | TFRecord records | Parquet, Arrow |
//! | [`RowWorker`] | rows of Parquet or Arrow | Parquet, Arrow, TFRecord |
//! | [`CopyWorker`] | TFRecord records | TFRecord |

use std::{collections::BTreeMap, path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{
    BATCH_CELLS, BatchDecoder, DecoderBuilder, ExactColumn, Limits, OnError, Records, VerifyCrc, with_exact,
};

use crate::{
    Error, Result,
    formats::{RowEncoder, RowFormat, WritePiece},
    input::{ReadContext, RecordBlocks, Rows, Unit},
    parquet_rows,
    progress::UnitProgress,
};

/// Maximum rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Bytes of records that are decoded to one batch.
const BATCH_BYTES: usize = 16 << 20;

/// What a conversion changed or left out because its format cannot hold it, and how often.
pub(crate) type LossyChanges = BTreeMap<String, u64>;

/// Turns units into pieces.
pub(crate) trait UnitWorker {
    /// The content of a unit.
    type Content;
    /// A part of an output.
    type Piece;

    /// Turns one unit into pieces.
    ///
    /// # Errors
    /// Errors of reading, decoding and encoding, and of `write`.
    fn convert(
        &mut self,
        unit: Unit<Self::Content>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, Self::Piece>,
    ) -> Result<()>;

    /// Values that were changed or left out, over all units.
    fn lossy_changes(&self) -> LossyChanges;
}

/// How TFRecord records are decoded.
#[derive(Clone, Debug)]
pub(crate) struct Decoding {
    pub(crate) schema: SchemaRef,
    /// Whether a column keeps the exact wire form of each record.
    pub(crate) exact: bool,
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) limits: Limits,
    /// Whether the schema is that of a sample: a feature without a column is then an error.
    pub(crate) sampled: bool,
    /// Whether a record of another type is an error.
    pub(crate) strict: bool,
}

impl Decoding {
    /// The columns of the decoded rows.
    pub(crate) fn columns(&self) -> SchemaRef {
        if self.exact { with_exact(&self.schema) } else { Arc::clone(&self.schema) }
    }

    fn decoder(&self) -> Result<BatchDecoder> {
        DecoderBuilder::new(Arc::clone(&self.schema))
            .with_verify_crc(self.verify_crc)
            .with_on_error(self.on_error)
            .with_limits(self.limits)
            .with_strict(self.strict)
            .build_batch_decoder()
            .map_err(|e| Error::Usage(e.to_string()))
    }

    fn exact_column(&self) -> Result<Option<ExactColumn>> {
        let column = self.exact.then(|| ExactColumn::new(Arc::clone(&self.schema))).transpose();
        column.map_err(|e| Error::Usage(e.to_string()))
    }
}

/// Decodes records, and encodes the rows.
pub(crate) struct DecodeWorker<'j, F: RowFormat + 'j> {
    sampled: bool,
    decoder: BatchDecoder,
    exact: Option<ExactColumn>,
    encoder: F::Encoder<'j>,
    context: ReadContext<'j>,
}

impl<'j, F: RowFormat> DecodeWorker<'j, F> {
    pub(crate) fn new(decoding: &Decoding, format: &'j F, context: ReadContext<'j>) -> Result<Self> {
        let (decoder, exact) = (decoding.decoder()?, decoding.exact_column()?);
        Ok(Self { sampled: decoding.sampled, decoder, exact, encoder: format.encoder()?, context })
    }

    /// Decodes the first `records`, as many as fit in a batch, and returns the batch and the others.
    fn decode_batch(&mut self, shard: usize, path: &Path, records: Records) -> Result<(RecordBatch, Records)> {
        let most_rows = BATCH_CELLS / self.decoder.schema().fields().len().max(1);
        let count = records.fit(most_rows.clamp(1, BATCH_ROWS), BATCH_BYTES);
        let (now, later) = records.split_at(count);
        let mut batch = self.decoder.decode(&now).map_err(|e| Error::codec(path, e))?;
        for error in self.decoder.take_skipped().errors {
            self.context.damage.record(shard, path, &now, error)?;
        }
        if let Some(exact) = &mut self.exact {
            let added = exact.add(&batch, &now, |row| self.decoder.record_of(row));
            batch = added.map_err(|e| Error::codec(path, e))?;
        }
        Ok((batch, later))
    }

    /// Refuses records with what the sample did not have.
    fn check_sample(&self, path: &Path) -> Result<()> {
        match unmapped(&self.decoder).next().filter(|_| self.sampled) {
            Some((what, _)) => {
                let way_out = "the sample did not see it; raise --sample, or leave it out to look at all records";
                Err(Error::Data(format!("{}: {what}: {way_out}", path.display())))
            }
            None => Ok(()),
        }
    }
}

impl<F: RowFormat> UnitWorker for DecodeWorker<'_, F> {
    type Content = RecordBlocks;
    type Piece = F::Piece;

    fn convert(
        &mut self,
        unit: Unit<RecordBlocks>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, F::Piece>,
    ) -> Result<()> {
        for mut records in unit.content.0 {
            let mut rows = 0;
            while !records.is_empty() {
                let (batch, later) = self.decode_batch(unit.shard, &unit.path, records)?;
                records = later;
                rows += batch.num_rows() as u64;
                self.encoder.encode(&unit.path, batch, write)?;
            }
            self.check_sample(&unit.path)?;
            progress.add(rows);
        }
        self.encoder.end_unit(&unit.path, write)
    }

    fn lossy_changes(&self) -> LossyChanges {
        let mut changes = self.encoder.lossy_changes();
        // The exact form of a record has what has no column.
        if self.exact.is_none() {
            let foreign = self.decoder.foreign_fields();
            let foreign =
                foreign.map(|(field, times)| (format!("field {field} is not one of such records' features"), times));
            changes.extend(unmapped(&self.decoder).chain(foreign));
        }
        changes
    }
}

/// What the decoder met that has no column and could have one, and how often.
fn unmapped(decoder: &BatchDecoder) -> impl Iterator<Item = (String, u64)> {
    let unknown = decoder.unknown_features().map(|(name, times)| (format!("feature {name:?} has no column"), times));
    let some = |what: &str, times| Some((what.to_owned(), times)).filter(|(_, times)| *times > 0);
    let forgotten = some("a feature past the limit of names has no column", decoder.excess_features());
    let unset = some("a feature with no kind set has no place without `_tfarrow_unset`", decoder.lost_unset());
    unknown.chain(forgotten).chain(unset)
}

/// Encodes the rows of Parquet and Arrow files.
pub(crate) struct RowWorker<'j, F: RowFormat + 'j> {
    encoder: F::Encoder<'j>,
}

impl<'j, F: RowFormat> RowWorker<'j, F> {
    pub(crate) fn new(format: &'j F) -> Result<Self> {
        Ok(Self { encoder: format.encoder()? })
    }
}

impl<F: RowFormat> UnitWorker for RowWorker<'_, F> {
    type Content = Rows;
    type Piece = F::Piece;

    fn convert(
        &mut self,
        unit: Unit<Rows>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, F::Piece>,
    ) -> Result<()> {
        let mut encode = |batch: RecordBatch| {
            progress.add(batch.num_rows() as u64);
            self.encoder.encode(&unit.path, batch, write)
        };
        match unit.content {
            Rows::RowGroup(shard, file, group) => {
                parquet_rows::rows(&shard, &file, group..group + 1)?.try_for_each(|batch| encode(batch?))?;
            }
            Rows::Batch(batch) => encode(batch)?,
        }
        self.encoder.end_unit(&unit.path, write)
    }

    fn lossy_changes(&self) -> LossyChanges {
        self.encoder.lossy_changes()
    }
}

/// Copies the frames of valid records.
pub(crate) struct CopyWorker<'j> {
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) context: ReadContext<'j>,
}

impl CopyWorker<'_> {
    /// Copies frames as they are: a record whose CRC is not verified must not get a valid one.
    fn copy(records: &Records, progress: &mut UnitProgress<'_>, write: &mut WritePiece<'_, Vec<u8>>) -> Result<()> {
        progress.add(records.len() as u64);
        if records.is_empty() { Ok(()) } else { write(records.frames().to_vec()) }
    }
}

impl UnitWorker for CopyWorker<'_> {
    type Content = RecordBlocks;
    type Piece = Vec<u8>;

    fn convert(
        &mut self,
        unit: Unit<RecordBlocks>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, Vec<u8>>,
    ) -> Result<()> {
        for mut records in unit.content.0 {
            while let Err(error) = records.verify(self.verify_crc) {
                if self.on_error == OnError::Fail {
                    return Err(Error::codec(&unit.path, error));
                }
                let bad = (error.position().record - records.first()) as usize;
                let (good, rest) = records.split_at(bad);
                Self::copy(&good, progress, write)?;
                self.context.damage.record(unit.shard, &unit.path, &rest, error)?;
                records = rest.split_at(1).1;
            }
            Self::copy(&records, progress, write)?;
        }
        Ok(())
    }

    fn lossy_changes(&self) -> LossyChanges {
        LossyChanges::new()
    }
}
