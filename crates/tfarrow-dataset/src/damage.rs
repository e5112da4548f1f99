//! Damage: the records and bytes that a pass over a data set skips, as counts, with the first
//! faults and their places.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use tfarrow_codec::{Category, Remedy};

use crate::{Error, ErrorKind, FaultKind};

/// The next part of a shard: records, or bytes that are skipped. Errors name the shard.
pub type Segment = tfarrow_codec::Segment<Error>;

/// Bytes of a shard that are not returned as records. In a compressed file that no longer
/// decompresses, they are [stored](tfarrow_codec::Lost::is_stored) bytes, up to the next member of
/// gzip or block of Snappy.
pub type Lost = tfarrow_codec::Lost<Error>;

/// A fault of a shard, and its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "ReportedFault", from = "ReportedFault")]
pub struct Fault {
    /// The number of the shard in its data set.
    pub shard: usize,
    /// The number of the record. A range of skipped bytes counts as one.
    pub record: u64,
    /// The offset in the decompressed shard.
    pub offset: u64,
    /// Number of lost bytes, including the frames of records. Bytes that cannot be decompressed are
    /// counted as stored.
    pub bytes: u64,
    /// The error.
    pub error: Arc<Error>,
}

impl Fault {
    /// The fault of an error in the shard of this number. Its lost bytes are 0.
    pub fn of(shard: usize, error: Error) -> Self {
        let offset = match error.kind() {
            ErrorKind::Codec(error) => error.position().offset,
            ErrorKind::Checksum { offset, .. } => *offset,
            _ => 0,
        };
        Self {
            shard,
            record: Self::record_of(&error),
            offset,
            bytes: 0,
            error: Arc::new(error),
        }
    }

    /// Returns the number of the record that an error is about.
    pub fn record_of(error: &Error) -> u64 {
        match error.kind() {
            ErrorKind::Codec(error) => error.position().record,
            ErrorKind::Damaged { record, .. } | ErrorKind::Checksum { record, .. } => *record,
            _ => 0,
        }
    }

    /// The kind of the fault.
    pub fn kind(&self) -> FaultKind {
        Self::kind_of(&self.error)
    }

    /// The kind of the fault that an error is.
    pub fn kind_of(error: &Error) -> FaultKind {
        match error.kind() {
            ErrorKind::Damaged { .. } => FaultKind::Compression,
            ErrorKind::Reported { fault, .. } => *fault,
            ErrorKind::Checksum { .. } => FaultKind::Data,
            ErrorKind::Codec(error) => match (error.category(), error.kind()) {
                (Category::Corrupt, tfarrow_codec::ErrorKind::LengthCrc { .. }) => {
                    FaultKind::Length
                }
                (Category::Corrupt, _) => FaultKind::Data,
                (Category::Truncated, _) => FaultKind::Tail,
                (Category::Limit, _) => FaultKind::Limit,
                (Category::Data | Category::Usage, _) => FaultKind::Message,
            },
            _ => FaultKind::File,
        }
    }

    /// The place in the data set. The path orders the faults of files that have no numbers.
    fn place(&self) -> (usize, Option<&Path>, u64, u64) {
        (self.shard, self.error.path(), self.offset, self.record)
    }
}

/// A fault that can be serialized.
#[derive(Serialize, Deserialize)]
struct ReportedFault {
    shard: usize,
    record: u64,
    offset: u64,
    bytes: u64,
    path: Option<String>,
    message: String,
    kind: FaultKind,
    remedies: Vec<Remedy>,
}

impl From<Fault> for ReportedFault {
    fn from(fault: Fault) -> Self {
        let mut remedies = fault.error.remedies();
        remedies.retain(|remedy| !matches!(remedy, Remedy::Rewrite { .. }));
        Self {
            shard: fault.shard,
            record: fault.record,
            offset: fault.offset,
            bytes: fault.bytes,
            path: fault
                .error
                .path()
                .map(|path| path.to_string_lossy().into_owned()),
            message: fault.error.kind().to_string(),
            kind: fault.kind(),
            remedies,
        }
    }
}

impl From<ReportedFault> for Fault {
    fn from(reported: ReportedFault) -> Self {
        let ReportedFault {
            shard,
            record,
            offset,
            bytes,
            path,
            message,
            kind,
            remedies,
        } = reported;
        let kind = ErrorKind::Reported {
            message,
            fault: kind,
            remedies,
        };
        let error = match path {
            Some(path) => Error::new(path, kind),
            None => Error::general(kind),
        };
        Self {
            shard,
            record,
            offset,
            bytes,
            error: Arc::new(error),
        }
    }
}

/// The damage that a pass over a data set or a shard skipped: counts, and the first faults in the
/// order of the data set.
///
/// ```text
/// add_record    a record that is corrupt, or does not fit      records + 1
/// add_lost      a range of bytes that is no record             ranges + 1, bytes
/// add           another fault, such as a file's                its kind alone
/// ```
///
/// A report can be serialized. Its errors are then [reported](ErrorKind::Reported) ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DamageReport {
    /// Number of skipped records.
    pub records: u64,
    /// Number of these that are corrupt. The others do not fit the type or the columns that they
    /// are read as.
    pub corrupt: u64,
    /// Number of ranges of bytes that are not returned as records. Each stands for one or more lost
    /// records.
    pub ranges: u64,
    /// Number of bytes in these ranges. Bytes that cannot be decompressed are counted as stored.
    pub bytes: u64,
    by_kind: BTreeMap<FaultKind, u64>,
    /// Maximum number of faults that are kept.
    most: usize,
    /// The first faults, by place.
    first: Vec<Fault>,
    /// The last range of each shard, which the next part of the shard may continue.
    #[serde(skip)]
    open: BTreeMap<usize, Arc<Error>>,
}

