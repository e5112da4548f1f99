//! The threads of a scan, and the shards that they read.

use std::{
    cmp::Reverse,
    mem,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tfarrow_codec::{Category, OnError, Records, Summary, infer::RecordObserver};

use super::{
    options::{InferOptions, OnProgress},
    rows::{EncodedRows, OpenRows, RowPart, RowShard},
    sample::{Room, Sample},
};
use crate::{
    Error, ErrorKind, ReadOptions, Result, Segment, Shard, SharedReader, Taken,
    damage::{DamageReport, Fault},
    lock::Lock,
    threads::{TaskQueue, on_threads},
};

/// The result of a scan.
pub(super) struct Scanned<O> {
    pub(super) summary: Summary,
    /// The observer of each thread.
    pub(super) observers: Vec<O>,
    /// Corrupt records and bytes that were skipped.
    pub(super) losses: DamageReport,
    /// Whether any shard was not read to its end.
    pub(super) is_cut: bool,
    /// The number of records that were taken of each of the picked shards, with corrupt ones; 0 for other files than TFRecord.
    pub(super) records: Vec<u64>,
}

/// Reads the shards at the indices `picked`; those of other formats through `rows`. With `faults`, no error of a file ends the scan, and up to that number of
/// errors are kept.
///
/// # Errors
/// The first error in the order of the data set, and [`ErrorKind::Stopped`] if `progress` stops the scan.
pub(super) fn scan<O: RecordObserver + Send>(
    shards: &[Shard],
    picked: &[usize],
    options: &InferOptions,
    faults: Option<usize>,
    (progress, rows): (&OnProgress<'_>, &dyn OpenRows),
    observer: &(impl Fn() -> O + Sync),
) -> Result<Scanned<O>> {
    let shard = |&index| Some(ShardScan::new(index, shards.get(index)?, options, faults.unwrap_or(1), rows));
    let shards: Vec<_> = picked.iter().filter_map(shard).collect();
    let (queue, failed) = (TaskQueue::new(&shards), AtomicUsize::new(usize::MAX));
    let scan = Scan { shards: &shards, queue, options, faults, failed, progress };
    let mut workers = on_threads(options.jobs.max(1), || scan.run(observer()));
    let errors = workers.iter_mut().filter_map(|worker| worker.error.take());
    if let Some((_, error)) = errors.min_by_key(|(shard, error)| (*shard, error.record())) {
        return Err(error);
    }
    let (summary, losses) = (scan.summary(), DamageReport::new(faults.unwrap_or(1)));
    let mut scanned = Scanned { summary, observers: Vec::new(), losses, is_cut: false, records: Vec::new() };
    for worker in workers {
        let merged = scanned.summary.merge(&worker.summary);
        merged.map_err(|error| Error::general(ErrorKind::Codec(error)))?;
        scanned.observers.push(worker.observer);
        scanned.losses.merge(worker.losses);
    }
    for shard in shards {
        let found = shard.found.into_inner();
        scanned.is_cut |= found.room.is_cut();
        scanned.records.push(found.records);
        scanned.losses.merge(found.losses);
    }
    Ok(scanned)
}

/// One shard of a scan, which any number of threads read.
struct ShardScan<'a> {
    /// Its number in the data set.
    index: usize,
    shard: &'a Shard,
    options: ReadOptions,
    /// Opens shards of other formats than TFRecord.
    rows: &'a dyn OpenRows,
    /// Whether at most a sample of the shard is read.
    is_sample: bool,
    reader: Lock<ShardState>,
    found: Lock<Found>,
}

/// Whether a shard is open. Few are at a time, because a process may open few files.
enum ShardState {
    Unopened,
    Open(Arc<OpenShard>),
    Closed,
}

/// An open shard.
enum OpenShard {
    TfRecord(SharedReader),
    Rows(Box<dyn RowShard>),
}

/// A part of a shard that one thread takes.
enum Part {
    Chunk(Chunk),
    Rows(RowPart),
}

/// The part of a shard that was taken, in the order of the shard.
struct Found {
    room: Room,
    /// Number of records that were taken of a TFRecord file.
    records: u64,
    /// Bytes that contain no record.
    losses: DamageReport,
}

/// A part of a shard that one thread processes.
#[derive(Default)]
struct Chunk {
    /// `None` if the bytes contain no record.
    records: Option<Records>,
    /// Number of bytes of the shard, as it is stored.
    bytes: u64,
}

impl<'a> ShardScan<'a> {
    fn new(index: usize, shard: &'a Shard, options: &InferOptions, faults: usize, rows: &'a dyn OpenRows) -> Self {
        let found = Found { room: Room::new(options.sample), records: 0, losses: DamageReport::new(faults) };
        let (reader, found) = (Lock::new(ShardState::Unopened), Lock::new(found));
        let is_sample = options.sample != Sample::All;
        Self { index, shard, options: options.read_options(), rows, is_sample, reader, found }
    }

    /// Returns the next part of the shard; `None` at the end, which an error is too.
    fn next(&self, memory: Option<Vec<u8>>) -> Result<Option<Part>> {
        let Some(open) = self.open()? else { return Ok(None) };
        let next = match &*open {
            OpenShard::TfRecord(reader) => {
                let next = reader.next(memory, |taken| self.enter(taken)).unwrap_or(Ok(None));
                next.map(|chunk| chunk.map(Part::Chunk))
            }
            // A sample has the first rows of the shard.
            OpenShard::Rows(_) if self.is_sample => Ok(Some(Part::Rows(all_parts(Arc::clone(&open))))),
            OpenShard::Rows(rows) => Ok(rows.take().map(Part::Rows)),
        };
        if !matches!(next, Ok(Some(_))) {
            self.close();
        }
        next
    }

    /// The reader of the shard; `None` if it is closed. The first thread opens it, and others wait for that.
    fn open(&self) -> Result<Option<Arc<OpenShard>>> {
        let mut state = self.reader.lock();
        match &*state {
            ShardState::Closed => Ok(None),
            ShardState::Open(open) => Ok(Some(Arc::clone(open))),
            ShardState::Unopened => {
                *state = ShardState::Closed;
                let open = match self.rows.open(self.shard)? {
                    Some(rows) => OpenShard::Rows(rows),
                    None => OpenShard::TfRecord(SharedReader::open(self.shard, &self.options)?),
                };
                let open = Arc::new(open);
                // One thread takes the sample of a shard of rows, so that the others find the shard closed.
                if !self.is_sample || matches!(*open, OpenShard::TfRecord(_)) {
                    *state = ShardState::Open(Arc::clone(&open));
                }
                Ok(Some(open))
            }
        }
    }

    fn close(&self) {
        let open = mem::replace(&mut *self.reader.lock(), ShardState::Closed);
        // The file is closed without the lock.
        drop(open);
    }

    /// Takes as much as the sample has room for. After a complete sample, errors of the shard are ignored too.
    fn enter(&self, taken: Result<Taken>) -> Result<Option<Chunk>> {
        let Found { room, records: count, losses } = &mut *self.found.lock();
        if room.is_cut() {
            return Ok(None);
        }
        let Taken { segment, bytes } = taken?;
        match segment {
            Segment::Records(records) => {
                *count += records.len() as u64;
                Ok(room.take(records).map(|records| Chunk { records: Some(records), bytes }))
            }
            Segment::Lost(lost) => {
                room.lose(lost.bytes.len());
                losses.add_lost(self.index, lost);
                Ok(Some(Chunk { records: None, bytes }).filter(|_| !room.is_cut()))
            }
        }
    }
}

/// All parts of a shard of rows, one after the other.
fn all_parts(open: Arc<OpenShard>) -> RowPart {
    let next = move || match &*open {
        OpenShard::Rows(rows) => rows.take(),
        OpenShard::TfRecord(_) => None,
    };
    Box::new(std::iter::from_fn(next).flatten())
}

/// The state that the threads of a scan share.
struct Scan<'a> {
    shards: &'a [ShardScan<'a>],
    queue: TaskQueue<'a, ShardScan<'a>>,
    options: &'a InferOptions,
    /// Maximum number of errors that are kept, if no error of a file ends the scan.
    faults: Option<usize>,
    /// The number of the first shard with an error. Shards after it need not be read.
    failed: AtomicUsize,
    progress: &'a OnProgress<'a>,
}

