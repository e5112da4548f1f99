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
    Limits, OnError, RecordType, Role, WireError,
    diff::{Differ, Difference, DifferenceKind, Incomparable},
    schema::record_type_of,
};
use tfarrow_dataset::{InferOptions, ReadOptions, SAMPLE_RECORDS, Sample, Shard, SkippedRecords, infer_with, resolve};

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
    /// What of TFRecord is damaged and was passed over, left and right: nothing, unless that was asked for.
    pub skipped: [SkippedRecords; 2],
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
    let mut sides = [resolve(left)?, resolve(right)?];
    for shard in sides.iter_mut().flatten() {
        shard.spool()?;
        if shard.is_remote() {
            shard.spool_columnar()?;
        }
    }
    progress.restart(sides.iter().flatten().map(|shard| shard.size).sum());
    let types = [record_type(&sides[0], options)?, record_type(&sides[1], options)?];
    let is_raw = types.contains(&RecordType::Raw);
    let lists = types.contains(&RecordType::SequenceExample);
    let record_type = if lists { RecordType::SequenceExample } else { RecordType::Example };
    let [left, right] = sides.map(|shards| RecordReader::new(shards, options.read, options.record_type));
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
        let (sides, skipped) = ([left, right], Default::default());
        let read = &options.read;
        let comparison = Comparison { sides, is_raw, lists, differ, looks: LOOKS, read, skipped, progress };
        let mut found = comparison.run(options.most)?;
        let skipped =
            [reads_left, reads_right].map(|reads| reads.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        found.skipped.iter_mut().zip(skipped).for_each(|(all, skipped)| all.merge(skipped));
        Ok(found)
    })
}

/// What the records of a data set are: as a file of it says, or as its first records look.
fn record_type(shards: &[Shard], options: &DiffOptions) -> Result<RecordType> {
    let schemas = shards.iter().filter_map(|shard| columnar::schema_within(shard, &options.read.limits).transpose());
    let schemas = schemas.collect::<Result<Vec<_>>>()?;
    let said = options.record_type.or_else(|| schemas.first().map(|schema| record_type_of(schema)));
    if let Some(record_type) = said {
        return Ok(record_type);
    }
    let infer = InferOptions { sample: Sample::Records(SAMPLE_RECORDS), read: options.read, ..Default::default() };
    Ok(infer_with(shards, &infer, &|_, _| ControlFlow::Continue(()))?.summary.record_type())
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

    fn unreadable(&self, error: WireError, lists: bool, limits: &Limits) -> tfarrow_dataset::Error {
        let error = self.block.records.unreadable(error, self.at, lists, limits);
        tfarrow_dataset::Error::codec(&*self.block.path, error)
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
    lists: bool,
    differ: Differ,
    /// Comparisons that are left for looking.
    looks: usize,
    read: &'p ReadOptions,
    /// Records that do not parse, and were passed over.
    skipped: [SkippedRecords; 2],
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
                    let differences = match self.pair(&left, &right) {
                        Ok(differences) => differences,
                        Err(incomparable) => {
                            self.pass_over(incomparable, [&left, &right])?;
                            continue;
                        }
                    };
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
        found.skipped = self.skipped;
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

    /// Passes over the one of two records that does not parse, where that is asked for.
    fn pass_over(&mut self, incomparable: Incomparable, pair: [&Record; 2]) -> Result<()> {
        let (side, record, error) = match incomparable {
            Incomparable::Left(error) => (0, pair[0], error),
            Incomparable::Right(error) => (1, pair[1], error),
            Incomparable::Names => {
                let why = "the data sets have more names of features than the limits columns and name-bytes allow";
                return Err(Error::Data(why.to_owned()));
            }
        };
        let told = record.unreadable(error, self.lists, &self.read.limits);
        if self.read.on_error == OnError::Fail || error.is_limit() {
            return Err(told.into());
        }
        if let (Some(skipped), Some(side)) = (self.skipped.get_mut(side), self.sides.get_mut(side)) {
            skipped.add_record(told);
            side.pass();
        }
        Ok(())
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
