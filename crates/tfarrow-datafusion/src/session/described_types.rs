//! The types that `DESCRIBE` shows: without the metadata of nested Arrow fields, which DataFusion prints.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::logical_expr::{DescribeTable, LogicalPlan};

/// Removes the metadata from the types that a `DESCRIBE` returns. Other plans stay as they are.
pub(crate) fn without_metadata(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }) = plan else { return plan };
    let schema = Arc::new(Schema::new(plain_fields(schema.fields())));
    LogicalPlan::DescribeTable(DescribeTable { schema, output_schema })
}

fn plain_fields(fields: &Fields) -> Fields {
    fields.iter().map(plain_field).collect()
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), plain_type(field.data_type()), field.is_nullable()))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::ListView(item) => DataType::ListView(plain_field(item)),
        DataType::LargeListView(item) => DataType::LargeListView(plain_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(plain_fields(fields)),
        DataType::Map(entries, is_sorted) => DataType::Map(plain_field(entries), *is_sorted),
        other => other.clone(),
    }
}
