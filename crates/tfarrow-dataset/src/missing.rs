//! Sets of numbered shards that are not whole: `train-00000-of-00002` is there, `train-00001-of-00002` is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use crate::{Shard, error::shown, names::set_member};

/// What a set of numbered shards lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingShards {
    /// The path that the first missing one would have.
    pub first: PathBuf,
    /// How many are missing.
    pub missing: u64,
    /// Of how many.
    pub of: u64,
}

impl fmt::Display for MissingShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, missing, of } = self;
        let are = if *missing == 1 { "is" } else { "are" };
        write!(f, "{missing} of {of} shards {are} not there, the first {}", shown(first))
    }
}

/// A set: the numbers of the shards that are there, and the number that is the shortest, with its file's name.
struct Set {
    there: BTreeSet<u64>,
    index: String,
    name: PathBuf,
}

/// What the sets lack that `shards` are of, by their names.
pub(crate) fn missing_shards(shards: &[Shard]) -> Vec<MissingShards> {
    let mut sets: BTreeMap<(PathBuf, u64), Set> = BTreeMap::new();
    for shard in shards {
        let Some((set, index, of)) = set_member(&shard.path) else { continue };
        let (Ok(number), Ok(count)) = (index.parse(), of.parse()) else { continue };
        let new = || Set { there: BTreeSet::new(), index: index.clone(), name: shard.path.clone() };
        let set = sets.entry((set, count)).or_insert_with(new);
        set.there.insert(number);
        if index.len() < set.index.len() {
            (set.index, set.name) = (index, shard.path.clone());
        }
    }
    let missing = |((_, of), Set { there, index, name }): ((PathBuf, u64), Set)| {
        let first = (0..of).find(|number| !there.contains(number)).filter(|_| there.range(of..).next().is_none())?;
        let text = name.file_name()?.to_string_lossy();
        let number = format!("-{first:0width$}-of-", width = index.len());
        let first = name.with_file_name(text.replacen(&format!("-{index}-of-"), &number, 1));
        Some(MissingShards { first, missing: of - there.len() as u64, of })
    };
    sets.into_iter().filter_map(missing).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Contents;

    #[track_caller]
    fn check(there: &[&str], expect: &[&str]) {
        let shard = |path: &&str| Shard::file(path.into(), Path::new(path).into(), 1, Contents::TfRecord);
        let found = missing_shards(&there.iter().map(shard).collect::<Vec<_>>());
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn what_a_set_lacks_is_told() {
        check(
            &["d/a-00000-of-00003.tfrecord", "d/a-00002-of-00003.tfrecord"],
            &["1 of 3 shards is not there, the first d/a-00001-of-00003.tfrecord"],
        );
        check(
            &["a.tfrecord-2-of-4", "a.tfrecord-3-of-4", "b-0-of-1", "c"],
            &["2 of 4 shards are not there, the first a.tfrecord-0-of-4"],
        );
        let unpadded: Vec<_> = (1..12).rev().map(|index| format!("t-{index}-of-12")).collect();
        let unpadded: Vec<_> = unpadded.iter().map(String::as_str).collect();
        check(&unpadded, &["1 of 12 shards is not there, the first t-0-of-12"]);
        // Whatever names end in, and in whatever folder.
        check(&["t-00000-of-00002.tfrecord", "t-00001-of-00002.tfrecord.gz"], &[]);
        check(
            &["x/t-00000-of-00002", "y/t-00001-of-00002"],
            &[
                "1 of 2 shards is not there, the first x/t-00001-of-00002",
                "1 of 2 shards is not there, the first y/t-00000-of-00002",
            ],
        );
        // What has such a name by chance is no set.
        check(&["a-00000-of-00002", "a-00001-of-00002", "x-7-of-3", "of-the-of-5", "a-0-of-99999999999999999999"], &[]);
    }
}
