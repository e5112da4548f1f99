//! The columns of messages of a type that a descriptor gives.

use anyhow::Result;
use arrow_schema::{DataType, Field, Fields, Schema};
use serde_json::{Value, json};
use tfarrow_codec::{MessageType, schema::array_count};
use tfarrow_convert::schema_json::type_name;

use super::{SchemaFormat, UnsupportedFormat};
use crate::text::{Screen, escape, plural, pretty_json, text_table};

/// Returns the schema of messages, such as TensorBoard's events, in a format.
///
/// # Errors
/// [`UnsupportedFormat`] for a format that describes features of Examples.
pub fn message_schema_text(
    message: &MessageType,
    schema: &Schema,
    format: SchemaFormat,
    screen: Screen,
) -> Result<String> {
    Ok(match format {
        SchemaFormat::Table => table(message, schema, screen),
        SchemaFormat::Arrow => super::arrow(schema),
        SchemaFormat::Json => pretty_json(&json!({
            "record_type": "message",
            "message": message.name(),
            "columns": columns(schema.fields()),
        }))?,
        SchemaFormat::Python
        | SchemaFormat::Rust
        | SchemaFormat::Sql
        | SchemaFormat::FeaturesJson
        | SchemaFormat::Pbtxt => {
            let why = "the format describes features of tf.Example records; messages have the formats table, json and arrow";
            return Err(UnsupportedFormat(why.to_owned()).into());
        }
    })
}

/// A row for each field, with those of nested messages under their full names.
fn table(message: &MessageType, schema: &Schema, screen: Screen) -> String {
    let mut rows = Vec::new();
    for column in outlined(schema.fields()) {
        let absent = match column.field.data_type() {
            DataType::List(_) | DataType::Map(..) => "empty",
            _ if column.field.is_nullable() => "null",
            _ => "default",
        };
        rows.push(vec![column.name, column.data_type, absent.to_owned()]);
    }
    let columns = schema.fields().len() as u64;
    let arrays = array_count(schema.fields()) as u64;
    let headline = format!(
        "{}: {}, {arrays} with nested ones",
        message.name(),
        plural(columns, "column")
    );
    format!(
        "{headline}\n{}",
        text_table(
            &["field", "arrow", "absent"],
            &[false, false, false],
            &[],
            rows,
            screen
        )
    )
}

/// A column, or a field of a nested struct.
pub(crate) struct OutlinedColumn<'f> {
    /// The name, after those of the columns that contain it, escaped.
    pub(crate) name: String,
    /// The type, without the fields of structs.
    pub(crate) data_type: String,
    field: &'f Field,
}

/// The columns, each before the fields of its structs.
pub(crate) fn outlined(fields: &Fields) -> Vec<OutlinedColumn<'_>> {
    let mut columns = Vec::new();
    add_columns("", fields, &mut columns);
    columns
}

fn add_columns<'f>(path: &str, fields: &'f Fields, columns: &mut Vec<OutlinedColumn<'f>>) {
    for field in fields {
        let name = if path.is_empty() {
            field.name().clone()
        } else {
            format!("{path}.{}", field.name())
        };
        let (data_type, nested) = outline(field.data_type());
        columns.push(OutlinedColumn {
            name: escape(&name),
            data_type,
            field,
        });
        nested
            .into_iter()
            .for_each(|fields| add_columns(&name, fields, columns));
    }
}

/// The name of a type without the fields of structs, and these fields.
fn outline(data_type: &DataType) -> (String, Option<&Fields>) {
    match data_type {
        DataType::Struct(fields) => ("struct".to_owned(), Some(fields)),
        DataType::List(item) => {
            let (name, fields) = outline(item.data_type());
            (format!("list<{name}>"), fields)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => match &parts[..] {
                [key, value] => {
                    let (name, fields) = outline(value.data_type());
                    (
                        format!("map<{}, {name}>", type_name(key.data_type())),
                        fields,
                    )
                }
                _ => (type_name(data_type), None),
            },
            _ => (type_name(data_type), None),
        },
        other => (type_name(other), None),
    }
}

/// The columns as JSON, with those of nested messages.
fn columns(fields: &Fields) -> Vec<Value> {
    let mut all = Vec::with_capacity(fields.len());
    for field in fields {
        let (arrow, nested) = outline(field.data_type());
        let mut column =
            json!({"name": field.name(), "arrow": arrow, "nullable": field.is_nullable()});
        if let Some(nested) = nested {
            column["columns"] = columns(nested).into();
        }
        all.push(column);
    }
    all
}
