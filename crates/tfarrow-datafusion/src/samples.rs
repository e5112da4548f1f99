//! Hints for the error "column not found", from the provenance of the schemas of a session's tables.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use datafusion::{
    common::{Column, SchemaError},
    error::DataFusionError,
    prelude::SessionContext,
};
use tfarrow_codec::schema::RECORD_COLUMN;

use crate::{origin::SchemaProvenance, session::Shared};

/// Maximum number of tables that are remembered.
const MAX_TABLES: usize = 64;

/// The tables that a session created last.
#[derive(Debug, Default)]
pub(crate) struct RecentTables(Mutex<Vec<RecentTable>>);

/// The name of a table, its columns, and their provenance.
#[derive(Debug)]
struct RecentTable {
    name: String,
    schema: SchemaRef,
    provenance: Arc<SchemaProvenance>,
}

impl RecentTables {
    /// Adds a table, which replaces a table of the same name, and may replace the oldest one.
    pub(crate) fn add(&self, table: &str, schema: SchemaRef, provenance: &Arc<SchemaProvenance>) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|known| known.name != table);
        if tables.len() == MAX_TABLES {
            tables.remove(0);
        }
        tables.push(RecentTable { name: table.to_owned(), schema, provenance: Arc::clone(provenance) });
    }

    /// The provenance of the table of these columns; if the query has an alias, of the last table that has all of them.
    fn find(&self, columns: &[Column]) -> Option<Arc<SchemaProvenance>> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_named = |table: &&RecentTable| {
            let mut relations = columns.iter().filter_map(|column| column.relation.as_ref());
            relations.any(|relation| relation.table() == table.name)
        };
        let has_all = |table: &&RecentTable| columns.iter().all(|column| table.schema.index_of(&column.name).is_ok());
        let aliased = || tables.iter().rev().find(has_all).filter(|_| !columns.is_empty());
        let found = tables.iter().rev().find(is_named).or_else(aliased);
        found.map(|table| Arc::clone(&table.provenance))
    }
}

/// Returns a hint for the error "column not found" if the inferred schema may be the cause: a sample may not contain each
/// feature. Returns `None` for other errors, and if there is no hint.
///
/// `context` must be a session of [`session_context`](crate::session_context).
pub fn explain_missing_column(error: &DataFusionError, context: &SessionContext) -> Option<String> {
    let (field, known) = missing_column(error)?;
    let shared = context.state().config().get_extension::<Shared>()?;
    let provenance = shared.recent.find(known)?;
    let is_raw = matches!(known, [column] if column.name == RECORD_COLUMN);
    if let Some((why, for_few)) = provenance.why_raw().filter(|_| is_raw) {
        let remedy = if for_few { "; SET tfarrow.on_error = 'skip' skips such records" } else { "" };
        return Some(format!("{why}{remedy}"));
    }
    let name = &field.name;
    if let Some(feature) = provenance.features(name).find(|feature| feature.kind().is_none()) {
        let (present, s) = (feature.present, if feature.present == 1 { "" } else { "s" });
        return Some(format!(
            "feature {name:?} occurs in {present} record{s}, but never with a kind, so it has no column"
        ));
    }
    let sample = provenance.sample()?;
    Some(format!(
        "the schema was inferred from {sample}, without a feature {name:?}; \
         SET tfarrow.sample_records = 'all' reads every record"
    ))
}

/// The column that was not found, and the valid columns.
fn missing_column(error: &DataFusionError) -> Option<(&Column, &[Column])> {
    match error {
        DataFusionError::SchemaError(error, _) => match &**error {
            SchemaError::FieldNotFound { field, valid_fields } => Some((field, valid_fields)),
            _ => None,
        },
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => missing_column(error),
        DataFusionError::Shared(error) => missing_column(error),
        DataFusionError::Collection(errors) => errors.iter().find_map(missing_column),
        _ => None,
    }
}
