//! What is in a data set: the codec's summary, over many shards and on all cores.
//!
//! Any number of threads share the shards that are open: whoever is free reads the next chunk of one under its lock,
//! and observes it on its own. So one large file keeps all cores busy, and as many chunks are in memory as there are
//! threads. What comes out does not depend on which thread saw what: summaries merge in any order, and of errors the
//! first in the data set is the one that is told.

use std::{
    cmp::Reverse,
    fmt,
    ops::ControlFlow,
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow_schema::SchemaRef;
use tfarrow_codec::{
    Category, FeatureSummary, Layout, OnConflict, OnError, Place, RecordType, Records, Role, Summary, VerifyCrc,
    infer::RecordObserver,
};

use crate::{
    Error, ErrorKind, ReadOptions, Result, Segment, Shard, ShardReader, SkippedRecords,
    error::shown,
    fault::{Fault, Losses},
    lock::lock,
    payload::check_one_payload,
};

/// How much of a data set is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Every record.
    All,
    /// Up to so many records, or [`SAMPLE_BYTES`], of each of up to [`SAMPLE_SHARDS`] shards, spread over the set.
    Records(usize),
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Records(records) => records.fmt(f),
        }
    }
}

impl FromStr for Sample {
    type Err = NotASample;

    fn from_str(text: &str) -> Result<Self, NotASample> {
        match text.parse() {
            _ if text == "all" => Ok(Self::All),
            Ok(0) | Err(_) => Err(NotASample),
            Ok(records) => Ok(Self::Records(records)),
        }
    }
}

/// The error that a text is no [`Sample`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASample;

impl fmt::Display for NotASample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number of records, or `all`")
    }
}

impl std::error::Error for NotASample {}

/// Records of each shard that a sample looks at, where nobody asks for another number.
pub const SAMPLE_RECORDS: usize = 1000;
/// Bytes of each shard that a sample looks at, at most.
pub const SAMPLE_BYTES: usize = 4 << 20;
/// Bytes of a shard that a sample reads at once: a thousand records are often no more than that.
const SAMPLE_CHUNK: usize = 256 << 10;
/// Shards that a sample looks at, at most.
pub const SAMPLE_SHARDS: usize = 16;

/// How much was looked at, where that was not everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Records that were looked at.
    pub records: u64,
    /// Shards that they are of.
    pub shards: usize,
    /// Shards that there are.
    pub of: usize,
}

/// How a data set is looked at.
#[derive(Clone, Copy, Debug)]
pub struct InferOptions {
    /// How much of it. By default all.
    pub sample: Sample,
    /// Threads. By default one.
    pub jobs: usize,
    /// Whether the CRCs of the data are checked. By default always.
    pub verify: VerifyCrc,
    /// What the caller says that the records are. By default nothing: files of several kinds of records are refused, as they
    /// are for every type but raw.
    pub record_type: Option<RecordType>,
    /// How the shards are read, and whether damage is passed over.
    pub read: ReadOptions,
}

impl InferOptions {
    /// How the shards are read: of a sample, no more than it needs.
    fn reading(&self) -> ReadOptions {
        let most = match self.sample {
            Sample::All => usize::MAX,
            Sample::Records(_) => SAMPLE_CHUNK,
        };
        ReadOptions { chunk_bytes: self.read.chunk_bytes.min(most), ..self.read }
    }
}

impl Default for InferOptions {
    fn default() -> Self {
        Self {
            sample: Sample::All,
            jobs: 1,
            verify: VerifyCrc::Always,
            record_type: None,
            read: ReadOptions::default(),
        }
    }
}

/// What is told of progress: bytes, as stored, and records that were looked at since it was last told.
pub type OnProgress<'a> = dyn Fn(u64, u64) -> ControlFlow<()> + Sync + 'a;

/// What was found in a data set.
#[derive(Debug)]
pub struct Inferred {
    /// What was seen of each feature.
    pub summary: Summary,
    /// The name of each shard, by its number in the summary's places.
    pub names: Vec<String>,
    /// How much was looked at; `None` where it was everything.
    pub sampled: Option<Sampled>,
    /// What was damaged, where that is passed over.
    pub skipped: SkippedRecords,
}

