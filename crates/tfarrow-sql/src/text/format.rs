//! CSV and JSON as a [`FileFormat`] of DataFusion.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{GetExt, Statistics, internal_err},
    datasource::{
        file_format::{
            FileFormat, FileFormatFactory,
            csv::{CsvFormat, CsvFormatFactory},
            file_compression_type::FileCompressionType,
            json::{JsonFormat, JsonFormatFactory},
        },
        physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource},
        sink::DataSinkExec,
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    physical_expr::LexRequirement,
    physical_plan::ExecutionPlan,
};
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore};
use tfarrow_columnar::{TextColumns, unify};
use tfarrow_datafusion::internals::{blocking, external};
use tokio::runtime::Handle;

use crate::{
    merged_schema::merged,
    text::{
        inferred_files::InferredFiles, object::TextObject, options::TextOptions, sink::TextSink,
        source::TextSource,
    },
};

/// Creates a [`TextFormat`] from the options of a statement, which DataFusion's own factory parses.
#[derive(Debug)]
pub(crate) struct TextFormatFactory(Arc<dyn FileFormatFactory>);

impl TextFormatFactory {
    /// The factories of CSV and of JSON.
    pub(crate) fn all() -> [Self; 2] {
        [
            Self(Arc::new(CsvFormatFactory::new())),
            Self(Arc::new(JsonFormatFactory::new())),
        ]
    }
}

impl GetExt for TextFormatFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for TextFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(TextFormat::of(self.0.create(state, options)?)?))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        // DataFusion asks for the name of the format only.
        self.0.default()
    }
}

/// The format of CSV or JSON files.
#[derive(Debug)]
pub(crate) struct TextFormat {
    options: TextOptions,
    inner: Arc<dyn FileFormat>,
    inferred: Arc<InferredFiles>,
}

impl TextFormat {
    /// The format with the options of a format of DataFusion.
    fn of(inner: Arc<dyn FileFormat>) -> Result<Self> {
        let options = if let Some(csv) = inner.downcast_ref::<CsvFormat>() {
            TextOptions::Csv(csv.options().clone())
        } else if let Some(json) = inner.downcast_ref::<JsonFormat>() {
            TextOptions::Json(json.options().clone())
        } else {
            return internal_err!("the format {} is neither CSV nor JSON", inner.get_ext());
        };
        Ok(Self {
            options,
            inner,
            inferred: Arc::default(),
        })
    }

    /// Infers the columns of files, which have these names in errors. A column has the type of its
    /// values in all files.
    ///
    /// # Errors
    /// A file cannot be read, or a column has forms in two files that no type holds.
    pub(crate) async fn infer(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        files: Vec<(ObjectMeta, PathBuf)>,
    ) -> Result<SchemaRef> {
        let options = self.options.clone().of_session(state.config_options());
        let stop = StopOnDrop::default();
        let mut texts = Vec::with_capacity(files.len());
        for (file, name) in &files {
            let object = TextObject {
                store: Arc::clone(store),
                location: file.location.clone(),
                name: name.clone(),
            };
            texts.push(object.text(&options, Arc::clone(&stop.0), Handle::current())?);
        }
        let rows = options.inferred_rows();
        let threads = state.config().target_partitions();
        let found = blocking(move || {
            unify(&texts, TextColumns::OfAll, rows, threads, &|_, _| {
                ControlFlow::Continue(())
            })
            .map_err(external)
        });
        let found = found.await?;
        let mut schemas = Vec::with_capacity(files.len());
        for ((file, name), found) in files.into_iter().zip(found) {
            self.inferred.add(file, found.has_row_per_line);
            schemas.push((name.display().to_string(), found.schema));
        }
        merged(&schemas)
    }
}

/// Stops the readers of texts when it is dropped, as when a query is cancelled.
#[derive(Debug, Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The name of an object in errors: the path of a local file.
async fn name_of(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<PathBuf> {
    let got = store
        .get_opts(
            &file.location,
            GetOptions {
                head: true,
                ..GetOptions::default()
            },
        )
        .await?;
    Ok(match got.payload {
        GetResultPayload::File(_, path) => path,
        GetResultPayload::Stream(_) => PathBuf::from(file.location.as_ref()),
    })
}

#[async_trait]
impl FileFormat for TextFormat {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.inner.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let mut files = Vec::with_capacity(objects.len());
        for object in objects {
            files.push((object.clone(), name_of(store.as_ref(), object).await?));
        }
        // Columns have the order of the first file, and stores list files in any order.
        files.sort_by(|(one, _), (other, _)| one.location.cmp(&other.location));
        self.infer(state, store, files).await
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(source) = config.file_source().downcast_ref::<TextSource>() else {
            return internal_err!("the scan is not one of text files");
        };
        // Settings of the session may have changed since the table was created.
        let options = self.options.clone().of_session(state.config_options());
        let source = source.clone().with_options(options);
        Ok(DataSourceExec::from_data_source(
            FileScanConfigBuilder::from(config)
                .with_source(Arc::new(source))
                .build(),
        ))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let written = self
            .inner
            .create_writer_physical_plan(input, state, config, order)
            .await?;
        let Some(exec) = written.downcast_ref::<DataSinkExec>() else {
            return internal_err!("the writer of {} is no sink", self.get_ext());
        };
        let sink = TextSink::of(exec.sink())?;
        Ok(Arc::new(DataSinkExec::new(
            Arc::clone(exec.input()),
            Arc::new(sink),
            exec.sort_order().clone(),
        )))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(TextSource::new(self.options.clone(), table_schema).with_inferred(&self.inferred))
    }
}
