//! The columns that a file says: a Parquet or Arrow file's own, or the JSON that `tfarrow schema` prints.

use std::path::Path;

use arrow_schema::SchemaRef;
use tfarrow_codec::schema::{with_views, without_exact};
use tfarrow_dataset::Contents;

use crate::{Error, Result, columnar, schema_json};

/// Reads the schema that `path` holds, with plain types for the view types.
///
/// # Errors
/// A file that cannot be read, or holds none of the three.
pub fn read_schema(path: &Path) -> Result<SchemaRef> {
    let schema = match columnar::schema(Contents::of(path)?, path, path)? {
        Some(schema) => schema,
        None => read_json(path)?,
    };
    // In which form records were is no part of what other records are decoded to.
    Ok(with_views(&without_exact(&schema), false))
}

fn read_json(path: &Path) -> Result<SchemaRef> {
    let wrong = |why: String| Error::Usage(format!("{}: not a schema: {why}", path.display()));
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let json = serde_json::from_slice(&text).map_err(|e| {
        wrong(format!("{e}; expected a Parquet file, an Arrow file, or the JSON of `tfarrow schema --format json`"))
    })?;
    schema_json::from_json(&json).map_err(|e| wrong(e.to_string()))
}
