//! The result of `verify`.

use std::io;

use serde_json::{Value, json};
use tfarrow_dataset::{MissingShards, SkippedFiles};
use tfarrow_scan::Verified;

use crate::{
    faults::{FaultReport, shard_names},
    text::{Screen, plural, pretty_json, size},
};

/// Returns the result of `verify` as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn verified_json(
    verified: &Verified,
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
) -> io::Result<String> {
    let files = shard_names(&verified.shards);
    let found = FaultReport {
        files: &files,
        damage: &verified.damage,
    };
    pretty_json(&found.json(verified_fields(verified, skipped_files, missing)))
}

/// Returns the faults that `verify` found, one a line, and a summary.
pub fn verified_text(verified: &Verified, screen: Screen) -> String {
    let found = FaultReport {
        files: &[],
        damage: &verified.damage,
    };
    let faults = found.text(screen);
    let separator = if faults.is_empty() { "" } else { "\n" };
    format!("{faults}{separator}{}", verified_summary(verified))
}

/// Returns the fields of the JSON besides the faults.
pub fn verified_fields(
    verified: &Verified,
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
) -> Value {
    let mut sets = Vec::with_capacity(missing.len());
    for set in missing {
        sets.push(
            json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of}),
        );
    }
    let example = skipped_files
        .example
        .as_ref()
        .map(|path| path.to_string_lossy());
    let without: Vec<_> = verified
        .without_checksums
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    json!({
        "files": verified.shards.len(),
        "without_checksums": without,
        "passed_over": {"empty": skipped_files.empty, "no_known_format": skipped_files.other, "tensorboard": skipped_files.events, "example": example},
        "missing": sets,
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": verified.record_type.map(|record_type| record_type.name()),
    })
}

/// Returns the numbers of files, records and faults in one line.
pub fn verified_summary(verified: &Verified) -> String {
    let files = plural(verified.shards.len() as u64, "file");
    let records = plural(verified.records, "valid record");
    let faults = FaultReport {
        files: &[],
        damage: &verified.damage,
    }
    .summary();
    format!("{files}, {records}, {}: {faults}", size(verified.bytes))
}
