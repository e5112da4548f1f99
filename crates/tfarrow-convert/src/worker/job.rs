//! Jobs: the conversion of some shards to one output, or to new shards, by any number of workers.
//!
//! ```text
//! begin ─▶ take the next unit ─▶ convert ─▶ write in order ─▶ complete the outputs ─▶ commit: give them their names
//! a worker every worker          every worker                 the last worker         at once, or after all jobs
//! ```
//!
//! A job is made when a worker begins it, and dropped when its outputs are complete: a data set may
//! have hundreds of thousands of shards.

use std::{
    collections::VecDeque,
    mem,
    ops::Range,
    path::{Path, PathBuf},
};

use tfarrow_dataset::{
    file_names::tf_shard_name,
    internals::{Lock, on_threads},
};
use tfarrow_scan::{Begin, Crew, Member, Ordered, PieceSink, Task};

use super::{UnitWorker, routes::Route};
use crate::{
    Error, Progress, Result,
    formats::{FileFormat, LossyChanges, PieceWriter},
    input::{ReadContext, Unit, UnitReader, UnitSource},
    journal::{CompletedOutput, Journal},
    output::{ClosedOutput, Destination, Output, OutputOptions, made_of::MadeOf},
    progress::UnitProgress,
};

/// Maximum bytes that a worker, and all finished units of a job together, hold back before a worker
/// waits for its turn.
const MAX_HELD_BYTES: usize = 32 << 20;

/// The names of a job's outputs.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// One output.
    One(Destination),
    /// Numbered shards in a folder. `count` is `None` until all shards are written if their number
    /// is not known before.
    Set {
        folder: PathBuf,
        stem: String,
        extension: String,
        count: Option<usize>,
    },
}

impl Naming {
    /// The place of output `number`.
    fn destination(&self, number: usize) -> Destination {
        match self {
            Self::One(destination) => destination.clone(),
            Self::Set {
                folder,
                stem,
                extension,
                count,
            } => Destination::File(folder.join(tf_shard_name(
                stem,
                number,
                count.unwrap_or(0),
                extension,
            ))),
        }
    }
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
pub(crate) trait Job: Task {
    /// Converts units on this thread until the job has none left. The last worker to leave
    /// completes the outputs, and returns them.
    ///
    /// # Errors
    /// The first error of this worker. The job is then abandoned.
    fn run_worker(&self) -> Result<Option<ClosedJob>>;

    /// Ends the job without outputs.
    fn abandon(&self);
}

/// A job whose outputs are complete.
pub(crate) struct ClosedJob {
    pub(crate) totals: JobTotals,
    /// The outputs that have no names yet.
    pub(crate) outputs: Vec<UnnamedOutput>,
}

/// A job whose outputs an earlier run completed.
pub(crate) struct CompletedJob {
    /// `None` once a worker has taken the outputs.
    closed: Lock<Option<ClosedJob>>,
}

impl CompletedJob {
    pub(crate) fn new(closed: ClosedJob) -> Self {
        Self {
            closed: Lock::new(Some(closed)),
        }
    }
}

impl Task for CompletedJob {
    fn bytes(&self) -> u64 {
        0
    }
}

impl Job for CompletedJob {
    fn run_worker(&self) -> Result<Option<ClosedJob>> {
        Ok(self.closed.lock().take())
    }

    fn abandon(&self) {}
}

/// A complete output that has no name yet. A run may have hundreds of thousands of them.
pub(crate) struct UnnamedOutput {
    pub(crate) output: ClosedOutput,
    pub(crate) options: OutputOptions,
    /// Whether the journal lists the output, so that a resumed run finds it.
    pub(crate) is_listed: bool,
}

/// Some shards of one route, and their outputs.
pub(crate) struct RouteJob<'p, R: Route> {
    route: R,
    input: Lock<JobInput<'p, R::Source>>,
    outputs: Ordered<Outputs<'p, R::Format>>,
    state: Lock<JobState>,
    context: ReadContext<'p>,
    record: OutputRecord<'p>,
    /// Bytes of the shards, as stored.
    bytes: u64,
}

