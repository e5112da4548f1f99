//! The push decoder, which takes bytes as they arrive and returns batches, and the builder of all
//! decoders.
//!
//! ```text
//! bytes ─▶ Decoder::decode ─▶ FrameCollector ─▶ Records ─▶ BatchDecoder ─▶ Decoder::flush ─▶ RecordBatch
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::batch_decoder::{BatchDecoder, DecoderOptions};
use crate::{
    BATCH_CELLS, Error, Limits, OnError, Result, VerifyCrc, frame::FrameCollector,
    schema::array_count,
};

/// Default number of rows of a batch, as in DataFusion.
const BATCH_SIZE: usize = 8192;

/// Default number of bytes of records in a batch.
const BATCH_BYTES: usize = 16 << 20;

/// Maximum number of bytes of records in a batch. Arrow counts the bytes and the values of a column
/// in 31 bits.
const MOST_BATCH_BYTES: usize = 1 << 30;

/// Builds a [`Decoder`], a [`BatchDecoder`] or a [`Reader`](crate::Reader).
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use tfarrow_codec::{ReaderBuilder, OnError};
/// # fn main() -> tfarrow_codec::Result<()> {
/// // The schema may be inferred, or written by hand: a feature with one integer, and one with a list of floats.
/// let floats = DataType::new_list(DataType::Float32, true);
/// let schema = Schema::new(vec![Field::new("label", DataType::Int64, true), Field::new("embedding", floats, true)]);
/// let decoder = ReaderBuilder::new(schema.into())
///     .with_projection(vec![1])
///     .with_batch_size(1024)
///     .with_on_error(OnError::Skip)
///     .build_decoder()?;
/// assert_eq!(decoder.schema().field(0).name(), "embedding");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ReaderBuilder {
    schema: SchemaRef,
    batch_size: usize,
    batch_bytes: usize,
    options: DecoderOptions,
}

impl ReaderBuilder {
    /// Creates a builder of decoders to the columns of `schema`, which
    /// [`Summary::schema`](crate::Summary::schema) infers, or which the caller makes;
    /// [`schema`](crate::schema) lists the types. Features without a column are skipped and
    /// [counted](BatchDecoder::unknown_features).
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            batch_size: BATCH_SIZE,
            batch_bytes: BATCH_BYTES,
            options: DecoderOptions::default(),
        }
    }

    /// Sets the columns of the batches, as indices into the schema, in any order. Other features
    /// are skipped without decoding. By default all columns are decoded.
    pub fn with_projection(mut self, projection: Vec<usize>) -> Self {
        self.options.projection = Some(projection);
        self
    }

    /// Decodes at most the first `count` values of the lists of the column at index `column` of the
    /// schema. The values after them are neither decoded nor checked. Columns of other shapes are
    /// decoded completely.
    ///
    /// For filters on single values of a list, such as `ids[1] = 7`.
    pub fn with_first_values(mut self, column: usize, count: usize) -> Self {
        self.options.first_values.insert(column, count);
        self
    }

    /// Sets the number of rows of a [`Decoder`]'s batches; by default 8,192. A batch has fewer rows
    /// if its records reach [`with_batch_bytes`](Self::with_batch_bytes), if its rows times its
    /// columns would exceed 2^20, and at the end of the input.
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// Sets the maximum number of bytes of records, frames included, in a [`Decoder`]'s batches; by
    /// default 16 MiB, and at most 1 GiB. A batch has at least one record, however long.
    pub fn with_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// Sets when the CRC of a record's payload is checked; by default always.
    pub fn with_verify_crc(mut self, verify_crc: VerifyCrc) -> Self {
        self.options.verify_crc = verify_crc;
        self
    }

    /// Sets whether a record with a field that its record type does not define is an error. By
    /// default such fields are skipped, as protobuf's parsers do, and
    /// [counted](BatchDecoder::foreign_fields). If the record type was inferred from a sample, such
    /// a field shows that the records have another type.
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.options.strict = strict;
        self
    }

    /// Sets whether a record that is corrupt or does not fit the schema is an error, or is skipped
    /// and [counted](Decoder::take_skipped); by default it is an error. A corrupt length of a frame
    /// is an error in any case; a [`FrameBuffer`](crate::FrameBuffer) can skip it.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// Sets the limits for records, and for the names of features without a column.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Maximum number of rows and of bytes of records in a batch, for readers that get records from
    /// elsewhere.
    pub fn batch_limits(&self) -> (usize, usize) {
        let fields = self.schema.fields();
        let columns = match &self.options.projection {
            Some(projection) => projection
                .iter()
                .map(|index| match fields.get(*index) {
                    Some(field) => array_count(&[Arc::clone(field)].into()),
                    None => 1,
                })
                .sum(),
            None => array_count(fields),
        };
        (
            self.batch_size.min(BATCH_CELLS / columns.max(1)).max(1),
            self.batch_bytes.min(MOST_BATCH_BYTES),
        )
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
    pub fn build_decoder(self) -> Result<Decoder> {
        let (max_records, max_bytes) = self.batch_limits();
        let frames = FrameCollector::new(max_records, max_bytes, self.options.limits);
        Ok(Decoder {
            frames,
            decoder: self.build_batch_decoder()?,
        })
    }
}

