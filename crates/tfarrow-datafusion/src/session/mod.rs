//! Sessions with TFRecord: [`session_context`] creates one, and [`SessionContextTfRecordExt`] extends any session.

mod all_columns;
pub(crate) mod column_hints;
mod described_types;
mod drop_check;
mod expr_limits;
mod insert_columns;
mod object_stores;
mod plan_size;
pub(crate) mod plan_statement;
mod query_planner;

use std::sync::Arc;

use datafusion::{
    catalog::{CatalogProviderList, DynamicFileCatalog, MemoryCatalogProviderList},
    common::plan_err,
    error::Result,
    execution::{SessionStateBuilder, memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder},
    optimizer::Optimizer,
    physical_optimizer::optimizer::PhysicalOptimizer,
    prelude::{DataFrame, SessionConfig, SessionContext},
};

use crate::{
    catalog::{
        external_table::TfRecordTableFactory,
        parquet_format::TableFormatFactory,
        registry::{TableRegistry, queried},
        summarize::SummarizeFunction,
        table_function::ReadTfRecord,
        url_table::UrlTables,
    },
    engine::Engine,
    functions::{self, bounded::bounded},
    notice::{OnNotice, SessionNotices},
    optimizer::{
        cancellation::Cancellation,
        float_statistics::FloatStatistics,
        input_file_name::InputFileName,
        lateral_unnest::LateralUnnest,
        long_rows::{LongRows, merge_stream_bytes},
        normalize_floats::{NormalizeFloats, with_normalized_floats},
        preserve_order::PreserveOrder,
        volatile_keys::VolatileKeys,
    },
    options::TfRecordOptions,
    session::{object_stores::UrlStores, query_planner::SessionPlanner},
    table::TfRecordTable,
    text::format::TextFormatFactory,
    write::format::TfRecordFormatFactory,
};

/// Options of [`session_context`].
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// Settings of DataFusion. The settings of this crate are added.
    pub config: SessionConfig,
    /// Memory pool and temporary folders of DataFusion. Its registry of object stores is replaced by one that opens stores
    /// by URL.
    pub runtime: RuntimeEnvBuilder,
    /// Maximum bytes of sorts, joins and groups together, with a fan-in of merges that fits; replaces the pool of
    /// `runtime`. Operators that need more spill to temporary files. The limit is shared fairly, whereas
    /// `SET datafusion.runtime.memory_limit` replaces it by a pool without fairness.
    pub memory_limit: Option<usize>,
    /// Initial values of the options `tfarrow.x`.
    pub tables: TfRecordOptions,
    /// Callback for warnings: features without a column, and skipped records.
    pub on_notice: Option<OnNotice>,
    /// Handle that cancels queries of the session, including queries that compute for a long time without an output.
    pub cancellation: Cancellation,
    /// The engine that runs the plans of the session; `None`: this process.
    pub engine: Option<Arc<dyn Engine>>,
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// Creates a session in which the name of a file, a folder or a glob is a table: `SELECT avg(label) FROM
/// 'shards/*.tfrecord'`.
///
/// TFRecord, Parquet and Arrow files are recognized by content, CSV and JSON files by extension. Files that COPY and INSERT
/// write, in any format, get their names when all files of the statement are complete, and replace existing files only with
/// the option `overwrite`.
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
/// The runtime cannot be built, for example because a folder for temporary files cannot be used.
pub fn session_context(options: SessionOptions) -> Result<SessionContext> {
    let SessionOptions { config, runtime, memory_limit, mut tables, on_notice, cancellation, engine } = options;
    let runtime = match memory_limit {
        Some(bytes) => limited(runtime, bytes, &config),
        None => runtime,
    };
    if engine.is_some() {
        tables.prepare_for_engine();
    }
    let notices = SessionNotices { on_notice };
    let registry = Arc::new(TableRegistry::new(notices.clone()));
    let mut config = config.with_information_schema(true).with_option_extension(tables);
    // Dynamic filters of min and max aggregates only prune files, and TFRecord files have no statistics to prune by. While
    // they are enabled, `TfRecordSource` accepts no dynamic filters at all.
    config.options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // The metadata of Parquet files has the type of their records, which COPY writes.
    config.options_mut().execution.parquet.skip_metadata = false;
    // Every query lists folders again, so that it reads new files.
    let runtime = runtime.with_object_list_cache_limit(0).with_object_store_registry(Arc::new(UrlStores::default()));
    let runtime = runtime.build_arc()?;
    let files = Arc::new(UrlTables::new(Arc::clone(&registry)));
    let named: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
    let catalogs = DynamicFileCatalog::new(named, Arc::clone(&files) as _);
    let mut rules = PhysicalOptimizer::new().rules;
    rules.splice(..0, [Arc::new(FloatStatistics) as _, Arc::new(InputFileName) as _]);
    let state = SessionStateBuilder::new()
        .with_config(config.with_extension(Arc::clone(&registry)).with_extension(Arc::new(notices)))
        .with_runtime_env(runtime)
        .with_catalog_list(Arc::new(catalogs))
        .with_default_features()
        .with_analyzer_rule(Arc::new(LateralUnnest))
        .with_analyzer_rule(Arc::new(VolatileKeys))
        .with_analyzer_rule(Arc::new(NormalizeFloats))
        .with_optimizer_rules(with_normalized_floats(Optimizer::new().rules))
        .with_physical_optimizer_rules(rules)
        .with_physical_optimizer_rule(Arc::new(PreserveOrder))
        .with_physical_optimizer_rule(Arc::new(LongRows))
        .with_query_planner(Arc::new(SessionPlanner { cancellation, engine: engine.clone() }));
    let state = engine.map_or(state.clone(), |engine| engine.prepare(state));
    let context = SessionContext::new_with_state(state.build());
    enable(&context, registry)?;
    let functions = bounded(context.state().scalar_functions(), memory_limit).collect::<Vec<_>>();
    functions.into_iter().for_each(|function| context.register_udf(function));
    {
        let state = context.state_ref();
        let mut state = state.write();
        for factory in TextFormatFactory::all() {
            state.register_file_format(Arc::new(factory), true)?;
        }
        state.register_file_format(Arc::new(TableFormatFactory::new()), true)?;
    }
    files.bind(&context);
    Ok(context)
}

