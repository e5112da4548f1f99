//! Jobs: the conversion of some shards to one output, or to new shards, by any number of workers.
//!
//! ```text
//! take the next unit ─▶ convert ─▶ write in order ─▶ complete the outputs ─▶ commit: give them their names
//! every worker          every worker                 the last worker         at once, or after all jobs
//! ```

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tfarrow_dataset::{TaskQueue, file_names::tf_shard_name, on_threads};

use super::{UnitWorker, routes::Route};
use crate::{
    Error, Progress, Result,
    formats::{FileFormat, LossyChanges, PieceWriter},
    input::{ReadContext, Unit, UnitReader, UnitSource},
    journal::{CompletedOutput, Journal},
    output::{
        ClosedOutput, Destination, Output, OutputOptions,
        made_of::MadeOf,
        ordered::{Ordered, PieceSink},
    },
    progress::UnitProgress,
};

/// The names of a job's outputs.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// One output.
    One(Destination),
    /// Numbered shards in a folder. `count` is `None` until all shards are written if their number is not known before.
    Set { folder: PathBuf, stem: String, extension: String, count: Option<usize> },
}

/// When outputs are committed, which gives them their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitMode {
    /// As soon as their job is complete.
    EachJob,
    /// After all jobs: the columns are not certain before.
    AllJobs,
}

/// A job of any route.
pub(crate) trait Job: Sync {
    /// Converts units on this thread until the job has none left. The last worker to leave completes the outputs.
    ///
    /// # Errors
    /// The first error of this worker. The job is then abandoned.
    fn run_worker(&self, mode: CommitMode) -> Result<()>;

    /// Ends the job without outputs.
    fn abandon(&self);

    /// Gives complete outputs their names, if they have none.
    ///
    /// # Errors
    /// I/O errors, and [`Error::Cancelled`].
    fn commit(&self) -> Result<()>;

    /// Keeps complete outputs that have no names on the disk, for a resumed run.
    fn keep_uncommitted(&self);

    /// The totals, after all workers have left.
    fn into_totals(self: Box<Self>) -> JobTotals;
}

/// Some shards of one route, and their outputs.
pub(crate) struct RouteJob<'p, R: Route> {
    route: R,
    input: Mutex<JobInput<'p, R::Source>>,
    outputs: Ordered<Outputs<'p, R::Format>>,
    state: Mutex<JobState>,
    context: ReadContext<'p>,
    record: OutputRecord<'p>,
}

/// The record of an output for later runs, in the journal or in the metadata of an object.
#[derive(Default)]
pub(crate) struct OutputRecord<'p> {
    pub(crate) journal: Option<&'p Journal>,
    /// The numbers of the shards that the output is made of; empty for new shards, which have no record.
    pub(crate) shards: Range<usize>,
    /// For the journal: the [hash](crate::output::made_of::source_of) of the shards and their columns.
    pub(crate) source: u64,
    /// For an object: all that it is made of. `None` for a file, and if that is not known.
    pub(crate) made_of: Option<MadeOf>,
}

#[derive(Default)]
struct JobState {
    /// Workers that are converting units of this job.
    workers: usize,
    /// Whether the outputs are complete, or the job is abandoned.
    closed: bool,
    totals: JobTotals,
}

struct JobInput<'p, S: UnitSource> {
    reader: UnitReader<'p, S>,
    ended: bool,
}

/// The totals of the workers of one job, or of several jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    pub(crate) lossy_changes: LossyChanges,
}

impl JobTotals {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.records += other.records;
        add_changes(&mut self.lossy_changes, other.lossy_changes);
    }
}

fn add_changes(changes: &mut LossyChanges, others: LossyChanges) {
    others.into_iter().for_each(|(change, count)| *changes.entry(change).or_default() += count);
}

/// The outputs of a job, which are written one after the other.
struct Outputs<'p, F: FileFormat> {
    journal: Option<&'p Journal>,
    naming: Naming,
    format: F,
    options: OutputOptions,
    open: Option<F::Writer>,
    /// Complete outputs that are not committed. The names of new shards contain their number.
    closed: Vec<ClosedOutput>,
}

