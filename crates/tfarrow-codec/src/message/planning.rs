//! Plans from descriptors: which column has the values of which field.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use prost_reflect::{
    Cardinality, EnumDescriptor, FieldDescriptor, Kind as ProtoKind, MessageDescriptor,
};

use super::{
    message_type::MessageType,
    plan::{
        Arity, BytesWire, ColumnOfField, EnumNames, FieldPlan, MAX_DEPTH, MessageForm, MessagePlan,
        NumberType, NumberWire, ValuePlan,
    },
    similar_names::name_of,
};
use crate::{
    Error, ErrorKind, Result,
    example::wire::{FIXED32, FIXED64, LEN, START_GROUP, VARINT},
    schema::Values,
};

/// The names of the values of enums, by the full names of the enums.
type EnumTable = HashMap<String, Arc<EnumNames>>;

/// Held while descriptors are read to make a plan.
static READING: Mutex<()> = Mutex::new(());

/// Plans the columns of messages of the type in the metadata of a schema; `None` if it has none.
///
/// # Errors
/// The errors of [`MessageType::of_schema`], and [`ErrorKind::Unsupported`] for a column that the
/// message does not have, or whose type does not fit.
pub(crate) fn plan_of_schema(schema: &Schema, columns: &Fields) -> Result<Option<MessagePlan>> {
    // Descriptors take much more memory than a plan, and all threads of a scan begin at the
    // same time.
    let _one_at_a_time = READING.lock().unwrap_or_else(PoisonError::into_inner);
    match MessageType::of_schema(schema)? {
        Some(message) => MessagePlan::new(message.descriptor(), columns).map(Some),
        None => Ok(None),
    }
}

impl MessagePlan {
    /// Plans the columns of a message.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a column that the message does not have, or whose type does
    /// not fit.
    fn new(message: &MessageDescriptor, columns: &Fields) -> Result<Self> {
        Self::nested(message, columns, "", 0, &mut EnumTable::new())
    }

    fn nested(
        message: &MessageDescriptor,
        columns: &Fields,
        path: &str,
        depth: usize,
        enums: &mut EnumTable,
    ) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(unsupported(format!(
                "column {path:?}: structs are nested deeper than {MAX_DEPTH}"
            )));
        }
        let index_of = columns_of_fields(message, columns, path)?;
        let mut fields: Vec<_> = message.fields().collect();
        fields.sort_by_key(FieldDescriptor::number);
        let mut oneofs = Vec::new();
        let mut oneof_of = HashMap::new();
        for (index, oneof) in message.oneofs().enumerate() {
            oneofs.push(Vec::new());
            oneof_of.insert(oneof.name().to_owned(), index);
        }
        let mut plans = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let path = join(path, name_of(field));
            let oneof = field
                .containing_oneof()
                .and_then(|oneof| oneof_of.get(oneof.name()).copied());
            if let Some(members) = oneof.and_then(|oneof| oneofs.get_mut(oneof)) {
                members.push(at);
            }
            let index = index_of.get(name_of(field)).copied();
            let column = match index.and_then(|index| Some((index, columns.get(index)?))) {
                Some(column) => Some(ColumnOfField::new(field, column, &path, depth, enums)?),
                None => None,
            };
            let wire_type = wire_type(field);
            plans.push(FieldPlan {
                path,
                number: field.number(),
                wire_type,
                is_packable: field.is_list() && !matches!(wire_type, LEN | START_GROUP),
                oneof,
                column,
            });
        }
        Ok(Self {
            name: message.full_name().into(),
            fields: plans,
            extensions: message.extension_ranges().collect(),
            oneofs,
            writes_defaults: false,
            columns: columns.clone(),
        })
    }

    /// Sets the values of all fields to their defaults where the wire does not have them.
    fn implicit(mut self) -> Self {
        for column in self
            .fields
            .iter_mut()
            .filter_map(|field| field.column.as_mut())
        {
            column.arity = Arity::Implicit;
        }
        self
    }
}

/// Returns the wire type of a value of a field.
fn wire_type(field: &FieldDescriptor) -> u8 {
    match field.kind() {
        ProtoKind::Double | ProtoKind::Fixed64 | ProtoKind::Sfixed64 => FIXED64,
        ProtoKind::Float | ProtoKind::Fixed32 | ProtoKind::Sfixed32 => FIXED32,
        ProtoKind::Message(_) if field.is_group() => START_GROUP,
        ProtoKind::String | ProtoKind::Bytes | ProtoKind::Message(_) => LEN,
        ProtoKind::Int32
        | ProtoKind::Int64
        | ProtoKind::Uint32
        | ProtoKind::Uint64
        | ProtoKind::Sint32
        | ProtoKind::Sint64
        | ProtoKind::Bool
        | ProtoKind::Enum(_) => VARINT,
    }
}

