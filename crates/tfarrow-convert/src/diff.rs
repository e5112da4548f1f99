//! In what two data sets differ: record by record, feature by feature, whatever formats and shards they are in.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsStr,
    fmt,
    ops::ControlFlow,
    panic,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
};

use tfarrow_codec::{
    RecordType, Role,
    diff::{Differ, Difference, DifferenceKind, Incomparable},
    schema::record_type_of,
};
use tfarrow_dataset::{
    InferOptions, MissingShards, PassedOver, ReadOptions, Resolved, SAMPLE_RECORDS, Sample, Shard, SkippedRecords,
    Wanted, check_one_payload, infer_with, resolve_wanted,
};

use crate::{
    Error, Progress, Result, columnar,
    records::{Block, RecordReader},
};

/// Blocks of records that are read ahead on either side.
const BLOCKS: usize = 2;

/// Records, and bytes of them, that are looked at on either side for one that has no partner where it stands.
const AHEAD: usize = 1000;
const AHEAD_BYTES: usize = 64 << 20;

/// Comparisons that looking may take before any record is passed, and those that each record adds: so it takes no more than
/// a few times as long as there are records, however many differ.
const LOOKS: usize = 1 << 17;
const LOOKS_A_RECORD: usize = 4;

/// How data sets are compared.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// What the records are, where it is not to be guessed.
    pub record_type: Option<RecordType>,
    /// How TFRecord is read.
    pub read: ReadOptions,
    /// How many records that differ are kept.
    pub most: usize,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// Its file.
    pub path: Arc<PathBuf>,
    /// Its number in the file, from 0.
    pub record: u64,
    /// Where it begins in a TFRecord file, decompressed.
    pub offset: Option<u64>,
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: record {}", self.path.display(), self.record)?;
        self.offset.map_or(Ok(()), |offset| write!(f, " (byte {offset})"))
    }
}

/// Two records that differ, or one that has no partner.
#[derive(Clone, Debug)]
pub struct RecordDifference {
    /// The number in the data set, from 0: in the left one, where it is in both.
    pub number: u64,
    /// Where they stand, left and right.
    pub places: [Option<RecordPlace>; 2],
    /// In what they differ: nothing, where one of them is missing.
    pub differences: Vec<Difference>,
}

/// In what two data sets differ.
#[derive(Debug)]
pub struct DataSetDiff {
    /// Records, left and right.
    pub records: [u64; 2],
    /// Pairs that are equal.
    pub equal: u64,
    /// Pairs that differ.
    pub different: u64,
    /// Records without a partner, left and right.
    pub alone: [u64; 2],
    /// In how many pairs each feature differs.
    pub features: BTreeMap<(Role, String), u64>,
    /// The first records that differ or have no partner.
    pub first: Vec<RecordDifference>,
    /// What of TFRecord is damaged or does not parse, and was passed over, left and right: nothing, unless that was asked
    /// for.
    pub skipped: [SkippedRecords; 2],
    /// Why the records' bytes were compared, and not their features, where nobody said that they are raw.
    pub why_raw: Option<String>,
    /// What else the folders hold, left and right.
    pub besides: [Besides; 2],
}

/// What a folder holds besides the shards that were compared, and what it lacks.
#[derive(Clone, Debug, Default)]
pub struct Besides {
    /// What may be data, and is no shard.
    pub passed_over: PassedOver,
    /// What sets of numbered shards lack.
    pub missing: Vec<MissingShards>,
}

impl DataSetDiff {
    /// Whether the data sets hold the same records in the same order.
    pub fn is_equal(&self) -> bool {
        self.different == 0 && self.alone == [0, 0]
    }
}

