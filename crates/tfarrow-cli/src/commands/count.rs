//! `tfarrow count`: how many records there are.

use std::process::ExitCode;

use anyhow::Result;
use tfarrow_codec::OnError;
use tfarrow_convert::columnar;
use tfarrow_dataset::{Contents, ReadOptions, Resolved, Shard, Wanted, resolve_wanted};

use crate::{args::Count, commands::look::each, failure, output, progress::Bar};

/// Prints the number of records. What folders hold besides is told.
pub(crate) fn run(args: &Count) -> Result<ExitCode> {
    let Resolved { mut shards, passed_over, missing } = resolve_wanted(&args.sources, Wanted::Any)?;
    failure::tell_besides(&passed_over, &missing);
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    let (progress, read) = (Bar::new(shards.iter().map(|shard| shard.size).sum()), args.bounds.read(OnError::Fail));
    let counts = each(&shards, |_, shard| count(shard, &read).inspect(|count| progress.add(shard.size, *count)));
    drop(progress);
    let counts = counts?;
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

fn count(shard: &Shard, read: &ReadOptions) -> Result<u64> {
    match shard.contents {
        Contents::TfRecord => Ok(tfarrow_dataset::count(shard, read)?),
        Contents::Parquet | Contents::Arrow => Ok(columnar::count(shard)?),
    }
}
