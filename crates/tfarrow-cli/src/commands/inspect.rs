//! Functions shared by the commands that read a data set.

use std::ops::ControlFlow;

use anyhow::Result;
use tfarrow_dataset::{
    DamageReport, FormatFilter, InferOptions, Inferred, Resolved, Shard, TaskQueue, on_threads, resolve_filtered,
};
use tfarrow_stats::Statistics;

use crate::{args::Looking, output::plural, progress::Bar, stderr};

/// The shards of the sources, each of which can be read repeatedly, and a progress bar of their bytes. Skipped files are
/// reported.
pub(super) fn shards(sources: &[String]) -> Result<(Vec<Shard>, Bar)> {
    let Resolved { mut shards, skipped_files, missing } = resolve_filtered(sources, FormatFilter::Any)?;
    stderr::skipped_files(&skipped_files, &missing);
    shards.iter_mut().try_for_each(Shard::spool)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    Ok((shards, progress))
}

/// The results of `work` for each shard and its index, in order. There is a thread for each core. After an error no further
/// shard is begun.
pub(super) fn each<T: Send>(shards: &[Shard], work: impl Fn(usize, &Shard) -> Result<T> + Sync) -> Result<Vec<T>> {
    let queue = TaskQueue::new(shards);
    let work = || {
        let one = |(index, shard)| {
            let one = work(index, shard);
            if one.is_err() {
                queue.clear();
            }
            (index, one)
        };
        std::iter::from_fn(|| queue.take()).map(one).collect::<Vec<_>>()
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(shards.len());
    let mut all: Vec<_> = on_threads(jobs, work).into_iter().flatten().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, one)| one).collect()
}

/// An observer of a pass that updates a progress bar.
pub(super) fn observer(progress: &Bar) -> impl Fn(u64, u64) -> ControlFlow<()> + Sync {
    |bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    }
}

/// Options for a pass by all cores.
pub(super) fn options(looking: &Looking) -> InferOptions {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    InferOptions { sample: looking.sample, jobs, read: looking.damage.read(), ..InferOptions::default() }
}

/// The report of skipped records, worded by `text`; `None` if there are none.
pub(super) fn skipped(inferred: &Inferred, text: fn(&DamageReport) -> String) -> Option<String> {
    (!inferred.skipped.is_empty()).then(|| text(&inferred.skipped))
}

/// The number of records that do not parse as the stated record type, and the first one; `None` if all parse.
pub(super) fn unreadable(inferred: &Inferred) -> Option<String> {
    let records = plural(inferred.summary.unparsable(), "record");
    inferred.unreadable().map(|first| format!("{records} cannot be parsed; the first: {first}"))
}

/// The warnings about skipped records, worded by `text`, and about records that are taken as raw; and whether records are
/// lost: skipped, or raw because of a minority.
pub(crate) fn warnings(inferred: &Inferred, text: fn(&DamageReport) -> String) -> (Vec<String>, bool) {
    let (skipped, why_raw) = (skipped(inferred, text), inferred.why_raw());
    let has_lost = skipped.is_some() || (why_raw.is_some() && inferred.has_strays());
    (skipped.into_iter().chain(why_raw).collect(), has_lost)
}

/// Reports skipped and raw records of each data set. Returns whether there are any.
pub(super) fn report_all<'a>(all: impl IntoIterator<Item = Option<&'a Statistics>>) -> bool {
    let report = |statistics: &Statistics| {
        let (warnings, has_lost) = warnings(&statistics.inferred, stderr::skipped_text);
        warnings.iter().for_each(|warning| stderr::print(warning));
        has_lost
    };
    all.into_iter().flatten().fold(false, |any, statistics| any | report(statistics))
}
