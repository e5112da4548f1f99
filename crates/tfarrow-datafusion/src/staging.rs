//! COPY and INSERT in DataFusion's own formats, whole or absent.
//!
//! DataFusion's sinks write files as they go, replace those that are there, and leave what they have where a statement
//! fails. Here a sink is handed a session whose stores hold back what is written, until the sink has said that it is
//! done. Of the formats themselves nothing is known here.

use std::{
    fmt,
    io::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{
        Column, plan_err,
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
        context::QueryPlanner,
        object_store::{ObjectStoreRegistry, ObjectStoreUrl},
        runtime_env::RuntimeEnv,
    },
    logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, dml::CopyTo},
    physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, metrics::MetricsSet},
    physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner},
};
use futures::{FutureExt, future, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, UploadPart, path::Path,
};
use tfarrow_dataset::{Error, OutputFile, WholeFile};
use url::Url;

use crate::{
    cancellation::{Cancellation, cancellable},
    context::copy_of,
    error::external,
    exchanges::with_single_inputs,
    format::TfRecordFormatFactory,
    options::TfRecordOptions,
    outputs::{Outputs, persist},
    sink::TfRecordSink,
    written::{check_names, without_views},
};

/// Plans queries as DataFusion does, with sinks whose files appear when all are whole, and with joins that can be cancelled.
#[derive(Debug)]
pub(crate) struct SessionPlanner {
    pub(crate) cancellation: Cancellation,
}

#[async_trait]
impl QueryPlanner for SessionPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = staged_plan(plan, state).await?;
        let plan = with_single_inputs(plan, state.runtime_env().memory_pool.as_ref())?;
        cancellable(plan, &self.cancellation)
    }
}

/// The physical plan, whose sinks write files that appear when all are whole.
async fn staged_plan(plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
    // Most queries write nothing.
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Copy(_) | LogicalPlan::Dml(_))))? {
        return DefaultPhysicalPlanner::default().create_physical_plan(plan, state).await;
    }
    let mut target = Target { file: None, overwrite: TfRecordOptions::of(state.config()).overwrite };
    let plan = plan.clone().transform_down(|node| match node {
        LogicalPlan::Copy(copy) => target.take(copy).map(|copy| Transformed::yes(LogicalPlan::Copy(copy))),
        node => Ok(Transformed::no(node)),
    })?;
    let plan = DefaultPhysicalPlanner::default().create_physical_plan(&plan.data, state).await?;
    let staged = plan.transform_down(|node| {
        Ok(match node.downcast_ref::<DataSinkExec>() {
            Some(exec) if !is_whole(exec.sink()) => Transformed::yes(target.staged(exec)),
            _ => Transformed::no(node),
        })
    })?;
    Ok(staged.data)
}

/// Whether a sink's files appear when all are whole anyhow.
fn is_whole(sink: &dyn DataSink) -> bool {
    sink.is::<TfRecordSink>() || sink.is::<StagingSink>()
}

/// Where a statement writes.
#[derive(Clone, Debug)]
struct Target {
    /// The file, where it is one that the statement names.
    file: Option<ListingTableUrl>,
    overwrite: bool,
}

impl Target {
    /// Takes from a statement what DataFusion's formats have no notion of.
    fn take(&mut self, mut copy: CopyTo) -> Result<CopyTo> {
        let format = file_type_to_format(&copy.file_type)?;
        if copy.partition_by.len() == copy.input.schema().fields().len() {
            return plan_err!("PARTITIONED BY has every column: one at least has to be left for the files");
        }
        if format.is::<TfRecordFormatFactory>() {
            return Ok(copy);
        }
        let ending = format.get_ext();
        if ending != "csv" {
            check_names(copy.input.schema().as_arrow())?;
        }
        if ending != "csv" && ending != "json" {
            copy = plain(copy)?;
        }
        let mut options = TfRecordOptions { overwrite: self.overwrite, ..TfRecordOptions::default() };
        for name in ["format.overwrite", "tfarrow.overwrite"] {
            if let Some(value) = copy.options.remove(name) {
                options = options.with([(name, value.as_str())])?;
            }
        }
        self.overwrite = options.overwrite;
        let url = ListingTableUrl::parse(&copy.output_url)?;
        if copy.partition_by.is_empty() && FileOutputMode::Automatic.single_file_output(&url) {
            self.file = Some(url);
        }
        Ok(copy)
    }

    fn staged(&self, exec: &DataSinkExec) -> Arc<dyn ExecutionPlan> {
        let sink = StagingSink { exec: exec.clone(), target: self.clone() };
        Arc::new(DataSinkExec::new(Arc::clone(exec.input()), Arc::new(sink), exec.sort_order().clone()))
    }
}

