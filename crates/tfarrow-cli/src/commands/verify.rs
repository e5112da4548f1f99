//! `tfarrow verify`: whether files are as they were written. A failure of the machine ends it with status 1: that is no fault.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_convert::VerifiedFile;
use tfarrow_dataset::{
    Contents, MissingShards, Resolved, Shard, Verified, Wanted, check_one_payload, resolve_wanted, verify,
};

use crate::{
    args::Verify,
    commands::{
        faults::{self, Found},
        look::{each, told},
    },
    failure::{self, FOUND},
    output::{escape, plural, size},
    progress::Bar,
};

/// Tells every fault, and in one line how much was looked at.
pub(crate) fn run(args: &Verify) -> Result<ExitCode> {
    let Resolved { mut shards, passed_over, missing } = resolve_wanted(&args.sources, Wanted::ToVerify)?;
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    // Those of TFRecord first, so that faults have their numbers.
    let (mut shards, columnar): (Vec<_>, Vec<_>) =
        shards.into_iter().partition(|shard| shard.contents == Contents::TfRecord);
    let tfrecords = shards.len();
    shards.extend(columnar);
    let (tfrecord, columnar) = shards.split_at(tfrecords);
    if let Err(error) = check_one_payload(tfrecord) {
        failure::say(&format!("warning: {}", escape(&error.to_string())));
    }
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let record_type = args.record_type;
    let read = args.bounds.read(OnError::Skip);
    let mut verified = verify(tfrecord, record_type, jobs, read, args.max_faults, &told(&progress))?;
    let others = each(columnar, |index, shard| {
        let file = tfarrow_convert::verify(shard, tfrecords + index, args.max_faults)?;
        progress.add(shard.size, file.records);
        Ok(file)
    });
    drop(progress);
    let mut unchecked = Vec::new();
    for (shard, file) in columnar.iter().zip(others?) {
        if !file.has_checksums && file.losses.faults.counts().is_empty() {
            unchecked.push(&shard.path);
        }
        add(&mut verified, shard, file, args.max_faults);
    }
    let files = faults::names(&shards);
    let found = Found { files: &files, faults: &verified.faults, counts: &verified.counts };
    let lacks =
        |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let example = passed_over.example.as_ref().map(|path| path.to_string_lossy());
    let summary = json!({
        "files": shards.len(),
        "without_checksums": unchecked.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "passed_over": {"empty": passed_over.empty, "no_known_format": passed_over.other, "tensorboard": passed_over.events, "example": example},
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": (!tfrecord.is_empty()).then(|| verified.record_type.name()),
    });
    failure::unless_closed(found.tell(args.format, summary))?;
    failure::tell_besides(&passed_over, &missing);
    if let Some(first) = unchecked.first() {
        let (files, first) = (plural(unchecked.len() as u64, "file"), escape(&first.to_string_lossy()));
        failure::say(&format!(
            "{files} without checksums (the first: {first}): that all can be read is all that is known"
        ));
    }
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "sound record"));
    failure::say(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.words()));
    Ok(if found.total() == 0 { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Adds what a Parquet or Arrow file was found to be; faults up to so many.
fn add(verified: &mut Verified, shard: &Shard, file: VerifiedFile, most: usize) {
    verified.records = verified.records.saturating_add(file.records);
    verified.bytes += shard.size;
    let faults = file.losses.faults;
    faults.counts().iter().for_each(|(kind, count)| *verified.counts.entry(*kind).or_default() += count);
    let room = most.saturating_sub(verified.faults.len());
    verified.faults.extend(faults.into_kept().take(room));
}
