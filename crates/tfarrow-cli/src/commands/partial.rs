//! Reading a part of a data set, as one of several processes. `tfarrow merge` merges the results.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use clap::ValueEnum;
use tfarrow_dataset::{
    FormatFilter, OutputFile, Part, Resolved, Shard, internals::tfds_splits, resolve_filtered,
};
use tfarrow_report::{
    PartSettings, source_notes,
    text::{count, plural, size},
};
use tfarrow_scan::InferOptions;
use tfarrow_stats::{PartWork, PartialResult};

use crate::{
    args::PartArgs,
    commands::inspect::observer,
    error::{SUCCESS, Usage},
    output,
    progress::Bar,
    stderr,
};

/// The name of a value of an option, such as a format.
pub(super) fn value_name(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The shards of a part; all shards without one.
///
/// # Errors
/// As [`check_sources`].
pub(super) fn share(shards: Vec<Shard>, part: Option<Part>) -> Result<Vec<Shard>, Usage> {
    let Some(part) = part else { return Ok(shards) };
    check_sources(&shards)?;
    Ok(shards.get(part.range(&shards)).unwrap_or_default().to_vec())
}

/// Checks that each of several processes can read the shards of a data set.
///
/// # Errors
/// Standard input or a pipe.
fn check_sources(shards: &[Shard]) -> Result<(), Usage> {
    PartialResult::check_sources(shards).map_err(|error| Usage(error.to_string()))
}

/// A data set of which a part is read.
pub(super) struct PartSource {
    /// All shards. Those of the part can be read repeatedly.
    pub(super) shards: Vec<Shard>,
    /// The notes about files that were skipped, and about missing shards. Results of other parts
    /// among the files, which appear while the part is read, make them differ from those of other
    /// parts.
    pub(super) notes: Vec<String>,
}

/// Finds the data set of which a part is read.
///
/// # Errors
/// As [`check_sources`], and I/O errors.
pub(super) fn source(sources: &[String], part: Part) -> Result<PartSource> {
    let Resolved {
        mut shards,
        skipped_files,
        missing,
    } = resolve_filtered(sources, FormatFilter::Any)?;
    let splits = tfds_splits(&shards);
    stderr::skipped_files(&skipped_files, &missing);
    stderr::splits(&splits);
    let notes = source_notes(&skipped_files, &missing, &splits);
    check_sources(&shards)?;
    part.spool_for_scan(&mut shards)?;
    Ok(PartSource { shards, notes })
}

/// Reads a part of a data set, and writes the result. Anomalies and damage are those of the data
/// set, so that `merge` reports them.
pub(super) fn write(
    args: &PartArgs,
    part: Part,
    PartSource { shards, notes }: &PartSource,
    work: PartWork<'_>,
    settings: &PartSettings,
    options: &InferOptions,
) -> Result<u8> {
    match &args.partial {
        Some(path) => {
            output::refuse_other_file(path, PartialResult::MAGIC, "the result of a part")?
        }
        None if io::stdout().is_terminal() => {
            let why = "a terminal cannot show the result of a part: name a file with --partial, or redirect the output";
            return Err(Usage(why.to_owned()).into());
        }
        None => {}
    }
    let own = shards.get(part.range(shards)).unwrap_or_default();
    let progress = Bar::new(own.iter().map(|shard| shard.size).sum());
    let options = InferOptions {
        part: Some(part),
        ..*options
    };
    let result = PartialResult::read(
        shards,
        work,
        settings.to_map()?,
        &options,
        &observer(&progress),
    )?;
    drop(progress);
    let bytes = result.with_notes(notes.clone()).to_bytes();
    match &args.partial {
        None => output::bytes(&bytes)?,
        Some(path) => {
            // Creates the folder as well, which none of the jobs of an array can expect of another.
            let mut file = OutputFile::create(path, true)?;
            file.write_all(&bytes)
                .with_context(|| path.display().to_string())?;
            file.persist()?;
        }
    }
    stderr::print(&format!(
        "part {part}: {} of {}, result of {}",
        plural(own.len() as u64, "shard"),
        count(shards.len() as u64),
        size(bytes.len() as u64)
    ));
    Ok(SUCCESS)
}