/// Bytes in, batches out. Performs no IO and never blocks; [`Reader`](crate::Reader) drives it from
/// a [`BufRead`](std::io::BufRead).
///
/// It is driven as arrow-csv's `Decoder`: [`decode`](Self::decode) bytes until it takes none, which
/// happens when a batch is full and at the end of the input, then [`flush`](Self::flush). If there
/// is nothing to flush, the input has ended: [`finish`](Self::finish) checks that it ended between
/// two records.
///
/// A corrupt length is always an error; see [`FrameBuffer`](crate::FrameBuffer) for a search of the
/// next record.
///
/// ```
/// use tfarrow_codec::{ReaderBuilder, schema::raw_schema, Values, frame};
/// # fn main() -> tfarrow_codec::Result<()> {
/// let mut stream = Vec::new();
/// for payload in [b"one", b"two"] {
///     frame::write(payload, &mut stream);
/// }
/// let mut decoder = ReaderBuilder::new(raw_schema(Values::Binary)).build_decoder()?;
/// let mut rows = 0;
/// // The bytes arrive in parts of 10.
/// for mut part in stream.chunks(10) {
///     loop {
///         let taken = decoder.decode(part)?;
///         part = &part[taken..];
///         if part.is_empty() {
///             break;
///         }
///         rows += decoder.flush()?.map_or(0, |batch| batch.num_rows());
///     }
/// }
/// rows += decoder.flush()?.map_or(0, |batch| batch.num_rows());
/// decoder.finish()?;
/// assert_eq!(rows, 2);
/// # Ok(()) }
/// ```
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

    /// Returns the errors of the records that were skipped since the last call. Records are skipped
    /// only with [`OnError::Skip`].
    pub fn take_skipped(&mut self) -> Vec<Error> {
        self.decoder.take_skipped()
    }

    /// Takes bytes off the front of `input` and returns their number. It takes fewer than there
    /// are, possibly none, only if the batch is full: call [`flush`](Self::flush), then call again
    /// with the other bytes. The batches do not depend on how the input is split.
    ///
    /// # Errors
    /// A frame whose length is corrupt or exceeds [`Limits::record_bytes`], once the records before
    /// it are flushed.
    pub fn decode(&mut self, input: &[u8]) -> Result<usize> {
        self.frames.push(input)
    }

    /// Number of rows that still fit into the batch; 0 if [`flush`](Self::flush) has to come next.
    pub fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// Returns a batch of the complete records taken so far; `None` if there are none. If
    /// [`decode`](Self::decode) filled the batch, it has the configured number of rows or bytes.
    /// May be called at any time, also inside a frame.
    ///
    /// # Errors
    /// A record that is corrupt, or does not fit the schema. The batch's other records are lost
    /// with it, unless the decoder [skips](OnError::Skip) such records.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        self.frames
            .take()
            .map(|records| self.decoder.decode(&records))
            .transpose()
    }

    /// Checks the end of the input.
    ///
    /// # Errors
    /// The input ends inside a frame; the records before it can still be flushed.
    pub fn finish(&self) -> Result<()> {
        self.frames.finish()
    }
}
