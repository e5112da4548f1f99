//! The records of a data set in any format, in order. Rows of Parquet, Arrow, CSV and JSON are
//! encoded to the records that a conversion to TFRecord would write.

use std::{
    iter, mem,
    path::{Path, PathBuf},
    sync::Arc,
    vec,
};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use tfarrow_codec::{
    Category, Encoder, Limits, OnError, RecordType, Records, Role, Validator, WriterBuilder,
    schema::{feature_of, role_of},
};
use tfarrow_columnar::{Batches, rows_of, schema_within};
use tfarrow_dataset::{DamageReport, Fault, ReadOptions, Shard, ShardFormat, ShardReader};

use super::report::DiffOptions;
use crate::{Error, Progress, Result, names::NamePattern};

/// Consecutive records of a file, and which of them are valid.
pub(crate) struct CheckedRecords {
    pub(crate) path: Arc<PathBuf>,
    pub(crate) records: Records,
    /// The records as they are in the file, if those to compare also have the features of its
    /// folders.
    stored: Option<Records>,
    /// The indexes of corrupt and unparsable records, which are skipped.
    faulty: Vec<usize>,
    /// The number of the first record in the file.
    pub(crate) first: u64,
    /// Whether the file is TFRecord, in which records have an offset.
    is_tfrecord: bool,
}

impl CheckedRecords {
    /// The indexes of the valid records.
    pub(crate) fn valid(&self) -> impl Iterator<Item = usize> {
        (0..self.records.len()).filter(|index| self.faulty.binary_search(index).is_err())
    }

    /// The offset of a record in its file; `None` for a row of a file of another format than
    /// TFRecord.
    pub(crate) fn offset(&self, index: usize) -> Option<u64> {
        let stored = self.stored.as_ref().unwrap_or(&self.records);
        self.is_tfrecord.then(|| stored.position(index).offset)
    }
}

/// Reads the records of shards, in order.
pub(crate) struct RecordReader<'p> {
    shards: iter::Enumerate<vec::IntoIter<Shard>>,
    /// The number of the open shard.
    number: usize,
    open: Option<(Arc<PathBuf>, RecordInput)>,
    progress: &'p Progress,
    /// Bytes of the open shard that `progress` does not have yet.
    left: u64,
    read: ReadOptions,
    /// The type of the records that rows are encoded to; `None` for the type in the metadata of
    /// each file.
    encode_as: Option<RecordType>,
    /// The columns of rows that are not encoded.
    left_out: LeftOut,
    /// The type of the records of all shards.
    record_type: RecordType,
    validator: Validator,
    /// Corrupt and unparsable records that were skipped so far.
    pub(crate) skipped: DamageReport,
}

/// The columns of rows that are not compared, and not encoded: excluded columns may have values
/// that no record holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    excluded: Vec<NamePattern>,
    keys: Vec<String>,
}

impl LeftOut {
    /// The excluded columns of the options, but for keys. None, if records without a partner are
    /// written, since these are complete.
    ///
    /// # Errors
    /// [`Error::Usage`] for a glob that is not valid.
    pub(crate) fn new(options: &DiffOptions) -> Result<Self> {
        if options.unmatched.iter().any(Option::is_some) {
            return Ok(Self::default());
        }
        Ok(Self {
            excluded: NamePattern::all(&options.exclude)?,
            keys: options.on.clone(),
        })
    }

    /// The indices of the other columns; `None` if these are all.
    fn rest(&self, schema: &Schema) -> Option<Arc<[usize]>> {
        let mut rest = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let name = feature_of(field);
            let is_feature = !matches!(role_of(field), Some(Role::Unset | Role::Exact));
            let is_left_out = is_feature
                && self.excluded.iter().any(|pattern| pattern.matches(name))
                && !self.keys.iter().any(|key| key == name);
            if !is_left_out {
                rest.push(index);
            }
        }
        (rest.len() < schema.fields().len()).then(|| rest.into())
    }
}

/// An open shard.
enum RecordInput {
    TfRecord(Box<ShardReader>),
    /// A Parquet, Arrow, CSV or JSON file, the encoder for its schema, and the number of rows that
    /// were read.
    Columnar {
        batches: Batches,
        builder: WriterBuilder,
        encoder: Option<Box<Encoder>>,
        rows: u64,
    },
}

impl<'p> RecordReader<'p> {
    /// A reader of records of type `record_type`. Rows of other files than TFRecord are encoded to
    /// records of type `encode_as`, or of the type in the metadata of each file, without the
    /// columns `left_out`.
    pub(crate) fn new(
        shards: Vec<Shard>,
        read: ReadOptions,
        record_type: RecordType,
        (encode_as, left_out): (Option<RecordType>, LeftOut),
        progress: &'p Progress,
    ) -> Self {
        let validator = Validator::new(record_type, read.limits);
        let skipped = DamageReport::default();
        Self {
            shards: shards.into_iter().enumerate(),
            number: 0,
            open: None,
            progress,
            left: 0,
            read,
            encode_as,
            left_out,
            record_type,
            validator,
            skipped,
        }
    }

