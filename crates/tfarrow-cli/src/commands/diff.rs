//! `tfarrow diff`: compares two data sets record by record.

use anyhow::Result;
use tfarrow_codec::diff::Tolerance;
use tfarrow_convert::{DiffOptions, Error, Progress, diff};
use tfarrow_report::{diff_json, diff_text, text::escape};

use crate::{
    args::{Diff, FaultFormat, NameList},
    error::{FOUND, SUCCESS, USAGE, Usage, unless_closed},
    output, stderr,
};

/// Prints the first differences, and a summary.
pub(crate) fn run(args: &Diff) -> Result<u8> {
    let options = options(args);
    if [&args.left, &args.right] == ["-", "-"] {
        return Err(Usage(
            "standard input can be read only once: name a file for one of the data sets".to_owned(),
        )
        .into());
    }
    let found = match diff(
        &[&args.left],
        &[&args.right],
        &options,
        &Progress::default(),
    ) {
        Err(error @ (Error::Selection { .. } | Error::Usage(_) | Error::Exists { .. })) => {
            stderr::error(&error.into());
            return Ok(USAGE);
        }
        found => found?,
    };
    for other in &found.other_files {
        stderr::skipped_files(&other.skipped_files, &other.missing);
        stderr::splits(&other.splits);
    }
    let names = [&args.left, &args.right].map(String::as_str);
    let text = match args.format.get() {
        FaultFormat::Table => diff_text(names, &found, output::screen()),
        FaultFormat::Json => diff_json(&found)?,
    };
    unless_closed(output::line(&text).map_err(Into::into))?;
    found.why_raw.iter().for_each(|why| stderr::print(why));
    let skipped: Vec<_> = names
        .into_iter()
        .zip(&found.skipped)
        .filter(|(_, skipped)| !skipped.is_empty())
        .collect();
    for (name, skipped) in &skipped {
        stderr::print(&format!(
            "{}: {}",
            escape(name),
            stderr::skipped_text(skipped)
        ));
    }
    Ok(if found.is_equal() && skipped.is_empty() {
        SUCCESS
    } else {
        FOUND
    })
}

fn options(args: &Diff) -> DiffOptions {
    let defaults = DiffOptions::default();
    let has_tolerance = args.tolerance.is_some() || args.relative_tolerance.is_some();
    let tolerance = Tolerance {
        absolute: args.tolerance.unwrap_or(0.0),
        relative: args.relative_tolerance.unwrap_or(0.0),
    };
    let limit = args
        .memory_limit
        .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    DiffOptions {
        record_type: args.record_type,
        read: args.damage.read(),
        max_differences: args.records,
        on: NameList::join(&args.on),
        exclude: NameList::join(&args.exclude),
        tolerance: has_tolerance.then_some(tolerance),
        memory_limit: limit.unwrap_or(defaults.memory_limit),
        unmatched: [args.only_a.clone(), args.only_b.clone()],
        overwrite: args.overwrite,
    }
}
