//! Workers: decode, encode or copy the units of a job, one unit after the other, to pieces of the
//! output format.
//!
//! | worker | unit | pieces of |
//! |---|---|---|
//! | [`DecodeWorker`] | TFRecord records | Parquet, Arrow, TFRecord |
//! | [`RowWorker`] | rows of Parquet, Arrow, CSV or JSON | Parquet, Arrow, TFRecord |
//! | [`CopyWorker`] | TFRecord records | TFRecord |

use std::{mem, path::Path, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_cast::cast;
use arrow_schema::{ArrowError, SchemaRef};
use tfarrow_codec::{
    BATCH_CELLS, BatchDecoder, ExactColumn, Limits, OnError, ReaderBuilder, RecordType, Records,
    Summary, VerifyCrc, file_schema::with_nullable_items, schema::array_count,
};
use tfarrow_columnar::{BATCH_ROWS, row_group_rows};
use tfarrow_dataset::internals::CHUNK_BYTES;

use crate::{
    Error, Result,
    formats::{LossyChanges, RowEncoder, RowFormat, WritePiece, parquet::ParquetColumns},
    input::{BlockOrigin, ReadContext, RecordBlocks, RowBlock, Unit, UnitPart},
    progress::UnitProgress,
    selection::ColumnSelection,
};

pub(crate) mod job;
pub(crate) mod routes;

/// Maximum bytes of the records that are decoded to one batch.
const BATCH_BYTES: usize = 16 << 20;

/// Maximum bytes of memory that a worker keeps for the next records: a chunk.
const MAX_KEPT_BYTES: usize = 2 * CHUNK_BYTES;

/// Converts units to pieces.
pub(crate) trait UnitWorker {
    /// The content of a unit.
    type Content;
    /// A part of an output.
    type Piece;

    /// Converts one unit to pieces, which it passes to `write`.
    ///
    /// # Errors
    /// Errors of reading, decoding and encoding, and of `write`.
    fn convert(
        &mut self,
        unit: Unit<Self::Content>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, Self::Piece>,
    ) -> Result<()>;

    /// Values and features of all units that were changed or left out.
    fn lossy_changes(&self) -> LossyChanges;
}

/// How TFRecord records are decoded.
#[derive(Clone, Debug)]
pub(crate) struct DecodeConfig {
    /// The columns of all features.
    pub(crate) schema: SchemaRef,
    /// The indices of the columns that are decoded, in the order of the rows; `None` for all.
    pub(crate) projection: Option<Vec<usize>>,
    /// The columns of the rows: those that are decoded, and that of exact forms if there is one.
    pub(crate) columns: SchemaRef,
    /// The choice of columns that determined the projection.
    pub(crate) selection: Option<ColumnSelection>,
    /// Whether a column stores the exact wire form of each record.
    pub(crate) exact: bool,
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) limits: Limits,
    /// Whether the schema was inferred from a sample. A feature without a column is then an error.
    pub(crate) sampled: bool,
    /// Whether a record of another type is an error.
    pub(crate) strict: bool,
    /// The columns of the Parquet files, without the metadata of a file; `None` for other outputs.
    pub(crate) parquet: Option<ParquetColumns>,
}

impl DecodeConfig {
    fn decoder(&self) -> Result<BatchDecoder> {
        let builder = ReaderBuilder::new(Arc::clone(&self.schema));
        let builder = self
            .projection
            .iter()
            .cloned()
            .fold(builder, ReaderBuilder::with_projection);
        builder
            .with_verify_crc(self.verify_crc)
            .with_on_error(self.on_error)
            .with_limits(self.limits)
            .with_strict(self.strict)
            .build_batch_decoder()
            .map_err(|source| Error::Columns { path: None, source })
    }

    fn exact_column(&self) -> Result<Option<ExactColumn>> {
        let column = self
            .exact
            .then(|| ExactColumn::new(Arc::clone(&self.schema)))
            .transpose();
        column.map_err(|source| Error::Columns { path: None, source })
    }
}

/// Decodes TFRecord records, and encodes the rows.
pub(crate) struct DecodeWorker<'j, F: RowFormat + 'j> {
    sampled: bool,
    selection: Option<ColumnSelection>,
    decoder: BatchDecoder,
    exact: Option<ExactColumn>,
    encoder: F::Encoder<'j>,
    context: ReadContext<'j>,
    /// Memory to read into.
    memory: Vec<u8>,
}

impl<'j, F: RowFormat> DecodeWorker<'j, F> {
    pub(crate) fn new(
        decoding: &DecodeConfig,
        format: &'j F,
        context: ReadContext<'j>,
    ) -> Result<Self> {
        let decoder = decoding.decoder()?;
        let exact = decoding.exact_column()?;
        let sampled = decoding.sampled;
        let selection = decoding.selection.clone();
        let encoder = format.encoder()?;
        Ok(Self {
            sampled,
            selection,
            decoder,
            exact,
            encoder,
            context,
            memory: Vec::new(),
        })
    }

