//! Functions shared by the commands that read a data set.

use std::ops::ControlFlow;

use anyhow::Result;
use serde_json::{Value, json};
use tfarrow_dataset::{DamageReport, FormatFilter, Resolved, Shard, resolve_filtered, tfds_splits};
use tfarrow_scan::{InferOptions, Inferred};
use tfarrow_stats::{Statistics, why_no_features};

use crate::{args::Looking, output::plural, progress::Bar, stderr, text::escape};

/// The shards of the sources, each of which can be read repeatedly, and a progress bar of their
/// bytes. Skipped files are reported.
pub(super) fn shards(sources: &[String]) -> Result<(Vec<Shard>, Bar)> {
    let Resolved {
        mut shards,
        skipped_files,
        missing,
    } = resolve_filtered(sources, FormatFilter::Any)?;
    stderr::skipped_files(&skipped_files, &missing);
    stderr::splits(&tfds_splits(&shards));
    shards.iter_mut().try_for_each(Shard::spool_for_scan)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    Ok((shards, progress))
}

/// An observer of a pass that updates a progress bar.
pub(super) fn observer(progress: &Bar) -> impl Fn(u64, u64) -> ControlFlow<()> + Sync {
    |bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    }
}

/// The number of cores.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Options for a pass by all cores.
pub(super) fn options(looking: &Looking) -> InferOptions {
    InferOptions {
        sample: looking.sample,
        jobs: cores(),
        read: looking.damage.read(),
        ..InferOptions::default()
    }
}

/// The report of skipped records, worded by `text`; `None` if there are none.
pub(super) fn skipped(inferred: &Inferred, text: fn(&DamageReport) -> String) -> Option<String> {
    (!inferred.skipped.is_empty()).then(|| text(&inferred.skipped))
}

/// The numbers of skipped records, ranges and bytes as JSON.
pub(super) fn skipped_json(skipped: &DamageReport) -> Value {
    json!({"records": skipped.records, "ranges": skipped.ranges, "bytes": skipped.bytes})
}

/// The number of records that do not parse as the stated record type, and the first one; `None` if
/// all parse.
pub(super) fn unreadable(inferred: &Inferred) -> Option<String> {
    let records = plural(inferred.summary.unparsable(), "record");
    inferred
        .unreadable()
        .map(|first| format!("{records} cannot be parsed; the first: {first}"))
}

/// The warnings about skipped records, worded by `text`, about records that are taken as raw, and
/// about columns and values that records cannot hold; and whether records are lost: skipped, or raw
/// because of a minority.
pub(crate) fn warnings(
    inferred: &Inferred,
    text: fn(&DamageReport) -> String,
) -> (Vec<String>, bool) {
    let (skipped, why) = (skipped(inferred, text), why_no_features(inferred));
    let has_lost = skipped.is_some() || (inferred.why_raw().is_some() && inferred.has_strays());
    (
        skipped
            .into_iter()
            .chain(why)
            .chain(losses(inferred))
            .collect(),
        has_lost,
    )
}

/// The notes about columns and values of files of other formats that records cannot hold.
pub(super) fn losses(inferred: &Inferred) -> Vec<String> {
    inferred
        .losses
        .notes()
        .iter()
        .map(|note| escape(note))
        .collect()
}

/// Reports skipped and raw records of each data set. Returns whether there are any.
pub(super) fn report_all<'a>(all: impl IntoIterator<Item = Option<&'a Statistics>>) -> bool {
    let report = |statistics: &Statistics| {
        let (warnings, has_lost) = warnings(&statistics.inferred, stderr::skipped_text);
        warnings.iter().for_each(|warning| stderr::print(warning));
        has_lost
    };
    all.into_iter()
        .flatten()
        .fold(false, |any, statistics| any | report(statistics))
}
