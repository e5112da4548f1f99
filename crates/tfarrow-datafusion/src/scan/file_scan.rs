//! Scan of one file: bytes to record batches, in the order of the file.
//!
//! ```text
//!         blocking threads, one per core that the file gets
//! bytes ─▶ take the next chunk ─┬▶ reserve a slot in the ordered queue ─▶ stream
//!                               └▶ decode ─▶ send batches to that slot
//! ```
//!
//! Each thread decodes the chunk that it has read, while the chunk is in the cache of its core. If a query reads at least as
//! many files as it has threads, each file has one thread; otherwise files get more threads, so that the last file of a
//! scan uses all of them. Dropping the stream closes the queue, which ends the threads.

use std::{
    mem,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow_array::RecordBatch;
use datafusion::{
    common::{internal_datafusion_err, runtime::SpawnedTask},
    error::{DataFusionError, Result},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tfarrow_codec::{BATCH_CELLS, OnError, Records};
use tfarrow_dataset::Lock;
use tfarrow_dataset::{DamageReport, Error, ReadOptions, Segment, SharedReader, Taken};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, WeakSender, channel, error::TrySendError},
};

use crate::{
    error::explained,
    scan::{
        BATCH_SIZE,
        decoders::Decoders,
        input::{RecordRange, ScanInput},
        metrics::ScanMetrics,
    },
    schema::provenance::SchemaProvenance,
};

/// Maximum bytes of the records of a batch. A single longer record makes a batch of its own.
const BATCH_BYTES: usize = 16 << 20;
/// Chunks that each thread may read ahead of the consumer of the batches.
const AHEAD: usize = 2;
/// Largest LIMIT, in rows, for which a file is read by one thread: its first chunks contain these rows.
const FEW_ROWS: usize = 8 * BATCH_SIZE;

/// Returns whether the first chunks of one file contain all rows of this LIMIT.
pub(crate) fn is_few(limit: usize) -> bool {
    limit <= FEW_ROWS
}

/// Configuration of a scan of the files of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) decoders: Arc<Decoders>,
    pub(crate) provenance: Arc<SchemaProvenance>,
    pub(crate) read: ReadOptions,
    /// Maximum rows of a batch.
    pub(crate) batch_size: usize,
    /// Maximum number of threads that decode at the same time; `None`: one per worker of the runtime.
    pub(crate) threads: Option<usize>,
    /// Rows after which reading of a file may stop.
    pub(crate) limit: Option<usize>,
    /// Number of partitions that are scanned at the same time.
    pub(crate) partitions: usize,
    /// Number of files that are currently read, in all partitions.
    pub(crate) active: Arc<AtomicUsize>,
    pub(crate) metrics: ScanMetrics,
}

/// Batches of one chunk: all of them, unless there are many columns. An error is always the last element.
type Batches = Vec<Result<RecordBatch>>;
/// A slot of the queue, which is reserved before its batches are decoded.
type Slot = Receiver<Batches>;

impl Scan {
    /// Maximum number of threads that decode at the same time, in all partitions.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| Handle::current().metrics().num_workers())
    }

    /// Chunks that may be read ahead of the consumer, for the file whose batches are consumed next.
    pub(crate) fn chunks_ahead(&self) -> usize {
        (AHEAD * self.threads()).div_ceil(self.partitions.max(1)).max(AHEAD)
    }

    /// Starts to read `range` of `input` immediately, up to `ahead` chunks ahead of the consumer, and returns its batches.
    pub(crate) fn start(
        self,
        input: ScanInput,
        range: RecordRange,
        ahead: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let (runtime, threads) = (Handle::current(), self.threads());
        let (queue, slots) = channel(ahead);
        let active = Active::new(&self.active);
        let thread = SpawnedTask::spawn_blocking(move || self.run(&input, range, queue, active, threads, &runtime));
        stream::unfold(Some((slots, None, thread)), next).flat_map(stream::iter).boxed()
    }

    /// Reads the file to its end, or until the stream is dropped.
    fn run(
        self,
        input: &ScanInput,
        range: RecordRange,
        queue: Sender<Slot>,
        active: Active,
        most: usize,
        runtime: &Handle,
    ) {
        let reader = match input.open(&self.read, runtime) {
            Ok(reader) => reader,
            Err(error) => return send_error(&queue, explained(error, &self.provenance)),
        };
        let left = AtomicUsize::new(self.limit.unwrap_or(usize::MAX));
        let path = input.name().into();
        let reading = Arc::new(Reading { reader, range, left, path, scan: self, lost: Lock::default() });
        let is_short = reading.scan.limit.is_some_and(is_few);
        let (mut threads, mut memory) = (1, None);
        while reading.step(&queue, &mut memory, threads == 1) {
            if !is_short && threads < most / active.files() {
                threads += 1;
                // A helper may start late, or never if the runtime has no free thread, so this thread does not wait for it.
                let (reading, queue) = (Arc::downgrade(&reading), queue.downgrade());
                drop(runtime.spawn_blocking(move || help(&reading, &queue)));
            }
        }
        // Drop the decoders before the queue closes: they report unknown features on drop, before the stream ends.
        drop(reading);
    }
}