    /// Decodes the first of `records`, as many as fit in a batch. Returns the batch and the
    /// remaining records.
    fn decode_batch(
        &mut self,
        origin: &BlockOrigin,
        records: Records,
    ) -> Result<(RecordBatch, Records)> {
        // A unit may take a second.
        if self.context.progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let max_rows = BATCH_CELLS / array_count(self.decoder.schema().fields()).max(1);
        let decoded =
            self.decoder
                .decode_first(records, max_rows.clamp(1, BATCH_ROWS), BATCH_BYTES);
        let (mut batch, first, rest) = decoded.map_err(|error| origin.error(error))?;
        for error in self.decoder.take_skipped() {
            self.context.skip(origin, &first, error)?;
        }
        if let Some(exact) = &mut self.exact {
            let added = exact.add(&batch, &first, |row| self.decoder.record_of(row));
            batch = added.map_err(|error| origin.error(error))?;
        }
        Ok((batch, rest))
    }

    /// Wanted features of the decoded records that have no column, and how often they occurred.
    fn unmapped(&self) -> impl Iterator<Item = (String, u64)> {
        let decoder = &self.decoder;
        let selection = self.selection.as_ref();
        let unknown = decoder
            .unknown_features()
            .filter(move |(name, _)| selection.is_none_or(|selection| selection.wants(name)));
        let unknown =
            unknown.map(|(name, count)| (format!("feature {name:?} has no column"), count));
        let forgotten = (
            "a feature beyond the limit of names has no column".to_owned(),
            decoder.excess_features(),
        );
        // A choice of columns leaves out the column of features without a kind, or includes it.
        let unset = if selection.is_some() {
            0
        } else {
            decoder.lost_unset()
        };
        let unset = (
            "a feature without a kind is lost without the column `_tfarrow_unset`".to_owned(),
            unset,
        );
        let others = [forgotten, unset].into_iter();
        unknown.chain(others.filter(|(_, count)| *count > 0))
    }

    /// Checks that the records have no feature that the sample does not have, if the schema was
    /// inferred from a sample.
    fn check_sample(&self, path: &Path) -> Result<()> {
        match self.unmapped().next().filter(|_| self.sampled) {
            Some((change, _)) => Err(Error::NotSampled {
                path: path.to_owned(),
                what: change,
            }),
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
        for UnitPart {
            shard,
            path,
            content,
            version,
            ..
        } in unit.parts
        {
            for block in content.0 {
                let memory = mem::take(&mut self.memory);
                let (records, origin) = block.read(shard, &path, memory)?;
                let mut rows = 0;
                let mut left = Some(records);
                while let Some(records) = left.take() {
                    let (batch, rest) = self.decode_batch(&origin, records)?;
                    // A rest without records would keep their memory.
                    match rest.is_empty() {
                        true => self.memory = reclaim(rest),
                        false => left = Some(rest),
                    }
                    rows += batch.num_rows() as u64;
                    self.encoder.encode(&path, batch, write)?;
                }
                self.check_sample(&path)?;
                progress.add(rows);
            }
            version.check()?;
        }
        self.encoder.end_unit(&unit.path, write)
    }

    fn lossy_changes(&self) -> LossyChanges {
        let mut changes = self.encoder.lossy_changes();
        // The exact form of a record includes the features and fields that have no column.
        if self.exact.is_none() {
            let foreign = self.decoder.foreign_fields();
            let foreign = foreign.map(|(field, count)| {
                (format!("field {field} of the records has no column"), count)
            });
            changes.extend(self.unmapped().chain(foreign));
        }
        changes
    }
}

/// The memory of records, to read others into it, unless it is that of a long record.
fn reclaim(records: Records) -> Vec<u8> {
    match records.reclaim() {
        Some(memory) if memory.len() <= MAX_KEPT_BYTES => memory,
        _ => Vec::new(),
    }
}

/// Encodes the rows of files of other formats than TFRecord.
pub(crate) struct RowWorker<'j, F: RowFormat + 'j> {
    encoder: F::Encoder<'j>,
    /// For each column of the output, its index in the rows; `None` if the columns are in the same
    /// order.
    order: Option<&'j [usize]>,
    /// Whether the items of lists become nullable.
    nullable_items: bool,
}

impl<'j, F: RowFormat> RowWorker<'j, F> {
    pub(crate) fn new(
        format: &'j F,
        order: Option<&'j [usize]>,
        nullable_items: bool,
    ) -> Result<Self> {
        Ok(Self {
            encoder: format.encoder()?,
            order,
            nullable_items,
        })
    }

