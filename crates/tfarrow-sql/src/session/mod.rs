//! Sessions with the SQL of this crate: [`session_context`] creates one, and [`enable_sql`] extends
//! any session.

mod all_columns;
pub(crate) mod column_hints;
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
    prelude::{SessionConfig, SessionContext},
};
use tfarrow_datafusion::{
    LongRows, OnNotice, PreserveOrder, SessionContextTfRecordExt, SkipRecords, SortedFiles,
    TfRecordOptions,
    internals::{SessionNotices, TableRegistry, merge_stream_bytes, register_format_and_functions},
};

use crate::{
    catalog::{
        parquet_format::TableFormatFactory, summarize::SummarizeFunction,
        table_function::ReadTfRecord, url_table::UrlTables,
    },
    engine::Engine,
    functions::{self, bounded::bounded},
    optimizer::{
        cancellation::Cancellation,
        float_statistics::FloatStatistics,
        input_file_name::InputFileName,
        lateral_unnest::LateralUnnest,
        normalize_floats::{NormalizeFloats, with_normalized_floats},
        volatile_keys::VolatileKeys,
    },
    session::{object_stores::UrlStores, query_planner::SessionPlanner},
    text::format::TextFormatFactory,
};

/// Options of [`session_context`].
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// Settings of DataFusion. The settings of this crate are added.
    pub config: SessionConfig,
    /// Memory pool and temporary folders of DataFusion. Its registry of object stores is replaced
    /// by one that opens stores by URL.
    pub runtime: RuntimeEnvBuilder,
    /// Maximum bytes of sorts, joins and groups together, with a fan-in of merges that fits;
    /// replaces the pool of `runtime`. Operators that need more spill to temporary files. The limit
    /// is shared fairly, whereas `SET datafusion.runtime.memory_limit` replaces it by a pool
    /// without fairness.
    pub memory_limit: Option<usize>,
    /// Initial values of the options `tfarrow.x`.
    pub tables: TfRecordOptions,
    /// Callback for warnings: features without a column, and skipped records.
    pub on_notice: Option<OnNotice>,
    /// Handle that cancels queries of the session, including queries that compute for a long time
    /// without an output.
    pub cancellation: Cancellation,
    /// The engine that runs the plans of the session; `None`: this process.
    pub engine: Option<Arc<dyn Engine>>,
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

/// Creates a session in which the name of a file, a folder or a glob is a table: `SELECT avg(label)
/// FROM 'shards/*.tfrecord'`.
///
/// TFRecord, Parquet and Arrow files are recognized by content, CSV and JSON files by extension.
/// Files that COPY and INSERT write, in any format, get their names when all files of the statement
/// are complete, and replace existing files only with the option `overwrite`.
///
/// ```
/// use tfarrow_sql::{SessionOptions, session_context};
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
    let SessionOptions {
        config,
        runtime,
        memory_limit,
        mut tables,
        on_notice,
        cancellation,
        engine,
    } = options;
    let runtime = match memory_limit {
        Some(bytes) => limited(runtime, bytes, &config),
        None => runtime,
    };
    if engine.is_some() {
        tables.prepare_for_engine();
    }
    let notices = SessionNotices { on_notice };
    let registry = Arc::new(TableRegistry::new(notices.clone()));
    let config = with_settings(config, tables)
        .with_extension(Arc::clone(&registry))
        .with_extension(Arc::new(notices));
    // Every query lists folders again, so that it reads new files.
    let runtime = runtime
        .with_object_list_cache_limit(0)
        .with_object_store_registry(Arc::new(UrlStores::default()));
    let runtime = runtime.build_arc()?;
    let files = Arc::new(UrlTables::new(Arc::clone(&registry)));
    let named: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
    let catalogs = DynamicFileCatalog::new(named, Arc::clone(&files) as _);
    let mut rules = PhysicalOptimizer::new().rules;
    rules.splice(
        ..0,
        [Arc::new(FloatStatistics) as _, Arc::new(InputFileName) as _],
    );
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_catalog_list(Arc::new(catalogs))
        .with_default_features()
        .with_analyzer_rule(Arc::new(LateralUnnest))
        .with_analyzer_rule(Arc::new(VolatileKeys))
        .with_analyzer_rule(Arc::new(NormalizeFloats))
        .with_optimizer_rules(with_normalized_floats(Optimizer::new().rules))
        .with_physical_optimizer_rules(rules)
        .with_physical_optimizer_rule(Arc::new(SortedFiles))
        .with_physical_optimizer_rule(Arc::new(PreserveOrder))
        .with_physical_optimizer_rule(Arc::new(SkipRecords))
        .with_physical_optimizer_rule(Arc::new(LongRows))
        .with_query_planner(Arc::new(SessionPlanner {
            cancellation,
            engine: engine.clone(),
        }));
    let state = engine.map_or(state.clone(), |engine| engine.prepare(state));
    let context = SessionContext::new_with_state(state.build());
    register_format_and_functions(&context)?;
    register(&context, registry)?;
    let functions: Vec<_> = bounded(context.state().scalar_functions(), memory_limit).collect();
    for function in functions {
        context.register_udf(function);
    }
    register_formats(&context)?;
    files.bind(&context);
    Ok(context)
}

