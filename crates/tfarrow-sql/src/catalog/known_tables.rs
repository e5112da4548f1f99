//! The tables of objects in stores that a session has made last: the next query of the same objects
//! requests neither a sample of their records nor their indexes again.

use std::path::PathBuf;

use tfarrow_datafusion::{TfRecordOptions, TfRecordTable};
use tfarrow_dataset::{Shard, internals::Lock};

/// Number of tables that are kept.
const MAX_TABLES: usize = 16;

/// The tables that a session has made last. The oldest one is first.
#[derive(Default)]
pub(super) struct KnownTables(Lock<Vec<KnownTable>>);

struct KnownTable {
    origin: TableOrigin,
    table: TfRecordTable,
}

/// What determines a table.
#[derive(Clone, PartialEq)]
pub(super) struct TableOrigin {
    objects: Vec<ObjectVersion>,
    options: String,
}

#[derive(Clone, PartialEq)]
struct ObjectVersion {
    url: PathBuf,
    /// The name below the source, by which folders `key=value` are columns.
    name: PathBuf,
    size: u64,
    version: Option<String>,
    lacks_index: bool,
}

impl TableOrigin {
    /// The origin of the table of these shards. `None` if one is not in a store: reading files again
    /// takes less time than to find out whether they have changed.
    pub(super) fn of(shards: &[Shard], options: &TfRecordOptions) -> Option<Self> {
        let mut objects = Vec::with_capacity(shards.len());
        for shard in shards {
            if !shard.is_remote() {
                return None;
            }
            objects.push(ObjectVersion {
                url: shard.path.clone(),
                name: shard.name.clone(),
                size: shard.size,
                version: shard.version(),
                lacks_index: shard.lacks_index(),
            });
        }
        Some(Self {
            objects,
            options: format!("{options:?}"),
        })
    }
}

impl KnownTables {
    /// The table of this origin.
    pub(super) fn get(&self, origin: &TableOrigin) -> Option<TfRecordTable> {
        let known = self.0.lock();
        let found = known.iter().find(|known| known.origin == *origin)?;
        Some(found.table.clone())
    }

    /// Keeps a table.
    pub(super) fn add(&self, origin: TableOrigin, table: TfRecordTable) {
        let mut known = self.0.lock();
        known.retain(|known| known.origin != origin);
        if known.len() == MAX_TABLES {
            known.remove(0);
        }
        known.push(KnownTable { origin, table });
    }
}
