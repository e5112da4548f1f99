//! The push decoder: bytes in as they come, batches out.

use std::mem;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;

use crate::{
    BATCH_CELLS, BatchDecoder, Limits, OnError, Records, Result, Skipped, VerifyCrc,
    decode::DecodeOptions,
    frame::{FOOTER, Framer, HEADER, Span},
};

/// Rows of a batch, where nothing else is asked for: DataFusion's own number.
const BATCH_SIZE: usize = 8192;
/// Bytes of records in a batch, where nothing else is asked for.
const BATCH_BYTES: usize = 16 << 20;
/// Bytes of records in a batch, at most: Arrow counts the bytes and the values of a column in 31 bits.
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
        let framer = Framer::new(self.options.limits);
        let decoder = self.build_batch_decoder()?;
        let columns = decoder.schema().fields().len();
        Ok(Decoder {
            framer,
            buffer: Vec::new(),
            spans: Vec::new(),
            framed: 0,
            is_full: false,
            batch_size: batch_size.min(BATCH_CELLS / columns.max(1)).max(1),
            batch_bytes: batch_bytes.min(MOST_BATCH_BYTES),
            decoder,
        })
    }
}

/// Bytes in, batches out. Performs no IO and never blocks.
///
/// Drive it as arrow-csv's `Decoder`: [`decode`](Self::decode) bytes until it takes none, which happens where a batch is
/// full and at the end of the input, then [`flush`](Self::flush). Where there is nothing to flush, the input has ended:
/// [`finish`](Self::finish) tells whether it ended between two records. The [crate's example](crate) is this loop.
///
/// A corrupt length is final, for the format has no mark to continue from.
#[derive(Debug)]
pub struct Decoder {
    framer: Framer,
    /// The frames of the batch in hand, then the first bytes of a frame that is not complete.
    buffer: Vec<u8>,
    /// Where the data of the batch's records lies in `buffer`.
    spans: Vec<Span>,
    /// Bytes of `buffer` that the batch's frames take.
    framed: usize,
    /// Whether the next record has to wait for the next batch.
    is_full: bool,
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

    /// Takes bytes off the front of `input` and returns how many. It takes fewer than there are, maybe none, only where
    /// the batch is full: call [`flush`](Self::flush), then call again with the bytes that are left. The input may be cut
    /// anywhere; the batches are the same.
    ///
    /// # Errors
    /// A frame whose length is corrupt or past the limit, once the records before it are flushed.
    pub fn decode(&mut self, input: &[u8]) -> Result<usize> {
        let mut rest = input;
        while !rest.is_empty() && self.capacity() > 0 {
            let mut taken = self.take_frames(rest);
            if taken == 0 {
                taken = self.take_part(rest)?;
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(input.len() - rest.len())
    }

    /// Rows that still fit in the batch; 0 where [`flush`](Self::flush) has to come next.
    pub fn capacity(&self) -> usize {
        if self.is_full { 0 } else { self.batch_size - self.spans.len() }
    }

    /// A batch of the whole records taken so far; `None` where there are none. Where [`decode`](Self::decode) filled the
    /// batch, it has as many rows as were asked for, or as many bytes. May be called at any time, also inside a frame.
    ///
    /// # Errors
    /// A record that is corrupt, or does not fit the schema. The batch's other records are lost with it, unless the decoder
    /// [skips](OnError::Skip) such records.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        self.is_full = false;
        if self.spans.is_empty() {
            return Ok(None);
        }
        let part = self.buffer.split_off(self.framed);
        let frames = mem::replace(&mut self.buffer, part);
        self.buffer.reserve(frames.len().min(self.batch_bytes));
        let spans = mem::take(&mut self.spans);
        let first = self.framer.record - spans.len() as u64;
        let offset = self.framer.offset - mem::take(&mut self.framed) as u64;
        self.decoder.decode(&Records::new(Buffer::from_vec(frames), spans, first, offset)).map(Some)
    }

    /// Declares the end of the input.
    ///
    /// # Errors
    /// Where it ends inside a frame; the records before that can still be flushed.
    pub fn finish(&self) -> Result<()> {
        self.framer.finish(self.part())
    }

    /// What has come of a frame that is not complete.
    fn part(&self) -> &[u8] {
        self.buffer.get(self.framed..).unwrap_or_default()
    }

    /// Takes the whole frames at the front of `input` that fit in the batch, and returns their bytes.
    fn take_frames(&mut self, input: &[u8]) -> usize {
        if !self.part().is_empty() {
            return 0;
        }
        let (mut taken, mut rest) = (0, input);
        // `take_part` takes a corrupt header and returns its error.
        while let Ok(Some(frame)) = self.framer.need(rest)
            && let Some(behind) = rest.get(frame..)
            && self.fits(frame)
            && self.capacity() > 0
        {
            self.push(frame);
            (taken, rest) = (taken + frame, behind);
        }
        self.buffer.extend_from_slice(input.get(..taken).unwrap_or_default());
        taken
    }

    /// Takes bytes of one frame: what its header lacks or, once that is there, what the frame lacks.
    fn take_part(&mut self, input: &[u8]) -> Result<usize> {
        let part = self.part();
        let need = match self.framer.need(part) {
            Ok(Some(frame)) if !self.fits(frame) => None,
            Ok(need) => Some(need),
            Err(_) if !self.spans.is_empty() => None,
            Err(error) => return Err(error),
        };
        let Some(need) = need else {
            self.is_full = true;
            return Ok(0);
        };
        let missing = need.unwrap_or(HEADER).saturating_sub(part.len());
        let bytes = input.get(..missing).unwrap_or(input);
        self.buffer.extend_from_slice(bytes);
        if let Some(frame) = need.filter(|_| bytes.len() == missing) {
            self.push(frame);
        }
        Ok(bytes.len())
    }

    /// Whether a frame of so many bytes fits in the batch. One always does.
    fn fits(&self, frame: usize) -> bool {
        self.spans.is_empty() || self.framed + frame <= self.batch_bytes
    }

    /// Adds the record of the next frame, of so many bytes, to the batch.
    fn push(&mut self, frame: usize) {
        self.spans.push(Span { start: self.framed + HEADER, len: frame - HEADER - FOOTER });
        self.framed += frame;
        self.framer.advance(frame);
        self.is_full = self.framed >= self.batch_bytes;
    }
}
