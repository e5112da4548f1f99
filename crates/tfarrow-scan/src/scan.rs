//! A scan: the shards of a data set, or a sample of them, are read by the threads of a [`Crew`],
//! and each record is observed.

use std::{
    mem,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tfarrow_codec::{Category, OnError, Records, Summary, infer::RecordObserver};
use tfarrow_dataset::{
    DamageReport, Error, ErrorKind, Fault, OnProgress, ReadOptions, Result, Segment, Shard,
    SharedReader, Taken,
    internals::{Lock, on_threads},
};

use crate::{
    crew::{Crew, Member, Task},
    options::InferOptions,
    row_losses::RowLosses,
    row_records::{EncodedRows, RowEncoding, RowFile, RowPart},
    sample::{Room, Sample},
};

/// The result of a scan.
pub(crate) struct Scanned<O> {
    pub(crate) summary: Summary,
    /// The observer of each thread.
    pub(crate) observers: Vec<O>,
    /// Corrupt records and bytes that were skipped.
    pub(crate) damage: DamageReport,
    /// The differences between the rows of files of other formats and their records.
    pub(crate) losses: RowLosses,
    /// Whether any shard was not read to its end.
    pub(crate) is_cut: bool,
    /// The number of records that were taken of each of the picked shards, with corrupt ones; 0 for
    /// other files than TFRecord.
    pub(crate) records: Vec<u64>,
}

/// Reads the shards at the indices `picked`. If `max_faults` is set, no error of a file ends the
/// scan, and that many errors are kept.
///
/// # Errors
/// The first error in the order of the data set, and [`ErrorKind::Stopped`] if `progress` stops the
/// scan.
pub(crate) fn scan<O: RecordObserver + Send>(
    shards: &[Shard],
    picked: &[usize],
    options: &InferOptions,
    max_faults: Option<usize>,
    progress: &OnProgress<'_>,
    observer: &(impl Fn() -> O + Sync),
) -> Result<Scanned<O>> {
    let rows = RowEncoding::new(options);
    let begin = |number: usize| {
        let Some(index) = picked.get(number).copied() else {
            return Ok(None);
        };
        let shard = shards
            .get(index)
            .map(|shard| ShardScan::new(number, index, shard, options, &rows));
        Ok(shard.map(Arc::new))
    };
    let scan = Scan {
        crew: Crew::new(&begin),
        options,
        max_faults,
        progress,
        failed: AtomicUsize::new(usize::MAX),
        totals: Lock::new(Totals {
            records: vec![0; picked.len()],
            damage: DamageReport::new(max_faults.unwrap_or(1)),
            is_cut: false,
        }),
    };
    let mut workers = on_threads(options.threads.max(1), || scan.run(observer()));
    let errors = workers.iter_mut().filter_map(|worker| worker.error.take());
    if let Some((_, error)) = errors.min_by_key(|(shard, error)| (*shard, error.record())) {
        return Err(error);
    }
    let mut summary = scan.summary();
    let Totals {
        records,
        mut damage,
        is_cut,
    } = scan.totals.into_inner();
    let mut observers = Vec::with_capacity(workers.len());
    for worker in workers {
        summary
            .merge(&worker.summary)
            .map_err(|error| Error::general(ErrorKind::Codec(error)))?;
        damage.merge(worker.damage);
        observers.push(worker.observer);
    }
    Ok(Scanned {
        summary,
        observers,
        damage,
        losses: rows.into_losses(),
        is_cut,
        records,
    })
}

/// The state that the threads of a scan share.
struct Scan<'a> {
    crew: Crew<'a, ShardScan<'a>, Error>,
    options: &'a InferOptions,
    /// Maximum number of errors that are kept, if no error of a file ends the scan.
    max_faults: Option<usize>,
    progress: &'a OnProgress<'a>,
    /// The index of the first shard with an error. Shards after it need not be read.
    failed: AtomicUsize,
    totals: Lock<Totals>,
}

/// What was taken of all shards, in the order of each shard.
struct Totals {
    /// The number of records that were taken of each TFRecord file.
    records: Vec<u64>,
    /// Bytes that contain no record.
    damage: DamageReport,
    /// Whether any shard was not read to its end.
    is_cut: bool,
}

/// The state of one thread.
struct Worker<O> {
    summary: Summary,
    observer: O,
    /// Corrupt records that were skipped.
    damage: DamageReport,
    /// The first error in the order of the data set that this thread has met, and the index of its
    /// shard.
    error: Option<(usize, Error)>,
    /// Memory to read into.
    memory: Option<Vec<u8>>,
}

/// One shard of a scan.
struct ShardScan<'a> {
    /// Its number among the picked shards, and its index in the data set.
    number: usize,
    index: usize,
    shard: &'a Shard,
    read: ReadOptions,
    rows: &'a RowEncoding,
    /// Whether at most a sample of the shard is read.
    is_sample: bool,
    reader: Lock<ReaderState>,
    /// The room for records that its sample has left.
    room: Lock<Room>,
}

