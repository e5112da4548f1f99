//! The plan by which messages of one type are decoded to the columns of a schema, and encoded from
//! them.
//!
//! A plan has all fields of a message, so that a field that the type does not define is recognized.
//! Those without a column are skipped: a schema with fewer columns, also in its structs, makes
//! decoding cheaper.

use std::{collections::HashMap, ops::Range, sync::Arc};

use arrow_schema::{DataType, Fields, TimeUnit};

use crate::{example::wire::LEN, schema::Values};

/// Maximum depth of the fields of a schema: a column has depth 1, and an item of a list, an entry
/// of a map, a part of the entry and a field of a struct are one deeper each. Arrow's reader
/// rejects schemas of files that are deeper than 61, and pyarrow those that are deeper than 64; a
/// query may put some more levels around a column.
pub(super) const MAX_DEPTH: usize = 56;

/// The plan of a message type.
#[derive(Clone, Debug)]
pub(crate) struct MessagePlan {
    /// The full name of the message.
    pub(crate) name: Arc<str>,
    /// All fields, ordered by their numbers.
    pub(crate) fields: Vec<FieldPlan>,
    /// The numbers of extensions.
    pub(crate) extensions: Vec<Range<u32>>,
    /// The indices of the fields of each `oneof`.
    pub(crate) oneofs: Vec<Vec<usize>>,
    /// Whether fields without presence are written if they have the default of their type.
    pub(crate) writes_defaults: bool,
    /// The columns, each of which a field has.
    pub(crate) columns: Fields,
}

/// The plan of a field.
#[derive(Clone, Debug)]
pub(crate) struct FieldPlan {
    /// The name of the field, with those of the fields around it, such as `tracks.states.center_x`.
    pub(crate) path: String,
    /// The field number.
    pub(crate) number: u32,
    /// The wire type of a value.
    pub(crate) wire_type: u8,
    /// Whether the values may also be packed in one field.
    pub(crate) is_packable: bool,
    /// The index of its `oneof`, if it is a member of one.
    pub(crate) oneof: Option<usize>,
    /// The column of its values; `None` if there is none.
    pub(crate) column: Option<ColumnOfField>,
}

/// The column of a field's values.
#[derive(Clone, Debug)]
pub(crate) struct ColumnOfField {
    /// The index in [`MessagePlan::columns`].
    pub(crate) index: usize,
    /// The type of the column.
    pub(crate) data_type: DataType,
    /// The number of values in a message.
    pub(crate) arity: Arity,
    /// How a value is stored.
    pub(crate) value: ValuePlan,
}

/// The number of values that a field has in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    /// One. A field that the wire does not have, has the default of its type.
    Implicit,
    /// None or one.
    Optional,
    /// Any number. `packed` numbers are written as one field.
    Repeated {
        /// Whether numbers are written packed. Both forms are read.
        packed: bool,
    },
    /// Any number of entries, of which the last one with a key counts.
    Map,
}

impl Arity {
    /// Returns whether a field can have more than one value.
    pub(crate) fn is_many(self) -> bool {
        matches!(self, Self::Repeated { .. } | Self::Map)
    }
}

/// How a value is stored on the wire, and as which Arrow type.
#[derive(Clone, Debug)]
pub(crate) enum ValuePlan {
    /// A number, a truth value or an enum.
    Number(NumberWire, NumberType),
    /// Bytes, text, or a message that is not decoded.
    Bytes(BytesWire, Values),
    /// A message.
    Message {
        /// The plan of its fields.
        plan: Box<MessagePlan>,
        /// Its Arrow type.
        form: MessageForm,
        /// The unit of the column of a time.
        unit: TimeUnit,
        /// The time zone of the column of a timestamp.
        zone: Option<Arc<str>>,
        /// Whether it is a group.
        group: bool,
    },
}

/// The encoding of a number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberWire {
    /// A varint of the bits of the number.
    Varint,
    /// A varint of a 32-bit number whose sign is the lowest bit.
    ZigZag32,
    /// A varint of a 64-bit number whose sign is the lowest bit.
    ZigZag64,
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
}

