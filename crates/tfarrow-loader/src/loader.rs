//! Batches of a data set in an order, which threads read and decode ahead of the consumer.
//!
//! ```text
//! Planner     batch 0, batch 1, read round 1, batch 2, ..       one thread at a time takes the next
//! threads     round ─▶ Fetched ─▶ decode ─▶ batch               a round is read by the first that needs it
//! Ordered     batch 0 ─▶ batch 1 ─▶ batch 2                      in the order of the batches
//! Loader      next, next, next                                   the consumer
//! ```

use std::{
    iter::Peekable,
    ops::Range,
    panic::resume_unwind,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    task::Poll,
    thread::{self, JoinHandle},
    time::Duration,
};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use tfarrow_dataset::{
    Error, ErrorKind, Result,
    internals::{Lock, on_threads},
};
use tfarrow_index::{Dataset, Fetched};
use tfarrow_scan::{Ordered, PieceSink};

use crate::{division::Share, order::Order, selection::Selection};

/// Bytes of batches that wait for the consumer, and that threads hold back until their turn.
const WAITING_BYTES: usize = 16 << 20;
/// Number of batches that wait for the consumer at most.
const WAITING_BATCHES: usize = 64;
/// Time after which a consumer without a timeout waits again.
const LONG: Duration = Duration::from_secs(3600);

/// What a [`Loader`] reads.
#[derive(Clone, Debug)]
pub struct LoaderPlan {
    /// The data set, whose decoders have the columns of the batches.
    pub dataset: Arc<Dataset>,
    /// Its records that are read.
    pub selection: Selection,
    /// Their order.
    pub order: Order,
    /// The positions of the order that are read.
    pub share: Share,
    /// The number of batches of the share that were read before.
    pub first: u64,
    /// Number of threads.
    pub threads: usize,
}

/// A batch of a [`Loader`].
#[derive(Debug)]
pub struct Loaded {
    /// The rows, in the order of the positions.
    pub batch: RecordBatch,
    /// The errors of records that were skipped.
    pub skipped: Vec<Error>,
}

/// The batches of a [`LoaderPlan`]. Threads read and decode them ahead of the consumer, and end with
/// this.
#[derive(Debug)]
pub struct Loader {
    /// `None` after an error.
    batches: Option<Receiver<Result<Loaded>>>,
    /// The thread that waits for the others.
    running: Option<JoinHandle<()>>,
}

impl LoaderPlan {
    /// Starts to read.
    pub fn start(self) -> Loader {
        let batches = self.share.count().saturating_sub(self.first);
        let threads = self.threads.max(1).min(batches as usize);
        let extent = self.selection.extent(&self.dataset);
        let record_bytes = extent.mean_bytes() + self.dataset.pixel_bytes();
        let batch_bytes = record_bytes.saturating_mul(self.share.batch_size());
        let fitting = WAITING_BYTES as u64 / batch_bytes.max(1);
        let (sender, receiver) = sync_channel((fitting as usize).clamp(2, WAITING_BATCHES));
        let work = Arc::new(Work {
            planner: Lock::new(Planner::new(&self)),
            output: Ordered::new(BatchSender(sender), WAITING_BYTES),
            plan: self,
        });
        let running = thread::spawn(move || {
            on_threads(threads, || work.run());
        });
        Loader {
            batches: Some(receiver),
            running: Some(running),
        }
    }
}

impl Loader {
    /// Waits for the next batch for some time. `Ready(None)` at the end, and after an error.
    ///
    /// A panic of a thread is continued.
    pub fn poll(&mut self, patience: Duration) -> Poll<Option<Result<Loaded>>> {
        let Some(batches) = &self.batches else {
            return Poll::Ready(None);
        };
        match batches.recv_timeout(patience) {
            Ok(Ok(loaded)) => Poll::Ready(Some(Ok(loaded))),
            Ok(Err(error)) => {
                // Threads may have made the batches after it.
                self.batches = None;
                Poll::Ready(Some(Err(error)))
            }
            Err(RecvTimeoutError::Timeout) => Poll::Pending,
            Err(RecvTimeoutError::Disconnected) => {
                match self.running.take().map(JoinHandle::join) {
                    Some(Err(panic)) => resume_unwind(panic),
                    Some(Ok(())) | None => Poll::Ready(None),
                }
            }
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.batches = None;
        // They may be reading. `pthread_detach` of glibc 2.36 reads the memory of a thread that ends
        // at the same time, which may be unmapped: another thread waits for them.
        if let Some(running) = self.running.take() {
            drop(thread::Builder::new().spawn(move || running.join()));
        }
    }
}

impl Iterator for Loader {
    type Item = Result<Loaded>;

