//! Comparison of two data sets of any format and sharding, record by record and feature by feature.
//!
//! Records are compared in order. At a mismatch, both sides are searched ahead for a record that is equal to the current
//! one of the other side:
//!
//! ```text
//! left    a b c d e         a b c d e          a b c d e
//! right   a b x d e         a b x c d e        a b d e
//!             changed           x inserted         c deleted
//! ```

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
    DamageReport, FormatFilter, InferOptions, MissingShards, ReadOptions, Resolved, SAMPLE_RECORDS, Sample, Shard,
    SkippedFiles, check_one_payload, infer_with, resolve_filtered,
};

use self::records::{CheckedRecords, RecordReader};
use crate::{Error, Progress, Result, input::columnar};

mod records;

/// Chunks of records that each side reads ahead.
const CHUNKS_AHEAD: usize = 2;

/// Maximum records, and bytes of records, that are searched ahead after a mismatch.
const MAX_AHEAD: usize = 1000;
const MAX_AHEAD_BYTES: usize = 64 << 20;

/// Comparisons of the search that are available at first, and that each record adds. They bound the time of the search to a
/// small multiple of the number of records.
const SEARCH_BUDGET: usize = 1 << 17;
const SEARCH_BUDGET_PER_RECORD: usize = 4;

/// The options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// The type of the records. By default it is inferred.
    pub record_type: Option<RecordType>,
    /// How TFRecord is read.
    pub read: ReadOptions,
    /// Maximum number of differences that are kept.
    pub max_differences: usize,
}

/// The position of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// The path of its file.
    pub path: Arc<PathBuf>,
    /// Its number in the file, from 0.
    pub record: u64,
    /// Its offset in the decompressed TFRecord file; `None` for other formats.
    pub offset: Option<u64>,
}

impl fmt::Display for RecordPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: record {}", self.path.display(), self.record)?;
        self.offset.map_or(Ok(()), |offset| write!(f, " (byte {offset})"))
    }
}

/// Two records that differ, or a record that is only on one side.
#[derive(Clone, Debug)]
pub struct RecordDifference {
    /// The number of the record in its data set, from 0; in the left one for a pair.
    pub number: u64,
    /// The positions of the left and the right record.
    pub positions: [Option<RecordPosition>; 2],
    /// The differences of a pair; empty if a record is only on one side.
    pub differences: Vec<Difference>,
}

/// The result of a comparison. Arrays have the value of the left and of the right data set.
#[derive(Debug)]
pub struct DataSetDiff {
    /// Number of records.
    pub records: [u64; 2],
    /// Number of pairs that are equal.
    pub equal: u64,
    /// Number of pairs that differ.
    pub different: u64,
    /// Number of records that are only on one side.
    pub unpaired: [u64; 2],
    /// Number of pairs in which each feature differs.
    pub features: BTreeMap<(Role, String), u64>,
    /// The first differences.
    pub first: Vec<RecordDifference>,
    /// Corrupt and unparsable records of TFRecord files that were skipped.
    pub skipped: [DamageReport; 2],
    /// Why the bytes of records were compared and not their features, if the record type was inferred.
    pub why_raw: Option<String>,
    /// Other files in the folders of the data sets.
    pub other_files: [OtherFiles; 2],
}

/// Files of a data set that were not compared, and shards that are missing.
#[derive(Clone, Debug, Default)]
pub struct OtherFiles {
    /// Files that may be data, but are not shards.
    pub skipped_files: SkippedFiles,
    /// Shards that are missing from numbered sets.
    pub missing: Vec<MissingShards>,
}

impl DataSetDiff {
    /// Whether the data sets have the same records in the same order.
    pub fn is_equal(&self) -> bool {
        self.different == 0 && self.unpaired == [0, 0]
    }
}