/// The Arrow type of a number.
#[derive(Clone, Debug)]
pub(crate) enum NumberType {
    /// `Boolean`
    Bool,
    /// `Int32`
    Int32,
    /// `Int64`
    Int64,
    /// `UInt32`
    UInt32,
    /// `UInt64`
    UInt64,
    /// `Float32`
    Float32,
    /// `Float64`
    Float64,
    /// `Utf8` or `Utf8View`: the names of an enum.
    Enum(Arc<EnumNames>, Values),
}

impl NumberType {
    /// Returns the default of the type, by its bits.
    pub(crate) fn default_bits(&self) -> i64 {
        match self {
            Self::Enum(names, _) => names.default(),
            Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::UInt32
            | Self::UInt64
            | Self::Float32
            | Self::Float64 => 0,
        }
    }
}

/// The form of bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesWire {
    /// A string or bytes. Of several values, the last one counts.
    Value,
    /// A serialized message, whose pieces are concatenated.
    Message,
    /// The fields of a group.
    Group,
}

/// The names of the values of an enum.
#[derive(Debug)]
pub(crate) struct EnumNames {
    pub(super) names: HashMap<i32, String>,
    pub(super) numbers: HashMap<String, i32>,
    /// The number of the first value, which is the default. It is 0, except for enums of proto2.
    pub(super) default: i32,
}

impl EnumNames {
    /// Returns the name of a number, if it has one.
    pub(crate) fn name(&self, number: i32) -> Option<&str> {
        self.names.get(&number).map(String::as_str)
    }

    /// Returns the number of the default.
    pub(crate) fn default(&self) -> i64 {
        i64::from(self.default)
    }

    /// Returns the number of a name, or of a number in decimal that has no name.
    pub(crate) fn number(&self, text: &str) -> Option<i32> {
        self.numbers
            .get(text)
            .copied()
            .or_else(|| text.parse().ok())
    }
}

/// The Arrow type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageForm {
    /// A struct of its fields.
    Struct,
    /// The value of a `google.protobuf.Int32Value` or another wrapper.
    Wrapper,
    /// The time of a `google.protobuf.Timestamp`.
    Timestamp,
    /// The time of a `google.protobuf.Duration`.
    Duration,
}

impl MessagePlan {
    /// Returns the index of the field `number`. The search begins at `guess`.
    #[inline]
    pub(crate) fn find(&self, number: u32, guess: usize) -> Option<usize> {
        if self
            .fields
            .get(guess)
            .is_some_and(|field| field.number == number)
        {
            return Some(guess);
        }
        self.fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()
    }
}

impl FieldPlan {
    /// Returns whether a value of the field may have this wire type. One of another wire type is an
    /// unknown field.
    pub(crate) fn accepts(&self, wire_type: u8) -> bool {
        wire_type == self.wire_type || wire_type == LEN && self.is_packable
    }
}

impl ValuePlan {
    /// Returns whether the pieces of a value are concatenated.
    pub(crate) fn merges(&self) -> bool {
        matches!(
            self,
            Self::Message { .. } | Self::Bytes(BytesWire::Message | BytesWire::Group, _)
        )
    }

    /// Returns the number of array elements that one value takes: one, and one for each column of a
    /// message.
    pub(crate) fn cells(&self) -> usize {
        match self {
            Self::Number(..) | Self::Bytes(..) => 1,
            Self::Message { plan, .. } => 1 + plan.cells(),
        }
    }
}

impl MessagePlan {
    /// Returns the number of array elements that one message takes, lists without their values.
    pub(crate) fn cells(&self) -> usize {
        let mut cells = 0;
        for column in self.fields.iter().filter_map(|field| field.column.as_ref()) {
            cells += if column.arity.is_many() {
                1
            } else {
                column.value.cells()
            };
        }
        cells
    }
}
