//! The columns of folders `key=value` of the shards of a data set.

use std::{borrow::Cow, path::Path, sync::Arc};

use crate::{Shard, sharding::folder_columns::folder_columns};

/// Sets the folder columns of all shards: those of all keys of the data set.
pub(super) fn set_folder_columns(shards: &mut [Shard]) {
    let columns = folder_columns(shards.iter().map(parent).collect());
    for shard in shards {
        if let Some(columns) = columns.get(parent(shard)) {
            shard.set_folder_columns(Arc::clone(columns));
        }
    }
}

/// The folder that a shard is in, below the source.
fn parent(shard: &Shard) -> &Path {
    shard.name.parent().unwrap_or(Path::new(""))
}

/// Returns the shards without columns of folders: the same ones if they have none.
pub fn without_folder_columns(shards: &[Shard]) -> Cow<'_, [Shard]> {
    if shards.iter().all(|shard| shard.folder_columns().is_empty()) {
        return Cow::Borrowed(shards);
    }
    shards
        .iter()
        .cloned()
        .map(Shard::without_folder_columns)
        .collect()
}
