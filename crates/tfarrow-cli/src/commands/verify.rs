//! `tfarrow verify`: checks the integrity of files. An I/O error is not a fault, and ends the
//! command with status 1.

use anyhow::Result;
use tfarrow_codec::OnError;
use tfarrow_dataset::{FormatFilter, Resolved, Shard, resolve_filtered};
use tfarrow_report::{
    FaultReport, shard_names,
    text::{escape, plural},
    verified_fields, verified_summary,
};
use tfarrow_scan::{VerifyOptions, verify};

use crate::{
    args::Verify,
    commands::{
        faults,
        inspect::{cores, observer},
        partial,
    },
    error::{FOUND, SUCCESS, reading_remedy, unless_closed},
    progress::Bar,
    stderr,
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
    let files = shard_names(&verified.shards);
    let found = FaultReport {
        files: &files,
        damage: &verified.damage,
    };
    let fields = verified_fields(&verified, &skipped_files, &missing);
    unless_closed(faults::print(&found, args.format.get(), fields))?;
    stderr::skipped_files(&skipped_files, &missing);
    stderr::splits(&verified.splits);
    if let Some(first) = verified.without_checksums.first() {
        let files = plural(verified.without_checksums.len() as u64, "file");
        let first = escape(&first.to_string_lossy());
        stderr::print(&format!(
            "{files} without checksums (the first: {first}): verified only that the content can be read"
        ));
    }
    stderr::print(&verified_summary(&verified));
    Ok(if found.total() == 0 { SUCCESS } else { FOUND })
}