/// Compares the records of two data sets, which are read once, side by side: the first with the first, and so on. Where
/// two differ, and one of them is equal to a record not far behind the other, what stands before that has no partner.
///
/// # Errors
/// What reading says, and records that cannot be compared.
pub fn diff<S: AsRef<OsStr>>(
    left: &[S],
    right: &[S],
    options: &DiffOptions,
    progress: &Progress,
) -> Result<DataSetDiff> {
    let found = [resolve_wanted(left, Wanted::Any)?, resolve_wanted(right, Wanted::Any)?];
    let [left, right] =
        found.map(|Resolved { shards, passed_over, missing }| (shards, Besides { passed_over, missing }));
    let (mut sides, besides) = ([left.0, right.0], [left.1, right.1]);
    for shard in sides.iter_mut().flatten() {
        shard.spool()?;
        if shard.is_remote() {
            shard.spool_columnar()?;
        }
    }
    progress.restart(sides.iter().flatten().map(|shard| shard.size).sum());
    let (record_type, why_raw) = record_type(&sides, options)?;
    let [left, right] = sides.map(|shards| RecordReader::new(shards, options.read, record_type, options.record_type));
    thread::scope(|scope| {
        let [(left, reads_left), (right, reads_right)] = [left, right].map(|mut reader| {
            let (send, blocks) = mpsc::sync_channel(BLOCKS);
            let reads = scope.spawn(move || {
                for block in reader.by_ref() {
                    // Nobody may care any more.
                    let ends = block.is_err();
                    if send.send(block).is_err() || ends {
                        break;
                    }
                }
                reader.skipped
            });
            (Side { blocks, ahead: VecDeque::new(), bytes: 0, number: 0 }, reads)
        });
        let differ = Differ::new(record_type, options.read.limits);
        let is_raw = record_type == RecordType::Raw;
        let comparison = Comparison { sides: [left, right], is_raw, differ, looks: LOOKS, progress };
        let found = comparison.run(options.most)?;
        let skipped =
            [reads_left, reads_right].map(|reads| reads.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        Ok(DataSetDiff { skipped, why_raw, besides, ..found })
    })
}

/// What the records of both data sets are; and why they are compared as they are, where nobody says that they are raw.
fn record_type(sides: &[Vec<Shard>; 2], options: &DiffOptions) -> Result<(RecordType, Option<String>)> {
    if let Some(record_type) = options.record_type {
        if record_type != RecordType::Raw {
            sides.iter().try_for_each(|shards| check_one_payload(shards))?;
        }
        return Ok((record_type, None));
    }
    let (mut types, mut why_raw) = (Vec::new(), None);
    for shards in sides {
        match said_type(shards, options)? {
            Some(RecordType::Raw) => return Ok((RecordType::Raw, None)),
            Some(record_type) => types.push(record_type),
            None => {
                let sample = Sample::Records(SAMPLE_RECORDS);
                let infer = InferOptions {
                    sample,
                    record_type: options.record_type,
                    read: options.read,
                    ..InferOptions::default()
                };
                let inferred = infer_with(shards, &infer, &|_, _| ControlFlow::Continue(()))?;
                let why = inferred.why_raw();
                // Of no records nothing is known.
                let looks_like = inferred.summary.record_type();
                types.extend(Some(looks_like).filter(|_| why.is_none() && inferred.summary.records() > 0));
                why_raw = why_raw.or(why);
            }
        }
    }
    // A few records that do not parse make no other messages of those that they stand among.
    Ok(match types.iter().max_by_key(|record_type| **record_type == RecordType::SequenceExample) {
        Some(record_type) => (*record_type, None),
        None if why_raw.is_some() => (RecordType::Raw, why_raw),
        None => (RecordType::Example, None),
    })
}

/// What the files of a data set say that its records are.
fn said_type(shards: &[Shard], options: &DiffOptions) -> Result<Option<RecordType>> {
    let schemas = shards.iter().filter_map(|shard| columnar::schema_within(shard, &options.read.limits).transpose());
    let schemas = schemas.collect::<Result<Vec<_>>>()?;
    Ok(schemas.first().map(|schema| record_type_of(schema)))
}

/// A record of a block.
#[derive(Clone)]
struct Record {
    block: Arc<Block>,
    at: usize,
}

impl Record {
    fn data(&self) -> &[u8] {
        self.block.records.data(self.at).unwrap_or_default()
    }

    fn place(&self) -> RecordPlace {
        let offset = self.block.is_tfrecord.then(|| self.block.records.position(self.at).offset);
        RecordPlace { path: Arc::clone(&self.block.path), record: self.block.first + self.at as u64, offset }
    }
}

/// One of the data sets.
struct Side {
    blocks: mpsc::Receiver<Result<Block>>,
    /// The record in hand, and those behind it that were looked at, or are in the same block; and bytes of all these.
    ahead: VecDeque<Record>,
    bytes: usize,
    /// The number of the record in hand.
    number: u64,
}

impl Side {
    /// The record so many behind that in hand; `None` where there is none, or it is too far away to look at.
    fn peek(&mut self, behind: usize) -> Result<Option<Record>> {
        while self.ahead.len() <= behind && (behind == 0 || self.bytes < AHEAD_BYTES) {
            let Ok(block) = self.blocks.recv() else { break };
            let block = Arc::new(block?);
            self.bytes += block.records.bytes();
            let before = self.ahead.len();
            self.ahead.extend(block.sound().map(|at| Record { block: Arc::clone(&block), at }));
            // Of a block that has none, nobody would say that it is passed.
            self.bytes -= if self.ahead.len() == before { block.records.bytes() } else { 0 };
        }
        Ok(self.ahead.get(behind).cloned())
    }

    /// Goes on behind the record in hand.
    fn pass(&mut self) {
        if let Some(record) = self.ahead.pop_front() {
            let has_more = self.ahead.front().is_some_and(|next| Arc::ptr_eq(&next.block, &record.block));
            self.bytes -= if has_more { 0 } else { record.block.records.bytes() };
            self.number += 1;
        }
    }
}

struct Comparison<'p> {
    sides: [Side; 2],
    is_raw: bool,
    differ: Differ,
    /// Comparisons that are left for looking.
    looks: usize,
    progress: &'p Progress,
}

