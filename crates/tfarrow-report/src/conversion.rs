//! The summary of a conversion.

use std::{io, path::Path};

use serde_json::{Map, Value, json};
use tfarrow_convert::ConvertReport;
use tfarrow_scan::RowLosses;

use crate::{text::pretty_json, warnings::skipped_json};

/// Returns the summary of a conversion to `dest` as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn conversion_json(dest: &Path, report: &ConvertReport) -> io::Result<String> {
    pretty_json(&json!({
        "dest": dest.to_string_lossy(),
        "shards": report.shards,
        "files": report.files,
        "records": report.records,
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "lossy_changes": counts(&report.lossy_changes),
        "rounded": counts(&report.rounded),
        "skipped": skipped_json(&report.damage),
    }))
}

fn counts(changes: &[(String, u64)]) -> Map<String, Value> {
    let mut counts = Map::new();
    for (change, times) in changes {
        counts.insert(change.clone(), json!(times));
    }
    counts
}

/// Returns the note about floats of text that a conversion rounded, by column, in one line; empty
/// if there are none.
pub fn rounded_text(report: &ConvertReport) -> String {
    let losses = RowLosses {
        changed: report.rounded.iter().cloned().collect(),
        ..RowLosses::default()
    };
    losses.notes().join("; ")
}
