//! A session that knows TFRecord, and what makes any session know it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::{
    catalog::{CatalogProviderList, DynamicFileCatalog, MemoryCatalogProviderList},
    error::Result,
    execution::{SessionStateBuilder, runtime_env::RuntimeEnvBuilder},
    prelude::{DataFrame, SessionConfig, SessionContext},
};

use crate::{
    functions, options::TfRecordOptions, samples::Samples, table::TfRecordTable, unknown::OnUnknownFeatures,
    url_table::UrlTables,
};

/// What a session is made with.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// DataFusion's own settings. Ours are added.
    pub config: SessionConfig,
    /// Its memory, its disks, its stores.
    pub runtime: RuntimeEnvBuilder,
    /// How TFRecord tables are made, until a `SET tfarrow.x` says something else.
    pub tables: TfRecordOptions,
    /// What is told of features that a scan meets and its table has no column for.
    pub on_unknown_features: Option<OnUnknownFeatures>,
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// A session in which the name of a file, a folder or a glob is a table: `SELECT avg(label) FROM 'shards/*.tfrecord'`.
///
/// What is TFRecord, Parquet or Arrow is told by content. CSV and JSON files are tables too, by their names' endings.
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
    let SessionOptions { config, runtime, tables, on_unknown_features } = options;
    let samples = Arc::new(Samples::default());
    let config =
        config.with_information_schema(true).with_option_extension(tables).with_extension(Arc::clone(&samples));
    // Which files a folder has is asked for anew by every query, so that new files are seen.
    let runtime = runtime.with_object_list_cache_limit(0).build_arc()?;
    let files = Arc::new(UrlTables::new(samples, on_unknown_features));
    let named: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
    let catalogs = DynamicFileCatalog::new(named, Arc::clone(&files) as _);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_catalog_list(Arc::new(catalogs))
        .with_default_features()
        .build();
    let context = SessionContext::new_with_state(state);
    functions::all().for_each(|function| context.register_udf(function));
    files.bind(&context);
    Ok(context)
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
}

#[async_trait]
impl SessionContextTfRecordExt for SessionContext {
    async fn read_tfrecord(&self, source: &str, options: &TfRecordOptions) -> Result<DataFrame> {
        self.read_table(Arc::new(TfRecordTable::open(source, options).await?))
    }

    async fn register_tfrecord(&self, name: &str, source: &str, options: &TfRecordOptions) -> Result<()> {
        let table = TfRecordTable::open(source, options).await?;
        if let Some(samples) = self.state().config().get_extension::<Samples>() {
            samples.remember(name, table.origin());
        }
        self.register_table(name, Arc::new(table))?;
        Ok(())
    }
}
