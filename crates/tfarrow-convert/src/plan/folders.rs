//! Folders `key=value` of the sources, in the outputs of a conversion.
//!
//! ```text
//! one output for each shard      p/label=3/a.tfrecord ─▶ out/label=3/a.parquet                     folders stay folders
//! one output, new shards         p/label=3/a.tfrecord ─▶ out.parquet                               the column label
//! new shards, partition_by       p/label=3/a.tfrecord ─▶ out/label=3/a-00000-of-00002.parquet      a set for each folder
//! ```

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tfarrow_codec::RecordType;
use tfarrow_dataset::{Shard, internals::parse_folder_name};

use super::{OutputPlace, Plan};
use crate::{ConvertOptions, Error, Result};

/// Leaves out the columns of folders that the outputs are in.
///
/// # Errors
/// A shard is not in a folder of [`ConvertOptions::partition_by`], one output has no folders, or
/// folders would be lost because the exact form of a record has no further features.
pub(crate) fn keep_or_leave_out(
    shards: &mut [Shard],
    plan: &Plan,
    options: &ConvertOptions,
) -> Result<()> {
    let ConvertOptions {
        partition_by,
        exact,
        ..
    } = options;
    if let (false, OutputPlace::One(..)) = (partition_by.is_empty(), &plan.place) {
        return Err(Error::Usage(
            "partition_by writes folders, and the destination is one file".to_owned(),
        ));
    }
    for shard in shards.iter_mut() {
        partition(shard, partition_by)?;
        let is_mirrored =
            matches!(plan.place, OutputPlace::Folder(_)) && !options.writes_new_shards();
        *shard = match is_mirrored {
            true => shard.clone().without_folder_columns(),
            false => shard.clone().without_folder_keys(partition_by),
        };
    }
    if *exact {
        check_none(
            shards,
            "the exact form of a record has its own features only",
        )?;
    }
    if options.chooses() {
        check_own_features(shards)?;
    }
    Ok(())
}

/// The folder of the outputs that are made of a shard, below the destination: its folders of these
/// keys, in their order.
///
/// # Errors
/// The shard is not in a folder of each key.
fn partition(shard: &Shard, keys: &[String]) -> Result<PathBuf> {
    let mut folder = PathBuf::new();
    for key in keys {
        let mut parts = shard.name.parent().unwrap_or(Path::new("")).components();
        let part = parts.find(|part| {
            let name = part.as_os_str().to_str().and_then(parse_folder_name);
            name.is_some_and(|(other, _)| other == *key)
        });
        let Some(part) = part else {
            return Err(Error::Usage(format!(
                "{}: not in a folder {key}=..: partition_by names folders of the sources, and no columns",
                shard.path.display()
            )));
        };
        folder.push(part);
    }
    Ok(folder)
}

/// The sets of new shards: the folder of each, below the destination, and the numbers of its
/// shards.
///
/// # Errors
/// As [`keep_or_leave_out`].
pub(super) fn sets(shards: &[Shard], keys: &[String]) -> Result<Vec<(PathBuf, Vec<usize>)>> {
    let mut sets: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (number, shard) in shards.iter().enumerate() {
        sets.entry(partition(shard, keys)?)
            .or_default()
            .push(number);
    }
    Ok(sets.into_iter().collect())
}

/// Checks that records of this type can have the columns of the folders of the shards.
///
/// # Errors
/// The shards have such columns, and the records no features.
pub(super) fn check_type(shards: &[Shard], record_type: RecordType) -> Result<()> {
    match record_type {
        RecordType::Example | RecordType::SequenceExample => Ok(()),
        RecordType::ExampleList | RecordType::Message | RecordType::Raw => {
            check_none(shards, Error::NO_FEATURES)
        }
    }
}

/// Checks that no shard is in a folder `key=value` whose column records that are chosen by their numbers
/// would lose.
fn check_own_features(shards: &[Shard]) -> Result<()> {
    for shard in shards {
        if !shard.folder_columns().is_empty() {
            let path = shard.path.display();
            let why = "records that are shuffled, sampled or split have no columns of folders `key=value`";
            return Err(Error::Usage(format!(
                "{path}: {why}: convert each folder by itself"
            )));
        }
    }
    Ok(())
}

fn check_none(shards: &[Shard], why: &str) -> Result<()> {
    match shards
        .iter()
        .find(|shard| !shard.folder_columns().is_empty())
    {
        None => Ok(()),
        Some(shard) => Err(Error::lost_folders(&shard.path, why)),
    }
}
