//! Nested Arrow types, whose fields are replaced one by one.

use arrow_schema::{DataType, FieldRef};

/// Replaces each field that a type contains, of a list, a struct or a map, by what `replace` makes of it. Types without fields stay
/// as they are.
pub(crate) fn replace_fields(data_type: &DataType, replace: impl Fn(&FieldRef) -> FieldRef) -> DataType {
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