    fn next(&mut self) -> Option<Result<Loaded>> {
        loop {
            if let Poll::Ready(loaded) = self.poll(LONG) {
                return loaded;
            }
        }
    }
}

/// Sends batches to the consumer.
struct BatchSender(SyncSender<Result<Loaded>>);

/// The consumer has no use for more batches.
struct Unwanted;

impl PieceSink for BatchSender {
    type Piece = Result<Loaded>;
    type Error = Unwanted;

    fn write(&mut self, loaded: Result<Loaded>) -> Result<(), Unwanted> {
        self.0.send(loaded).map_err(|_| Unwanted)
    }

    fn held_bytes(loaded: &Result<Loaded>) -> usize {
        match loaded {
            Ok(loaded) => loaded.batch.get_array_memory_size(),
            Err(_) => 0,
        }
    }

    fn cancelled() -> Unwanted {
        Unwanted
    }
}

/// What the threads share.
struct Work {
    plan: LoaderPlan,
    planner: Lock<Planner>,
    output: Ordered<BatchSender>,
}

/// Divides the work among the threads.
struct Planner {
    share: Share,
    /// The positions of all batches.
    positions: Peekable<Box<dyn Iterator<Item = u64> + Send>>,
    /// Number of positions of a round; `None` if each batch is a round.
    round: Option<u64>,
    /// The number of the next batch.
    next: u64,
    /// The round that batches are taken of, and how many of its records were.
    current: Option<Arc<Round>>,
    taken: usize,
    /// The round after it, once a thread reads it.
    ahead: Option<Arc<Round>>,
}

/// Positions whose records are read together.
struct Round {
    positions: Vec<u64>,
    fetched: OnceLock<Result<Fetched, Lock<Option<Error>>>>,
    /// The errors of corrupt frames, for the first batch.
    skipped: Lock<Vec<Error>>,
}

/// Some records of a round.
struct Part {
    round: Arc<Round>,
    places: Range<usize>,
}

/// What a thread does next.
enum LoaderTask {
    /// It reads a round that is needed soon.
    Fetch(Arc<Round>),
    /// It makes a batch.
    Batch { number: u64, parts: Vec<Part> },
}

impl Planner {
    fn new(plan: &LoaderPlan) -> Self {
        let positions: Box<dyn Iterator<Item = u64> + Send> =
            Box::new(plan.share.batches_from(plan.first).flatten());
        Self {
            share: plan.share,
            positions: positions.peekable(),
            round: plan.order.round(),
            next: plan.first,
            current: None,
            taken: 0,
            ahead: None,
        }
    }

    /// The next task; `None` if all are taken.
    fn next(&mut self) -> Option<LoaderTask> {
        if let Some(round) = self.needed_soon() {
            return Some(LoaderTask::Fetch(round));
        }
        if self.next >= self.share.count() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let mut left = self.share.batch(number).count();
        let mut parts = Vec::new();
        while left > 0 {
            let round = self.current()?;
            let count = left.min(round.positions.len() - self.taken);
            let places = self.taken..self.taken + count;
            parts.push(Part { round, places });
            self.taken += count;
            left -= count;
        }
        Some(LoaderTask::Batch { number, parts })
    }

