//! `tfarrow count`: how many records there are.

use std::{
    fs::File,
    io::BufReader,
    process::ExitCode,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use arrow_ipc::reader::FileReader;
use datafusion::parquet::file::reader::{FileReader as _, SerializedFileReader};
use tfarrow_dataset::{Contents, ReadOptions, Shard, ShardReader, resolve};

use crate::{args::Count, output, progress::Progress};

/// Prints the number of records.
pub(crate) fn run(args: &Count) -> Result<ExitCode> {
    let shards = resolve(&args.sources)?;
    let counts = count_all(&shards)?;
    if args.per_file {
        let line = |(shard, count): (&Shard, &u64)| format!("{count}\t{}", output::escape(&shard.path.to_string_lossy()));
        let lines: Vec<_> = shards.iter().zip(&counts).map(line).collect();
        output::line(&lines.join("\n"))?;
    } else {
        output::line(&counts.iter().sum::<u64>().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The records of each shard. As many shards are counted at once as there are cores.
fn count_all(shards: &[Shard]) -> Result<Vec<u64>> {
    let progress = Progress::new(shards.iter().map(|shard| shard.size).sum());
    let (next, bytes, records) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let told = |more_bytes: u64, more_records: u64| {
        let bytes = bytes.fetch_add(more_bytes, Ordering::Relaxed) + more_bytes;
        let records = records.fetch_add(more_records, Ordering::Relaxed) + more_records;
        progress.set(bytes, records);
    };
    let work = || {
        let mut counts = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(shard) = shards.get(index) else { return counts };
            let count = count(shard, &told);
            if count.is_err() {
                next.store(shards.len(), Ordering::Relaxed);
            }
            counts.push((index, count));
        }
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(shards.len());
    let mut counts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(work)).collect();
        let mut counts = work();
        counts.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        counts
    });
    counts.sort_by_key(|(index, _)| *index);
    counts.into_iter().map(|(_, count)| count).collect()
}

fn count(shard: &Shard, told: &impl Fn(u64, u64)) -> Result<u64> {
    match shard.contents {
        Contents::TfRecord => count_records(shard, told),
        Contents::Parquet => count_parquet(shard).with_context(|| shard.path.display().to_string()),
        Contents::Arrow => count_arrow(shard).with_context(|| shard.path.display().to_string()),
    }
}

fn count_records(shard: &Shard, told: &impl Fn(u64, u64)) -> Result<u64> {
    let mut reader = ShardReader::open(shard, &ReadOptions::default())?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(records) = reader.next()? {
        let read = reader.bytes_read();
        told(read - bytes, records.len() as u64);
        bytes = read;
        count += records.len() as u64;
    }
    Ok(count)
}

fn count_parquet(shard: &Shard) -> Result<u64> {
    let reader = SerializedFileReader::new(File::open(&shard.path)?)?;
    Ok(u64::try_from(reader.metadata().file_metadata().num_rows())?)
}

fn count_arrow(shard: &Shard) -> Result<u64> {
    let file = BufReader::new(File::open(&shard.path)?);
    let mut reader = FileReader::try_new(file, Some(Vec::new()))?;
    reader.try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64))
}
