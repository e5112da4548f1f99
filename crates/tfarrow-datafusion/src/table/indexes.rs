//! The indexes of the files of a table.

use std::{collections::HashMap, convert::Infallible, path::PathBuf, sync::Arc};

use tfarrow_dataset::{Shard, ShardFormat, internals::try_map};
use tfarrow_index::{IndexFault, ShardIndex, UnusableIndex};
use tfarrow_scan::{Inferred, shown_names};

use crate::options::TfRecordOptions;

/// The indexes of the files of a table. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableIndexes {
    /// Those that are used, by the paths of the files.
    usable: Arc<HashMap<PathBuf, ShardIndex>>,
    /// Those that are not.
    unusable: Arc<[UnusableIndex]>,
}

impl TableIndexes {
    /// Opens the indexes of these files. Objects in stores are left out: each would be a request.
    pub(crate) fn open(shards: &[Shard], options: &TfRecordOptions) -> Self {
        let Some(place) = options.index.place() else {
            return Self::default();
        };
        let mut usable = HashMap::new();
        let mut unusable = Vec::new();
        // There may be hundreds of thousands of files, and no index.
        let mut indexed = Vec::new();
        for shard in shards {
            let is_file = shard.format == ShardFormat::TfRecord && !shard.is_remote();
            if is_file && place.may_have(shard) {
                indexed.push(shard);
            }
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let open = |_, shard: &&Shard| Ok::<_, Infallible>(place.open(shard));
        let Ok(opened) = try_map(&indexed, threads, open);
        for (shard, opened) in indexed.into_iter().zip(opened) {
            match opened {
                Ok(None) => {}
                Ok(Some(index)) => {
                    usable.insert(shard.path.clone(), index);
                }
                // Other programs have indexes of the same name.
                Err(other) if other.fault == IndexFault::Foreign => {}
                Err(fault) => unusable.push(fault),
            }
        }
        Self {
            usable: Arc::new(usable),
            unusable: unusable.into(),
        }
    }

    /// The indexes that are not used.
    pub(crate) fn unusable(&self) -> &[UnusableIndex] {
        &self.unusable
    }

    /// The index of a file, unless the file has changed since it was opened.
    pub(crate) fn get(&self, shard: &Shard) -> Option<&ShardIndex> {
        let index = self.usable.get(&shard.path);
        index.filter(|index| index.is_of(shard))
    }

    /// The summary of all records, if all files have an index.
    pub(crate) fn inferred(&self, shards: &[Shard], options: &TfRecordOptions) -> Option<Inferred> {
        // Records of a stated type may have other features.
        if shards.is_empty() || shards.len() != self.usable.len() || options.record_type.is_some() {
            return None;
        }
        let mut summaries = Vec::with_capacity(shards.len());
        for (number, shard) in shards.iter().enumerate() {
            let index = self.usable.get(&shard.path)?;
            let number = u32::try_from(number).ok()?;
            summaries.push(index.summary(number, options.limits).ok()?);
        }
        let mut summaries = summaries.into_iter();
        let mut merged = summaries.next()?;
        for summary in summaries {
            merged.merge(&summary).ok()?;
        }
        Some(Inferred::of_all_records(
            merged,
            shown_names(shards),
            options.on_error,
        ))
    }
}
