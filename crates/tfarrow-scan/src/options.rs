//! Options of a scan.

use tfarrow_codec::{RecordType, VerifyCrc};
use tfarrow_dataset::{Part, ReadOptions};

use crate::sample::{SAMPLE_CHUNK, Sample};

/// Options of inference.
#[derive(Clone, Copy, Debug)]
pub struct InferOptions {
    /// The sample of the data set that is read. By default all records; a [part](Self::part) has no
    /// sample.
    pub sample: Sample,
    /// The part of the shards that is read, of a data set that several processes read. By default
    /// all of them.
    pub part: Option<Part>,
    /// Number of threads. By default one.
    pub threads: usize,
    /// Whether the CRCs of the data are verified. By default always.
    pub verify: VerifyCrc,
    /// The record type that the caller gives. By default none. Unless it is [`RecordType::Raw`], a
    /// data set whose files contain several kinds of records is an error.
    pub record_type: Option<RecordType>,
    /// Options for reading the shards, among them whether corrupt records are skipped.
    pub read: ReadOptions,
}

impl InferOptions {
    /// The options to read a shard with: for a sample, no more than it needs.
    pub(crate) fn read_options(&self) -> ReadOptions {
        let most = match self.sample {
            Sample::All => usize::MAX,
            Sample::Records(_) => SAMPLE_CHUNK,
        };
        ReadOptions {
            chunk_bytes: self.read.chunk_bytes.min(most),
            ..self.read
        }
    }
}

impl Default for InferOptions {
    fn default() -> Self {
        Self {
            sample: Sample::All,
            part: None,
            threads: 1,
            verify: VerifyCrc::Always,
            record_type: None,
            read: ReadOptions::default(),
        }
    }
}
