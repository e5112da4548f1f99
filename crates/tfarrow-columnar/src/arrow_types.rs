//! Types of Arrow that the `arrow` crates do not have, such as the integers of 128 bits that Polars
//! writes. The crates panic on them, so that they are recognized before.

use arrow_ipc::{Field, Schema, Type, root_as_message};
use base64::{Engine, engine::general_purpose::STANDARD};
use parquet::{arrow::ARROW_SCHEMA_META_KEY, file::metadata::ParquetMetaData};

/// Checks the types of the schema of Arrow that the metadata of a Parquet file may have. The
/// library reports a schema that is not valid.
///
/// # Errors
/// A column of another type, with its name.
pub fn check_stored_types(metadata: &ParquetMetaData) -> Result<(), String> {
    let key_values = metadata
        .file_metadata()
        .key_value_metadata()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let stored = key_values
        .iter()
        .find(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    let Some(text) = stored.and_then(|pair| pair.value.as_ref()) else {
        return Ok(());
    };
    let Ok(bytes) = STANDARD.decode(text) else {
        return Ok(());
    };
    check_message_types(&bytes)
}

/// Checks the types of the schema in a message of Arrow, which may be after a marker and its
/// length, as at the start of a stream. The library reports a message that is not valid.
///
/// # Errors
/// As [`check_stored_types`].
pub fn check_message_types(bytes: &[u8]) -> Result<(), String> {
    let message = if bytes.starts_with(&[0xff; 4]) {
        bytes.get(8..)
    } else {
        Some(bytes)
    };
    let Ok(message) = root_as_message(message.unwrap_or_default()) else {
        return Ok(());
    };
    message.header_as_schema().map_or(Ok(()), check_types)
}

/// Checks the types of a schema.
///
/// # Errors
/// As [`check_stored_types`].
pub(crate) fn check_types(schema: Schema<'_>) -> Result<(), String> {
    for field in schema.fields().into_iter().flatten() {
        if let Some(found) = unknown_type(field) {
            let name = field.name().unwrap_or_default();
            return Err(format!("column {name:?} has {found}, which cannot be read"));
        }
    }
    Ok(())
}

/// The description of a type in a field that the crates do not have.
fn unknown_type(field: Field<'_>) -> Option<String> {
    if let Some(found) = field
        .children()
        .into_iter()
        .flatten()
        .find_map(unknown_type)
    {
        return Some(found);
    }
    match field.type_type() {
        Type::Int => {
            let bits = field.type_as_int()?.bitWidth();
            (!matches!(bits, 8 | 16 | 32 | 64)).then(|| format!("integers of {bits} bits"))
        }
        other => other
            .variant_name()
            .is_none()
            .then(|| "values of a type of a newer version of Arrow".to_owned()),
    }
}