/// Compares the records of two data sets in order, reading each once. At a mismatch, searches up to 1,000 records ahead for
/// an insertion or deletion.
///
/// # Errors
/// Data sets that cannot be read, and records that cannot be compared.
pub fn diff<S: AsRef<OsStr>>(
    left: &[S],
    right: &[S],
    options: &DiffOptions,
    progress: &Progress,
) -> Result<DataSetDiff> {
    let found = [resolve_filtered(left, FormatFilter::Any)?, resolve_filtered(right, FormatFilter::Any)?];
    let [left, right] =
        found.map(|Resolved { shards, skipped_files, missing }| (shards, OtherFiles { skipped_files, missing }));
    let (mut sides, other_files) = ([left.0, right.0], [left.1, right.1]);
    for shard in sides.iter_mut().flatten() {
        shard.spool()?;
        if shard.is_remote() {
            shard.spool_columnar()?;
        }
    }
    progress.restart(sides.iter().flatten().map(|shard| shard.size).sum());
    let (record_type, why_raw) = record_type(&sides, options)?;
    let reader = |shards| RecordReader::new(shards, options.read, record_type, options.record_type, progress);
    let [left, right] = sides.map(reader);
    thread::scope(|scope| {
        let [(left, left_thread), (right, right_thread)] = [left, right].map(|mut reader| {
            let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
            let thread = scope.spawn(move || {
                for chunk in reader.by_ref() {
                    let is_last = chunk.is_err();
                    // Sending fails if the comparison has ended with an error.
                    if sender.send(chunk).is_err() || is_last {
                        break;
                    }
                }
                reader.skipped
            });
            (Side { chunks, ahead: VecDeque::new(), bytes: 0, number: 0 }, thread)
        });
        let differ = Differ::new(record_type, options.read.limits);
        let is_raw = record_type == RecordType::Raw;
        let comparison = Comparison { sides: [left, right], is_raw, differ, budget: SEARCH_BUDGET, progress };
        let found = comparison.run(options.max_differences)?;
        let skipped =
            [left_thread, right_thread].map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        Ok(DataSetDiff { skipped, why_raw, other_files, ..found })
    })
}

/// The type of the records of both data sets, and the reason if it was inferred to be raw.
fn record_type(sides: &[Vec<Shard>; 2], options: &DiffOptions) -> Result<(RecordType, Option<String>)> {
    if let Some(record_type) = options.record_type {
        if record_type != RecordType::Raw {
            sides.iter().try_for_each(|shards| check_one_payload(shards))?;
        }
        return Ok((record_type, None));
    }
    let (mut types, mut why_raw) = (Vec::new(), None);
    for shards in sides {
        match type_in_metadata(shards, options)? {
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
                // An empty data set does not determine the type.
                let is_known = why.is_none() && inferred.summary.records() > 0;
                types.extend(Some(inferred.summary.record_type()).filter(|_| is_known));
                why_raw = why_raw.or(why);
            }
        }
    }
    // If the records of one data set are messages, those of the other that do not parse are corrupt messages.
    Ok(match types.iter().max_by_key(|record_type| **record_type == RecordType::SequenceExample) {
        Some(record_type) => (*record_type, None),
        None if why_raw.is_some() => (RecordType::Raw, why_raw),
        None => (RecordType::Example, None),
    })
}

/// The record type in the metadata of the first Parquet or Arrow file; `None` if there is no such file.
fn type_in_metadata(shards: &[Shard], options: &DiffOptions) -> Result<Option<RecordType>> {
    let schemas = shards.iter().filter_map(|shard| columnar::schema_within(shard, &options.read.limits).transpose());
    let schemas = schemas.collect::<Result<Vec<_>>>()?;
    Ok(schemas.first().map(|schema| record_type_of(schema)))
}

/// A record of a chunk.
#[derive(Clone)]
struct Record {
    chunk: Arc<CheckedRecords>,
    index: usize,
}

impl Record {
    fn data(&self) -> &[u8] {
        let data = self.chunk.records.data(self.index);
        debug_assert!(data.is_some(), "the index is that of a record");
        data.unwrap_or_default()
    }

    fn position(&self) -> RecordPosition {
        let offset = self.chunk.is_tfrecord.then(|| self.chunk.records.position(self.index).offset);
        RecordPosition { path: Arc::clone(&self.chunk.path), record: self.chunk.first + self.index as u64, offset }
    }
}

/// One of the two data sets.
struct Side {
    chunks: mpsc::Receiver<Result<CheckedRecords>>,
    /// The current record and the records after it that were received.
    ahead: VecDeque<Record>,
    /// Bytes of the chunks of these records.
    bytes: usize,
    /// The number of the current record in the data set.
    number: u64,
}

impl Side {
    /// The record `ahead` records after the current one; `None` after the last, and beyond [`MAX_AHEAD_BYTES`].
    fn peek(&mut self, ahead: usize) -> Result<Option<Record>> {
        while self.ahead.len() <= ahead && (ahead == 0 || self.bytes < MAX_AHEAD_BYTES) {
            let Ok(chunk) = self.chunks.recv() else { break };
            let chunk = Arc::new(chunk?);
            self.bytes += chunk.records.bytes();
            let before = self.ahead.len();
            self.ahead.extend(chunk.valid().map(|index| Record { chunk: Arc::clone(&chunk), index }));
            // `advance` does not subtract the bytes of a chunk without valid records.
            self.bytes -= if self.ahead.len() == before { chunk.records.bytes() } else { 0 };
        }
        Ok(self.ahead.get(ahead).cloned())
    }

    /// Makes the next record the current one.
    fn advance(&mut self) {
        if let Some(record) = self.ahead.pop_front() {
            let has_more = self.ahead.front().is_some_and(|next| Arc::ptr_eq(&next.chunk, &record.chunk));
            self.bytes -= if has_more { 0 } else { record.chunk.records.bytes() };
            self.number += 1;
        }
    }
}