impl ColumnOfField {
    /// Plans the column with an index.
    fn new(
        field: &FieldDescriptor,
        (index, column): (usize, &FieldRef),
        path: &str,
        depth: usize,
        enums: &mut EnumTable,
    ) -> Result<Self> {
        let misfit = || {
            let name = field.full_name();
            let data_type = column.data_type();
            unsupported(format!(
                "column {path:?}: the field {name} is not read as, or written from, {data_type}"
            ))
        };
        let (arity, value_type) = match column.data_type() {
            DataType::Map(entries, _) if field.is_map() => (Arity::Map, entries.data_type()),
            DataType::List(item) if field.is_list() => (
                Arity::Repeated {
                    packed: field.is_packed(),
                },
                item.data_type(),
            ),
            _ if field.is_list() || field.is_map() => return Err(misfit()),
            value if field.supports_presence() => (Arity::Optional, value),
            value => (Arity::Implicit, value),
        };
        let value = match (field.kind(), arity, value_type) {
            (ProtoKind::Message(entry), Arity::Map, DataType::Struct(parts)) => {
                map_entry(&entry, parts, path, depth, enums)?
            }
            (_, Arity::Map, _) => return Err(misfit()),
            (kind, _, value_type) => {
                value(&kind, value_type, field.is_group(), path, depth, enums)?
                    .ok_or_else(misfit)?
            }
        };
        Ok(Self {
            index,
            data_type: column.data_type().clone(),
            arity,
            value,
        })
    }
}

/// Plans the entries of a map: messages with a key and a value. A part that the wire does not have,
/// has its default, which for a message is the empty message.
fn map_entry(
    entry: &MessageDescriptor,
    parts: &Fields,
    path: &str,
    depth: usize,
    enums: &mut EnumTable,
) -> Result<ValuePlan> {
    let names = [entry.map_entry_key_field(), entry.map_entry_value_field()];
    let mut renamed = Vec::with_capacity(names.len());
    for (part, field) in parts.iter().zip(&names) {
        renamed.push(part.as_ref().clone().with_name(name_of(field)));
    }
    let renamed = Fields::from(renamed);
    let plan = MessagePlan::nested(entry, &renamed, path, depth + 1, enums)?.implicit();
    // The columns keep the names that they have in the schema.
    let plan = Box::new(MessagePlan {
        columns: parts.clone(),
        writes_defaults: true,
        ..plan
    });
    Ok(ValuePlan::Message {
        plan,
        form: MessageForm::Struct,
        unit: TimeUnit::Nanosecond,
        zone: None,
        group: false,
    })
}

/// Plans a value; `None` if its type does not fit.
fn value(
    kind: &ProtoKind,
    data_type: &DataType,
    group: bool,
    path: &str,
    depth: usize,
    enums: &mut EnumTable,
) -> Result<Option<ValuePlan>> {
    let (wire, number, expected) = match kind {
        ProtoKind::Double => (NumberWire::Fixed64, NumberType::Float64, DataType::Float64),
        ProtoKind::Float => (NumberWire::Fixed32, NumberType::Float32, DataType::Float32),
        ProtoKind::Int32 => (NumberWire::Varint, NumberType::Int32, DataType::Int32),
        ProtoKind::Int64 => (NumberWire::Varint, NumberType::Int64, DataType::Int64),
        ProtoKind::Uint32 => (NumberWire::Varint, NumberType::UInt32, DataType::UInt32),
        ProtoKind::Uint64 => (NumberWire::Varint, NumberType::UInt64, DataType::UInt64),
        ProtoKind::Sint32 => (NumberWire::ZigZag32, NumberType::Int32, DataType::Int32),
        ProtoKind::Sint64 => (NumberWire::ZigZag64, NumberType::Int64, DataType::Int64),
        ProtoKind::Fixed32 => (NumberWire::Fixed32, NumberType::UInt32, DataType::UInt32),
        ProtoKind::Fixed64 => (NumberWire::Fixed64, NumberType::UInt64, DataType::UInt64),
        ProtoKind::Sfixed32 => (NumberWire::Fixed32, NumberType::Int32, DataType::Int32),
        ProtoKind::Sfixed64 => (NumberWire::Fixed64, NumberType::Int64, DataType::Int64),
        ProtoKind::Bool => (NumberWire::Varint, NumberType::Bool, DataType::Boolean),
        ProtoKind::Enum(descriptor) => {
            let Some(text @ (Values::Utf8 | Values::Utf8View)) = Values::from_data_type(data_type)
            else {
                return Ok(None);
            };
            let number = NumberType::Enum(names_of(descriptor, enums), text);
            return Ok(Some(ValuePlan::Number(NumberWire::Varint, number)));
        }
        ProtoKind::String | ProtoKind::Bytes => {
            return Ok(bytes(BytesWire::Value, kind, data_type));
        }
        ProtoKind::Message(message) => match (MessageForm::of(message), data_type) {
            (MessageForm::Struct, DataType::Binary | DataType::BinaryView) => {
                let wire = if group {
                    BytesWire::Group
                } else {
                    BytesWire::Message
                };
                return Ok(bytes(wire, kind, data_type));
            }
            (form, data_type) => {
                return nested(message, form, data_type, group, path, depth, enums);
            }
        },
    };
    Ok((expected == *data_type).then_some(ValuePlan::Number(wire, number)))
}

