//! A data set that is read lazily: its arguments, its schema once it is inferred, and its rows.

use std::{collections::HashMap, ffi::OsString, path::PathBuf, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::{
    catalog::TableProvider,
    common::{Column, TableReference, plan_err},
    error::Result,
    execution::SendableRecordBatchStream,
    logical_expr::Expr,
    prelude::{DataFrame, SessionContext},
};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tfarrow_datafusion::{
    OnNotice, TfRecordOptions, TfRecordTable, TfRecordTableBuilder, message_of,
};
use tfarrow_dataset::{
    FormatFilter, Shard, ShardFormat, event_message,
    internals::{EVENT_MESSAGE, Lock, are_events, without_folder_columns},
};
use tfarrow_index::{Dataset, ImageColumn, IndexPlace};
use tfarrow_loader::Selection;
use tfarrow_scan::{Inferred, count, infer};

use crate::{
    capsule::{export_schema, import_schema},
    dataset::RawDataset,
    errors::{failed, failed_scan, usage},
    found::Found,
    interrupt::{Pass, watch},
    notices::warn_all,
    options::ReadingOptions,
    remedy::Wording,
    rows::{QueryError, QueryRows, RowsError, Running},
    stream::RawStream,
};

/// A data set, and how it is read.
///
/// The files are listed, and the schema is inferred, when the first of its properties is used. Each
/// stream reads the rows anew.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct Source {
    sources: Vec<PathBuf>,
    options: ReadingOptions,
    /// The columns, if they are not inferred.
    declared: Option<Declared>,
    table: Lock<Option<SourceTable>>,
}

/// What a data set is read as.
#[derive(Clone)]
enum SourceTable {
    /// Records of TFRecord files.
    Records(Arc<TfRecordTable>),
    /// Files of another format, which SQL reads by the name of their source.
    Files {
        source: String,
        shards: Arc<[Shard]>,
    },
}

impl SourceTable {
    fn of_records(table: TfRecordTable) -> Self {
        Self::Records(Arc::new(table))
    }
}

/// Columns that are not inferred, and the files that have them.
struct Declared {
    /// The columns of features.
    features: Schema,
    /// The columns of folders `key=value`.
    folders: Vec<FieldRef>,
    /// The name of each file in its data set, which has the folders; none if there are no columns
    /// of folders.
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
    /// `declared` is an object with `__arrow_c_schema__`, whose columns are read instead of
    /// inferred ones. The metadata of its fields may tell the features of columns with other names.
    /// `folders` are those of its columns that are folders `key=value`; with them, each source is a
    /// file, and `names` are their names in the data set, as `files` returns them.
    #[new]
    #[pyo3(signature = (sources, options, declared=None, folders=Vec::new(), names=Vec::new()))]
    fn new(
        sources: Vec<PathBuf>,
        options: &Bound<'_, PyDict>,
        declared: Option<&Bound<'_, PyAny>>,
        folders: Vec<String>,
        names: Vec<PathBuf>,
    ) -> PyResult<Self> {
        let declared = declared
            .map(|schema| Ok::<_, PyErr>(Declared::new(&import_schema(schema)?, &folders, names)));
        Ok(Self {
            sources,
            options: ReadingOptions::of(options)?,
            declared: declared.transpose()?,
            table: Lock::new(None),
        })
    }

    /// The paths of the files, in order, with their names in the data set, such as
    /// `split=train/0.tfrecord`, and their sizes in bytes. Reads no records. These are strings,
    /// because `pathlib` would change URLs.
    fn files(&self, py: Python<'_>) -> PyResult<Vec<(OsString, OsString, u64)>> {
        let found = watch(py, &Pass::default(), None, || {
            Found::of(&self.sources, FormatFilter::Any, |_| Ok(()))
        })?;
        let found = found.map_err(|error| failed(py, error))?;
        found.warn(py)?;
        Ok(found
            .shards
            .into_iter()
            .map(|shard| (shard.path.into(), shard.name.into(), shard.size))
            .collect())
    }

