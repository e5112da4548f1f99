//! Schemas of data sets: as JSON, and in files. A schema file is the JSON of `tfarrow schema --format
//! json`, or a Parquet or Arrow file with the columns.

pub mod json;

use std::path::Path;

use arrow_schema::SchemaRef;
use tfarrow_codec::schema::{with_views, without_exact};
use tfarrow_columnar::schema;
use tfarrow_dataset::ShardFormat;

use crate::{Error, NotASchema, Result};

/// Reads the schema in the file `path`. View types are replaced by plain types.
///
/// # Errors
/// A file that cannot be read, or is neither Parquet, Arrow nor the JSON of a schema.
pub fn read_schema(path: &Path) -> Result<SchemaRef> {
    let schema = match schema(ShardFormat::sniff(path)?, path, path)? {
        Some(schema) => schema,
        None => read_json(path)?,
    };
    // The column of exact forms is about the records of that file only.
    Ok(with_views(&without_exact(&schema), false))
}

fn read_json(path: &Path) -> Result<SchemaRef> {
    let invalid = |source| Error::NotASchema {
        path: path.to_owned(),
        source,
    };
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let json = serde_json::from_slice(&text).map_err(|e| invalid(NotASchema::Json(e)))?;
    json::from_json(&json).map_err(|e| invalid(NotASchema::Schema(e)))
}
