//! A data set that is read lazily: its arguments, its schema once it is inferred, and its rows.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_schema::{FieldRef, Schema};
use datafusion::{
    catalog::TableProvider,
    common::{Column, plan_err},
    error::Result,
    execution::SendableRecordBatchStream,
    logical_expr::Expr,
    prelude::{DataFrame, SessionContext},
};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tfarrow_columnar::infer_with;
use tfarrow_convert::count;
use tfarrow_datafusion::{OnNotice, TfRecordOptions, TfRecordTable};
use tfarrow_dataset::{FormatFilter, Inferred, Shard, without_folder_columns};

use crate::{
    capsule::{export_schema, import_schema},
    errors::{failed, failed_scan},
    found::Found,
    interrupt::{Pass, watch},
    options::ReadingOptions,
    remedy::Wording,
    rows::{QueryRows, Running},
    stream::RawStream,
};

/// A data set of TFRecord files, and how it is read.
///
/// The files are listed, and the schema is inferred, when the first of its properties is used. Each stream reads the rows anew.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct Source {
    sources: Vec<PathBuf>,
    options: ReadingOptions,
    /// The columns, if they are not inferred.
    declared: Option<Declared>,
    table: Mutex<Option<Arc<TfRecordTable>>>,
}

/// Columns that are not inferred, and the files that have them.
struct Declared {
    /// The columns of features.
    features: Schema,
    /// The columns of folders `key=value`.
    folders: Vec<FieldRef>,
    /// The name of each file in its data set, which has the folders; none if there are no columns of folders.
    names: Vec<PathBuf>,
}

/// A step from the rows of a data set to those of a scan.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) enum Step {
    /// These columns, in this order.
    #[pyo3(transparent)]
    Select(Vec<String>),
    /// The first rows.
    #[pyo3(transparent)]
    Limit(usize),
    /// The rows that satisfy a condition in SQL.
    #[pyo3(transparent)]
    Where(String),
}

#[pymethods]
impl Source {
    /// `declared` is an object with `__arrow_c_schema__`, whose columns are read instead of inferred ones. The metadata of its
    /// fields may tell the features of columns with other names. `folders` are those of its columns that are folders
    /// `key=value`; with them, each source is a file, and `names` are their names in the data set, as `files` returns them.
    #[new]
    #[pyo3(signature = (sources, options, declared=None, folders=Vec::new(), names=Vec::new()))]
    fn new(
        sources: Vec<PathBuf>,
        options: &Bound<'_, PyDict>,
        declared: Option<&Bound<'_, PyAny>>,
        folders: Vec<String>,
        names: Vec<PathBuf>,
    ) -> PyResult<Self> {
        let declared = declared.map(|schema| Ok::<_, PyErr>(Declared::new(&import_schema(schema)?, &folders, names)));
        Ok(Self {
            sources,
            options: ReadingOptions::of(options)?,
            declared: declared.transpose()?,
            table: Mutex::new(None),
        })
    }

    /// The paths of the files, in order, with their names in the data set, such as `split=train/0.tfrecord`, and their sizes in
    /// bytes. Reads no records. These are strings, because `pathlib` would change URLs.
    fn files(&self, py: Python<'_>) -> PyResult<Vec<(OsString, OsString, u64)>> {
        let find = || Found::of(&self.sources, FormatFilter::Any, |_| Ok(()));
        let found = watch(py, &Pass::default(), None, find)?.map_err(|error| failed(py, error))?;
        found.warn(py)?;
        Ok(found.shards.into_iter().map(|shard| (shard.path.into(), shard.name.into(), shard.size)).collect())
    }

    /// The schema of the rows after these steps, as a capsule.
    fn schema<'py>(&self, py: Python<'py>, steps: Vec<Step>) -> PyResult<Bound<'py, PyCapsule>> {
        let table = self.table(py)?;
        if steps.is_empty() {
            return export_schema(py, &table.schema());
        }
        let rows = self.rows(py, table, steps, None)?;
        export_schema(py, rows.schema())
    }

    /// The names of the columns after these steps.
    fn columns(&self, py: Python<'_>, steps: Vec<Step>) -> PyResult<Vec<String>> {
        let table = self.table(py)?;
        let schema = match steps.is_empty() {
            true => table.schema(),
            false => Arc::clone(self.rows(py, table, steps, None)?.schema()),
        };
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// Starts to read the rows after these steps, in batches of at most `batch_rows` rows.
    #[pyo3(signature = (steps, batch_rows=None))]
    fn stream(&self, py: Python<'_>, steps: Vec<Step>, batch_rows: Option<usize>) -> PyResult<RawStream> {
        let table = self.table(py)?;
        Ok(RawStream::new(self.rows(py, table, steps, batch_rows)?))
    }

    /// The number of records of each file, counted by their frames.
    fn counts(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let (table, pass) = (self.table(py)?, Pass::default());
        let shards = table.shards().unwrap_or_default();
        let (read, threads) = (self.options.read(), self.options.threads);
        let counted = watch(py, &pass, None, || count(shards, &read, threads, &|bytes, _| pass.add(bytes)))?;
        Ok(counted.map_err(|error| failed(py, error))?.records)
    }

    /// Starts to read the records `start` to `end` of the data set, whose files have these numbers of records. The steps may
    /// only select columns.
    fn stream_of(
        &self,
        py: Python<'_>,
        steps: Vec<Step>,
        counts: Vec<u64>,
        start: u64,
        end: u64,
        batch_rows: usize,
    ) -> PyResult<RawStream> {
        let table = self.table(py)?.with_records(start..end, &counts).map_err(|error| failed_scan(py, error))?;
        Ok(RawStream::new(self.rows(py, Arc::new(table), steps, Some(batch_rows))?))
    }

    /// For each column with one number of values in all records that were read to infer the schema: that number. Columns
    /// that some of these records do not have are left out, as are those of bytes.
    fn fixed_lengths(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        let table = self.table(py)?;
        Ok(table.fixed_lengths().map(|(name, length)| (name.to_owned(), length)).collect())
    }
}

