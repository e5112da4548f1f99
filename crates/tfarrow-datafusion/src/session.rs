//! A session that knows TFRecord, and what makes any session know it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::{
    catalog::{CatalogProviderList, DynamicFileCatalog, MemoryCatalogProviderList, TableProvider},
    common::plan_err,
    error::Result,
    execution::{SessionStateBuilder, memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder},
    physical_optimizer::optimizer::PhysicalOptimizer,
    prelude::{DataFrame, SessionConfig, SessionContext},
};

use crate::{
    cancellation::Cancellation,
    factory::TfRecordTableFactory,
    file_names::FileNames,
    format::TfRecordFormatFactory,
    functions,
    long_rows::{LongRows, merge_stream_bytes},
    notice::OnNotice,
    options::TfRecordOptions,
    row_order::PreserveOrder,
    samples::Samples,
    staging::SessionPlanner,
    stores::Stores,
    table::TfRecordTable,
    table_function::ReadTfRecord,
    url_table::UrlTables,
};

/// What a session is made with.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// DataFusion's own settings. Ours are added.
    pub config: SessionConfig,
    /// Its memory and its disks. Its stores are found by their URLs.
    pub runtime: RuntimeEnvBuilder,
    /// Bytes that sorts, joins and groups may take together, in place of the runtime's own limit, and of its fan-in of
    /// merges. What needs more goes to temporary files. `SET datafusion.runtime.memory_limit` takes its place with a
    /// pool in which whoever comes first takes all.
    pub memory_limit: Option<usize>,
    /// How TFRecord tables are made, until a `SET tfarrow.x` says something else.
    pub tables: TfRecordOptions,
    /// Who is told of features that have no column, and of records that are passed over.
    pub on_notice: Option<OnNotice>,
    /// Cancels queries of the session, also those that compute for long without an output.
    pub cancellation: Cancellation,
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// A session in which the name of a file, a folder or a glob is a table: `SELECT avg(label) FROM 'shards/*.tfrecord'`.
///
/// What is TFRecord, Parquet or Arrow is told by content. CSV and JSON files are tables too, by their names' endings.
/// What COPY and INSERT write, in whatever format, appears when it is whole, and replaces nothing unless `overwrite` says
/// so.
///
/// ```
/// use tfarrow_datafusion::{SessionOptions, session_context};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = session_context(SessionOptions::default())?;
/// let batches = context.sql(&format!("SELECT count(*) FROM '{testdata}/shards/*'")).await?.collect().await?;
/// assert_eq!(batches[0].num_rows(), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// What the runtime's parts say, such as a folder for temporary files that cannot be used.
pub fn session_context(options: SessionOptions) -> Result<SessionContext> {
    let SessionOptions { config, runtime, memory_limit, tables, on_notice, cancellation } = options;
    let runtime = match memory_limit {
        Some(bytes) => limited(runtime, bytes, &config),
        None => runtime,
    };
    let shared = Arc::new(Shared { samples: Samples::default(), on_notice });
    let mut config = config.with_information_schema(true).with_option_extension(tables);
    // Filters of min and max aggregates prune files only, and no scan of TFRecord has statistics of files. While they are
    // on, our source refuses the filters that sorts and joins find, too.
    config.options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Which files a folder has is asked for anew by every query, so that new files are seen.
    let runtime = runtime.with_object_list_cache_limit(0).with_object_store_registry(Arc::new(Stores::default()));
    let runtime = runtime.build_arc()?;
    let files = Arc::new(UrlTables::new(Arc::clone(&shared)));
    let named: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
    let catalogs = DynamicFileCatalog::new(named, Arc::clone(&files) as _);
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(FileNames));
    let state = SessionStateBuilder::new()
        .with_config(config.with_extension(Arc::clone(&shared)))
        .with_runtime_env(runtime)
        .with_catalog_list(Arc::new(catalogs))
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .with_physical_optimizer_rule(Arc::new(PreserveOrder))
        .with_physical_optimizer_rule(Arc::new(LongRows))
        .with_query_planner(Arc::new(SessionPlanner { cancellation }))
        .build();
    let context = SessionContext::new_with_state(state);
    enable(&context, shared)?;
    files.bind(&context);
    Ok(context)
}

/// Shares so many bytes fairly. Merges, which take what they can get and keep it, get half of it.
fn limited(runtime: RuntimeEnvBuilder, bytes: usize, config: &SessionConfig) -> RuntimeEnvBuilder {
    let merges = config.target_partitions().max(1);
    let fan_in = bytes / 2 / merges / merge_stream_bytes(&config.options().execution).max(1);
    runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes))).with_max_spill_merge_fan_in(fan_in.max(2))
}

