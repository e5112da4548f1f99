//! Rows of a query as TFRecord files: what COPY and INSERT write. All files of a statement appear when all are whole.

use std::{
    fmt,
    io::Write,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
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
use object_store::{ObjectStore, path::Path};
use percent_encoding::percent_decode_str;
use tfarrow_codec::{Encoder, EncoderBuilder};
use tfarrow_dataset::{Compression, Error, OutputFile, ShardWriter, WholeFile, names};
use tokio::sync::mpsc::Receiver;

use crate::{
    error::external,
    format::EXTENSIONS,
    options::TfRecordOptions,
    outputs::{Outputs, persist},
};

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
    /// Whether where the rows go is known from the beginning.
    is_single: bool,
}

impl TfRecordSink {
    /// Writes where `config` says.
    ///
    /// # Errors
    /// A column that no feature can hold.
    pub(crate) fn try_new(mut config: FileSinkConfig, mut options: TfRecordOptions, stem: String) -> Result<Self> {
        let has_folders = !config.table_partition_cols.is_empty();
        let is_single = config.table_paths.first().is_some_and(|path| config.file_output_mode.single_file_output(path));
        if is_single && !has_folders {
            let name = config.table_paths.first().map(|path| path.prefix().to_string()).unwrap_or_default();
            options.compression = Compression::of_name(&name).1.unwrap_or(options.compression);
        }
        config.file_extension = format!("{}{}", EXTENSIONS[0], options.compression.suffix());
        let has_shards = options.shards.is_some();
        if has_shards {
            // One stream of rows, which the shards deal out among themselves.
            config.file_output_mode = FileOutputMode::SingleFile;
        }
        let schema = written(&config);
        let sink = Self { config, schema, options, stem, is_single: (is_single || has_shards) && !has_folders };
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

    /// An error where something is in the way of these files.
    async fn check_free(&self, names: &[Path], outputs: &Outputs) -> Result<()> {
        for name in names {
            outputs.refuse_existing(name).await.map_err(external)?;
        }
        if let (Some(shards), Some(first)) = (self.options.shards, names.first()) {
            let folder: Path = first.parts().take(first.parts().count().saturating_sub(1)).collect();
            let stem = names::set_name(FilePath::new(first.filename().unwrap_or_default()));
            for other in outputs.names_in(&folder).await {
                let number = names::tf_shard_number(&other, &stem, &self.config.file_extension);
                if number.is_some_and(|(_, count)| count != shards.get()) {
                    let other = outputs.name(&folder.join(other));
                    return exec_err!(
                        "{other}: is a shard of another cut of the same set; remove it, or name another folder"
                    );
                }
            }
        }
        Ok(())
    }

    fn outputs(&self, store: &Arc<dyn ObjectStore>) -> Outputs {
        Outputs::new(self.config.object_store_url.clone(), Arc::clone(store), self.options.overwrite)
    }

    fn output(&self, path: &Path, outputs: &Outputs) -> Result<Output> {
        let encoder = self.encoder()?;
        let file = outputs.create(path).map_err(external)?;
        let name = file.path().to_owned();
        let writer = ShardWriter::new(file, self.options.compression);
        Ok(Output { encoder, frames: Vec::new(), writer, name })
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
        if let (Some(path), true) = (self.config.table_paths.first(), self.is_single) {
            // Before a query runs for hours.
            let store = context.runtime_env().object_store(path)?;
            self.check_free(&self.names(path.prefix()), &self.outputs(&store)).await?;
        }
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
        let (mut tasks, places) = (JoinSet::new(), self.outputs(&store));
        while let Some((path, batches)) = files.recv().await {
            let names = self.names(&path);
            if !self.is_single {
                self.check_free(&names, &places).await?;
            }
            let outputs = names.iter().map(|name| self.output(name, &places)).collect::<Result<_>>()?;
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
        persist(whole).await?;
        Ok(rows)
    }
}

/// Deals the rows out to the files, and closes these. Each batch is cut into as many runs of rows as there are files.
async fn write_files(mut outputs: Vec<Output>, mut batches: Receiver<RecordBatch>) -> Result<(u64, Vec<WholeFile>)> {
    let (mut rows, mut turn) = (0, 0);
    while let Some(batch) = batches.recv().await {
        let (count, files) = (batch.num_rows(), outputs.len());
        for run in 0..files {
            let (from, to) = (run * count / files, (run + 1) * count / files);
            if let Some(output) = outputs.get_mut((turn + run) % files)
                && to > from
            {
                output.write(&batch.slice(from, to - from))?;
            }
        }
        turn = (turn + count) % files.max(1);
        rows += count as u64;
    }
    let mut whole = Vec::new();
    for output in outputs {
        whole.push(output.close()?);
    }
    Ok((rows, whole))
}

/// One file that is being written.
struct Output {
    encoder: Encoder,
    frames: Vec<u8>,
    writer: ShardWriter<OutputFile>,
    name: PathBuf,
}

impl Output {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.frames.clear();
        let encoded = self.encoder.encode(batch, &mut self.frames);
        encoded.map_err(|error| external(WriteError(Box::new(Error::codec(&self.name, error)))))?;
        self.writer.write_all(&self.frames).map_err(|error| external(Error::io(&self.name, error)))
    }

    fn close(self) -> Result<WholeFile> {
        let file = self.writer.finish().map_err(|error| external(Error::io(&self.name, error)))?;
        file.close().map_err(external)
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