    /// The round after the current one, if half of the current one is taken and no thread reads it.
    fn needed_soon(&mut self) -> Option<Arc<Round>> {
        let current = self.current.as_ref()?;
        if self.round.is_none() || self.ahead.is_some() || self.taken < current.positions.len() / 2
        {
            return None;
        }
        self.ahead = self.begin();
        self.ahead.clone()
    }

    /// The round that the next record is in; `None` if there are no more records.
    fn current(&mut self) -> Option<Arc<Round>> {
        match &self.current {
            Some(current) if self.taken < current.positions.len() => {}
            _ => {
                self.current = Some(match self.ahead.take() {
                    Some(round) => round,
                    None => self.begin()?,
                });
                self.taken = 0;
            }
        }
        self.current.clone()
    }

    /// Begins the next round; `None` if there are no more records.
    fn begin(&mut self) -> Option<Arc<Round>> {
        let first = *self.positions.peek()?;
        let mut positions = Vec::new();
        if let Some(round) = self.round {
            let end = (first / round + 1) * round;
            while let Some(position) = self.positions.next_if(|position| *position < end) {
                positions.push(position);
            }
        } else {
            // The batch that was counted last.
            let count = self.share.batch(self.next.saturating_sub(1)).count();
            positions.extend(self.positions.by_ref().take(count));
        }
        Some(Arc::new(Round {
            positions,
            fetched: OnceLock::new(),
            skipped: Lock::default(),
        }))
    }

    /// Ends the work after an error.
    fn stop(&mut self) {
        self.next = self.share.count();
        self.ahead = None;
        self.current = None;
    }
}

impl Work {
    /// Does tasks until there are none, or the consumer is gone.
    fn run(&self) {
        loop {
            let task = self.planner.lock().next();
            let (number, parts) = match task {
                None => return,
                Some(LoaderTask::Fetch(round)) => {
                    self.fetch(&round);
                    continue;
                }
                Some(LoaderTask::Batch { number, parts }) => (number, parts),
            };
            let mut ticket = self.output.ticket(number - self.plan.first);
            let loaded = self.load(parts);
            if loaded.is_err() {
                self.planner.lock().stop();
            }
            if ticket.write(loaded).and_then(|()| ticket.finish()).is_err() {
                self.planner.lock().stop();
                return;
            }
        }
    }

    /// The records of a round, which the first thread reads that needs them.
    fn fetch<'r>(&self, round: &'r Round) -> &'r Result<Fetched, Lock<Option<Error>>> {
        round.fetched.get_or_init(|| {
            let LoaderPlan {
                dataset,
                selection,
                order,
                threads,
                ..
            } = &self.plan;
            let mut numbers = Vec::with_capacity(round.positions.len());
            for position in &round.positions {
                numbers.push(selection.record(order.record(*position)));
            }
            let threads = match order.round() {
                Some(_) => *threads,
                None => 1,
            };
            let mut fetched = dataset
                .fetch(&numbers, threads)
                .map_err(|error| Lock::new(Some(error)))?;
            *round.skipped.lock() = fetched.take_skipped();
            Ok(fetched)
        })
    }

    /// Makes a batch of some records.
    fn load(&self, parts: Vec<Part>) -> Result<Loaded> {
        let dataset = &self.plan.dataset;
        let mut batches = Vec::with_capacity(parts.len());
        let mut skipped = Vec::new();
        for Part { round, places } in parts {
            let fetched = match self.fetch(&round) {
                Ok(fetched) => fetched,
                Err(error) => {
                    let stopped = || Error::general(ErrorKind::Stopped);
                    return Err(error.lock().take().unwrap_or_else(stopped));
                }
            };
            skipped.append(&mut round.skipped.lock());
            let (batch, of_batch) = dataset.decode(fetched, places)?;
            skipped.extend(of_batch);
            batches.push(batch);
        }
        let batch = match batches.as_slice() {
            [] => RecordBatch::new_empty(Arc::clone(dataset.schema())),
            [batch] => batch.clone(),
            [..] => concat_batches(dataset.schema(), &batches)
                .map_err(|error| Error::general(ErrorKind::Codec(error.into())))?,
        };
        Ok(Loaded { batch, skipped })
    }
}