impl Inferred {
    /// The schema of the data set, for records of the type given, or of the type found.
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] where a feature has more than one kind, with the first place of each.
    pub fn schema(&self, layout: Layout, record_type: Option<RecordType>) -> Result<SchemaRef> {
        self.schema_with(layout, record_type, OnConflict::Fail)
    }

    /// As [`schema`](Self::schema), where a feature of more than one kind may have a column for each of them.
    ///
    /// # Errors
    /// As there, unless such features are split.
    pub fn schema_with(
        &self,
        layout: Layout,
        record_type: Option<RecordType>,
        on_conflict: OnConflict,
    ) -> Result<SchemaRef> {
        self.summary.schema_with(layout, record_type, on_conflict).map_err(|error| {
            let mixed = matches!(error.kind(), tfarrow_codec::ErrorKind::MixedKinds(_));
            let record_type = record_type.unwrap_or_else(|| self.summary.record_type());
            Error::general(match self.conflict(record_type).filter(|_| mixed) {
                Some(feature) => ErrorKind::MixedKinds(mixed_kinds(feature, &self.names)),
                None => ErrorKind::Codec(error),
            })
        })
    }

    /// Why the records are taken as they are, where the type found is [`RecordType::Raw`]: in words, with the place.
    pub fn why_raw(&self) -> Option<String> {
        let summary = &self.summary;
        if summary.record_type() != RecordType::Raw || summary.records() == 0 {
            return None;
        }
        let foreign = || {
            let (place, field) = summary.foreign()?;
            Some(format!("{} has a field {field} that is none of a tf.Example's", place_in(place, &self.names)))
        };
        let why = self.unreadable().or_else(foreign).unwrap_or_else(|| "no record has a feature".to_owned());
        Some(format!("{why}, so all records are taken as they are"))
    }

    /// The first record that does not parse, and in which way: in words, with the place.
    pub fn unreadable(&self) -> Option<String> {
        let (place, error) = self.summary.first_unparsable()?;
        Some(format!("{} is no tf.Example ({error})", place_in(place, &self.names)))
    }

    /// Whether they are raw for the sake of a few: some feature is in half of them at least; or, where not all names are
    /// remembered, half of them have features.
    pub fn has_strays(&self) -> bool {
        let summary = &self.summary;
        let has_odd = summary.first_unparsable().is_some() || summary.foreign().is_some();
        let half = summary.records().div_ceil(2);
        has_odd
            && match summary.has_excess_names() {
                true => summary.examples() >= half,
                false => summary.features().any(|feature| feature.present >= half),
            }
    }

    /// The first feature of such records that has more than one kind.
    fn conflict(&self, record_type: RecordType) -> Option<&FeatureSummary> {
        let has_columns =
            |feature: &&FeatureSummary| feature.role == Role::Feature || record_type == RecordType::SequenceExample;
        self.summary.features().filter(has_columns).find(|feature| feature.is_mixed())
    }
}

fn mixed_kinds(feature: &FeatureSummary, names: &[String]) -> String {
    let mut kinds: Vec<_> = feature.kinds().collect();
    kinds.sort_by_key(|(_, seen)| seen.first);
    let places: Vec<_> =
        kinds.iter().map(|(kind, seen)| format!("{} in {}", kind.name(), place_in(seen.first, names))).collect();
    let count = if places.len() == 2 { "two" } else { "three" };
    format!(
        "feature {:?} has {count} kinds: {}; one column cannot hold them: convert --on-conflict split (in SQL, SET \
         tfarrow.on_conflict = 'split') gives each a column, or read the records as they are with the record type `raw`",
        feature.name,
        places.join(", ")
    )
}

/// Where a record stands, in words: the name of its shard, its number and its offset.
pub fn place_in(place: Place, names: &[String]) -> String {
    let name = names.get(place.shard as usize).map_or("?", String::as_str);
    format!("{name}: record {} (byte {})", place.record, place.offset)
}

