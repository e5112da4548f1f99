//! Protobuf messages of any type, by their descriptors: the Arrow schema of a message type, and the
//! plan by which messages are decoded and encoded.
//!
//! ```text
//! FileDescriptorSet, name ─▶ MessageType ─┬▶ fields ─▶ Schema                      the descriptors are in its metadata
//!                                         └▶ planning ─▶ plan ─▶ decode/column/message/, encode/message.rs
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

#[cfg(feature = "messages")]
mod definition_count;
#[cfg(feature = "messages")]
mod descriptor_set;
#[cfg(feature = "messages")]
mod fields;
#[cfg(feature = "messages")]
mod message_type;
#[cfg_attr(
    not(feature = "messages"),
    expect(dead_code, reason = "plans are made from descriptors")
)]
mod plan;
#[cfg(feature = "messages")]
mod planning;
#[cfg(feature = "messages")]
mod similar_names;

pub(crate) use self::plan::{
    Arity, BytesWire, ColumnOfField, EnumNames, FieldPlan, MessageForm, MessagePlan, NumberType,
    NumberWire, ValuePlan,
};
#[cfg(feature = "messages")]
pub(crate) use self::planning::plan_of_schema;
#[cfg(feature = "messages")]
pub use self::{
    definition_count::DefinitionCount, descriptor_set::descriptor_pool, message_type::MessageType,
};

/// Reports that descriptors are not read in this build.
#[cfg(not(feature = "messages"))]
pub(crate) fn plan_of_schema(
    _: &arrow_schema::Schema,
    _: &arrow_schema::Fields,
) -> crate::Result<Option<MessagePlan>> {
    Err(crate::Error::usage(crate::ErrorKind::unsupported(
        "messages of other types need the feature `messages` of tfarrow-codec",
    )))
}
