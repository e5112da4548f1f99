//! Opens one file of a scan.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileOpenFuture, FileOpener, FileScanConfig},
        projection::{ProjectionOpener, SplitProjection},
    },
    error::Result,
    physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection,
};
use futures::{
    FutureExt, StreamExt, future,
    stream::{self, BoxStream},
};
use object_store::ObjectStore;

use crate::{
    input::Input,
    scan::{Scan, is_few},
};

/// Opens the files of one partition.
#[derive(Debug)]
pub struct TfRecordOpener {
    store: Arc<dyn ObjectStore>,
    scan: Scan,
    /// The files that follow, where they are read in the partition's order.
    ahead: Option<Mutex<FilesAhead>>,
}

impl TfRecordOpener {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, scan: Scan) -> Self {
        Self { store, scan, ahead: None }
    }

    /// Reads the next files of the partition ahead, where it has all files in their order: another partition would read
    /// them else. A LIMIT of a few rows needs the first file alone.
    pub(crate) fn with_files_ahead(mut self, config: &FileScanConfig, partition: usize) -> Self {
        let files = config.file_groups.get(partition).filter(|_| config.preserve_order);
        let files = files.filter(|files| files.len() > 1 && !config.limit.is_some_and(is_few));
        self.ahead = files.map(|files| Mutex::new(FilesAhead::new(files)));
        self
    }

    fn start(&self, file: &PartitionedFile, chunks: usize) -> Batches {
        // Reading cannot begin in the middle of a TFRecord file. Another planner may split a file into ranges without
        // asking: the range with the first byte reads the whole file, and the others are empty.
        match &file.range {
            Some(range) if !range.contains(0) => stream::empty().boxed(),
            _ => self.scan.clone().start(Input::of(file, &self.store), chunks),
        }
    }
}

impl FileOpener for TfRecordOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let batches = match &self.ahead {
            Some(ahead) => {
                let mut ahead = ahead.lock().unwrap_or_else(PoisonError::into_inner);
                ahead.take(&file, self.scan.threads(), |file, chunks| self.start(file, chunks))
            }
            None => self.start(&file, self.scan.chunks_ahead()),
        };
        Ok(future::ready(Ok(batches)).boxed())
    }
}

type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Chunks of all files ahead together that wait for their turn, of a megabyte each.
const CHUNKS_AHEAD: usize = 64;

/// Files that are read before it is their turn, one for each thread that the file whose turn it is leaves idle.
struct FilesAhead {
    /// Those that are not read yet.
    left: VecDeque<PartitionedFile>,
    started: VecDeque<(PartitionedFile, Batches)>,
}

impl FilesAhead {
    fn new(files: &FileGroup) -> Self {
        Self { left: files.iter().cloned().collect(), started: VecDeque::new() }
    }

    /// The batches of `file`, whose turn it is. Starts those after it. `start` takes a file, and how many of its chunks
    /// may wait.
    fn take(
        &mut self,
        file: &PartitionedFile,
        threads: usize,
        start: impl Fn(&PartitionedFile, usize) -> Batches,
    ) -> Batches {
        let most = threads.saturating_sub(1).max(1);
        let chunks = (CHUNKS_AHEAD / most).max(2);
        let is_it = |other: &PartitionedFile| other.object_meta.location == file.object_meta.location;
        let batches = match self.started.pop_front() {
            Some((started, batches)) if is_it(&started) => batches,
            // The first file; and files in another order than the partition has, which are then read one by one.
            other => {
                self.started.extend(other);
                self.left.pop_front_if(|next| is_it(next));
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
        f.debug_struct("FilesAhead").field("left", &self.left.len()).finish_non_exhaustive()
    }
}

/// Makes of the columns that a scan decodes those that a query asks for, where `input_file_name()` is among them: the name
/// that the user knows the file by, where DataFusion would give the key that it has in a store.
pub(crate) struct NamingOpener {
    inner: Arc<TfRecordOpener>,
    projection: SplitProjection,
    file_schema: SchemaRef,
}

impl NamingOpener {
    pub(crate) fn new(inner: TfRecordOpener, projection: SplitProjection, file_schema: SchemaRef) -> Self {
        Self { inner: Arc::new(inner), projection, file_schema }
    }
}

impl FileOpener for NamingOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let name = Input::of(&file, &self.inner.store).name();
        let source = self.projection.source.clone();
        let projection = rewrite_input_file_name_in_projection(source, &name.to_string_lossy())?;
        let projection = SplitProjection::new(&self.file_schema, &projection);
        let inner = Arc::clone(&self.inner);
        ProjectionOpener::try_new(projection, inner, &self.file_schema)?.open(file)
    }
}
