//! The records of a data set in any of the formats, one after the other: of Parquet and Arrow, as the way back would write
//! them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    vec,
};

use tfarrow_codec::{Category, Encoder, EncoderBuilder, Limits, OnError, RecordType, Records, Validator};
use tfarrow_dataset::{Contents, ReadOptions, Shard, ShardReader, SkippedRecords};

use crate::{Error, Result, columnar};

/// Records that lie together.
pub(crate) struct Block {
    pub(crate) path: Arc<PathBuf>,
    pub(crate) records: Records,
    /// Which of them are passed over: they are damaged, or do not parse.
    faulty: Vec<usize>,
    /// The number in the file of the first.
    pub(crate) first: u64,
    /// Whether they have an offset in the file.
    pub(crate) is_tfrecord: bool,
}

impl Block {
    /// Which of the records are sound.
    pub(crate) fn sound(&self) -> impl Iterator<Item = usize> {
        (0..self.records.len()).filter(|index| self.faulty.binary_search(index).is_err())
    }
}

/// Reads shards in their order.
pub(crate) struct RecordReader {
    shards: vec::IntoIter<Shard>,
    open: Option<(Arc<PathBuf>, Input)>,
    read: ReadOptions,
    /// Of what type records are made of Parquet and Arrow files, if not of the one that the file says.
    made_as: Option<RecordType>,
    /// Of what type all records are.
    record_type: RecordType,
    validator: Validator,
    /// What was passed over so far: nothing, unless that is asked for.
    pub(crate) skipped: SkippedRecords,
}

enum Input {
    TfRecord(Box<ShardReader>),
    Columnar { batches: columnar::Batches, encoder: Option<Encoder>, rows: u64 },
}

impl RecordReader {
    /// The records are of this type. Of Parquet and Arrow files they are `made_as` that; by default as the file says.
    pub(crate) fn new(
        shards: Vec<Shard>,
        read: ReadOptions,
        record_type: RecordType,
        made_as: Option<RecordType>,
    ) -> Self {
        let validator = Validator::new(record_type, read.limits);
        let skipped = SkippedRecords::default();
        Self { shards: shards.into_iter(), open: None, read, made_as, record_type, validator, skipped }
    }

    fn open(&self, shard: &Shard) -> Result<Input> {
        Ok(match shard.contents {
            Contents::TfRecord => Input::TfRecord(Box::new(ShardReader::open(shard, &self.read)?)),
            Contents::Parquet | Contents::Arrow => {
                Input::Columnar { batches: columnar::rows(shard)?, encoder: None, rows: 0 }
            }
        })
    }

    fn next_block(&mut self) -> Result<Option<Block>> {
        loop {
            let Some((path, input)) = &mut self.open else {
                let Some(shard) = self.shards.next() else { return Ok(None) };
                self.open = Some((Arc::new(shard.path.clone()), self.open(&shard)?));
                continue;
            };
            let path = Arc::clone(path);
            match input {
                Input::TfRecord(reader) => {
                    let records = reader.as_mut().next()?;
                    self.skipped.merge(reader.lost());
                    if let Some(records) = records {
                        let faulty = self.faulty(&path, &records)?;
                        let first = records.first();
                        return Ok(Some(Block { path, records, faulty, first, is_tfrecord: true }));
                    }
                }
                Input::Columnar { batches, encoder, rows } => {
                    if let Some(batch) = batches.next().transpose()? {
                        let encoder = match encoder {
                            Some(encoder) => encoder,
                            None => {
                                let builder = EncoderBuilder::new();
                                let builder = self.made_as.into_iter().fold(builder, EncoderBuilder::with_record_type);
                                let built = builder.build(batch.schema()).map_err(|e| Error::codec(&path, e))?;
                                encoder.insert(built)
                            }
                        };
                        let mut frames = Vec::new();
                        encoder.encode(&batch, &mut frames).map_err(|e| Error::codec(&path, e))?;
                        let records =
                            Records::from_frames(frames, Limits::default()).map_err(|e| Error::codec(&path, e))?;
                        let first = *rows;
                        *rows += batch.num_rows() as u64;
                        return Ok(Some(Block { path, records, faulty: Vec::new(), first, is_tfrecord: false }));
                    }
                }
            }
            self.open = None;
        }
    }

    /// The records whose CRCs do not hold, and those that do not parse: they are counted, unless the first of them is an
    /// error. What a limit forbids always is one.
    fn faulty(&mut self, path: &Path, records: &Records) -> Result<Vec<usize>> {
        let mut faulty = Vec::new();
        for index in 0..records.len() {
            if let Err(error) = self.check(records, index) {
                let is_limit = error.category() == Category::Limit;
                let error = tfarrow_dataset::Error::codec(path, error);
                if is_limit || self.read.on_error == OnError::Fail {
                    return Err(error.into());
                }
                self.skipped.add_record(error);
                faulty.push(index);
            }
        }
        Ok(faulty)
    }

    fn check(&mut self, records: &Records, index: usize) -> Result<(), tfarrow_codec::Error> {
        records.check_crc(index)?;
        if self.record_type == RecordType::Raw {
            return Ok(());
        }
        let lists = self.record_type == RecordType::SequenceExample;
        let parsed = self.validator.check(records.data(index).unwrap_or_default());
        parsed.map_err(|error| records.parse_error(error, index, lists, &self.read.limits))
    }
}

impl Iterator for RecordReader {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}
