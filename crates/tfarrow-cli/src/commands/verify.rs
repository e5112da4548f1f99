//! `tfarrow verify`: checks the integrity of files. An I/O error is not a fault, and ends the
//! command with status 1.

use anyhow::Result;
use serde_json::{Value, json};
use tfarrow_codec::OnError;
use tfarrow_dataset::{
    FormatFilter, MissingShards, Resolved, Shard, SkippedFiles, resolve_filtered,
};
use tfarrow_scan::{Verified, VerifyOptions, verify};

use crate::{
    args::Verify,
    commands::{
        faults::{self, FaultReport},
        inspect::{cores, observer},
        partial,
    },
    error::{FOUND, SUCCESS, reading_remedy, unless_closed},
    output::{plural, size},
    progress::Bar,
    stderr,
    text::escape,
};

/// Prints all faults, and a summary.
pub(crate) fn run(args: &Verify) -> Result<u8> {
    let Resolved {
        shards,
        skipped_files,
        missing,
    } = resolve_filtered(&args.sources, FormatFilter::ToVerify)?;
    let mut shards = partial::share(shards, args.share.part)?;
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let options = VerifyOptions {
        record_type: args.record_type,
        threads: cores(),
        read: args.bounds.read(OnError::Skip),
        max_faults: args.max_faults,
    };
    let verified = verify(shards, &options, &observer(&progress));
    drop(progress);
    let verified = verified?;
    if let Some(error) = &verified.mixed_records {
        stderr::print(&escape(&format!(
            "warning: {error}{}",
            reading_remedy(error)
        )));
    }
    let files = faults::names(&verified.shards);
    let found = FaultReport {
        files: &files,
        damage: &verified.damage,
    };
    unless_closed(found.print(
        args.format.get(),
        fields(&verified, &skipped_files, &missing),
    ))?;
    stderr::skipped_files(&skipped_files, &missing);
    stderr::splits(&verified.splits);
    if let Some(first) = verified.without_checksums.first() {
        let files = plural(verified.without_checksums.len() as u64, "file");
        let first = escape(&first.to_string_lossy());
        stderr::print(&format!(
            "{files} without checksums (the first: {first}): verified only that the content can be read"
        ));
    }
    stderr::print(&summary(&verified));
    Ok(if found.total() == 0 { SUCCESS } else { FOUND })
}

/// The faults as JSON.
pub(crate) fn json(
    verified: &Verified,
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
) -> Value {
    let files = faults::names(&verified.shards);
    let found = FaultReport {
        files: &files,
        damage: &verified.damage,
    };
    found.json(fields(verified, skipped_files, missing))
}

/// The fields of the JSON besides the faults.
fn fields(verified: &Verified, skipped_files: &SkippedFiles, missing: &[MissingShards]) -> Value {
    let lacks = |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let example = skipped_files
        .example
        .as_ref()
        .map(|path| path.to_string_lossy());
    let without: Vec<_> = verified
        .without_checksums
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    json!({
        "files": verified.shards.len(),
        "without_checksums": without,
        "passed_over": {"empty": skipped_files.empty, "no_known_format": skipped_files.other, "tensorboard": skipped_files.events, "example": example},
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": verified.record_type.map(|record_type| record_type.name()),
    })
}

/// The numbers of files, records and faults in one line.
pub(crate) fn summary(verified: &Verified) -> String {
    let files = plural(verified.shards.len() as u64, "file");
    let records = plural(verified.records, "valid record");
    let faults = FaultReport {
        files: &[],
        damage: &verified.damage,
    }
    .summary();
    format!("{files}, {records}, {}: {faults}", size(verified.bytes))
}