/// Plans a value of bytes, which is text only for a field of the kind `string`; `None` if its type
/// does not fit.
fn bytes(wire: BytesWire, kind: &ProtoKind, data_type: &DataType) -> Option<ValuePlan> {
    let values = Values::from_data_type(data_type)?;
    let is_text = matches!(values, Values::Utf8 | Values::Utf8View);
    let is_bytes = matches!(values, Values::Binary | Values::BinaryView);
    (is_bytes || is_text && *kind == ProtoKind::String).then_some(ValuePlan::Bytes(wire, values))
}

/// Returns the names of an enum, which all its fields share.
fn names_of(descriptor: &EnumDescriptor, enums: &mut EnumTable) -> Arc<EnumNames> {
    Arc::clone(
        enums
            .entry(descriptor.full_name().to_owned())
            .or_insert_with(|| Arc::new(EnumNames::new(descriptor))),
    )
}

/// Plans a message in one of its forms; `None` if its type does not fit. A message with the name of
/// a well-known type can be a struct of its fields as well.
fn nested(
    message: &MessageDescriptor,
    form: MessageForm,
    data_type: &DataType,
    group: bool,
    path: &str,
    depth: usize,
    enums: &mut EnumTable,
) -> Result<Option<ValuePlan>> {
    let (form, columns) = match (form, data_type) {
        (_, DataType::Struct(columns)) => (MessageForm::Struct, columns.clone()),
        (
            MessageForm::Timestamp,
            DataType::Timestamp(TimeUnit::Nanosecond | TimeUnit::Microsecond, Some(_)),
        )
        | (MessageForm::Duration, DataType::Duration(TimeUnit::Nanosecond)) => {
            let types = [DataType::Int64, DataType::Int32];
            (form, parts_of(message, &types))
        }
        (MessageForm::Wrapper, value) => (form, parts_of(message, std::slice::from_ref(value))),
        _ => return Ok(None),
    };
    let plan = MessagePlan::nested(message, &columns, path, depth + 1, enums)?;
    let plan = Box::new(if form == MessageForm::Struct {
        plan
    } else {
        plan.implicit()
    });
    let (unit, zone) = match data_type {
        DataType::Timestamp(unit, zone) => (*unit, zone.clone()),
        _ => (TimeUnit::Nanosecond, None),
    };
    Ok(Some(ValuePlan::Message {
        plan,
        form,
        unit,
        zone,
        group,
    }))
}

/// Returns the columns of the fields of a well-known type, which have these types.
fn parts_of(message: &MessageDescriptor, types: &[DataType]) -> Fields {
    let mut parts = Vec::with_capacity(types.len());
    for (field, data_type) in message.fields().zip(types) {
        parts.push(Field::new(name_of(&field), data_type.clone(), false));
    }
    Fields::from(parts)
}

impl EnumNames {
    fn new(descriptor: &EnumDescriptor) -> Self {
        let mut names = HashMap::new();
        let mut numbers = HashMap::new();
        for value in descriptor.values() {
            // Of several names for one number, the first one is used.
            names
                .entry(value.number())
                .or_insert_with(|| value.name().to_owned());
            numbers.insert(value.name().to_owned(), value.number());
        }
        // The values are ordered by their numbers, so that the first of them may be another.
        let default = if numbers.is_empty() {
            0
        } else {
            descriptor.default_value().number()
        };
        Self {
            names,
            numbers,
            default,
        }
    }
}