    /// The schema of the rows after these steps, as a capsule.
    fn schema<'py>(&self, py: Python<'py>, steps: Vec<Step>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.schema_after(py, steps)?;
        export_schema(py, &schema)
    }

    /// The names of the columns after these steps.
    fn columns(&self, py: Python<'_>, steps: Vec<Step>) -> PyResult<Vec<String>> {
        let schema = self.schema_after(py, steps)?;
        Ok(schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect())
    }

    /// Starts to read the rows after these steps, in batches of at most `batch_rows` rows.
    #[pyo3(signature = (steps, batch_rows=None))]
    fn stream(
        &self,
        py: Python<'_>,
        steps: Vec<Step>,
        batch_rows: Option<usize>,
    ) -> PyResult<RawStream> {
        let table = self.table(py)?;
        Ok(RawStream::new(self.rows(py, table, steps, batch_rows)?))
    }

    /// The number of records of each file, counted by their frames.
    fn counts(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let table = self.table(py)?;
        let pass = Pass::default();
        let shards: &[Shard] = match &table {
            SourceTable::Records(table) => table.shards().unwrap_or_default(),
            SourceTable::Files { shards, .. } => shards,
        };
        let read = self.options.read();
        let threads = self.options.threads;
        let counted = watch(py, &pass, None, || {
            let beside = Some(&IndexPlace::Beside);
            count(shards, &read, threads, beside, &|bytes, _| pass.add(bytes))
        })?;
        Ok(counted.map_err(|error| failed(py, error))?.records)
    }

    /// Opens the rows after these steps for random access, of TFRecord files. `images` are columns
    /// whose pixels are decoded: names, and the height and width of the pixels.
    fn dataset(
        &self,
        py: Python<'_>,
        steps: Vec<Step>,
        images: Vec<(String, (u32, u32))>,
    ) -> PyResult<RawDataset> {
        let SourceTable::Records(table) = self.table(py)? else {
            return Err(usage(
                py,
                "only the records of TFRecord files can be read one by one: tfarrow.write makes TFRecord files of other rows",
            ));
        };
        let columns = self.columns(py, steps.clone())?;
        let pass = Pass::default();
        let threads = self.options.threads;
        let opened = watch(py, &pass, None, || {
            table.dataset(&columns, threads, &|bytes, _| pass.add(bytes))
        })?;
        let mut columns = Vec::with_capacity(images.len());
        for (name, (height, width)) in images {
            columns.push(ImageColumn {
                name,
                height,
                width,
            });
        }
        let dataset = opened
            .map_err(|error| failed_scan(py, error))?
            .with_images(columns)
            .map_err(|error| usage(py, &error.to_string()))?;
        let unusable: Vec<_> = dataset.unusable().iter().map(ToString::to_string).collect();
        warn_all(py, &unusable)?;
        let selection = match steps.iter().all(|step| matches!(step, Step::Select(_))) {
            true => Selection::All,
            false => self.selection(py, &table, &dataset, steps)?,
        };
        Ok(RawDataset::new(py, dataset, selection, threads))
    }

    /// Whether the rows are records of TFRecord files, and not rows of files of another format.
    fn has_records(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.table(py)?, SourceTable::Records(_)))
    }

    /// For each column with one number of values in all records that were read to infer the schema:
    /// that number. Columns that some of these records do not have are left out, as are those of
    /// bytes. None for files of another format.
    fn fixed_lengths(&self, py: Python<'_>) -> PyResult<Option<Vec<(String, u64)>>> {
        let SourceTable::Records(table) = self.table(py)? else {
            return Ok(None);
        };
        Ok(Some(
            table
                .fixed_lengths()
                .map(|(name, length)| (name.to_owned(), length))
                .collect(),
        ))
    }
}

impl Source {
    /// The schema after these steps.
    fn schema_after(&self, py: Python<'_>, steps: Vec<Step>) -> PyResult<SchemaRef> {
        match self.table(py)? {
            SourceTable::Records(table) if steps.is_empty() => Ok(table.schema()),
            table => Ok(Arc::clone(self.rows(py, table, steps, None)?.schema())),
        }
    }

    /// The table, whose schema is inferred once.
    fn table(&self, py: Python<'_>) -> PyResult<SourceTable> {
        if let Some(table) = &*self.table.lock() {
            return Ok(table.clone());
        }
        let table = self.opened(py)?;
        *self.table.lock() = Some(table.clone());
        Ok(table)
    }

