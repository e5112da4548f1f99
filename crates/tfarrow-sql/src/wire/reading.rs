//! The options of reading.

use datafusion::{common::exec_err, error::Result};
use tfarrow_codec::{Limits, NamedValue};
use tfarrow_datafusion::TfRecordSource;
use tfarrow_dataset::ReadOptions;

/// The options of a scan. Values with names are sent by their names.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReadingWire {
    /// When to verify the CRC of a record's data.
    #[prost(string, tag = "1")]
    pub verify_crc: String,
    /// The policy for corrupt records.
    #[prost(string, tag = "2")]
    pub on_error: String,
    /// The policy for a truncated last record.
    #[prost(string, tag = "3")]
    pub partial_tail: String,
    /// Bytes that are read at a time.
    #[prost(uint64, tag = "4")]
    pub chunk_bytes: u64,
    /// Limits on records and columns.
    #[prost(message, optional, tag = "5")]
    pub limits: Option<LimitsWire>,
    /// Whether a record with fields of another message type is an error.
    #[prost(bool, tag = "6")]
    pub strict: bool,
    /// Whether the scan evaluates filters.
    #[prost(bool, tag = "7")]
    pub pushdown_filters: bool,
    /// Whether all files may be scanned as one ordered partition.
    #[prost(bool, tag = "8")]
    pub preserves_order: bool,
}

/// The fields of [`Limits`].
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct LimitsWire {
    /// [`Limits::record_bytes`]
    #[prost(uint64, tag = "1")]
    pub record_bytes: u64,
    /// [`Limits::record_features`]
    #[prost(uint64, tag = "2")]
    pub record_features: u64,
    /// [`Limits::values`]
    #[prost(uint64, tag = "3")]
    pub values: u64,
    /// [`Limits::key_bytes`]
    #[prost(uint64, tag = "4")]
    pub key_bytes: u64,
    /// [`Limits::features`]
    #[prost(uint64, tag = "5")]
    pub features: u64,
    /// [`Limits::name_bytes`]
    #[prost(uint64, tag = "6")]
    pub name_bytes: u64,
    /// [`Limits::nesting`]
    #[prost(uint64, tag = "7")]
    pub nesting: u64,
    /// [`Limits::recursion`]
    #[prost(uint64, tag = "8")]
    pub recursion: u64,
    /// [`Limits::inflate_ratio`]
    #[prost(uint64, tag = "9")]
    pub inflate_ratio: u64,
}

impl ReadingWire {
    pub(super) fn of(source: &TfRecordSource) -> Self {
        let ReadOptions {
            chunk_bytes,
            limits,
            on_error,
            partial_tail,
        } = *source.read_options();
        Self {
            verify_crc: source.verify_crc().name().to_owned(),
            on_error: on_error.name().to_owned(),
            partial_tail: partial_tail.name().to_owned(),
            chunk_bytes: chunk_bytes as u64,
            limits: Some(LimitsWire::of(&limits)),
            strict: source.is_strict(),
            pushdown_filters: source.pushes_filters_down(),
            preserves_order: source.preserves_order(),
        }
    }

    /// Sets the options of a source.
    pub(super) fn apply(&self, source: TfRecordSource) -> Result<TfRecordSource> {
        // A chunk longer than a record of maximum length is no use, and would only take memory.
        let limits = self
            .limits
            .unwrap_or_else(|| LimitsWire::of(&Limits::default()))
            .limits();
        let chunk_bytes =
            bounded(self.chunk_bytes).clamp(1, limits.record_bytes.clamp(1, MOST_CHUNK_BYTES));
        Ok(source
            .with_verify_crc(named("verify_crc", &self.verify_crc)?)
            .with_on_error(named("on_error", &self.on_error)?)
            .with_partial_tail(named("partial_tail", &self.partial_tail)?)
            .with_limits(limits)
            .with_chunk_bytes(chunk_bytes)
            .with_strict(self.strict)
            .with_pushdown_filters(self.pushdown_filters)
            .with_preserve_order(self.preserves_order))
    }
}

/// Maximum bytes that a received plan may read at a time.
const MOST_CHUNK_BYTES: usize = 64 << 20;

impl LimitsWire {
    fn of(limits: &Limits) -> Self {
        let Limits {
            record_bytes,
            record_features,
            values,
            key_bytes,
            features,
            name_bytes,
            nesting,
            recursion,
            inflate_ratio,
        } = *limits;
        Self {
            record_bytes: record_bytes as u64,
            record_features: record_features as u64,
            values: values as u64,
            key_bytes: key_bytes as u64,
            features: features as u64,
            name_bytes: name_bytes as u64,
            nesting: nesting as u64,
            recursion: recursion as u64,
            inflate_ratio: inflate_ratio as u64,
        }
    }

    fn limits(self) -> Limits {
        Limits {
            record_bytes: bounded(self.record_bytes),
            record_features: bounded(self.record_features),
            values: bounded(self.values),
            key_bytes: bounded(self.key_bytes),
            features: bounded(self.features),
            name_bytes: bounded(self.name_bytes),
            nesting: bounded(self.nesting),
            recursion: bounded(self.recursion),
            inflate_ratio: bounded(self.inflate_ratio),
        }
    }
}

fn bounded(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The value of a name.
pub(super) fn named<T: NamedValue>(option: &str, name: &str) -> Result<T> {
    match T::ALL.iter().find(|value| value.name() == name) {
        Some(value) => Ok(*value),
        None => exec_err!(
            "the plan has the {option} {name:?}; there are: {}",
            T::names()
        ),
    }
}
