//! One schema for the files of a table that is not TFRecord. DataFusion takes the columns of the
//! first file: it would leave out those of the others, and cut fractions of numbers that are
//! integers in the first file.
//!
//! Workaround for DataFusion 55: apache/datafusion#14755, open. Delete when DataFusion widens
//! types, as its pull request 4251 tried.

use std::{collections::HashMap, path::Path, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::{common::plan_err, error::Result};

/// Merges the schemas of files, each with the name of its file: a column for each name, in the
/// order in which the files have them, of a type that holds the values of all files.
///
/// # Errors
/// A column has types that no other type holds without a change; the message has both files.
pub(crate) fn merged(files: &[(String, SchemaRef)]) -> Result<SchemaRef> {
    let Some(((first, schema), others)) = files.split_first() else {
        return Ok(Arc::new(Schema::empty()));
    };
    if others.iter().all(|(_, other)| other == schema) {
        return Ok(Arc::clone(schema));
    }
    // The fields with the file that each of them comes from.
    let mut fields: Vec<(&str, Field)> = schema
        .fields()
        .iter()
        .map(|field| (first.as_str(), Field::clone(field)))
        .collect();
    let mut metadata = schema.metadata().clone();
    for (file, other) in others {
        metadata.retain(|key, value| other.metadata().get(key) == Some(value));
        for field in other.fields() {
            let Some((known_file, known)) = fields
                .iter_mut()
                .find(|(_, known)| known.name() == field.name())
            else {
                fields.push((file, Field::clone(field).with_nullable(true)));
                continue;
            };
            let Some(wider) = wider(known.data_type(), field.data_type()) else {
                return plan_err!(
                    "column {:?} is {} in {known_file}, and {} in {file}; select some of the files, for example with a glob",
                    field.name(),
                    known.data_type(),
                    field.data_type()
                );
            };
            let nullable = known.is_nullable() || field.is_nullable();
            *known = known.clone().with_data_type(wider).with_nullable(nullable);
        }
        for (_, field) in &mut fields {
            if other.column_with_name(field.name()).is_none() {
                field.set_nullable(true);
            }
        }
    }
    let fields: Fields = fields.into_iter().map(|(_, field)| field).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Checks that each column of a file has a name of its own.
///
/// # Errors
/// Two columns have one name. DataFusion would return one of them, or fail where their types
/// differ.
pub(crate) fn check_different_names<'n>(
    path: &Path,
    names: impl Iterator<Item = &'n str>,
) -> Result<()> {
    let mut known = HashMap::new();
    for (number, name) in (1..).zip(names) {
        if let Some(first) = known.insert(name, number) {
            let file = path.display();
            return plan_err!(
                "{file}: columns {first} and {number} have the name {name:?}; write the file with other names"
            );
        }
    }
    Ok(())
}

/// Checks that files have the same columns of the same types in the same order.
///
/// # Errors
/// Two files have other columns.
pub(crate) fn check_same_columns(files: &[(String, SchemaRef)]) -> Result<()> {
    let Some(((first, schema), others)) = files.split_first() else {
        return Ok(());
    };
    let expected = columns(schema);
    match others.iter().find(|(_, other)| columns(other) != expected) {
        None => Ok(()),
        Some((file, other)) => plan_err!(
            "{file} has the columns {}, and {first} has {}: such files of one table need the same columns in the same order; \
             convert them to Parquet, or select some of the files",
            columns(other).join(", "),
            expected.join(", ")
        ),
    }
}

/// The names and the types of columns.
fn columns(schema: &Schema) -> Vec<String> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        columns.push(format!("{} {}", field.name(), field.data_type()));
    }
    columns
}

