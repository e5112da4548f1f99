//! The schema of a data set as JSON, which the command `schema` prints and
//! [`read_schema`](crate::read_schema) reads.
//!
//! ```json
//! {
//!   "record_type": "example",
//!   "records": 200,
//!   "features": [
//!     {"name": "city", "role": "feature", "kind": "bytes_list", "arrow": "utf8",
//!      "present": 200, "missing": 0, "unset": 0, "lengths": [1, 1], "values": 200, "utf8": true, "bytes": 1040}
//!   ]
//! }
//! ```
//!
//! | key | value | read back |
//! |---|---|---|
//! | `record_type` | `example`, `sequence-example`, `example-list` or `raw` | yes |
//! | `name` | the name of the feature | yes |
//! | `role` | `feature`, `context`, `sequence`, `examples` for a feature of the examples of a list, `record` or `unset` | yes, optional |
//! | `kind` | `int64_list`, `float_list` or `bytes_list` | yes, optional |
//! | `arrow` | `int64`, `float32`, `binary` or `utf8`, a `list<..>` of one of these, or a `list<list<..>>` for a feature list | yes; a feature without it, or with null, has no column |
//! | `column` | the name of the column, if it is not that of the feature | yes, optional |
//! | all others | statistics of the data set | no |

use std::collections::{HashMap, HashSet};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::{Map, Value, json};
use tfarrow_codec::{
    Column, FeatureSummary, Kind, KindSummary, Place, RecordType, Role, Shape, Values,
    schema::{
        ROLE, examples_field, feature_of, fields_of_examples, raw_schema, record_type_of, role_of,
        with_record_type,
    },
};
use tfarrow_scan::Inferred;

use crate::SchemaJsonError;

type Result<T, E = SchemaJsonError> = std::result::Result<T, E>;

/// The JSON of an inferred schema. `schema` has the columns; features of more than one kind may
/// have none.
pub fn to_json(inferred: &Inferred, schema: &Schema) -> Value {
    let record_type = record_type_of(schema);
    let summary = &inferred.summary;
    let columns = columns_of(schema);
    let mut features = Vec::new();
    for feature in summary.features_of(record_type) {
        let role = summary.role(feature, record_type);
        let field = columns.get(&(feature.name.as_str(), role)).copied();
        features.push(feature_to_json(feature, role, field, inferred));
    }
    for field in schema.fields() {
        if matches!(role_of(field), Some(Role::Record | Role::Unset)) {
            features.push(column_to_json(field));
        }
    }
    json!({"record_type": record_type.name(), "records": summary.records(), "features": features})
}

/// The columns of a schema, and the fields of the examples of a list, by feature name and role.
pub fn columns_of(schema: &Schema) -> HashMap<(&str, Role), &Field> {
    let columns = schema
        .fields()
        .iter()
        .filter_map(|field| Some((role_of(field)?, field)));
    let examples = schema
        .fields()
        .iter()
        .filter_map(|field| fields_of_examples(field))
        .flatten();
    let of_examples = examples.map(|field| (Role::Examples, field));
    columns
        .chain(of_examples)
        .map(|(role, field)| ((feature_of(field), role), field.as_ref()))
        .collect()
}

/// The JSON of a column without a feature: raw records, or names of features without a kind.
fn column_to_json(field: &Field) -> Value {
    let role = role_of(field).map(Role::name);
    json!({"name": field.name(), "role": role, "arrow": type_name(field.data_type())})
}

