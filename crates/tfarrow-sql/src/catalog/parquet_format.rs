//! Parquet as a [`FileFormat`] of DataFusion for the tables of `CREATE EXTERNAL TABLE`, with the
//! columns and errors that files in `FROM` have.
//!
//! Workaround for DataFusion 55: apache/datafusion#24381 (columns of equal names), fixed in 56. The
//! names of columns in errors have no issue there.

use std::{collections::HashMap, path::Path, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{GetExt, Statistics},
    datasource::{
        file_format::{
            FileFormat, FileFormatFactory, FileMeta, file_compression_type::FileCompressionType,
            parquet::ParquetFormatFactory,
        },
        physical_plan::{
            FileScanConfig, FileSinkConfig, FileSource, parquet::metadata::DFParquetMetadata,
        },
        table_schema::TableSchema,
    },
    error::Result,
    parquet::file::metadata::ParquetMetaData,
    physical_expr::{LexOrdering, LexRequirement},
    physical_plan::ExecutionPlan,
};
use object_store::{ObjectMeta, ObjectStore};
use tfarrow_codec::file_schema::with_nullable_items;
use tfarrow_columnar::{check_rows, check_stored_types};
use tfarrow_datafusion::internals::external;
use tfarrow_dataset::{Error, ErrorKind};

use crate::merged_schema::check_different_names;

/// Reads the footer of a Parquet file, which errors name `path`. It stays in the cache of the
/// session, from which DataFusion then takes it.
///
/// # Errors
/// A file that cannot be read.
pub(crate) async fn footer(
    state: &dyn Session,
    store: &dyn ObjectStore,
    object: &ObjectMeta,
) -> Result<Arc<ParquetMetaData>> {
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    DFParquetMetadata::new(store, object)
        .with_file_metadata_cache(Some(cache))
        .fetch_metadata()
        .await
}

/// Checks a footer.
///
/// # Errors
/// A column of a type that the libraries do not have, on which they panic; another number of rows
/// than the row groups have: DataFusion uses one number or the other; two columns of one name.
pub(crate) fn check_footer(path: &Path, footer: &ParquetMetaData) -> Result<()> {
    let checked = check_stored_types(footer).and_then(|()| check_rows(footer));
    checked.map_err(|why| {
        external(Error::new(
            path,
            ErrorKind::Rows {
                part: String::new(),
                row: 0,
                source: why.into(),
            },
        ))
    })?;
    check_different_names(
        path,
        footer
            .file_metadata()
            .schema()
            .get_fields()
            .iter()
            .map(|field| field.name()),
    )
}

/// The columns of a Parquet file as those of a table: functions such as `array_resize` put nulls in
/// lists, and fail where the type of a list excludes them. DataFusion casts the lists of the file.
pub(crate) fn table_columns(schema: &SchemaRef) -> SchemaRef {
    with_nullable_items(schema, true)
}

/// Creates a [`TableFormat`] from the options of a statement.
#[derive(Debug)]
pub(crate) struct TableFormatFactory(ParquetFormatFactory);

impl TableFormatFactory {
    pub(crate) fn new() -> Self {
        Self(ParquetFormatFactory::new())
    }
}

impl GetExt for TableFormatFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for TableFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(TableFormat(self.0.create(state, options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        self.0.default()
    }
}

/// The Parquet format of DataFusion, with other columns.
#[derive(Debug)]
struct TableFormat(Arc<dyn FileFormat>);

#[async_trait]
impl FileFormat for TableFormat {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        for object in objects {
            let footer = footer(state, store.as_ref(), object).await?;
            check_footer(Path::new(&format!("/{}", object.location)), &footer)?;
        }
        Ok(table_columns(
            &self.0.infer_schema(state, store, objects).await?,
        ))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, schema, object).await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.0.infer_ordering(state, store, schema, object).await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        self.0
            .infer_stats_and_ordering(state, store, schema, object)
            .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, config).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0
            .create_writer_physical_plan(input, state, config, order)
            .await
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(schema)
    }
}
