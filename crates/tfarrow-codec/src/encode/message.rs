//! Records that are protobuf messages of any type, from the columns of a schema of messages.
//!
//! Fields are written in the order of their numbers, as protobuf's own writers do. A field without
//! presence is not written if it has the default of its type; the two parts of a map entry always
//! are. Numbers are packed where the definition of the field says so.

use std::ops::Range;

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{
        DurationNanosecondType, Float32Type, Float64Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampNanosecondType, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Schema, TimeUnit};

use super::columns::bytes_of;
use crate::{
    Error, ErrorKind, Result,
    example::wire::{self, END_GROUP, LEN, put_tag, put_varint},
    message::{
        self, Arity, BytesWire, ColumnOfField, EnumNames, FieldPlan, MessageForm, MessagePlan,
        NumberType, NumberWire, ValuePlan,
    },
    slices,
};

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;
/// Microseconds of a second.
const MICROS: i64 = 1_000_000;

/// Encodes rows as messages of one type.
#[derive(Debug)]
pub(super) struct MessageEncoder {
    plan: MessagePlan,
    /// The allowed depth of groups in bytes that are written as the fields of a group.
    nesting: usize,
}

/// An error of one row.
pub(super) type RowError = (usize, ErrorKind);

impl MessageEncoder {
    /// Creates an encoder of batches of `schema`, as messages of the type in its metadata.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptors`] if the metadata has no type, and [`ErrorKind::Unsupported`] for a
    /// column that the message does not have, or whose type does not fit.
    pub(super) fn new(schema: &Schema, nesting: usize) -> Result<Self> {
        let plan = message::plan_of_schema(schema, schema.fields())?.ok_or_else(|| {
            let reason =
                "the type of the messages is not given, and the columns do not have it".to_owned();
            Error::usage(ErrorKind::Descriptors(reason))
        })?;
        Ok(Self { plan, nesting })
    }

    /// Calls `record` with the bytes of the message of each row.
    ///
    /// # Errors
    /// A value that the message cannot have, and the errors of `record`, with the row.
    pub(super) fn encode(
        &self,
        batch: &RecordBatch,
        mut record: impl FnMut(&[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), RowError> {
        let message = MessageSource::new(&self.plan, batch.columns()).map_err(|kind| (0, kind))?;
        let mut out = Vec::new();
        for row in 0..batch.num_rows() {
            out.clear();
            let written = message
                .write(row, self.nesting, &mut out)
                .and_then(|()| record(&out));
            written.map_err(|kind| (row, kind))?;
        }
        Ok(())
    }
}

/// The arrays of the fields of a message, in the order of the field numbers.
struct MessageSource<'a> {
    plan: &'a MessagePlan,
    fields: Vec<FieldSource<'a>>,
}

/// The array of one field. The elements of a null message have any values, which are not read.
struct FieldSource<'a> {
    field: &'a FieldPlan,
    arity: Arity,
    /// The elements that are null.
    nulls: Option<NullBuffer>,
    /// The ends of lists, from 0 on; `None` if an element has one value.
    offsets: Option<&'a [i32]>,
    /// The values of lists that are null, which a repeated field cannot have.
    item_nulls: Option<NullBuffer>,
    values: ValueSource<'a>,
}