    /// Encodes rows of the file `path`.
    fn encode(
        &mut self,
        path: &Path,
        batch: RecordBatch,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, F::Piece>,
    ) -> Result<()> {
        progress.add(batch.num_rows() as u64);
        let batch =
            arranged(batch, self.order, self.nullable_items).map_err(|e| Error::arrow(path, e))?;
        self.encoder.encode(path, batch, write)
    }
}

/// The columns of a batch at the indices `order`, or all of them, and with nullable items of lists
/// if `nullable_items` is true.
fn arranged(
    batch: RecordBatch,
    order: Option<&[usize]>,
    nullable_items: bool,
) -> Result<RecordBatch, ArrowError> {
    let batch = match order {
        Some(order) => batch.project(order)?,
        None => batch,
    };
    if !nullable_items {
        return Ok(batch);
    }
    let schema = with_nullable_items(batch.schema_ref(), true);
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        columns.push(cast(column, field.data_type())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options)
}

impl<F: RowFormat> UnitWorker for RowWorker<'_, F> {
    type Content = RowBlock;
    type Piece = F::Piece;

    fn convert(
        &mut self,
        unit: Unit<RowBlock>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, F::Piece>,
    ) -> Result<()> {
        for UnitPart {
            path,
            content,
            is_text,
            version,
            ..
        } in unit.parts
        {
            self.encoder.begin_file(is_text);
            match content {
                RowBlock::RowGroup(shard, file, group) => {
                    for batch in row_group_rows(&shard, &file, group..group + 1)? {
                        self.encode(&path, batch?, progress, write)?;
                    }
                }
                RowBlock::Batch(batch, _) => self.encode(&path, batch, progress, write)?,
            }
            version.check()?;
        }
        self.encoder.end_unit(&unit.path, write)
    }

    fn lossy_changes(&self) -> LossyChanges {
        self.encoder.lossy_changes()
    }
}

/// Copies the frames of valid records.
pub(crate) struct CopyWorker<'j> {
    verify_crc: VerifyCrc,
    on_error: OnError,
    context: ReadContext<'j>,
    /// The records that get the features of folders, whose type it determines.
    summary: Summary,
}

impl<'j> CopyWorker<'j> {
    pub(crate) fn new(verify_crc: VerifyCrc, on_error: OnError, context: ReadContext<'j>) -> Self {
        let summary = Summary::with_limits(0, context.options.limits).ignoring_excess_names();
        Self {
            verify_crc,
            on_error,
            context,
            summary,
        }
    }

    /// Copies frames unchanged, unless the records get the features of folders. Framing the data
    /// again would give a corrupt record whose CRC is not verified a valid CRC.
    fn copy(
        summary: &mut Summary,
        path: &Path,
        records: Records,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, Buffer>,
    ) -> Result<()> {
        progress.add(records.len() as u64);
        if records.is_empty() {
            return Ok(());
        }
        if records.shared_features().is_empty() {
            return write(records.into_frames());
        }
        summary
            .observe(&records, VerifyCrc::Never)
            .map_err(|e| Error::codec(path, e))?;
        if !matches!(
            summary.record_type(),
            RecordType::Example | RecordType::SequenceExample
        ) {
            return Err(Error::lost_folders(path, Error::NO_FEATURES));
        }
        write(
            records
                .with_own_features()
                .map_err(|e| Error::codec(path, e))?
                .into_frames(),
        )
    }
}

impl UnitWorker for CopyWorker<'_> {
    type Content = RecordBlocks;
    type Piece = Buffer;

    fn convert(
        &mut self,
        unit: Unit<RecordBlocks>,
        progress: &mut UnitProgress<'_>,
        write: &mut WritePiece<'_, Buffer>,
    ) -> Result<()> {
        let Self {
            verify_crc,
            on_error,
            context,
            summary,
        } = self;
        for UnitPart {
            shard,
            path,
            content,
            version,
            ..
        } in unit.parts
        {
            for block in content.0 {
                let (records, origin) = block.read(shard, &path, Vec::new())?;
                // Records with further features get CRCs of their own.
                let verify_crc = if records.shared_features().is_empty() {
                    *verify_crc
                } else {
                    VerifyCrc::Always
                };
                let rest = records.skip_rejected(
                    |records| records.verify(verify_crc),
                    |good, bad, error| {
                        if *on_error == OnError::Fail {
                            return Err(origin.error(error));
                        }
                        Self::copy(summary, &path, good, progress, write)?;
                        context.skip(&origin, &bad, error)
                    },
                )?;
                Self::copy(summary, &path, rest, progress, write)?;
            }
            version.check()?;
        }
        Ok(())
    }

    fn lossy_changes(&self) -> LossyChanges {
        LossyChanges::new()
    }
}
