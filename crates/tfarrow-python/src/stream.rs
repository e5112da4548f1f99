//! A stream of rows, which Python takes batch by batch or hands to other packages.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use datafusion::{
    catalog::MemTable, error::DataFusionError, execution::SendableRecordBatchStream,
    prelude::SessionContext,
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tfarrow_dataset::internals::Lock;
use tfarrow_loader::Rebatch;

use crate::{
    batch::RawBatch,
    capsule::{export_schema, export_stream},
    foreign_rows::ForeignRows,
    options::ReadingOptions,
    remedy::Wording,
    rows::{QueryError, QueryRows, RowsError, Running},
};

/// The rows of a query that has started. They can be read once.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawStream(Lock<State>);

enum State {
    /// No row has been read.
    New(QueryRows),
    /// QueryRows are read in batches.
    Batches(Box<Batches>),
    /// The rows were handed to another package, or have ended.
    Gone,
}

struct Batches {
    rows: QueryRows,
    rebatch: Rebatch,
    ended: bool,
}

impl RawStream {
    pub(crate) fn new(rows: QueryRows) -> Self {
        Self(Lock::new(State::New(rows)))
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut State) -> PyResult<T> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        // Another thread may hold the lock while it waits for rows.
        py.detach(|| act(&mut self.0.lock()))
    }
}

#[pymethods]
impl RawStream {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.with(py, |state| match state {
            State::New(rows) => Ok(Arc::clone(rows.schema())),
            State::Batches(batches) => Ok(Arc::clone(batches.rows.schema())),
            State::Gone => Err(gone()),
        })?;
        export_schema(py, &schema)
    }

    /// Hands the rows over. Afterwards this stream is empty.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = self.with(py, |state| match std::mem::replace(state, State::Gone) {
            State::New(rows) => Ok(rows),
            State::Batches(_) | State::Gone => Err(gone()),
        })?;
        export_stream(py, Box::new(ForeignRows::new(rows)))
    }

    /// All rows, after which warnings are issued.
    fn read_all(&self, py: Python<'_>) -> PyResult<RawTable> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch(py, None, false)? {
            batches.push(batch.into_batch());
        }
        let schema = self.with(py, |state| match state {
            State::Batches(batches) => Ok(Arc::clone(batches.rows.schema())),
            State::New(_) | State::Gone => Err(gone()),
        })?;
        Ok(RawTable { schema, batches })
    }

    /// All rows as one batch, after which warnings are issued.
    fn rest(&self, py: Python<'_>) -> PyResult<RawBatch> {
        Ok(match self.next_batch(py, Some(usize::MAX), false)? {
            Some(batch) => {
                // The end issues the warnings.
                self.next_batch(py, None, false)?;
                batch
            }
            None => {
                let schema = self.with(py, |state| match state {
                    State::Batches(batches) => Ok(Arc::clone(batches.rows.schema())),
                    State::New(_) | State::Gone => Err(gone()),
                })?;
                RawBatch::new(RecordBatch::new_empty(schema), false)
            }
        })
    }

    /// The next batch of exactly `rows` rows, or fewer at the end; of as many rows as the query
    /// makes without `rows`. None at the end, after which warnings are issued. With `complete`,
    /// features without a column are an error.
    #[pyo3(signature = (rows=None, complete=false))]
    fn next_batch(
        &self,
        py: Python<'_>,
        rows: Option<usize>,
        complete: bool,
    ) -> PyResult<Option<RawBatch>> {
        self.take(py, complete, |batches| batches.next(rows))
    }
}

impl RawStream {
    /// Takes a batch, and issues the warnings at the end.
    fn take(
        &self,
        py: Python<'_>,
        complete: bool,
        take: impl FnOnce(&mut Batches) -> Result<Option<RecordBatch>, RowsError> + Send,
    ) -> PyResult<Option<RawBatch>> {
        let (wording, taken, notices) = self.with(py, |state| {
            if let State::New(_) = state
                && let State::New(rows) = std::mem::replace(state, State::Gone)
            {
                *state = State::Batches(Box::new(Batches {
                    rows,
                    rebatch: Rebatch::default(),
                    ended: false,
                }));
            }
            let State::Batches(batches) = state else {
                return Err(gone());
            };
            let taken = batches.rows.check_process().and_then(|()| take(batches));
            let notices = matches!(taken, Ok(None)).then(|| Arc::clone(batches.rows.notices()));
            Ok((batches.rows.wording(), taken, notices))
        })?;
        if let Some(notices) = notices {
            if complete {
                notices.refuse_unknown(py)?;
            }
            notices.issue(py)?;
        }
        let batch = taken.map_err(|error| error.raise(py, wording))?;
        Ok(batch.map(|batch| RawBatch::new(batch, wording == Wording::Arguments)))
    }
}

impl Batches {
    fn next(&mut self, rows: Option<usize>) -> Result<Option<RecordBatch>, RowsError> {
        loop {
            let batch = match rows {
                Some(rows) => self
                    .rebatch
                    .next(rows, self.ended)
                    .map_err(DataFusionError::from)?,
                None => self.rebatch.take_first(usize::MAX),
            };
            if batch.is_some() {
                return Ok(batch);
            }
            if self.ended {
                return Ok(None);
            }
            match self.rows.next()? {
                Some(batch) => self.rebatch.push(batch),
                None => self.ended = true,
            }
        }
    }
}

fn gone() -> PyErr {
    PyValueError::new_err("the stream was read: make a new one from the scan")
}

/// Rows in memory, which other packages read without a copy.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl RawTable {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        export_stream(
            py,
            Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))),
        )
    }

    /// A stream of the rows, in batches of at most `batch_rows` rows.
    #[pyo3(signature = (batch_rows=None))]
    fn stream(&self, py: Python<'_>, batch_rows: Option<usize>) -> PyResult<RawStream> {
        let running = Running {
            batch_rows,
            ..Running::of(&ReadingOptions::of(&PyDict::new(py))?)
        };
        let schema = Arc::clone(&self.schema);
        let batches = self.batches.clone();
        let rows = py.detach(|| {
            QueryRows::start(&running, Wording::Sql, move |context, _| {
                planned(context, schema, batches)
            })
        });
        rows.map(RawStream::new)
            .map_err(|error| error.raise(py, Wording::Sql))
    }
}

/// Plans rows in memory.
async fn planned(
    context: SessionContext,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<SendableRecordBatchStream, QueryError> {
    let table = MemTable::try_new(schema, vec![batches])?;
    Ok(context
        .read_table(Arc::new(table))?
        .execute_stream()
        .await?)
}