    fn opened(&self, py: Python<'_>) -> PyResult<SourceTable> {
        let options = &self.options.table;
        let in_scan = |error| failed_scan(py, error);
        if let Some(declared) = &self.declared {
            let shards = listed(py, &self.sources, Shard::spool)?.shards;
            return declared
                .table(shards, options)
                .map(SourceTable::of_records)
                .map_err(in_scan);
        }
        let stated = message_of(options).map_err(in_scan)?;
        let shards = listed(py, &self.sources, Shard::spool_for_scan)?.shards;
        if stated.is_none()
            && let Some(source) = self.of_another_format(&shards)
        {
            return Ok(SourceTable::Files {
                source,
                shards: shards.into(),
            });
        }
        let is_detected = stated.is_none() && options.record_type.is_none() && are_events(&shards);
        let message = if is_detected {
            Some(event_message().map_err(|error| failed(py, error))?)
        } else {
            stated
        };
        // The table has the columns of folders itself.
        let inferred = match message {
            Some(_) => None,
            None => Some(inferred(
                py,
                &without_folder_columns(&shards),
                &self.options,
                None,
            )?),
        };
        let mut table = TfRecordTableBuilder::of_shards(shards).with_options(options.clone());
        if let Some(message) = message {
            table = table.with_message(message);
        }
        if let Some(inferred) = inferred {
            table = table.with_inferred(inferred);
        }
        table
            .build_blocking()
            .map(SourceTable::of_records)
            .map_err(in_scan)
    }

    /// The source as SQL names it, if it is one, and all its files are of another format than
    /// TFRecord.
    fn of_another_format(&self, shards: &[Shard]) -> Option<String> {
        let [source] = self.sources.as_slice() else {
            return None;
        };
        let is_other = !shards.is_empty()
            && shards
                .iter()
                .all(|shard| shard.format != ShardFormat::TfRecord);
        is_other
            .then(|| source.to_str().map(str::to_owned))
            .flatten()
    }

    /// The records that are left after these steps, found by one pass.
    fn selection(
        &self,
        py: Python<'_>,
        table: &TfRecordTable,
        dataset: &Dataset,
        steps: Vec<Step>,
    ) -> PyResult<Selection> {
        let in_scan = |error| failed_scan(py, error);
        let table = SourceTable::of_records(table.with_places().map_err(in_scan)?);
        let places = [FILE, OFFSET].map(str::to_owned);
        let mut with_places = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            with_places.push(match step {
                Step::Select(names) => Step::Select([places.to_vec(), names].concat()),
                step => step,
            });
        }
        with_places.push(Step::Select(places.to_vec()));
        let mut rows = self.rows(py, table, with_places, None)?;
        let mut finder = NumberFinder::new(dataset);
        let read = py.detach(|| {
            while let Some(batch) = rows.next()? {
                finder.add(&batch);
            }
            Ok(())
        });
        read.map_err(|error: RowsError| error.raise(py, Wording::Arguments))?;
        match finder.finish() {
            Some(numbers) => Ok(Selection::Some(numbers.into())),
            None => Err(usage(
                py,
                "a file was changed while its records were selected",
            )),
        }
    }

    fn rows(
        &self,
        py: Python<'_>,
        table: SourceTable,
        steps: Vec<Step>,
        batch_rows: Option<usize>,
    ) -> PyResult<QueryRows> {
        let mut running = Running {
            batch_rows,
            ..Running::of(&self.options)
        };
        if let SourceTable::Files { .. } = table {
            // SQL would read converted events as a table of their values. A scan has their rows, as
            // that of event files.
            running.tables.message = Some(EVENT_MESSAGE.to_owned());
        }
        // Arrays that SQL makes may have memory in common.
        let wording = match table {
            SourceTable::Records(_) => Wording::Arguments,
            SourceTable::Files { .. } => Wording::Sql,
        };
        let rows = py.detach(|| {
            QueryRows::start(&running, wording, move |context, on_notice| {
                planned(context, on_notice, table, steps)
            })
        });
        rows.map_err(|error| error.raise(py, wording))
    }
}

/// The columns by which selected records are found.
const FILE: &str = "_file";
const OFFSET: &str = "_offset";

/// Finds the numbers of records by their files and offsets, in the order of the data set.
struct NumberFinder<'d> {
    dataset: &'d Dataset,
    paths: Vec<String>,
    /// The shard of the last record.
    shard: usize,
    /// `None` if a record was not found.
    numbers: Option<Vec<u64>>,
}

impl<'d> NumberFinder<'d> {
    fn new(dataset: &'d Dataset) -> Self {
        let mut paths = Vec::with_capacity(dataset.shards().len());
        for shard in dataset.shards() {
            paths.push(shard.path.to_string_lossy().into_owned());
        }
        Self {
            dataset,
            paths,
            shard: 0,
            numbers: Some(Vec::new()),
        }
    }