/// The record of an output for later runs, in the journal or in the metadata of an object.
#[derive(Default)]
pub(crate) struct OutputRecord<'p> {
    pub(crate) journal: Option<&'p Journal>,
    /// The numbers of the shards that the output is made of; empty for new shards, which have no
    /// record.
    pub(crate) shards: Range<usize>,
    /// For the journal: the [hash](crate::output::made_of::source_of) of the shards and their
    /// columns.
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
    others
        .into_iter()
        .for_each(|(change, count)| *changes.entry(change).or_default() += count);
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
    /// The writer of output `number`. Completes all outputs before it, those without pieces
    /// included.
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
        let destination = self.naming.destination(number);
        match (&self.naming, &destination) {
            // A resumed run takes `count` from the shards in the folder; this conversion writes
            // more than those.
            (
                Naming::Set {
                    count: Some(count), ..
                },
                Destination::File(path),
            ) if number >= *count => Err(Error::Differs { path: path.clone() }),
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

    /// Completes all outputs. They have no names yet: those of new shards contain the number of
    /// shards.
    fn close(&mut self) -> Result<()> {
        let wanted = match &self.naming {
            Naming::One(_) => 1,
            Naming::Set { count, .. } => count
                .unwrap_or(self.closed.len() + usize::from(self.open.is_some()))
                .max(1),
        };
        while self.closed.len() < wanted {
            self.close_open()?;
        }
        if let Naming::Set { count, .. } = &mut self.naming {
            *count = Some(wanted);
        }
        for (number, output) in mem::take(&mut self.closed).into_iter().enumerate() {
            self.closed
                .push(output.named(self.naming.destination(number))?);
        }
        Ok(())
    }

    /// Takes the complete outputs.
    fn take_closed(&mut self) -> Vec<UnnamedOutput> {
        let is_listed = self.journal.is_some() && matches!(self.naming, Naming::One(_));
        let mut unnamed = Vec::with_capacity(self.closed.len());
        for output in mem::take(&mut self.closed) {
            unnamed.push(UnnamedOutput {
                output,
                options: self.options.clone(),
                is_listed,
            });
        }
        unnamed
    }

    /// Records the complete output of a job with one output, before the output gets its name. An
    /// object has no record if a later run has to read its source again, to report the damage and
    /// the changes.
    fn record(
        &mut self,
        record: &OutputRecord<'_>,
        totals: &JobTotals,
        damaged: bool,
    ) -> Result<()> {
        if let (Some(made_of), false) =
            (&record.made_of, damaged || !totals.lossy_changes.is_empty())
        {
            self.closed
                .iter_mut()
                .for_each(|output| output.note(made_of, totals.records));
        }
        let (Some(journal), Naming::One(Destination::File(path)), [ClosedOutput::File(file, hash)]) =
            (self.journal, &self.naming, self.closed.as_slice())
        else {
            return Ok(());
        };
        // The path of the part may be absolute where the path of the output is relative.
        let Some(part) = file.part().and_then(Path::file_name) else {
            return Ok(());
        };
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
    type Error = Error;

    fn write(&mut self, (number, piece): Self::Piece) -> Result<()> {
        self.writer(number)?.write(piece)
    }

    fn held_bytes((_, piece): &Self::Piece) -> usize {
        F::held_bytes(piece)
    }

    fn cancelled() -> Error {
        Error::Cancelled
    }
}

impl<'p, R: Route> RouteJob<'p, R> {
    /// A job that records its output for later runs.
    pub(crate) fn new(
        route: R,
        reader: UnitReader<'p, R::Source>,
        (naming, options): (Naming, OutputOptions),
        context: ReadContext<'p>,
        record: OutputRecord<'p>,
    ) -> Self {
        let format = route.format().clone();
        let outputs = Outputs {
            journal: record.journal,
            naming,
            format,
            options,
            open: None,
            closed: Vec::new(),
        };
        let bytes = reader.bytes();
        let outputs = Ordered::new(outputs, MAX_HELD_BYTES);
        let input = Lock::new(JobInput {
            reader,
            ended: false,
        });
        Self {
            route,
            input,
            outputs,
            state: Lock::default(),
            context,
            record,
            bytes,
        }
    }

    /// Converts units until there are none left. Returns the number of their records, and their
    /// lossy changes.
    fn convert_units(&self) -> Result<(u64, LossyChanges)> {
        let mut worker = self.route.worker(self.context)?;
        let mut records = 0;
        while let Some(unit) = self.next_unit()? {
            let mut progress = UnitProgress::new(self.context.progress, unit.bytes(), unit.rows());
            let mut ticket = self.outputs.ticket(unit.number);
            let output = unit.output;
            worker.convert(unit, &mut progress, &mut |piece| {
                ticket.write((output, piece))
            })?;
            progress.finish();
            records += progress.converted_records();
            ticket.finish()?;
        }
        Ok((records, worker.lossy_changes()))
    }

    fn next_unit(&self) -> Result<Option<Unit<<R::Source as UnitSource>::Content>>> {
        let mut input = self.input.lock();
        let unit = if input.ended {
            None
        } else {
            input.reader.next()?
        };
        input.ended |= unit.is_none();
        Ok(unit)
    }
}

impl<R: Route> Task for RouteJob<'_, R> {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<R: Route> Job for RouteJob<'_, R> {
    fn run_worker(&self) -> Result<Option<ClosedJob>> {
        {
            let mut state = self.state.lock();
            if state.closed || self.input.lock().ended {
                return Ok(None);
            }
            state.workers += 1;
        }
        let result = self.convert_units();
        if result.is_err() {
            self.abandon();
        }
        let mut state = self.state.lock();
        state.workers -= 1;
        let (records, lossy_changes) = result?;
        state.totals.records += records;
        add_changes(&mut state.totals.lossy_changes, lossy_changes);
        if state.workers > 0 || state.closed {
            return Ok(None);
        }
        state.closed = true;
        let totals = mem::take(&mut state.totals);
        drop(state);
        self.outputs.with_output(|outputs| {
            outputs.close()?;
            let is_damaged = self
                .record
                .shards
                .clone()
                .any(|shard| self.context.damage.is_of(shard));
            outputs.record(&self.record, &totals, is_damaged)?;
            Ok(Some(ClosedJob {
                totals,
                outputs: outputs.take_closed(),
            }))
        })
    }

    fn abandon(&self) {
        self.state.lock().closed = true;
        self.input.lock().ended = true;
        self.outputs.fail();
    }
}

/// Runs the jobs that `begin` makes on `workers` threads.
///
/// # Errors
/// The first error of a job.
pub(crate) fn run<'p>(
    begin: &Begin<'_, dyn Job + 'p, Error>,
    workers: usize,
    mode: CommitMode,
    progress: &Progress,
) -> Result<JobTotals> {
    let run = Run {
        crew: Crew::new(begin),
        mode,
        progress,
        state: Lock::default(),
    };
    let outcome = first_error(on_threads(workers, || {
        run.work().inspect_err(|_| run.abandon())
    }));
    let outcome = outcome.and_then(|()| first_error(on_threads(workers, || run.commit())));
    let RunState { unnamed, totals } = run.state.into_inner();
    if outcome.as_ref().is_err_and(Error::is_passing) {
        for UnnamedOutput { output, .. } in unnamed.into_iter().filter(|unnamed| unnamed.is_listed)
        {
            output.keep_uncommitted();
        }
    }
    outcome.map(|()| totals)
}

