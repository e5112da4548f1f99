//! The shards that sources name, and the formats that are searched for.

use std::path::{Path, PathBuf};

use crate::{
    Error, ErrorKind, Result, Shard, ShardFormat, SkippedFiles,
    file_names::{is_named_events, is_sidecar},
    format::payload::Payload,
    sharding::missing::MissingShards,
};

/// The formats that are searched for in folders and globs. A file that is named itself is read
/// whatever its format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatFilter {
    /// In each source TFRecord, or Parquet and Arrow if there is no TFRecord, or CSV and JSON if
    /// there is none of these.
    #[default]
    Any,
    /// TFRecord, Parquet and Arrow.
    All,
    /// TFRecord, Parquet and Arrow, or CSV and JSON if there is none of these.
    Convertible,
    /// TFRecord only.
    TfRecord,
    /// Parquet and Arrow.
    Columnar,
    /// All files. Their formats are not determined, so that [`Shard::format`] is without meaning.
    Files,
    /// As [`Convertible`](Self::Convertible), and files that cannot be opened, so that `verify`
    /// reports them in shard order.
    ToVerify,
}

impl FormatFilter {
    /// Returns whether files of this format are searched for.
    pub(super) fn accepts(self, format: ShardFormat) -> bool {
        match self {
            Self::Any | Self::Convertible | Self::Files | Self::ToVerify => true,
            Self::All => !format.is_text(),
            Self::TfRecord => format == ShardFormat::TfRecord,
            Self::Columnar => matches!(format, ShardFormat::Parquet | ShardFormat::Arrow),
        }
    }

    /// Returns the format of a text file in a folder or glob; `None` if text is not searched for.
    /// JSON files are often next to shards, and no shards, so that they are read only if a glob
    /// names them.
    pub(super) fn text(self, path: &Path, by_glob: bool) -> Option<ShardFormat> {
        let format = ShardFormat::text_of_name(path).filter(|format| self.accepts(*format))?;
        (by_glob || !is_sidecar(path)).then_some(format)
    }

    /// Removes shards that are probably not meant:
    /// - With [`Any`](Self::Any), Parquet and Arrow files if there are TFRecord files, because they
    ///   may be copies of the same data. They are kept if a glob names them, that is if `is_named`.
    /// - With [`Any`](Self::Any), [`All`](Self::All) and [`Convertible`](Self::Convertible),
    ///   TFRecord files if all of them are empty, and there are others.
    /// - Text, if there are other files.
    pub(super) fn prefer(self, found: &mut Resolved, is_named: bool) {
        if found
            .shards
            .iter()
            .any(|shard| !shard.format.is_text() && shard.size > 0)
        {
            for shard in found.shards.extract_if(.., |shard| shard.format.is_text()) {
                match is_sidecar(&shard.path) {
                    true => found.skipped_files.by_name += 1,
                    false => found.skipped_files.unwanted(shard.path),
                }
            }
        }
        let has_records = found
            .shards
            .iter()
            .any(|shard| is_tfrecord(shard) && shard.size > 0);
        if !matches!(self, Self::Any | Self::All | Self::Convertible)
            || found.shards.iter().all(is_tfrecord)
        {
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
            Self::Any | Self::Convertible | Self::ToVerify => {
                "TFRecord, Parquet, Arrow, CSV or JSON"
            }
            Self::All => "TFRecord, Parquet or Arrow",
            Self::TfRecord => "TFRecord",
            Self::Columnar => "Parquet or Arrow",
            Self::Files => "one that is not empty",
        }
    }
}

/// Returns whether a shard is TFRecord by its format.
fn is_tfrecord(shard: &Shard) -> bool {
    shard.format == ShardFormat::TfRecord
}

/// Removes files of one folder or glob that are no sources.
pub type Exclude<'a> = &'a dyn Fn(&mut Resolved);

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
        Self {
            shards: shards.into(),
            ..Self::default()
        }
    }

    /// Removes the files of TensorBoard, which it writes next to others, if there are other files.
    pub(super) fn remove_events(&mut self) {
        if self
            .shards
            .iter()
            .all(|shard| is_of_tensorboard(shard) || shard.payload() == Payload::Events)
        {
            return;
        }
        // Events in a file with another name are data that does not belong to the others.
        let events = self.shards.extract_if(.., |shard| is_of_tensorboard(shard));
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
                ErrorKind::NoShards {
                    looked: searched,
                    skipped_files: self.skipped_files,
                },
            ));
        }
        Ok(self)
    }
}

/// Returns whether a shard is a file of TensorBoard by its name, and its first bytes show no
/// Examples.
fn is_of_tensorboard(shard: &Shard) -> bool {
    is_tfrecord(shard) && is_named_events(&shard.path) && shard.payload() != Payload::Examples
}
