//! Routes: from the format of a job's sources to the format of its outputs. The pairs that exist are the types here.

use tfarrow_codec::{OnError, VerifyCrc};

use crate::{
    Result,
    formats::{FileFormat, RowFormat, tfrecord::TfRecordFormat},
    input::{ReadContext, RecordSource, RowSource, UnitSource},
    worker::{CopyWorker, DecodeOptions, DecodeWorker, RowWorker, UnitWorker},
};

/// The source, the workers and the format of a job.
pub(crate) trait Route: Send + Sync {
    /// Cuts shards into units.
    type Source: UnitSource;
    /// Writes the outputs.
    type Format: FileFormat;
    /// Turns units into pieces.
    type Worker<'r>: UnitWorker<Content = <Self::Source as UnitSource>::Content, Piece = <Self::Format as FileFormat>::Piece>
    where
        Self: 'r;

    fn format(&self) -> &Self::Format;

    /// A worker for one thread.
    ///
    /// # Errors
    /// Columns that records are not decoded to, or that the format cannot hold.
    fn worker<'r>(&'r self, context: ReadContext<'r>) -> Result<Self::Worker<'r>>;
}

/// TFRecord to a format of rows.
pub(crate) struct Decode<F> {
    pub(crate) decoding: DecodeOptions,
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

/// Parquet or Arrow to a format of rows.
pub(crate) struct Reencode<F> {
    pub(crate) format: F,
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
        RowWorker::new(&self.format)
    }
}

/// TFRecord to TFRecord.
pub(crate) struct CopyFrames {
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) on_error: OnError,
    pub(crate) format: TfRecordFormat,
}

impl Route for CopyFrames {
    type Source = RecordSource;
    type Format = TfRecordFormat;
    type Worker<'r> = CopyWorker<'r>;

    fn format(&self) -> &TfRecordFormat {
        &self.format
    }

    fn worker<'r>(&'r self, context: ReadContext<'r>) -> Result<CopyWorker<'r>> {
        Ok(CopyWorker { verify_crc: self.verify_crc, on_error: self.on_error, context })
    }
}
