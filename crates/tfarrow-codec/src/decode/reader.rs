//! Batches from anything that implements [`BufRead`].
//!
//! ```text
//! BufRead ─▶ fill_buf ─▶ Decoder::decode ─▶ batch full, or no more bytes? ─▶ Decoder::flush ─▶ RecordBatch
//!               ▲              │ consume                │ no
//!               └──────────────┴────────────────────────┘
//! ```

use std::{io::BufRead, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Decoder, ReaderBuilder};
use crate::{Error, Result};

/// Reads batches from TFRecord bytes, as arrow-csv's `Reader` does from CSV: an iterator, and a
/// [`RecordBatchReader`].
///
/// The bytes must not be compressed; put a decompressor before it, or use `ShardBatchReader` of
/// `tfarrow-dataset`. Each batch has as many rows as [`ReaderBuilder::with_batch_size`] sets,
/// except the last one and batches of long records.
///
/// Create it with [`ReaderBuilder::build`]:
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tfarrow_codec::{ReaderBuilder, Writer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![1, 2, 3]));
/// # let batch = RecordBatch::try_from_iter([("x", column)])?;
/// # let mut writer = Writer::new(Vec::new(), batch.schema())?;
/// # writer.write(&batch)?;
/// # let file = writer.into_inner();
/// // `file` is anything that implements `BufRead`: three records with the feature `x`.
/// let reader = ReaderBuilder::new(batch.schema()).with_batch_size(2).build(file.as_slice())?;
/// let rows = reader.map(|batch| Ok(batch?.num_rows())).collect::<Result<Vec<_>, arrow_schema::ArrowError>>()?;
/// assert_eq!(rows, [2, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// An item is an error if the source fails, if a record is corrupt or does not fit the schema, and
/// if the bytes end inside a record. The batches of the records before are returned first, and
/// nothing after an error. The codec's own [`Error`](crate::Error), with the position of the
/// record, is in [`ArrowError::ExternalError`].
#[derive(Debug)]
pub struct Reader<R> {
    /// The source; `None` after its end or an error.
    input: Option<R>,
    decoder: Decoder,
}

impl ReaderBuilder {
    /// Builds a reader of batches. Wrap a [`File`](std::fs::File) in a
    /// [`BufReader`](std::io::BufReader).
    ///
    /// # Errors
    /// The schema has a column to which features cannot be decoded.
    pub fn build<R: BufRead>(self, input: R) -> Result<Reader<R>> {
        Ok(Reader {
            input: Some(input),
            decoder: self.build_decoder()?,
        })
    }
}

impl<R: BufRead> Reader<R> {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.decoder.schema())
    }

    /// Returns the errors of the records that were skipped since the last call. Records are skipped
    /// only with [`OnError::Skip`](crate::OnError::Skip), see [`ReaderBuilder::with_on_error`].
    ///
    /// A reader that is consumed as an iterator loses them; use [`by_ref`](Iterator::by_ref) and
    /// call this method at the end.
    pub fn take_skipped(&mut self) -> Vec<Error> {
        self.decoder.take_skipped()
    }

    /// Returns the next batch; `None` at the end.
    ///
    /// The decoder takes no bytes in two cases: the batch is full, or the source has ended. Both
    /// are answered by a flush. If there is nothing to flush, the source has ended, and must not
    /// end inside a frame.
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(input) = &mut self.input else {
            return Ok(None);
        };
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
