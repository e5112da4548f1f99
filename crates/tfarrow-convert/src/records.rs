//! The records of a data set in any of the formats, one after the other: of Parquet and Arrow, as the way back would write
//! them.

use std::{path::PathBuf, sync::Arc, vec};

use tfarrow_codec::{Cutter, Encoder, EncoderBuilder, Limits, RecordType, Records, VerifyCrc};
use tfarrow_dataset::{Contents, ReadOptions, Shard, ShardReader};

use crate::{Error, Result, columnar};

/// Records that lie together.
pub(crate) struct Block {
    pub(crate) path: Arc<PathBuf>,
    pub(crate) records: Records,
    /// The number in the file of the first.
    pub(crate) first: u64,
    /// Whether they have an offset in the file.
    pub(crate) is_tfrecord: bool,
}

/// Reads shards in their order.
pub(crate) struct RecordReader {
    shards: vec::IntoIter<Shard>,
    open: Option<(Arc<PathBuf>, Input)>,
    read: ReadOptions,
    record_type: Option<RecordType>,
}

enum Input {
    TfRecord(Box<ShardReader>),
    Columnar { batches: columnar::Batches, encoder: Option<Encoder>, rows: u64 },
}

impl RecordReader {
    /// Of Parquet and Arrow files, records of this type are made; by default of the type that the file says.
    pub(crate) fn new(shards: Vec<Shard>, read: ReadOptions, record_type: Option<RecordType>) -> Self {
        Self { shards: shards.into_iter(), open: None, read, record_type }
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
                    if let Some(records) = reader.as_mut().next()? {
                        records.verify(VerifyCrc::Always).map_err(|e| Error::codec(&path, e))?;
                        let first = records.first();
                        return Ok(Some(Block { path, records, first, is_tfrecord: true }));
                    }
                }
                Input::Columnar { batches, encoder, rows } => {
                    if let Some(batch) = batches.next().transpose()? {
                        let encoder = match encoder {
                            Some(encoder) => encoder,
                            None => {
                                let builder = EncoderBuilder::new();
                                let builder =
                                    self.record_type.into_iter().fold(builder, EncoderBuilder::with_record_type);
                                let built = builder.build(batch.schema()).map_err(|e| Error::codec(&path, e))?;
                                encoder.insert(built)
                            }
                        };
                        let mut frames = Vec::new();
                        encoder.encode(&batch, &mut frames).map_err(|e| Error::codec(&path, e))?;
                        let mut cutter = Cutter::new(Limits::default());
                        let mut cut = cutter.begin();
                        cutter.cut(&frames, 0, &mut cut).map_err(|e| Error::codec(&path, e))?;
                        let first = *rows;
                        *rows += batch.num_rows() as u64;
                        return Ok(Some(Block { path, records: cut.records(frames, 0), first, is_tfrecord: false }));
                    }
                }
            }
            self.open = None;
        }
    }
}

impl Iterator for RecordReader {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}
