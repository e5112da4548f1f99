//! Scan of one file: bytes to record batches, in the order of the file.
//!
//! ```text
//!         blocking threads, one per core that the file gets
//! bytes ─▶ take the next chunk ─▶ decode ─▶ Ordered: batches in the order of the chunks ─▶ queue ─▶ stream
//! ```
//!
//! Each thread decodes the chunk that it has read, while the chunk is in the cache of its core. If
//! a query reads at least as many files as it has threads, each file has one thread; otherwise
//! files get more threads, so that the last file of a scan uses all of them. Dropping the stream
//! closes the queue, which ends the threads.

use std::{
    mem,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arrow_array::RecordBatch;
use datafusion::{
    common::{internal_datafusion_err, runtime::SpawnedTask},
    error::{DataFusionError, Result},
    physical_plan::PhysicalExpr,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tfarrow_codec::{BATCH_CELLS, OnError, Records};
use tfarrow_dataset::{
    DamageReport, Error, ReadOptions, Segment, SharedReader, Taken,
    internals::{Lock, changed_since_planned},
};
use tfarrow_scan::{Ordered, PieceSink, Ticket};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel, error::TrySendError},
};

use crate::{
    error::explained,
    notice::NoticeSender,
    scan::{
        BATCH_SIZE, blocks::FileBlocks, decoders::Decoders, input::ScanInput, metrics::ScanMetrics,
        record_range::RecordRange,
    },
    schema::{columns::Columns, provenance::SchemaProvenance},
};

/// Maximum bytes of the records of a batch. A single longer record makes a batch of its own.
const BATCH_BYTES: usize = 16 << 20;
/// Chunks that each thread may read ahead of the consumer of the batches.
const AHEAD: usize = 2;
/// Bytes of batches that take one place of the queue. More bytes take more places: the records of
/// a chunk that have few of many features become hundreds of times as large.
const PLACE_BYTES: usize = 8 << 20;
/// Largest LIMIT, in rows, for which a file is read by one thread: its first chunks contain these
/// rows.
const FEW_ROWS: usize = 8 * BATCH_SIZE;

/// Returns whether the first chunks of one file contain all rows of this LIMIT.
pub(crate) fn is_few(limit: usize) -> bool {
    limit <= FEW_ROWS
}

/// Configuration of a scan of the files of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) decoders: Arc<Decoders>,
    pub(crate) columns: Arc<Columns>,
    /// The filter that the scan evaluates, over the table schema.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) provenance: Arc<SchemaProvenance>,
    pub(crate) notices: Arc<NoticeSender>,
    pub(crate) read: ReadOptions,
    /// Maximum rows of a batch.
    pub(crate) batch_size: usize,
    /// Maximum number of threads that decode at the same time; `None`: one per worker of the
    /// runtime.
    pub(crate) threads: Option<usize>,
    /// Rows after which reading of a file may stop.
    pub(crate) limit: Option<usize>,
    /// Number of partitions that are scanned at the same time.
    pub(crate) partitions: usize,
    /// Number of files that are currently read, in all partitions.
    pub(crate) active: Arc<AtomicUsize>,
    pub(crate) metrics: ScanMetrics,
}

/// Batches of one chunk: all of them, unless there are many columns. An error is always the last
/// element.
type Batches = Vec<Result<RecordBatch>>;

impl Scan {
    /// Maximum number of threads that decode at the same time, in all partitions.
    pub(crate) fn threads(&self) -> usize {
        self.threads
            .unwrap_or_else(|| Handle::current().metrics().num_workers())
    }

    /// Chunks that may be read ahead of the consumer, for the file whose batches are consumed next.
    pub(crate) fn chunks_ahead(&self) -> usize {
        (AHEAD * self.threads())
            .div_ceil(self.partitions.max(1))
            .max(AHEAD)
    }

    /// Starts to read `range` of `input` immediately, up to `ahead` chunks ahead of the consumer,
    /// and returns its batches.
    pub(crate) fn start(
        self,
        input: ScanInput,
        range: RecordRange,
        ahead: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let runtime = Handle::current();
        let threads = self.threads();
        // With a shorter queue, the threads wait more often: the mean of a column of pictures took
        // 7 % longer.
        let (queue, batches) = channel(ahead);
        // One more chunk may wait for its turn.
        let max_held = self.read.chunk_bytes;
        let output = BatchSender {
            queue,
            places: ahead,
            active: Active::new(&self.active),
            threads: Arc::new(AtomicUsize::new(1)),
        };
        let thread = SpawnedTask::spawn_blocking(move || {
            self.run(&input, range, output, max_held, threads, &runtime)
        });
        stream::unfold(Some((batches, thread)), next)
            .flat_map(stream::iter)
            .boxed()
    }

