//! `tfarrow verify`: whether files are as they were written.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_dataset::{Shard, Wanted, resolve_wanted, verify};

use crate::{
    args::{RecordTypeArg, Verify},
    commands::{
        faults::{self, Found},
        look::told,
    },
    failure::{self, FOUND},
    output::{plural, size},
    progress::Bar,
};

/// Tells every fault, and in one line how much was looked at.
pub(crate) fn run(args: &Verify) -> Result<ExitCode> {
    let mut shards = resolve_wanted(&args.sources, Wanted::TfRecord)?;
    shards.iter_mut().try_for_each(Shard::spool)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let record_type = args.record_type.and_then(RecordTypeArg::record_type);
    let read = args.bounds.read(OnError::Skip);
    let verified = verify(&shards, record_type, jobs, read, args.max_faults, &told(&progress))?;
    drop(progress);
    let files = faults::names(&shards);
    let found = Found { files: &files, faults: &verified.faults, counts: &verified.counts };
    let summary = json!({
        "files": shards.len(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": verified.record_type.name(),
    });
    failure::unless_closed(found.tell(args.format, summary))?;
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "sound record"));
    failure::say(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.words()));
    Ok(if found.total() == 0 { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}
