//! Hints for the error "column not found", from the provenance of the schemas of a session's
//! tables.

use datafusion::{
    common::{Column, SchemaError},
    error::DataFusionError,
    prelude::SessionContext,
};
use tfarrow_codec::schema::RECORD_COLUMN;
use tfarrow_datafusion::internals::TableRegistry;

/// Returns a hint for the error "column not found" if the inferred schema may be the cause: a
/// sample may not contain each feature. Returns `None` for other errors, and if there is no hint.
///
/// `context` must be a session of [`session_context`](crate::session_context).
pub fn explain_missing_column(error: &DataFusionError, context: &SessionContext) -> Option<String> {
    let (field, known) = missing_column(error)?;
    let registry = context.state().config().get_extension::<TableRegistry>()?;
    let provenance = registry.find(known)?;
    let is_raw = matches!(known, [column] if column.name == RECORD_COLUMN);
    if let Some((why, for_few)) = provenance.why_raw().filter(|_| is_raw) {
        let remedy = if for_few {
            "; SET tfarrow.on_error = 'skip' skips such records"
        } else {
            ""
        };
        return Some(format!("{why}{remedy}"));
    }
    let name = &field.name;
    if let Some(feature) = provenance
        .features(name)
        .find(|feature| feature.kind().is_none())
    {
        let present = feature.present;
        let s = if feature.present == 1 { "" } else { "s" };
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
            SchemaError::FieldNotFound {
                field,
                valid_fields,
            } => Some((field, valid_fields)),
            _ => None,
        },
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            missing_column(error)
        }
        DataFusionError::Shared(error) => missing_column(error),
        DataFusionError::Collection(errors) => errors.iter().find_map(missing_column),
        _ => None,
    }
}
