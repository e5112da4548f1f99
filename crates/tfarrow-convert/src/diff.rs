//! In what two data sets differ: record by record, feature by feature, whatever formats and shards they are in.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
};

use tfarrow_codec::{
    RecordType, Role,
    diff::{Differ, Difference, DifferenceKind, Incomparable},
    schema::record_type_of,
};
use tfarrow_dataset::{Contents, InferOptions, ReadOptions, SAMPLE_RECORDS, Sample, Shard, infer_with, resolve};

use crate::{
    Error, Progress, Result, columnar,
    records::{Block, RecordReader},
};

/// Blocks of records that are read ahead on either side.
const AHEAD: usize = 2;

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

/// Two records of the same number that differ, or one that has no partner.
#[derive(Clone, Debug)]
pub struct RecordDifference {
    /// The number in the data sets, from 0.
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
    /// In how many pairs each feature differs.
    pub features: BTreeMap<(Role, String), u64>,
    /// The first records that differ, those without a partner last.
    pub first: Vec<RecordDifference>,
}

impl DataSetDiff {
    /// Whether the data sets hold the same records in the same order.
    pub fn is_equal(&self) -> bool {
        self.different == 0 && self.records[0] == self.records[1]
    }
}

/// Compares the records of two data sets, which are read once, side by side: the first with the first, and so on.
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
        let [left, right] = [left, right].map(|reader| {
            let (send, blocks) = mpsc::sync_channel(AHEAD);
            scope.spawn(move || {
                for block in reader {
                    // Nobody may care any more.
                    let ends = block.is_err();
                    if send.send(block).is_err() || ends {
                        break;
                    }
                }
            });
            Side { blocks, block: None, at: 0 }
        });
        Comparison { left, right, is_raw, differ: Differ::new(record_type, options.read.limits), progress }
            .run(options.most)
    })
}

/// What the records of a data set are: as a file of it says, or as its first records look.
fn record_type(shards: &[Shard], options: &DiffOptions) -> Result<RecordType> {
    if let Some(record_type) = options.record_type {
        return Ok(record_type);
    }
    if let Some(shard) = shards.iter().find(|shard| shard.contents != Contents::TfRecord) {
        let schema = columnar::schema(Some(shard.contents), &shard.path, shard.local_path())?;
        return Ok(schema.map_or(RecordType::Example, |schema| record_type_of(&schema)));
    }
    let infer = InferOptions { sample: Sample::Records(SAMPLE_RECORDS), read: options.read, ..Default::default() };
    Ok(infer_with(shards, &infer, &|_, _| ControlFlow::Continue(()))?.summary.record_type())
}

/// One of the data sets.
struct Side {
    blocks: mpsc::Receiver<Result<Block>>,
    block: Option<Block>,
    /// The record in hand, in its block.
    at: usize,
}

impl Side {
    /// Goes to the next record. Whether there is one.
    fn next(&mut self) -> Result<bool> {
        self.at += 1;
        while self.block.as_ref().is_none_or(|block| self.at >= block.records.len()) {
            match self.blocks.recv() {
                Ok(block) => (self.block, self.at) = (Some(block?), 0),
                Err(mpsc::RecvError) => {
                    self.block = None;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn data(&self) -> &[u8] {
        self.block.as_ref().and_then(|block| block.records.data(self.at)).unwrap_or_default()
    }

    fn place(&self) -> Option<RecordPlace> {
        let block = self.block.as_ref()?;
        let offset = block.is_tfrecord.then(|| block.records.position(self.at).offset);
        Some(RecordPlace { path: Arc::clone(&block.path), record: block.first + self.at as u64, offset })
    }

    fn path(&self) -> &Path {
        self.block.as_ref().map_or(Path::new(""), |block| &block.path)
    }
}

struct Comparison<'p> {
    left: Side,
    right: Side,
    is_raw: bool,
    differ: Differ,
    progress: &'p Progress,
}

impl Comparison<'_> {
    fn run(mut self, most: usize) -> Result<DataSetDiff> {
        let (records, features, first) = ([0, 0], BTreeMap::new(), Vec::new());
        let mut found = DataSetDiff { records, equal: 0, different: 0, features, first };
        for number in 0.. {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (left, right) = (self.left.next()?, self.right.next()?);
            found.records[0] += u64::from(left);
            found.records[1] += u64::from(right);
            self.progress.add_records(1);
            match (left, right) {
                (false, false) => break,
                (true, true) => {
                    let differences = self.pair()?;
                    if differences.is_empty() {
                        found.equal += 1;
                        continue;
                    }
                    found.different += 1;
                    for feature in differences.iter().filter_map(|difference| difference.feature.clone()) {
                        *found.features.entry(feature).or_default() += 1;
                    }
                    if found.first.len() < most {
                        let places = [self.left.place(), self.right.place()];
                        found.first.push(RecordDifference { number, places, differences });
                    }
                }
                // Of those without a partner, the first tells where they begin.
                _ if found.records[0].abs_diff(found.records[1]) == 1 => {
                    let places = [self.left.place(), self.right.place()];
                    found.first.push(RecordDifference { number, places, differences: Vec::new() });
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn pair(&mut self) -> Result<Vec<Difference>> {
        let (left, right) = (self.left.data(), self.right.data());
        if self.is_raw {
            let differ = left != right;
            return Ok(Vec::from_iter(differ.then_some(Difference { feature: None, what: DifferenceKind::Bytes })));
        }
        self.differ.compare(left, right).map_err(|error| {
            let wrong = |side: &Side, error| match &side.block {
                Some(block) => {
                    Error::codec(side.path(), tfarrow_codec::Error::wire(error, block.records.position(side.at)))
                }
                None => Error::Data("there is no such record".to_owned()),
            };
            match error {
                Incomparable::Left(error) => wrong(&self.left, error),
                Incomparable::Right(error) => wrong(&self.right, error),
                Incomparable::Names => {
                    Error::Data("the data sets have more names of features than the limit columns".to_owned())
                }
            }
        })
    }
}