fn feature_to_json(
    feature: &FeatureSummary,
    role: Role,
    field: Option<&Field>,
    inferred: &Inferred,
) -> Value {
    let mut json = Map::new();
    json.insert("name".to_owned(), json!(feature.name));
    if let Some(field) = field.filter(|field| *field.name() != feature.name) {
        json.insert("column".to_owned(), json!(field.name()));
    }
    json.insert("role".to_owned(), json!(role.name()));
    json.insert("kind".to_owned(), json!(feature.kind().map(Kind::name)));
    let arrow = field.map(|field| type_name(field.data_type()));
    json.insert("arrow".to_owned(), json!(arrow));
    json.insert("present".to_owned(), json!(feature.present));
    let instances = inferred.summary.instances(feature.role);
    let missing = instances.saturating_sub(feature.present);
    json.insert("missing".to_owned(), json!(missing));
    json.insert("unset".to_owned(), json!(feature.unset));
    if let Some((min, max)) = feature.steps {
        json.insert("steps".to_owned(), json!([min, max]));
    }
    if feature.is_mixed() {
        let mut kinds = Map::new();
        for (kind, seen) in feature.kinds() {
            let mut json = kind_to_json(kind, seen);
            json.insert("first".to_owned(), place_to_json(seen.first, inferred));
            kinds.insert(kind.name().to_owned(), Value::Object(json));
        }
        json.insert("kinds".to_owned(), Value::Object(kinds));
    } else if let Some((kind, seen)) = feature.kinds().next() {
        json.extend(kind_to_json(kind, seen));
    }
    Value::Object(json)
}

fn kind_to_json(kind: Kind, seen: &KindSummary) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("lists".to_owned(), json!(seen.lists));
    json.insert("lengths".to_owned(), json!([seen.min_len, seen.max_len]));
    json.insert("values".to_owned(), json!(seen.values));
    if kind == Kind::Bytes {
        json.insert("utf8".to_owned(), json!(seen.utf8));
        json.insert("bytes".to_owned(), json!(seen.bytes));
    }
    json
}

fn place_to_json(place: Place, inferred: &Inferred) -> Value {
    let file = inferred.names.get(place.shard as usize);
    json!({"file": file, "record": place.record, "offset": place.offset})
}

/// Reads a schema from JSON.
///
/// # Errors
/// JSON that is not as the documentation of this module describes.
pub fn from_json(json: &Value) -> Result<SchemaRef> {
    let name = text(json, "record_type", "the schema")?;
    let record_type = RecordType::from_name(name).ok_or_else(|| {
        invalid(format!(
            "record_type: expected example, sequence-example, example-list or raw, found {name:?}"
        ))
    })?;
    let features = json.get("features").and_then(Value::as_array);
    let features = features.ok_or_else(|| invalid("expected a list `features`"))?;
    let mut fields: Vec<Field> = Vec::new();
    let mut names = HashSet::new();
    for feature in features {
        if let Some(field) = field_from_json(feature, record_type)? {
            if !names.insert(field.name().clone()) {
                return Err(invalid(format!(
                    "two columns have the name {:?}",
                    field.name()
                )));
            }
            fields.push(field);
        }
    }
    // The order of inference: by name, and tfarrow's own column last.
    fields.sort_by_cached_key(|field| (role_of(field) == Some(Role::Unset), field.name().clone()));
    match record_type {
        RecordType::Raw => Ok(raw_schema(Values::Binary)),
        RecordType::Message => Err(invalid(
            "record_type: the columns of messages follow from their descriptors",
        )),
        RecordType::Example | RecordType::SequenceExample => {
            Ok(with_record_type(fields, record_type))
        }
        RecordType::ExampleList => Ok(with_record_type(with_examples(fields), record_type)),
    }
}

/// The fields of the context, and the list of examples with the other fields.
fn with_examples(fields: Vec<Field>) -> Vec<Field> {
    let mut context = Vec::new();
    let mut examples = Vec::new();
    for field in fields {
        if role_of(&field) == Some(Role::Examples) {
            let mut metadata = field.metadata().clone();
            metadata.insert(ROLE.to_owned(), Role::Feature.name().to_owned());
            examples.push(field.with_metadata(metadata));
        } else {
            context.push(field);
        }
    }
    context.push(examples_field(examples.into(), &context));
    context
}

