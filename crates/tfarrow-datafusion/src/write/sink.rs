//! The sink of COPY and INSERT to TFRecord. All files of a statement get their names after the last
//! one is complete.
//!
//! ```text
//!                           ┌▶ encode batches ─▶ deal records out ─▶ compress and write, a thread per shard ─┐
//! rows ─▶ demux by folder ──┼▶ ..                                                                            ├▶ persist
//!                           └▶ ..                                                                            ┘
//! ```

use std::{
    fmt,
    io::Write,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use arrow_array::RecordBatch;
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
    physical_plan::{DisplayAs, DisplayFormatType},
};
use futures::future;
use object_store::{ObjectStore, path::Path};
use percent_encoding::percent_decode_str;
use tfarrow_codec::{Encoder, WriterBuilder, frame};
use tfarrow_dataset::{CompleteFile, Compression, Error, OutputFile, ShardWriter, file_names};
use tfarrow_scan::RowLosses;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    blocking::blocking,
    error::external,
    notice::SessionNotices,
    options::TfRecordOptions,
    write::{
        output_folder::{OutputFolder, PART},
        outputs::{OutputStore, persist, persist_in},
    },
};

/// Writes TFRecord files.
#[derive(Debug)]
pub struct TfRecordSink {
    config: FileSinkConfig,
    /// The schema of the files, without the partition columns, which become folders.
    schema: SchemaRef,
    options: TfRecordOptions,
    /// The stem of the names of shards, if the statement names no file.
    stem: String,
    /// Whether all rows go to files whose names are known before the first row.
    is_single: bool,
}

impl TfRecordSink {
    /// Creates the sink for the paths of `config`.
    ///
    /// # Errors
    /// A column cannot be encoded as a feature.
    pub(crate) fn try_new(
        mut config: FileSinkConfig,
        mut options: TfRecordOptions,
        stem: String,
    ) -> Result<Self> {
        let has_folders = !config.table_partition_cols.is_empty();
        let is_single = config
            .table_paths
            .first()
            .is_some_and(|path| config.file_output_mode.single_file_output(path));
        if is_single && !has_folders {
            let name = config
                .table_paths
                .first()
                .map(|path| path.prefix().to_string())
                .unwrap_or_default();
            options.compression = Compression::of_name(&name).1.unwrap_or(options.compression);
        }
        config.file_extension = format!(
            "{}{}",
            file_names::TFRECORD_EXTENSIONS[0],
            options.compression.suffix()
        );
        let has_shards = options.shards.is_some();
        if has_shards {
            // One stream of rows, whose records are dealt out to the shards.
            config.file_output_mode = FileOutputMode::SingleFile;
        }
        let schema = written_schema(&config);
        let sink = Self {
            config,
            schema,
            options,
            stem,
            is_single: (is_single || has_shards) && !has_folders,
        };
        // Report columns that cannot be encoded before any file is written.
        sink.encoder()?;
        Ok(sink)
    }

    /// Makes the sink of another process, from its parts.
    ///
    /// # Errors
    /// A column cannot be encoded as a feature.
    pub fn of_parts(
        config: FileSinkConfig,
        options: TfRecordOptions,
        stem: String,
        is_single: bool,
    ) -> Result<Self> {
        let sink = Self {
            schema: written_schema(&config),
            config,
            options,
            stem,
            is_single,
        };
        sink.encoder()?;
        Ok(sink)
    }

    /// The parts that make the same sink.
    pub fn parts(&self) -> (&FileSinkConfig, &TfRecordOptions, &str, bool) {
        (&self.config, &self.options, &self.stem, self.is_single)
    }

    /// Returns whether to write rows in the order of the files that they are read from.
    pub(crate) fn preserves_order(&self) -> bool {
        self.options.preserve_order
    }

    fn encoder(&self) -> Result<Encoder> {
        let mut builder = WriterBuilder::new()
            .with_lossy(self.options.lossy)
            .with_rounding(self.options.round_floats);
        if let Some(record_type) = self.options.record_type {
            builder = builder.with_record_type(record_type);
        }
        builder
            .build_encoder(Arc::clone(&self.schema))
            .map_err(external)
    }

    /// The folder that the files are in; `None` if the statement names a file.
    fn folder(&self) -> Option<OutputFolder> {
        OutputFolder::of(&self.config, &self.stem)
    }

    /// The folder whose files of earlier statements are replaced, or are an error. INSERT adds
    /// files.
    fn replaced_folder(&self) -> Option<OutputFolder> {
        self.folder().filter(|_| self.stem == PART)
    }

