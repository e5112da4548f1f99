//! Objects of Python as tables of a query.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{stream::RecordBatchReceiverStream, streaming::PartitionStream},
};
use pyo3::{prelude::*, types::PyIterator};
use tfarrow_dataset::internals::Lock;

use crate::{
    batch::RawBatch,
    capsule::{ForeignStream, import_array, import_schema},
    layout::batch_of,
    mismatch::conformed,
    table_error::{TableError, ending, raised},
};

/// Number of batches of an object that are read ahead of a query.
const AHEAD: usize = 2;

/// The method of the package's own objects with rows: their schema, and an iterator of batches.
const BATCHES: &str = "_tfarrow_batches";

/// An object of Python as a table: one of the package with batches, or one with
/// `__arrow_c_stream__`.
pub(crate) struct PythonTable {
    /// How errors name it: empty, or `table t: `.
    label: String,
    object: Py<PyAny>,
    schema: SchemaRef,
    /// The rows that the schema was read from, for the first scan. Later scans ask the object anew.
    first: Lock<Option<TableReader>>,
    /// Whether the object is an iterator: another stream of it has what is left of the first.
    reads_once: bool,
}

impl PythonTable {
    /// The table of an object. Errors begin with `label`.
    ///
    /// # Errors
    /// AttributeError for an object without a stream, and errors of the object.
    pub(crate) fn new(label: String, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (schema, first) = TableReader::open(object)?;
        let reads_once = object.hasattr("__next__")?;
        Ok(Self {
            label,
            object: object.clone().unbind(),
            schema,
            first: Lock::new(Some(first)),
            reads_once,
        })
    }

    fn reader(&self) -> Result<TableReader> {
        if let Some(first) = self.first.lock().take() {
            return Ok(first);
        }
        if self.reads_once {
            let text = "a table that is an iterator can be read once, and the query reads it again: make a table of it";
            return Err(DataFusionError::Execution(text.to_owned()));
        }
        let opened = Python::try_attach(|py| TableReader::open(self.object.bind(py)));
        let (schema, reader) = opened.ok_or_else(ending)?.map_err(raised)?;
        if schema.fields() != self.schema.fields() {
            let text = format!(
                "{}its columns are not those that it had when the query was planned",
                self.label
            );
            return Err(DataFusionError::Execution(text));
        }
        Ok(reader)
    }
}

impl std::fmt::Debug for PythonTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonTable")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for PythonTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), AHEAD);
        let sender = stream.tx();
        let reader = self.reader();
        let schema = Arc::clone(&self.schema);
        let label = self.label.clone();
        // Python code may compute the batches.
        stream.spawn_blocking(move || {
            let mut reader = reader?;
            for number in 0_u64.. {
                let batch = match reader.next(&schema) {
                    Ok(None) => break,
                    Ok(Some(batch)) => Ok(batch),
                    Err(error) => Err(error.in_batch(&label, number)),
                };
                let is_last = batch.is_err();
                if sender.blocking_send(batch).is_err() || is_last {
                    break;
                }
            }
            // A generator ends with its last reference, and its code needs the GIL.
            Python::try_attach(|_| drop(reader));
            Ok(())
        });
        stream.build()
    }
}

/// The rows of one scan of an object.
enum TableReader {
    /// A stream of Arrow's C interface. Its arrays have no types of their own.
    Stream(ForeignStream),
    /// An iterator of batches, each with its own schema.
    Batches(Py<PyIterator>),
}

impl TableReader {
    fn open(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Self)> {
        if object.hasattr(BATCHES)? {
            let opened = object.call_method0(BATCHES)?;
            let (schema, batches): (Bound<'_, PyAny>, Bound<'_, PyAny>) = opened.extract()?;
            return Ok((
                Arc::new(import_schema(&schema)?),
                Self::Batches(batches.try_iter()?.unbind()),
            ));
        }
        let stream = ForeignStream::of(object)?;
        Ok((Arc::clone(stream.schema()), Self::Stream(stream)))
    }

    /// The next batch, with this schema; none at the end.
    fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>, TableError> {
        let batch = match self {
            Self::Stream(stream) => match stream.next().map_err(TableError::Stream)? {
                Some(array) => Some(batch_of(array, stream.schema())?),
                None => None,
            },
            Self::Batches(batches) => {
                Python::try_attach(|py| next_of(batches.bind(py))).ok_or(TableError::Ending)??
            }
        };
        match batch {
            Some(batch) => Ok(Some(conformed(&batch, schema)?)),
            None => Ok(None),
        }
    }
}

/// The next batch of an iterator.
fn next_of(batches: &Bound<'_, PyIterator>) -> Result<Option<RecordBatch>, TableError> {
    let Some(item) = batches.clone().next() else {
        return Ok(None);
    };
    let item = item.map_err(TableError::Raised)?;
    if let Ok(raw) = item.cast::<RawBatch>() {
        return Ok(Some(raw.get().batch().map_err(TableError::Raised)?));
    }
    let (schema, array) = import_array(&item).map_err(TableError::Raised)?;
    Ok(Some(batch_of(array, &schema)?))
}
