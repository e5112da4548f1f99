//! What the codec may be made to hold, and which checks it makes.

/// Bounds that no input can pass. Each has a name, a unit and a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest record, in bytes of payload. By default 2 GiB - 1, what protobuf itself allows.
    pub record_bytes: usize,
    /// Different feature names that are remembered, in a schema or in what a scan did not expect. By default 1 million.
    pub features: usize,
    /// Bytes of all these names together. By default 64 MiB.
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { record_bytes: i32::MAX as usize, features: 1_000_000, name_bytes: 64 << 20 }
    }
}

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

/// What becomes of a record that is damaged, or does not fit the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// It is an error, and there is no batch.
    #[default]
    Fail,
    /// It is left out of its batch, and counted.
    Skip,
}
