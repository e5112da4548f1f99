//! The files of a table: a fixed list of shards, or sources that every query lists again.

use std::{path::Path, sync::Arc};

use datafusion::{common::plan_err, datasource::listing::ListingTableUrl, error::Result};
use tfarrow_dataset::{
    Error, ErrorKind, FormatFilter, Shard, file_names, internals::is_shard_spec, resolve_filtered,
};

use crate::table::urls;

/// The files of a table.
#[derive(Clone, Debug)]
pub(crate) enum TableFiles {
    /// A fixed list of shards. Clones share it: there may be hundreds of thousands.
    Fixed(Arc<[Shard]>),
    /// Sources, whose files are listed again by every query, so that it reads new files. There may
    /// be no files yet.
    Listed(Vec<String>),
}

impl TableFiles {
    /// The files of these sources, and their current list. Sources that can be read only once are
    /// copied, and not listed again.
    pub(crate) fn listed(sources: Vec<String>) -> Result<(Self, Arc<[Shard]>), Error> {
        let files = Self::Listed(sources);
        let shards = files.shards()?;
        files.with_copies(shards)
    }

    /// Replaces streams among `shards`, which are the current files, by copies; a table with copies
    /// has a fixed list.
    pub(crate) fn with_copies(self, shards: Arc<[Shard]>) -> Result<(Self, Arc<[Shard]>), Error> {
        if !shards.iter().any(Shard::is_stream) {
            return Ok((self, shards));
        }
        let shards: Arc<[Shard]> = spooled(shards.to_vec())?.into();
        Ok((Self::Fixed(Arc::clone(&shards)), shards))
    }

    /// Lists the current files.
    pub(crate) fn shards(&self) -> Result<Arc<[Shard]>, Error> {
        match self {
            Self::Fixed(shards) => Ok(Arc::clone(shards)),
            Self::Listed(sources) => match resolve_filtered(sources, FormatFilter::TfRecord) {
                Err(error) if is_empty(&error) && may_be_folder(sources) => Ok(Arc::default()),
                found => found.map(|found| found.shards.into()),
            },
        }
    }

    /// The folder that INSERT writes new files to.
    pub(crate) fn folder(&self) -> Result<ListingTableUrl> {
        let Self::Listed(sources) = self else {
            return plan_err!(
                "the table is read-only; create it with CREATE EXTERNAL TABLE .. LOCATION 'folder/' to INSERT"
            );
        };
        match sources.as_slice() {
            [source] if !Path::new(source).is_file() && !is_pattern(source) => {
                // The folder may not exist yet: the sink creates it with the first file.
                urls::folder(source)
            }
            _ => plan_err!(
                "INSERT needs a table whose LOCATION is one folder, found {}",
                sources.join(", ")
            ),
        }
    }
}

/// Returns whether a source is a glob or a shard specification such as `train@8`.
pub(crate) fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '[', '{']) || is_shard_spec(source)
}

/// Returns whether a source that does not exist may be a folder to INSERT into, and not a missing
/// file.
fn may_be_folder(sources: &[String]) -> bool {
    let [source] = sources else { return false };
    let name = Path::new(source);
    !is_pattern(source) && (source.ends_with('/') || !file_names::is_shard_name(name))
}

/// Returns whether a source does not exist, or is a folder without files.
fn is_empty(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NoShards { skipped_files, .. } => {
            skipped_files.other + skipped_files.unwanted == 0
        }
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Copies the shards that can be read only once to temporary files.
pub fn spooled(mut shards: Vec<Shard>) -> Result<Vec<Shard>, Error> {
    shards.iter_mut().try_for_each(Shard::spool)?;
    Ok(shards)
}