impl<F: FileFormat> Outputs<'_, F> {
    fn destination(&self, number: usize) -> Destination {
        match &self.naming {
            Naming::One(destination) => destination.clone(),
            Naming::Set { folder, stem, extension, count } => {
                Destination::File(folder.join(tf_shard_name(stem, number, count.unwrap_or(0), extension)))
            }
        }
    }

    /// The writer of output `number`. Completes all outputs before it, those without pieces included.
    fn writer(&mut self, number: usize) -> Result<&mut F::Writer> {
        while self.closed.len() < number {
            self.close_open()?;
        }
        let writer = match self.open.take() {
            Some(writer) => writer,
            None => self.create(number)?,
        };
        Ok(self.open.insert(writer))
    }

    fn create(&self, number: usize) -> Result<F::Writer> {
        let destination = self.destination(number);
        match (&self.naming, &destination) {
            // A resumed run takes `count` from the shards in the folder; this conversion writes more than those.
            (Naming::Set { count: Some(count), .. }, Destination::File(path)) if number >= *count => {
                Err(Error::Differs { path: path.clone() })
            }
            _ => {
                let output = Output::create(&destination, &self.options, self.journal)?;
                self.format.create(destination.name(), output)
            }
        }
    }

    fn close_open(&mut self) -> Result<()> {
        let number = self.closed.len();
        let writer = match self.open.take() {
            Some(writer) => writer,
            None => self.create(number)?,
        };
        self.closed.push(writer.finish()?.close()?);
        Ok(())
    }

    /// Completes all outputs. They have no names yet.
    fn close(&mut self) -> Result<()> {
        let wanted = match &self.naming {
            Naming::One(_) => 1,
            Naming::Set { count, .. } => count.unwrap_or(self.closed.len() + usize::from(self.open.is_some())).max(1),
        };
        while self.closed.len() < wanted {
            self.close_open()?;
        }
        if let Naming::Set { count, .. } = &mut self.naming {
            *count = Some(wanted);
        }
        Ok(())
    }

    /// Gives complete outputs their names, and adds them and their bytes to `totals`.
    fn commit(&mut self, totals: &mut JobTotals, progress: &Progress) -> Result<()> {
        let mut closed = std::mem::take(&mut self.closed).into_iter().enumerate();
        for (number, output) in closed.by_ref() {
            // Naming an object in a store can take as long as its upload.
            if progress.is_cancelled() {
                self.closed = std::iter::once(output).chain(closed.map(|(_, output)| output)).collect();
                return Err(Error::Cancelled);
            }
            let destination = self.destination(number);
            totals.bytes += output.persist(&destination, &self.options)?;
            totals.files += u64::from(destination != Destination::Stream);
        }
        Ok(())
    }

    /// Keeps complete outputs that are not committed on the disk if the journal lists them; drops the others.
    fn keep_uncommitted(&mut self) {
        let is_listed = self.journal.is_some() && matches!(self.naming, Naming::One(_));
        std::mem::take(&mut self.closed).into_iter().filter(|_| is_listed).for_each(ClosedOutput::keep_uncommitted);
    }

    /// Records the complete output of a job with one output, before the output gets its name. An object has no record if a later
    /// run has to read its source again, to report the damage and the changes.
    fn record(&mut self, record: &OutputRecord<'_>, totals: &JobTotals, damaged: bool) -> Result<()> {
        if let (Some(made_of), false) = (&record.made_of, damaged || !totals.lossy_changes.is_empty()) {
            self.closed.iter_mut().for_each(|output| output.note(made_of, totals.records));
        }
        let (Some(journal), Naming::One(Destination::File(path)), [ClosedOutput::File(file, hash)]) =
            (self.journal, &self.naming, self.closed.as_slice())
        else {
            return Ok(());
        };
        // The path of the part may be absolute where the path of the output is relative.
        let Some(part) = file.part().and_then(Path::file_name) else { return Ok(()) };
        journal.record_completed(CompletedOutput {
            output: journal.name_of(path),
            part: journal.name_of(&path.with_file_name(part)),
            bytes: file.size(),
            hash: *hash,
            source: record.source,
            records: totals.records,
            lossy_changes: totals.lossy_changes.clone().into_iter().collect(),
            damaged,
        })
    }
}

impl<F: FileFormat> PieceSink for Outputs<'_, F> {
    type Piece = (usize, F::Piece);

    fn write(&mut self, (number, piece): Self::Piece) -> Result<()> {
        self.writer(number)?.write(piece)
    }

    fn held_bytes((_, piece): &Self::Piece) -> usize {
        F::held_bytes(piece)
    }
}

impl<'p, R: Route> RouteJob<'p, R> {
    pub(crate) fn new(
        route: R,
        reader: UnitReader<'p, R::Source>,
        (naming, options): (Naming, OutputOptions),
        context: ReadContext<'p>,
    ) -> Self {
        let format = route.format().clone();
        let outputs = Outputs { journal: None, naming, format, options, open: None, closed: Vec::new() };
        let (outputs, input) = (Ordered::new(outputs), Mutex::new(JobInput { reader, ended: false }));
        Self { route, input, outputs, state: Mutex::default(), context, record: OutputRecord::default() }
    }

    /// Records the output for later runs.
    pub(crate) fn with_record(self, record: OutputRecord<'p>) -> Self {
        self.outputs.with_output(|outputs| outputs.journal = record.journal);
        Self { record, ..self }
    }

