//! What the codec may be made to hold, and which checks it makes.

use crate::named_values;

/// Bounds that no input can pass. Each has a name, a unit and a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest record, in bytes of payload. By default 2 GiB - 1, which is the maximum: a larger value counts as
    /// [`MOST_RECORD_BYTES`].
    pub record_bytes: usize,
    /// Features that one record has, those included that it gives again. By default 1 million.
    pub record_features: usize,
    /// Values of one feature of one record. By default 2^28: as integers they take 2 GiB.
    pub values: usize,
    /// Bytes of one feature's name. By default 1 MiB.
    pub key_bytes: usize,
    /// Different feature names that are remembered: the columns that an inferred schema can have, and, beside the columns
    /// of a schema that is given, what a scan did not expect. By default 10,000.
    pub features: usize,
    /// Bytes of all these names together. By default 4 MiB.
    pub name_bytes: usize,
    /// How deep unknown groups may stand, the messages counted that they stand in. By default 100, as in protobuf.
    pub nesting: usize,
    /// How many times as long compressed bytes may become. The codec inflates nothing: this is for who does. By default
    /// 250.
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
            inflate_ratio: 250,
        }
    }
}

/// Which of [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    InflateRatio = "inflate-ratio",
});

impl Limits {
    /// The value of one limit.
    pub fn get(mut self, limit: Limit) -> usize {
        *self.get_mut(limit)
    }

    /// The value of one limit, to be set.
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
            Limit::InflateRatio => &mut self.inflate_ratio,
        }
    }
}

/// Bytes of the longest record that can be read and written: protobuf allows no longer message, and places in a record
/// are counted in 32 bits.
pub const MOST_RECORD_BYTES: usize = i32::MAX as usize;

/// Rows times columns of a batch, at most, wherever batches are made: each takes memory, also where a record has nothing.
pub const BATCH_CELLS: usize = 1 << 20;

/// Whether the CRC of a record's data is checked. The CRC of its length always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyCrc {
    /// Before a record is read.
    #[default]
    Always,
    /// Only where a record cannot be read, to tell damage from foreign data.
    OnParseFailure,
    /// Never.
    Never,
}

named_values!(VerifyCrc {
    Always = "always": "Before a record is read",
    OnParseFailure = "on-parse-failure": "Only where a record cannot be read, to tell corrupt from foreign data",
    Never = "never": "Never",
});

/// What becomes of a record that is damaged, or does not fit the schema, and of bytes that no record can be made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// It is an error, and there is no batch.
    #[default]
    Fail,
    /// It is left out, and counted.
    Skip,
}

named_values!(OnError {
    Fail = "fail": "Stop at the first one",
    Skip = "skip": "Skip them and count them",
});