/// The jobs of a conversion.
struct Run<'r, 'p> {
    crew: Crew<'r, dyn Job + 'p, Error>,
    mode: CommitMode,
    progress: &'r Progress,
    state: Lock<RunState>,
}

/// What the jobs have completed.
#[derive(Default)]
struct RunState {
    /// Complete outputs that have no names.
    unnamed: VecDeque<UnnamedOutput>,
    /// The totals of complete outputs.
    totals: JobTotals,
}

impl Run<'_, '_> {
    fn work(&self) -> Result<()> {
        let mut member = Member::default();
        while let Some((number, job)) = self.crew.next(&mut member)? {
            let closed = job.run_worker()?;
            if let Some(ClosedJob { totals, outputs }) = closed {
                self.crew.end(number, &*job);
                let mut state = self.state.lock();
                state.totals.add(totals);
                state.unnamed.extend(outputs);
                drop(state);
                if self.mode == CommitMode::EachJob {
                    self.commit()?;
                }
            }
        }
        Ok(())
    }

    /// Gives complete outputs their names.
    fn commit(&self) -> Result<()> {
        while let Some(UnnamedOutput {
            output, options, ..
        }) = self.next_unnamed()?
        {
            let files = u64::from(output.is_file());
            let bytes = output.persist(&options)?;
            let mut state = self.state.lock();
            state.totals.files += files;
            state.totals.bytes += bytes;
            self.progress.add_files(files);
        }
        Ok(())
    }

    /// The next output that has no name. Naming an object in a store can take as long as its
    /// upload.
    fn next_unnamed(&self) -> Result<Option<UnnamedOutput>> {
        let mut state = self.state.lock();
        if self.progress.is_cancelled() && !state.unnamed.is_empty() {
            return Err(Error::Cancelled);
        }
        Ok(state.unnamed.pop_front())
    }

    /// Ends the open jobs, and begins no other.
    fn abandon(&self) {
        for job in self.crew.dissolve() {
            job.abandon();
        }
    }
}

/// The first error that is a cause: [`Error::Cancelled`] of a worker is the consequence of another
/// worker's error if there is one.
fn first_error(results: Vec<Result<()>>) -> Result<()> {
    let (cancelled, others): (Vec<_>, Vec<_>) = results
        .into_iter()
        .partition(|r| matches!(r, Err(Error::Cancelled)));
    others.into_iter().chain(cancelled).collect()
}
