//! Rows of a query as TFRecord files: what COPY and INSERT write. All files of a statement appear when all are whole.

use std::{fmt, io::Write, path::Path as FilePath, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::{
    common::{
        exec_err,
        runtime::{JoinSet, SpawnedTask},
    },
    datasource::{
        file_format::write::demux::DemuxedStreamReceiver,
        physical_plan::{FileOutputMode, FileSink, FileSinkConfig},
        sink::DataSink,
    },
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{DisplayAs, DisplayFormatType, stream::RecordBatchStreamAdapter},
};
use futures::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt, buffered::BufWriter, local::LocalFileSystem, path::Path};
use percent_encoding::percent_decode_str;
use tfarrow_codec::{Encoder, EncoderBuilder};
use tfarrow_dataset::{Compression, Error, OutputFile, ShardWriter, WholeFile, names};
use tokio::{io::AsyncWriteExt, sync::mpsc::Receiver};

use crate::{error::external, format::EXTENSIONS, options::TfRecordOptions};

/// The name that shards have in a folder, where the statement gives none.
pub(crate) const PART: &str = "part";

/// Writes TFRecord files.
#[derive(Debug)]
pub(crate) struct TfRecordSink {
    config: FileSinkConfig,
    /// The schema of what is written, without the columns that become folders.
    schema: SchemaRef,
    options: TfRecordOptions,
    /// What the names of shards begin with, where the statement names no file.
    stem: String,
    is_local: bool,
}

impl TfRecordSink {
    /// Writes where `config` says.
    ///
    /// # Errors
    /// A column that no feature can hold.
    pub(crate) fn try_new(mut config: FileSinkConfig, mut options: TfRecordOptions, stem: String) -> Result<Self> {
        let single = config.table_paths.first().is_some_and(|path| config.file_output_mode.single_file_output(path));
        if single && config.table_partition_cols.is_empty() {
            let name = config.table_paths.first().map(|path| path.prefix().to_string()).unwrap_or_default();
            options.compression = Compression::of_name(&name).1.unwrap_or(options.compression);
        }
        config.file_extension = format!("{}{}", EXTENSIONS[0], options.compression.suffix());
        if options.shards.is_some() {
            // One stream of rows, which the shards deal out among themselves.
            config.file_output_mode = FileOutputMode::SingleFile;
        }
        let schema = written(&config);
        let is_local = config.object_store_url.as_str().starts_with("file:");
        let sink = Self { config, schema, options, stem, is_local };
        // What cannot be written is said before anything is.
        sink.encoder()?;
        Ok(sink)
    }

    fn encoder(&self) -> Result<Encoder> {
        let mut builder = EncoderBuilder::new().with_lossy(self.options.lossy);
        if let Some(record_type) = self.options.record_type {
            builder = builder.with_record_type(record_type);
        }
        builder.build(Arc::clone(&self.schema)).map_err(|error| external(WriteError(Box::new(error))))
    }

    /// The files that the rows for `path` go to.
    fn names(&self, path: &Path) -> Vec<Path> {
        let Some(shards) = self.options.shards.map(usize::from) else { return vec![path.clone()] };
        // Parts of a path are encoded, and stay so; a name that goes into another is taken as it was meant.
        let parts: Vec<_> = path.parts().collect();
        let name = parts.last().map(|part| percent_decode_str(part.as_ref()).decode_utf8_lossy().into_owned());
        let name = name.unwrap_or_default();
        let names_file = self.config.table_partition_cols.is_empty() && name.contains('.');
        // In the folder of a partition, and in one that the statement names, the files' names are ours to give.
        let is_folder = self.config.table_partition_cols.is_empty() && !names_file;
        let stem = if names_file { names::set_name(FilePath::new(&name)) } else { self.stem.clone() };
        let folder: Path =
            if is_folder { path.clone() } else { parts.iter().take(parts.len().saturating_sub(1)).cloned().collect() };
        let name = |index| names::tf_shard_name(&stem, index, shards, &self.config.file_extension);
        (0..shards).map(|index| folder.clone().join(name(index))).collect()
    }

    async fn output(&self, path: &Path, store: &Arc<dyn ObjectStore>) -> Result<Output> {
        let encoder = self.encoder()?;
        let (place, name) = if self.is_local {
            let path = LocalFileSystem::new().path_to_filesystem(path)?;
            let file = OutputFile::create(&path, self.options.overwrite).map_err(external)?;
            (Place::File(Box::new(file)), path.display().to_string())
        } else {
            if !self.options.overwrite && store.head(path).await.is_ok() {
                return Err(external(Error::new(path.to_string(), tfarrow_dataset::ErrorKind::Exists)));
            }
            (Place::Object(Box::new(BufWriter::new(Arc::clone(store), path.clone()))), path.to_string())
        };
        let writer = ShardWriter::new(Vec::new(), self.options.compression);
        Ok(Output { encoder, frames: Vec::new(), writer, place, name })
    }
}

/// The columns that are written.
fn written(config: &FileSinkConfig) -> SchemaRef {
    datafusion::datasource::file_format::write::get_writer_schema(config)
}