/// The type that holds the values of both types; `None` if there is none. Integers of 64 bits
/// beside floats become float64, as in the files of other commands.
fn wider(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Float16, Float32, Float64, Int64, LargeBinary, LargeUtf8, List, Null,
        Struct, UInt64, Utf8, Utf8View,
    };
    match (one, other) {
        _ if one == other => Some(one.clone()),
        (Null, known) | (known, Null) => Some(known.clone()),
        (Float16, Float32) | (Float32, Float16) => Some(Float32),
        (float, number) | (number, float) if float.is_floating() && number.is_numeric() => {
            (!matches!(number, DataType::Decimal128(..) | DataType::Decimal256(..)))
                .then_some(Float64)
        }
        (UInt64, integer) | (integer, UInt64) if integer.is_unsigned_integer() => Some(UInt64),
        (UInt64, _) | (_, UInt64) => None,
        (one, other) if one.is_integer() && other.is_integer() => Some(Int64),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => Some(Utf8View),
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => Some(BinaryView),
        (List(one), List(other)) => Some(List(wider_field(one, other)?)),
        (Struct(one), Struct(other)) => wider_fields(one, other).map(Struct),
        _ => None,
    }
}

fn wider_field(one: &FieldRef, other: &FieldRef) -> Option<FieldRef> {
    let data_type = wider(one.data_type(), other.data_type())?;
    let nullable = one.is_nullable() || other.is_nullable();
    Some(Arc::new(
        Field::clone(one)
            .with_data_type(data_type)
            .with_nullable(nullable),
    ))
}

/// The fields of both structs, in the order in which they have them.
fn wider_fields(one: &Fields, other: &Fields) -> Option<Fields> {
    let mut fields = Vec::with_capacity(one.len());
    for field in one {
        fields.push(match other.find(field.name()) {
            Some((_, other)) => wider_field(field, other)?,
            None => Arc::new(Field::clone(field).with_nullable(true)),
        });
    }
    for field in other {
        if one.find(field.name()).is_none() {
            fields.push(Arc::new(Field::clone(field).with_nullable(true)));
        }
    }
    Some(fields.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, data_type)| Field::new(*name, data_type.clone(), false))
            .collect();
        Arc::new(Schema::new(fields))
    }

    fn files(schemas: &[SchemaRef]) -> Vec<(String, SchemaRef)> {
        schemas
            .iter()
            .enumerate()
            .map(|(number, schema)| (format!("{number}.x"), Arc::clone(schema)))
            .collect()
    }

    #[test]
    fn columns_of_all_files_are_merged() {
        use DataType::{Float64, Int64, Utf8};
        let found = merged(&files(&[
            schema(&[("a", Int64), ("b", Utf8)]),
            schema(&[("c", Utf8), ("a", Float64)]),
        ]));
        let expected = [
            Field::new("a", Float64, false),
            Field::new("b", Utf8, true),
            Field::new("c", Utf8, true),
        ];
        assert_eq!(*found.unwrap(), Schema::new(expected.to_vec()));
        let nested = |item| {
            DataType::new_list(
                DataType::Struct(vec![Field::new("x", item, true)].into()),
                true,
            )
        };
        let found = merged(&files(&[
            schema(&[("a", nested(Int64))]),
            schema(&[("a", nested(Float64))]),
        ]))
        .unwrap();
        assert_eq!(*found.field(0).data_type(), nested(Float64));
    }

    #[test]
    fn types_without_a_common_one_are_an_error() {
        use DataType::{Int64, UInt64, Utf8};
        for (one, other) in [
            (Int64, Utf8),
            (Int64, UInt64),
            (Int64, DataType::new_list(Int64, true)),
        ] {
            let error = merged(&files(&[schema(&[("a", one)]), schema(&[("a", other)])]))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("\"a\"") && error.contains("0.x") && error.contains("1.x"),
                "{error}"
            );
        }
    }

    #[test]
    fn files_have_the_same_columns() {
        use DataType::Int64;
        let floats = schema(&[("a", DataType::Float64)]);
        assert!(check_same_columns(&files(&[schema(&[("a", Int64)]), floats])).is_err());
        let one = schema(&[("a", Int64), ("b", Int64)]);
        let other = schema(&[("b", Int64), ("a", Int64)]);
        assert!(check_same_columns(&files(&[Arc::clone(&one), Arc::clone(&one)])).is_ok());
        let error = check_same_columns(&files(&[one, other]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("1.x has the columns b Int64, a Int64, and 0.x has a Int64, b Int64"),
            "{error}"
        );
    }
}