/// The column of a feature; `None` if it has no column.
fn field_from_json(json: &Value, record_type: RecordType) -> Result<Option<Field>> {
    let feature = text(json, "name", "a feature")?;
    let place = format!("feature {feature:?}");
    if let Some(kinds) = json
        .get("kinds")
        .and_then(Value::as_object)
        .filter(|_| json["arrow"].is_null())
    {
        let kinds: Vec<_> = kinds.keys().map(String::as_str).collect();
        return Err(invalid(format!(
            "{place} has more than one kind ({}): set `arrow`, or remove the feature",
            kinds.join(", ")
        )));
    }
    if json.get("arrow").is_none_or(Value::is_null) {
        return Ok(None);
    }
    let arrow = text(json, "arrow", &place)?;
    let (shape, values) = parse_type(arrow).ok_or_else(|| {
        invalid(format!(
            "{place}: arrow: expected int64, float32, binary or utf8, a list<..> of one of these or, for a feature list, a \
             list<list<..>>, found {arrow:?}"
        ))
    })?;
    let role = role_from_json(json, &place, shape, record_type)?;
    let kind = json.get("kind").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| Kind::from_name(kind) != Some(values.kind())) {
        return Err(invalid(format!("{place}: a {kind} cannot be {arrow}")));
    }
    let column = json
        .get("column")
        .and_then(Value::as_str)
        .unwrap_or(feature);
    let field = Column {
        feature: feature.to_owned(),
        role,
        shape,
        values,
    }
    .field(column);
    // The examples of a list are decoded as records of their own.
    if role != Role::Examples {
        Column::try_new(&field, record_type).map_err(SchemaJsonError::Column)?;
    }
    Ok(Some(field))
}

fn role_from_json(
    json: &Value,
    place: &str,
    shape: Shape,
    record_type: RecordType,
) -> Result<Role> {
    let Some(name) = json.get("role").and_then(Value::as_str) else {
        return Ok(match (record_type, shape) {
            (RecordType::Raw | RecordType::Message, _) => Role::Record,
            (RecordType::Example, _) => Role::Feature,
            (RecordType::SequenceExample, Shape::Steps) => Role::Sequence,
            (RecordType::SequenceExample | RecordType::ExampleList, _) => Role::Context,
        });
    };
    let roles: &[Role] = match record_type {
        RecordType::Raw => &[Role::Record],
        RecordType::Message => &[],
        RecordType::Example => &[Role::Feature, Role::Unset],
        RecordType::SequenceExample => &[Role::Context, Role::Sequence, Role::Unset],
        RecordType::ExampleList => &[Role::Context, Role::Examples, Role::Unset],
    };
    let role = roles.iter().find(|role| role.name() == name).copied();
    role.ok_or_else(|| {
        invalid(format!(
            "{place}: {} records have no role {name:?}",
            record_type.name()
        ))
    })
}

fn text<'a>(json: &'a Value, key: &str, place: &str) -> Result<&'a str> {
    json.get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| invalid(format!("{place}: expected a string `{key}`")))
}

fn invalid(message: impl Into<String>) -> SchemaJsonError {
    SchemaJsonError::Unexpected(message.into())
}

/// The name of a column's type, such as `int64`, `list<float32>` or `list<list<utf8>>`.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::List(item) => format!("list<{}>", type_name(item.data_type())),
        DataType::Int64 => "int64".to_owned(),
        DataType::Float32 => "float32".to_owned(),
        DataType::Binary | DataType::BinaryView => "binary".to_owned(),
        DataType::Utf8 | DataType::Utf8View => "utf8".to_owned(),
        DataType::Struct(fields) => {
            // Names are from data, and may have control characters.
            let mut types = Vec::with_capacity(fields.len());
            for field in fields {
                let name = field.name().escape_debug();
                types.push(format!("{name}: {}", type_name(field.data_type())));
            }
            format!("struct<{}>", types.join(", "))
        }
        other
            if other.is_numeric()
                || matches!(other, DataType::Boolean | DataType::Date32 | DataType::Null) =>
        {
            other.to_string().to_lowercase()
        }
        other => other.to_string(),
    }
}

fn parse_type(name: &str) -> Option<(Shape, Values)> {
    let (shape, value) = match item_type(name) {
        None => (Shape::Scalar, name),
        Some(list) => match item_type(list) {
            None => (Shape::List, list),
            Some(value) => (Shape::Steps, value),
        },
    };
    let values = match value.trim() {
        "int64" => Values::Int64,
        "float32" => Values::Float32,
        "binary" => Values::Binary,
        "utf8" => Values::Utf8,
        _ => return None,
    };
    Some((shape, values))
}