/// A running comparison.
struct Comparison<'p> {
    sides: [Side; 2],
    is_raw: bool,
    differ: Differ,
    /// Comparisons that remain for searching ahead.
    budget: usize,
    progress: &'p Progress,
}

impl Comparison<'_> {
    fn run(mut self, max_differences: usize) -> Result<DataSetDiff> {
        let mut found = DataSetDiff {
            records: [0, 0],
            equal: 0,
            different: 0,
            unpaired: [0, 0],
            features: BTreeMap::new(),
            first: Vec::new(),
            skipped: Default::default(),
            why_raw: None,
            other_files: Default::default(),
        };
        loop {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            self.progress.add_records(1);
            self.budget = (self.budget + SEARCH_BUDGET_PER_RECORD).min(SEARCH_BUDGET);
            let [left, right] = &mut self.sides;
            let (side, count) = match (left.peek(0)?, right.peek(0)?) {
                (None, None) => break,
                (Some(_), None) => (0, 1),
                (None, Some(_)) => (1, 1),
                (Some(left), Some(right)) => {
                    let differences = self.compare(&left, &right).map_err(Error::Incomparable)?;
                    let unpaired = if differences.is_empty() { None } else { self.find_unpaired(&left, &right)? };
                    let Some(unpaired) = unpaired else {
                        found.add_pair(self.sides[0].number, [&left, &right], differences, max_differences);
                        self.sides.iter_mut().for_each(Side::advance);
                        continue;
                    };
                    unpaired
                }
            };
            self.skip_unpaired(side, count, &mut found, max_differences)?;
        }
        found.records = self.sides.map(|side| side.number);
        Ok(found)
    }

    /// Adds the next `count` records of one side, which have no partner, to the result.
    fn skip_unpaired(&mut self, index: usize, count: usize, found: &mut DataSetDiff, max: usize) -> Result<()> {
        let [left, right] = &mut self.sides;
        let side = if index == 0 { left } else { right };
        for _ in 0..count {
            if let Some(record) = side.peek(0)? {
                found.add_unpaired(index, side.number, &record, max);
            }
            side.advance();
        }
        Ok(())
    }

    /// Searches ahead of two records that differ for the next pair. Returns the side with records that have no partner, and
    /// their number. `None` if the next records of both sides are equal, or if no record ahead is equal to one of the two.
    fn find_unpaired(&mut self, left: &Record, right: &Record) -> Result<Option<(usize, usize)>> {
        for ahead in 1..=MAX_AHEAD.min(self.budget / 2) {
            self.budget -= 2;
            let [one, other] = &mut self.sides;
            let (one, other) = (one.peek(ahead)?, other.peek(ahead)?);
            let are_equal = |this: &mut Self, one: Option<&Record>, other: Option<&Record>| {
                one.zip(other).is_some_and(|(one, other)| this.compare(one, other).is_ok_and(|found| found.is_empty()))
            };
            let is_changed = ahead == 1 && are_equal(self, one.as_ref(), other.as_ref());
            if is_changed || one.is_none() && other.is_none() {
                break;
            }
            let side = match () {
                () if are_equal(self, Some(left), other.as_ref()) => 1,
                () if are_equal(self, one.as_ref(), Some(right)) => 0,
                () => continue,
            };
            return Ok(Some((side, ahead)));
        }
        Ok(None)
    }

    /// The differences of two records; empty if they are equal.
    fn compare(&mut self, left: &Record, right: &Record) -> Result<Vec<Difference>, Incomparable> {
        if self.is_raw {
            let differ = left.data() != right.data();
            return Ok(Vec::from_iter(differ.then_some(Difference { feature: None, what: DifferenceKind::Bytes })));
        }
        self.differ.compare(left.data(), right.data())
    }
}

impl DataSetDiff {
    fn add_pair(&mut self, number: u64, pair: [&Record; 2], differences: Vec<Difference>, max: usize) {
        if differences.is_empty() {
            self.equal += 1;
            return;
        }
        self.different += 1;
        for feature in differences.iter().filter_map(|difference| difference.feature.clone()) {
            *self.features.entry(feature).or_default() += 1;
        }
        if self.first.len() < max {
            let positions = pair.map(|record| Some(record.position()));
            self.first.push(RecordDifference { number, positions, differences });
        }
    }

    fn add_unpaired(&mut self, side: usize, number: u64, record: &Record, max: usize) {
        let [left, right] = &mut self.unpaired;
        *(if side == 0 { left } else { right }) += 1;
        if self.first.len() < max {
            let position = Some(record.position());
            let positions = if side == 0 { [position, None] } else { [None, position] };
            self.first.push(RecordDifference { number, positions, differences: Vec::new() });
        }
    }
}
