//! The push decoder: bytes in as they arrive, batches out.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{
    BATCH_CELLS, BatchDecoder, Limits, OnError, Result, Skipped, VerifyCrc, decode::DecodeOptions,
    frame::FrameCollector,
};

/// Default number of rows of a batch, which is DataFusion's.
const BATCH_SIZE: usize = 8192;

/// Default number of bytes of records in a batch.
const BATCH_BYTES: usize = 16 << 20;

/// Maximum number of bytes of records in a batch: Arrow counts the bytes and the values of a column in 31 bits.
const MOST_BATCH_BYTES: usize = 1 << 30;

/// Builds a [`Decoder`] or a [`BatchDecoder`].
#[derive(Clone, Debug)]
pub struct DecoderBuilder {
    schema: SchemaRef,
    batch_size: usize,
    batch_bytes: usize,
    options: DecodeOptions,
}

impl DecoderBuilder {
    /// Decodes to the columns of `schema`: what [`Summary::schema`](crate::Summary::schema) gives, or one of your own.
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, batch_size: BATCH_SIZE, batch_bytes: BATCH_BYTES, options: DecodeOptions::default() }
    }

    /// Only these columns of the schema, in this order. Other features are stepped over.
    pub fn with_projection(mut self, projection: Vec<usize>) -> Self {
        self.options.projection = Some(projection);
        self
    }

    /// Of the lists of column `column` of the schema only the first `count` values: lists are cut to them, and what comes
    /// after them is not looked at. Columns of other shapes are as ever. For a filter that asks for `ids[1]`.
    pub fn with_first_values(mut self, column: usize, count: usize) -> Self {
        self.options.first_values.insert(column, count);
        self
    }

    /// Rows of a [`Decoder`]'s batch; by default 8,192. A batch has fewer where its records reach
    /// [`with_batch_bytes`](Self::with_batch_bytes), where its rows times its columns would be more than [`BATCH_CELLS`],
    /// and at the end of the input.
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// At most so many bytes of records, frames included, in a [`Decoder`]'s batch, but always one record; by default
    /// 16 MiB, and never more than 1 GiB.
    pub fn with_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// When the CRC of a record's data is checked; by default always.
    pub fn with_verify_crc(mut self, verify_crc: VerifyCrc) -> Self {
        self.options.verify_crc = verify_crc;
        self
    }

    /// Whether a record with a top-level field that its type has not is an error. By default such a field is skipped,
    /// as protobuf does; where the type was guessed from a sample, it shows that the guess was wrong.
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.options.strict = strict;
        self
    }

    /// What becomes of a record that is corrupt or does not fit the schema; by default it is an error. A frame whose
    /// length is corrupt always is one.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// Bounds that no input can pass.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Maximum number of rows and of bytes of records in a batch, for readers that get records from elsewhere.
    #[doc(hidden)]
    pub fn batch_limits(&self) -> (usize, usize) {
        let all = self.schema.fields().len();
        let columns = self.options.projection.as_ref().map_or(all, Vec::len);
        (self.batch_size.min(BATCH_CELLS / columns.max(1)).max(1), self.batch_bytes.min(MOST_BATCH_BYTES))
    }

    /// Builds a decoder of [`Records`](crate::Records).
    ///
    /// # Errors
    /// The schema has a column to which features cannot be decoded.
    pub fn build_batch_decoder(self) -> Result<BatchDecoder> {
        BatchDecoder::try_new(&self.schema, self.options)
    }

    /// Builds a decoder of bytes.
    ///
    /// # Errors
    /// The schema has a column to which features cannot be decoded.
    pub fn build(self) -> Result<Decoder> {
        let (max_records, max_bytes) = self.batch_limits();
        let frames = FrameCollector::new(max_records, max_bytes, self.options.limits);
        Ok(Decoder { frames, decoder: self.build_batch_decoder()? })
    }
}

/// Bytes in, batches out. Performs no IO and never blocks; [`Reader`](crate::Reader) drives it from a
/// [`BufRead`](std::io::BufRead).
///
/// It is driven as arrow-csv's `Decoder`: [`decode`](Self::decode) bytes until it takes none, which happens when a batch is
/// full and at the end of the input, then [`flush`](Self::flush). If there is nothing to flush, the input has ended:
/// [`finish`](Self::finish) checks that it ended between two records.
///
/// A corrupt length is always an error, because the format has no mark to continue from.
#[derive(Debug)]
pub struct Decoder {
    frames: FrameCollector,
    decoder: BatchDecoder,
}

impl Decoder {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.decoder.schema()
    }

    /// Returns what was left out of the batches since the last call.
    pub fn take_skipped(&mut self) -> Skipped {
        self.decoder.take_skipped()
    }

    /// Takes bytes off the front of `input` and returns their number. It takes fewer than there are, maybe none, only if
    /// the batch is full: call [`flush`](Self::flush), then call again with the other bytes. The batches do not depend on
    /// how the input is cut.
    ///
    /// # Errors
    /// A frame whose length is corrupt or exceeds the limit, once the records before it are flushed.
    pub fn decode(&mut self, input: &[u8]) -> Result<usize> {
        self.frames.push(input)
    }

    /// Number of rows that still fit into the batch; 0 if [`flush`](Self::flush) has to come next.
    pub fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// Returns a batch of the complete records taken so far; `None` if there are none. If [`decode`](Self::decode) filled
    /// the batch, it has as many rows as were asked for, or as many bytes. May be called at any time, also inside a frame.
    ///
    /// # Errors
    /// A record that is corrupt, or does not fit the schema. The batch's other records are lost with it, unless the decoder
    /// [skips](OnError::Skip) such records.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        self.frames.take().map(|records| self.decoder.decode(&records)).transpose()
    }

    /// Checks the end of the input.
    ///
    /// # Errors
    /// The input ends inside a frame; the records before it can still be flushed.
    pub fn finish(&self) -> Result<()> {
        self.frames.finish()
    }
}
