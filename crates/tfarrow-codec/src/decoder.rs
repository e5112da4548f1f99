//! The push decoder: bytes in as they come, batches out.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{BatchDecoder, Chunker, Limits, OnError, Records, Result, Skipped, VerifyCrc, decode::DecodeOptions};

/// Rows of a batch, where nothing else is asked for: DataFusion's own number.
const BATCH_SIZE: usize = 8192;
/// Bytes of records in a batch, where nothing else is asked for.
const BATCH_BYTES: usize = 16 << 20;

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

    /// At most so many rows in a batch; by default 8,192.
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// At most so many bytes of records in a batch, but always one record; by default 16 MiB.
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

    /// What becomes of a record that is damaged or does not fit the schema; by default it is an error. A frame whose
    /// length cannot be believed always is one.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// Bounds that no input can pass.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// A decoder of records that something else has cut.
    ///
    /// # Errors
    /// Where the schema has a column that features are not decoded to.
    pub fn build_batch_decoder(self) -> Result<BatchDecoder> {
        BatchDecoder::try_new(&self.schema, self.options)
    }

    /// A decoder of bytes.
    ///
    /// # Errors
    /// Where the schema has a column that features are not decoded to.
    pub fn build(self) -> Result<Decoder> {
        let Self { batch_size, batch_bytes, .. } = self;
        let chunker = Chunker::new(batch_bytes, self.options.limits);
        Ok(Decoder { chunker, pending: None, batch_size, batch_bytes, decoder: self.build_batch_decoder()? })
    }
}

/// Bytes in, batches out. Performs no IO and never blocks.
///
/// The loop, for a file as for a socket: [`decode`](Self::decode) what came; where [`capacity`](Self::capacity) is 0,
/// [`flush`](Self::flush); at the end [`finish`](Self::finish), then flush until there is nothing more.
///
/// A broken frame is final, for the format has no mark to go on from.
#[derive(Debug)]
pub struct Decoder {
    chunker: Chunker,
    /// Whole records that no batch was made of yet.
    pending: Option<Records>,
    batch_size: usize,
    batch_bytes: usize,
    decoder: BatchDecoder,
}

impl Decoder {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.decoder.schema()
    }

    /// What was left out of the batches since this was last asked.
    pub fn take_skipped(&mut self) -> Skipped {
        self.decoder.take_skipped()
    }

    /// Takes bytes off the front of `input` and returns how many. Fewer than there are only where a batch is full and
    /// [`flush`](Self::flush) has to come first. Any cut of the input will do.
    ///
    /// # Errors
    /// A frame whose length cannot be believed; the records before it can still be flushed.
    pub fn decode(&mut self, input: &[u8]) -> Result<usize> {
        let mut taken = 0;
        while taken < input.len() && self.capacity() > 0 {
            taken += self.chunker.fill(input.get(taken..).unwrap_or_default());
            if self.chunker.is_full() {
                self.cut()?;
            }
        }
        Ok(taken)
    }

    /// Rows that still fit before [`flush`](Self::flush) has to be called.
    pub fn capacity(&self) -> usize {
        if self.pending.is_some() { 0 } else { self.batch_size }
    }

    /// A batch of the whole records taken so far, at most as long as was asked for; `None` where there are none. Legal
    /// at any time, also inside a frame.
    ///
    /// # Errors
    /// A record that is damaged, or does not fit the schema. A frame whose length cannot be believed.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        if self.pending.is_none() {
            self.cut()?;
        }
        let Some(records) = self.pending.take() else { return Ok(None) };
        let fit = records.fit(self.batch_size, self.batch_bytes);
        let (records, rest) = records.split_at(fit);
        self.pending = Some(rest).filter(|rest| !rest.is_empty());
        self.decoder.decode(&records).map(Some)
    }

    /// Declares the end of the input.
    ///
    /// # Errors
    /// Where it ends inside a frame; the records before that can still be flushed.
    pub fn finish(&mut self) -> Result<()> {
        if self.pending.is_none() {
            self.cut()?;
        }
        self.chunker.finish()
    }

    fn cut(&mut self) -> Result<()> {
        self.pending = self.chunker.cut()?;
        Ok(())
    }
}
