//! Functions shared by the commands that read a data set.

use std::ops::ControlFlow;

use anyhow::Result;
use tfarrow_dataset::{FormatFilter, InferOptions, Inferred, Resolved, Shard, TaskQueue, on_threads, resolve_filtered};
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

/// Reports skipped records. Returns whether there are any.
pub(super) fn report_skipped(inferred: &Inferred) -> bool {
    let skipped = Some(&inferred.skipped).filter(|skipped| !skipped.is_empty());
    skipped.inspect(|skipped| stderr::skipped_records(skipped)).is_some()
}

/// Reports why records are treated as raw. Returns whether the reason is a minority of the records.
pub(super) fn report_strays(inferred: &Inferred) -> bool {
    let why_raw = inferred.why_raw();
    why_raw.iter().for_each(|why| stderr::print(why));
    why_raw.is_some() && inferred.has_strays()
}

/// Reports records that do not parse as the record type of the command line. Returns whether there are any.
pub(super) fn report_unreadable(inferred: &Inferred) -> bool {
    let records = plural(inferred.summary.unparsable(), "record");
    let first = inferred.unreadable();
    first.inspect(|first| stderr::print(&format!("{records} cannot be parsed; the first: {first}"))).is_some()
}

/// Reports skipped and raw records of each data set. Returns whether there are any.
pub(super) fn report_all<'a>(all: impl IntoIterator<Item = Option<&'a Statistics>>) -> bool {
    let report = |statistics: &Statistics| report_skipped(&statistics.inferred) | report_strays(&statistics.inferred);
    all.into_iter().flatten().fold(false, |any, statistics| any | report(statistics))
}
