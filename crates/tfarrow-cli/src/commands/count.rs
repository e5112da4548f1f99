//! `tfarrow count`: the number of records.

use anyhow::Result;
use tfarrow_codec::OnError;
use tfarrow_convert::columnar;
use tfarrow_dataset::{
    DamageReport, FormatFilter, ReadOptions, Resolved, Segment, Shard, ShardFormat, ShardReader, resolve_filtered,
};

use crate::{
    args::Count,
    commands::inspect::each,
    error::{FOUND, SUCCESS},
    output,
    progress::Bar,
    stderr, text,
};

/// Prints the number of records. Skipped files and records are reported.
pub(crate) fn run(args: &Count) -> Result<u8> {
    let Resolved { mut shards, skipped_files, missing } = resolve_filtered(&args.sources, FormatFilter::Any)?;
    stderr::skipped_files(&skipped_files, &missing);
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    let (progress, read) = (Bar::new(shards.iter().map(|shard| shard.size).sum()), args.damage.read());
    let counts = each(&shards, |_, shard| count(shard, &read).inspect(|(count, _)| progress.add(shard.size, *count)));
    drop(progress);
    let (counts, skipped): (Vec<_>, Vec<_>) = counts?.into_iter().unzip();
    if args.per_file {
        let line = |(shard, count): (&Shard, &u64)| format!("{count}\t{}", text::escape(&shard.path.to_string_lossy()));
        let lines: Vec<_> = shards.iter().zip(&counts).map(line).collect();
        output::line(&lines.join("\n"))?;
    } else {
        output::line(&counts.iter().sum::<u64>().to_string())?;
    }
    let mut all = DamageReport::default();
    skipped.into_iter().enumerate().for_each(|(shard, skipped)| all.merge(skipped.of_shard(shard)));
    if all.is_empty() {
        return Ok(SUCCESS);
    }
    stderr::skipped_records(&all);
    Ok(FOUND)
}

/// The number of records of a shard, and the skipped records.
fn count(shard: &Shard, read: &ReadOptions) -> Result<(u64, DamageReport)> {
    match (shard.format, read.on_error) {
        (ShardFormat::TfRecord, OnError::Skip) => count_sound(shard, read),
        (ShardFormat::TfRecord, OnError::Fail) => Ok((tfarrow_dataset::count(shard, read)?, DamageReport::default())),
        (ShardFormat::Parquet | ShardFormat::Arrow, _) => Ok((columnar::count(shard)?, DamageReport::default())),
    }
}

/// Counts the records of valid frames.
fn count_sound(shard: &Shard, read: &ReadOptions) -> Result<(u64, DamageReport)> {
    let mut reader = ShardReader::open(shard, read)?;
    let (mut records, mut skipped) = (0, DamageReport::default());
    while let Some(segment) = reader.segment()? {
        match segment {
            Segment::Records(some) => records += some.len() as u64,
            Segment::Lost(lost) => skipped.add_lost(0, lost),
        }
    }
    Ok((records, skipped))
}
