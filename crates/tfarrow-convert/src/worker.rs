//! What a worker does with a unit: decode it, where it is records, and encode it for the output.

use std::{collections::BTreeMap, mem, ops::Range, path::Path, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, compute_leaves};
use tfarrow_codec::{
    BATCH_CELLS, BatchDecoder, DecoderBuilder, Encoder, EncoderBuilder, ExactColumn, Limits, OnError, Records,
    VerifyCrc, with_exact,
};

use crate::{
    Error, Result, dictionary,
    input::{Reading, Unit, Work},
    job::Pieces,
    parquet_rows,
    progress::UnitProgress,
    sink::{self, Format, Piece},
};

/// Rows of a batch, and bytes of records that are decoded at once.
pub(crate) const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 16 << 20;

/// Bytes of frames that are written at once.
const FRAMES_BYTES: usize = 4 << 20;

/// What was lost on the way, and how often.
pub(crate) type Losses = BTreeMap<String, u64>;

/// How the records of a job are decoded.
#[derive(Clone, Debug)]
pub(crate) struct Decoding {
    pub(crate) schema: SchemaRef,
    /// Whether rows say as well in which form their records were.
    pub(crate) exact: bool,
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) limits: Limits,
    /// Whether the schema was made from a sample: what it does not know of is then an error.
    pub(crate) sampled: bool,
    /// Whether a record of another type is an error.
    pub(crate) strict: bool,
}

/// How the rows of a job are encoded.
pub(crate) enum Encoding {
    /// Into Parquet row groups of at most so many rows and so many encoded bytes.
    Parquet { schema: SchemaRef, format: Format, rows: usize, bytes: usize },
    /// Not at all: Arrow files take batches, with this schema.
    Arrow(SchemaRef),
    /// Into frames of the rows' records.
    TfRecord(EncoderBuilder, SchemaRef),
    /// Records as they are.
    Frames(VerifyCrc, OnError),
}

impl Encoding {
    /// Refuses columns that no record can have. `path` is the file that they are of.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        match self {
            Self::TfRecord(builder, schema) => {
                let built = builder.clone().build(Arc::clone(schema));
                built.map(drop).map_err(|e| Error::Usage(format!("{}: {e}", path.display())))
            }
            Self::Parquet { .. } | Self::Arrow(_) | Self::Frames(..) => Ok(()),
        }
    }
}

impl Decoding {
    /// The columns that rows have.
    pub(crate) fn columns(&self) -> SchemaRef {
        if self.exact { with_exact(&self.schema) } else { Arc::clone(&self.schema) }
    }
}

/// One worker at one job.
pub(crate) struct Worker<'j> {
    encoding: &'j Encoding,
    sampled: bool,
    decoder: Option<BatchDecoder>,
    exact: Option<ExactColumn>,
    encoder: Option<Encoder>,
    reading: Reading<'j>,
    /// The shard of the unit in hand, and how far that unit is.
    shard: usize,
    unit: UnitProgress<'j>,
    records: u64,
    losses: Losses,
}

impl<'j> Worker<'j> {
    pub(crate) fn new(decoding: Option<&Decoding>, encoding: &'j Encoding, reading: Reading<'j>) -> Result<Self> {
        let usage = |e: tfarrow_codec::Error| Error::Usage(e.to_string());
        let build = |decoding: &Decoding| {
            DecoderBuilder::new(Arc::clone(&decoding.schema))
                .with_verify_crc(decoding.verify_crc)
                .with_on_error(decoding.on_error)
                .with_limits(decoding.limits)
                .with_strict(decoding.strict)
                .build_batch_decoder()
        };
        let encoder = match encoding {
            Encoding::TfRecord(builder, schema) => Some(builder.clone().build(Arc::clone(schema)).map_err(usage)?),
            Encoding::Parquet { .. } | Encoding::Arrow(_) | Encoding::Frames(..) => None,
        };
        let sampled = decoding.is_some_and(|decoding| decoding.sampled);
        let decoder = decoding.map(build).transpose().map_err(usage)?;
        let exact = decoding.filter(|decoding| decoding.exact).map(|decoding| Arc::clone(&decoding.schema));
        let exact = exact.map(ExactColumn::new).transpose().map_err(usage)?;
        let (losses, unit) = (Losses::new(), UnitProgress::new(reading.progress, 0, 0));
        Ok(Self { encoding, sampled, decoder, exact, encoder, reading, shard: 0, unit, records: 0, losses })
    }

    /// Turns a unit into pieces.
    pub(crate) fn work(&mut self, unit: Unit, pieces: &mut Pieces<'_, '_>) -> Result<()> {
        self.unit = UnitProgress::new(self.reading.progress, unit.bytes, unit.work.rows());
        self.convert(unit, pieces)?;
        self.unit.finish();
        Ok(())
    }