impl MessageForm {
    /// Returns the form of a message. Messages with the name of a well-known type that have other
    /// fields are structs.
    pub(crate) fn of(message: &MessageDescriptor) -> Self {
        if !message.full_name().starts_with("google.protobuf.") {
            return Self::Struct;
        }
        let kinds: Vec<FieldKind> = message
            .fields()
            .map(|field| (field.number(), field.kind(), field.cardinality()))
            .collect();
        match message.full_name() {
            "google.protobuf.Timestamp" if is_time(&kinds) => Self::Timestamp,
            "google.protobuf.Duration" if is_time(&kinds) => Self::Duration,
            "google.protobuf.DoubleValue"
            | "google.protobuf.FloatValue"
            | "google.protobuf.Int64Value"
            | "google.protobuf.UInt64Value"
            | "google.protobuf.Int32Value"
            | "google.protobuf.UInt32Value"
            | "google.protobuf.BoolValue"
            | "google.protobuf.StringValue"
            | "google.protobuf.BytesValue"
                if is_wrapper(&kinds) =>
            {
                Self::Wrapper
            }
            _ => Self::Struct,
        }
    }
}

/// The number, kind and cardinality of a field.
type FieldKind = (u32, ProtoKind, Cardinality);

/// Returns whether the fields are the seconds and nanoseconds of a time.
fn is_time(fields: &[FieldKind]) -> bool {
    let [
        (1, ProtoKind::Int64, seconds),
        (2, ProtoKind::Int32, nanoseconds),
    ] = fields
    else {
        return false;
    };
    *seconds != Cardinality::Repeated && *nanoseconds != Cardinality::Repeated
}

/// Returns whether the only field is the value of a wrapper.
fn is_wrapper(fields: &[FieldKind]) -> bool {
    let [(1, kind, cardinality)] = fields else {
        return false;
    };
    kind.as_message().is_none() && *cardinality != Cardinality::Repeated
}

/// Returns the index of the column of each field, by the name of the field.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a column without a field, and for a second column of a field.
fn columns_of_fields<'c>(
    message: &MessageDescriptor,
    columns: &'c Fields,
    path: &str,
) -> Result<HashMap<&'c str, usize>> {
    let fields: Vec<_> = message.fields().collect();
    let names: HashSet<_> = fields.iter().map(name_of).collect();
    let mut index_of = HashMap::new();
    for (index, column) in columns.iter().enumerate() {
        let name = column.name().as_str();
        let reason = if !names.contains(name) {
            "has no such field"
        } else if index_of.insert(name, index).is_some() {
            "has this field once, and it has two columns"
        } else {
            continue;
        };
        return Err(unsupported(format!(
            "column {:?}: the message {} {reason}",
            join(path, name),
            message.full_name()
        )));
    }
    Ok(index_of)
}

/// Joins the names of nested fields.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn unsupported(reason: String) -> Error {
    Error::usage(ErrorKind::unsupported(reason))
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost_types::{
        DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
        FileDescriptorProto, field_descriptor_proto::Type,
    };

    use super::*;

    /// An enum may have many values, and a message many fields of it.
    #[test]
    fn fields_of_one_enum_share_its_names() {
        let field = |number: i32| FieldDescriptorProto {
            name: Some(format!("f{number}")),
            number: Some(number),
            r#type: Some(Type::Enum.into()),
            type_name: Some("E".to_owned()),
            ..Default::default()
        };
        let value = EnumValueDescriptorProto {
            name: Some("A".to_owned()),
            number: Some(0),
            options: None,
        };
        let message = DescriptorProto {
            name: Some("M".to_owned()),
            field: vec![field(1), field(2)],
            ..Default::default()
        };
        let names = EnumDescriptorProto {
            name: Some("E".to_owned()),
            value: vec![value],
            ..Default::default()
        };
        let file = FileDescriptorProto {
            message_type: vec![message],
            enum_type: vec![names],
            ..Default::default()
        };
        let mut pool = prost_reflect::DescriptorPool::new();
        pool.add_file_descriptor_proto(file).unwrap();
        let columns = ["f1", "f2"].map(|name| Field::new(name, DataType::Utf8, true));
        let plan = MessagePlan::new(
            &pool.get_message_by_name("M").unwrap(),
            &Fields::from(columns.to_vec()),
        )
        .unwrap();
        let names = plan
            .fields
            .iter()
            .filter_map(|field| match &field.column.as_ref()?.value {
                ValuePlan::Number(_, NumberType::Enum(names, _)) => Some(Arc::clone(names)),
                _ => None,
            });
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), 2);
        assert!(Arc::ptr_eq(&names[0], &names[1]));
    }
}
