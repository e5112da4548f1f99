//! Limits of memory and time for input that is not trusted, and the policies for CRCs and for
//! corrupt records.

use serde::{Deserialize, Serialize};

use crate::named_values;

/// Limits for the input. Each has a name, a unit and a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum length of a record's payload in bytes. Default and maximum: 2 GiB - 1; a larger
    /// value counts as [`MOST_RECORD_BYTES`].
    pub record_bytes: usize,
    /// Maximum number of features of a record, repeated ones included. Default: 1 million.
    pub record_features: usize,
    /// Maximum number of values of one feature in one record, and of the elements of all columns of
    /// a repeated message. Default: 2^28, which take 2 GiB as integers.
    pub values: usize,
    /// Maximum length of a feature's name in bytes. Default: 1 MiB.
    pub key_bytes: usize,
    /// Maximum number of different feature names: of the columns of an inferred schema, and of
    /// features without a column in a given schema. Default: 10,000.
    pub features: usize,
    /// Maximum number of bytes of all these names together. Default: 4 MiB.
    pub name_bytes: usize,
    /// Maximum depth of unknown groups, including the messages around them. Default: 100, as in
    /// protobuf.
    pub nesting: usize,
    /// Maximum number of times that a message type contains itself in columns, the outermost
    /// message included; deeper messages are columns of bytes. Default: 2.
    pub recursion: usize,
    /// Maximum ratio of decompressed to compressed bytes, for readers of compressed files; the
    /// codec does not decompress. Default: 250.
    pub inflate_ratio: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes: MOST_RECORD_BYTES,
            record_features: 1_000_000,
            values: 1 << 28,
            key_bytes: 1 << 20,
            features: 10_000,
            name_bytes: 4 << 20,
            nesting: 100,
            recursion: 2,
            inflate_ratio: 250,
        }
    }
}

/// The names of [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// [`Limits::record_bytes`]
    RecordBytes,
    /// [`Limits::record_features`]
    RecordFeatures,
    /// [`Limits::values`]
    Values,
    /// [`Limits::key_bytes`]
    KeyBytes,
    /// [`Limits::features`]
    Columns,
    /// [`Limits::name_bytes`]
    NameBytes,
    /// [`Limits::nesting`]
    Nesting,
    /// [`Limits::recursion`]
    Recursion,
    /// [`Limits::inflate_ratio`]
    InflateRatio,
}

named_values!(Limit {
    RecordBytes = "record-bytes",
    RecordFeatures = "record-features",
    Values = "values",
    KeyBytes = "key-bytes",
    Columns = "columns",
    NameBytes = "name-bytes",
    Nesting = "nesting",
    Recursion = "recursion",
    InflateRatio = "inflate-ratio",
});

impl Limits {
    /// Returns the value of a limit.
    pub fn get(mut self, limit: Limit) -> usize {
        *self.get_mut(limit)
    }

    /// Returns a mutable reference to the value of a limit.
    ///
    /// ```
    /// use tfarrow_codec::{Limit, Limits};
    /// let mut limits = Limits::default();
    /// *limits.get_mut("record-bytes".parse()?) = 64_000_000;
    /// assert_eq!(limits.get(Limit::RecordBytes), 64_000_000);
    /// # Ok::<(), tfarrow_codec::UnknownName>(())
    /// ```
    pub fn get_mut(&mut self, limit: Limit) -> &mut usize {
        match limit {
            Limit::RecordBytes => &mut self.record_bytes,
            Limit::RecordFeatures => &mut self.record_features,
            Limit::Values => &mut self.values,
            Limit::KeyBytes => &mut self.key_bytes,
            Limit::Columns => &mut self.features,
            Limit::NameBytes => &mut self.name_bytes,
            Limit::Nesting => &mut self.nesting,
            Limit::Recursion => &mut self.recursion,
            Limit::InflateRatio => &mut self.inflate_ratio,
        }
    }
}

/// Maximum length in bytes of a record that can be read and written: the maximum of protobuf.
/// Positions in a record have 32 bits.
pub const MOST_RECORD_BYTES: usize = i32::MAX as usize;

/// Maximum number of rows times columns of a batch: each cell takes memory, also if the record has
/// no value.
pub const BATCH_CELLS: usize = 1 << 20;

/// Maximum number of messages times columns of a batch and of a record, for repeated messages and
/// for the examples of lists: each cell takes memory, also if the message has two bytes and no
/// value.
pub(crate) const NESTED_CELLS: usize = 1 << 26;

/// The policy for the CRC of a record's data. The CRC of the length is always verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerifyCrc {
    /// Verify it before a record is decoded.
    #[default]
    Always,
    /// Verify it only if a record does not parse, to distinguish corruption from other payloads.
    OnParseFailure,
    /// Do not verify it.
    Never,
}

named_values!(VerifyCrc {
    Always = "always": "Before a record is read",
    OnParseFailure = "on-parse-failure": "Only where a record cannot be read, to tell corrupt from foreign data",
    Never = "never": "Never",
});

/// The policy for records that are corrupt or do not fit the schema, and for bytes from which no
/// record can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnError {
    /// Return an error, and no batch.
    #[default]
    Fail,
    /// Skip the record or the bytes, and count them.
    Skip,
}

named_values!(OnError {
    Fail = "fail": "Stop at the first one",
    Skip = "skip": "Skip them and count them",
});