    fn convert(&mut self, unit: Unit, pieces: &mut Pieces<'_, '_>) -> Result<()> {
        let path = Arc::clone(&unit.path);
        self.shard = unit.shard;
        match self.encoding {
            Encoding::Frames(verify, on_error) => self.frames(&path, unit.work, *verify, *on_error, pieces),
            Encoding::Parquet { schema, format, rows, bytes } => {
                let mut group = RowGroup::new(&path, schema, format);
                self.batches(&path, unit.work, |_, batch| {
                    for part in parts(batch.num_rows(), *rows, group.rows) {
                        group.write(batch.slice(part.start, part.len()))?;
                        if group.rows >= *rows || group.bytes() >= *bytes {
                            pieces.write(mem::replace(&mut group, RowGroup::new(&path, schema, format)).close()?)?;
                        }
                    }
                    Ok(())
                })?;
                if group.rows > 0 { pieces.write(group.close()?) } else { Ok(()) }
            }
            Encoding::Arrow(schema) => self.batches(&path, unit.work, |_, batch| {
                // Not `with_schema`, which wants all metadata kept: a new file says of itself what it was made of.
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = batch.columns().to_vec();
                let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
                let batch = batch.map_err(|e| Error::arrow(&path, e))?;
                pieces.write(Piece::Batch(batch))
            }),
            Encoding::TfRecord(..) => {
                let mut frames = Vec::new();
                self.batches(&path, unit.work, |encoder, batch| {
                    let Some(encoder) = encoder else { return Ok(()) };
                    encoder.encode(&batch, &mut frames).map_err(|e| Error::codec(&path, e))?;
                    if frames.len() < FRAMES_BYTES {
                        Ok(())
                    } else {
                        pieces.write(Piece::Frames(mem::take(&mut frames)))
                    }
                })?;
                pieces.write(Piece::Frames(frames))
            }
        }
    }

    /// How many records it has converted, and what was lost on the way, over all units.
    pub(crate) fn done(mut self) -> (u64, Losses) {
        if let Some(encoder) = &self.encoder {
            for (column, what, times) in encoder.losses() {
                *self.losses.entry(format!("column {column:?}: {what}")).or_default() += times;
            }
        }
        // With the form of records, what has no column is kept.
        let decoder = self.decoder.as_ref().filter(|_| self.exact.is_none());
        self.losses.extend(decoder.map(lost).into_iter().flatten());
        (self.records, self.losses)
    }

    fn count(&mut self, records: usize) {
        self.records += records as u64;
        self.unit.add(records as u64);
    }

    fn frames(
        &mut self,
        path: &Path,
        work: Work,
        verify: VerifyCrc,
        on_error: OnError,
        pieces: &mut Pieces<'_, '_>,
    ) -> Result<()> {
        let Work::Records(blocks) = work else { return Err(Error::Usage("only records have frames".to_owned())) };
        for mut records in blocks {
            while let Err(error) = records.verify(verify) {
                if on_error == OnError::Fail {
                    return Err(Error::codec(path, error));
                }
                let bad = (error.position().record - records.first()) as usize;
                let (good, rest) = records.split_at(bad);
                self.write_frames(&good, pieces)?;
                self.reading.damage.record(self.shard, path, &rest, error)?;
                records = rest.split_at(1).1;
            }
            self.write_frames(&records, pieces)?;
        }
        Ok(())
    }

    /// Records as they are: one whose CRC was not asked for must not get one that holds.
    fn write_frames(&mut self, records: &Records, pieces: &mut Pieces<'_, '_>) -> Result<()> {
        self.count(records.len());
        if records.is_empty() { Ok(()) } else { pieces.write(Piece::Frames(records.frames().to_vec())) }
    }

