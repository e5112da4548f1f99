//! Where the indexes of a data set are.

use std::{
    io,
    path::{Path, PathBuf},
};

use tfarrow_codec::named_values;
use tfarrow_dataset::{Error, ErrorKind, Shard, internals::is_remote, resolve};

use crate::shard_index::{IndexFault, OpenIndex, UnusableIndex, unreadable};

/// The form of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexForm {
    /// Parquet with all that queries use.
    #[default]
    Tfindex,
    /// Text with the places of records, for DALI and the package tfrecord.
    Dali,
}

named_values!(IndexForm {
    Tfindex = "tfindex": "Parquet with the places of records, columns and bounds of values, for tfarrow",
    Dali = "dali": "Text with the places of records, for DALI and the package tfrecord",
});

impl IndexForm {
    /// The extension of an index, after the name of its shard.
    fn extension(self) -> &'static str {
        match self {
            Self::Tfindex => "tfindex",
            Self::Dali => "idx",
        }
    }
}

/// Where the indexes of a data set are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IndexPlace {
    /// Beside its shard: `a.tfrecord.tfindex` for `a.tfrecord`.
    #[default]
    Beside,
    /// In a folder, or at the URL of one, by the names of shards in their data set.
    Folder(String),
}

impl IndexPlace {
    /// The path, or the URL, of the index of a shard. `None` if the shard has no place of its own, as
    /// standard input.
    pub fn path_of(&self, shard: &Shard, form: IndexForm) -> Option<PathBuf> {
        let suffix = format!(".{}", form.extension());
        let beside = shard.path_beside(&suffix)?;
        let Self::Folder(folder) = self else {
            return Some(beside);
        };
        // The names in a data set are relative, without `..`.
        let mut name = shard.name.as_os_str().to_owned();
        name.push(suffix);
        Some(Path::new(folder).join(name))
    }

    /// Whether there may be an index of a shard: a file of its name, which is not opened. A store is
    /// not asked; a listing that has the shard shows whether it has the index.
    pub fn may_have(&self, shard: &Shard) -> bool {
        if *self == Self::Beside && shard.is_remote() && shard.lacks_index() {
            return false;
        }
        let Some(path) = self.path_of(shard, IndexForm::Tfindex) else {
            return false;
        };
        is_remote(&path.to_string_lossy()) || !matches!(path.try_exists(), Ok(false))
    }

    /// Opens the index of a shard for reading; `None` if it has none, or another program has written
    /// the file of this name.
    ///
    /// # Errors
    /// The index cannot be used.
    pub fn find(&self, shard: &Shard) -> Result<Option<OpenIndex>, UnusableIndex> {
        match self.open(shard) {
            Err(other) if other.fault == IndexFault::Foreign => Ok(None),
            found => found,
        }
    }

    /// Opens the index of a shard, as [`find`](Self::find) does, for a writer.
    ///
    /// # Errors
    /// As [`find`](Self::find), and [`IndexFault::Foreign`].
    pub fn open(&self, shard: &Shard) -> Result<Option<OpenIndex>, UnusableIndex> {
        let Some(path) = self.path_of(shard, IndexForm::Tfindex) else {
            return Ok(None);
        };
        if !self.may_have(shard) {
            return Ok(None);
        }
        let unusable = |error: Error| UnusableIndex {
            path: path.clone(),
            fault: unreadable(error),
        };
        let found = match resolve(&[&path]) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        let Some(mut file) = found.into_iter().next() else {
            return Ok(None);
        };
        file.spool_for_scan().map_err(unusable)?;
        OpenIndex::open(file, shard).map(Some)
    }
}

/// Returns whether an error says that there is no file of a name.
fn is_missing(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        ErrorKind::NoShards { .. } => true,
        _ => false,
    }
}
