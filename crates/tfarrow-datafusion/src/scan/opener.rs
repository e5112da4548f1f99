//! The [`FileOpener`] of a scan, with read-ahead of the next files.

use std::{collections::VecDeque, fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileOpenFuture, FileOpener, FileScanConfig},
        projection::{ProjectionOpener, SplitProjection},
    },
    error::Result,
    functions::core::input_file_name::InputFileNameFunc,
    physical_expr::projection::ProjectionExpr,
    physical_expr_adapter::rewrite::{
        expr_references_scalar_udf, rewrite_input_file_name_in_projection,
    },
};
use futures::{
    FutureExt, StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};
use object_store::ObjectStore;
use tfarrow_dataset::internals::FilePiece;
use tfarrow_dataset::internals::Lock;

use crate::{
    error::of_piece,
    scan::{
        file_scan::{Scan, is_few},
        input::ScanInput,
        record_range::RecordRange,
    },
};

/// Opens the files of one partition.
#[derive(Debug)]
pub struct TfRecordOpener {
    store: Arc<dyn ObjectStore>,
    scan: Scan,
    /// Files to read ahead, if the partition keeps the order of its files.
    ahead: Option<Lock<FilesAhead>>,
}

impl TfRecordOpener {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, scan: Scan) -> Self {
        Self {
            store,
            scan,
            ahead: None,
        }
    }

    /// Enables read-ahead if the partition has all files in order; otherwise other partitions read
    /// them. A small LIMIT needs only the first file.
    pub(crate) fn with_files_ahead(mut self, config: &FileScanConfig, partition: usize) -> Self {
        let files = config
            .file_groups
            .get(partition)
            .filter(|_| config.preserve_order);
        let files = files.filter(|files| files.len() > 1 && !config.limit.is_some_and(is_few));
        self.ahead = files.map(|files| Lock::new(FilesAhead::new(files)));
        self
    }

    fn start(&self, file: &PartitionedFile, chunks: usize) -> Batches {
        // Reading cannot start in the middle of a TFRecord file. If another planner splits a file
        // into ranges, the range with the first byte reads the complete file, and the others are
        // empty.
        match &file.range {
            Some(range) if !range.contains(0) => stream::empty().boxed(),
            _ => {
                let batches = self.scan.clone().start(
                    ScanInput::of(file, &self.store),
                    RecordRange::of(file),
                    chunks,
                );
                if file.extension::<FilePiece>().is_some() {
                    batches.map_err(of_piece).boxed()
                } else {
                    batches
                }
            }
        }
    }
}

impl FileOpener for TfRecordOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let batches = match &self.ahead {
            Some(ahead) => {
                let mut ahead = ahead.lock();
                ahead.take(&file, self.scan.threads(), |file, chunks| {
                    self.start(file, chunks)
                })
            }
            None => self.start(&file, self.scan.chunks_ahead()),
        };
        Ok(future::ready(Ok(batches)).boxed())
    }
}

type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Maximum number of chunks, of one megabyte each, that are read ahead in all files together.
const CHUNKS_AHEAD: usize = 64;

/// Files that are read ahead, one for each thread that the current file leaves idle.
struct FilesAhead {
    /// Files that have not been started.
    left: VecDeque<PartitionedFile>,
    /// Files that are being read, in order.
    started: VecDeque<(PartitionedFile, Batches)>,
}

impl FilesAhead {
    fn new(files: &FileGroup) -> Self {
        Self {
            left: files.iter().cloned().collect(),
            started: VecDeque::new(),
        }
    }

    /// Returns the batches of `file`, and starts to read the files after it. `start` reads a file,
    /// up to a number of chunks ahead of the consumer.
    fn take(
        &mut self,
        file: &PartitionedFile,
        threads: usize,
        start: impl Fn(&PartitionedFile, usize) -> Batches,
    ) -> Batches {
        let most = threads.saturating_sub(1).max(1);
        let chunks = (CHUNKS_AHEAD / most).max(2);
        let location = &file.object_meta.location;
        let batches = match self.started.pop_front() {
            Some((started, batches)) if started.object_meta.location == *location => batches,
            // The first file, or a file that is opened in another order than the partition has;
            // such files are not read ahead.
            other => {
                self.started.extend(other);
                self.left
                    .pop_front_if(|next| next.object_meta.location == *location);
                start(file, chunks)
            }
        };
        while self.started.len() < most
            && let Some(next) = self.left.pop_front()
        {
            let batches = start(&next, chunks);
            self.started.push_back((next, batches));
        }
        batches
    }
}

impl fmt::Debug for FilesAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesAhead")
            .field("left", &self.left.len())
            .finish_non_exhaustive()
    }
}

/// Returns whether a projection contains `input_file_name()`.
pub fn uses_input_file_name<'p>(columns: impl IntoIterator<Item = &'p ProjectionExpr>) -> bool {
    columns
        .into_iter()
        .any(|column| expr_references_scalar_udf::<InputFileNameFunc>(&column.expr))
}

/// Evaluates the projection of a query that contains `input_file_name()`. The value is the name of
/// the file as the query names it; DataFusion's own projection would return the key in an object
/// store.
pub(crate) struct NamingOpener {
    inner: Arc<TfRecordOpener>,
    projection: SplitProjection,
    file_schema: SchemaRef,
}

impl NamingOpener {
    pub(crate) fn new(
        inner: TfRecordOpener,
        projection: SplitProjection,
        file_schema: SchemaRef,
    ) -> Self {
        Self {
            inner: Arc::new(inner),
            projection,
            file_schema,
        }
    }
}

impl FileOpener for NamingOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let name = ScanInput::of(&file, &self.inner.store).name();
        let source = self.projection.source.clone();
        let projection = rewrite_input_file_name_in_projection(source, &name.to_string_lossy())?;
        let projection = SplitProjection::new(&self.file_schema, &projection);
        let inner = Arc::clone(&self.inner);
        ProjectionOpener::try_new(projection, inner, &self.file_schema)?.open(file)
    }
}
