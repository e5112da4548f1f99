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
        exec_err, internal_err,
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
use futures::{StreamExt, future};
use object_store::{ObjectStore, path::Path};
use percent_encoding::percent_decode_str;
use tfarrow_codec::{Encoder, EncoderBuilder, frame};
use tfarrow_dataset::{Compression, Error, OutputFile, ShardWriter, WholeFile, names};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    error::external,
    format::EXTENSIONS,
    options::TfRecordOptions,
    outputs::{Outputs, persist},
    table::blocking,
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

    /// Whether the rows are to be written in the order of the files that they come from.
    pub(crate) fn preserves_order(&self) -> bool {
        self.options.preserve_order
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
        let file = outputs.create(path).map_err(external)?;
        let name = file.path().to_owned();
        Ok(Output { writer: ShardWriter::new(file, self.options.compression), name })
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
            tasks.spawn(write_files(self.encoder()?, outputs, batches));
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

/// Encodes the rows, deals the records out to the files, and closes these.
///
/// Which file a record goes to depends on its number alone, so that the same rows always give the same files. One thread
/// encodes, so that errors have the numbers of rows; each file is compressed and written on a thread of its own.
async fn write_files(
    encoder: Encoder,
    mut outputs: Vec<Output>,
    batches: Receiver<RecordBatch>,
) -> Result<(u64, Vec<WholeFile>)> {
    let name = outputs.first().map(|output| output.name.clone()).unwrap_or_default();
    let (send, mut encoded) = channel(1);
    let encoding = SpawnedTask::spawn(encode(encoder, name, batches, send));
    let mut records = 0;
    while let Some(frames) = encoded.recv().await {
        let shares = match outputs.len() {
            1 => vec![frames],
            files => deal(&frames, files, &mut records)?,
        };
        outputs = on_threads(outputs.into_iter().zip(shares), |(output, frames)| output.write(&frames)).await?;
    }
    let rows = encoding.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
    Ok((rows, on_threads(outputs, Output::close).await?))
}

/// Encodes the rows of all batches, and returns how many there were.
async fn encode(
    encoder: Encoder,
    name: PathBuf,
    mut batches: Receiver<RecordBatch>,
    frames: Sender<Vec<u8>>,
) -> Result<u64> {
    let (mut encoder, mut rows) = (encoder, 0);
    while let Some(batch) = batches.recv().await {
        rows += batch.num_rows() as u64;
        let name = name.clone();
        let encoded = blocking(move || {
            let mut frames = Vec::new();
            let encoded = encoder.encode(&batch, &mut frames);
            encoded.map_err(|error| external(WriteError(Box::new(Error::codec(name, error)))))?;
            Ok((encoder, frames))
        });
        let done = encoded.await?;
        encoder = done.0;
        if frames.send(done.1).await.is_err() {
            // Writing has failed, which says why.
            break;
        }
    }
    Ok(rows)
}

/// The frames that each of so many files gets: the record of number `n` goes to file `n % files`. `records` counts them.
fn deal(frames: &[u8], files: usize, records: &mut u64) -> Result<Vec<Vec<u8>>> {
    let mut shares = vec![Vec::new(); files];
    let mut rest = frames;
    while let Some(length) = frame::length(rest) {
        let end = frame::HEADER + length as usize + frame::FOOTER;
        let Some((record, after)) = rest.split_at_checked(end) else { break };
        if let Some(share) = shares.get_mut((*records % files as u64) as usize) {
            share.extend_from_slice(record);
        }
        *records += 1;
        rest = after;
    }
    if rest.is_empty() { Ok(shares) } else { internal_err!("the encoder wrote bytes that are no frame") }
}

/// Does `work` with each item on a thread that may block. The results are in the items' order.
async fn on_threads<T: Send + 'static, U: Send + 'static>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<U> + Clone + Send + 'static,
) -> Result<Vec<U>> {
    let tasks = items.into_iter().map(|item| {
        let work = work.clone();
        blocking(move || work(item))
    });
    future::try_join_all(tasks).await
}

/// One file that is being written.
struct Output {
    writer: ShardWriter<OutputFile>,
    name: PathBuf,
}

impl Output {
    fn write(mut self, frames: &[u8]) -> Result<Self> {
        self.writer.write_all(frames).map_err(|error| external(Error::io(&self.name, error)))?;
        Ok(self)
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
        // Causes whose words are part of the message are skipped: they name the program's options.
        let message = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(said) = cause.filter(|cause| message.contains(&cause.to_string())) {
            cause = said.source();
        }
        cause
    }
}