/// Takes and decodes chunks of a file that other threads have started to read, until its end.
fn help(reading: &Weak<Reading>, queue: &WeakSender<Slot>) {
    // The queue is upgraded first, so that it is dropped last.
    let Some(queue) = queue.upgrade() else { return };
    let _alarm = Alarm(queue.clone());
    let Some(reading) = reading.upgrade() else { return };
    let mut memory = None;
    while reading.step(&queue, &mut memory, false) {}
}

/// Sends an error when a helper panics; otherwise the end of its chunks would look like the end of the file. The first
/// thread is joined instead, and its panic gives the same error.
struct Alarm(Sender<Slot>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            send_error(&self.0, panicked());
        }
    }
}

fn panicked() -> DataFusionError {
    internal_datafusion_err!("a thread that decodes records has panicked")
}

/// The queue, the slot that is read next, and the first thread.
type State = (Receiver<Slot>, Option<Slot>, SpawnedTask<()>);

/// Returns the next batches of the current slot, else those of the next slot; at the end of the queue, joins the first thread.
async fn next(state: Option<State>) -> Option<(Batches, Option<State>)> {
    let (mut slots, open, thread) = state?;
    if let Some(mut slot) = open
        && let Some(batches) = slot.recv().await
    {
        return Some((batches, Some((slots, Some(slot), thread))));
    }
    let Some(mut slot) = slots.recv().await else {
        let error = match thread.join().await.err()? {
            error if error.is_panic() => panicked(),
            error => DataFusionError::ExecutionJoin(Box::new(error)),
        };
        return Some((vec![Err(error)], None));
    };
    // A thread that panicked may have left its slot empty.
    match slot.recv().await {
        Some(batches) => Some((batches, Some((slots, Some(slot), thread)))),
        None => Some((vec![Err(panicked())], None)),
    }
}

/// Appends an error to the queue. It is lost if the stream has been dropped.
fn send_error(queue: &Sender<Slot>, error: DataFusionError) {
    let (send, slot) = channel(1);
    let _ = send.try_send(vec![Err(error)]);
    let _ = queue.blocking_send(slot);
}

/// Sends the batches of a chunk to its slot; reserves the slot with the first batches if that has not happened yet.
struct Output<'q> {
    queue: &'q Sender<Slot>,
    active: &'q AtomicUsize,
    slot: Option<Sender<Batches>>,
}

