//! The types that `DESCRIBE` shows: without the metadata of nested Arrow fields, which DataFusion
//! prints.
//!
//! Workaround for DataFusion 55, of which no issue is known.

use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Fields, Schema};
use datafusion::logical_expr::{DescribeTable, LogicalPlan};
use tfarrow_codec::file_schema::replace_fields;

/// Removes the metadata from the types that a `DESCRIBE` returns. Other plans stay as they are.
pub(crate) fn without_metadata(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::DescribeTable(DescribeTable {
        schema,
        output_schema,
    }) = plan
    else {
        return plan;
    };
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    let schema = Arc::new(Schema::new(fields));
    LogicalPlan::DescribeTable(DescribeTable {
        schema,
        output_schema,
    })
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = replace_fields(field.data_type(), plain_field);
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
}