/// The values of a field.
enum ValueSource<'a> {
    /// Numbers as integers, or as the bits of floats.
    Numbers(NumberWire, Vec<i64>),
    /// The names of an enum.
    Enum(&'a EnumNames, Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Bytes.
    Bytes(BytesWire, Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Messages.
    Messages(MessageSource<'a>, bool),
}

impl<'a> MessageSource<'a> {
    fn new(plan: &'a MessagePlan, columns: &'a [ArrayRef]) -> Result<Self, ErrorKind> {
        let mut fields = Vec::new();
        for field in &plan.fields {
            let Some(column) = &field.column else {
                continue;
            };
            if let Some(array) = columns.get(column.index) {
                fields.push(FieldSource::new(field, column, array)?);
            }
        }
        Ok(Self { plan, fields })
    }

    /// Appends the fields of the message at `index`.
    fn write(&self, index: usize, nesting: usize, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
        let mut last_of = vec![None; self.plan.oneofs.len()];
        for source in &self.fields {
            let before = out.len();
            source.write(index, self.plan.writes_defaults, nesting, out)?;
            let Some(last) = source
                .field
                .oneof
                .filter(|_| out.len() > before)
                .and_then(|it| last_of.get_mut(it))
            else {
                continue;
            };
            if let Some(other) = last.replace(&source.field.path) {
                return Err(ErrorKind::FieldOutOfRange {
                    field: source.field.path.clone(),
                    expected: "one value in a oneof",
                    found: format!("values in {other} and {}", source.field.path),
                });
            }
        }
        Ok(())
    }
}

impl<'a> FieldSource<'a> {
    fn new(
        field: &'a FieldPlan,
        column: &'a ColumnOfField,
        array: &'a ArrayRef,
    ) -> Result<Self, ErrorKind> {
        let (offsets, item_nulls, values) = match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let values = ValueSource::new(&column.value, lists.values())?;
                let item_nulls = lists.values().logical_nulls();
                (Some(lists.value_offsets()), item_nulls, values)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let ValuePlan::Message { plan, .. } = &column.value else {
                    return Err(internal());
                };
                let entries = MessageSource::new(plan, map.entries().columns())?;
                let values = ValueSource::Messages(entries, false);
                (Some(map.value_offsets()), None, values)
            }
            _ => (None, None, ValueSource::new(&column.value, array)?),
        };
        Ok(Self {
            field,
            arity: column.arity,
            nulls: array.logical_nulls(),
            offsets,
            item_nulls,
            values,
        })
    }

    /// The values of the element at `index`.
    fn range(&self, index: usize) -> Range<usize> {
        let Some(offsets) = self.offsets else {
            return index..index + 1;
        };
        let (Some(start), Some(end)) = (offsets.get(index), offsets.get(index + 1)) else {
            return 0..0;
        };
        *start as usize..*end as usize
    }

    /// Appends the field of the message at `index`.
    fn write(
        &self,
        index: usize,
        defaults: bool,
        nesting: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorKind> {
        if self
            .nulls
            .as_ref()
            .is_some_and(|nulls| nulls.is_null(index))
        {
            // A reader would take a missing part of a map entry for a default.
            return if defaults {
                Err(self.out_of_range("keys and values of a map", "null".to_owned()))
            } else {
                Ok(())
            };
        }
        let range = self.range(index);
        if self
            .item_nulls
            .as_ref()
            .is_some_and(|nulls| range.clone().any(|value| nulls.is_null(value)))
        {
            return Err(self.out_of_range("values in a list", "null".to_owned()));
        }
        match (&self.values, self.arity) {
            (
                ValueSource::Numbers(..) | ValueSource::Enum(..),
                Arity::Repeated { packed: true },
            ) if !range.is_empty() => {
                put_tag(self.field.number, LEN, out);
                nested(out, |out| {
                    range
                        .into_iter()
                        .try_for_each(|value| self.put_number(value, out))
                })
            }
            _ => {
                for value in range {
                    if self.arity != Arity::Implicit || defaults || !self.is_default(value) {
                        self.write_value(value, nesting, out)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns whether a value is the default of its type.
    fn is_default(&self, value: usize) -> bool {
        match &self.values {
            ValueSource::Numbers(_, values) => values.get(value).is_none_or(|value| *value == 0),
            ValueSource::Enum(names, _) => self
                .enum_number(value)
                .is_ok_and(|number| number == names.default()),
            ValueSource::Bytes(_, bytes) => bytes(value).is_empty(),
            ValueSource::Messages(..) => false,
        }
    }

    /// Appends a number without its tag.
    fn put_number(&self, value: usize, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
        match &self.values {
            ValueSource::Numbers(wire, values) => {
                put_number(*wire, slices::item(values, value), out);
            }
            ValueSource::Enum(..) => put_varint(self.enum_number(value)? as u64, out),
            ValueSource::Bytes(..) | ValueSource::Messages(..) => {}
        }
        Ok(())
    }

    /// Returns the number of the name of an enum; 0 for a field of another type.
    fn enum_number(&self, value: usize) -> Result<i64, ErrorKind> {
        let ValueSource::Enum(names, name) = &self.values else {
            return Ok(0);
        };
        let text = String::from_utf8_lossy(name(value));
        let number = names.number(&text).map(i64::from);
        number.ok_or_else(|| {
            self.out_of_range("a name of its enum, or a number", format!("{text:?}"))
        })
    }

    fn out_of_range(&self, expected: &'static str, found: String) -> ErrorKind {
        ErrorKind::FieldOutOfRange {
            field: self.field.path.clone(),
            expected,
            found,
        }
    }

    /// Appends one value with its tag.
    fn write_value(
        &self,
        value: usize,
        nesting: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorKind> {
        let number = self.field.number;
        put_tag(number, self.field.wire_type, out);
        match &self.values {
            ValueSource::Numbers(..) | ValueSource::Enum(..) => self.put_number(value, out)?,
            ValueSource::Bytes(BytesWire::Value | BytesWire::Message, bytes) => {
                put_varint(bytes(value).len() as u64, out);
                out.extend_from_slice(bytes(value));
            }
            ValueSource::Bytes(BytesWire::Group, bytes) => {
                check_fields(&self.field.path, bytes(value), nesting)?;
                out.extend_from_slice(bytes(value));
                put_tag(number, END_GROUP, out);
            }
            ValueSource::Messages(message, true) => {
                message.write(value, nesting, out)?;
                put_tag(number, END_GROUP, out);
            }
            ValueSource::Messages(message, false) => {
                nested(out, |out| message.write(value, nesting, out))?
            }
        }
        Ok(())
    }
}

impl<'a> ValueSource<'a> {
    fn new(plan: &'a ValuePlan, values: &'a ArrayRef) -> Result<Self, ErrorKind> {
        Ok(match plan {
            ValuePlan::Number(_, NumberType::Enum(names, text)) => {
                Self::Enum(names, bytes_of(values, Some(*text)))
            }
            ValuePlan::Number(wire, number) => Self::Numbers(*wire, numbers(number, values)),
            ValuePlan::Bytes(wire, of) => Self::Bytes(*wire, bytes_of(values, Some(*of))),
            ValuePlan::Message {
                plan,
                form,
                unit,
                group,
                ..
            } => {
                let message = match form {
                    MessageForm::Struct => MessageSource::new(plan, values.as_struct().columns())?,
                    MessageForm::Wrapper => {
                        let fields = plan
                            .fields
                            .iter()
                            .filter_map(|field| Some((field, field.column.as_ref()?)));
                        let fields =
                            fields.map(|(field, column)| FieldSource::new(field, column, values));
                        MessageSource {
                            plan,
                            fields: fields.collect::<Result<_, _>>()?,
                        }
                    }
                    MessageForm::Timestamp if *unit == TimeUnit::Microsecond => {
                        let times = values.as_primitive::<TimestampMicrosecondType>().values();
                        times_of(plan, times, |time| {
                            (
                                time.div_euclid(MICROS),
                                time.rem_euclid(MICROS) * (NANOS / MICROS),
                            )
                        })
                    }
                    MessageForm::Timestamp => {
                        let times = values.as_primitive::<TimestampNanosecondType>().values();
                        times_of(plan, times, |time| {
                            (time.div_euclid(NANOS), time.rem_euclid(NANOS))
                        })
                    }
                    MessageForm::Duration => {
                        let times = values.as_primitive::<DurationNanosecondType>().values();
                        times_of(plan, times, |time| (time / NANOS, time % NANOS))
                    }
                };
                Self::Messages(message, *group)
            }
        })
    }
}

/// The seconds and nanoseconds of times.
fn times_of<'a>(
    plan: &'a MessagePlan,
    times: &[i64],
    parts: impl Fn(i64) -> (i64, i64),
) -> MessageSource<'a> {
    let (seconds, nanos): (Vec<_>, Vec<_>) = times.iter().map(|time| parts(*time)).unzip();
    let mut fields = Vec::new();
    for (field, values) in plan.fields.iter().zip([seconds, nanos]) {
        if let Some(column) = &field.column {
            fields.push(FieldSource {
                field,
                arity: column.arity,
                nulls: None,
                offsets: None,
                item_nulls: None,
                values: ValueSource::Numbers(NumberWire::Varint, values),
            });
        }
    }
    MessageSource { plan, fields }
}

/// Returns numbers as integers, or as the bits of floats.
fn numbers(number: &NumberType, array: &ArrayRef) -> Vec<i64> {
    match number {
        NumberType::Bool => array.as_boolean().values().iter().map(i64::from).collect(),
        NumberType::Int32 => array
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .map(|it| i64::from(*it))
            .collect(),
        NumberType::Int64 => array.as_primitive::<Int64Type>().values().to_vec(),
        NumberType::UInt32 => array
            .as_primitive::<UInt32Type>()
            .values()
            .iter()
            .map(|it| i64::from(*it))
            .collect(),
        NumberType::UInt64 => array
            .as_primitive::<UInt64Type>()
            .values()
            .iter()
            .map(|it| *it as i64)
            .collect(),
        NumberType::Float32 => array
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .map(|it| i64::from(it.to_bits()))
            .collect(),
        NumberType::Float64 => array
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .map(|it| it.to_bits() as i64)
            .collect(),
        // Names are `ValueSource::Enum`.
        NumberType::Enum(..) => Vec::new(),
    }
}

/// Appends the length of the bytes that `write` appends, and these bytes.
fn nested(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ErrorKind>,
) -> Result<(), ErrorKind> {
    let start = out.len();
    write(out)?;
    let mut length = Vec::with_capacity(5);
    put_varint((out.len() - start) as u64, &mut length);
    out.splice(start..start, length);
    Ok(())
}

/// Appends a number without its tag.
fn put_number(wire: NumberWire, value: i64, out: &mut Vec<u8>) {
    match wire {
        NumberWire::Varint => put_varint(value as u64, out),
        NumberWire::ZigZag32 => {
            let value = value as i32;
            put_varint(u64::from((value << 1 ^ value >> 31) as u32), out);
        }
        NumberWire::ZigZag64 => put_varint((value << 1 ^ value >> 63) as u64, out),
        NumberWire::Fixed32 => out.extend_from_slice(&(value as u32).to_le_bytes()),
        NumberWire::Fixed64 => out.extend_from_slice(&value.to_le_bytes()),
    }
}

/// Checks that bytes are the fields of a message, so that the group around them has an end.
fn check_fields(path: &str, mut fields: &[u8], nesting: usize) -> Result<(), ErrorKind> {
    while !fields.is_empty() {
        let read = wire::tag(&mut fields).and_then(|tag| wire::skip(&mut fields, tag, nesting));
        read.map_err(|error| ErrorKind::FieldOutOfRange {
            field: path.to_owned(),
            expected: "the fields of a group",
            found: format!("bytes that are none: {error}"),
        })?;
    }
    Ok(())
}

fn internal() -> ErrorKind {
    ErrorKind::unsupported("internal error: a map without entries")
}
