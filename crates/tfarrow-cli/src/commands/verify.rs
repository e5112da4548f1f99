//! `tfarrow verify`: checks the integrity of files. An I/O error is not a fault, and ends the command with status 1.

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_convert::{VerifiedDataSet, verify_data_set};
use tfarrow_dataset::{FormatFilter, MissingShards, Resolved, Shard, resolve_filtered};

use crate::{
    args::Verify,
    commands::{
        faults::{self, FaultReport},
        inspect::{cores, observer},
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
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let (record_type, read) = (args.record_type, args.bounds.read(OnError::Skip));
    let verified = verify_data_set(shards, record_type, cores(), read, args.max_faults, &observer(&progress));
    drop(progress);
    let VerifiedDataSet { shards, found: verified, has_tfrecord, without_checksums, mixed_records } = verified?;
    if let Some(error) = mixed_records {
        stderr::print(&escape(&format!("warning: {error}{}", reading_remedy(&error))));
    }
    let files = faults::names(&shards);
    let found = FaultReport { files: &files, damage: &verified.damage };
    let lacks =
        |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let example = skipped_files.example.as_ref().map(|path| path.to_string_lossy());
    let summary = json!({
        "files": shards.len(),
        "without_checksums": without_checksums.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "passed_over": {"empty": skipped_files.empty, "no_known_format": skipped_files.other, "tensorboard": skipped_files.events, "example": example},
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": has_tfrecord.then(|| verified.record_type.name()),
    });
    unless_closed(found.print(args.format, summary))?;
    stderr::skipped_files(&skipped_files, &missing);
    if let Some(first) = without_checksums.first() {
        let (files, first) = (plural(without_checksums.len() as u64, "file"), escape(&first.to_string_lossy()));
        stderr::print(&format!(
            "{files} without checksums (the first: {first}): verified only that the content can be read"
        ));
    }
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "valid record"));
    stderr::print(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.summary()));
    Ok(if found.total() == 0 { SUCCESS } else { FOUND })
}
