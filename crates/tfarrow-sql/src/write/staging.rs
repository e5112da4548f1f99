//! All-or-nothing COPY and INSERT in DataFusion's own formats: the files of a statement appear
//! together, or not at all.
//!
//! DataFusion's sinks write files in place, replace existing files, and leave incomplete files if a
//! statement fails. A [`StagingSink`] therefore runs a sink in a session whose object stores write
//! to temporary files, which get their names after the sink has finished. It does not depend on the
//! format.

use std::{
    fmt,
    io::Write,
    sync::{Arc, MutexGuard},
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{
        Column, DFSchema, plan_err,
        tree_node::{Transformed, TreeNode},
    },
    datasource::{
        file_format::file_type_to_format,
        listing::ListingTableUrl,
        physical_plan::FileOutputMode,
        sink::{DataSink, DataSinkExec},
    },
    error::Result,
    execution::{
        SendableRecordBatchStream, TaskContext,
        object_store::{ObjectStoreRegistry, ObjectStoreUrl},
        runtime_env::RuntimeEnv,
    },
    logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, cast, dml::CopyTo},
    physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, metrics::MetricsSet},
    physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner},
};
use futures::{FutureExt, future, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart, path::Path,
};
use tfarrow_codec::schema_of_rows;
use tfarrow_datafusion::{
    TfRecordFormatFactory, TfRecordOptions, TfRecordSink, check_names,
    internals::{OutputFolder, OutputStore, PART, copy_of, external, persist, persist_in},
    without_views,
};
use tfarrow_dataset::{CompleteFile, Error, OutputFile, internals::Lock};
use url::Url;

use crate::write::float_bounds::without_float_bounds;

/// Plans a statement, with each sink wrapped in a [`StagingSink`] unless it is all-or-nothing
/// itself.
pub(crate) async fn staged_plan(
    plan: &LogicalPlan,
    state: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    // Most statements have no sink.
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Copy(_) | LogicalPlan::Dml(_))))? {
        return DefaultPhysicalPlanner::default()
            .create_physical_plan(plan, state)
            .await;
    }
    let overwrite = TfRecordOptions::of(state.config()).overwrite;
    let mut target = StatementOutput {
        file: None,
        folder: None,
        overwrite,
    };
    let plan = plan.clone().transform_down(|node| match node {
        LogicalPlan::Copy(copy) => target
            .take(copy, state)
            .map(|copy| Transformed::yes(LogicalPlan::Copy(copy))),
        node => Ok(Transformed::no(node)),
    })?;
    let plan = DefaultPhysicalPlanner::default()
        .create_physical_plan(&plan.data, state)
        .await?;
    let staged = plan.transform_down(|node| {
        Ok(match node.downcast_ref::<DataSinkExec>() {
            Some(exec) if !is_staged(exec.sink()) => Transformed::yes(target.staged(exec)?),
            _ => Transformed::no(node),
        })
    })?;
    Ok(staged.data)
}

/// Returns whether the files of a sink already appear together.
fn is_staged(sink: &dyn DataSink) -> bool {
    sink.is::<TfRecordSink>() || sink.is::<StagingSink>()
}

/// The output of a statement.
#[derive(Clone, Debug)]
pub(crate) struct StatementOutput {
    /// The file that the statement names; `None` if it names a folder.
    pub(crate) file: Option<ListingTableUrl>,
    /// The URL of the folder that COPY writes to; `None` for INSERT, which adds files.
    pub(crate) folder: Option<(ListingTableUrl, OutputFolder)>,
    pub(crate) overwrite: bool,
}

impl StatementOutput {
    /// Removes options from a statement that DataFusion's formats do not have, and checks and
    /// converts its columns.
    fn take(&mut self, copy: CopyTo, state: &dyn Session) -> Result<CopyTo> {
        let format = file_type_to_format(&copy.file_type)?;
        if copy.partition_by.len() == copy.input.schema().fields().len() {
            return plan_err!(
                "PARTITIONED BY has every column; leave at least one column for the files"
            );
        }
        let mut copy = with_rows_schema(copy)?;
        if format.is::<TfRecordFormatFactory>() {
            return Ok(copy);
        }
        let extension = format.get_ext();
        if extension != "csv" {
            check_names(copy.input.schema().as_arrow())?;
        }
        if extension != "csv" && extension != "json" {
            copy = cast_views(copy)?;
        }
        let mut options = TfRecordOptions {
            overwrite: self.overwrite,
            ..TfRecordOptions::default()
        };
        for name in ["format.overwrite", "tfarrow.overwrite"] {
            if let Some(value) = copy.options.remove(name) {
                options = options.with([(name, value.as_str())])?;
            }
        }
        self.overwrite = options.overwrite;
        let url = ListingTableUrl::parse(&copy.output_url)?;
        let is_file = match copy
            .options
            .get("single_file_output")
            .map(|value| value.trim())
        {
            Some("true") => true,
            Some("false") => false,
            _ => FileOutputMode::Automatic.single_file_output(&url),
        };
        if copy.partition_by.is_empty() && is_file {
            self.file = Some(url);
            return Ok(copy);
        }
        let keeps_columns = match copy
            .options
            .get("execution.keep_partition_by_columns")
            .map(|value| value.trim())
        {
            Some(value) => value == "true",
            None => state.config_options().execution.keep_partition_by_columns,
        };
        let path = url.prefix().clone();
        let keys = copy.partition_by.clone();
        let stem = PART.to_owned();
        self.folder = Some((
            url,
            OutputFolder {
                path,
                keys,
                keeps_columns,
                stem,
            },
        ));
        Ok(copy)
    }

