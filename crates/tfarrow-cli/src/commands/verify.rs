//! `tfarrow verify`: whether files are as they were written.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_dataset::{MissingShards, Resolved, Wanted, resolve_wanted, verify};

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
    let Resolved { shards, passed_over, missing } = resolve_wanted(&args.sources, Wanted::ToVerify)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let record_type = args.record_type.and_then(RecordTypeArg::record_type);
    let read = args.bounds.read(OnError::Skip);
    let verified = verify(&shards, record_type, jobs, read, args.max_faults, &told(&progress))?;
    drop(progress);
    let files = faults::names(&shards);
    let found = Found { files: &files, faults: &verified.faults, counts: &verified.counts };
    let lacks =
        |set: &MissingShards| json!({"first": set.first.to_string_lossy(), "shards": set.missing, "of": set.of});
    let summary = json!({
        "files": shards.len(),
        "missing": missing.iter().map(lacks).collect::<Vec<_>>(),
        "records": verified.records,
        "bytes": verified.bytes,
        "record_type": verified.record_type.name(),
    });
    failure::unless_closed(found.tell(args.format, summary))?;
    failure::tell_besides(&passed_over, &missing);
    let (files, records) = (plural(shards.len() as u64, "file"), plural(verified.records, "sound record"));
    failure::say(&format!("{files}, {records}, {}: {}", size(verified.bytes), found.words()));
    Ok(if found.total() == 0 { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}
