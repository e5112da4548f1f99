//! Missing shards of numbered sets: `train-00000-of-00002` exists, `train-00001-of-00002` does not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use crate::{Shard, error::shown, file_names::set_member};

/// The missing shards of one numbered set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingShards {
    /// The path that the first missing shard would have.
    pub first: PathBuf,
    /// Number of missing shards.
    pub missing: u64,
    /// Number of shards of the complete set.
    pub of: u64,
}

impl fmt::Display for MissingShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, missing, of } = self;
        let are = if *missing == 1 { "is" } else { "are" };
        write!(
            f,
            "{missing} of {of} shards {are} missing, the first {}",
            shown(first)
        )
    }
}

/// The shards of one numbered set that exist.
struct ShardSet {
    /// Their numbers.
    present: BTreeSet<u64>,
    /// The number with the fewest digits, as text: numbers may be padded with zeros.
    index: String,
    /// The path with that number.
    path: PathBuf,
}

/// Returns the missing shards of each set that one of `shards` belongs to by its name.
pub(crate) fn missing_shards(shards: &[Shard]) -> Vec<MissingShards> {
    let mut sets: BTreeMap<(PathBuf, u64), ShardSet> = BTreeMap::new();
    for shard in shards {
        let Some((set, index, of)) = set_member(&shard.path) else {
            continue;
        };
        let (Ok(number), Ok(count)) = (index.parse(), of.parse()) else {
            continue;
        };
        let set = sets.entry((set, count)).or_insert_with(|| ShardSet {
            present: BTreeSet::new(),
            index: index.clone(),
            path: shard.path.clone(),
        });
        set.present.insert(number);
        if index.len() < set.index.len() {
            (set.index, set.path) = (index, shard.path.clone());
        }
    }
    sets.into_iter()
        .filter_map(|((_, of), set)| missing_of(&set, of))
        .collect()
}

/// Returns the missing shards of a set of `of` shards; `None` if it is complete, or if a number is
/// not below `of`, so that the names only look like those of shards.
fn missing_of(
    ShardSet {
        present,
        index,
        path,
    }: &ShardSet,
    of: u64,
) -> Option<MissingShards> {
    let is_numbered = present.range(of..).next().is_none();
    let first = (0..of)
        .find(|number| !present.contains(number))
        .filter(|_| is_numbered)?;
    let name = path.file_name()?.to_string_lossy();
    let number = format!("-{first:0width$}-of-", width = index.len());
    let first = path.with_file_name(name.replacen(&format!("-{index}-of-"), &number, 1));
    Some(MissingShards {
        first,
        missing: of - present.len() as u64,
        of,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ShardFormat;

    #[track_caller]
    fn check(present: &[&str], expect: &[&str]) {
        let shard = |path: &&str| {
            Shard::file(
                path.into(),
                Path::new(path).into(),
                1,
                ShardFormat::TfRecord,
            )
        };
        let found = missing_shards(&present.iter().map(shard).collect::<Vec<_>>());
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            expect
        );
    }

    #[test]
    fn missing_shards_are_counted_and_the_first_is_named() {
        check(
            &["d/a-00000-of-00003.tfrecord", "d/a-00002-of-00003.tfrecord"],
            &["1 of 3 shards is missing, the first d/a-00001-of-00003.tfrecord"],
        );
        check(
            &["a.tfrecord-2-of-4", "a.tfrecord-3-of-4", "b-0-of-1", "c"],
            &["2 of 4 shards are missing, the first a.tfrecord-0-of-4"],
        );
        let unpadded: Vec<_> = (1..12)
            .rev()
            .map(|index| format!("t-{index}-of-12"))
            .collect();
        let unpadded: Vec<_> = unpadded.iter().map(String::as_str).collect();
        check(
            &unpadded,
            &["1 of 12 shards is missing, the first t-0-of-12"],
        );
        // Extensions do not matter, folders do.
        check(
            &["t-00000-of-00002.tfrecord", "t-00001-of-00002.tfrecord.gz"],
            &[],
        );
        check(
            &["x/t-00000-of-00002", "y/t-00001-of-00002"],
            &[
                "1 of 2 shards is missing, the first x/t-00001-of-00002",
                "1 of 2 shards is missing, the first y/t-00000-of-00002",
            ],
        );
        // Names that only look like those of shards.
        check(
            &[
                "a-00000-of-00002",
                "a-00001-of-00002",
                "x-7-of-3",
                "of-the-of-5",
                "a-0-of-99999999999999999999",
            ],
            &[],
        );
    }
}
