//! Schemas in files, such as a `schema.pbtxt`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{TextError, proto::Schema, schema_from_text};

/// The reasons why a file is not read as a schema. The path is that of the file.
#[derive(Debug, Error)]
pub enum SchemaFileError {
    /// The file cannot be read.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The file is not text.
    #[error("{} is binary, and not a schema in text format", .0.display())]
    Binary(PathBuf),
    /// The text is not a schema.
    #[error("{} is not a schema in text format", .0.display())]
    Text(PathBuf, #[source] TextError),
}

/// Reads a schema from a file in text format.
///
/// # Errors
/// The file cannot be read, or is not a schema in text format.
pub fn read_schema(path: &Path) -> Result<Schema, SchemaFileError> {
    let content = fs::read(path).map_err(|error| SchemaFileError::Io(path.to_owned(), error))?;
    parse_schema(content, path)
}

/// Parses the content of the file `path` as a schema in text format.
///
/// # Errors
/// The content is not a schema in text format.
pub fn parse_schema(content: Vec<u8>, path: &Path) -> Result<Schema, SchemaFileError> {
    let Ok(text) = String::from_utf8(content) else {
        return Err(SchemaFileError::Binary(path.to_owned()));
    };
    schema_from_text(&text).map_err(|error| SchemaFileError::Text(path.to_owned(), error))
}