/// Adds a memory pool of `bytes` bytes with fair shares, and bounds merges, which do not release memory, to half of it.
fn limited(runtime: RuntimeEnvBuilder, bytes: usize, config: &SessionConfig) -> RuntimeEnvBuilder {
    let merges = config.target_partitions().max(1);
    let fan_in = bytes / 2 / merges / merge_stream_bytes(&config.options().execution).max(1);
    runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes))).with_max_spill_merge_fan_in(fan_in.max(2))
}

/// Registers the formats of statements, the functions, and `read_tfrecord`.
fn enable(context: &SessionContext, registry: Arc<TableRegistry>) -> Result<()> {
    functions::all().for_each(|function| context.register_udf(function));
    functions::aggregates().into_iter().for_each(|function| context.register_udaf(function));
    let state = context.state_ref();
    let mut state = state.write();
    datafusion_functions_json::register_all(&mut *state)?;
    state.table_factories_mut().insert("TFRECORD".to_owned(), Arc::new(TfRecordTableFactory));
    for factory in TfRecordFormatFactory::all() {
        state.register_file_format(Arc::new(factory), true)?;
    }
    state.register_relation_planner(Arc::new(SummarizeFunction(Arc::clone(&registry))))?;
    state.register_relation_planner(Arc::new(ReadTfRecord(registry)))
}

/// Extends any [`SessionContext`] with TFRecord, including one that [`session_context`] did not create.
pub trait SessionContextTfRecordExt {
    /// Returns a data frame of `source`, which is a file, a folder, a glob, or `-` for standard input.
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
    /// The errors of [`TfRecordTable::open`].
    fn read_tfrecord(&self, source: &str, options: &TfRecordOptions) -> impl Future<Output = Result<DataFrame>> + Send;

    /// Registers `source` as the table `name`.
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
    /// The errors of [`TfRecordTable::open`], or a table of this name is already registered.
    fn register_tfrecord(
        &self,
        name: &str,
        source: &str,
        options: &TfRecordOptions,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Enables the SQL of this crate in a session that [`session_context`] did not create: `CREATE EXTERNAL TABLE .. STORED
    /// AS TFRECORD`, `COPY .. TO .. STORED AS TFRECORD`, `read_tfrecord(..)`, `SET tfarrow.x`, and the functions. Names of
    /// files in `FROM` are not enabled. For long records under a memory limit, build the state with [`LongRows`].
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
    /// TFRecord is already enabled in the session.
    fn enable_tfrecord(&self) -> Result<()>;
}

impl SessionContextTfRecordExt for SessionContext {
    async fn read_tfrecord(&self, source: &str, options: &TfRecordOptions) -> Result<DataFrame> {
        self.read_table(queried(TfRecordTable::open(source, options).await?)?)
    }

    async fn register_tfrecord(&self, name: &str, source: &str, options: &TfRecordOptions) -> Result<()> {
        let table = TfRecordTable::open(source, options).await?;
        let table = match self.state().config().get_extension::<TableRegistry>() {
            Some(registry) => registry.register(table, name)?,
            None => queried(table)?,
        };
        self.register_table(name, table)?;
        Ok(())
    }

    fn enable_tfrecord(&self) -> Result<()> {
        let registry = Arc::new(TableRegistry::new(SessionNotices::default()));
        if self.state().config().get_extension::<TableRegistry>().is_some() {
            return plan_err!("TFRecord is already enabled in this session");
        }
        {
            let state = self.state_ref();
            let mut state = state.write();
            let config = state.config_mut();
            config.options_mut().extensions.insert(TfRecordOptions::default());
            config.set_extension(Arc::clone(&registry));
        }
        enable(self, registry)
    }
}
