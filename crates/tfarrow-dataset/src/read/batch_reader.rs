//! Batches of one shard, compressed or not.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use tfarrow_codec::{BatchDecoder, ReaderBuilder, Records};

use crate::{DamageReport, Error, Fault, Result, ShardReader};

/// Reads a shard as batches: an iterator, and a [`RecordBatchReader`].
///
/// A batch has at most [`ReaderBuilder::with_batch_size`] rows, and ends at the latest where a
/// chunk of the shard ends, so that no record is copied. With [`OnError::Skip`] in the options of
/// the [`ShardReader`] corrupt bytes are skipped, and with [`OnError::Skip`] in the builder records
/// that are corrupt or do not fit the schema.
///
/// ```
/// use tfarrow_codec::{ReaderBuilder, Layout, Writer};
/// use tfarrow_dataset::{
///     Compression, ReadOptions, ShardBatchReader, ShardReader, ShardWriter, resolve,
/// };
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.tfrecord.gz");
/// # let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
/// # let batch = RecordBatch::try_from_iter([("x", column)])?;
/// // Write a compressed shard,
/// let output = ShardWriter::new(std::fs::File::create(&path)?, Compression::Gzip);
/// let mut writer = Writer::new(output, batch.schema())?;
/// writer.write(&batch)?;
/// writer.into_inner().finish()?;
///
/// // and read it with its own schema.
/// let shard = resolve(&[&path])?.remove(0);
/// let reader = ShardReader::open(&shard, &ReadOptions::default())?;
/// let reader = ShardBatchReader::new(reader, ReaderBuilder::new(batch.schema()))?;
/// let batches = reader.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(batches[0].columns(), batch.columns());
/// # Ok(()) }
/// ```
///
/// # Errors
/// An item is an error if the shard cannot be read or decompressed, and if a record is corrupt or
/// does not fit the schema, unless it is skipped. The batches of the chunks before are returned
/// first, and nothing after an error. The crate's own [`Error`], which names the file, is in
/// [`ArrowError::ExternalError`].
///
/// [`OnError::Skip`]: tfarrow_codec::OnError::Skip
pub struct ShardBatchReader {
    reader: ShardReader,
    decoder: BatchDecoder,
    /// Maximum number of rows, and of bytes of records, of a batch.
    limits: (usize, usize),
    /// Records of the chunk that are not decoded yet.
    records: Option<Records>,
    skipped: DamageReport,
    is_done: bool,
}

impl ShardBatchReader {
    /// Reads the records of `reader` as the batches that `builder` describes.
    ///
    /// # Errors
    /// The schema has a column to which features cannot be decoded.
    pub fn new(reader: ShardReader, builder: ReaderBuilder) -> Result<Self, tfarrow_codec::Error> {
        let limits = builder.batch_limits();
        let decoder = builder.build_batch_decoder()?;
        Ok(Self {
            reader,
            decoder,
            limits,
            records: None,
            skipped: DamageReport::default(),
            is_done: false,
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.decoder.schema())
    }

    /// Returns the damage that was skipped since the last call. It is empty unless the reader or
    /// the decoder skips.
    pub fn take_skipped(&mut self) -> DamageReport {
        std::mem::take(&mut self.skipped)
    }

    /// Returns the next batch; `None` at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let records = match self.records.take().filter(|records| !records.is_empty()) {
            Some(records) => Some(records),
            None => self.reader.next()?,
        };
        self.skipped.merge(self.reader.lost());
        let Some(records) = records else {
            return Ok(None);
        };
        let (rows, bytes) = self.limits;
        let decoded = self.decoder.decode_first(records, rows, bytes);
        let (batch, _, later) = decoded.map_err(|error| Error::codec(self.reader.path(), error))?;
        self.records = Some(later);
        for error in self.decoder.take_skipped() {
            self.skipped
                .add_record(Fault::of(0, Error::codec(self.reader.path(), error)));
        }
        Ok(Some(batch))
    }
}

impl Iterator for ShardBatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let batch = self.read();
        self.is_done = !matches!(batch, Ok(Some(_)));
        batch
            .map_err(|error| ArrowError::ExternalError(Box::new(error)))
            .transpose()
    }
}

impl RecordBatchReader for ShardBatchReader {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }
}