/// The name of the type of the items, if `name` is that of a list.
fn item_type(name: &str) -> Option<&str> {
    name.trim().strip_prefix("list<")?.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn column(feature: &str, role: Role, shape: Shape, values: Values, name: &str) -> Field {
        Column {
            feature: feature.to_owned(),
            role,
            shape,
            values,
        }
        .field(name)
    }

    fn check(fields: Vec<Field>, record_type: RecordType, json: Value) {
        let schema = with_record_type(fields, record_type);
        assert_eq!(from_json(&json).unwrap(), schema);
    }

    #[test]
    fn optional_keys_may_be_missing() {
        let fields = vec![
            column("a", Role::Feature, Shape::Scalar, Values::Int64, "a"),
            column("b", Role::Feature, Shape::List, Values::Utf8, "b"),
        ];
        let json = json!({"record_type": "example", "features": [
            {"name": "a", "arrow": "int64"}, {"name": "b", "arrow": "list<utf8>"}, {"name": "c", "arrow": null}]});
        check(fields, RecordType::Example, json);
    }

    #[test]
    fn columns_keep_their_names_and_roles() {
        let fields = vec![
            column("a", Role::Context, Shape::List, Values::Float32, "a"),
            column(
                "a",
                Role::Sequence,
                Shape::Steps,
                Values::Binary,
                "feature_lists/a",
            ),
            column(
                "_tfarrow_unset",
                Role::Unset,
                Shape::List,
                Values::Utf8,
                "_tfarrow_unset",
            ),
        ];
        // Columns are sorted by name, with tfarrow's own last, independently of the order in the
        // JSON.
        let json = json!({"record_type": "sequence-example", "features": [
            {"name": "_tfarrow_unset", "role": "unset", "arrow": "list<utf8>"},
            {"name": "a", "column": "feature_lists/a", "role": "sequence", "arrow": "list<list<binary>>"},
            {"name": "a", "role": "context", "kind": "float_list", "arrow": "list<float32>"}]});
        check(fields, RecordType::SequenceExample, json);
    }

    #[test]
    fn errors_name_the_feature_and_the_key() {
        let feature = |feature: Value| json!({"record_type": "example", "features": [feature]});
        let cases = [
            (json!([]), "the schema: expected a string `record_type`"),
            (
                json!({"record_type": "x"}),
                "record_type: expected example, sequence-example, example-list or raw, found \"x\"",
            ),
            (
                json!({"record_type": "example"}),
                "expected a list `features`",
            ),
            (feature(json!({})), "a feature: expected a string `name`"),
            (
                feature(json!({"name": "a", "arrow": "int64", "kind": "float_list"})),
                "feature \"a\": a float_list cannot be int64",
            ),
            (
                feature(json!({"name": "a", "arrow": "int64", "role": "sequence"})),
                "feature \"a\": example records have no role \"sequence\"",
            ),
            (
                feature(
                    json!({"name": "a", "arrow": null, "kinds": {"int64_list": {}, "float_list": {}}}),
                ),
                "feature \"a\" has more than one kind (int64_list, float_list): set `arrow`, or remove the feature",
            ),
        ];
        for (json, message) in cases {
            assert_eq!(from_json(&json).unwrap_err().to_string(), message);
        }
        let error = from_json(&feature(json!({"name": "a", "arrow": "int32"})))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("feature \"a\": arrow: expected int64, float32")
                && error.ends_with("found \"int32\""),
            "{error}"
        );
    }

    #[test]
    fn type_names_round_trip() {
        for name in ["int64", "list<float32>", "list<list<utf8>>", "binary"] {
            let (shape, values) = parse_type(name).unwrap();
            let column = Column {
                feature: String::new(),
                role: Role::Feature,
                shape,
                values,
            };
            assert_eq!(type_name(&column.data_type()), name);
        }
        assert_eq!(
            type_name(&DataType::List(Arc::new(Field::new_list_field(
                DataType::Utf8View,
                true
            )))),
            "list<utf8>"
        );
    }
}
