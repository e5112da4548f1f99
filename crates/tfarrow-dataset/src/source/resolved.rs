//! The shards that sources name, and the formats that are searched for.

use std::path::PathBuf;

use crate::{
    Error, ErrorKind, Payload, Result, Shard, ShardFormat, SkippedFiles, format::payload::is_named_events,
    sharding::missing::MissingShards,
};

/// The formats that are searched for in folders and globs. A file that is named itself is read whatever its format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatFilter {
    /// In each source TFRecord, or Parquet and Arrow if there is no TFRecord.
    #[default]
    Any,
    /// TFRecord, Parquet and Arrow.
    All,
    /// TFRecord only.
    TfRecord,
    /// Parquet and Arrow.
    Columnar,
    /// All files. Their formats are not determined, so that [`Shard::format`] is without meaning.
    Files,
    /// TFRecord, Parquet and Arrow, and files that cannot be opened, so that `verify` reports them in shard order.
    ToVerify,
}

impl FormatFilter {
    /// Returns whether files of this format are searched for.
    pub(super) fn accepts(self, format: ShardFormat) -> bool {
        match self {
            Self::Any | Self::All | Self::Files | Self::ToVerify => true,
            Self::TfRecord => format == ShardFormat::TfRecord,
            Self::Columnar => format != ShardFormat::TfRecord,
        }
    }

    /// Removes shards that are probably not meant:
    /// - With [`Any`](Self::Any), Parquet and Arrow files if there are TFRecord files, because they may be copies of the
    ///   same data. They are kept if a glob names them, that is if `is_named`.
    /// - With [`Any`](Self::Any) and [`All`](Self::All), TFRecord files if all of them are empty, and there are others.
    pub(super) fn prefer(self, found: &mut Resolved, is_named: bool) {
        let is_tfrecord = |shard: &Shard| shard.format == ShardFormat::TfRecord;
        let has_records = found.shards.iter().any(|shard| is_tfrecord(shard) && shard.size > 0);
        if !matches!(self, Self::Any | Self::All) || found.shards.iter().all(is_tfrecord) {
            return;
        }
        if !has_records {
            let empty = found.shards.extract_if(.., |shard| is_tfrecord(shard));
            found.skipped_files.empty += empty.count() as u64;
        } else if !is_named && self == Self::Any {
            let others = found.shards.extract_if(.., |shard| !is_tfrecord(shard));
            others.for_each(|shard| found.skipped_files.unwanted(shard.path));
        }
    }

    /// The name of the formats in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any | Self::All | Self::ToVerify => "TFRecord, Parquet or Arrow",
            Self::TfRecord => "TFRecord",
            Self::Columnar => "Parquet or Arrow",
            Self::Files => "one that is not empty",
        }
    }
}

/// The shards that sources name.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The shards.
    pub shards: Vec<Shard>,
    /// Files in folders and globs that were skipped.
    pub skipped_files: SkippedFiles,
    /// Missing shards of numbered sets in folders.
    pub missing: Vec<MissingShards>,
}

impl Resolved {
    /// Returns these shards, of which no other files were skipped.
    pub(super) fn of(shards: impl Into<Vec<Shard>>) -> Self {
        Self { shards: shards.into(), ..Self::default() }
    }

    /// Removes the files of TensorBoard, which it writes next to others, if there are other files.
    pub(super) fn remove_events(&mut self) {
        let is_events = |shard: &Shard| {
            shard.format == ShardFormat::TfRecord
                && is_named_events(&shard.path)
                && shard.payload() != Payload::Examples
        };
        if self.shards.iter().all(is_events) {
            return;
        }
        let events = self.shards.extract_if(.., |shard| is_events(shard));
        events.for_each(|shard| self.skipped_files.events(shard.path));
    }

    /// Returns the shards.
    ///
    /// # Errors
    /// There is none. `searched` describes where shards were searched.
    pub(super) fn or_none(self, source: impl Into<PathBuf>, searched: String) -> Result<Self> {
        if self.shards.is_empty() {
            return Err(Error::new(
                source,
                ErrorKind::NoShards { looked: searched, skipped_files: self.skipped_files },
            ));
        }
        Ok(self)
    }
}
