//! Attempts at an output: several processes may write the same one, such as those of a batch system
//! that runs a part of a conversion again, perhaps on another machine and while the first one still
//! runs.
//!
//! Each attempt writes a temporary file of its own. The first that is complete gets the name; the
//! others are compared with it. An attempt that was killed leaves its temporary file. No lock
//! reaches all machines, so that nobody can know whether the process that wrote it still runs; once
//! the output has its name, no attempt needs its temporary file.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use tfarrow_dataset::{
    OutputFile, Result,
    internals::{UNFINISHED, is_remote},
};
use xxhash_rust::xxh3::xxh3_64;

use crate::journal::folders::folder_of;

/// Creates the temporary file of an attempt at the output `path`.
///
/// # Errors
/// As [`OutputFile::create_attempt`].
pub(crate) fn create(path: &Path, overwrite: bool) -> Result<OutputFile> {
    OutputFile::create_attempt(path, &prefix(path), overwrite)
}

/// Removes the temporary files of all attempts at these outputs, which have their names. Errors are
/// ignored: a file that is left only takes space. An attempt that still writes one of them ends
/// with the output of this name, or with an error.
pub(crate) fn remove<'p>(outputs: impl Iterator<Item = &'p Path>) {
    let mut folders: HashMap<&Path, HashSet<String>> = HashMap::new();
    for output in outputs.filter(|output| !output.to_str().is_some_and(is_remote)) {
        folders
            .entry(folder_of(output))
            .or_default()
            .insert(prefix(output));
    }
    for (folder, prefixes) in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let prefix = name.to_str().and_then(|name| name.get(..PREFIX_BYTES));
            if prefix.is_some_and(|prefix| prefixes.contains(prefix)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Length of the common prefix of the attempts at an output.
const PREFIX_BYTES: usize = UNFINISHED.len() + 17;

/// The common prefix of the names of all attempts at an output, which contains a hash of its name:
/// a name of temporary files must not be longer than file systems allow.
fn prefix(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default();
    format!("{UNFINISHED}{:016x}-", xxh3_64(name.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_an_output_are_removed_and_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
        let attempts = [&a, &a, &b].map(|path| create(path, false).unwrap().close().unwrap());
        let names = attempts
            .each_ref()
            .map(|attempt| attempt.part().unwrap().to_owned());
        assert!(
            names.iter().all(
                |name| prefix(&a).len() == PREFIX_BYTES && name.parent() == Some(folder.path())
            )
        );
        assert_ne!(names[0], names[1]);
        attempts
            .into_iter()
            .for_each(tfarrow_dataset::CompleteFile::leave);
        let others = [
            "a.parquet",
            ".tfarrow-convert.journal",
            ".tfarrow-x.part",
            "é",
        ];
        others
            .iter()
            .for_each(|name| fs::write(folder.path().join(name), "x").unwrap());
        remove([a.as_path(), Path::new("s3://bucket/a.parquet")].into_iter());
        assert!(!names[0].exists() && !names[1].exists() && names[2].exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
    }
}
