//! `tfarrow verify`: whether files are as they were written.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_convert::VerifiedFile;
use tfarrow_dataset::{Contents, Fault, MissingShards, Resolved, Shard, Verified, Wanted, resolve_wanted, verify};

use crate::{
    args::{RecordTypeArg, Verify},
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
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let record_type = args.record_type.and_then(RecordTypeArg::record_type);
    let read = args.bounds.read(OnError::Skip);
    let mut verified = verify(tfrecord, record_type, jobs, read, args.max_faults, &told(&progress))?;
    let others = each(columnar, |shard| {
        let file = tfarrow_convert::verify(shard);
        progress.add(shard.size, file.records);
        Ok(file)
    });
    drop(progress);
    let others: Vec<_> = columnar.iter().zip(others?).collect();
    let unchecked: Vec<_> = others
        .iter()
        .filter(|(_, file)| !file.has_checksums && file.faults.is_empty())
        .map(|(shard, _)| *shard)
        .collect();
    for (number, (shard, file)) in (tfrecords..).zip(others) {
        add(&mut verified, number, shard, file, args.max_faults);
    }
    let files = faults::names(&shards);
    let found = Found { files: &files, faults: &verified.faults, counts: &verified.counts };
    let lacks =
        |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let summary = json!({
        "files": shards.len(),
        "without_checksums": unchecked.iter().map(|shard| shard.path.to_string_lossy()).collect::<Vec<_>>(),
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": (!tfrecord.is_empty()).then(|| verified.record_type.name()),
    });
    failure::unless_closed(found.tell(args.format, summary))?;
    failure::tell_besides(&passed_over, &missing);
    if let Some(first) = unchecked.first() {
        let (files, first) = (plural(unchecked.len() as u64, "file"), escape(&first.path.to_string_lossy()));
        failure::say(&format!(
            "{files} without checksums (the first: {first}): that all can be read is all that is known"
        ));
    }
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "sound record"));
    failure::say(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.words()));
    Ok(if found.total() == 0 { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Adds what a Parquet or Arrow file, the shard of this number, was found to be; faults up to so many.
fn add(verified: &mut Verified, number: usize, shard: &Shard, file: VerifiedFile, most: usize) {
    verified.records += file.records;
    verified.bytes += shard.size;
    for error in file.faults {
        let fault = Fault::of(number, error);
        *verified.counts.entry(fault.kind()).or_default() += 1;
        if verified.faults.len() < most {
            verified.faults.push(fault);
        }
    }
}