    /// Calls `each` with the rows of a unit.
    fn batches(
        &mut self,
        path: &Path,
        work: Work,
        mut each: impl FnMut(Option<&mut Encoder>, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        match work {
            Work::Records(blocks) => {
                for records in blocks {
                    self.decode(path, records, &mut each)?;
                }
            }
            Work::RowGroup(shard, file, group) => {
                for batch in parquet_rows::rows(&shard, &file, group..group + 1)? {
                    let batch = batch?;
                    self.count(batch.num_rows());
                    each(self.encoder.as_mut(), batch)?;
                }
            }
            Work::Batches(batches) => {
                for batch in batches {
                    self.count(batch.num_rows());
                    each(self.encoder.as_mut(), batch)?;
                }
            }
        }
        Ok(())
    }

    fn decode(
        &mut self,
        path: &Path,
        mut records: Records,
        each: &mut impl FnMut(Option<&mut Encoder>, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let rows = BATCH_CELLS / decoder.schema().fields().len().max(1);
        let mut count = 0;
        while !records.is_empty() {
            let (now, later) = {
                let fit = records.fit(rows.clamp(1, BATCH_ROWS), BATCH_BYTES);
                records.split_at(fit)
            };
            let mut batch = decoder.decode(&now).map_err(|e| Error::codec(path, e))?;
            for error in decoder.take_skipped().errors {
                self.reading.damage.record(self.shard, path, &now, error)?;
            }
            if let Some(exact) = &mut self.exact {
                let added = exact.add(&batch, &now, |row| decoder.record_of(row));
                batch = added.map_err(|e| Error::codec(path, e))?;
            }
            count += batch.num_rows();
            records = later;
            each(self.encoder.as_mut(), batch)?;
        }
        let homeless = homeless(decoder).next().filter(|_| self.sampled);
        self.count(count);
        match homeless {
            Some((what, _)) => {
                let way_out = "the sample did not see it; raise --sample, or leave it out to look at all records";
                Err(Error::Data(format!("{}: {what}: {way_out}", path.display())))
            }
            None => Ok(()),
        }
    }
}

/// What was met and not kept, and how often.
fn lost(decoder: &BatchDecoder) -> impl Iterator<Item = (String, u64)> {
    let foreign = decoder.foreign_fields();
    let foreign = foreign.map(|(field, times)| (format!("field {field} is not one of such records' features"), times));
    homeless(decoder).chain(foreign)
}

/// What was met that other columns would hold, and how often.
fn homeless(decoder: &BatchDecoder) -> impl Iterator<Item = (String, u64)> {
    let unknown = decoder.unknown_features().map(|(name, times)| (format!("feature {name:?} has no column"), times));
    let some = |what: &str, times| Some((what.to_owned(), times)).filter(|(_, times)| *times > 0);
    let forgotten = some("a feature past the limit of names has no column", decoder.forgotten_features());
    let unset = some("a feature with no kind set has no place without `_tfarrow_unset`", decoder.lost_unset());
    unknown.chain(forgotten).chain(unset)
}

/// Parts a batch where row groups of `most` rows end, of which the one in hand has `rows`.
fn parts(batch: usize, most: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let mut room = most.max(1) - rows;
    std::iter::from_fn(move || {
        let end = batch.min(start + room);
        let part = start..end;
        (start, room) = (end, most.max(1));
        (!part.is_empty()).then_some(part)
    })
}

/// A Parquet row group in the making.
struct RowGroup<'w> {
    path: &'w Path,
    schema: &'w SchemaRef,
    format: &'w Format,
    /// Its first rows, until there are enough to tell how the columns are best encoded.
    begin: Vec<RecordBatch>,
    /// None as long as its first rows wait.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

/// Bytes of the first rows that wait, at most, and of one batch more.
const BEGIN_BYTES: usize = 8 << 20;

impl<'w> RowGroup<'w> {
    fn new(path: &'w Path, schema: &'w SchemaRef, format: &'w Format) -> Self {
        Self { path, schema, format, begin: Vec::new(), columns: Vec::new(), rows: 0 }
    }

    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_columns() == 0 && batch.num_rows() > 0 {
            let way_out = "--record-type raw keeps the records as they are, and --to arrow their number";
            return Err(Error::Usage(format!("Parquet cannot hold rows that have no column; {way_out}")));
        }
        self.rows += batch.num_rows();
        if !self.columns.is_empty() {
            return self.encode(&batch);
        }
        self.begin.push(batch);
        if self.rows >= dictionary::VALUES || self.bytes() >= BEGIN_BYTES { self.begin() } else { Ok(()) }
    }

    /// Encodes the rows that wait.
    fn begin(&mut self) -> Result<()> {
        let begin = mem::take(&mut self.begin);
        let columns = sink::row_group(self.schema, self.format, &begin);
        self.columns = columns.map_err(|e| Error::parquet(self.path, e))?;
        begin.iter().try_for_each(|batch| self.encode(batch))
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        let parquet = |e| Error::parquet(self.path, e);
        let mut columns = self.columns.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for (leaf, column) in compute_leaves(field, array).map_err(parquet)?.iter().zip(columns.by_ref()) {
                column.write(leaf).map_err(parquet)?;
            }
        }
        Ok(())
    }

    /// Bytes so far: encoded, or still to be.
    fn bytes(&self) -> usize {
        let waiting: usize = self.begin.iter().map(RecordBatch::get_array_memory_size).sum();
        waiting + self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum::<usize>()
    }

    fn close(mut self) -> Result<Piece> {
        if self.columns.is_empty() {
            self.begin()?;
        }
        let chunks: Result<Vec<_>, _> = self.columns.into_iter().map(ArrowColumnWriter::close).collect();
        Ok(Piece::RowGroup(chunks.map_err(|e| Error::parquet(self.path, e))?))
    }
}
