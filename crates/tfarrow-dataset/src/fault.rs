//! What is wrong with a data set: each fault with its place, for whoever goes on behind them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tfarrow_codec::Category;

use crate::{Error, ErrorKind, Lost, SkippedRecords};

/// Something that is wrong with a shard, and where.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The number of the shard in its data set.
    pub shard: usize,
    /// The number of the record. A stretch that no record can be made of counts as one.
    pub record: u64,
    /// Where it begins in the decompressed shard.
    pub offset: u64,
    /// How many bytes are lost by it, frames included where they are; of those that do not inflate, as they are stored.
    pub bytes: u64,
    /// What is wrong.
    pub error: Arc<Error>,
}

/// What sort of fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A record's length cannot be believed.
    Length,
    /// The CRC of a record's data does not hold, or the checksum of a part of a Parquet or Arrow file.
    Data,
    /// A record is not the message that it should be.
    Message,
    /// The last record is cut short.
    Tail,
    /// Compressed bytes do not inflate, end too early, or have something else behind them.
    Compression,
    /// A limit is passed.
    Limit,
    /// The file is of no format that is known, or cannot be read.
    File,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Length, Self::Data, Self::Message, Self::Tail, Self::Compression, Self::Limit, Self::File];

    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Data => "data",
            Self::Message => "message",
            Self::Tail => "tail",
            Self::Compression => "compression",
            Self::Limit => "limit",
            Self::File => "file",
        }
    }
}

impl Fault {
    /// The fault of the shard of this number that an error tells of. No bytes are lost by it yet.
    pub fn of(shard: usize, error: Error) -> Self {
        let offset = match error.kind() {
            ErrorKind::Codec(error) => error.position().offset,
            ErrorKind::Checksum { offset, .. } => *offset,
            _ => 0,
        };
        Self { shard, record: Self::record_of(&error), offset, bytes: 0, error: Arc::new(error) }
    }

    /// The number of the record that an error is about.
    pub fn record_of(error: &Error) -> u64 {
        match error.kind() {
            ErrorKind::Codec(error) => error.position().record,
            ErrorKind::Damaged { record, .. } | ErrorKind::Checksum { record, .. } => *record,
            _ => 0,
        }
    }

    /// What sort of fault it is.
    pub fn kind(&self) -> FaultKind {
        match self.error.kind() {
            ErrorKind::Damaged { .. } => FaultKind::Compression,
            ErrorKind::Checksum { .. } => FaultKind::Data,
            ErrorKind::Codec(error) => match (error.category(), error.kind()) {
                (Category::Corrupt, tfarrow_codec::ErrorKind::LengthCrc { .. }) => FaultKind::Length,
                (Category::Corrupt, _) => FaultKind::Data,
                (Category::Truncated, _) => FaultKind::Tail,
                (Category::Limit, _) => FaultKind::Limit,
                (Category::Data | Category::Usage, _) => FaultKind::Message,
            },
            _ => FaultKind::File,
        }
    }

    fn key(&self) -> (usize, u64, u64) {
        (self.shard, self.offset, self.record)
    }
}

/// The first faults of a data set, in its order, and how many there are of each sort.
#[derive(Debug)]
pub struct Faults {
    most: usize,
    first: BTreeMap<(usize, u64, u64), Fault>,
    counts: BTreeMap<FaultKind, u64>,
}

impl Faults {
    fn new(most: usize) -> Self {
        Self { most, first: BTreeMap::new(), counts: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        *self.counts.entry(fault.kind()).or_default() += 1;
        self.keep(fault);
    }

    fn keep(&mut self, fault: Fault) {
        self.first.insert(fault.key(), fault);
        if self.first.len() > self.most {
            self.first.pop_last();
        }
    }

    /// Adds to the number of faults of a sort, without their places.
    pub(crate) fn count(&mut self, kind: FaultKind, count: u64) {
        *self.counts.entry(kind).or_default() += count;
    }

    /// How many there are of each sort, those included that are not kept.
    pub fn counts(&self) -> &BTreeMap<FaultKind, u64> {
        &self.counts
    }

    fn merge(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(kind, count)| *self.counts.entry(kind).or_default() += count);
        other.first.into_values().for_each(|fault| self.keep(fault));
    }

    /// Those that are kept, in the order of the data set.
    pub fn kept(&self) -> impl Iterator<Item = &Fault> {
        self.first.values()
    }

    /// The same, as their owner.
    pub fn into_kept(self) -> impl Iterator<Item = Fault> {
        self.first.into_values()
    }
}

/// What a pass over a data set went on behind.
#[derive(Debug)]
pub struct Losses {
    /// How much that was.
    pub skipped: SkippedRecords,
    /// What is wrong there.
    pub faults: Faults,
    /// The stretch of each shard that was told of last: it may go on, also after one of another shard.
    stretches: HashMap<usize, (usize, u64, u64)>,
}

impl Losses {
    /// Nothing yet. So many faults are kept.
    pub fn new(faults: usize) -> Self {
        Self { skipped: SkippedRecords::default(), faults: Faults::new(faults), stretches: HashMap::new() }
    }

    /// Adds a record that is damaged, or does not fit.
    pub fn add_record(&mut self, fault: Fault) {
        self.skipped.records += 1;
        self.skipped.corrupt += u64::from(fault.kind() == FaultKind::Data);
        self.faults.add(fault);
    }

    /// Adds a stretch of a shard, or a part of one.
    pub fn add_lost(&mut self, shard: usize, lost: Lost) {
        let bytes = lost.bytes.len() as u64;
        self.skipped.bytes += bytes;
        match lost.error {
            Some(error) => {
                self.skipped.stretches += 1;
                let fault = Fault { offset: lost.offset, bytes, ..Fault::of(shard, error) };
                self.stretches.insert(shard, fault.key());
                self.faults.add(fault);
            }
            None => {
                let stretch = self.stretches.get(&shard);
                if let Some(fault) = stretch.and_then(|key| self.faults.first.get_mut(key)) {
                    fault.bytes += bytes;
                }
            }
        }
    }

    /// Adds those of another pass over the same data set.
    pub fn merge(&mut self, other: Self) {
        self.skipped.merge(other.skipped);
        self.faults.merge(other.faults);
    }
}
