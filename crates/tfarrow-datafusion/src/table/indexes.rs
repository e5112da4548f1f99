//! The indexes of the files of a table.

use std::{collections::HashMap, convert::Infallible, path::PathBuf, sync::Arc};

use tfarrow_codec::Summary;
use tfarrow_dataset::{Shard, ShardFormat, internals::try_map};
use tfarrow_index::{IndexPlace, ShardIndex, UnusableIndex};
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

/// Number of indexes that are open at once: their summaries take memory.
const OPENED_AT_ONCE: usize = 256;

/// Number of indexes that are copied from a store at once.
const REQUESTS_AT_ONCE: usize = 16;

/// The index of a file, and the summary of its records if it is wanted.
type Opened = Result<Option<(ShardIndex, Option<Summary>)>, UnusableIndex>;

impl TableIndexes {
    /// Opens the indexes of these files, and closes them again. Returns what all records have as
    /// well, if all files have an index.
    pub(crate) fn open(shards: &[Shard], options: &TfRecordOptions) -> (Self, Option<Inferred>) {
        let Some(place) = options.index.place() else {
            return (Self::default(), None);
        };
        // There may be hundreds of thousands of files, and no index.
        let mut indexed = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            if shard.format == ShardFormat::TfRecord && place.may_have(shard) {
                indexed.push((number, shard));
            }
        }
        // Records of a stated type may have other features.
        let wants_summary = indexed.len() == shards.len() && options.record_type.is_none();
        let mut merged = wants_summary.then(|| Summary::with_limits(0, options.limits));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match indexed.iter().any(|(_, shard)| shard.is_remote()) {
            true => cores.max(REQUESTS_AT_ONCE),
            false => cores,
        };
        let mut usable = HashMap::new();
        let mut unusable = Vec::new();
        for part in indexed.chunks(OPENED_AT_ONCE) {
            let open = |_, (number, shard): &(usize, &Shard)| {
                Ok::<_, Infallible>(open_one(
                    place,
                    shard,
                    *number as u32,
                    wants_summary,
                    options,
                ))
            };
            let Ok(opened) = try_map(part, threads, open);
            for ((_, shard), opened) in part.iter().zip(opened) {
                let summary = match opened {
                    Ok(Some((index, summary))) => {
                        usable.insert(shard.path.clone(), index);
                        summary
                    }
                    Ok(None) => None,
                    Err(fault) => {
                        unusable.push(fault);
                        None
                    }
                };
                merged = merge(merged, summary);
            }
        }
        let inferred = merged.filter(|_| !shards.is_empty()).map(|summary| {
            Inferred::of_all_records(summary, shown_names(shards), options.on_error)
        });
        let indexes = Self {
            usable: Arc::new(usable),
            unusable: unusable.into(),
        };
        (indexes, inferred)
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
}

/// Opens the index of the shard with this number.
fn open_one(
    place: &IndexPlace,
    shard: &Shard,
    number: u32,
    wants_summary: bool,
    options: &TfRecordOptions,
) -> Opened {
    let Some(index) = place.find(shard)? else {
        return Ok(None);
    };
    let summary = match wants_summary {
        true => index.summary(number, options.limits).ok(),
        false => None,
    };
    Ok(Some((index.close(), summary)))
}

/// Adds the summary of a shard to those before it; `None` if one of both is missing, or there are
/// too many names.
fn merge(merged: Option<Summary>, summary: Option<Summary>) -> Option<Summary> {
    let mut merged = merged?;
    merged.merge(&summary?).ok()?;
    Some(merged)
}