/// Whether a shard is open.
enum ReaderState {
    Unopened,
    Open(Arc<OpenShard>),
    Closed,
}

/// An open shard.
enum OpenShard {
    TfRecord(SharedReader),
    Rows(RowFile),
}

/// A part of a shard that one thread takes.
enum Part {
    Chunk(Chunk),
    Rows(RowPart),
    /// All rows: the sample of a shard has the first ones.
    AllRows(RowFile),
}

/// Some records of a shard.
struct Chunk {
    /// `None` if the bytes contain no record.
    records: Option<Records>,
    /// Number of bytes of the shard, as it is stored.
    bytes: u64,
}

impl Task for ShardScan<'_> {
    fn bytes(&self) -> u64 {
        self.shard.size
    }
}

impl<'a> ShardScan<'a> {
    fn new(
        number: usize,
        index: usize,
        shard: &'a Shard,
        options: &InferOptions,
        rows: &'a RowEncoding,
    ) -> Self {
        Self {
            number,
            index,
            shard,
            read: options.read_options(),
            rows,
            is_sample: options.sample != Sample::All,
            reader: Lock::new(ReaderState::Unopened),
            room: Lock::new(Room::new(options.sample)),
        }
    }

    /// The reader of the shard; `None` if it is closed. The first thread opens it, and others wait
    /// for that.
    fn open(&self) -> Result<Option<Arc<OpenShard>>> {
        let mut state = self.reader.lock();
        match &*state {
            ReaderState::Closed => Ok(None),
            ReaderState::Open(open) => Ok(Some(Arc::clone(open))),
            ReaderState::Unopened => {
                *state = ReaderState::Closed;
                let open = match RowFile::open(self.shard, self.rows)? {
                    Some(rows) => OpenShard::Rows(rows),
                    None => OpenShard::TfRecord(SharedReader::open(self.shard, &self.read)?),
                };
                let open = Arc::new(open);
                // One thread takes the sample of a shard of rows, so that the others find the shard
                // closed.
                if !self.is_sample || matches!(*open, OpenShard::TfRecord(_)) {
                    *state = ReaderState::Open(Arc::clone(&open));
                }
                Ok(Some(open))
            }
        }
    }

    fn close(&self) {
        let open = mem::replace(&mut *self.reader.lock(), ReaderState::Closed);
        // The file is closed without the lock.
        drop(open);
    }
}

