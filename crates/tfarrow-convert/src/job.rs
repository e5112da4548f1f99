//! A job: some shards that become one output, or outputs cut anew. Any number of workers do it together.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use arrow_schema::SchemaRef;
use tfarrow_dataset::names::tf_shard_name;

use crate::{
    Error, Progress, Result,
    input::{Unit, UnitReader},
    ordered::{Ordered, Ticket, Write},
    sink::{Destination, Format, Piece, Sink, Whole},
    worker::{Decoding, Encoding, Losses, Worker},
};

/// What a job's outputs are called.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// One output.
    One(Destination),
    /// Shards of a set, in a folder: so many, or as many as come to be.
    Set { folder: std::path::PathBuf, stem: String, extension: String, count: Option<usize> },
}

/// When outputs get their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// As soon as they are whole.
    Early,
    /// Once all are: their columns are not sure before.
    Late,
}

/// Some shards, and what becomes of them.
pub(crate) struct Job<'p> {
    input: Mutex<Input<'p>>,
    decoding: Option<Decoding>,
    encoding: Encoding,
    outputs: Ordered<Outputs>,
    state: Mutex<State>,
    progress: &'p Progress,
}

#[derive(Default)]
struct State {
    /// Workers that are at it.
    workers: usize,
    /// Whether its outputs are finished, or will never be.
    over: bool,
    done: Done,
}

struct Input<'p> {
    reader: UnitReader<'p>,
    ended: bool,
}

/// What the workers of a job, or of several, have done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) losses: Losses,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        add(&mut self.losses, other.losses);
    }
}

fn add(losses: &mut Losses, others: Losses) {
    others.into_iter().for_each(|(what, times)| *losses.entry(what).or_default() += times);
}

/// A unit's place in the job's outputs.
pub(crate) struct Pieces<'o> {
    ticket: Ticket<'o, Outputs>,
    output: usize,
}

impl Pieces<'_> {
    pub(crate) fn write(&mut self, piece: Piece) -> Result<()> {
        self.ticket.write((self.output, piece))
    }
}

/// The outputs of a job, one after the other.
struct Outputs {
    naming: Naming,
    format: Format,
    schema: SchemaRef,
    open: Option<Sink>,
    /// Outputs that are whole, but wait for the number of all before they have a name.
    finished: Vec<Whole>,
}

impl Outputs {
    fn destination(&self, number: usize) -> Destination {
        match &self.naming {
            Naming::One(destination) => destination.clone(),
            Naming::Set { folder, stem, extension, count } => {
                Destination::File(folder.join(tf_shard_name(stem, number, count.unwrap_or(0), extension)))
            }
        }
    }

    /// The output of this number; those before it are finished, also where they got nothing.
    fn sink(&mut self, number: usize) -> Result<&mut Sink> {
        while self.finished.len() < number {
            self.finish_open()?;
        }
        let sink = match self.open.take() {
            Some(sink) => sink,
            None => Sink::create(&self.destination(number), &self.format, &self.schema)?,
        };
        Ok(self.open.insert(sink))
    }

    fn finish_open(&mut self) -> Result<()> {
        let number = self.finished.len();
        let sink = match self.open.take() {
            Some(sink) => sink,
            None => Sink::create(&self.destination(number), &self.format, &self.schema)?,
        };
        self.finished.push(sink.finish()?);
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
        for (number, output) in std::mem::take(&mut self.finished).into_iter().enumerate() {
            // In a store a name takes as long as the bytes.
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let destination = self.destination(number);
            done.bytes += output.persist(&destination)?;
            done.files += u64::from(destination != Destination::Stdout);
        }
        Ok(())
    }
}

impl Write for Outputs {
    type Piece = (usize, Piece);

    fn write(&mut self, (number, piece): Self::Piece) -> Result<()> {
        self.sink(number)?.write(piece)
    }

    fn held((_, piece): &Self::Piece) -> usize {
        piece.held()
    }
}

impl<'p> Job<'p> {
    pub(crate) fn new(
        reader: UnitReader<'p>,
        decoding: Option<Decoding>,
        encoding: Encoding,
        (naming, format, schema): (Naming, Format, SchemaRef),
        progress: &'p Progress,
    ) -> Self {
        let outputs = Outputs { naming, format, schema, open: None, finished: Vec::new() };
        let outputs = Ordered::new(outputs);
        let input = Mutex::new(Input { reader, ended: false });
        Self { input, decoding, encoding, outputs, state: Mutex::default(), progress }
    }

    /// Takes part until the job has no more units. The last to leave finishes the outputs.
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
        add(&mut state.done.losses, result?);
        let last = state.workers == 0 && !state.over;
        state.over |= last;
        drop(state);
        if last {
            self.outputs.with_output(Outputs::finish)?;
        }
        if last && names == Names::Early { self.name() } else { Ok(()) }
    }

    /// Leaves the job undone: no output of it appears.
    fn abandon(&self) {
        lock(&self.state).over = true;
        lock(&self.input).ended = true;
        self.outputs.fail();
    }

    /// What was done, once nobody takes part any more.
    fn into_done(self) -> Done {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).done
    }

    /// Gives finished outputs their names, if they have none.
    fn name(&self) -> Result<()> {
        let mut done = Done::default();
        let result = self.outputs.with_output(|outputs| outputs.name(&mut done, self.progress));
        self.progress.add_files(done.files);
        lock(&self.state).done.add(done);
        result
    }

    fn units(&self) -> Result<Losses> {
        let mut worker = Worker::new(self.decoding.as_ref(), &self.encoding, self.progress)?;
        while let Some(unit) = self.next_unit()? {
            let mut pieces = Pieces { ticket: self.outputs.ticket(unit.number), output: unit.output };
            worker.work(unit, &mut pieces)?;
            pieces.ticket.finish()?;
        }
        Ok(worker.losses())
    }

    fn next_unit(&self) -> Result<Option<Unit>> {
        let mut input = lock(&self.input);
        let unit = if input.ended { None } else { input.reader.next()? };
        input.ended |= unit.is_none();
        Ok(unit)
    }
}

/// Does all jobs with `workers` threads: each takes the next job that nobody is at, and then helps at those still open.
pub(crate) fn run(jobs: Vec<Job<'_>>, workers: usize, names: Names) -> Result<Done> {
    let next = AtomicUsize::new(0);
    let work = || {
        let own = std::iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)));
        let result = own.chain(&jobs).try_for_each(|job| job.take_part(names));
        if result.is_err() {
            jobs.iter().for_each(Job::abandon);
        }
        result
    };
    on_threads(workers, work)?;
    let unnamed = AtomicUsize::new(0);
    on_threads(workers, || {
        std::iter::from_fn(|| jobs.get(unnamed.fetch_add(1, Ordering::Relaxed))).try_for_each(Job::name)
    })?;
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
