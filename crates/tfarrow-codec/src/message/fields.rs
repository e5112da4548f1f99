//! The Arrow fields of a message type.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use prost_reflect::{FieldDescriptor, Kind as ProtoKind, MessageDescriptor};

use super::{
    plan::{MAX_DEPTH, MessageForm},
    similar_names::name_of,
};
use crate::{Error, ErrorKind, Limit, Limits, Result};

/// The name of the time zone of timestamps.
pub(super) const UTC: &str = "UTC";
/// The names of the parts of a map, as Arrow's builders have them.
const ENTRIES: &str = "entries";
const KEYS: &str = "keys";
const VALUES: &str = "values";

/// The depth of a map of numbers in a struct, in which no message is nested: the field, its
/// entries, and their parts.
const FLAT_DEPTH: usize = 3;

/// Returns the fields of a message, in the order of its definition.
///
/// # Errors
/// [`ErrorKind::ManyNames`] for more columns, nested ones included, than [`Limits::features`].
pub(super) fn of_message(message: &MessageDescriptor, limits: &Limits) -> Result<Vec<Field>> {
    FieldMaker {
        limits,
        columns: 0,
        path: Vec::new(),
    }
    .message(message, 1)
}

/// Makes fields, and counts them.
struct FieldMaker<'l> {
    limits: &'l Limits,
    /// Number of columns so far, nested ones included.
    columns: usize,
    /// The full names of the messages around the current one, and its own.
    path: Vec<String>,
}

impl FieldMaker<'_> {
    /// The fields of a message, which have the given depth.
    fn message(&mut self, message: &MessageDescriptor, depth: usize) -> Result<Vec<Field>> {
        self.path.push(message.full_name().to_owned());
        let fields = message
            .fields()
            .map(|field| self.field(&field, depth))
            .collect();
        self.path.pop();
        fields
    }

    fn field(&mut self, field: &FieldDescriptor, depth: usize) -> Result<Field> {
        self.columns += 1;
        let Limits {
            features: columns,
            name_bytes,
            ..
        } = *self.limits;
        if self.columns > columns {
            return Err(Error::usage(ErrorKind::ManyNames {
                columns,
                name_bytes,
                passed: Limit::Columns,
            }));
        }
        let is_list = field.is_list();
        let value = match field.kind() {
            ProtoKind::Message(entry) if field.is_map() => self.map(&entry, depth)?,
            kind => self.value(&kind, depth + usize::from(is_list))?,
        };
        let data_type = if is_list {
            DataType::List(Arc::new(Field::new_list_field(value, true)))
        } else {
            value
        };
        Ok(Field::new(
            name_of(field),
            data_type,
            field.supports_presence(),
        ))
    }

    /// The type of a map at a depth, given the message of its entries.
    fn map(&mut self, entry: &MessageDescriptor, depth: usize) -> Result<DataType> {
        let key = Field::new(
            KEYS,
            self.value(&entry.map_entry_key_field().kind(), depth + 2)?,
            false,
        );
        let value = Field::new(
            VALUES,
            self.value(&entry.map_entry_value_field().kind(), depth + 2)?,
            true,
        );
        let entries = Field::new(
            ENTRIES,
            DataType::Struct(Fields::from(vec![key, value])),
            false,
        );
        Ok(DataType::Map(Arc::new(entries), false))
    }

    /// The type of one value, in a field of the given depth.
    fn value(&mut self, kind: &ProtoKind, depth: usize) -> Result<DataType> {
        Ok(match kind {
            ProtoKind::Double => DataType::Float64,
            ProtoKind::Float => DataType::Float32,
            ProtoKind::Int32 | ProtoKind::Sint32 | ProtoKind::Sfixed32 => DataType::Int32,
            ProtoKind::Int64 | ProtoKind::Sint64 | ProtoKind::Sfixed64 => DataType::Int64,
            ProtoKind::Uint32 | ProtoKind::Fixed32 => DataType::UInt32,
            ProtoKind::Uint64 | ProtoKind::Fixed64 => DataType::UInt64,
            ProtoKind::Bool => DataType::Boolean,
            ProtoKind::String | ProtoKind::Enum(_) => DataType::Utf8,
            ProtoKind::Bytes => DataType::Binary,
            ProtoKind::Message(message) => self.nested(message, depth)?,
        })
    }

    /// The type of a nested message, in a field of the given depth.
    fn nested(&mut self, message: &MessageDescriptor, depth: usize) -> Result<DataType> {
        match MessageForm::of(message) {
            MessageForm::Timestamp => {
                return Ok(DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())));
            }
            MessageForm::Duration => return Ok(DataType::Duration(TimeUnit::Nanosecond)),
            MessageForm::Wrapper => {
                let value = message
                    .fields()
                    .next()
                    .map(|value| self.value(&value.kind(), depth));
                return value.unwrap_or(Ok(DataType::Binary));
            }
            MessageForm::Struct => {}
        }
        let around = self
            .path
            .iter()
            .filter(|name| *name == message.full_name())
            .count();
        let is_deep = depth + FLAT_DEPTH > MAX_DEPTH || self.path.len() >= self.limits.nesting;
        if is_deep || around >= self.limits.recursion.max(1) || message.fields().len() == 0 {
            return Ok(DataType::Binary);
        }
        Ok(DataType::Struct(self.message(message, depth + 1)?.into()))
    }
}
