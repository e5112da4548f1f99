//! Forms of a schema for the files that records are written to, as the programs that read these
//! files expect them.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

/// Returns `schema` with nullable items of lists if `nullable` is true. If it is false, items are
/// not nullable, except the steps of feature lists, which are null without a kind: records have no
/// other nulls within lists.
///
/// ```text
/// nullable = true      List<Int64>, List<List<Int64>>
/// nullable = false     List<non-null Int64>, List<List<non-null Int64>>
/// ```
///
/// Some programs compute with the lists of Parquet files only if their items are not nullable.
pub fn with_nullable_items(schema: &Schema, nullable: bool) -> SchemaRef {
    with_fields(schema, &|field| with_items(field, nullable))
}

/// Returns `schema` with timestamps of `unit` in place of those in nanoseconds.
pub fn with_timestamp_unit(schema: &Schema, unit: TimeUnit) -> SchemaRef {
    with_fields(schema, &|field| with_timestamps(field, unit))
}

/// Replaces each field that a type contains, of a list, a struct or a map, by what `replace` makes
/// of it. Types without fields stay as they are.
pub fn replace_fields(data_type: &DataType, replace: impl Fn(&FieldRef) -> FieldRef) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(replace(item)),
        DataType::LargeList(item) => DataType::LargeList(replace(item)),
        DataType::ListView(item) => DataType::ListView(replace(item)),
        DataType::LargeListView(item) => DataType::LargeListView(replace(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(replace(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(replace).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(replace(entries), *is_sorted),
        other => other.clone(),
    }
}

fn with_items(field: &FieldRef, nullable: bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(as_item(item, nullable)),
        DataType::LargeList(item) => DataType::LargeList(as_item(item, nullable)),
        DataType::FixedSizeList(item, length) => {
            DataType::FixedSizeList(as_item(item, nullable), *length)
        }
        other => replace_fields(other, |part| with_items(part, nullable)),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Returns the item of a list, which is nullable if `nullable` is true or it is a list itself.
fn as_item(item: &FieldRef, nullable: bool) -> FieldRef {
    let is_step = matches!(item.data_type(), DataType::List(_));
    Arc::new(
        with_items(item, nullable)
            .as_ref()
            .clone()
            .with_nullable(nullable || is_step),
    )
}

fn with_timestamps(field: &FieldRef, unit: TimeUnit) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => DataType::Timestamp(unit, zone.clone()),
        other => replace_fields(other, |part| with_timestamps(part, unit)),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

fn with_fields(schema: &Schema, replace: &dyn Fn(&FieldRef) -> FieldRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(replace).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