/// The statement with plain columns in place of views.
fn plain(copy: CopyTo) -> Result<CopyTo> {
    let schema = copy.input.schema();
    let plain = without_views(schema.as_arrow());
    if plain.fields() == schema.fields() {
        return Ok(copy);
    }
    let columns = schema.iter().zip(plain.fields()).map(|((table, field), plain)| {
        let column = Expr::Column(Column::from((table, field)));
        if field.data_type() == plain.data_type() {
            return column;
        }
        cast(column, plain.data_type().clone()).alias_qualified(table.cloned(), field.name())
    });
    let input = LogicalPlanBuilder::from(Arc::clone(&copy.input)).project(columns.collect::<Vec<_>>())?.build()?;
    Ok(CopyTo::new(Arc::new(input), copy.output_url, copy.partition_by, copy.file_type, copy.options))
}

/// Another sink, whose files get their names when it is done.
#[derive(Debug)]
struct StagingSink {
    /// What holds that sink. Its input is not used.
    exec: DataSinkExec,
    target: Target,
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

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let runtime = context.runtime_env();
        let stores = Arc::clone(&runtime.object_store_registry);
        if let Some(file) = &self.target.file {
            let store = stores.get_store(file.object_store().as_ref())?;
            let outputs = Outputs::new(file.object_store(), store, self.target.overwrite);
            outputs.refuse_existing(file.prefix()).await.map_err(external)?;
        }
        let staged = Staged::default();
        let registry = StagingStores { stores, staged: staged.clone(), overwrite: self.target.overwrite };
        let runtime = RuntimeEnv { object_store_registry: Arc::new(registry), ..runtime.as_ref().clone() };
        let context = copy_of(context).with_runtime(Arc::new(runtime));
        let written = self.exec.sink().write_all(data, &Arc::new(context)).await;
        // What went wrong with a file says more than what a format makes of it.
        match staged.end() {
            Ok(whole) => {
                let rows = written?;
                persist(whole).await?;
                Ok(rows)
            }
            Err(error) => Err(external(error)),
        }
    }
}

/// What a statement has written so far.
#[derive(Clone, Debug, Default)]
struct Staged(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    whole: Vec<WholeFile>,
    /// The first thing that went wrong with one.
    error: Option<Error>,
}

impl Staged {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the error. A format passes on no more of it than that it is there.
    fn failed(&self, error: Error) -> object_store::Error {
        let source = error.to_string().into();
        self.files().error.get_or_insert(error);
        object_store::Error::Generic { store: "output", source }
    }

    /// All files, once the sink is done.
    fn end(&self) -> Result<Vec<WholeFile>, Error> {
        let Files { whole, error } = std::mem::take(&mut *self.files());
        error.map_or(Ok(whole), Err)
    }
}

/// The stores of a session, with what is written held back.
#[derive(Debug)]
struct StagingStores {
    stores: Arc<dyn ObjectStoreRegistry>,
    staged: Staged,
    overwrite: bool,
}

impl ObjectStoreRegistry for StagingStores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.stores.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.stores.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let store = self.stores.get_store(url)?;
        let base = ObjectStoreUrl::parse(&url[..url::Position::BeforePath])?;
        let outputs = Outputs::new(base, Arc::clone(&store), self.overwrite);
        Ok(Arc::new(StagingStore { store, outputs, staged: self.staged.clone() }))
    }
}

/// A store that gets what is put there later.
#[derive(Debug)]
struct StagingStore {
    store: Arc<dyn ObjectStore>,
    outputs: Outputs,
    staged: Staged,
}

impl StagingStore {
    fn begin(&self, path: &Path) -> object_store::Result<StagedFile> {
        match self.outputs.create(path) {
            Ok(file) => Ok(StagedFile { file: Some(file), staged: self.staged.clone() }),
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
    async fn put_opts(&self, path: &Path, bytes: PutPayload, _: PutOptions) -> object_store::Result<PutResult> {
        let mut file = self.begin(path)?;
        file.write(&bytes)?;
        file.end()
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        _: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(self.begin(path)?))
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

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// One file that is being written. Parts come in their order.
#[derive(Debug)]
struct StagedFile {
    /// None once it has ended.
    file: Option<OutputFile>,
    staged: Staged,
}

impl StagedFile {
    fn write(&mut self, bytes: &PutPayload) -> object_store::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = bytes.iter().try_for_each(|bytes| file.write_all(bytes));
        written.map_err(|error| self.staged.failed(Error::io(file.path(), error)))
    }

    fn end(&mut self) -> object_store::Result<PutResult> {
        if let Some(file) = self.file.take() {
            let whole = file.close().map_err(|error| self.staged.failed(error))?;
            self.staged.files().whole.push(whole);
        }
        Ok(PutResult { e_tag: None, version: None })
    }
}

#[async_trait]
impl MultipartUpload for StagedFile {
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
