//! The part of the shards that a run converts, and the checks that its outputs are those of one run
//! over all shards.
//!
//! Each process of a conversion in parts finds all shards, names all outputs and infers the columns
//! of all records. It then converts the shards of its part alone. Nothing is passed from one
//! process to another.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use tfarrow_dataset::{Shard, ShardFormat};

use super::{OutputPlace, Plan};
use crate::{
    ConvertOptions, Error, Result, Target,
    journal::{Journal, folders::canonical},
};

/// The numbers of the shards that this run converts: those of the part of the options, or all.
///
/// # Errors
/// [`Error::Usage`] if a part cannot have the outputs of one run.
pub(crate) fn own_shards(shards: &[Shard], options: &ConvertOptions) -> Result<Range<usize>> {
    let Some(part) = options.part else {
        return Ok(0..shards.len());
    };
    let refuse = |what: &str| Err(Error::Usage(format!("a part of a conversion {what}")));
    if options.writes_new_shards() {
        return refuse(
            "writes one output for each of its shards, and cannot cut new shards of all of them",
        );
    }
    if let Some(stream) = shards.iter().find(|shard| shard.is_stream()) {
        let path = stream.path.display();
        let why = "which other processes cannot read again: name files";
        return refuse(&format!("cannot read {path}, {why}"));
    }
    Ok(part.range(shards))
}

/// Checks that other processes can write the outputs of other parts to the same destination.
///
/// # Errors
/// [`Error::Usage`] if they cannot.
pub(crate) fn check(shards: &[Shard], plan: &Plan, options: &ConvertOptions) -> Result<()> {
    if options.part.is_none() {
        return Ok(());
    }
    let OutputPlace::Folder(folder) = &plan.place else {
        let why = "writes one output for each of its shards, and needs a folder as the destination: one file or stream holds the \
                   records of all parts";
        return Err(Error::Usage(format!("a part of a conversion {why}")));
    };
    if let Some(shard) = source_among_outputs(shards, plan, folder) {
        let why = "is a source in the folder of the outputs, so that outputs of one part would be sources of another; name a \
                   folder outside of the sources";
        return Err(Error::Usage(format!("{}: {why}", shard.path.display())));
    }
    Ok(())
}

/// The first shard in the folder of the outputs that an output could be taken for. Outputs of
/// another kind than the sources are no sources, also if all are in one folder.
fn source_among_outputs<'s>(shards: &'s [Shard], plan: &Plan, folder: &Path) -> Option<&'s Shard> {
    let folder = canonical(folder);
    for shard in shards {
        let is_kind_of_outputs = match shard.format {
            ShardFormat::TfRecord => plan.target == Target::TfRecord,
            ShardFormat::Parquet | ShardFormat::Arrow => plan.target != Target::TfRecord,
            ShardFormat::Csv | ShardFormat::Json => false,
        };
        if is_kind_of_outputs && canonical(&shard.path).starts_with(&folder) {
            return Some(shard);
        }
    }
    None
}

/// Checks that no conversion of all shards has its journal, at this path, in the folder of the
/// outputs.
///
/// # Errors
/// [`Error::Usage`] if there is one.
pub(crate) fn check_no_journal(path: Option<PathBuf>) -> Result<()> {
    match path.map_or(Ok(()), |path| Journal::check(&path)) {
        Err(Error::Interrupted { folder, .. }) => {
            let why = "a conversion of all shards to this folder runs, or was interrupted; complete it, or name another folder";
            Err(Error::Usage(format!("{}: {why}", folder.display())))
        }
        checked => checked,
    }
}
