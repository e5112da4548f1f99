//! Warnings about a data set: files that are not read, and records that are lost.

use serde_json::{Value, json};
use tfarrow_dataset::{
    DamageReport, MissingShards, SkippedFiles,
    internals::{TfdsSplit, splits_note},
};
use tfarrow_scan::Inferred;
use tfarrow_stats::why_no_features;

use crate::text::{escape, plural};

/// The text of a report of skipped records. A front end adds the option that reads them.
pub type SkippedText = fn(&DamageReport) -> String;

/// Warnings about the records of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// The warnings, each in one line.
    pub texts: Vec<String>,
    /// Whether records or features are lost, so that a result is incomplete.
    pub has_lost: bool,
}

/// Returns the report of skipped records, without a remedy.
pub fn skipped_text(skipped: &DamageReport) -> String {
    escape(&skipped.to_string())
}

/// Returns the warnings about records that were skipped, about records that are taken as raw, and
/// about columns and values that records cannot hold. Records are lost if they are skipped, or raw
/// because of a minority.
pub fn record_warnings(inferred: &Inferred, skipped_text: SkippedText) -> Warnings {
    let skipped = skipped(inferred, skipped_text);
    let has_lost = skipped.is_some() || (inferred.why_raw().is_some() && inferred.has_strays());
    let mut texts: Vec<_> = skipped.into_iter().collect();
    texts.extend(why_no_features(inferred));
    texts.extend(losses(inferred));
    Warnings { texts, has_lost }
}

/// The report of skipped records; `None` if there are none.
pub(crate) fn skipped(inferred: &Inferred, skipped_text: SkippedText) -> Option<String> {
    (!inferred.skipped.is_empty()).then(|| skipped_text(&inferred.skipped))
}

/// Returns the numbers of skipped records, ranges and bytes as JSON.
pub fn skipped_json(skipped: &DamageReport) -> Value {
    json!({"records": skipped.records, "ranges": skipped.ranges, "bytes": skipped.bytes})
}

/// The number of records that do not parse as the stated record type, and the first one; `None` if
/// all parse.
pub(crate) fn unreadable(inferred: &Inferred) -> Option<String> {
    let records = plural(inferred.summary.unparsable(), "record");
    inferred
        .unreadable()
        .map(|first| format!("{records} cannot be parsed; the first: {first}"))
}

/// The notes about columns and values of files of other formats that records cannot hold.
pub(crate) fn losses(inferred: &Inferred) -> Vec<String> {
    inferred
        .losses
        .notes()
        .iter()
        .map(|note| escape(note))
        .collect()
}

/// Returns the notes about files in folders that were skipped and may contain data, about missing
/// shards, and about several splits of TFDS.
pub fn source_notes(
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
    splits: &[TfdsSplit],
) -> Vec<String> {
    let skipped = skipped_files
        .may_matter()
        .then(|| skipped_files.to_string());
    missing
        .iter()
        .map(ToString::to_string)
        .chain(skipped)
        .chain(splits_note(splits))
        .collect()
}