/// Looks at the records of `shards`, all of them or a sample, with `jobs` threads. See [`infer_with`].
///
/// # Errors
/// As there.
pub fn infer(shards: &[Shard], sample: Sample, jobs: usize, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Inferred> {
    let options = InferOptions { sample, jobs, ..InferOptions::default() };
    infer_with(shards, &options, &|bytes, records| {
        progress(bytes, records);
        ControlFlow::Continue(())
    })
}

/// Looks at the records of `shards`.
///
/// `progress` is told how many bytes (as stored) and how many records more were looked at, from any thread; where it
/// breaks, looking ends with [`ErrorKind::Stopped`]. Standard input is used up by this, unless it is
/// [spooled](Shard::spool).
///
/// # Errors
/// What reading and observing say, of the first record in the data set that is to blame;
/// [`ErrorKind::MixedRecords`] where files hold several kinds of records.
pub fn infer_with(shards: &[Shard], options: &InferOptions, progress: &OnProgress<'_>) -> Result<Inferred> {
    infer_observed(shards, options, progress, || ()).map(|(inferred, _)| inferred)
}

/// Looks at the records of `shards`, and tells observers of them: one a thread, each of which sees a part of the records,
/// and gives the number of a shard in `shards` as that of its places.
///
/// # Errors
/// As [`infer_with`].
pub fn infer_observed<O: RecordObserver + Send>(
    shards: &[Shard],
    options: &InferOptions,
    progress: &OnProgress<'_>,
    observer: impl Fn() -> O + Sync,
) -> Result<(Inferred, Vec<O>)> {
    if options.record_type != Some(RecordType::Raw) {
        check_one_payload(shards)?;
    }
    let picked = match options.sample {
        Sample::All => (0..shards.len()).collect(),
        Sample::Records(_) => spread(shards),
    };
    let look = |picked: &[usize]| look(shards, picked, options, None, progress, &observer);
    let mut run = look(&picked)?;
    if run.summary.records() == 0 && picked.len() < shards.len() {
        // The shards that were picked hold nothing; some other may.
        let rest: Vec<_> = (0..shards.len()).filter(|index| picked.binary_search(index).is_err()).collect();
        run = look(&rest)?;
    }
    let Run { summary, observers, mut losses, cut, looked } = run;
    let partial = cut || looked < shards.len();
    let sampled = partial.then(|| Sampled { records: summary.records(), shards: looked, of: shards.len() });
    let names = shards.iter().map(|shard| shown(&shard.path)).collect();
    let mut inferred = Inferred { summary, names, sampled, skipped: SkippedRecords::default() };
    let passes_over = options.read.on_error == OnError::Skip && inferred.has_strays();
    if let Some((strays, shard, error)) = passes_over.then(|| inferred.summary.drop_unparsable()).flatten() {
        let path = shards.get(shard as usize).map(|shard| shard.path.clone()).unwrap_or_default();
        losses.skipped.records += strays;
        losses.faults.add(Fault::of(shard as usize, Error::codec(path, error)));
    }
    inferred.skipped = losses.skipped;
    inferred.skipped.first = losses.faults.into_kept().next().map(|fault| fault.error);
    Ok((inferred, observers))
}

/// The shards that a sample looks at: those that hold something, evenly spread, the first and the last among them.
fn spread(shards: &[Shard]) -> Vec<usize> {
    let full = |index: &usize| shards.get(*index).is_some_and(|shard| shard.size > 0 || shard.is_stream());
    let full: Vec<_> = (0..shards.len()).filter(full).collect();
    if full.len() <= SAMPLE_SHARDS {
        // The empty ones cost nothing, and a set that was looked at whole is no sample.
        return if full.len() + SAMPLE_SHARDS >= shards.len() { (0..shards.len()).collect() } else { full };
    }
    let last = full.len() - 1;
    (0..SAMPLE_SHARDS).filter_map(|i| full.get(i * last / (SAMPLE_SHARDS - 1)).copied()).collect()
}

/// What one round found.
pub(crate) struct Run<O> {
    pub(crate) summary: Summary,
    pub(crate) observers: Vec<O>,
    pub(crate) losses: Losses,
    /// Whether any shard was left before its end.
    cut: bool,
    looked: usize,
}

/// Looks at the shards that were picked. With `faults`, nothing that is wrong with a file ends it, and so many faults are
/// kept.
pub(crate) fn look<O: RecordObserver + Send>(
    shards: &[Shard],
    picked: &[usize],
    options: &InferOptions,
    faults: Option<usize>,
    progress: &OnProgress<'_>,
    observer: &(impl Fn() -> O + Sync),
) -> Result<Run<O>> {
    let most = faults.unwrap_or(1);
    let turn = |&index| Some(Turn::new(index, shards.get(index)?, options.sample, most));
    let turns = picked.iter().filter_map(turn).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let work = Work { turns, options, faults, next, failed, progress };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..options.jobs.max(1)).map(|_| scope.spawn(|| work.run(observer()))).collect();
        let own = work.run(observer());
        let joined = others.into_iter().map(|thread| thread.join());
        let joined = joined.map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(joined).collect()
    });
    let errors = outcomes.iter().enumerate().filter_map(|(thread, outcome)| Some((outcome.key()?, thread)));
    let first = errors.min().map(|(_, thread)| thread);
    let mut summary = work.summary();
    let mut observers = Vec::new();
    let mut losses = Losses::new(most);
    for (thread, outcome) in outcomes.into_iter().enumerate() {
        match outcome.error {
            Some((_, error)) if first == Some(thread) => return Err(error),
            _ if first.is_some() => {}
            _ => {
                summary.merge(&outcome.summary).map_err(|error| Error::general(ErrorKind::Codec(error)))?;
                observers.push(outcome.observer);
                losses.merge(outcome.losses);
            }
        }
    }
    let mut cut = false;
    for turn in work.turns {
        let open = turn.open.into_inner().unwrap_or_else(PoisonError::into_inner);
        cut |= open.cut;
        losses.merge(open.losses);
    }
    Ok(Run { summary, observers, losses, cut, looked: picked.len() })
}

