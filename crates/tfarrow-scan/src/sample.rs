//! Samples of a data set: how many records of which shards are read.

use std::{fmt, str::FromStr};

use tfarrow_codec::Records;
use tfarrow_dataset::Shard;

/// The part of a data set that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Every record.
    All,
    /// Up to this number of records, or [`SAMPLE_BYTES`], of each of up to [`SAMPLE_SHARDS`]
    /// shards, which are spread evenly over the data set.
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

/// The error that a text is not a [`Sample`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number of records, or `all`")]
pub struct NotASample;

/// Default number of records of each shard in a sample.
pub const SAMPLE_RECORDS: usize = 1000;
/// Maximum number of bytes of each shard in a sample.
pub const SAMPLE_BYTES: usize = 4 << 20;
/// Number of bytes of a shard that are read at once for a sample: a thousand records often have no
/// more.
pub(crate) const SAMPLE_CHUNK: usize = 256 << 10;
/// Maximum number of shards in a sample.
pub const SAMPLE_SHARDS: usize = 16;

/// The size of a sample that is smaller than its data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Number of records in the sample.
    pub records: u64,
    /// Number of shards that these records are from.
    pub shards: usize,
    /// Number of shards in the data set.
    pub of: usize,
}

/// Indices of the shards in a sample: shards that have bytes, spread evenly, the first and the last
/// among them.
pub(crate) fn spread(shards: &[Shard]) -> Vec<usize> {
    let mut full = Vec::new();
    for (index, shard) in shards.iter().enumerate() {
        if shard.size > 0 || shard.is_stream() {
            full.push(index);
        }
    }
    if full.len() <= SAMPLE_SHARDS {
        // Empty shards cost nothing, and a data set that was read completely is no sample.
        return if full.len() + SAMPLE_SHARDS >= shards.len() {
            (0..shards.len()).collect()
        } else {
            full
        };
    }
    let last = full.len() - 1;
    (0..SAMPLE_SHARDS)
        .filter_map(|i| full.get(i * last / (SAMPLE_SHARDS - 1)).copied())
        .collect()
}

/// The room that the sample of one shard has left.
#[derive(Debug)]
pub(crate) struct Room {
    records: usize,
    bytes: usize,
    /// Whether something of the shard had no room.
    is_cut: bool,
}

impl Room {
    pub(crate) fn new(sample: Sample) -> Self {
        let (records, bytes) = match sample {
            Sample::All => (usize::MAX, usize::MAX),
            Sample::Records(records) => (records, SAMPLE_BYTES),
        };
        Self {
            records,
            bytes,
            is_cut: false,
        }
    }

    /// Returns `true` if something of the shard had no room: the sample of the shard is complete.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes the records that have room.
    pub(crate) fn take(&mut self, records: Records) -> Option<Records> {
        if self.records == 0 || self.bytes == 0 {
            self.is_cut = true;
            return None;
        }
        let count = records.fit(self.records, self.bytes);
        self.is_cut |= count < records.len();
        let taken = if count < records.len() {
            records.split_at(count).0
        } else {
            records
        };
        self.records -= taken.len();
        self.bytes = self.bytes.saturating_sub(taken.bytes());
        Some(taken)
    }

    /// Takes this number of bytes that contain no record, so that a sample does not search for a
    /// record without end.
    pub(crate) fn lose(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.is_cut |= self.bytes == 0;
    }
}
