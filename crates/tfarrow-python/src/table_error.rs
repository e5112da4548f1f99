//! Errors while rows of objects of Python are read.

use datafusion::error::DataFusionError;
use pyo3::prelude::*;

use crate::{errors::mismatched, mismatch::Mismatch};

/// An error while rows of an object are read.
pub(crate) enum TableError {
    /// The exception of Python code, which is raised again as it is.
    Raised(PyErr),
    /// The text of another package.
    Stream(String),
    /// A batch that is not what was announced.
    Batch(Mismatch),
    /// The interpreter is ending.
    Ending,
}

impl From<Mismatch> for TableError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Batch(mismatch)
    }
}

impl TableError {
    /// The error of a query about the batch of this number.
    pub(crate) fn in_batch(self, label: &str, number: u64) -> DataFusionError {
        match self {
            Self::Raised(exception) => raised(exception),
            Self::Stream(text) => DataFusionError::Execution(format!("{label}{text}")),
            Self::Batch(Mismatch { column, text }) => {
                let place = column
                    .as_ref()
                    .map_or_else(String::new, |name| format!(" column {name:?}:"));
                let text = format!("{label}batch {number}:{place} {text}");
                Python::try_attach(|py| raised(mismatched(py, column, &text)))
                    .unwrap_or_else(ending)
            }
            Self::Ending => ending(),
        }
    }
}

/// An exception as the error of a query.
pub(crate) fn raised(exception: PyErr) -> DataFusionError {
    DataFusionError::External(Box::new(exception))
}

/// The error where the interpreter is ending.
pub(crate) fn ending() -> DataFusionError {
    DataFusionError::Execution("the interpreter is ending".to_owned())
}