/// Adds the settings that this crate needs, and the options of tables.
fn with_settings(config: SessionConfig, tables: TfRecordOptions) -> SessionConfig {
    let mut config = config
        .with_information_schema(true)
        .with_option_extension(tables);
    // Dynamic filters of min and max aggregates only prune files, and TFRecord files have no
    // statistics to prune by. While they are enabled, `TfRecordSource` accepts no dynamic filters
    // at all.
    config
        .options_mut()
        .optimizer
        .enable_aggregate_dynamic_filter_pushdown = false;
    // The metadata of Parquet files has the type of their records, which COPY writes.
    config.options_mut().execution.parquet.skip_metadata = false;
    config
}

/// Registers the formats of COPY and of external tables.
fn register_formats(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    for factory in TextFormatFactory::all() {
        state.register_file_format(Arc::new(factory), true)?;
    }
    state.register_file_format(Arc::new(TableFormatFactory::new()), true)
}

/// Adds a memory pool of `bytes` bytes with fair shares, and bounds merges, which do not release
/// memory, to half of it.
fn limited(runtime: RuntimeEnvBuilder, bytes: usize, config: &SessionConfig) -> RuntimeEnvBuilder {
    let merges = config.target_partitions().max(1);
    let fan_in = bytes / 2 / merges / merge_stream_bytes(&config.options().execution).max(1);
    runtime
        .with_memory_pool(Arc::new(FairSpillPool::new(bytes)))
        .with_max_spill_merge_fan_in(fan_in.max(2))
}

/// Registers `read_tfrecord`, `SUMMARIZE`, and the functions that DataFusion does not have, or that
/// replace its own.
fn register(context: &SessionContext, registry: Arc<TableRegistry>) -> Result<()> {
    let (octet_length, aggregates) = functions::replaced();
    context.register_udf(octet_length);
    for aggregate in aggregates {
        context.register_udaf(aggregate);
    }
    let state = context.state_ref();
    let mut state = state.write();
    datafusion_functions_json::register_all(&mut *state)?;
    state.register_relation_planner(Arc::new(SummarizeFunction(Arc::clone(&registry))))?;
    state.register_relation_planner(Arc::new(ReadTfRecord(registry)))
}

/// Enables the SQL of this crate in a session that [`session_context`] did not create: what
/// [`enable_tfrecord`](SessionContextTfRecordExt::enable_tfrecord) does, `read_tfrecord(..)`,
/// `SUMMARIZE`, and the functions. Names of files in `FROM` are not enabled. For long records under
/// a memory limit, build the state with [`LongRows`](tfarrow_datafusion::LongRows).
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = SessionContext::new();
/// tfarrow_sql::enable_sql(&context)?;
/// let query = format!("SELECT * FROM read_tfrecord('{testdata}/scalar.tfrecord', layout => 'list') LIMIT 1");
/// assert_eq!(context.sql(&query).await?.count().await?, 1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// TFRecord is already enabled in the session.
pub fn enable_sql(context: &SessionContext) -> Result<()> {
    context.enable_tfrecord()?;
    match context.state().config().get_extension::<TableRegistry>() {
        Some(registry) => register(context, registry),
        None => plan_err!("internal error: the session has no registry of tables"),
    }
}