/// A report that keeps the first fault.
impl Default for DamageReport {
    fn default() -> Self {
        Self::new(1)
    }
}

impl DamageReport {
    /// An empty report that keeps the first `most` faults.
    pub fn new(most: usize) -> Self {
        Self {
            records: 0,
            corrupt: 0,
            ranges: 0,
            bytes: 0,
            by_kind: BTreeMap::new(),
            most,
            first: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    /// Whether there is no fault, and no part of a range that another report has begun.
    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.bytes == 0
    }

    /// Adds a record that is corrupt, or does not fit.
    pub fn add_record(&mut self, fault: Fault) {
        self.records += 1;
        self.corrupt += u64::from(fault.kind() == FaultKind::Data);
        self.add(fault);
    }

    /// Adds a range of a shard, or a part that continues the last range.
    pub fn add_lost(&mut self, shard: usize, lost: Lost) {
        let bytes = lost.bytes.len() as u64;
        self.bytes += bytes;
        match lost.error {
            Some(error) => {
                self.ranges += 1;
                let fault = Fault {
                    offset: lost.offset,
                    bytes,
                    ..Fault::of(shard, error)
                };
                self.open.insert(shard, Arc::clone(&fault.error));
                self.add(fault);
            }
            None => {
                let Some(error) = self.open.get(&shard) else {
                    return;
                };
                let range = self
                    .first
                    .iter_mut()
                    .rev()
                    .find(|fault| Arc::ptr_eq(&fault.error, error));
                range.into_iter().for_each(|fault| fault.bytes += bytes);
            }
        }
    }

    /// Adds a fault that is neither a record nor a range, such as that of a file that cannot be
    /// read.
    pub fn add(&mut self, fault: Fault) {
        self.count(fault.kind(), 1);
        self.keep(fault);
    }

    fn keep(&mut self, fault: Fault) {
        let index = self
            .first
            .partition_point(|known| known.place() <= fault.place());
        if index < self.most {
            self.first.insert(index, fault);
            self.first.truncate(self.most);
        }
    }

    /// Adds to the number of faults of a kind, without their places.
    pub fn count(&mut self, kind: FaultKind, count: u64) {
        if count > 0 {
            *self.by_kind.entry(kind).or_default() += count;
        }
    }

    /// Adds the report of another pass, or of another part of this one.
    pub fn merge(&mut self, other: Self) {
        let Self {
            records,
            corrupt,
            ranges,
            bytes,
            by_kind,
            first,
            ..
        } = other;
        self.records += records;
        self.corrupt += corrupt;
        self.ranges += ranges;
        self.bytes += bytes;
        by_kind
            .into_iter()
            .for_each(|(kind, count)| self.count(kind, count));
        first.into_iter().for_each(|fault| self.keep(fault));
    }

    /// This report of one shard, whose number in its data set is `shard`.
    pub fn of_shard(mut self, shard: usize) -> Self {
        self.first.iter_mut().for_each(|fault| fault.shard = shard);
        self
    }

    /// The number of faults of each kind, with those that are not kept.
    pub fn by_kind(&self) -> &BTreeMap<FaultKind, u64> {
        &self.by_kind
    }

    /// The faults that are kept, in the order of the data set.
    pub fn faults(&self) -> &[Fault] {
        &self.first
    }

    /// The error of the first fault, if it is kept.
    pub fn first(&self) -> Option<&Error> {
        self.first.first().map(|fault| fault.error.as_ref())
    }

    /// The counts, without faults.
    pub fn counts(&self) -> Self {
        let Self {
            records,
            corrupt,
            ranges,
            bytes,
            ..
        } = *self;
        Self {
            records,
            corrupt,
            ranges,
            bytes,
            by_kind: self.by_kind.clone(),
            ..Self::new(0)
        }
    }
}

impl fmt::Display for DamageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        let ranges = self.ranges;
        f.write_str("skipped ")?;
        if self.records == 0 && ranges == 0 && bytes > 0 {
            // The report of the first part of the range counts the range.
            return write!(f, "{bytes} more byte{}", plural(bytes));
        }
        if self.records > 0 || ranges == 0 {
            write!(f, "{} record{}", self.records, plural(self.records))?;
        }
        if ranges > 0 {
            let and = if self.records > 0 { ", and " } else { "" };
            write!(
                f,
                "{and}{bytes} byte{} in {ranges} place{}",
                plural(bytes),
                plural(ranges)
            )?;
            write!(f, " that no record can be made of")?;
        }
        match self.first() {
            Some(first) => write!(f, "; the first: {first}"),
            None => Ok(()),
        }
    }
}

/// The ending of a noun after this number.
fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
