//! TFRecord as a file format of DataFusion's, for `COPY .. TO .. STORED AS TFRECORD`.

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
use tfarrow_dataset::{Compression, names};

use crate::{columns::Columns, options::TfRecordOptions, sink::PART, sink::TfRecordSink, source::TfRecordSource};

/// Endings of TFRecord files' names, the usual one first.
pub(crate) const EXTENSIONS: [&str; 5] = ["tfrecord", "tfrecords", "tfrec", "tfr", "record"];

/// Makes [`TfRecordFormat`]s of what a statement says. DataFusion knows them by what a file's name ends in.
#[derive(Debug)]
pub(crate) struct TfRecordFormatFactory(&'static str);

impl TfRecordFormatFactory {
    /// One for each ending that a file's name may have.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let compressed = Compression::ENDINGS.iter().map(|(ending, _)| *ending);
        EXTENSIONS.into_iter().chain(compressed).map(Self)
    }

    fn format(&self, options: TfRecordOptions, says_compression: bool) -> Arc<dyn FileFormat> {
        Arc::new(TfRecordFormat { options, says_compression, ending: self.0 })
    }
}

impl GetExt for TfRecordFormatFactory {
    fn get_ext(&self) -> String {
        self.0.to_owned()
    }
}

impl FileFormatFactory for TfRecordFormatFactory {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        // What is DataFusion's own, as `execution.keep_partition_by_columns`, it has taken itself.
        let given = options.iter().filter(|(name, _)| !name.starts_with("execution."));
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let says_compression = options.keys().any(|name| name.ends_with(".compression"));
        Ok(self.format(TfRecordOptions::of(state.config()).with(given)?, says_compression))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        self.format(TfRecordOptions::default(), false)
    }
}

/// TFRecord files: written by statements. Those that are read are tables of our own, which need no listing of
/// DataFusion's.
#[derive(Debug)]
pub(crate) struct TfRecordFormat {
    options: TfRecordOptions,
    /// Whether the statement itself says how files are compressed.
    says_compression: bool,
    /// The ending that it was known by.
    ending: &'static str,
}

#[async_trait]
impl FileFormat for TfRecordFormat {
    fn get_ext(&self) -> String {
        format!("{}{}", EXTENSIONS[0], self.options.compression.suffix())
    }

    fn get_ext_with_compression(&self, _compression: &FileCompressionType) -> Result<String> {
        Ok(self.get_ext())
    }

    /// None that DataFusion knows: zlib is not among them.
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
            "TFRecord files are no listing table: name them in FROM '..', in read_tfrecord('..') or in CREATE EXTERNAL \
             TABLE .. STORED AS TFRECORD"
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
        if !EXTENSIONS.contains(&self.ending) && !names::says_tfrecord(Path::new(name)) {
            return plan_err!(
                "{name}: of compressed files only TFRecord is written: call it .tfrecord.{}, or say STORED AS TFRECORD",
                self.ending
            );
        }
        let said = self.options.compression;
        if let (Some(named), true) = (Compression::of_name(name).1, self.says_compression)
            && named != said
        {
            return plan_err!("{name}: is called {named}, and is to have the compression {said}");
        }
        write(input, config, order, self.options.clone(), PART.to_owned())
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        let columns = Arc::new(Columns::decoded(Arc::clone(schema.file_schema())));
        Arc::new(TfRecordSource::of_columns(columns, schema.table_partition_cols().to_vec()))
    }
}

/// The plan that writes the rows of `input`, to shards whose names begin with `stem` where no other is given.
pub(crate) fn write(
    input: Arc<dyn ExecutionPlan>,
    config: FileSinkConfig,
    order: Option<LexRequirement>,
    options: TfRecordOptions,
    stem: String,
) -> Result<Arc<dyn ExecutionPlan>> {
    if input.schema().fields().is_empty() {
        return plan_err!("nothing to write: the query has no column");
    }
    let sink = TfRecordSink::try_new(config, options, stem)?;
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
}
