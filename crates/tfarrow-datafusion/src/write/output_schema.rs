//! Schemas of written Parquet, Arrow and JSON files that other programs can read: unique names, and
//! no view types.

use std::{collections::HashSet, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::{common::plan_err, error::Result};
use tfarrow_codec::file_schema::replace_fields;

/// Rejects columns, or fields of a struct, with equal names: most programs cannot read JSON objects
/// and Parquet files that have them.
///
/// # Errors
/// A name occurs twice; the message contains the first one.
pub fn check_names(schema: &Schema) -> Result<()> {
    if let Some(name) = repeated(schema.fields()) {
        return plan_err!("two columns are named {name:?}; give one of them another name with AS");
    }
    schema
        .fields()
        .iter()
        .try_for_each(|field| check_fields(field.name(), field.data_type()))
}

fn check_fields(column: &str, data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Struct(fields) => {
            if let Some(name) = repeated(fields) {
                return plan_err!(
                    "two fields of column {column:?} are named {name:?}; give one of them another name"
                );
            }
            fields
                .iter()
                .try_for_each(|field| check_fields(column, field.data_type()))
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => check_fields(column, item.data_type()),
        _ => Ok(()),
    }
}

fn repeated(fields: &Fields) -> Option<&str> {
    let mut names = HashSet::new();
    fields
        .iter()
        .map(|field| field.name().as_str())
        .find(|name| !names.insert(*name))
}

/// Replaces the view types of a schema by plain strings, bytes and lists, because some readers do
/// not support views.
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use tfarrow_datafusion::without_views;
/// let schema = Schema::new(vec![Field::new("city", DataType::Utf8View, true)]);
/// assert_eq!(without_views(&schema).field(0).data_type(), &DataType::Utf8);
/// ```
pub fn without_views(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = plain_type(field.data_type());
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::ListView(item) => DataType::List(plain_field(item)),
        DataType::LargeListView(item) => DataType::LargeList(plain_field(item)),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(plain_type(value)))
        }
        other => replace_fields(other, plain_field),
    }
}
