//! One file, from bytes to batches in the file's order.
//!
//! ```text
//!            a thread that may block                       any worker
//! Input ─▶ read, inflate, FRAME ─┬▶ decode ───────────────────────────────▶┐
//!                                └▶ spawn a task ─▶ decode ───────────────▶┴▶ bounded queue ─▶ stream
//! ```
//!
//! Where as many files are in hand as there are cores, each thread decodes what it reads, while its chunk is still in
//! the cache. Where there are fewer, what is read is decoded by whichever worker is free; framing is so cheap that one
//! reader keeps all cores busy. The choice is made anew for every batch, so that the last file of a scan gets all cores.
//! The queue holds batches, and tasks that will be batches, in order. Dropping the stream closes the queue, which ends
//! the thread and aborts the tasks.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow_array::RecordBatch;
use datafusion::{
    common::runtime::SpawnedTask,
    error::{DataFusionError, Result},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tfarrow_codec::Records;
use tfarrow_dataset::{Error, ReadOptions};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel},
};

use crate::{decoders::Decoders, error::explained, input::Input, metrics::ScanMetrics, origin::Origin};

/// Bytes of records in a batch. One record may be longer.
const BATCH_BYTES: usize = 16 << 20;
/// Batches that are read ahead of who takes them, for each core.
const AHEAD: usize = 2;

/// How the files of one partition are scanned.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) decoders: Arc<Decoders>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) read: ReadOptions,
    /// Rows of a batch.
    pub(crate) batch_size: usize,
    /// Rows after which a file need not be read on.
    pub(crate) limit: Option<usize>,
    /// Partitions that are scanned at a time.
    pub(crate) partitions: usize,
    /// Files that are being read, in all partitions.
    pub(crate) active: Arc<AtomicUsize>,
    pub(crate) metrics: ScanMetrics,
}

/// What the queue holds.
enum Unit {
    Batch(Result<RecordBatch>),
    Task(SpawnedTask<Result<RecordBatch>>),
}

impl Unit {
    async fn batch(self) -> Result<RecordBatch> {
        match self {
            Self::Batch(batch) => batch,
            Self::Task(task) => task.join_unwind().await.map_err(join_error)?,
        }
    }
}

fn join_error(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}

impl Scan {
    /// The batches of `input`, which begins to be read at once.
    pub(crate) fn start(self, input: Input) -> BoxStream<'static, Result<RecordBatch>> {
        let runtime = Handle::current();
        let cores = runtime.metrics().num_workers();
        let (queue, batches) = channel((AHEAD * cores).div_ceil(self.partitions.max(1)).max(AHEAD));
        let reading = Reading { active: Active::new(&self.active), scan: self, cores, runtime };
        let thread = SpawnedTask::spawn_blocking(move || reading.run(&input, queue));
        stream::unfold(Some((batches, thread)), next).boxed()
    }
}

type State = (Receiver<Unit>, SpawnedTask<()>);

/// The next batch; at the end, the thread's own end, so that a panic is not taken for the end of the file.
async fn next(state: Option<State>) -> Option<(Result<RecordBatch>, Option<State>)> {
    let (mut batches, thread) = state?;
    match batches.recv().await {
        Some(unit) => Some((unit.batch().await, Some((batches, thread)))),
        None => thread.join_unwind().await.err().map(|e| (Err(join_error(e)), None)),
    }
}

/// Counts a file as being read as long as it lives.
struct Active(Arc<AtomicUsize>);

impl Active {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }

    fn files(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the reading thread has.
struct Reading {
    scan: Scan,
    active: Active,
    cores: usize,
    runtime: Handle,
}

impl Reading {
    /// Reads the file to its end, or until nobody takes its batches any more.
    fn run(self, input: &Input, queue: Sender<Unit>) {
        if let Err(error) = self.read(input, &queue) {
            let error = explained(error, &self.scan.origin);
            // Nobody may be there to hear of it any more.
            let _ = queue.blocking_send(Unit::Batch(Err(error)));
        }
        // The decoders go before the queue closes: once the stream has ended, they have told what they met.
        drop(self);
        drop(queue);
    }

    fn read(&self, input: &Input, queue: &Sender<Unit>) -> Result<(), Error> {
        let path: Arc<Path> = input.name().into();
        let mut reader = input.open(&self.scan.read, &self.runtime)?;
        let mut left = self.scan.limit.unwrap_or(usize::MAX);
        let mut bytes = 0;
        while left > 0 {
            let mut records = match reader.next() {
                Ok(Some(records)) => records,
                Ok(None) => break,
                Err(error) if self.scan.decoders.passes_over(&error) => {
                    self.scan.decoders.note_cut(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            self.scan.metrics.bytes_scanned.add((reader.bytes_read() - bytes) as usize);
            bytes = reader.bytes_read();
            while left > 0 && !records.is_empty() {
                let count = records.fit(self.scan.batch_size.min(left), BATCH_BYTES);
                let (batch, rest) = records.split_at(count);
                records = rest;
                left -= batch.len();
                if queue.blocking_send(self.unit(batch, &path)).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn unit(&self, records: Records, path: &Arc<Path>) -> Unit {
        let scan = &self.scan;
        if self.active.files() >= self.cores {
            return Unit::Batch(decode(&scan.decoders, &scan.metrics, &records, path));
        }
        let (decoders, metrics, path) = (Arc::clone(&scan.decoders), scan.metrics.clone(), Arc::clone(path));
        Unit::Task(SpawnedTask::spawn(async move { decode(&decoders, &metrics, &records, &path) }))
    }
}

fn decode(decoders: &Decoders, metrics: &ScanMetrics, records: &Records, path: &Path) -> Result<RecordBatch> {
    let _time = metrics.decode_time.timer();
    let batch = decoders.decode(records, path, metrics)?;
    metrics.records_decoded.add(records.len());
    Ok(batch)
}