/// The state of one thread.
struct Worker<O> {
    summary: Summary,
    observer: O,
    /// Corrupt records that were skipped.
    losses: DamageReport,
    /// The first error in the order of the data set that this thread has met, and the number of its shard.
    error: Option<(usize, Error)>,
    /// Memory to read into.
    memory: Option<Vec<u8>>,
}

impl Scan<'_> {
    /// An empty summary. A scan for errors infers no schema, so that an excess of feature names is no error.
    fn summary(&self) -> Summary {
        let InferOptions { record_type, read, .. } = self.options;
        let summary = Summary::with_limits(0, read.limits).with_record_type(*record_type);
        if self.faults.is_some() { summary.ignoring_excess_names() } else { summary }
    }

    fn run<O: RecordObserver>(&self, observer: O) -> Worker<O> {
        let losses = DamageReport::new(self.faults.unwrap_or(1));
        let mut worker = Worker { summary: self.summary(), observer, losses, error: None, memory: None };
        while let Some((_, shard)) = self.queue.take() {
            self.read(shard, &mut worker);
        }
        let mut rest: Vec<_> = self.shards.iter().collect();
        rest.sort_by_key(|shard| Reverse(shard.shard.size));
        for shard in rest {
            self.read(shard, &mut worker);
        }
        worker
    }

    /// Reads a shard, together with other threads, until it ends.
    fn read<O: RecordObserver>(&self, shard: &ShardScan<'_>, worker: &mut Worker<O>) {
        worker.summary.set_shard(shard.index as u32);
        while shard.index <= self.failed.load(Ordering::Relaxed) {
            let read = match shard.next(worker.memory.take()) {
                Ok(None) => break,
                Ok(Some(Part::Chunk(chunk))) => self.process(shard, worker, chunk),
                Ok(Some(Part::Rows(rows))) => self.read_rows(shard, worker, rows),
                Err(error) if self.faults.is_some() && !error.is_machine() => {
                    worker.losses.add(Fault::of(shard.index, error));
                    break;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                self.fail(shard, error, worker);
            }
        }
    }

    /// Reads a part of a shard of rows, until an earlier shard fails or the sample of the shard is complete.
    fn read_rows<O: RecordObserver>(&self, shard: &ShardScan<'_>, worker: &mut Worker<O>, rows: RowPart) -> Result<()> {
        for encoded in rows {
            if shard.index > self.failed.load(Ordering::Relaxed) {
                break;
            }
            let EncodedRows { records, bytes } = encoded?;
            let Some(records) = shard.found.lock().room.take(records) else { break };
            self.process(shard, worker, Chunk { records: Some(records), bytes })?;
        }
        Ok(())
    }

    fn process<O: RecordObserver>(&self, shard: &ShardScan<'_>, worker: &mut Worker<O>, chunk: Chunk) -> Result<()> {
        let Chunk { records, bytes } = chunk;
        let count = records.as_ref().map_or(0, Records::len);
        if let Some(records) = records {
            worker.memory = self.observe(shard, worker, records)?.reclaim();
        }
        match (self.progress)(bytes, count as u64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::general(ErrorKind::Stopped)),
        }
    }

    /// Observes all records but those that are skipped: corrupt records, if the options say so, and records that exceed a
    /// limit in a scan for errors. In other scans the user has to decide whether the limit is right. Returns the rest of the
    /// records, which hold their memory.
    fn observe<O: RecordObserver>(
        &self,
        shard: &ShardScan<'_>,
        worker: &mut Worker<O>,
        records: Records,
    ) -> Result<Records> {
        let Worker { summary, observer, losses, .. } = worker;
        let observe = |records: &Records| summary.observe_with(records, self.options.verify, observer);
        let skip = |_: Records, bad: Records, error: tfarrow_codec::Error| {
            let is_skipped = match error.category() {
                Category::Corrupt => self.options.read.on_error == OnError::Skip,
                Category::Limit => self.faults.is_some(),
                Category::Truncated | Category::Data | Category::Usage => false,
            };
            let error = Error::codec(&shard.shard.path, error);
            if !is_skipped {
                return Err(error);
            }
            let bytes = bad.data(0).map_or(0, <[u8]>::len) as u64;
            losses.add_record(Fault { bytes, ..Fault::of(shard.index, error) });
            Ok(())
        };
        records.skip_rejected(observe, skip)
    }

    /// Keeps the error if it is the first of the thread, and closes the shard. Other threads may still process chunks before
    /// the error, and find earlier ones.
    fn fail<O>(&self, shard: &ShardScan<'_>, error: Error, worker: &mut Worker<O>) {
        shard.close();
        self.failed.fetch_min(shard.index, Ordering::Relaxed);
        let key = |(shard, error): &(usize, Error)| (*shard, error.record());
        let error = (shard.index, error);
        if worker.error.as_ref().is_none_or(|known| key(&error) < key(known)) {
            worker.error = Some(error);
        }
    }
}
