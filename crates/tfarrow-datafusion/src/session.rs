//! TFRecord in any session of DataFusion.

use std::sync::Arc;

use datafusion::{
    common::plan_err,
    error::Result,
    prelude::{DataFrame, SessionContext},
};

use crate::{
    file_format::TfRecordFormatFactory,
    functions,
    notice::SessionNotices,
    options::TfRecordOptions,
    table::{
        TfRecordTable,
        external_table::TfRecordTableFactory,
        registry::{TableRegistry, queried},
    },
};

/// Registers the format of statements and the functions.
pub fn register_format_and_functions(context: &SessionContext) -> Result<()> {
    for function in functions::all() {
        context.register_udf(function);
    }
    let state = context.state_ref();
    let mut state = state.write();
    state
        .table_factories_mut()
        .insert("TFRECORD".to_owned(), Arc::new(TfRecordTableFactory));
    for factory in TfRecordFormatFactory::all() {
        state.register_file_format(Arc::new(factory), true)?;
    }
    Ok(())
}

/// Extends any [`SessionContext`] with TFRecord.
pub trait SessionContextTfRecordExt {
    /// Returns a data frame of `source`, which is a file, a folder, a glob, or `-` for standard
    /// input.
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
    fn read_tfrecord(
        &self,
        source: &str,
        options: &TfRecordOptions,
    ) -> impl Future<Output = Result<DataFrame>> + Send;

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

    /// Enables `CREATE EXTERNAL TABLE .. STORED AS TFRECORD`, `COPY .. TO .. STORED AS TFRECORD`,
    /// `SET tfarrow.x`, and the functions for tensors, images and events. For long records under a
    /// memory limit, build the state with [`LongRows`](crate::LongRows).
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use tfarrow_datafusion::SessionContextTfRecordExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    /// let context = SessionContext::new();
    /// context.enable_tfrecord()?;
    /// context.sql(&format!("CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{testdata}/scalar.tfrecord'")).await?;
    /// assert_eq!(context.sql("SELECT id FROM t LIMIT 1").await?.count().await?, 1);
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

    async fn register_tfrecord(
        &self,
        name: &str,
        source: &str,
        options: &TfRecordOptions,
    ) -> Result<()> {
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
        if self
            .state()
            .config()
            .get_extension::<TableRegistry>()
            .is_some()
        {
            return plan_err!("TFRecord is already enabled in this session");
        }
        {
            let state = self.state_ref();
            let mut state = state.write();
            let config = state.config_mut();
            config
                .options_mut()
                .extensions
                .insert(TfRecordOptions::default());
            config.set_extension(registry);
        }
        register_format_and_functions(self)
    }
}