    /// Marks the job as completed by an earlier run. `uncommitted` is its output if it has no name yet.
    pub(crate) fn completed(self, totals: JobTotals, uncommitted: Option<ClosedOutput>) -> Self {
        self.context.progress.add_records(totals.records);
        self.context.progress.add_files(totals.files);
        self.outputs.with_output(|outputs| outputs.closed.extend(uncommitted));
        lock(&self.input).ended = true;
        Self { state: Mutex::new(JobState { workers: 0, closed: true, totals }), ..self }
    }

    /// Converts units until there are none left. Returns the number of their records, and their lossy changes.
    fn convert_units(&self) -> Result<(u64, LossyChanges)> {
        let mut worker = self.route.worker(self.context)?;
        let mut records = 0;
        while let Some(unit) = self.next_unit()? {
            let mut progress = UnitProgress::new(self.context.progress, unit.bytes(), unit.rows());
            let (mut ticket, output) = (self.outputs.ticket(unit.number), unit.output);
            worker.convert(unit, &mut progress, &mut |piece| ticket.write((output, piece)))?;
            progress.finish();
            records += progress.converted_records();
            ticket.finish()?;
        }
        Ok((records, worker.lossy_changes()))
    }

    fn next_unit(&self) -> Result<Option<Unit<<R::Source as UnitSource>::Content>>> {
        let mut input = lock(&self.input);
        let unit = if input.ended { None } else { input.reader.next()? };
        input.ended |= unit.is_none();
        Ok(unit)
    }
}

impl<R: Route> Job for RouteJob<'_, R> {
    fn run_worker(&self, mode: CommitMode) -> Result<()> {
        {
            let mut state = lock(&self.state);
            if state.closed || lock(&self.input).ended {
                return Ok(());
            }
            state.workers += 1;
        }
        let result = self.convert_units();
        if result.is_err() {
            self.abandon();
        }
        let mut state = lock(&self.state);
        state.workers -= 1;
        let (records, lossy_changes) = result?;
        state.totals.records += records;
        add_changes(&mut state.totals.lossy_changes, lossy_changes);
        if state.workers > 0 || state.closed {
            return Ok(());
        }
        state.closed = true;
        let totals = state.totals.clone();
        drop(state);
        self.outputs.with_output(|outputs| {
            outputs.close()?;
            let is_damaged = self.record.shards.clone().any(|shard| self.context.damage.is_of(shard));
            outputs.record(&self.record, &totals, is_damaged)
        })?;
        if mode == CommitMode::EachJob { self.commit() } else { Ok(()) }
    }

    fn abandon(&self) {
        lock(&self.state).closed = true;
        lock(&self.input).ended = true;
        self.outputs.fail();
    }

    fn commit(&self) -> Result<()> {
        let mut totals = JobTotals::default();
        let result = self.outputs.with_output(|outputs| outputs.commit(&mut totals, self.context.progress));
        self.context.progress.add_files(totals.files);
        lock(&self.state).totals.add(totals);
        result
    }

    fn keep_uncommitted(&self) {
        self.outputs.with_output(Outputs::keep_uncommitted);
    }

    fn into_totals(self: Box<Self>) -> JobTotals {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).totals
    }
}

/// Runs all jobs on `workers` threads. Each thread takes the next job that has not started, and helps with open jobs when
/// there is none left.
pub(crate) fn run(jobs: Vec<Box<dyn Job + '_>>, workers: usize, mode: CommitMode) -> Result<JobTotals> {
    let queue = TaskQueue::new(&jobs);
    let work = || {
        let own = std::iter::from_fn(|| queue.take()).map(|(_, job)| job);
        let result = own.chain(&jobs).try_for_each(|job| job.run_worker(mode));
        if result.is_err() {
            jobs.iter().for_each(|job| job.abandon());
        }
        result
    };
    let uncommitted = TaskQueue::new(&jobs);
    let commit = || std::iter::from_fn(|| uncommitted.take()).try_for_each(|(_, job)| job.commit());
    let outcome = first_error(on_threads(workers, work)).and_then(|()| first_error(on_threads(workers, commit)));
    if outcome.as_ref().is_err_and(Error::is_passing) {
        jobs.iter().for_each(|job| job.keep_uncommitted());
    }
    outcome?;
    let mut totals = JobTotals::default();
    jobs.into_iter().for_each(|job| totals.add(job.into_totals()));
    Ok(totals)
}

/// The first error that is a cause: [`Error::Cancelled`] of a worker is the consequence of another worker's error if there
/// is one.
fn first_error(results: Vec<Result<()>>) -> Result<()> {
    let (cancelled, others): (Vec<_>, Vec<_>) = results.into_iter().partition(|r| matches!(r, Err(Error::Cancelled)));
    others.into_iter().chain(cancelled).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