    /// Adds the records of the rows of a batch, which are after those before.
    fn add(&mut self, batch: &RecordBatch) {
        let mut found = self.numbers.take();
        let files = batch.column_by_name(FILE);
        let files = files.and_then(|files| cast(files, &DataType::Utf8).ok());
        let offsets = batch.column_by_name(OFFSET);
        let offsets = offsets.and_then(|it| it.as_primitive_opt::<Int64Type>());
        let (Some(files), Some(offsets)) = (files, offsets) else {
            return;
        };
        for (file, offset) in files.as_string::<i32>().iter().zip(offsets.values()) {
            let number = self.number(file.unwrap_or_default(), *offset as u64);
            if let (Some(found), Some(number)) = (&mut found, number) {
                found.push(number);
            } else {
                return;
            }
        }
        self.numbers = found;
    }

    fn number(&mut self, file: &str, offset: u64) -> Option<u64> {
        while self.paths.get(self.shard)? != file {
            self.shard += 1;
        }
        self.dataset.number_at(self.shard, offset)
    }

    fn finish(self) -> Option<Vec<u64>> {
        self.numbers
    }
}

impl Declared {
    fn new(schema: &Schema, folders: &[String], names: Vec<PathBuf>) -> Self {
        let (folders, features): (Vec<_>, Vec<_>) = schema
            .fields()
            .iter()
            .cloned()
            .partition(|field| folders.contains(field.name()));
        Self {
            features: Schema::new_with_metadata(features, schema.metadata().clone()),
            folders,
            names,
        }
    }

    fn table(&self, mut shards: Vec<Shard>, options: &TfRecordOptions) -> Result<TfRecordTable> {
        if !self.folders.is_empty() {
            if shards.len() != self.names.len() {
                return plan_err!(
                    "found {} files, expected the {} that were listed",
                    shards.len(),
                    self.names.len()
                );
            }
            let keys: Vec<_> = self
                .folders
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            let named = shards.into_iter().zip(&self.names);
            shards = named
                .map(|(shard, name)| shard.with_name(name.clone(), &keys))
                .collect();
        }
        TfRecordTableBuilder::of_shards(shards)
            .with_options(options.clone())
            .with_schema(self.features.clone(), HashMap::new())
            .with_partition_columns(self.folders.clone())
            .build_blocking()
    }
}

/// Lists the files of sources, and warns of those that were skipped.
pub(crate) fn listed(
    py: Python<'_>,
    sources: &[PathBuf],
    spool: fn(&mut Shard) -> tfarrow_dataset::Result<()>,
) -> PyResult<Found> {
    let found = watch(py, &Pass::default(), None, || {
        Found::of(sources, FormatFilter::Any, spool)
    })?;
    let found = found.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    Ok(found)
}

/// Infers the schema of shards.
pub(crate) fn inferred(
    py: Python<'_>,
    shards: &[Shard],
    options: &ReadingOptions,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Inferred> {
    let pass = Pass::default();
    pass.expect(shards.iter().map(|shard| shard.size).sum());
    let inferred = watch(py, &pass, progress, || {
        infer(shards, &options.infer(), &|bytes, _| pass.add(bytes))
    })?;
    inferred.map_err(|error| failed(py, error))
}

/// Plans the rows of a table after these steps.
async fn planned(
    context: SessionContext,
    on_notice: OnNotice,
    table: SourceTable,
    steps: Vec<Step>,
) -> Result<SendableRecordBatchStream, QueryError> {
    let frame = match table {
        SourceTable::Records(table) => {
            let table = TfRecordTable::clone(&table).with_notices(Some(on_notice));
            context.read_table(Arc::new(table))?
        }
        SourceTable::Files { source, .. } => context.table(TableReference::bare(source)).await?,
    };
    Ok(scan(frame, steps).await?)
}

/// Plans a scan.
async fn scan(mut frame: DataFrame, steps: Vec<Step>) -> Result<SendableRecordBatchStream> {
    for step in steps {
        frame = apply(frame, step)?;
    }
    frame.execute_stream().await
}

fn apply(frame: DataFrame, step: Step) -> Result<DataFrame> {
    match step {
        Step::Select(names) => {
            if let Some((_, twice)) = names
                .iter()
                .enumerate()
                .find(|(index, name)| names[..*index].contains(name))
            {
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
