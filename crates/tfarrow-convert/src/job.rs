//! A job: some shards that become one output, or outputs cut anew. Any number of workers do it together.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tfarrow_dataset::names::tf_shard_name;

use crate::{
    Error, Progress, Result,
    formats::{FileFormat, PieceWriter},
    input::{ReadContext, Unit, UnitContent, UnitReader, UnitSource},
    journal::{Journal, Made},
    ordered::{Ordered, Write},
    output::{ClosedOutput, Destination, Output, OutputOptions},
    progress::UnitProgress,
    routes::Route,
    worker::{LossyChanges, UnitWorker},
};

/// What a job's outputs are called.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// One output.
    One(Destination),
    /// Shards of a set, in a folder: so many, or as many as come to be.
    Set { folder: PathBuf, stem: String, extension: String, count: Option<usize> },
}

/// When outputs get their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// As soon as they are whole.
    Early,
    /// Once all are: their columns are not sure before.
    Late,
}

/// A job of any route.
pub(crate) trait Job: Sync {
    /// Takes part until the job has no more units. The last worker to leave finishes the outputs.
    ///
    /// # Errors
    /// The first error of this worker. The job is then abandoned.
    fn take_part(&self, names: Names) -> Result<()>;

    /// Ends the job without outputs.
    fn abandon(&self);

    /// Gives finished outputs their names, if they have none.
    ///
    /// # Errors
    /// System errors, and [`Error::Cancelled`].
    fn name(&self) -> Result<()>;

    /// Keeps complete outputs without names, for a resumed run.
    fn leave(&self);

    /// What was done, once all workers have left.
    fn into_done(self: Box<Self>) -> Done;
}

/// Some shards of one route, and their outputs.
pub(crate) struct RouteJob<'p, R: Route> {
    route: R,
    input: Mutex<JobInput<'p, R::Source>>,
    outputs: Ordered<Outputs<'p, R::Format>>,
    state: Mutex<JobState>,
    context: ReadContext<'p>,
    /// The number of its shard, and the hash of that shard's identity and columns, for the journal.
    shard: usize,
    source: u64,
}

#[derive(Default)]
struct JobState {
    /// Workers that are at it.
    workers: usize,
    /// Whether its outputs are finished, or will never be.
    over: bool,
    done: Done,
}

struct JobInput<'p, S> {
    reader: UnitReader<'p, S>,
    ended: bool,
}

/// What the workers of a job, or of several, have done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    pub(crate) losses: LossyChanges,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.records += other.records;
        add(&mut self.losses, other.losses);
    }
}

fn add(losses: &mut LossyChanges, others: LossyChanges) {
    others.into_iter().for_each(|(what, times)| *losses.entry(what).or_default() += times);
}

/// The outputs of a job, one after the other.
struct Outputs<'p, F: FileFormat> {
    journal: Option<&'p Journal>,
    naming: Naming,
    format: F,
    options: OutputOptions,
    open: Option<F::Writer>,
    /// Complete outputs, whose names depend on the number of all.
    finished: Vec<ClosedOutput>,
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

    /// The output of this number; those before it are finished, also where they got nothing.
    fn writer(&mut self, number: usize) -> Result<&mut F::Writer> {
        while self.finished.len() < number {
            self.finish_open()?;
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
            // The shards that are there are fewer than those that the conversion makes.
            (Naming::Set { count: Some(count), .. }, Destination::File(path)) if number >= *count => {
                Err(Error::Differs { path: path.clone() })
            }
            _ => {
                let output = Output::create(&destination, &self.options, self.journal)?;
                self.format.create(destination.name(), output)
            }
        }
    }

    fn finish_open(&mut self) -> Result<()> {
        let number = self.finished.len();
        let writer = match self.open.take() {
            Some(writer) => writer,
            None => self.create(number)?,
        };
        self.finished.push(writer.finish()?.close()?);
        Ok(())
    }

    /// Ends all outputs, which have no names yet.
    fn finish(&mut self) -> Result<()> {
        let wanted = match &self.naming {
            Naming::One(_) => 1,
            Naming::Set { count, .. } => count.unwrap_or(self.finished.len() + usize::from(self.open.is_some())).max(1),
        };
        while self.finished.len() < wanted {
            self.finish_open()?;
        }
        if let Naming::Set { count, .. } = &mut self.naming {
            *count = Some(wanted);
        }
        Ok(())
    }

    /// Gives finished outputs their names, and notes them and their bytes.
    fn name(&mut self, done: &mut Done, progress: &Progress) -> Result<()> {
        let mut finished = std::mem::take(&mut self.finished).into_iter().enumerate();
        for (number, output) in finished.by_ref() {
            // In a store a name takes as long as the bytes.
            if progress.is_cancelled() {
                self.finished = std::iter::once(output).chain(finished.map(|(_, output)| output)).collect();
                return Err(Error::Cancelled);
            }
            let destination = self.destination(number);
            done.bytes += output.persist(&destination)?;
            done.files += u64::from(destination != Destination::Stream);
        }
        Ok(())
    }

    /// Leaves the outputs that are whole, and have no names, for another run to find: those that the journal knows of.
    fn leave(&mut self) {
        let of_use = self.journal.is_some() && matches!(self.naming, Naming::One(_));
        std::mem::take(&mut self.finished).into_iter().filter(|_| of_use).for_each(ClosedOutput::leave);
    }

    /// Notes the output of a job of one that is whole, and has no name yet.
    fn note(&self, source: u64, records: u64, losses: &LossyChanges, damaged: bool) -> Result<()> {
        let (Some(journal), Naming::One(Destination::File(path)), [ClosedOutput::File(file, hash)]) =
            (self.journal, &self.naming, self.finished.as_slice())
        else {
            return Ok(());
        };
        // The path of the part may be an absolute one where that of the output is not.
        let Some(part) = file.part().and_then(Path::file_name) else { return Ok(()) };
        journal.made(Made {
            output: journal.name_of(path),
            part: journal.name_of(&path.with_file_name(part)),
            bytes: file.size(),
            hash: *hash,
            source,
            records,
            losses: losses.clone().into_iter().collect(),
            damaged,
        })
    }
}

