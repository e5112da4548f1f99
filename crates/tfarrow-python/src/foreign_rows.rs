//! Rows of a query for other packages, which take them through Arrow's C stream interface.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;

use crate::{
    capsule::interrupt_again,
    rows::{QueryRows, RowsError},
};

/// Rows that foreign code takes through Arrow's C stream interface.
pub(crate) struct ForeignRows {
    rows: QueryRows,
}

impl ForeignRows {
    pub(crate) fn new(rows: QueryRows) -> Self {
        Self { rows }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let wording = self.rows.wording();
        // A panic may not cross the C interface.
        let next =
            catch_unwind(AssertUnwindSafe(|| self.rows.next())).unwrap_or(Err(RowsError::Bug));
        match next {
            Ok(Some(batch)) => Ok(Some(batch)),
            Ok(None) => {
                let warned = Python::try_attach(|py| {
                    self.rows.notices().issue(py).map_err(|e| text_of(py, &e))
                });
                warned.unwrap_or(Ok(())).map(|()| None).map_err(external)
            }
            Err(error) => {
                let text = Python::try_attach(|py| {
                    let is_interrupt = matches!(error, RowsError::Interrupted(_));
                    let text = text_of(py, &error.raise(py, wording));
                    if is_interrupt {
                        // The consumer makes an exception of its own from the text. The signal is
                        // delivered again, so that KeyboardInterrupt replaces it.
                        interrupt_again(py);
                    }
                    text
                });
                Err(external(
                    text.unwrap_or_else(|| "the interpreter is ending".to_owned()),
                ))
            }
        }
    }
}

fn text_of(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    if text.is_empty() {
        error.get_type(py).to_string()
    } else {
        text
    }
}

/// An error with this text. A string of C ends at its first NUL, which values in the text may have.
fn external(text: String) -> ArrowError {
    ArrowError::ExternalError(text.replace('\0', "\\0").into())
}

impl Iterator for ForeignRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for ForeignRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.rows.schema())
    }
}
