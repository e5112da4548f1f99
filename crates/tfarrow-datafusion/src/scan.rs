//! One file, from bytes to batches in the file's order.
//!
//! ```text
//!         threads that may block, as many as the file gets cores
//! Input ─▶ take the next records ─┬▶ a place in the queue, in order ─▶ stream
//!                                 └▶ decode ─▶ batches, into that place
//! ```
//!
//! Each thread decodes what it has taken, while it is still in its core's cache. Where as many files are read as the query
//! may have threads, each has one thread; where there are fewer, threads are added, so that the last file of a scan gets
//! all of them. Dropping the stream closes the queue, which ends the threads.

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
use tfarrow_dataset::{Error, ReadOptions, SharedReader, Taken};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, WeakSender, channel, error::TrySendError},
};

use crate::{
    decoders::Decoders, error::explained, input::Input, metrics::ScanMetrics, origin::Origin, source::BATCH_SIZE,
};

/// Bytes of records in a batch. One record may be longer.
const BATCH_BYTES: usize = 16 << 20;
/// Chunks that are read ahead of who takes their batches, for each thread.
const AHEAD: usize = 2;
/// Rows of a LIMIT up to which one thread reads: the first chunks have them.
const FEW_ROWS: usize = 8 * BATCH_SIZE;

/// Whether a LIMIT asks for so few rows that the first chunks of one file have them.
pub(crate) fn is_few(limit: usize) -> bool {
    limit <= FEW_ROWS
}

/// How the files of one partition are scanned.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) decoders: Arc<Decoders>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) read: ReadOptions,
    /// Rows of a batch.
    pub(crate) batch_size: usize,
    /// Threads that decode at a time; `None`: as many as the runtime has workers.
    pub(crate) threads: Option<usize>,
    /// Rows after which a file need not be read on.
    pub(crate) limit: Option<usize>,
    /// Partitions that are scanned at a time.
    pub(crate) partitions: usize,
    /// Files that are being read, in all partitions.
    pub(crate) active: Arc<AtomicUsize>,
    pub(crate) metrics: ScanMetrics,
}

/// Batches of one chunk: all, unless there are many columns. An error is the last of them.
type Batches = Vec<Result<RecordBatch>>;
/// The place that they have in the queue before they are there.
type Place = Receiver<Batches>;

impl Scan {
    /// Threads that decode at a time, in all partitions.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| Handle::current().metrics().num_workers())
    }

    /// Chunks of a file that are read ahead of who takes their batches, while it is its turn.
    pub(crate) fn chunks_ahead(&self) -> usize {
        (AHEAD * self.threads()).div_ceil(self.partitions.max(1)).max(AHEAD)
    }

    /// The batches of `input`, which begins to be read at once, and `ahead` chunks ahead of who takes them.
    pub(crate) fn start(self, input: Input, ahead: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let (runtime, threads) = (Handle::current(), self.threads());
        let (queue, places) = channel(ahead);
        let active = Active::new(&self.active);
        let thread = SpawnedTask::spawn_blocking(move || self.run(&input, queue, active, threads, &runtime));
        stream::unfold(Some((places, None, thread)), next).flat_map(stream::iter).boxed()
    }

    /// Reads the file to its end, or until nobody takes its batches any more.
    fn run(self, input: &Input, queue: Sender<Place>, active: Active, most: usize, runtime: &Handle) {
        let reader = match input.open(&self.read, runtime) {
            Ok(reader) => reader,
            Err(error) => return send_error(&queue, explained(error, &self.origin)),
        };
        let left = AtomicUsize::new(self.limit.unwrap_or(usize::MAX));
        let reading = Arc::new(Reading { reader, left, path: input.name().into(), scan: self });
        let is_short = reading.scan.limit.is_some_and(is_few);
        let (mut threads, mut memory) = (1, None);
        while reading.step(&queue, &mut memory, threads == 1) {
            if !is_short && threads < most / active.files() {
                threads += 1;
                // A helper may start late, or never where the runtime has no thread left: nobody waits for it.
                let (reading, queue) = (Arc::downgrade(&reading), queue.downgrade());
                drop(runtime.spawn_blocking(move || help(&reading, &queue)));
            }
        }
        // The decoders go before the queue closes: once the stream has ended, they have told which features they met.
        drop(reading);
    }
}

/// Reads on with the others, as long as they do.
fn help(reading: &Weak<Reading>, queue: &WeakSender<Place>) {
    // The queue is the last to go.
    let Some(queue) = queue.upgrade() else { return };
    let _alarm = Alarm(queue.clone());
    let Some(reading) = reading.upgrade() else { return };
    let mut memory = None;
    while reading.step(&queue, &mut memory, false) {}
}

/// Says so where a helper panics, lest the end of its work be taken for the end of the file. The first thread is joined,
/// and its panic told in the same words.
struct Alarm(Sender<Place>);

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

/// The queue, the place whose batches come next, and the first thread.
type State = (Receiver<Place>, Option<Place>, SpawnedTask<()>);

