//! What the tables of a session were inferred from, for the hint that goes with "column not found".

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use datafusion::{
    common::{Column, SchemaError},
    error::DataFusionError,
    prelude::SessionContext,
};
use tfarrow_codec::schema::RECORD_COLUMN;

use crate::{origin::Origin, session::Shared};

/// Tables that are remembered.
const REMEMBERED: usize = 64;

/// The tables that a session made last, by name.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<Vec<Sampled>>);

/// A table: its name, its columns, and where they come from.
#[derive(Debug)]
struct Sampled {
    name: String,
    schema: SchemaRef,
    origin: Arc<Origin>,
}

impl Samples {
    pub(crate) fn remember(&self, table: &str, schema: SchemaRef, origin: &Arc<Origin>) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|known| known.name != table);
        if tables.len() == REMEMBERED {
            tables.remove(0);
        }
        tables.push(Sampled { name: table.to_owned(), schema, origin: Arc::clone(origin) });
    }

    /// Where the table of these columns comes from; with an alias in the query, the one made last that has them all.
    fn find(&self, columns: &[Column]) -> Option<Arc<Origin>> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_named = |table: &&Sampled| {
            let mut relations = columns.iter().filter_map(|column| column.relation.as_ref());
            relations.any(|relation| relation.table() == table.name)
        };
        let has_all = |table: &&Sampled| columns.iter().all(|column| table.schema.index_of(&column.name).is_ok());
        let aliased = || tables.iter().rev().find(has_all).filter(|_| !columns.is_empty());
        let found = tables.iter().rev().find(is_named).or_else(aliased);
        found.map(|table| Arc::clone(&table.origin))
    }
}

/// What to say besides "column not found", where the schema may be to blame: it knows only the features that were
/// seen. `None` where the error is another, or nothing is to be said.
///
/// The context is one that [`session_context`](crate::session_context) made.
pub fn explain_missing_column(error: &DataFusionError, context: &SessionContext) -> Option<String> {
    let (field, known) = missing_column(error)?;
    let shared = context.state().config().get_extension::<Shared>()?;
    let origin = shared.samples.find(known)?;
    let is_raw = matches!(known, [column] if column.name == RECORD_COLUMN);
    if let Some((why, for_few)) = origin.why_raw().filter(|_| is_raw) {
        let way_out = if for_few { "; SET tfarrow.on_error = 'skip' passes over such records" } else { "" };
        return Some(format!("{why}{way_out}"));
    }
    let name = &field.name;
    if let Some(feature) = origin.features(name).find(|feature| feature.kind().is_none()) {
        let (present, s) = (feature.present, if feature.present == 1 { "" } else { "s" });
        return Some(format!(
            "feature {name:?} stands in {present} record{s}, but never has a kind, so it has no column"
        ));
    }
    let sample = origin.sample()?;
    Some(format!(
        "the schema is that of {sample}, and a feature {name:?} was not among them; \
         SET tfarrow.sample_records = 'all' looks at every record"
    ))
}

/// The column that was not found, and those that there are.
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