impl Output<'_> {
    /// Sends batches, and waits until the previous ones are consumed. Returns `false` if the stream has been dropped.
    fn give(&mut self, batches: Batches) -> bool {
        if let Some(slot) = &self.slot {
            return slot.blocking_send(batches).is_ok();
        }
        let (send, slot) = channel(1);
        let _ = send.try_send(batches);
        self.slot = Some(send);
        match self.queue.try_send(slot) {
            Ok(()) => !self.queue.is_closed(),
            Err(TrySendError::Full(slot)) => {
                // While the only thread of this file waits, another file may use its core.
                let _waiting = Waiting::new(self.active);
                put(self.queue, slot)
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

/// After a panic, missing batches must not look like the end of the slot.
impl Drop for Output<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(slot) = &self.slot
        {
            let _ = slot.blocking_send(vec![Err(panicked())]);
        }
    }
}

/// Appends a slot to the queue. Returns `false` if the queue is closed: a slot that was appended while the queue closed is
/// never read, and a thread that fills it would block.
fn put(queue: &Sender<Slot>, slot: Slot) -> bool {
    queue.blocking_send(slot).is_ok() && !queue.is_closed()
}

/// Counts a file as active while this guard lives.
struct Active(Arc<AtomicUsize>);

impl Active {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }

    fn files(&self) -> usize {
        self.0.load(Ordering::Relaxed).max(1)
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
struct Reading {
    scan: Scan,
    reader: SharedReader,
    range: RecordRange,
    path: Arc<Path>,
    /// Rows that remain before the limit is reached.
    left: AtomicUsize,
    /// Bytes that were skipped before the next records, and are not reported yet.
    lost: Lock<DamageReport>,
}

/// The work of a thread for the part of a file that it has taken.
enum Entered {
    /// The bytes were skipped, or their records are before the range.
    Skipped,
    /// The thread decodes the records, into this slot of the queue if one is reserved.
    Records(Records, Option<Sender<Batches>>),
    /// The end of the file, an error, or the end of the stream.
    End,
}

impl Reading {
    /// Takes the next chunk and decodes it. Returns `false` at the end of the file, or when the stream has been dropped.
    ///
    /// A thread that is `alone` with the file reserves a slot only when batches are decoded: no other thread can overtake
    /// it, and the consumer wakes up once per chunk instead of twice.
    fn step(&self, queue: &Sender<Slot>, memory: &mut Option<Vec<u8>>, alone: bool) -> bool {
        if self.left.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let entered = self.reader.next(memory.take(), |taken| self.enter(taken, queue, alone));
        if matches!(entered, Some(Entered::Skipped)) {
            return true;
        }
        if self.scan.read.on_error == OnError::Skip {
            self.scan.decoders.send_skipped(mem::take(&mut self.lost.lock()));
        }
        let Some(Entered::Records(records, slot)) = entered else { return false };
        let mut output = Output { queue, active: &self.scan.active, slot };
        let Some(rest) = self.decode(records, &mut output) else { return false };
        *memory = rest.reclaim();
        true
    }

    /// Reserves the slot of the next chunk, unless the thread is alone. The result is the end after an error, and when the
    /// stream has been dropped.
    fn enter(&self, taken: Result<Taken, Error>, queue: &Sender<Slot>, alone: bool) -> Entered {
        let Taken { segment, bytes } = match taken {
            Ok(taken) => taken,
            Err(error) => {
                send_error(queue, explained(error, &self.scan.provenance));
                return Entered::End;
            }
        };
        self.scan.metrics.bytes_scanned.add(bytes as usize);
        let records = match segment {
            Segment::Records(records) => records,
            Segment::Lost(lost) => {
                self.lost.lock().add_lost(0, lost);
                return Entered::Skipped;
            }
        };
        let Some(records) = self.range.of_chunk(records) else { return Entered::End };
        if records.is_empty() {
            return Entered::Skipped;
        }
        let left = self.left.load(Ordering::Relaxed);
        let (records, _) = records.split_at(left);
        self.left.store(left - records.len(), Ordering::Relaxed);
        if alone {
            return Entered::Records(records, None);
        }
        let (send, slot) = channel(1);
        if put(queue, slot) { Entered::Records(records, Some(send)) } else { Entered::End }
    }

    /// Decodes the records and sends the batches. Returns the rest, which owns the memory of the chunk, for reuse; `None`
    /// when the stream has been dropped.
    fn decode(&self, mut records: Records, output: &mut Output<'_>) -> Option<Records> {
        let columns = self.scan.decoders.columns().max(1);
        let rows = (BATCH_CELLS / columns).clamp(1, self.scan.batch_size);
        let (mut batches, mut cells) = (Batches::new(), 0);
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
                if !output.give(mem::take(&mut batches)) {
                    return None;
                }
            }
        }
        output.give(batches).then_some(records)
    }

    fn decode_batch(&self, records: &Records) -> Result<RecordBatch> {
        let metrics = &self.scan.metrics;
        let _time = metrics.decode_time.timer();
        let batch = self.scan.decoders.decode(records, &self.path, metrics)?;
        metrics.records_decoded.add(records.len());
        Ok(batch)
    }
}
