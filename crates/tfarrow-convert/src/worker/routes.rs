//! Routes: from the source format of a job to its output format. A pair of formats without a route
//! does not compile.
//!
//! | route | source | output |
//! |---|---|---|
//! | [`Decode`] | TFRecord | Parquet, Arrow; TFRecord with some of the features |
//! | [`Reencode`] | Parquet, Arrow | Parquet, Arrow, TFRecord |
//! | [`CopyFrames`] | TFRecord | TFRecord |

use std::sync::Arc;

use tfarrow_codec::{OnError, VerifyCrc};

use super::{CopyWorker, DecodeConfig, DecodeWorker, RowWorker, UnitWorker};
use crate::{
    Result,
    formats::{FileFormat, RowFormat, tfrecord::TfRecordFileFormat},
    input::{ReadContext, RecordSource, RowSource, UnitSource},
};

/// The source, the workers and the format of a job.
pub(crate) trait Route: Send + Sync {
    /// Reads shards as units.
    type Source: UnitSource;
    /// Writes the outputs.
    type Format: FileFormat;
    /// Converts units to pieces.
    type Worker<'r>: UnitWorker<
            Content = <Self::Source as UnitSource>::Content,
            Piece = <Self::Format as FileFormat>::Piece,
        >
    where
        Self: 'r;

    /// The output format.
    fn format(&self) -> &Self::Format;

    /// A worker for one thread.
    ///
    /// # Errors
    /// Columns that the codec cannot decode, or that the format cannot hold.
    fn worker<'r>(&'r self, context: ReadContext<'r>) -> Result<Self::Worker<'r>>;
}

/// Decodes TFRecord to a format of rows.
pub(crate) struct Decode<F> {
    pub(crate) decoding: Arc<DecodeConfig>,
    pub(crate) format: F,
}

impl<F: RowFormat> Route for Decode<F> {
    type Source = RecordSource;
    type Format = F;
    type Worker<'r>
        = DecodeWorker<'r, F>
    where
        F: 'r;

    fn format(&self) -> &F {
        &self.format
    }

    fn worker<'r>(&'r self, context: ReadContext<'r>) -> Result<DecodeWorker<'r, F>> {
        DecodeWorker::new(&self.decoding, &self.format, context)
    }
}

/// Converts Parquet or Arrow to a format of rows.
pub(crate) struct Reencode<F> {
    pub(crate) format: F,
    /// For each column of the output, its index in the rows; `None` if the columns are in the same
    /// order.
    pub(crate) order: Option<Arc<[usize]>>,
    /// Whether the items of lists become nullable.
    pub(crate) nullable_items: bool,
}

impl<F: RowFormat> Route for Reencode<F> {
    type Source = RowSource;
    type Format = F;
    type Worker<'r>
        = RowWorker<'r, F>
    where
        F: 'r;

    fn format(&self) -> &F {
        &self.format
    }

    fn worker<'r>(&'r self, _context: ReadContext<'r>) -> Result<RowWorker<'r, F>> {
        RowWorker::new(&self.format, self.order.as_deref(), self.nullable_items)
    }
}

/// Copies TFRecord to TFRecord.
pub(crate) struct CopyFrames {
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) format: TfRecordFileFormat,
}

impl Route for CopyFrames {
    type Source = RecordSource;
    type Format = TfRecordFileFormat;
    type Worker<'r> = CopyWorker<'r>;

    fn format(&self) -> &TfRecordFileFormat {
        &self.format
    }

    fn worker<'r>(&'r self, context: ReadContext<'r>) -> Result<CopyWorker<'r>> {
        Ok(CopyWorker::new(self.verify_crc, self.on_error, context))
    }
}
