//! `tfarrow count`: how many records there are.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use tfarrow_codec::OnError;
use tfarrow_convert::columnar;
use tfarrow_dataset::{Contents, ReadOptions, Resolved, Shard, Wanted, resolve_wanted};

use crate::{args::Count, failure, output, progress::Bar};

/// Prints the number of records. What folders hold besides is told.
pub(crate) fn run(args: &Count) -> Result<ExitCode> {
    let Resolved { mut shards, passed_over, missing } = resolve_wanted(&args.sources, Wanted::Any)?;
    failure::tell_besides(&passed_over, &missing);
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    let counts = count_all(&shards, &args.bounds.read(OnError::Fail))?;
    if args.per_file {
        let line =
            |(shard, count): (&Shard, &u64)| format!("{count}\t{}", output::escape(&shard.path.to_string_lossy()));
        let lines: Vec<_> = shards.iter().zip(&counts).map(line).collect();
        output::line(&lines.join("\n"))?;
    } else {
        output::line(&counts.iter().sum::<u64>().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The records of each shard. As many shards are counted at once as there are cores.
fn count_all(shards: &[Shard], read: &ReadOptions) -> Result<Vec<u64>> {
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut counts = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(shard) = shards.get(index) else { return counts };
            let count = count(shard, read);
            match &count {
                Ok(count) => progress.add(shard.size, *count),
                Err(_) => next.store(shards.len(), Ordering::Relaxed),
            }
            counts.push((index, count));
        }
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(shards.len());
    let mut counts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(work)).collect();
        let mut counts = work();
        let joined = others.into_iter().map(|thread| thread.join());
        counts.extend(joined.flat_map(|counts| counts.unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        counts
    });
    counts.sort_by_key(|(index, _)| *index);
    counts.into_iter().map(|(_, count)| count).collect()
}

fn count(shard: &Shard, read: &ReadOptions) -> Result<u64> {
    match shard.contents {
        Contents::TfRecord => Ok(tfarrow_dataset::count(shard, read)?),
        Contents::Parquet | Contents::Arrow => Ok(columnar::count(shard)?),
    }
}
