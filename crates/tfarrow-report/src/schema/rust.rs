//! The schema as a Rust function that builds it with arrow-schema.

use std::fmt::Write;

use arrow_schema::{DataType, Field};
use tfarrow_codec::schema::{FEATURE, RECORD_TYPE};

use super::inferred_schema::InferredSchema;
use crate::text::escape;

/// A function that returns the schema, for decoders and tables with declared columns.
pub(super) fn function(found: &InferredSchema) -> String {
    let mut fields = String::new();
    for field in found.schema().fields() {
        // The other metadata of a column follows from its type and the record type.
        let metadata = match field.metadata().get(FEATURE) {
            Some(feature) if feature != field.name() => {
                format!(".with_metadata(map({FEATURE:?}, {feature:?}))")
            }
            _ => String::new(),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(fields, "        {}{metadata},", constructor(field));
    }
    let record_type = found.record_type().name();
    format!(
        "use std::collections::HashMap;\n\n\
         use arrow_schema::{{DataType, Field, Schema}};\n\n\
         /// {}.\n\
         pub fn schema() -> Schema {{\n    \
             let map = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);\n    \
             let fields = vec![\n{fields}    ];\n    \
             Schema::new_with_metadata(fields, map({RECORD_TYPE:?}, {record_type:?}))\n\
         }}",
        escape(&found.headline())
    )
}

fn constructor(field: &Field) -> String {
    format!(
        "Field::new({:?}, {}, {})",
        field.name(),
        data_type(field.data_type()),
        field.is_nullable()
    )
}

/// A type as a Rust expression.
fn data_type(data_type: &DataType) -> String {
    match data_type {
        DataType::List(item) => format!("DataType::List({}.into())", constructor(item)),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| constructor(field)).collect();
            format!("DataType::Struct(vec![{}].into())", fields.join(", "))
        }
        other => format!("DataType::{other:?}"),
    }
}