    /// Reads the file to its end, or until the stream is dropped.
    fn run(
        self,
        input: &ScanInput,
        range: RecordRange,
        mut output: BatchSender,
        max_held: usize,
        most: usize,
        runtime: &Handle,
    ) {
        let blocks = input.open_blocks(&self.read, |index| {
            FileBlocks::new(
                index,
                &range,
                self.predicate.as_ref(),
                &self.columns,
                &self.metrics,
            )
        });
        if let Err(unusable) = &blocks {
            self.notices.send_unusable(std::slice::from_ref(unusable));
        }
        let opened = match blocks {
            Ok(Some(reader)) => Ok(reader),
            // Other parts of the query read other records than these numbers are of.
            Ok(None) | Err(_) if !range.is_whole() && input.has_changed() => {
                Err(changed_since_planned(&input.name()))
            }
            Ok(None) | Err(_) => input.open(&self.read, runtime),
        };
        let reader = match opened {
            Ok(reader) => reader,
            Err(error) => return output.send_error(explained(error, &self.provenance)),
        };
        let reading = Arc::new(Reading {
            left: AtomicUsize::new(self.limit.unwrap_or(usize::MAX)),
            chunks: AtomicU64::new(0),
            reader,
            range,
            path: input.name().into(),
            lost: Lock::default(),
            threads: Arc::clone(&output.threads),
            scan: self,
            output: Ordered::new(output, max_held),
        });
        let is_short = reading.scan.limit.is_some_and(is_few);
        let mut memory = None;
        while reading.step(&mut memory) {
            let files = reading.scan.active.load(Ordering::Relaxed).max(1);
            if !is_short && reading.threads.load(Ordering::Relaxed) < most / files {
                reading.threads.fetch_add(1, Ordering::Relaxed);
                // A helper may start late, or never if the runtime has no free thread, so this
                // thread does not wait for it.
                let reading = Arc::downgrade(&reading);
                drop(runtime.spawn_blocking(move || help(&reading)));
            }
        }
    }
}

/// Takes and decodes chunks of a file that other threads have started to read, until its end.
fn help(reading: &Weak<Reading>) {
    let Some(reading) = reading.upgrade() else {
        return;
    };
    let _alarm = Alarm(&reading);
    let mut memory = None;
    while reading.step(&mut memory) {}
}

/// Sends an error when a helper panics; otherwise the end of its chunks would look like the end of
/// the file. The first thread is joined instead, and its panic gives the same error.
struct Alarm<'a>(&'a Reading);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .output
                .with_output(|output| output.send_error(panicked()));
        }
    }
}

fn panicked() -> DataFusionError {
    internal_datafusion_err!("a thread that decodes records has panicked")
}

/// The queue, and the first thread.
type State = (Receiver<Batches>, SpawnedTask<()>);

/// Returns the next batches of the queue; at its end, joins the first thread.
async fn next(state: Option<State>) -> Option<(Batches, Option<State>)> {
    let (mut queue, thread) = state?;
    if let Some(batches) = queue.recv().await {
        return Some((batches, Some((queue, thread))));
    }
    let error = match thread.join().await.err()? {
        error if error.is_panic() => panicked(),
        error => DataFusionError::ExecutionJoin(Box::new(error)),
    };
    Some((vec![Err(error)], None))
}

/// The queue of the batches of a file.
struct BatchSender {
    queue: Sender<Batches>,
    places: usize,
    active: Active,
    /// Number of threads that read the file.
    threads: Arc<AtomicUsize>,
}

/// The stream of a file has been dropped, or another thread of the file has panicked.
struct Dropped;

impl PieceSink for BatchSender {
    type Piece = Batches;
    type Error = Dropped;

    fn write(&mut self, batches: Batches) -> Result<(), Dropped> {
        let places = Self::held_bytes(&batches).div_ceil(PLACE_BYTES);
        self.send(batches)?;
        // Behind large batches, their other places are empty.
        for _ in 1..places.min(self.places) {
            self.send(Batches::new())?;
        }
        Ok(())
    }

    fn held_bytes(batches: &Batches) -> usize {
        batches
            .iter()
            .flatten()
            .map(RecordBatch::get_array_memory_size)
            .sum()
    }

    fn cancelled() -> Dropped {
        Dropped
    }
}

impl BatchSender {
    /// Waits for a place of the queue.
    fn send(&self, batches: Batches) -> Result<(), Dropped> {
        match self.queue.try_send(batches) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(batches)) => {
                // While the only thread of this file waits, another file may use its core.
                let is_alone = self.threads.load(Ordering::Relaxed) == 1;
                let _waiting = is_alone.then(|| Waiting::new(&self.active.0));
                self.queue.blocking_send(batches).map_err(|_| Dropped)
            }
            Err(TrySendError::Closed(_)) => Err(Dropped),
        }
    }

    /// Appends an error to the queue. It is lost if the stream has been dropped.
    fn send_error(&mut self, error: DataFusionError) {
        let _ = self.write(vec![Err(error)]);
    }
}

/// Counts a file as active while this guard lives.
struct Active(Arc<AtomicUsize>);

