//! Protobuf's text format for the messages of TensorFlow Metadata (`schema.pbtxt` and others).

use std::{
    collections::HashMap,
    fmt::{self, Write},
    sync::LazyLock,
};

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MapKey, MessageDescriptor, Value};

use crate::proto::{Anomalies, DatasetFeatureStatisticsList, Schema};

/// The descriptors of the messages, compiled from `proto/` by the build script.
static MESSAGES: LazyLock<Option<DescriptorPool>> = LazyLock::new(|| {
    DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/metadata.bin")).as_slice())
        .ok()
});

/// An error of parsing or printing the text format.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TextError(Box<dyn std::error::Error + Send + Sync>);

/// Returns the descriptor of a message of TensorFlow Metadata.
fn descriptor(name: &str) -> Result<MessageDescriptor, TextError> {
    let name = format!("tensorflow.metadata.v0.{name}");
    let found = MESSAGES
        .as_ref()
        .and_then(|messages| messages.get_message_by_name(&name));
    found.ok_or_else(|| TextError(format!("no description of {name}").into()))
}

/// Largest depth of nested messages. The parser is recursive, so that its stack bounds the depth.
const DEEPEST: usize = 100;

/// Parses a text as the message `name`.
fn parse<M: Message + Default>(name: &str, text: &str) -> Result<M, TextError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if depth(text) > DEEPEST {
        return Err(TextError(
            format!("messages are nested more than {DEEPEST} deep").into(),
        ));
    }
    let message = DynamicMessage::parse_text_format(descriptor(name)?, text)
        .map_err(|error| TextError(error.into()))?;
    M::decode(message.encode_to_vec().as_slice()).map_err(|error| TextError(error.into()))
}

/// Returns the largest number of braces that are open at once, without those in strings and
/// comments.
fn depth(text: &str) -> usize {
    let mut open = 0_usize;
    let mut deepest = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '{' | '<' => open += 1,
            '}' | '>' => open = open.saturating_sub(1),
            '#' => drop(rest.find(|c| *c == '\n')),
            quote @ ('"' | '\'') => {
                while let Some(c) = rest.next().filter(|c| *c != quote) {
                    if c == '\\' {
                        rest.next();
                    }
                }
            }
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Prints a schema in the format of `schema.pbtxt`.
///
/// # Errors
/// [`TextError`] if the compiled descriptors do not match the message, which is a bug of this
/// crate.
pub fn schema_to_text(schema: &Schema) -> Result<String, TextError> {
    to_text("Schema", schema)
}

/// Prints anomalies in the format that `tfdv.load_anomalies_text` reads.
///
/// # Errors
/// [`TextError`] if the compiled descriptors do not match the message, which is a bug of this
/// crate.
pub fn anomalies_to_text(anomalies: &Anomalies) -> Result<String, TextError> {
    to_text("Anomalies", anomalies)
}

/// Prints a message by its descriptor.
fn to_text(name: &str, message: &impl Message) -> Result<String, TextError> {
    let message = DynamicMessage::decode(descriptor(name)?, message.encode_to_vec().as_slice());
    let message = message.map_err(|error| TextError(error.into()))?;
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = print(&message, 0, &mut text);
    Ok(text)
}

/// Prints a message as TensorFlow does: one field a line, and each item of a repeated field as a
/// field of its own, so that schemas can be compared line by line.
fn print(message: &DynamicMessage, depth: usize, out: &mut String) -> fmt::Result {
    for (field, value) in message.fields() {
        let name = field.name();
        let kind = field.kind();
        match value {
            Value::List(items) => items
                .iter()
                .try_for_each(|item| print_field(name, &kind, item, depth, out))?,
            Value::Map(entries) => print_map(name, &kind, entries, depth, out)?,
            value => print_field(name, &kind, value, depth, out)?,
        }
    }
    Ok(())
}

/// Prints a field, or an item of a repeated one, on a line of its own.
fn print_field(
    name: &str,
    kind: &Kind,
    value: &Value,
    depth: usize,
    out: &mut String,
) -> fmt::Result {
    let indent = "  ".repeat(depth);
    match (value, kind) {
        (Value::Message(message), _) => {
            writeln!(out, "{indent}{name} {{")?;
            print(message, depth + 1, out)?;
            writeln!(out, "{indent}}}")
        }
        (Value::EnumNumber(number), Kind::Enum(names)) => match names.get_value(*number) {
            Some(word) => writeln!(out, "{indent}{name}: {}", word.name()),
            None => writeln!(out, "{indent}{name}: {number}"),
        },
        (value, _) => writeln!(out, "{indent}{name}: {value}"),
    }
}

/// Prints the entries of a map, ordered by key.
fn print_map(
    name: &str,
    kind: &Kind,
    entries: &HashMap<MapKey, Value>,
    depth: usize,
    out: &mut String,
) -> fmt::Result {
    let Kind::Message(entry) = kind else {
        return Ok(());
    };
    let value_kind = entry.map_entry_value_field().kind();
    let mut entries: Vec<_> = entries
        .iter()
        .map(|(key, value)| (Value::from(key.clone()).to_string(), value))
        .collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let indent = "  ".repeat(depth);
    for (key, value) in entries {
        writeln!(out, "{indent}{name} {{\n{indent}  key: {key}")?;
        print_field("value", &value_kind, value, depth + 1, out)?;
        writeln!(out, "{indent}}}")?;
    }
    Ok(())
}

/// Parses a schema from the text of a `schema.pbtxt`.
///
/// # Errors
/// [`TextError`] if the text is not valid text format or not a `Schema`, or if messages are nested
/// more than 100 deep.
pub fn schema_from_text(text: &str) -> Result<Schema, TextError> {
    parse("Schema", text)
}

/// Parses statistics from text.
///
/// # Errors
/// [`TextError`] if the text is not valid text format or not a `DatasetFeatureStatisticsList`, or
/// if messages are nested more than 100 deep.
pub fn statistics_from_text(text: &str) -> Result<DatasetFeatureStatisticsList, TextError> {
    parse("DatasetFeatureStatisticsList", text)
}
