//! Errors of files as errors of DataFusion, with their causes, and with remedies in SQL.

use datafusion::error::DataFusionError;
use tfarrow_dataset::Error;

use crate::{
    remedy::{scan_advice, sql_advice},
    schema::provenance::SchemaProvenance,
};

/// An error with a remedy in SQL. The text is one line; the source is the error of the file.
#[derive(Debug, thiserror::Error)]
#[error("{error}; {advice}")]
pub struct AdvisedError {
    #[source]
    error: Error,
    advice: String,
}

impl AdvisedError {
    /// The error of the file, with its position.
    pub fn error(&self) -> &Error {
        &self.error
    }
}

/// An error of a scan of a piece of a file. The whole file may be read without an error, or with
/// another one. The text is that of the error of the piece, in which records are counted from the
/// beginning of the piece.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PieceError(#[source] DataFusionError);

/// Converts an error of a scan of a piece of a file.
pub(crate) fn of_piece(error: DataFusionError) -> DataFusionError {
    DataFusionError::External(Box::new(PieceError(error)))
}

/// Converts an error, and adds its remedies in SQL if there are any.
pub fn external(error: impl Into<Error>) -> DataFusionError {
    let error = error.into();
    let advice = sql_advice(&error.remedies());
    with_advice(error, advice)
}

/// Converts an error of a scan, and adds remedies that depend on the provenance of the schema.
pub(crate) fn explained(error: Error, provenance: &SchemaProvenance) -> DataFusionError {
    let advice = scan_advice(&error, provenance);
    with_advice(error, advice)
}

/// Converts an error, with remedies if there are any.
pub fn with_advice(error: Error, advice: Option<String>) -> DataFusionError {
    DataFusionError::External(match advice {
        Some(advice) => Box::new(AdvisedError { error, advice }),
        None => Box::new(error),
    })
}