impl Active {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a file as inactive while this guard lives.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_sub(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// State that the threads that read one file share.
///
/// The decoders are dropped before the output closes the queue: they report unknown features on
/// drop, before the stream ends.
struct Reading {
    scan: Scan,
    reader: SharedReader,
    range: RecordRange,
    path: Arc<Path>,
    /// Rows that remain before the limit is reached.
    left: AtomicUsize,
    /// The number of chunks that threads have taken to decode them.
    chunks: AtomicU64,
    /// Bytes that were skipped before the next records, and are not reported yet.
    lost: Lock<DamageReport>,
    /// Number of threads that read the file.
    threads: Arc<AtomicUsize>,
    output: Ordered<BatchSender>,
}

/// The work of a thread for the part of a file that it has taken.
enum Entered<'a> {
    /// The bytes were skipped, or their records are before the range.
    Skipped,
    /// The thread decodes the records, and hands their batches over.
    Records(Records, Ticket<'a, BatchSender>),
    /// The thread reports the error.
    Error(Error, Ticket<'a, BatchSender>),
    /// The end of the range.
    End,
}

impl Reading {
    /// Takes the next chunk and decodes it. Returns `false` at the end of the file, or when the
    /// stream has been dropped.
    fn step(&self, memory: &mut Option<Vec<u8>>) -> bool {
        if self.left.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let entered = self.reader.next(memory.take(), |taken| self.enter(taken));
        if matches!(entered, Some(Entered::Skipped)) {
            return true;
        }
        if self.scan.read.on_error == OnError::Skip {
            self.scan
                .decoders
                .send_skipped(mem::take(&mut self.lost.lock()));
        }
        match entered {
            Some(Entered::Records(records, ticket)) => match self.decode(records, ticket) {
                Ok(rest) => {
                    *memory = rest.reclaim();
                    true
                }
                Err(Dropped) => false,
            },
            Some(Entered::Error(error, mut ticket)) => {
                let error = explained(error, &self.scan.provenance);
                // The error is lost if the stream has been dropped.
                let _ = ticket
                    .write(vec![Err(error)])
                    .and_then(|()| ticket.finish());
                false
            }
            Some(Entered::Skipped | Entered::End) | None => false,
        }
    }

    /// Takes the next chunk, as far as it is in the range and below the limit, and its place in the
    /// output.
    fn enter(&self, taken: Result<Taken, Error>) -> Entered<'_> {
        let Taken { segment, bytes } = match taken {
            Ok(taken) => taken,
            Err(error) => return Entered::Error(error, self.next_ticket()),
        };
        self.scan.metrics.bytes_scanned.add(bytes as usize);
        let records = match segment {
            Segment::Records(records) => records,
            Segment::Lost(lost) => {
                self.lost.lock().add_lost(0, lost);
                return Entered::Skipped;
            }
        };
        let Some(records) = self.range.of_chunk(records) else {
            return Entered::End;
        };
        if records.is_empty() {
            return Entered::Skipped;
        }
        let left = self.left.load(Ordering::Relaxed);
        let (records, _) = records.split_at(left);
        self.left.store(left - records.len(), Ordering::Relaxed);
        Entered::Records(records, self.next_ticket())
    }

    /// The place in the output of the chunk that is taken. From here on, a panic ends the stream
    /// with an error: no other thread waits for this chunk.
    fn next_ticket(&self) -> Ticket<'_, BatchSender> {
        self.output
            .ticket(self.chunks.fetch_add(1, Ordering::Relaxed))
    }

    /// Decodes the records and sends the batches. Returns the rest, which owns the memory of the
    /// chunk, for reuse.
    fn decode(
        &self,
        mut records: Records,
        mut output: Ticket<'_, BatchSender>,
    ) -> Result<Records, Dropped> {
        let columns = self.scan.decoders.columns().max(1);
        let rows = (BATCH_CELLS / columns).clamp(1, self.scan.batch_size);
        let mut batches = Batches::new();
        let mut cells = 0;
        while !records.is_empty() {
            let count = records.fit(rows, BATCH_BYTES);
            let (batch, rest) = records.split_at(count);
            records = rest;
            match self.decode_batch(&batch) {
                // Do not send a batch of which the filter keeps no row.
                Ok(batch) if batch.num_rows() == 0 => {}
                Ok(batch) => {
                    cells += count * columns;
                    batches.push(Ok(batch));
                }
                Err(error) => {
                    batches.push(Err(error));
                    break;
                }
            }
            if cells >= BATCH_CELLS && !records.is_empty() {
                cells = 0;
                output.write(mem::take(&mut batches))?;
            }
        }
        // Also without batches, because this shows whether the stream has been dropped.
        output.write(batches)?;
        output.finish()?;
        Ok(records)
    }

    fn decode_batch(&self, records: &Records) -> Result<RecordBatch> {
        let metrics = &self.scan.metrics;
        let _time = metrics.decode_time.timer();
        let batch = self.scan.decoders.decode(records, &self.path, metrics)?;
        metrics.records_decoded.add(records.len());
        Ok(batch)
    }
}
