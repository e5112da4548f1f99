//! TFRecord as a [`FileFormat`] of DataFusion, for `COPY .. TO .. STORED AS TFRECORD`.

use std::{collections::HashMap, path::Path, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{GetExt, Statistics, not_impl_err, plan_err},
    datasource::{
        file_format::{FileFormat, FileFormatFactory, file_compression_type::FileCompressionType},
        physical_plan::{FileScanConfig, FileSinkConfig, FileSource},
        sink::DataSinkExec,
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    physical_expr::LexRequirement,
    physical_plan::ExecutionPlan,
};
use object_store::{ObjectMeta, ObjectStore};
use tfarrow_dataset::{
    Compression,
    file_names::{TFRECORD_EXTENSIONS, is_tfrecord_name},
};

use crate::{
    options::TfRecordOptions,
    scan::source::TfRecordSource,
    schema::columns::Columns,
    write::{output_folder::PART, sink::TfRecordSink},
};

/// Creates a `TfRecordFormat` from the options of a statement. DataFusion selects the factory by its file extension.
#[derive(Debug)]
pub struct TfRecordFormatFactory(&'static str);

impl TfRecordFormatFactory {
    /// A factory for each extension of a TFRecord file, compressed or not.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let compressed = Compression::ENDINGS.iter().map(|(extension, _)| *extension);
        TFRECORD_EXTENSIONS.into_iter().chain(compressed).map(Self)
    }

    fn format(&self, options: TfRecordOptions, has_compression: bool) -> Arc<dyn FileFormat> {
        Arc::new(TfRecordFormat { options, has_compression, extension: self.0 })
    }
}

impl GetExt for TfRecordFormatFactory {
    fn get_ext(&self) -> String {
        self.0.to_owned()
    }
}

impl FileFormatFactory for TfRecordFormatFactory {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        // DataFusion handles its own options, such as `execution.keep_partition_by_columns`.
        let given = options.iter().filter(|(name, _)| !name.starts_with("execution."));
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let has_compression = options.keys().any(|name| name.ends_with(".compression"));
        Ok(self.format(TfRecordOptions::of(state.config()).with(given)?, has_compression))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        self.format(TfRecordOptions::default(), false)
    }
}

/// The format of the TFRecord files that a statement writes. Files are read by [`TfRecordTable`](crate::TfRecordTable)
/// instead of a listing table.
#[derive(Debug)]
pub(crate) struct TfRecordFormat {
    options: TfRecordOptions,
    /// Whether the statement has the option `compression`.
    has_compression: bool,
    /// The extension that DataFusion selected the format by.
    extension: &'static str,
}

#[async_trait]
impl FileFormat for TfRecordFormat {
    fn get_ext(&self) -> String {
        format!("{}{}", TFRECORD_EXTENSIONS[0], self.options.compression.suffix())
    }

    fn get_ext_with_compression(&self, _compression: &FileCompressionType) -> Result<String> {
        Ok(self.get_ext())
    }

    /// None, because DataFusion has no zlib.
    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        not_impl_err!(
            "TFRecord files cannot be read by a listing table; name them in FROM '..', in read_tfrecord('..') or in \
             CREATE EXTERNAL TABLE .. STORED AS TFRECORD"
        )
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        _state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let name = &config.original_url;
        if !TFRECORD_EXTENSIONS.contains(&self.extension) && !is_tfrecord_name(Path::new(name)) {
            return plan_err!(
                "{name}: the extension .{0} is supported for TFRecord files only; use .tfrecord.{0}, or write STORED AS \
                 TFRECORD",
                self.extension
            );
        }
        let compression = self.options.compression;
        if let (Some(named), true) = (Compression::of_name(name).1, self.has_compression)
            && named != compression
        {
            return plan_err!("{name}: the extension is that of {named}, but the option compression is {compression}");
        }
        write(input, config, order, self.options.clone(), PART.to_owned())
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        let columns = Arc::new(Columns::decoded(Arc::clone(schema.file_schema())));
        Arc::new(TfRecordSource::of_columns(columns, schema.table_partition_cols().to_vec()))
    }
}

/// Plans a sink that writes the rows of `input`. The names of shards start with `stem` unless the statement names a file.
///
/// # Errors
/// The query has no columns, or a column cannot be encoded as a feature.
pub(crate) fn write(
    input: Arc<dyn ExecutionPlan>,
    config: FileSinkConfig,
    order: Option<LexRequirement>,
    options: TfRecordOptions,
    stem: String,
) -> Result<Arc<dyn ExecutionPlan>> {
    if input.schema().fields().is_empty() {
        return plan_err!("the query has no columns to write");
    }
    let sink = TfRecordSink::try_new(config, options, stem)?;
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
}
