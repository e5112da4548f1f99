//! The result of a conversion.

use std::path::PathBuf;

use tfarrow_dataset::{DamageReport, MissingShards, SkippedFiles, internals::TfdsSplit};

/// The result of a conversion.
#[derive(Debug)]
pub struct ConvertReport {
    /// Shards read.
    pub shards: u64,
    /// Files written.
    pub files: u64,
    /// Records converted.
    pub records: u64,
    /// Bytes of the shards, as stored.
    pub bytes_in: u64,
    /// Bytes of the files, or of the stream.
    pub bytes_out: u64,
    /// Values and features that were changed or left out, and how often.
    pub lossy_changes: Vec<(String, u64)>,
    /// Floats of text that were rounded to those of 32 bits, and how often. With
    /// [`ConvertOptions::lossy`](crate::ConvertOptions::lossy), they are among the lossy changes.
    pub rounded: Vec<(String, u64)>,
    /// Why the records were converted as raw records, if the record type was inferred.
    pub why_raw: Option<String>,
    /// Whether that is because a few records do not parse, while most of them have features.
    pub has_strays: bool,
    /// The path of each shard, indexed by the shard number of a fault.
    pub sources: Vec<String>,
    /// Corrupt records and bytes that were skipped.
    pub damage: DamageReport,
    /// Other files in the folders and globs of the sources.
    pub skipped_files: SkippedFiles,
    /// Shards that are missing from numbered sets in folders.
    pub missing: Vec<MissingShards>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
    /// Outputs of an interrupted run whose sources are not among those of this run. They are kept.
    pub kept_outputs: Vec<PathBuf>,
    /// Folders above the outputs that were created, each after its parent, except for a destination
    /// that is a folder.
    pub new_folders: Vec<PathBuf>,
}
