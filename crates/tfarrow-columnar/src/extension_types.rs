//! Extension types of Arrow for annotations of Parquet that no Arrow type has.
//!
//! | Parquet | Arrow |
//! |---|---|
//! | UUID | `arrow.uuid` |
//! | JSON | `arrow.json` |
//! | VARIANT | `arrow.parquet.variant` |
//! | GEOMETRY, GEOGRAPHY | `geoarrow.wkb` with the coordinate system, and the algorithm of edges |
//!
//! The first three are [canonical extension types]; the last is defined by [GeoArrow].
//!
//! [canonical extension types]: https://arrow.apache.org/docs/format/CanonicalExtensions.html
//! [GeoArrow]: https://geoarrow.org/extension-types.html

use std::sync::Arc;

use arrow_schema::{
    DataType, Field, Schema, SchemaRef,
    extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY},
};
use parquet::{basic::LogicalType, schema::types::SchemaDescriptor};
use serde_json::{Value, json};

/// The coordinate system of shapes that state none, by Parquet's specification.
const DEFAULT_CRS: &str = "OGC:CRS84";

/// Adds the extension types of the columns that have none. Annotations within lists, structs and
/// maps have none.
pub(crate) fn with_extension_types(schema: &Schema, parquet: &SchemaDescriptor) -> SchemaRef {
    let mut fields = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema
        .fields()
        .iter()
        .zip(parquet.root_schema().get_fields())
    {
        let extension = column
            .get_basic_info()
            .logical_type_ref()
            .and_then(|logical| extension_of(logical, field));
        fields.push(match extension {
            Some(extension) if field.extension_type_name().is_none() => {
                Arc::new(with_extension(field, extension))
            }
            _ => Arc::clone(field),
        });
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The name of an extension type, and its metadata, which is empty or JSON.
type Extension = (&'static str, String);

/// The extension type of an annotation; `None` if there is none for the type of the field.
fn extension_of(logical: &LogicalType, field: &Field) -> Option<Extension> {
    match (logical, field.data_type()) {
        (LogicalType::Uuid, DataType::FixedSizeBinary(16)) => Some(("arrow.uuid", String::new())),
        (LogicalType::Json, DataType::Utf8 | DataType::LargeUtf8) => {
            Some(("arrow.json", String::new()))
        }
        (LogicalType::Variant(_), DataType::Struct(_)) => {
            Some(("arrow.parquet.variant", String::new()))
        }
        (LogicalType::Geometry(shape), DataType::Binary | DataType::LargeBinary) => {
            Some(wkb(shape.crs.as_deref(), None))
        }
        (LogicalType::Geography(shape), DataType::Binary | DataType::LargeBinary) => {
            let edges = shape
                .algorithm()
                .map(|algorithm| format!("{algorithm:?}").to_ascii_lowercase());
            Some(wkb(shape.crs.as_deref(), edges))
        }
        _ => None,
    }
}

/// Shapes in the well-known binary format. A coordinate system may be an identifier, or PROJJSON.
fn wkb(crs: Option<&str>, edges: Option<String>) -> Extension {
    let crs = crs.unwrap_or(DEFAULT_CRS);
    let crs = serde_json::from_str(crs)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::from(crs));
    let metadata = match edges {
        Some(edges) => json!({ "crs": crs, "edges": edges }),
        None => json!({ "crs": crs }),
    };
    ("geoarrow.wkb", metadata.to_string())
}

fn with_extension(field: &Field, (name, extension_metadata): Extension) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
    metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), extension_metadata);
    field.clone().with_metadata(metadata)
}
