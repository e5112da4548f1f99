//! Batches from anything that implements [`BufRead`].

use std::{io::BufRead, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::{Decoder, DecoderBuilder, Result, Skipped};

/// Reads batches from TFRecord bytes, as arrow-csv's `Reader` does from CSV: an iterator, and a [`RecordBatchReader`].
///
/// The bytes must not be compressed; put a decompressor before it, or use `ShardBatchReader` of `tfarrow-dataset`. Each
/// batch has as many rows as [`DecoderBuilder::with_batch_size`] says, except the last one and batches of long records.
///
/// # Errors
/// An item is an error if the source fails, if a record is corrupt or does not fit the schema, and if the bytes end inside
/// a record. The batches of the records before are returned first, and nothing after an error. The codec's own
/// [`Error`](crate::Error), with the position of the record, is in [`ArrowError::ExternalError`].
#[derive(Debug)]
pub struct Reader<R> {
    /// `None` after the end or an error.
    input: Option<R>,
    decoder: Decoder,
}

impl DecoderBuilder {
    /// Builds a reader of batches. Wrap a [`File`](std::fs::File) in a [`BufReader`](std::io::BufReader).
    ///
    /// # Errors
    /// The schema has a column to which features cannot be decoded.
    pub fn build_reader<R: BufRead>(self, input: R) -> Result<Reader<R>> {
        Ok(Reader { input: Some(input), decoder: self.build()? })
    }
}

impl<R: BufRead> Reader<R> {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.decoder.schema())
    }

    /// Returns what was left out of the batches since the last call, see [`DecoderBuilder::with_on_error`].
    pub fn take_skipped(&mut self) -> Skipped {
        self.decoder.take_skipped()
    }

    /// Returns the next batch; `None` at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(input) = &mut self.input else { return Ok(None) };
        loop {
            let taken = self.decoder.decode(input.fill_buf()?)?;
            input.consume(taken);
            if taken == 0 || self.decoder.capacity() == 0 {
                break;
            }
        }
        match self.decoder.flush()? {
            Some(batch) => Ok(Some(batch)),
            None => {
                self.decoder.finish()?;
                Ok(None)
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read();
        if !matches!(batch, Ok(Some(_))) {
            self.input = None;
        }
        batch.transpose()
    }
}

impl<R: BufRead> RecordBatchReader for Reader<R> {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }
}
