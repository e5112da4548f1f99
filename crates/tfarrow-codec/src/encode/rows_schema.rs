//! The schema of rows that a query makes from records.

use std::sync::Arc;

use arrow_schema::{Field, SchemaRef};

use super::WriterBuilder;
use crate::{
    RecordType, Role,
    schema::{RECORD_TYPE, fields_of_examples, role_of, without_record_type},
};

/// Returns the schema of rows that a query makes from records of the type that the metadata of
/// `schema` gives. If the columns are no longer those of such records, the metadata of the schema
/// and the roles of its columns are left out, so that the rows are written as Examples.
///
/// ```text
/// record type     kept for
/// Example         all columns
/// SequenceExample all columns
/// ExampleList     columns one of which has the examples
/// Message         fields of the message, of their own types
/// Raw             one column of bytes
/// ```
///
/// ```
/// use std::sync::Arc;
/// use arrow_schema::{DataType, Field, Schema};
/// use tfarrow_codec::{RecordType, Values, schema::{raw_schema, record_type_of}, schema_of_rows};
/// let raw = raw_schema(Values::Binary);
/// assert_eq!(schema_of_rows(&raw), raw);
/// // SELECT octet_length(record) AS size FROM 'raw.tfrecord'
/// let size = Field::new("size", DataType::Int64, true);
/// let computed = Arc::new(Schema::new_with_metadata(vec![size], raw.metadata().clone()));
/// assert_eq!(record_type_of(&schema_of_rows(&computed)), RecordType::Example);
/// ```
pub fn schema_of_rows(schema: &SchemaRef) -> SchemaRef {
    let declared = schema
        .metadata()
        .get(RECORD_TYPE)
        .and_then(|name| RecordType::from_name(name));
    let is_kept = match declared {
        None | Some(RecordType::Example | RecordType::SequenceExample) => true,
        Some(RecordType::ExampleList) => schema.fields().iter().any(|field| has_examples(field)),
        Some(RecordType::Message | RecordType::Raw) => WriterBuilder::new()
            .build_encoder(Arc::clone(schema))
            .is_ok(),
    };
    if is_kept {
        return Arc::clone(schema);
    }
    without_record_type(schema)
}

fn has_examples(field: &Field) -> bool {
    role_of(field) == Some(Role::Examples) && fields_of_examples(field).is_some()
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Schema};

    use super::*;
    use crate::schema::{
        EXAMPLES_COLUMN, examples_field, raw_schema, record_type_of, with_record_type,
    };
    use crate::{Column, Kind, Shape, Values};

    fn number(name: &str) -> Field {
        Field::new(name, DataType::Int64, true)
    }

    #[test]
    fn raw_records_are_one_column() {
        let raw = raw_schema(Values::BinaryView);
        assert_eq!(schema_of_rows(&raw), raw);
        let fields = vec![raw.field(0).clone(), number("n")];
        let rows = schema_of_rows(&with_record_type(fields, RecordType::Raw));
        assert_eq!(record_type_of(&rows), RecordType::Example);
        assert_eq!(role_of(rows.field(0)), None);
        assert!(WriterBuilder::new().build_encoder(rows).is_ok());
    }

    #[test]
    fn lists_have_a_column_of_examples() {
        let context = Column {
            feature: "q".into(),
            role: Role::Context,
            shape: Shape::List,
            values: Values::Int64,
        };
        let context = context.field("query");
        let examples = examples_field(vec![number("x")].into(), &[]);
        let list = with_record_type(vec![context.clone(), examples], RecordType::ExampleList);
        assert_eq!(list.field(1).name(), EXAMPLES_COLUMN);
        assert_eq!(schema_of_rows(&list), list);
        // SELECT query FROM ..
        let rows = schema_of_rows(&with_record_type(vec![context], RecordType::ExampleList));
        let column = Column::try_new(rows.field(0), record_type_of(&rows)).unwrap();
        // The feature keeps its name and kind.
        assert_eq!(
            (column.feature.as_str(), column.role, column.values.kind()),
            ("q", Role::Feature, Kind::Int64)
        );
    }

    #[test]
    fn examples_and_sequences_keep_their_type() {
        for record_type in [RecordType::Example, RecordType::SequenceExample] {
            let schema = with_record_type(vec![number("n")], record_type);
            assert_eq!(schema_of_rows(&schema), schema);
        }
        let schema = Arc::new(Schema::new(vec![number("n")]));
        assert_eq!(schema_of_rows(&schema), schema);
    }
}