    fn staged(&self, exec: &DataSinkExec) -> Result<Arc<dyn ExecutionPlan>> {
        let exec = without_float_bounds(exec)?.unwrap_or_else(|| exec.clone());
        let input = Arc::clone(exec.input());
        let order = exec.sort_order().clone();
        let sink = StagingSink {
            exec,
            target: self.clone(),
        };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }
}

/// Leaves out the record type of a statement whose columns are not those of such records.
/// DataFusion passes the metadata of a table on to each query of the table.
fn with_rows_schema(copy: CopyTo) -> Result<CopyTo> {
    let schema = copy.input.schema();
    let rows = schema_of_rows(schema.inner());
    if rows == *schema.inner() {
        return Ok(copy);
    }
    let columns = schema.columns().into_iter().map(Expr::Column).collect();
    let tables = schema.iter().map(|(table, _)| table.cloned()).collect();
    let rows = DFSchema::from_field_specific_qualified_schema(tables, &rows)?;
    let input = Projection::try_new_with_schema(columns, Arc::clone(&copy.input), Arc::new(rows))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    Ok(CopyTo::new(
        input,
        copy.output_url,
        copy.partition_by,
        copy.file_type,
        copy.options,
    ))
}

/// Casts view columns of a statement to plain columns.
fn cast_views(copy: CopyTo) -> Result<CopyTo> {
    let schema = copy.input.schema();
    let plain = without_views(schema.as_arrow());
    if plain.fields() == schema.fields() {
        return Ok(copy);
    }
    let columns = schema
        .iter()
        .zip(plain.fields())
        .map(|((table, field), plain)| {
            let column = Expr::Column(Column::from((table, field)));
            if field.data_type() == plain.data_type() {
                return column;
            }
            cast(column, plain.data_type().clone()).alias_qualified(table.cloned(), field.name())
        });
    let input = LogicalPlanBuilder::from(Arc::clone(&copy.input))
        .project(columns.collect::<Vec<_>>())?
        .build()?;
    Ok(CopyTo::new(
        Arc::new(input),
        copy.output_url,
        copy.partition_by,
        copy.file_type,
        copy.options,
    ))
}

/// A wrapper of another sink, whose files get their names after it has finished.
#[derive(Debug)]
pub(crate) struct StagingSink {
    /// The operator of the other sink. Its input is not used.
    exec: DataSinkExec,
    target: StatementOutput,
}

impl StagingSink {
    /// Makes the sink of another process, from its parts.
    pub(crate) fn of_parts(exec: DataSinkExec, target: StatementOutput) -> Self {
        Self { exec, target }
    }

    /// The operator of the other sink, and the output of the statement.
    pub(crate) fn parts(&self) -> (&DataSinkExec, &StatementOutput) {
        (&self.exec, &self.target)
    }
}

impl DisplayAs for StagingSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exec.sink().fmt_as(format, f)
    }
}

#[async_trait]
impl DataSink for StagingSink {
    fn metrics(&self) -> Option<MetricsSet> {
        self.exec.sink().metrics()
    }

    fn schema(&self) -> &SchemaRef {
        self.exec.sink().schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let runtime = context.runtime_env();
        let stores = Arc::clone(&runtime.object_store_registry);
        if let Some(file) = &self.target.file {
            let store = stores.get_store(file.object_store().as_ref())?;
            let store = OutputStore::new(file.object_store(), store, self.target.overwrite);
            store
                .refuse_existing(file.prefix())
                .await
                .map_err(external)?;
        }
        let (folder, data) = match &self.target.folder {
            Some((url, folder)) => {
                let store = stores.get_store(url.object_store().as_ref())?;
                let store = OutputStore::new(url.object_store(), store, self.target.overwrite);
                store.refuse_earlier(folder).await.map_err(external)?;
                (Some((folder, store)), folder.with_folder_values(data))
            }
            None => (None, data),
        };
        let staged = Staged::default();
        let registry = StagingStores {
            stores,
            staged: staged.clone(),
            target: self.target.clone(),
        };
        let runtime = RuntimeEnv {
            object_store_registry: Arc::new(registry),
            ..runtime.as_ref().clone()
        };
        let context = copy_of(context).with_runtime(Arc::new(runtime));
        let written = self.exec.sink().write_all(data, &Arc::new(context)).await;
        // The error of a file is more precise than the error that the format derives from it.
        match staged.end() {
            Ok(complete) => {
                let rows = written?;
                match folder {
                    Some((folder, store)) => persist_in(folder, &store, complete).await?,
                    None => persist(complete).await?,
                }
                Ok(rows)
            }
            Err(error) => Err(external(error)),
        }
    }
}