/// The next batches in their place, or in the next; at the end, the thread's own end.
async fn next(state: Option<State>) -> Option<(Batches, Option<State>)> {
    let (mut places, open, thread) = state?;
    if let Some(mut place) = open
        && let Some(batches) = place.recv().await
    {
        return Some((batches, Some((places, Some(place), thread))));
    }
    let Some(mut place) = places.recv().await else {
        let error = match thread.join().await.err()? {
            error if error.is_panic() => panicked(),
            error => DataFusionError::ExecutionJoin(Box::new(error)),
        };
        return Some((vec![Err(error)], None));
    };
    // Who has panicked may have left its place empty.
    match place.recv().await {
        Some(batches) => Some((batches, Some((places, Some(place), thread)))),
        None => Some((vec![Err(panicked())], None)),
    }
}

/// Puts an error at the end of the queue. Nobody may be there to hear of it any more.
fn send_error(queue: &Sender<Place>, error: DataFusionError) {
    let (send, place) = channel(1);
    let _ = send.try_send(vec![Err(error)]);
    let _ = queue.blocking_send(place);
}

/// Where the batches of a chunk go: into its place, which they get with the first of them if it has none yet.
struct Output<'q> {
    queue: &'q Sender<Place>,
    active: &'q AtomicUsize,
    place: Option<Sender<Batches>>,
}

impl Output<'_> {
    /// Hands batches on, and waits as long as those before them are not taken. Whether anybody takes them.
    fn give(&mut self, batches: Batches) -> bool {
        if let Some(place) = &self.place {
            return place.blocking_send(batches).is_ok();
        }
        let (send, place) = channel(1);
        let _ = send.try_send(batches);
        self.place = Some(send);
        match self.queue.try_send(place) {
            Ok(()) => !self.queue.is_closed(),
            Err(TrySendError::Full(place)) => {
                // While the only thread of a file waits, another file may have its core.
                let _waiting = Waiting::new(self.active);
                put(self.queue, place)
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

/// Batches that are missing behind others must not look like the end of their place.
impl Drop for Output<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(place) = &self.place
        {
            let _ = place.blocking_send(vec![Err(panicked())]);
        }
    }
}

/// Puts a place at the end of the queue. Whether anybody takes it: one that was put while the queue closed may stay there,
/// and whoever filled it would wait.
fn put(queue: &Sender<Place>, place: Place) -> bool {
    queue.blocking_send(place).is_ok() && !queue.is_closed()
}

/// Counts a file as being read as long as it lives.
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

/// Counts a file as not being read as long as it lives.
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

/// What the threads that read one file share.
struct Reading {
    scan: Scan,
    reader: SharedReader,
    path: Arc<Path>,
    /// Rows that are still wanted.
    left: AtomicUsize,
}

impl Reading {
    /// Takes the next records and decodes them. Whether there may be more.
    ///
    /// A thread that is `alone` with the file gives its batches their place when they are there: no other could come
    /// before it, and who takes them is woken once a chunk instead of twice.
    fn step(&self, queue: &Sender<Place>, memory: &mut Option<Vec<u8>>, alone: bool) -> bool {
        if self.left.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let entered = self.reader.next(memory.take(), |taken| self.enter(taken, queue, alone));
        if self.scan.read.on_error == OnError::Skip {
            self.scan.decoders.tell_skipped(self.reader.lost());
        }
        let Some((records, place)) = entered.flatten() else { return false };
        let mut output = Output { queue, active: &self.scan.active, place };
        let Some(rest) = self.decode(records, &mut output) else { return false };
        *memory = rest.reclaim();
        true
    }

    /// Gives the next records their place in the queue, but to those of a thread that is alone; `None` where they are the
    /// end.
    fn enter(
        &self,
        taken: Result<Taken, Error>,
        queue: &Sender<Place>,
        alone: bool,
    ) -> Option<(Records, Option<Sender<Batches>>)> {
        let Taken { records, bytes } = match taken {
            Ok(taken) => taken,
            Err(error) => {
                send_error(queue, explained(error, &self.scan.origin));
                return None;
            }
        };
        self.scan.metrics.bytes_scanned.add(bytes as usize);
        let left = self.left.load(Ordering::Relaxed);
        let (records, _) = records.split_at(left);
        self.left.store(left - records.len(), Ordering::Relaxed);
        if alone {
            return Some((records, None));
        }
        let (send, place) = channel(1);
        put(queue, place).then_some((records, Some(send)))
    }

    /// Decodes the records. Returns what still holds the memory that they lie in; `None` where nobody waits for them any more.
    fn decode(&self, mut records: Records, output: &mut Output<'_>) -> Option<Records> {
        let columns = self.scan.decoders.columns().max(1);
        let rows = (BATCH_CELLS / columns).clamp(1, self.scan.batch_size);
        let (mut batches, mut cells) = (Batches::new(), 0);
        while !records.is_empty() {
            let count = records.fit(rows, BATCH_BYTES);
            let (batch, rest) = records.split_at(count);
            records = rest;
            match self.decode_batch(&batch) {
                // Nobody has a use for a batch that the filter has left nothing of.
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
