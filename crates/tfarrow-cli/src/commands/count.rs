//! `tfarrow count`: the number of records.

use anyhow::Result;
use serde_json::{Value, json};
use tfarrow_dataset::{DamageReport, FormatFilter, Resolved, Shard, resolve_filtered};
use tfarrow_report::{
    skipped_json,
    text::{escape, pretty_json},
};
use tfarrow_scan::{Counted, count};

use crate::{
    args::Count,
    commands::{
        inspect::{cores, observer},
        partial,
    },
    error::{FOUND, SUCCESS},
    output,
    progress::Bar,
    stderr,
};

/// Prints the number of records. Skipped files and records are reported.
pub(crate) fn run(args: &Count) -> Result<u8> {
    let Resolved {
        shards,
        skipped_files,
        missing,
    } = resolve_filtered(&args.sources, FormatFilter::Any)?;
    stderr::skipped_files(&skipped_files, &missing);
    let mut shards = partial::share(shards, args.share.part)?;
    shards.iter_mut().try_for_each(Shard::spool_columnar)?;
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let counted = count(
        &shards,
        &args.damage.read(),
        cores(),
        args.indexes.place().as_ref(),
        &observer(&progress),
    );
    drop(progress);
    let Counted {
        records,
        damage,
        wrong_lengths,
        splits,
        unusable,
    } = counted?;
    stderr::splits(&splits);
    stderr::unusable_indexes(&unusable);
    if args.summary.json {
        output::line(&pretty_json(&json(
            &shards,
            &records,
            &damage,
            args.per_file,
        ))?)?;
    } else if args.per_file {
        let mut lines = Vec::with_capacity(records.len());
        for (shard, count) in shards.iter().zip(&records) {
            let path = escape(&shard.path.to_string_lossy());
            lines.push(format!("{count}\t{path}"));
        }
        output::line(&lines.join("\n"))?;
    } else {
        output::line(&records.iter().sum::<u64>().to_string())?;
    }
    wrong_lengths
        .iter()
        .for_each(|error| stderr::print(&escape(&error.to_string())));
    if !damage.is_empty() {
        stderr::skipped_records(&damage);
    }
    Ok(if damage.is_empty() && wrong_lengths.is_empty() {
        SUCCESS
    } else {
        FOUND
    })
}

/// The number of records, with `per_file` also of each file.
fn json(shards: &[Shard], records: &[u64], damage: &DamageReport, per_file: bool) -> Value {
    let mut found = json!({
        "files": shards.len(),
        "records": records.iter().sum::<u64>(),
        "bytes": shards.iter().map(|shard| shard.size).sum::<u64>(),
        "skipped": skipped_json(damage),
    });
    if per_file && let Value::Object(fields) = &mut found {
        let mut files = Vec::with_capacity(records.len());
        for (shard, count) in shards.iter().zip(records) {
            files.push(json!({"file": shard.path.to_string_lossy(), "records": count}));
        }
        fields.insert("per_file".to_owned(), Value::Array(files));
    }
    found
}
