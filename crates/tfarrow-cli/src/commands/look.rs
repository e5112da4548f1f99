//! What the commands that look at a whole data set have in common.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use tfarrow_dataset::{InferOptions, Inferred, Resolved, Shard, Wanted, resolve_wanted};
use tfarrow_stats::Statistics;

use crate::{args::Looking, failure, output::plural, progress::Bar};

/// The shards of the sources, each of which can be read as often as one likes, and a bar of their bytes. What folders hold
/// besides is told.
pub(super) fn shards(sources: &[String]) -> Result<(Vec<Shard>, Bar)> {
    let Resolved { mut shards, passed_over, missing } = resolve_wanted(sources, Wanted::Any)?;
    failure::tell_besides(&passed_over, &missing);
    shards.iter_mut().try_for_each(Shard::spool)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    Ok((shards, progress))
}

/// What `work` makes of each shard and its number, in their order. As many are worked at at once as there are cores, and none is begun once
/// one has failed.
pub(super) fn each<T: Send>(shards: &[Shard], work: impl Fn(usize, &Shard) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut all = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(shard) = shards.get(index) else { return all };
            let one = work(index, shard);
            if one.is_err() {
                next.store(shards.len(), Ordering::Relaxed);
            }
            all.push((index, one));
        }
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(shards.len());
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        let joined = others.into_iter().map(|thread| thread.join());
        all.extend(joined.flat_map(|some| some.unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Tells a bar how far a pass is.
pub(super) fn told(progress: &Bar) -> impl Fn(u64, u64) -> ControlFlow<()> + Sync {
    |bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    }
}

/// All cores, for so much of the data set.
pub(super) fn options(looking: &Looking) -> InferOptions {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    InferOptions { sample: looking.sample, jobs, read: looking.damage.read(), ..InferOptions::default() }
}

/// Says what was passed over, and whether there is any.
pub(super) fn tell_skipped(inferred: &Inferred) -> bool {
    let skipped = Some(&inferred.skipped).filter(|skipped| skipped.first.is_some());
    skipped.inspect(|skipped| failure::say(&skipped.to_string())).is_some()
}

/// Says why records are taken as they are, where they are; and whether that is for the sake of a few.
pub(super) fn tell_strays(inferred: &Inferred) -> bool {
    let why_raw = inferred.why_raw();
    why_raw.iter().for_each(|why| failure::say(why));
    why_raw.is_some() && inferred.has_strays()
}

/// Says which records do not parse, where the user says that they are messages; and whether there are any.
pub(super) fn tell_unreadable(inferred: &Inferred) -> bool {
    let records = plural(inferred.summary.strays(), "record");
    let first = inferred.unreadable();
    first.inspect(|first| failure::say(&format!("of {records} nothing is known; the first: {first}"))).is_some()
}

/// Says so of each data set, and whether anything was.
pub(super) fn tell_all<'a>(all: impl IntoIterator<Item = Option<&'a Statistics>>) -> bool {
    let tell = |statistics: &Statistics| tell_skipped(&statistics.inferred) | tell_strays(&statistics.inferred);
    all.into_iter().flatten().fold(false, |any, statistics| any | tell(statistics))
}