/// The files that a statement has written so far.
#[derive(Clone, Debug, Default)]
struct Staged(Arc<Lock<StagedFiles>>);

#[derive(Debug, Default)]
struct StagedFiles {
    complete: Vec<CompleteFile>,
    /// The first error of a file.
    error: Option<Error>,
}

impl Staged {
    fn files(&self) -> MutexGuard<'_, StagedFiles> {
        self.0.lock()
    }

    /// Records the error for the statement. A format only learns that there is one.
    fn failed(&self, error: Error) -> object_store::Error {
        let source = "the file cannot be written".into();
        self.files().error.get_or_insert(error);
        object_store::Error::Generic {
            store: "output",
            source,
        }
    }

    /// All complete files, after the sink has finished; or the first error.
    fn end(&self) -> Result<Vec<CompleteFile>, Error> {
        let StagedFiles { complete, error } = std::mem::take(&mut *self.files());
        error.map_or(Ok(complete), Err)
    }
}

/// A registry that wraps each store of a session in a [`StagingStore`].
#[derive(Debug)]
struct StagingStores {
    stores: Arc<dyn ObjectStoreRegistry>,
    staged: Staged,
    target: StatementOutput,
}

impl ObjectStoreRegistry for StagingStores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.stores.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.stores.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let store = self.stores.get_store(url)?;
        let base = ObjectStoreUrl::parse(&url[..url::Position::BeforePath])?;
        let output = OutputStore::new(base, Arc::clone(&store), self.target.overwrite);
        let folder = self
            .target
            .folder
            .as_ref()
            .map(|(_, folder)| folder.clone());
        Ok(Arc::new(StagingStore {
            store,
            output,
            folder,
            staged: self.staged.clone(),
        }))
    }
}

/// A store whose writes go to temporary files. Reads go to the store itself.
#[derive(Debug)]
struct StagingStore {
    store: Arc<dyn ObjectStore>,
    output: OutputStore,
    /// The folder that names the files; `None` if they have their names.
    folder: Option<OutputFolder>,
    staged: Staged,
}

impl StagingStore {
    fn create(&self, path: &Path) -> object_store::Result<StagedUpload> {
        let named = self
            .folder
            .as_ref()
            .map(|folder| folder.file(path))
            .transpose();
        let path = match named {
            Ok(named) => named.unwrap_or_else(|| path.clone()),
            Err(error) => {
                return Err(object_store::Error::Generic {
                    store: "output",
                    source: error.into(),
                });
            }
        };
        match self.output.create(&path) {
            Ok(file) => Ok(StagedUpload {
                file: Some(file),
                staged: self.staged.clone(),
            }),
            Err(error) => Err(self.staged.failed(error)),
        }
    }
}

impl fmt::Display for StagingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for StagingStore {
    async fn put_opts(
        &self,
        path: &Path,
        bytes: PutPayload,
        _: PutOptions,
    ) -> object_store::Result<PutResult> {
        let mut file = self.create(path)?;
        file.write(&bytes)?;
        file.end()
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        _: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(self.create(path)?))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.store.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.store.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// A file that is being written. DataFusion's formats write parts in order, one at a time.
#[derive(Debug)]
struct StagedUpload {
    /// `None` after the upload is complete or aborted.
    file: Option<OutputFile>,
    staged: Staged,
}

impl StagedUpload {
    fn write(&mut self, bytes: &PutPayload) -> object_store::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = bytes.iter().try_for_each(|bytes| file.write_all(bytes));
        written.map_err(|error| self.staged.failed(Error::io(file.path(), error)))
    }

    fn end(&mut self) -> object_store::Result<PutResult> {
        if let Some(file) = self.file.take() {
            let complete = file.close().map_err(|error| self.staged.failed(error))?;
            self.staged.files().complete.push(complete);
        }
        Ok(PutResult {
            e_tag: None,
            version: None,
        })
    }
}

#[async_trait]
impl MultipartUpload for StagedUpload {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        future::ready(self.write(&bytes)).boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        self.end()
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.file = None;
        Ok(())
    }
}