    fn open(&self, shard: &Shard) -> Result<RecordInput> {
        Ok(match shard.format {
            ShardFormat::TfRecord => {
                RecordInput::TfRecord(Box::new(ShardReader::open(shard, &self.read)?))
            }
            ShardFormat::Parquet | ShardFormat::Arrow | ShardFormat::Csv | ShardFormat::Json => {
                let builder = self
                    .encode_as
                    .into_iter()
                    .fold(WriterBuilder::new(), WriterBuilder::with_record_type);
                // The digits of a text are no choice of float64.
                let builder = builder.with_rounding(shard.format.is_text());
                let columns = schema_within(shard, &self.read.limits)?
                    .and_then(|schema| self.left_out.rest(&schema));
                RecordInput::Columnar {
                    batches: rows_of(shard, columns)?,
                    builder,
                    encoder: None,
                    rows: 0,
                }
            }
        })
    }

    fn next_block(&mut self) -> Result<Option<CheckedRecords>> {
        loop {
            let Some((path, input)) = &mut self.open else {
                let Some((number, shard)) = self.shards.next() else {
                    return Ok(None);
                };
                (self.number, self.left) = (number, shard.size);
                self.open = Some((Arc::new(shard.path.clone()), self.open(&shard)?));
                continue;
            };
            let path = Arc::clone(path);
            match input {
                RecordInput::TfRecord(reader) => {
                    let before = reader.bytes_read();
                    let records = reader.as_mut().next()?;
                    let bytes = (reader.bytes_read() - before).min(self.left);
                    self.left -= bytes;
                    self.progress.add_bytes(bytes);
                    self.skipped.merge(reader.lost().of_shard(self.number));
                    if let Some(records) = records {
                        let faulty = self.faulty(&path, &records)?;
                        let first = records.first();
                        let (records, stored) = self.with_folders(&path, records)?;
                        return Ok(Some(CheckedRecords {
                            path,
                            records,
                            stored,
                            faulty,
                            first,
                            is_tfrecord: true,
                        }));
                    }
                }
                RecordInput::Columnar {
                    batches,
                    builder,
                    encoder,
                    rows,
                } => {
                    if let Some(batch) = batches.next().transpose()? {
                        let records = encode(encoder, builder, &batch).map_err(|e| {
                            Error::NotComparable(tfarrow_dataset::Error::codec(&*path, e))
                        })?;
                        let first = *rows;
                        *rows += batch.num_rows() as u64;
                        return Ok(Some(CheckedRecords {
                            path,
                            records,
                            stored: None,
                            faulty: Vec::new(),
                            first,
                            is_tfrecord: false,
                        }));
                    }
                }
            }
            self.open = None;
            self.progress.add_bytes(mem::take(&mut self.left));
        }
    }

    /// The records with the features of the folders of their file, and the stored records if these
    /// have none. Only records with features have those of folders.
    fn with_folders(&self, path: &Path, records: Records) -> Result<(Records, Option<Records>)> {
        let has_features = matches!(
            self.record_type,
            RecordType::Example | RecordType::SequenceExample
        );
        if records.shared_features().is_empty() || !has_features {
            return Ok((records, None));
        }
        let stored = records.clone();
        let records = records.with_own_features();
        Ok((
            records.map_err(|e| Error::NotComparable(tfarrow_dataset::Error::codec(path, e)))?,
            Some(stored),
        ))
    }

    /// The indexes of records with invalid CRCs, and of records that do not parse, which are added
    /// to `skipped`.
    ///
    /// # Errors
    /// The first such record unless corrupt records are skipped. A record that exceeds a limit is
    /// always an error.
    fn faulty(&mut self, path: &Path, records: &Records) -> Result<Vec<usize>> {
        let mut faulty = Vec::new();
        let first = records.first();
        let Self {
            read,
            record_type,
            validator,
            skipped,
            number,
            ..
        } = self;
        records.clone().skip_rejected(
            |records| check_all(records, validator, *record_type, &read.limits),
            |_, bad, error| {
                let is_limit = error.category() == Category::Limit;
                let error = tfarrow_dataset::Error::codec(path, error);
                if is_limit || read.on_error == OnError::Fail {
                    return Err(error);
                }
                skipped.add_record(Fault::of(*number, error));
                faulty.push((bad.first() - first) as usize);
                Ok(())
            },
        )?;
        Ok(faulty)
    }
}

/// Checks that records have valid CRCs, and that they parse as this type.
fn check_all(
    records: &Records,
    validator: &mut Validator,
    record_type: RecordType,
    limits: &Limits,
) -> Result<(), tfarrow_codec::Error> {
    for index in 0..records.len() {
        records.check_crc(index)?;
        if record_type == RecordType::Raw {
            continue;
        }
        let data = records.data(index);
        debug_assert!(data.is_some(), "the index is that of a record");
        validator
            .check(data.unwrap_or_default())
            .map_err(|error| records.parse_error(error, index, record_type, limits))?;
    }
    Ok(())
}

/// Encodes a batch to records. Builds the encoder if there is none yet.
fn encode(
    encoder: &mut Option<Box<Encoder>>,
    builder: &WriterBuilder,
    batch: &RecordBatch,
) -> Result<Records, tfarrow_codec::Error> {
    let encoder = match encoder {
        Some(encoder) => encoder,
        None => encoder.insert(Box::new(builder.clone().build_encoder(batch.schema())?)),
    };
    let mut frames = Vec::new();
    encoder.encode(batch, &mut frames)?;
    Records::from_frames(frames, Limits::default())
}

impl Iterator for RecordReader<'_> {
    type Item = Result<CheckedRecords>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}