/// One shard to be looked at.
struct Turn<'a> {
    index: usize,
    shard: &'a Shard,
    open: Mutex<Open>,
}

/// What of a shard is left to look at. Whoever holds it reads.
struct Open {
    reader: Option<ShardReader>,
    begun: bool,
    ended: bool,
    cut: bool,
    /// What the sample has left.
    records: usize,
    bytes: usize,
    /// Stored bytes that were told.
    told: u64,
    /// What no record could be made of.
    losses: Losses,
}

impl<'a> Turn<'a> {
    fn new(index: usize, shard: &'a Shard, sample: Sample, faults: usize) -> Self {
        let (records, bytes) = match sample {
            Sample::All => (usize::MAX, usize::MAX),
            Sample::Records(records) => (records, SAMPLE_BYTES),
        };
        let losses = Losses::new(faults);
        let open = Open { reader: None, begun: false, ended: false, cut: false, records, bytes, told: 0, losses };
        Self { index, shard, open: Mutex::new(open) }
    }
}

impl Open {
    /// The next records to look at, and how many bytes were read for them.
    fn next(&mut self, turn: &Turn<'_>, options: &ReadOptions) -> Result<Option<(Records, u64)>> {
        if self.ended {
            return Ok(None);
        }
        let outcome = self.read(turn, options);
        if !matches!(outcome, Ok(Some(_))) {
            self.end();
        }
        outcome
    }

    fn read(&mut self, turn: &Turn<'_>, options: &ReadOptions) -> Result<Option<(Records, u64)>> {
        if !self.begun {
            self.begun = true;
            self.reader = Some(ShardReader::open(turn.shard, options)?);
        }
        // Once the sample is known to be cut, the rest is nobody's business: not its time, and not its errors.
        let Some(reader) = self.reader.as_mut().filter(|_| !self.cut) else { return Ok(None) };
        let records = loop {
            match reader.segment()? {
                None => return Ok(None),
                Some(Segment::Records(records)) => break records,
                Some(Segment::Lost(lost)) => {
                    // A sample does not look for a record without end.
                    self.bytes = self.bytes.saturating_sub(lost.bytes.len());
                    self.losses.add_lost(turn.index, lost);
                    if self.bytes == 0 {
                        self.cut = true;
                        return Ok(None);
                    }
                }
            }
        };
        let read = reader.bytes_read() - self.told;
        self.told += read;
        Ok(self.take(records).map(|records| (records, read)))
    }

    /// What the sample has room for.
    fn take(&mut self, records: Records) -> Option<Records> {
        if self.records == 0 || self.bytes == 0 {
            self.cut = true;
            return None;
        }
        let count = records.fit(self.records, self.bytes);
        self.cut |= count < records.len();
        let taken = if count < records.len() { records.split_at(count).0 } else { records };
        self.records -= taken.len();
        self.bytes = if self.cut { 0 } else { self.bytes.saturating_sub(taken.bytes()) };
        Some(taken)
    }

    fn end(&mut self) {
        self.ended = true;
        self.reader = None;
    }
}

/// What all threads share.
struct Work<'a> {
    turns: Vec<Turn<'a>>,
    options: &'a InferOptions,
    /// How many faults are kept, where none ends the pass.
    faults: Option<usize>,
    /// The first shard that nobody has begun.
    next: AtomicUsize,
    /// The first shard that has failed: those after it need no look.
    failed: AtomicUsize,
    progress: &'a OnProgress<'a>,
}

