//! Protobuf messages of any type, by their descriptors: the Arrow schema of a message type, and the
//! plan by which messages are decoded and encoded.
//!
//! ```text
//! FileDescriptorSet, name ─▶ MessageType ─┬▶ fields ─▶ Schema                      the descriptors are in its metadata
//!                                         └▶ plan   ─▶ decode/column/message/, encode/message.rs
//! ```
//!
//! | field | Arrow |
//! |---|---|
//! | number, `bool` | the number of the same width, `Boolean` |
//! | `string`, `bytes` | `Utf8`, `Binary` |
//! | `enum` | `Utf8`: the name of the value, or a number that has no name, in decimal |
//! | message, group | `Struct` of its fields |
//! | repeated | `List` |
//! | map | `Map` |
//! | member of a `oneof` | a nullable column; at most one of a `oneof` has a value |
//! | `google.protobuf.Timestamp` | `Timestamp(ns, "UTC")`, or with the unit of microseconds |
//! | `google.protobuf.Duration` | `Duration(ns)` |
//! | `google.protobuf.Int32Value` and the other wrappers | the value, nullable |
//! | message without fields; message nested in itself deeper than [`Limits::recursion`](crate::Limits::recursion) | `Binary`: the serialized message |
//! | message deeper than readers of Arrow schemas accept (`MAX_DEPTH` in `plan.rs`) | `Binary`: the serialized message |
//!
//! A field with presence is nullable: `optional`, `required`, members of a `oneof`, and messages. A
//! field without presence has the default of its type where the message does not have it, as
//! protobuf defines it. Defaults that a proto2 file declares are not filled in: null means that the
//! field is absent.

mod definition_count;
mod descriptor_set;
mod fields;
mod message_type;
mod plan;
mod similar_names;

pub(crate) use self::plan::{
    Arity, BytesWire, ColumnOfField, EnumNames, FieldPlan, MessageForm, MessagePlan, NumberType,
    NumberWire, ValuePlan,
};
pub use self::{
    definition_count::DefinitionCount, descriptor_set::descriptor_pool, message_type::MessageType,
};
