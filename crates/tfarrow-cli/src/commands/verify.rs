//! `tfarrow verify`: checks the integrity of files. An I/O error is not a fault, and ends the command with status 1.

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_convert::VerifiedFile;
use tfarrow_dataset::{
    FormatFilter, MissingShards, Resolved, Shard, ShardFormat, Verified, check_one_payload, resolve_filtered, verify,
};

use crate::{
    args::Verify,
    commands::{
        faults::{self, FaultReport},
        inspect::{each, observer},
    },
    error::{FOUND, SUCCESS, reading_remedy, unless_closed},
    output::{plural, size},
    progress::Bar,
    stderr,
    text::escape,
};

/// Prints all faults, and a summary.
pub(crate) fn run(args: &Verify) -> Result<u8> {
    let Resolved { mut shards, skipped_files, missing } = resolve_filtered(&args.sources, FormatFilter::ToVerify)?;
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    // TFRecord files come first, so that their indices are those of the faults.
    let (mut shards, columnar): (Vec<_>, Vec<_>) =
        shards.into_iter().partition(|shard| shard.format == ShardFormat::TfRecord);
    let tfrecords = shards.len();
    shards.extend(columnar);
    let (tfrecord, columnar) = shards.split_at(tfrecords);
    if let Err(error) = check_one_payload(tfrecord) {
        stderr::print(&escape(&format!("warning: {error}{}", reading_remedy(&error))));
    }
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let record_type = args.record_type;
    let read = args.bounds.read(OnError::Skip);
    let mut verified = verify(tfrecord, record_type, jobs, read, args.max_faults, &observer(&progress))?;
    let others = each(columnar, |index, shard| {
        let file = tfarrow_convert::verify(shard, tfrecords + index, args.max_faults)?;
        progress.add(shard.size, file.records);
        Ok(file)
    });
    drop(progress);
    let mut unchecked = Vec::new();
    for (shard, file) in columnar.iter().zip(others?) {
        if !file.has_checksums && file.damage.is_empty() {
            unchecked.push(&shard.path);
        }
        add(&mut verified, shard, file);
    }
    let files = faults::names(&shards);
    let found = FaultReport { files: &files, damage: &verified.damage };
    let lacks =
        |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let example = skipped_files.example.as_ref().map(|path| path.to_string_lossy());
    let summary = json!({
        "files": shards.len(),
        "without_checksums": unchecked.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "passed_over": {"empty": skipped_files.empty, "no_known_format": skipped_files.other, "tensorboard": skipped_files.events, "example": example},
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": (!tfrecord.is_empty()).then(|| verified.record_type.name()),
    });
    unless_closed(found.print(args.format, summary))?;
    stderr::skipped_files(&skipped_files, &missing);
    if let Some(first) = unchecked.first() {
        let (files, first) = (plural(unchecked.len() as u64, "file"), escape(&first.to_string_lossy()));
        stderr::print(&format!(
            "{files} without checksums (the first: {first}): verified only that the content can be read"
        ));
    }
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "valid record"));
    stderr::print(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.summary()));
    Ok(if found.total() == 0 { SUCCESS } else { FOUND })
}

/// Adds the result of a Parquet or Arrow file.
fn add(verified: &mut Verified, shard: &Shard, file: VerifiedFile) {
    verified.records = verified.records.saturating_add(file.records);
    verified.bytes += shard.size;
    verified.damage.merge(file.damage);
}
