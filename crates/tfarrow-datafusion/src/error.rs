//! Errors as DataFusion carries them: whole, and with their remedies in SQL.

use std::fmt;

use datafusion::error::DataFusionError;
use tfarrow_dataset::Error;

use crate::{
    origin::SchemaProvenance,
    remedy::{scan_advice, sql_advice},
};

/// An error that a statement can do something about. One line; the error of the file is its source.
#[derive(Debug)]
pub struct AdvisedError {
    error: Error,
    advice: String,
}

impl AdvisedError {
    /// What is wrong, and where.
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl fmt::Display for AdvisedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.error, self.advice)
    }
}

impl std::error::Error for AdvisedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// An error, with its remedies in SQL if it has any.
pub(crate) fn external(error: impl Into<Error>) -> DataFusionError {
    let error = error.into();
    let advice = sql_advice(&error.remedies());
    with_advice(error, advice)
}

/// The error of a scan, with what its table knows of the feature to blame.
pub(crate) fn explained(error: Error, origin: &SchemaProvenance) -> DataFusionError {
    let advice = scan_advice(&error, origin);
    with_advice(error, advice)
}

fn with_advice(error: Error, advice: Option<String>) -> DataFusionError {
    DataFusionError::External(match advice {
        Some(advice) => Box::new(AdvisedError { error, advice }),
        None => Box::new(error),
    })
}
