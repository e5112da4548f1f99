//! The schema as Rust: a function that makes it, of arrow-schema's types.

use std::fmt::Write;

use arrow_schema::{DataType, Field};
use tfarrow_codec::schema::{FEATURE, RECORD_TYPE};

use super::{Found, escape};

/// A function that returns the schema, for decoders and declared tables.
pub(super) fn function(found: &Found<'_>) -> String {
    let mut fields = String::new();
    for field in found.schema.fields() {
        // The rest of a column's metadata says what its type and the record type do.
        let metadata = match field.metadata().get(FEATURE) {
            Some(feature) if feature != field.name() => format!(".with_metadata(map({FEATURE:?}, {feature:?}))"),
            _ => String::new(),
        };
        // A `String` takes all that is written to it.
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
    format!("Field::new({:?}, {}, {})", field.name(), data_type(field.data_type()), field.is_nullable())
}

/// Of the types that the codec makes, a list alone has another inside.
fn data_type(data_type: &DataType) -> String {
    match data_type {
        DataType::List(item) => format!("DataType::List({}.into())", constructor(item)),
        other => format!("DataType::{other:?}"),
    }
}
