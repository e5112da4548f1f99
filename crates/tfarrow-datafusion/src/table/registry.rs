//! The tables that a session has created last, with the provenance of their schemas, for hints in
//! errors.

use std::{fmt, sync::Arc};

use arrow_schema::SchemaRef;
use datafusion::{catalog::TableProvider, common::Column, error::Result};
use tfarrow_dataset::internals::Lock;

use crate::{
    notice::SessionNotices,
    schema::provenance::SchemaProvenance,
    table::{TfRecordTable, event_table::EventTable},
};

/// Maximum number of tables that are remembered.
const MAX_TABLES: usize = 64;

/// The tables that a session created last, and its callback for warnings.
pub struct TableRegistry {
    recent: Lock<Vec<RecentTable>>,
    /// The callback of the session for warnings.
    pub notices: SessionNotices,
}

/// The name of a table, its columns, and their provenance.
#[derive(Debug)]
struct RecentTable {
    name: String,
    schema: SchemaRef,
    provenance: Arc<SchemaProvenance>,
}

impl TableRegistry {
    /// Creates an empty registry of a session with this callback.
    pub fn new(notices: SessionNotices) -> Self {
        Self {
            recent: Lock::default(),
            notices,
        }
    }

    /// Registers a table by its name in queries, and sets its callback for warnings. The table
    /// replaces a table of the same name, and may replace the oldest one. Returns the table that
    /// queries read.
    ///
    /// # Errors
    /// Those of [`queried`].
    pub fn register(&self, table: TfRecordTable, name: &str) -> Result<Arc<dyn TableProvider>> {
        let provenance = Arc::clone(table.provenance());
        let table = queried(table.with_notices(self.notices.on_notice.clone()))?;
        self.remember(name, table.schema(), &provenance);
        Ok(table)
    }

    fn remember(&self, table: &str, schema: SchemaRef, provenance: &Arc<SchemaProvenance>) {
        let mut tables = self.recent.lock();
        tables.retain(|known| known.name != table);
        if tables.len() == MAX_TABLES {
            tables.remove(0);
        }
        tables.push(RecentTable {
            name: table.to_owned(),
            schema,
            provenance: Arc::clone(provenance),
        });
    }

    /// The provenance of the table of these columns; if the query has an alias, of the last table
    /// that has all of them.
    pub fn find(&self, columns: &[Column]) -> Option<Arc<SchemaProvenance>> {
        let tables = self.recent.lock();
        for table in tables.iter().rev() {
            let mut relations = columns.iter().filter_map(|column| column.relation.as_ref());
            if relations.any(|relation| relation.table() == table.name) {
                return Some(Arc::clone(&table.provenance));
            }
        }
        if columns.is_empty() {
            return None;
        }
        let mut last_first = tables.iter().rev();
        let found = last_first.find(|table| {
            columns
                .iter()
                .all(|column| table.schema.index_of(&column.name).is_ok())
        });
        found.map(|table| Arc::clone(&table.provenance))
    }
}

/// Returns the table that queries read: for TensorBoard's event files, the table of their values,
/// and else the table itself. A session registers it in place of the table.
///
/// # Errors
/// The files of events cannot be listed.
pub fn queried(table: TfRecordTable) -> Result<Arc<dyn TableProvider>> {
    if table.is_of_events() {
        Ok(Arc::new(EventTable::new(&table)?))
    } else {
        Ok(Arc::new(table))
    }
}

impl fmt::Debug for TableRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRegistry")
            .field("recent", &self.recent)
            .finish_non_exhaustive()
    }
}
