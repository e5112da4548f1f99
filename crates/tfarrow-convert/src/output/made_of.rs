//! Hashes of all that an output is made of, by which a later run knows without reading the sources
//! that an output is up to date: in the [journal](crate::journal) for a file, and in a note for an
//! object in a store.
//!
//! ```text
//! 5d41402abc4b2a76b9719d911017c592-1000    a hash of options, version, columns and sources; the number of records
//! ```
//!
//! Stores have neither journals nor locks. Their metadata of an object is written with the object,
//! and cannot be missing or wrong after a crash.

use std::{
    hash::{Hash, Hasher},
    path::Path,
};

use arrow_schema::Schema;
use tfarrow_dataset::Shard;
use xxhash_rust::xxh3::Xxh3;

/// A hash for the journal: of the identities of the sources of an output, and of its columns.
pub(crate) fn source_of(shards: &[Shard], schema: &Schema) -> u64 {
    let mut hasher = Xxh3::new();
    shards
        .iter()
        .for_each(|shard| identity(shard).hash(&mut hasher));
    hash_schema(schema, &mut hasher);
    hasher.finish()
}

/// A hash of all that determines an output: the fingerprint of the conversion, the columns, and the
/// paths, sizes and versions of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeOf(String);

impl MadeOf {
    /// The hash of an output of `sources`; `None` if the version of a source is not known.
    pub(crate) fn of(fingerprint: &str, sources: &[Shard], schema: &Schema) -> Option<Self> {
        let mut hasher = Xxh3::new();
        fingerprint.hash(&mut hasher);
        hash_schema(schema, &mut hasher);
        for shard in sources {
            let (path, size, version) = identity(shard);
            (path, size, version?).hash(&mut hasher);
        }
        Some(Self(format!("{:032x}", hasher.digest128())))
    }

    /// The note of the output, which has this number of records.
    pub(crate) fn note(&self, records: u64) -> String {
        format!("{}-{records}", self.0)
    }

    /// The number of records of an object with this note; `None` if it was made of something else.
    pub(crate) fn records(&self, note: &str) -> Option<u64> {
        note.strip_prefix(&self.0)?.strip_prefix('-')?.parse().ok()
    }
}

/// The path, the size and the version of a source, which change with its data.
fn identity(shard: &Shard) -> (&Path, u64, Option<String>) {
    (&shard.path, shard.size, shard.version())
}

/// Adds a schema to a hash, independently of the order of its metadata.
pub(crate) fn hash_schema(schema: &Schema, hasher: &mut impl Hasher) {
    schema.fields().hash(hasher);
    let mut metadata: Vec<_> = schema.metadata().iter().collect();
    metadata.sort();
    metadata.hash(hasher);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow_schema::{DataType, Field};
    use tfarrow_dataset::resolve;

    use super::*;

    #[test]
    fn the_hash_depends_on_options_columns_and_sources() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let schema = |name: &str| Schema::new(vec![Field::new(name, DataType::Int64, true)]);
        let of = |fingerprint: &str, column: &str| {
            let shards = resolve(&[&path]).unwrap();
            MadeOf::of(fingerprint, &shards, &schema(column)).unwrap()
        };
        fs::write(&path, b"x").unwrap();
        let first = of("f", "a");
        assert_eq!(first, of("f", "a"));
        assert_eq!(first.records(&first.note(7)), Some(7));
        let others = [of("g", "a"), of("f", "b"), {
            fs::write(&path, b"xy").unwrap();
            of("f", "a")
        }];
        assert!(
            others
                .iter()
                .all(|other| first.records(&other.note(7)).is_none())
        );
        for note in ["", "-1", "7", &first.0] {
            assert_eq!(first.records(note), None, "{note}");
        }
        fs::remove_file(&path).unwrap();
    }
}