impl DisplayAs for TfRecordSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let paths: Vec<_> = self.config.table_paths.iter().map(ToString::to_string).collect();
                write!(f, "TfRecordSink(paths={paths:?}, compression={})", self.options.compression)
            }
            DisplayFormatType::TreeRender => writeln!(f, "format=tfrecord"),
        }
    }
}

#[async_trait]
impl DataSink for TfRecordSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let folders: Vec<_> = self.config.table_partition_cols.iter().map(|(name, _)| name.clone()).collect();
        let schema = data.schema();
        let named = data.map(move |batch| batch.and_then(|batch| named_folders(batch, &folders)));
        FileSink::write_all(self, Box::pin(RecordBatchStreamAdapter::new(schema, named)), context).await
    }
}

/// The batch, where each of its rows has a value in every column that becomes a folder. DataFusion would put those that
/// have none into the folder of some other value.
fn named_folders(batch: RecordBatch, folders: &[String]) -> Result<RecordBatch> {
    let is_null = |name: &&String| batch.column_by_name(name).is_some_and(|column| column.null_count() > 0);
    match folders.iter().find(is_null) {
        None => Ok(batch),
        Some(name) => exec_err!(
            "PARTITIONED BY {name}: it is NULL in a row, which is no folder's name: leave such rows out with WHERE, or give \
             them a value with coalesce({name}, ..)"
        ),
    }
}

#[async_trait]
impl FileSink for TfRecordSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        _context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        mut files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let mut tasks = JoinSet::new();
        while let Some((path, batches)) = files.recv().await {
            let mut outputs = Vec::new();
            for name in self.names(&path) {
                outputs.push(self.output(&name, &store).await?);
            }
            tasks.spawn(write_files(outputs, batches));
        }
        let (mut rows, mut whole) = (0, Vec::new());
        while let Some(done) = tasks.join_next().await {
            let (written, files) = done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
            rows += written;
            whole.extend(files);
        }
        // The rows may have ended with an error. Then no file gets its name.
        demux_task.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
        for file in whole {
            file.persist().await?;
        }
        Ok(rows)
    }
}

/// Deals the rows out to the files, and closes these. Each batch is cut into as many runs of rows as there are files.
async fn write_files(mut outputs: Vec<Output>, mut batches: Receiver<RecordBatch>) -> Result<(u64, Vec<Whole>)> {
    let (mut rows, mut turn) = (0, 0);
    while let Some(batch) = batches.recv().await {
        let (count, files) = (batch.num_rows(), outputs.len());
        for run in 0..files {
            let (from, to) = (run * count / files, (run + 1) * count / files);
            if let Some(output) = outputs.get_mut((turn + run) % files)
                && to > from
            {
                output.write(&batch.slice(from, to - from)).await?;
            }
        }
        turn = (turn + count) % files.max(1);
        rows += count as u64;
    }
    let mut whole = Vec::new();
    for output in outputs {
        whole.push(output.close().await?);
    }
    Ok((rows, whole))
}

/// One file that is being written.
struct Output {
    encoder: Encoder,
    frames: Vec<u8>,
    /// What is compressed and on its way.
    writer: ShardWriter<Vec<u8>>,
    place: Place,
    name: String,
}

enum Place {
    File(Box<OutputFile>),
    Object(Box<BufWriter>),
}

impl Output {
    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.frames.clear();
        let encoded = self.encoder.encode(batch, &mut self.frames);
        encoded.map_err(|error| external(WriteError(Box::new(Error::codec(&self.name, error)))))?;
        self.writer.write_all(&self.frames).map_err(|error| self.failed(error))?;
        let bytes = std::mem::take(self.writer.get_mut());
        self.put(bytes).await
    }

    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        let written = match &mut self.place {
            Place::File(file) => file.write_all(&bytes),
            Place::Object(upload) => Ok(upload.put(Bytes::from(bytes)).await?),
        };
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> DataFusionError {
        external(Error::io(&self.name, error))
    }

    async fn close(mut self) -> Result<Whole> {
        let writer = std::mem::replace(&mut self.writer, ShardWriter::new(Vec::new(), Compression::None));
        let rest = writer.finish().map_err(|error| self.failed(error))?;
        self.put(rest).await?;
        Ok(match self.place {
            Place::File(file) => Whole::File(file.close().map_err(external)?),
            Place::Object(upload) => Whole::Object(upload),
        })
    }
}

/// A file that is whole and has no name yet.
enum Whole {
    File(WholeFile),
    Object(Box<BufWriter>),
}

impl Whole {
    async fn persist(self) -> Result<()> {
        match self {
            Self::File(file) => file.persist().map_err(external),
            Self::Object(mut upload) => Ok(upload.shutdown().await?),
        }
    }
}

/// What cannot be written, and what a statement can say about it.
#[derive(Debug)]
pub(crate) struct WriteError(Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The codec names the program's options; a statement has them too.
        let message = self.0.to_string();
        let in_sql = message
            .replace("with --lossy", "with OPTIONS (lossy true)")
            .replace("--record-type sequence-example", "OPTIONS (record_type 'sequence-example')")
            .replace("--record-type raw", "OPTIONS (record_type 'raw')");
        f.write_str(&in_sql)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // What it says was said, in the words of SQL.
        self.0.source()
    }
}