    /// The paths of the files for the rows that the demuxer sends to `path`: one, or those of its
    /// shards.
    ///
    /// # Errors
    /// The name of a folder is no valid path.
    fn names(&self, path: &Path) -> Result<Vec<Path>> {
        let path = match self.folder() {
            Some(folder) if !self.is_single => folder.file(path)?,
            _ => path.clone(),
        };
        let Some(shards) = self.options.shards.map(usize::from) else {
            return Ok(vec![path]);
        };
        // The parts of a path are percent-encoded. A file name is decoded before it becomes part of
        // another name.
        let parts: Vec<_> = path.parts().collect();
        let name = parts.last().map(|part| {
            percent_decode_str(part.as_ref())
                .decode_utf8_lossy()
                .into_owned()
        });
        let name = name.unwrap_or_default();
        let names_file = self.config.table_partition_cols.is_empty() && name.contains('.');
        // In a folder that the statement names, and in the folder of a partition, files are named
        // after the stem.
        let is_folder = self.config.table_partition_cols.is_empty() && !names_file;
        let stem = if names_file {
            file_names::set_name(FilePath::new(&name))
        } else {
            self.stem.clone()
        };
        let folder: Path = if is_folder {
            path.clone()
        } else {
            parts
                .iter()
                .take(parts.len().saturating_sub(1))
                .cloned()
                .collect()
        };
        let extension = &self.config.file_extension;
        let mut names = Vec::with_capacity(shards);
        for index in 0..shards {
            let name = file_names::tf_shard_name(&stem, index, shards, extension);
            names.push(folder.clone().join(name));
        }
        Ok(names)
    }

    /// Returns an error if one of these files exists and may not be replaced, or if the folder
    /// contains shards of the same name with another number of shards.
    async fn check_free(&self, names: &[Path], store: &OutputStore) -> Result<()> {
        for name in names {
            store.refuse_existing(name).await.map_err(external)?;
        }
        if let (Some(shards), Some(first)) = (self.options.shards, names.first()) {
            let folder: Path = first
                .parts()
                .take(first.parts().count().saturating_sub(1))
                .collect();
            let stem = file_names::set_name(FilePath::new(first.filename().unwrap_or_default()));
            for other in store.names_in(&folder).await {
                let number =
                    file_names::tf_shard_number(&other, &stem, &self.config.file_extension);
                if number.is_some_and(|(_, count)| count != shards.get()) {
                    let other = store.name(&folder.join(other));
                    return exec_err!(
                        "{other}: is a shard of an existing set of the same name; remove it, or name another folder"
                    );
                }
            }
        }
        Ok(())
    }

    fn output_store(&self, store: &Arc<dyn ObjectStore>) -> OutputStore {
        OutputStore::new(
            self.config.object_store_url.clone(),
            Arc::clone(store),
            self.options.overwrite,
        )
    }

    fn create(&self, path: &Path, store: &OutputStore) -> Result<ShardFile> {
        let file = store.create(path).map_err(external)?;
        let name = file.path().to_owned();
        Ok(ShardFile {
            writer: ShardWriter::new(file, self.options.compression),
            name,
        })
    }
}

/// The schema of the written files, without partition columns.
fn written_schema(config: &FileSinkConfig) -> SchemaRef {
    datafusion::datasource::file_format::write::get_writer_schema(config)
}

impl DisplayAs for TfRecordSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let paths: Vec<_> = self
                    .config
                    .table_paths
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                write!(
                    f,
                    "TfRecordSink(paths={paths:?}, compression={})",
                    self.options.compression
                )
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

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        if let Some(path) = self.config.table_paths.first() {
            // Report existing files before a query that may run for hours.
            let store = self.output_store(&context.runtime_env().object_store(path)?);
            if self.is_single {
                self.check_free(&self.names(path.prefix())?, &store).await?;
            } else if let Some(folder) = self.replaced_folder() {
                store.refuse_earlier(&folder).await.map_err(external)?;
            }
        }
        let data = match self.folder() {
            Some(folder) => folder.with_folder_values(data),
            None => data,
        };
        FileSink::write_all(self, data, context).await
    }
}