/// What one thread has seen.
struct Outcome<O> {
    summary: Summary,
    observer: O,
    /// What it has passed over.
    losses: Losses,
    /// Of the errors that it has met, the first in the data set, and the number of its shard.
    error: Option<(usize, Error)>,
}

impl<O> Outcome<O> {
    /// Where in the data set the error is.
    fn key(&self) -> Option<(usize, u64)> {
        self.error.as_ref().map(|(shard, error)| (*shard, error.record()))
    }
}

impl Work<'_> {
    /// Who looks for faults asks for no schema: names that are too many for one are none.
    fn summary(&self) -> Summary {
        let summary = Summary::with_limits(0, self.options.read.limits);
        if self.faults.is_some() { summary.ignoring_excess_names() } else { summary }
    }

    fn run<O: RecordObserver>(&self, observer: O) -> Outcome<O> {
        let losses = Losses::new(self.faults.unwrap_or(1));
        let mut outcome = Outcome { summary: self.summary(), observer, losses, error: None };
        // First each thread has shards of its own, then it helps with those that others have begun.
        while let Some(turn) = self.turns.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.share(turn, &mut outcome);
        }
        let mut rest: Vec<_> = self.turns.iter().collect();
        rest.sort_by_key(|turn| Reverse(turn.shard.size));
        for turn in rest {
            self.share(turn, &mut outcome);
        }
        outcome
    }

    /// Looks at chunks of one shard until it ends.
    fn share<O: RecordObserver>(&self, turn: &Turn<'_>, outcome: &mut Outcome<O>) {
        outcome.summary.set_shard(turn.index as u32);
        while turn.index <= self.failed.load(Ordering::Relaxed) {
            let next = lock(&turn.open).next(turn, &self.options.reading());
            let seen = match next {
                Ok(None) => break,
                Ok(Some((records, read))) => self.observe(turn, outcome, &records, read),
                // Something else than damage: what the file is, or what the system says of it.
                Err(error) if self.faults.is_some() && !error.is_machine() => {
                    outcome.losses.faults.add(Fault::of(turn.index, error));
                    break;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = seen {
                self.fail(turn, error, outcome);
            }
        }
    }

    fn observe<O: RecordObserver>(
        &self,
        turn: &Turn<'_>,
        outcome: &mut Outcome<O>,
        records: &Records,
        read: u64,
    ) -> Result<()> {
        self.observe_good(turn, outcome, records)?;
        match (self.progress)(read, records.len() as u64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::general(ErrorKind::Stopped)),
        }
    }

    /// Looks at all records, but for damaged ones where those are passed over. What a limit forbids is a fault, where
    /// faults are looked for; else it is for the user to say whether the limit is right.
    fn observe_good<O: RecordObserver>(
        &self,
        turn: &Turn<'_>,
        outcome: &mut Outcome<O>,
        records: &Records,
    ) -> Result<()> {
        let mut rest = records.clone();
        while let Err(error) = outcome.summary.observe_with(&rest, self.options.verify, &mut outcome.observer) {
            let goes_on = match error.category() {
                Category::Corrupt => self.options.read.on_error == OnError::Skip,
                Category::Limit => self.faults.is_some(),
                Category::Truncated | Category::Data | Category::Usage => false,
            };
            if !goes_on {
                return Err(Error::codec(&turn.shard.path, error));
            }
            let read = (error.position().record - rest.first()) as usize + 1;
            let error = Error::codec(&turn.shard.path, error);
            let bytes = rest.data(read - 1).map_or(0, <[u8]>::len) as u64;
            outcome.losses.add_record(Fault { bytes, ..Fault::of(turn.index, error) });
            rest = rest.split_at(read).1;
        }
        Ok(())
    }

    /// Notes an error, and leaves its shard. Chunks before it may still be with other threads, and fail there.
    fn fail<O>(&self, turn: &Turn<'_>, error: Error, outcome: &mut Outcome<O>) {
        lock(&turn.open).end();
        self.failed.fetch_min(turn.index, Ordering::Relaxed);
        if outcome.key().is_none_or(|known| (turn.index, error.record()) < known) {
            outcome.error = Some((turn.index, error));
        }
    }
}