impl Source {
    /// The table, whose schema is inferred once.
    fn table(&self, py: Python<'_>) -> PyResult<Arc<TfRecordTable>> {
        if let Some(table) = &*self.table.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(table));
        }
        let table = match &self.declared {
            Some(declared) => {
                let find = || Found::of(&self.sources, FormatFilter::Any, Shard::spool);
                let found = watch(py, &Pass::default(), None, find)?.map_err(|error| failed(py, error))?;
                found.warn(py)?;
                declared.table(found.shards, &self.options.table)
            }
            None => match TfRecordTable::message_of(&self.options.table).map_err(|error| failed_scan(py, error))? {
                Some(message) => {
                    let find = || Found::of(&self.sources, FormatFilter::Any, Shard::spool_for_scan);
                    let found = watch(py, &Pass::default(), None, find)?.map_err(|error| failed(py, error))?;
                    found.warn(py)?;
                    TfRecordTable::messages(found.shards, &message, &self.options.table)
                }
                None => {
                    let (shards, inferred) = inferred(py, &self.sources, &self.options, InferredFor::Table, None)?;
                    TfRecordTable::inferred(shards, inferred, &self.options.table)
                }
            },
        };
        let table = Arc::new(table.map_err(|error| failed_scan(py, error))?);
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&table));
        Ok(table)
    }

    fn rows(
        &self,
        py: Python<'_>,
        table: Arc<TfRecordTable>,
        steps: Vec<Step>,
        batch_rows: Option<usize>,
    ) -> PyResult<QueryRows> {
        let running = Running { batch_rows, ..Running::of(&self.options) };
        let plan = move |context: SessionContext, on_notice: OnNotice| async move {
            let table = TfRecordTable::clone(&table).with_notices(Some(on_notice));
            Ok(scan(context, table, steps).await?)
        };
        let rows = py.detach(|| QueryRows::start(&running, Wording::Arguments, plan));
        rows.map_err(|error| error.raise(py, Wording::Arguments))
    }
}

impl Declared {
    fn new(schema: &Schema, folders: &[String], names: Vec<PathBuf>) -> Self {
        let (folders, features): (Vec<_>, Vec<_>) =
            schema.fields().iter().cloned().partition(|field| folders.contains(field.name()));
        Self { features: Schema::new_with_metadata(features, schema.metadata().clone()), folders, names }
    }

    fn table(&self, mut shards: Vec<Shard>, options: &TfRecordOptions) -> Result<TfRecordTable> {
        if !self.folders.is_empty() {
            if shards.len() != self.names.len() {
                return plan_err!("found {} files, expected the {} that were listed", shards.len(), self.names.len());
            }
            let keys: Vec<_> = self.folders.iter().map(|field| field.name().as_str()).collect();
            let named = shards.into_iter().zip(&self.names);
            shards = named.map(|(shard, name)| shard.with_name(name.clone(), &keys)).collect();
        }
        let table = TfRecordTable::declared(shards, &self.features, &HashMap::new(), options)?;
        table.partitioned(self.folders.clone())
    }
}

/// What a schema is inferred for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InferredFor {
    /// A table, which has the columns of folders itself.
    Table,
    /// Records, of which the columns of folders are features.
    Records,
}

/// Lists the shards of sources, and infers their schema.
pub(crate) fn inferred(
    py: Python<'_>,
    sources: &[PathBuf],
    options: &ReadingOptions,
    inferred_for: InferredFor,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<Shard>, Inferred)> {
    let pass = Pass::default();
    let work = || -> Result<_, tfarrow_dataset::Error> {
        let found = Found::of(sources, FormatFilter::Any, Shard::spool_for_scan)?;
        pass.expect(found.bytes());
        let read = match inferred_for {
            InferredFor::Table => without_folder_columns(&found.shards),
            InferredFor::Records => found.shards.clone(),
        };
        let inferred = infer_with(&read, &options.infer(), &|bytes, _| pass.add(bytes))?;
        Ok((found, inferred))
    };
    let (found, inferred) = watch(py, &pass, progress, work)?.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    Ok((found.shards, inferred))
}

/// Plans a scan.
async fn scan(context: SessionContext, table: TfRecordTable, steps: Vec<Step>) -> Result<SendableRecordBatchStream> {
    let mut frame = context.read_table(Arc::new(table))?;
    for step in steps {
        frame = apply(frame, step)?;
    }
    frame.execute_stream().await
}

fn apply(frame: DataFrame, step: Step) -> Result<DataFrame> {
    match step {
        Step::Select(names) => {
            if let Some((_, twice)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
                return plan_err!("the column {twice:?} is selected twice");
            }
            frame.select(names.iter().map(|name| column(name)))
        }
        Step::Limit(rows) => frame.limit(0, Some(rows)),
        Step::Where(condition) => {
            let condition = frame.parse_sql_expr(&condition)?;
            frame.filter(condition)
        }
    }
}

/// A column by its exact name.
fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}
