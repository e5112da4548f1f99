//! Batches of foreign rows that are not what was announced.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Fields, SchemaRef};

/// The next step after a batch with other columns.
const SAME_COLUMNS: &str = "give all batches the columns and types of the schema, which is that of the first batch by default";

/// What differs between a batch and the schema of its rows.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// The column; none if the rows as a whole differ.
    pub(crate) column: Option<String>,
    /// What was found, and what was expected.
    pub(crate) text: String,
}

impl Mismatch {
    pub(crate) fn of_rows(text: impl ToString) -> Self {
        Self {
            column: None,
            text: text.to_string(),
        }
    }

    pub(crate) fn of_column(name: &str, text: impl ToString) -> Self {
        Self {
            column: Some(name.to_owned()),
            text: text.to_string(),
        }
    }
}

/// The columns of a batch as a schema has them: found by their names, with the same types.
///
/// # Errors
/// A column is missing, is not in the schema, or has another type or nulls that the schema
/// excludes.
pub(crate) fn conformed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Mismatch> {
    let found = batch.schema_ref().fields();
    if let Some(other) = found
        .iter()
        .find(|field| schema.index_of(field.name()).is_err())
    {
        let text = format!("the schema of the rows does not have this column: {SAME_COLUMNS}");
        return Err(Mismatch::of_column(other.name(), text));
    }
    let mut columns = Vec::with_capacity(found.len());
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(place) = place_of(field, index, found) else {
            let text = format!("the batch does not have this column: {SAME_COLUMNS}");
            return Err(Mismatch::of_column(field.name(), text));
        };
        columns.push(conformed_column(batch.column(place), field)?);
    }
    if found.len() != columns.len() {
        let text = format!(
            "the batch has {} columns, expected {}",
            found.len(),
            columns.len()
        );
        return Err(Mismatch::of_rows(text));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(Mismatch::of_rows)
}

/// The place of a column in a batch. The same place is preferred, since two columns may have one
/// name.
fn place_of(field: &Field, index: usize, found: &Fields) -> Option<usize> {
    match found.get(index) {
        Some(same) if same.name() == field.name() => Some(index),
        _ => found.find(field.name()).map(|(place, _)| place),
    }
}

fn conformed_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef, Mismatch> {
    let found = column.data_type();
    let expected = field.data_type();
    if found == expected {
        return Ok(Arc::clone(column));
    }
    if !is_same_type(found, expected) {
        let text = format!("expected {expected}, found {found}: {SAME_COLUMNS}");
        return Err(Mismatch::of_column(field.name(), text));
    }
    arrow_cast::cast(column, expected).map_err(|error| Mismatch::of_column(field.name(), error))
}

/// Whether two types differ at most in the names and the metadata of their items, so that they have
/// the same values.
fn is_same_type(found: &DataType, expected: &DataType) -> bool {
    match (found, expected) {
        (DataType::List(found), DataType::List(expected))
        | (DataType::LargeList(found), DataType::LargeList(expected)) => {
            is_same_type(found.data_type(), expected.data_type())
        }
        (DataType::FixedSizeList(found, width), DataType::FixedSizeList(expected, same)) => {
            width == same && is_same_type(found.data_type(), expected.data_type())
        }
        (DataType::Struct(found), DataType::Struct(expected)) => {
            let mut fields = found.iter().zip(expected);
            found.len() == expected.len()
                && fields.all(|(found, expected)| {
                    found.name() == expected.name()
                        && is_same_type(found.data_type(), expected.data_type())
                })
        }
        _ => found == expected,
    }
}