impl Scan<'_> {
    /// An empty summary. A scan for errors infers no schema, so that an excess of feature names is
    /// no error.
    fn summary(&self) -> Summary {
        let InferOptions {
            record_type, read, ..
        } = self.options;
        let summary = Summary::with_limits(0, read.limits).with_record_type(*record_type);
        if self.max_faults.is_some() {
            summary.ignoring_excess_names()
        } else {
            summary
        }
    }

    fn run<O: RecordObserver>(&self, observer: O) -> Worker<O> {
        let damage = DamageReport::new(self.max_faults.unwrap_or(1));
        let mut worker = Worker {
            summary: self.summary(),
            observer,
            damage,
            error: None,
            memory: None,
        };
        let mut member = Member::default();
        while let Ok(Some((number, shard))) = self.crew.next(&mut member) {
            self.read(&shard, &mut worker);
            self.crew.end(number, &shard);
        }
        worker
    }

    /// Reads a shard, together with other threads, until it ends.
    fn read<O: RecordObserver>(&self, shard: &ShardScan<'_>, worker: &mut Worker<O>) {
        worker.summary.set_shard(shard.index as u32);
        while shard.index <= self.failed.load(Ordering::Relaxed) {
            let read = match self.next_part(shard, worker.memory.take()) {
                Ok(None) => break,
                Ok(Some(Part::Chunk(chunk))) => self.observe_chunk(shard, worker, chunk),
                Ok(Some(Part::Rows(rows))) => self.observe_rows(shard, worker, rows).map(drop),
                Ok(Some(Part::AllRows(file))) => self.observe_all_rows(shard, worker, &file),
                Err(error) if self.max_faults.is_some() && !error.is_machine() => {
                    worker.damage.add(Fault::of(shard.index, error));
                    break;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                self.fail(shard, error, worker);
            }
        }
    }

    /// Takes the next part of a shard; `None` at the end. The shard is closed at its end, and after
    /// an error.
    fn next_part(&self, shard: &ShardScan<'_>, memory: Option<Vec<u8>>) -> Result<Option<Part>> {
        let Some(open) = shard.open()? else {
            return Ok(None);
        };
        let next = match &*open {
            OpenShard::TfRecord(reader) => {
                match reader.next(memory, |taken| self.enter(shard, taken)) {
                    Some(chunk) => chunk.map(|chunk| chunk.map(Part::Chunk)),
                    None => Ok(None),
                }
            }
            OpenShard::Rows(rows) if shard.is_sample => Ok(Some(Part::AllRows(rows.clone()))),
            OpenShard::Rows(rows) => Ok(rows.take().map(Part::Rows)),
        };
        if !matches!(next, Ok(Some(_))) {
            shard.close();
        }
        next
    }

    /// Takes as much of a TFRecord file as its sample has room for. After a complete sample, errors
    /// of the shard are ignored too.
    fn enter(&self, shard: &ShardScan<'_>, taken: Result<Taken>) -> Result<Option<Chunk>> {
        let mut room = shard.room.lock();
        if room.is_cut() {
            return Ok(None);
        }
        let Taken { segment, bytes } = taken?;
        let mut totals = self.totals.lock();
        let chunk = match segment {
            Segment::Records(records) => {
                if let Some(count) = totals.records.get_mut(shard.number) {
                    *count += records.len() as u64;
                }
                let records = room.take(records);
                records.map(|records| Chunk {
                    records: Some(records),
                    bytes,
                })
            }
            Segment::Lost(lost) => {
                room.lose(lost.bytes.len());
                totals.damage.add_lost(shard.index, lost);
                (!room.is_cut()).then_some(Chunk {
                    records: None,
                    bytes,
                })
            }
        };
        totals.is_cut |= room.is_cut();
        Ok(chunk)
    }

    fn observe_all_rows<O: RecordObserver>(
        &self,
        shard: &ShardScan<'_>,
        worker: &mut Worker<O>,
        file: &RowFile,
    ) -> Result<()> {
        while let Some(rows) = file.take() {
            if self.observe_rows(shard, worker, rows)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Observes a part of a shard of rows. Stops when an earlier shard fails, or the sample of the
    /// shard is complete.
    fn observe_rows<O: RecordObserver>(
        &self,
        shard: &ShardScan<'_>,
        worker: &mut Worker<O>,
        rows: RowPart,
    ) -> Result<ControlFlow<()>> {
        for encoded in rows {
            if shard.index > self.failed.load(Ordering::Relaxed) {
                return Ok(ControlFlow::Break(()));
            }
            let EncodedRows { records, bytes } = encoded?;
            let mut room = shard.room.lock();
            let records = room.take(records);
            self.totals.lock().is_cut |= room.is_cut();
            drop(room);
            let Some(records) = records else {
                return Ok(ControlFlow::Break(()));
            };
            self.observe_chunk(
                shard,
                worker,
                Chunk {
                    records: Some(records),
                    bytes,
                },
            )?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn observe_chunk<O: RecordObserver>(
        &self,
        shard: &ShardScan<'_>,
        worker: &mut Worker<O>,
        chunk: Chunk,
    ) -> Result<()> {
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

    /// Observes all records but those that are skipped: corrupt records, if the options say so, and
    /// records that exceed a limit in a scan for errors. In other scans the user has to decide
    /// whether the limit is right. Returns the rest of the records, which hold their memory.
    fn observe<O: RecordObserver>(
        &self,
        shard: &ShardScan<'_>,
        worker: &mut Worker<O>,
        records: Records,
    ) -> Result<Records> {
        let Worker {
            summary,
            observer,
            damage,
            ..
        } = worker;
        records.skip_rejected(
            |records| summary.observe_with(records, self.options.verify, observer),
            |_, bad, error| self.skip(shard, damage, &bad, error),
        )
    }

    /// Adds a record that was rejected, the only one of `bad`, to the damage.
    ///
    /// # Errors
    /// The error of the record, if it is not skipped.
    fn skip(
        &self,
        shard: &ShardScan<'_>,
        damage: &mut DamageReport,
        bad: &Records,
        error: tfarrow_codec::Error,
    ) -> Result<()> {
        let is_skipped = match error.category() {
            Category::Corrupt => self.options.read.on_error == OnError::Skip,
            Category::Limit => self.max_faults.is_some(),
            Category::Truncated | Category::Data | Category::Usage => false,
        };
        let error = Error::codec(&shard.shard.path, error);
        if !is_skipped {
            return Err(error);
        }
        let bytes = bad.data(0).map_or(0, <[u8]>::len) as u64;
        damage.add_record(Fault {
            bytes,
            ..Fault::of(shard.index, error)
        });
        Ok(())
    }

    /// Keeps the error if it is the first of the thread, and closes the shard. Other threads may
    /// still observe chunks before the error, and find earlier ones.
    fn fail<O>(&self, shard: &ShardScan<'_>, error: Error, worker: &mut Worker<O>) {
        shard.close();
        self.failed.fetch_min(shard.index, Ordering::Relaxed);
        let is_first = match &worker.error {
            Some((index, known)) => (shard.index, error.record()) < (*index, known.record()),
            None => true,
        };
        if is_first {
            worker.error = Some((shard.index, error));
        }
    }
}