#[async_trait]
impl FileSink for TfRecordSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        mut files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let mut tasks = JoinSet::new();
        let store = self.output_store(&store);
        while let Some((path, batches)) = files.recv().await {
            let names = self.names(&path)?;
            if !self.is_single {
                self.check_free(&names, &store).await?;
            }
            let shards = names
                .iter()
                .map(|name| self.create(name, &store))
                .collect::<Result<_>>()?;
            tasks.spawn(write_shards(self.encoder()?, shards, batches));
        }
        let mut rows = 0;
        let mut losses = RowLosses::default();
        let mut complete = Vec::new();
        while let Some(done) = tasks.join_next().await {
            let (written, files) =
                done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
            rows += written.rows;
            losses.merge(written.losses);
            complete.extend(files);
        }
        // If the rows ended with an error, no file gets its name.
        demux_task
            .join_unwind()
            .await
            .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
        match self.replaced_folder() {
            Some(folder) if !self.is_single => persist_in(&folder, &store, complete).await?,
            _ => persist(complete).await?,
        }
        if let Some(notices) = context.session_config().get_extension::<SessionNotices>() {
            notices.notify_losses(&losses);
        }
        Ok(rows)
    }
}

/// What was encoded.
#[derive(Default)]
struct Encoded {
    rows: u64,
    /// The values that were changed.
    losses: RowLosses,
}

/// Encodes the rows, deals the records out to the shards, and closes these. Returns what was
/// encoded, and the files.
///
/// The shard of a record depends only on the number of the record, so that equal rows always give
/// equal files. One thread encodes, so that errors have row numbers; each shard is compressed and
/// written on its own thread.
async fn write_shards(
    encoder: Encoder,
    mut shards: Vec<ShardFile>,
    batches: Receiver<RecordBatch>,
) -> Result<(Encoded, Vec<CompleteFile>)> {
    let name = shards
        .first()
        .map(|shard| shard.name.clone())
        .unwrap_or_default();
    let (send, mut encoded) = channel(1);
    let encoding = SpawnedTask::spawn(encode(encoder, name, batches, send));
    let mut records = 0;
    while let Some(frames) = encoded.recv().await {
        let shares = match shards.len() {
            1 => vec![frames],
            count => deal(&frames, count, &mut records)?,
        };
        shards = on_threads(shards.into_iter().zip(shares), |(shard, frames)| {
            shard.write(&frames)
        })
        .await?;
    }
    let encoded = encoding
        .join_unwind()
        .await
        .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
    Ok((encoded, on_threads(shards, ShardFile::close).await?))
}

/// Encodes the rows of all batches.
async fn encode(
    encoder: Encoder,
    name: PathBuf,
    mut batches: Receiver<RecordBatch>,
    frames: Sender<Vec<u8>>,
) -> Result<Encoded> {
    let mut encoder = encoder;
    let mut all = Encoded::default();
    while let Some(batch) = batches.recv().await {
        all.rows += batch.num_rows() as u64;
        let name = name.clone();
        let encoded = blocking(move || {
            let mut frames = Vec::new();
            let encoded = encoder.encode(&batch, &mut frames);
            encoded.map_err(|error| external(Error::codec(name, error)))?;
            Ok((encoder, frames))
        });
        let done = encoded.await?;
        encoder = done.0;
        if frames.send(done.1).await.is_err() {
            // The writer has failed, and returns its own error.
            break;
        }
    }
    for (column, change, times) in encoder.losses() {
        *all.losses
            .changed
            .entry(format!("column {column:?}: {change}"))
            .or_default() += times;
    }
    Ok(all)
}

/// Deals the frames out to `shards` shards: record `n` goes to shard `n % shards`. `records` counts
/// the records so far.
fn deal(frames: &[u8], shards: usize, records: &mut u64) -> Result<Vec<Vec<u8>>> {
    let mut shares = vec![Vec::new(); shards];
    let mut rest = frames;
    while let Some(length) = frame::length(rest) {
        let end = frame::HEADER + length as usize + frame::FOOTER;
        let Some((record, after)) = rest.split_at_checked(end) else {
            break;
        };
        if let Some(share) = shares.get_mut((*records % shards as u64) as usize) {
            share.extend_from_slice(record);
        }
        *records += 1;
        rest = after;
    }
    if rest.is_empty() {
        Ok(shares)
    } else {
        internal_err!("the encoder wrote an incomplete frame")
    }
}

/// Runs `work` for each item on a blocking thread. The results are in the order of the items.
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

/// A shard that is being written.
struct ShardFile {
    writer: ShardWriter<OutputFile>,
    name: PathBuf,
}

impl ShardFile {
    fn write(mut self, frames: &[u8]) -> Result<Self> {
        self.writer
            .write_all(frames)
            .map_err(|error| external(Error::io(&self.name, error)))?;
        Ok(self)
    }

    fn close(self) -> Result<CompleteFile> {
        let file = self
            .writer
            .finish()
            .map_err(|error| external(Error::io(&self.name, error)))?;
        file.close().map_err(external)
    }
}
