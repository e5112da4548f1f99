//! Functions shared by the commands that read a data set.

use std::ops::ControlFlow;

use anyhow::Result;
use tfarrow_dataset::{FormatFilter, Resolved, Shard, internals::tfds_splits, resolve_filtered};
use tfarrow_report::record_warnings;
use tfarrow_scan::InferOptions;
use tfarrow_stats::Statistics;

use crate::{args::Looking, progress::Bar, stderr};

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
        threads: cores(),
        read: looking.damage.read(),
        ..InferOptions::default()
    }
}

/// Reports skipped and raw records of each data set. Returns whether there are any.
pub(super) fn report_all<'a>(all: impl IntoIterator<Item = Option<&'a Statistics>>) -> bool {
    let mut has_lost = false;
    for statistics in all.into_iter().flatten() {
        let found = record_warnings(&statistics.inferred, stderr::skipped_text);
        stderr::print_all(&found.texts);
        has_lost |= found.has_lost;
    }
    has_lost
}
