//! What a run needs to be continued.

use tfarrow_dataset::{Shard, internals::shown};
use tfarrow_index::Dataset;
use xxhash_rust::xxh3::Xxh3Default;

/// The files of a data set: a hash of the name and the size of each, and the number of its records.
///
/// An order is that of certain records, so that a run is continued only with the files that it was
/// begun with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The number of records of all files.
    pub records: u64,
    /// A hash of the name in the data set and the size of each file, in their order.
    pub files: Vec<u32>,
}

/// The files of a run are others than those that it was begun with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateMismatch {
    /// There are more files, or fewer.
    #[error("found {found} files, expected the {expected} that the run was begun with")]
    Count {
        /// The number of files.
        found: usize,
        /// The number in the state.
        expected: usize,
    },
    /// A file has another name, or another size. Contains its path.
    #[error("{0} is not the file that the run was begun with: its name or its size differs")]
    File(String),
    /// The files have another number of records.
    #[error("found {found} records, expected the {expected} that the run was begun with")]
    Records {
        /// The number of records.
        found: u64,
        /// The number in the state.
        expected: u64,
    },
}

impl Fingerprint {
    /// The fingerprint of a data set.
    pub fn of(dataset: &Dataset) -> Self {
        Self {
            records: dataset.len(),
            files: dataset.shards().map(hash_of).collect(),
        }
    }

    /// Checks that a data set is the one of this fingerprint.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, dataset: &Dataset) -> Result<(), StateMismatch> {
        let found = dataset.shards().len();
        let expected = self.files.len();
        if found != expected {
            return Err(StateMismatch::Count { found, expected });
        }
        for (shard, hash) in dataset.shards().zip(&self.files) {
            if hash_of(shard) != *hash {
                return Err(StateMismatch::File(shown(&shard.path)));
            }
        }
        let found = dataset.len();
        let expected = self.records;
        match found == expected {
            true => Ok(()),
            false => Err(StateMismatch::Records { found, expected }),
        }
    }
}

/// A hash of the name and the size of a file.
fn hash_of(shard: &Shard) -> u32 {
    let mut hasher = Xxh3Default::new();
    hasher.update(shard.name.as_os_str().as_encoded_bytes());
    hasher.update(&shard.size.to_le_bytes());
    hasher.digest() as u32
}
