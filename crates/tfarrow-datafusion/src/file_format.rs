//! TFRecord as a [`FileFormat`] of DataFusion, for `COPY .. TO .. STORED AS TFRECORD` and for
//! listing tables.

use std::{collections::HashMap, path::Path, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{GetExt, Statistics, plan_err},
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
use tfarrow_codec::{Category, OnError, Summary};
use tfarrow_dataset::{
    Compression, ReadOptions, ShardReader,
    file_names::{TFRECORD_EXTENSIONS, is_tfrecord_name},
};
use tfarrow_scan::{Inferred, SAMPLE_SHARDS, Sample};
use tokio::runtime::Handle;

use crate::{
    blocking::blocking,
    error::external,
    options::TfRecordOptions,
    scan::{input::open_object, source::TfRecordSource},
    schema::columns::{Columns, visible},
    write::{output_folder::PART, sink::TfRecordSink},
};

/// Creates a `TfRecordFormat` from the options of a statement. DataFusion selects the factory by
/// its file extension.
#[derive(Debug)]
pub struct TfRecordFormatFactory(&'static str);

impl TfRecordFormatFactory {
    /// A factory for each extension of a TFRecord file, compressed or not.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let compressed = Compression::ENDINGS.iter().map(|(extension, _)| *extension);
        TFRECORD_EXTENSIONS.into_iter().chain(compressed).map(Self)
    }

    fn format(&self, options: TfRecordOptions, has_compression: bool) -> Arc<dyn FileFormat> {
        Arc::new(TfRecordFormat {
            options,
            has_compression,
            extension: self.0,
        })
    }
}

impl GetExt for TfRecordFormatFactory {
    fn get_ext(&self) -> String {
        self.0.to_owned()
    }
}

impl FileFormatFactory for TfRecordFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        // DataFusion handles its own options, such as `execution.keep_partition_by_columns`.
        let given = options
            .iter()
            .filter(|(name, _)| !name.starts_with("execution."));
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let has_compression = options.keys().any(|name| name.ends_with(".compression"));
        Ok(self.format(
            TfRecordOptions::of(state.config()).with(given)?,
            has_compression,
        ))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        self.format(TfRecordOptions::default(), false)
    }
}

/// The format of TFRecord files that a statement writes, or that a listing table reads.
///
/// The columns of a listing table are inferred from the option `sample_records` of
/// [`TfRecordOptions`]. A [`TfRecordTable`](crate::TfRecordTable) finds files by content, has
/// columns of folders and metadata, and reads one file on all cores from its own stores.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::{datasource::listing::ListingOptions, prelude::SessionContext};
/// use tfarrow_datafusion::TfRecordFormat;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = SessionContext::new();
/// let options = ListingOptions::new(Arc::new(TfRecordFormat::default()));
/// let folder = format!("{testdata}/shards/");
/// context.register_listing_table("shards", &folder, options, None, None).await?;
/// assert_eq!(context.sql("SELECT label, price FROM shards WHERE label > 2 LIMIT 3").await?.count().await?, 3);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TfRecordFormat {
    options: TfRecordOptions,
    /// Whether the statement has the option `compression`.
    has_compression: bool,
    /// The extension that DataFusion selected the format by.
    extension: &'static str,
}

impl TfRecordFormat {
    /// The format with these options. Metadata columns and `piece_bytes` apply to
    /// [`TfRecordTable`](crate::TfRecordTable) only.
    pub fn new(options: TfRecordOptions) -> Self {
        Self {
            options,
            has_compression: false,
            extension: TFRECORD_EXTENSIONS[0],
        }
    }

    /// Infers the columns of objects from all records or from a sample. Blocks the thread.
    ///
    /// # Errors
    /// An object that cannot be read, a corrupt record unless such records are skipped, and a
    /// feature of several kinds.
    fn infer(
        &self,
        store: &dyn ObjectStore,
        objects: &[ObjectMeta],
        runtime: &Handle,
    ) -> Result<SchemaRef> {
        let TfRecordOptions {
            layout,
            record_type,
            on_conflict,
            limits,
            sample,
            ..
        } = self.options;
        let (step, most) = match sample {
            Sample::All => (1, usize::MAX),
            Sample::Records(records) => (objects.len().div_ceil(SAMPLE_SHARDS).max(1), records),
        };
        let mut summary = Summary::with_limits(0, limits).with_record_type(record_type);
        let mut names = Vec::new();
        for object in objects.iter().step_by(step) {
            summary.set_shard(u32::try_from(names.len()).unwrap_or(u32::MAX));
            names.push(object.location.to_string());
            self.observe(store, object, runtime, most, &mut summary)?;
        }
        let inferred = Inferred::of_summary(summary, names);
        let schema = inferred
            .schema_with(layout, record_type, on_conflict)
            .map_err(external)?;
        Ok(visible(&schema, self.options.bytes_type.is_view()))
    }

    /// Adds up to `most` records of an object to `summary`.
    fn observe(
        &self,
        store: &dyn ObjectStore,
        object: &ObjectMeta,
        runtime: &Handle,
        most: usize,
        summary: &mut Summary,
    ) -> Result<()> {
        let TfRecordOptions {
            verify_crc,
            on_error,
            partial_tail,
            limits,
            ..
        } = self.options;
        let read = ReadOptions {
            on_error,
            partial_tail,
            limits,
            ..ReadOptions::default()
        };
        let name = object.location.to_string();
        let bytes = open_object(store, &object.location, 0, runtime);
        let bytes = bytes.map_err(|error| external(tfarrow_dataset::Error::io(&name, error)))?;
        let mut reader = ShardReader::from_read(bytes, &name, &read).map_err(external)?;
        let mut left = most;
        while left > 0 {
            let Some(records) = reader.next().map_err(external)? else {
                break;
            };
            let count = records.len().min(left);
            let (records, _) = records.split_at(count);
            left -= count;
            records.skip_rejected(
                |records| summary.observe(records, verify_crc),
                |_, _, error| {
                    if on_error == OnError::Skip && error.category() == Category::Corrupt {
                        return Ok(());
                    }
                    Err(external(tfarrow_dataset::Error::codec(&name, error)))
                },
            )?;
        }
        Ok(())
    }
}

/// TFRecord with the default options.
impl Default for TfRecordFormat {
    fn default() -> Self {
        Self::new(TfRecordOptions::default())
    }
}

#[async_trait]
impl FileFormat for TfRecordFormat {
    fn get_ext(&self) -> String {
        format!(
            "{}{}",
            TFRECORD_EXTENSIONS[0],
            self.options.compression.suffix()
        )
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
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let format = Self {
            options: self.options.clone(),
            ..*self
        };
        let store = Arc::clone(store);
        let objects = objects.to_vec();
        let runtime = Handle::current();
        blocking(move || format.infer(store.as_ref(), &objects, &runtime)).await
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
            return plan_err!(
                "{name}: the extension is that of {named}, but the option compression is {compression}"
            );
        }
        write(input, config, order, self.options.clone(), PART.to_owned())
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        let columns = Arc::new(Columns::decoded(Arc::clone(schema.file_schema())));
        let source = TfRecordSource::of_columns(columns, schema.table_partition_cols().to_vec());
        Arc::new(
            source
                .with_verify_crc(self.options.verify_crc)
                .with_on_error(self.options.on_error)
                .with_partial_tail(self.options.partial_tail)
                .with_limits(self.options.limits)
                .with_pushdown_filters(self.options.pushdown_filters)
                .with_preserve_order(self.options.preserve_order),
        )
    }
}

/// Plans a sink that writes the rows of `input`. The names of shards start with `stem` unless the
/// statement names a file.
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
