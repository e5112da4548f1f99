//! `tfarrow index`: writes the indexes of TFRecord files.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use serde_json::{Value, json};
use tfarrow_codec::OnError;
use tfarrow_dataset::{ErrorKind, FormatFilter, Resolved, Shard, resolve_filtered};
use tfarrow_report::text::{count, plural, pretty_json, size};
use tfarrow_scan::{IndexOptions, Indexed, index};

use crate::{
    args::{Index, place_in},
    commands::{inspect::cores, partial},
    error::{FOUND, SUCCESS},
    interrupt, output,
    progress::Bar,
    stderr,
};

/// Writes the indexes, and prints how many there are.
pub(crate) fn run(args: &Index) -> Result<u8> {
    let Resolved {
        shards,
        skipped_files,
        missing,
    } = resolve_filtered(&args.sources, FormatFilter::TfRecord)?;
    stderr::skipped_files(&skipped_files, &missing);
    let shards = partial::share(shards, args.share.part)?;
    let options = IndexOptions {
        place: place_in(args.to.clone()),
        form: args.format,
        update: args.update,
        overwrite: args.overwrite,
        threads: args.jobs.map_or_else(cores, usize::from),
        read: args.bounds.read(OnError::Fail),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    interrupt::on_interrupt(move || stopped.store(true, Ordering::Relaxed));
    let progress = Bar::new(shards.iter().map(|shard| shard.size).sum());
    let indexed = index(&shards, &options, &|bytes, records| {
        progress.add(bytes, records);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    drop(progress);
    let indexed = match indexed {
        Err(error) if matches!(error.kind(), ErrorKind::Stopped) => return Ok(interrupt::status()),
        indexed => indexed?,
    };
    let has_failed = report(&indexed);
    if args.summary.json {
        output::line(&pretty_json(&summary(&shards, &indexed))?)?;
    }
    Ok(if has_failed { FOUND } else { SUCCESS })
}

/// Prints the errors and a summary. Returns whether a shard has no index.
fn report(indexed: &[Indexed]) -> bool {
    let mut written = 0;
    let mut kept = 0;
    let mut total_records = 0;
    let mut total_bytes = 0;
    let mut has_failed = false;
    for result in indexed {
        match result {
            Indexed::Written { bytes, records, .. } => {
                written += 1;
                total_bytes += bytes;
                total_records += records;
            }
            Indexed::Kept { records, .. } => {
                kept += 1;
                total_records += records;
            }
            Indexed::Failed(error) => {
                has_failed = true;
                stderr::index_error(error);
            }
        }
    }
    let mut text = match written + kept {
        1 => "1 index".to_owned(),
        indexes => format!("{} indexes", count(indexes)),
    };
    text.push_str(&format!(" of {}", plural(total_records, "record")));
    if written > 0 {
        text.push_str(&format!(", {} written", size(total_bytes)));
    }
    if kept > 0 {
        text.push_str(&format!(", {kept} kept"));
    }
    stderr::print(&text);
    has_failed
}

fn summary(shards: &[Shard], indexed: &[Indexed]) -> Value {
    let mut files = Vec::with_capacity(indexed.len());
    for (shard, result) in shards.iter().zip(indexed) {
        let file = shard.path.to_string_lossy();
        files.push(match result {
            Indexed::Written {
                path,
                bytes,
                records,
            } => json!({
                "file": file,
                "index": path.to_string_lossy(),
                "records": records,
                "bytes": bytes,
                "written": true,
            }),
            Indexed::Kept { path, records } => json!({
                "file": file,
                "index": path.to_string_lossy(),
                "records": records,
                "written": false,
            }),
            Indexed::Failed(error) => json!({"file": file, "error": error.to_string()}),
        });
    }
    json!({"files": files})
}