impl<F: FileFormat> Write for Outputs<'_, F> {
    type Piece = (usize, F::Piece);

    fn write(&mut self, (number, piece): Self::Piece) -> Result<()> {
        self.writer(number)?.write(piece)
    }

    fn held((_, piece): &Self::Piece) -> usize {
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
        let outputs = Outputs { journal: None, naming, format, options, open: None, finished: Vec::new() };
        let (outputs, input) = (Ordered::new(outputs), Mutex::new(JobInput { reader, ended: false }));
        Self { route, input, outputs, state: Mutex::default(), context, shard: 0, source: 0 }
    }

    /// Notes its output in a journal, as made of the shard of this number, which is this source.
    pub(crate) fn with_journal(self, journal: &'p Journal, shard: usize, source: u64) -> Self {
        self.outputs.with_output(|outputs| outputs.journal = Some(journal));
        Self { shard, source, ..self }
    }

    /// A job that an earlier run has done: its output has its name, or is `whole` and gets it.
    pub(crate) fn made(self, made: Made, whole: Option<ClosedOutput>) -> Self {
        let Made { bytes, records, losses, .. } = made;
        let done = Done { records, losses: losses.into_iter().collect(), ..Done::default() };
        // What gets its name is counted then.
        let done = if whole.is_some() { done } else { Done { files: 1, bytes, ..done } };
        self.context.progress.add_records(records);
        self.context.progress.add_files(done.files);
        self.outputs.with_output(|outputs| outputs.finished.extend(whole));
        lock(&self.input).ended = true;
        Self { state: Mutex::new(JobState { workers: 0, over: true, done }), ..self }
    }

    fn units(&self) -> Result<(u64, LossyChanges)> {
        let mut worker = self.route.worker(self.context)?;
        let mut records = 0;
        while let Some(unit) = self.next_unit()? {
            let mut progress = UnitProgress::new(self.context.progress, unit.bytes, unit.content.rows());
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
    fn take_part(&self, names: Names) -> Result<()> {
        {
            let mut state = lock(&self.state);
            if state.over || lock(&self.input).ended {
                return Ok(());
            }
            state.workers += 1;
        }
        let result = self.units();
        if result.is_err() {
            self.abandon();
        }
        let mut state = lock(&self.state);
        state.workers -= 1;
        let (records, losses) = result?;
        state.done.records += records;
        add(&mut state.done.losses, losses);
        let last = state.workers == 0 && !state.over;
        state.over |= last;
        let (records, losses) =
            (state.done.records, if last { state.done.losses.clone() } else { LossyChanges::new() });
        drop(state);
        if last {
            self.outputs.with_output(|outputs| {
                outputs.finish()?;
                outputs.note(self.source, records, &losses, self.context.damage.is_of(self.shard))
            })?;
        }
        if last && names == Names::Early { self.name() } else { Ok(()) }
    }

    fn abandon(&self) {
        lock(&self.state).over = true;
        lock(&self.input).ended = true;
        self.outputs.fail();
    }

    fn leave(&self) {
        self.outputs.with_output(Outputs::leave);
    }

    fn into_done(self: Box<Self>) -> Done {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).done
    }

    fn name(&self) -> Result<()> {
        let mut done = Done::default();
        let result = self.outputs.with_output(|outputs| outputs.name(&mut done, self.context.progress));
        self.context.progress.add_files(done.files);
        lock(&self.state).done.add(done);
        result
    }
}

/// Does all jobs with `workers` threads: each takes the next job that nobody is at, and then helps at those still open.
pub(crate) fn run(jobs: Vec<Box<dyn Job + '_>>, workers: usize, names: Names) -> Result<Done> {
    let next = AtomicUsize::new(0);
    let work = || {
        let own = std::iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)));
        let result = own.chain(&jobs).try_for_each(|job| job.take_part(names));
        if result.is_err() {
            jobs.iter().for_each(|job| job.abandon());
        }
        result
    };
    let unnamed = AtomicUsize::new(0);
    let name =
        || std::iter::from_fn(|| jobs.get(unnamed.fetch_add(1, Ordering::Relaxed))).try_for_each(|job| job.name());
    let outcome = on_threads(workers, work).and_then(|()| on_threads(workers, name));
    if outcome.as_ref().is_err_and(Error::is_passing) {
        jobs.iter().for_each(|job| job.leave());
    }
    outcome?;
    let mut done = Done::default();
    jobs.into_iter().for_each(|job| done.add(job.into_done()));
    Ok(done)
}

/// Works on so many threads.
fn on_threads(count: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let results = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..count).map(|_| scope.spawn(&work)).collect();
        let own = work();
        let joined = helpers.into_iter().map(|helper| helper.join());
        let joined = joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.chain([own]).collect()
    });
    first_error(results)
}

/// The error to blame, if any: workers that were told to stop say nothing of why.
fn first_error(results: Vec<Result<()>>) -> Result<()> {
    let (stopped, others): (Vec<_>, Vec<_>) = results.into_iter().partition(|r| matches!(r, Err(Error::Cancelled)));
    others.into_iter().chain(stopped).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