/// What the tables of a session share.
pub(crate) struct Shared {
    pub(crate) samples: Samples,
    pub(crate) on_notice: Option<OnNotice>,
}

impl Shared {
    /// The table, known to the session by this name.
    pub(crate) fn adopt(&self, table: TfRecordTable, name: &str) -> Arc<TfRecordTable> {
        self.samples.remember(name, table.schema(), table.origin());
        Arc::new(table.with_notices(self.on_notice.clone()))
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("samples", &self.samples).finish_non_exhaustive()
    }
}

/// Adds to a session what SQL says of TFRecord: the statements' formats, functions, `read_tfrecord`.
fn enable(context: &SessionContext, shared: Arc<Shared>) -> Result<()> {
    functions::all().for_each(|function| context.register_udf(function));
    let state = context.state_ref();
    let mut state = state.write();
    state.table_factories_mut().insert("TFRECORD".to_owned(), Arc::new(TfRecordTableFactory));
    for factory in TfRecordFormatFactory::all() {
        state.register_file_format(Arc::new(factory), true)?;
    }
    state.register_relation_planner(Arc::new(ReadTfRecord(shared)))
}

/// TFRecord for any [`SessionContext`], also for one that [`session_context`] did not make.
#[async_trait]
pub trait SessionContextTfRecordExt {
    /// A data frame of what `source` names: a file, a folder, a glob, or `-` for standard input.
    ///
    /// ```
    /// use datafusion::prelude::{SessionContext, col};
    /// use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    /// let context = SessionContext::new();
    /// let frame = context.read_tfrecord(&format!("{testdata}/scalar.tfrecord"), &TfRecordOptions::default()).await?;
    /// assert!(!frame.schema().fields().is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`TfRecordTable::open`].
    async fn read_tfrecord(&self, source: &str, options: &TfRecordOptions) -> Result<DataFrame>;

    /// Makes what `source` names the table `name`.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    /// let context = SessionContext::new();
    /// context.register_tfrecord("shards", &format!("{testdata}/shards"), &TfRecordOptions::default()).await?;
    /// assert_eq!(context.sql("SELECT * FROM shards LIMIT 1").await?.count().await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`TfRecordTable::open`]; and where a table of this name is there already.
    async fn register_tfrecord(&self, name: &str, source: &str, options: &TfRecordOptions) -> Result<()>;

    /// Teaches a session that [`session_context`] did not make the SQL of TFRECORD: `CREATE EXTERNAL TABLE .. STORED AS
    /// TFRECORD`, `COPY .. TO .. STORED AS TFRECORD`, `read_tfrecord(..)`, `SET tfarrow.x`, and the functions of this
    /// crate. Names of files stay no tables. For long records under a memory limit, the state has to be built with
    /// [`LongRows`].
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use tfarrow_datafusion::SessionContextTfRecordExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    /// let context = SessionContext::new();
    /// context.enable_tfrecord()?;
    /// let query = format!("SELECT * FROM read_tfrecord('{testdata}/scalar.tfrecord', layout => 'list') LIMIT 1");
    /// assert_eq!(context.sql(&query).await?.count().await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Where the session has been taught so already.
    fn enable_tfrecord(&self) -> Result<()>;
}

#[async_trait]
impl SessionContextTfRecordExt for SessionContext {
    async fn read_tfrecord(&self, source: &str, options: &TfRecordOptions) -> Result<DataFrame> {
        self.read_table(Arc::new(TfRecordTable::open(source, options).await?))
    }

    async fn register_tfrecord(&self, name: &str, source: &str, options: &TfRecordOptions) -> Result<()> {
        let table = TfRecordTable::open(source, options).await?;
        let table = match self.state().config().get_extension::<Shared>() {
            Some(shared) => shared.adopt(table, name),
            None => Arc::new(table),
        };
        self.register_table(name, table)?;
        Ok(())
    }

    fn enable_tfrecord(&self) -> Result<()> {
        let shared = Arc::new(Shared { samples: Samples::default(), on_notice: None });
        if self.state().config().get_extension::<Shared>().is_some() {
            return plan_err!("the session knows TFRecord already");
        }
        {
            let state = self.state_ref();
            let mut state = state.write();
            let config = state.config_mut();
            config.options_mut().extensions.insert(TfRecordOptions::default());
            config.set_extension(Arc::clone(&shared));
        }
        enable(self, shared)
    }
}