impl Comparison<'_> {
    fn run(mut self, most: usize) -> Result<DataSetDiff> {
        let mut found = DataSetDiff {
            records: [0, 0],
            equal: 0,
            different: 0,
            alone: [0, 0],
            features: BTreeMap::new(),
            first: Vec::new(),
            skipped: Default::default(),
            why_raw: None,
            besides: Default::default(),
        };
        loop {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            self.progress.add_records(1);
            self.looks = (self.looks + LOOKS_A_RECORD).min(LOOKS);
            let [left, right] = &mut self.sides;
            let (alone, count) = match (left.peek(0)?, right.peek(0)?) {
                (None, None) => break,
                (Some(_), None) => (0, 1),
                (None, Some(_)) => (1, 1),
                (Some(left), Some(right)) => {
                    let differences = self.pair(&left, &right).map_err(incomparable)?;
                    let alone = if differences.is_empty() { None } else { self.alone(&left, &right)? };
                    let Some(alone) = alone else {
                        found.add_pair(self.sides[0].number, [&left, &right], differences, most);
                        self.sides.iter_mut().for_each(Side::pass);
                        continue;
                    };
                    alone
                }
            };
            for _ in 0..count {
                let Some(side) = self.sides.get_mut(alone) else { break };
                if let Some(record) = side.peek(0)? {
                    found.add_alone(alone, side.number, &record, most);
                }
                side.pass();
            }
        }
        found.records = self.sides.map(|side| side.number);
        Ok(found)
    }

    /// Which side, of two records that differ, has records without a partner before the next pair, and how many. None,
    /// where the records behind these two are a pair, and where no record not far behind is equal to one of them.
    fn alone(&mut self, left: &Record, right: &Record) -> Result<Option<(usize, usize)>> {
        for behind in 1..=AHEAD.min(self.looks / 2) {
            self.looks -= 2;
            let [one, other] = &mut self.sides;
            let (one, other) = (one.peek(behind)?, other.peek(behind)?);
            let are_pair = |this: &mut Self, one: Option<&Record>, other: Option<&Record>| {
                one.zip(other).is_some_and(|(one, other)| this.pair(one, other).is_ok_and(|found| found.is_empty()))
            };
            let is_changed = behind == 1 && are_pair(self, one.as_ref(), other.as_ref());
            if is_changed || one.is_none() && other.is_none() {
                break;
            }
            let alone = match () {
                () if are_pair(self, Some(left), other.as_ref()) => 1,
                () if are_pair(self, one.as_ref(), Some(right)) => 0,
                () => continue,
            };
            return Ok(Some((alone, behind)));
        }
        Ok(None)
    }

    /// In what two records differ.
    fn pair(&mut self, left: &Record, right: &Record) -> Result<Vec<Difference>, Incomparable> {
        if self.is_raw {
            let differ = left.data() != right.data();
            return Ok(Vec::from_iter(differ.then_some(Difference { feature: None, what: DifferenceKind::Bytes })));
        }
        self.differ.compare(left.data(), right.data())
    }
}

/// Why records that parse cannot be compared.
fn incomparable(why: Incomparable) -> Error {
    Error::Data(match why {
        Incomparable::Left(error) | Incomparable::Right(error) => error.to_string(),
        Incomparable::Names => {
            "the data sets have more names of features than the limits columns and name-bytes allow; \
                                --limit NAME=N allows more"
                .to_owned()
        }
    })
}

impl DataSetDiff {
    fn add_pair(&mut self, number: u64, pair: [&Record; 2], differences: Vec<Difference>, most: usize) {
        if differences.is_empty() {
            self.equal += 1;
            return;
        }
        self.different += 1;
        for feature in differences.iter().filter_map(|difference| difference.feature.clone()) {
            *self.features.entry(feature).or_default() += 1;
        }
        if self.first.len() < most {
            let places = pair.map(|record| Some(record.place()));
            self.first.push(RecordDifference { number, places, differences });
        }
    }

    fn add_alone(&mut self, side: usize, number: u64, record: &Record, most: usize) {
        if let Some(count) = self.alone.get_mut(side) {
            *count += 1;
        }
        if self.first.len() < most {
            let place = Some(record.place());
            let places = if side == 0 { [place, None] } else { [None, place] };
            self.first.push(RecordDifference { number, places, differences: Vec::new() });
        }
    }
}
