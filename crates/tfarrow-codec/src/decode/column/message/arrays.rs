//! The arrays of the fields of a level of messages.

use std::{borrow::Cow, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, DurationNanosecondArray, Float32Array, Float64Array, GenericByteArray,
    Int32Array, Int64Array, ListArray, MapArray, StructArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, UInt32Array, UInt32Array as Indices, UInt64Array,
    builder::{BinaryBuilder, StringBuilder, StringViewBuilder},
    cast::AsArray,
    types::{BinaryType, ByteArrayType, Int32Type, Int64Type, Utf8Type},
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::{nullif::nullif, take::take};

use super::{
    Context,
    gather::{Body, FieldValues, Gathered, Level, gather, last_of_keys, lengths},
};
use crate::{
    ErrorKind,
    decode::column::{ColumnError, bytes::value_of_chunk, views::ViewDecoder, within_offsets},
    example::tape::Places,
    message::{
        Arity, ColumnOfField, EnumNames, FieldPlan, MessageForm, MessagePlan, NumberType, ValuePlan,
    },
    schema::Values,
};

type Result<T, E = ColumnError> = std::result::Result<T, E>;

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;
/// Nanoseconds of a microsecond.
const NANOS_OF_MICRO: i128 = 1_000;

/// Makes an array of each column of a plan, with an element for each message of a level.
///
/// # Errors
/// The errors of [`gather`], values that do not fit their type, and arrays that exceed Arrow's
/// offsets.
pub(super) fn of_messages(
    plan: &MessagePlan,
    level: &Level<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<ArrayRef>> {
    let gathered = gather(plan, level, context)?;
    let mut arrays = Vec::with_capacity(plan.columns.len());
    for (field, values) in plan.fields.iter().zip(gathered) {
        if let Some(column) = &field.column {
            arrays.push((
                column.index,
                of_field(field, column, values, level, context)?,
            ));
        }
    }
    arrays.sort_by_key(|(index, _)| *index);
    Ok(arrays.into_iter().map(|(_, array)| array).collect())
}

/// Makes the array of one field.
fn of_field(
    field: &FieldPlan,
    column: &ColumnOfField,
    gathered: Gathered<'_>,
    level: &Level<'_>,
    context: &mut Context<'_>,
) -> Result<ArrayRef> {
    let Items {
        items,
        nulls,
        rows,
        ends,
    } = Items::of(column, gathered, level);
    let mut array = of_values(field, &column.value, items, nulls, rows, context)?;
    let Some(mut ends) = ends else {
        return Ok(array);
    };
    if column.arity == Arity::Map
        && let Some((kept, kept_ends)) = repeated_keys(array.as_struct(), &ends)
    {
        let kept: Indices = kept.into_iter().map(|index| index as u32).collect();
        (array, ends) = (
            take(&array, &kept, None).map_err(ColumnError::Arrow)?,
            kept_ends,
        );
    }
    within_offsets("values in one column of a batch", array.len())?;
    let offsets = OffsetBuffer::from_lengths(lengths(&ends));
    let list: Result<ArrayRef, _> = match column.data_type.clone() {
        DataType::Map(entries, sorted) => {
            MapArray::try_new(entries, offsets, array.as_struct().clone(), None, sorted)
                .map(|map| Arc::new(map) as _)
        }
        DataType::List(item) => {
            ListArray::try_new(item, offsets, array, None).map(|list| Arc::new(list) as _)
        }
        // Only lists and maps have ends.
        _ => Ok(array),
    };
    list.map_err(ColumnError::Arrow)
}

/// Returns the entries of maps that remain where keys are repeated; `None` if no key is.
fn repeated_keys(entries: &StructArray, ends: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
    let keys = entries.columns().first()?;
    match keys.data_type() {
        DataType::Utf8 => last_of_keys(&keys.as_string::<i32>().iter().collect::<Vec<_>>(), ends),
        DataType::Utf8View => last_of_keys(&keys.as_string_view().iter().collect::<Vec<_>>(), ends),
        DataType::Binary => last_of_keys(&keys.as_binary::<i32>().iter().collect::<Vec<_>>(), ends),
        DataType::BinaryView => {
            last_of_keys(&keys.as_binary_view().iter().collect::<Vec<_>>(), ends)
        }
        DataType::Boolean => last_of_keys(&keys.as_boolean().iter().collect::<Vec<_>>(), ends),
        DataType::Int32 => last_of_keys(keys.as_primitive::<Int32Type>().values(), ends),
        DataType::Int64 => last_of_keys(keys.as_primitive::<Int64Type>().values(), ends),
        DataType::UInt32 => last_of_keys(
            keys.as_primitive::<arrow_array::types::UInt32Type>()
                .values(),
            ends,
        ),
        DataType::UInt64 => last_of_keys(
            keys.as_primitive::<arrow_array::types::UInt64Type>()
                .values(),
            ends,
        ),
        // Protobuf has no maps with keys of other types.
        _ => None,
    }
}

/// The values of a field, one for each element of an array.
enum ItemValues<'a> {
    /// Integers, and the bits of floats.
    Numbers(Vec<i64>),
    /// Bytes; `None` for a value that a message does not have.
    Slices(Vec<Body<'a>>),
}

/// The elements of an array.
struct Items<'a> {
    items: ItemValues<'a>,
    /// The elements that have a value; `None` if all have, or if those that have none get a
    /// default.
    nulls: Option<NullBuffer>,
    /// The row of the batch of each element.
    rows: Vec<u32>,
    /// For a list, the number of elements up to the end of each message.
    ends: Option<Vec<usize>>,
}

impl<'a> Items<'a> {
    fn of(column: &ColumnOfField, gathered: Gathered<'a>, level: &Level<'_>) -> Self {
        let arity = column.arity;
        match gathered {
            Gathered::Skipped => Self {
                items: ItemValues::Numbers(vec![0; level.rows.len()]),
                nulls: None,
                rows: level.rows.clone(),
                ends: None,
            },
            Gathered::Numbers(numbers) if arity.is_many() => {
                let rows = repeated_rows(&numbers, level);
                Self {
                    items: ItemValues::Numbers(numbers.values),
                    nulls: None,
                    rows,
                    ends: Some(numbers.ends),
                }
            }
            Gathered::Slices(slices) if arity.is_many() => {
                let rows = repeated_rows(&slices, level);
                let items = ItemValues::Slices(slices.values.into_iter().map(Some).collect());
                Self {
                    items,
                    nulls: None,
                    rows,
                    ends: Some(slices.ends),
                }
            }
            Gathered::Numbers(numbers) => {
                let (values, nulls) = spread(numbers);
                let default = match &column.value {
                    ValuePlan::Number(_, number) => number.default_bits(),
                    ValuePlan::Bytes(..) | ValuePlan::Message { .. } => 0,
                };
                let items = ItemValues::Numbers(
                    values
                        .into_iter()
                        .map(|value| value.unwrap_or(default))
                        .collect(),
                );
                Self {
                    items,
                    nulls: nulls.filter(|_| arity == Arity::Optional),
                    rows: level.rows.clone(),
                    ends: None,
                }
            }
            Gathered::Slices(slices) => {
                let (values, nulls) = spread(slices);
                let items = ItemValues::Slices(values);
                Self {
                    items,
                    nulls: nulls.filter(|_| arity == Arity::Optional),
                    rows: level.rows.clone(),
                    ends: None,
                }
            }
        }
    }
}

/// The row of each value of a field with any number of values.
fn repeated_rows<T>(values: &FieldValues<T>, level: &Level<'_>) -> Vec<u32> {
    let lengths = lengths(&values.ends);
    level
        .rows
        .iter()
        .zip(lengths)
        .flat_map(|(row, length)| std::iter::repeat_n(*row, length))
        .collect()
}

/// Spreads the values of a field with at most one value over its messages.
fn spread<T>(values: FieldValues<T>) -> (Vec<Option<T>>, Option<NullBuffer>) {
    let lengths = lengths(&values.ends);
    let missing = values.values.len() < lengths.len();
    let nulls = missing.then(|| lengths.iter().map(|length| *length > 0).collect());
    let mut values = values.values.into_iter();
    let spread = lengths
        .into_iter()
        .map(|length| if length > 0 { values.next() } else { None });
    (spread.collect(), nulls)
}

/// Makes the array of values.
fn of_values(
    field: &FieldPlan,
    plan: &ValuePlan,
    items: ItemValues<'_>,
    nulls: Option<NullBuffer>,
    rows: Vec<u32>,
    context: &mut Context<'_>,
) -> Result<ArrayRef> {
    match (plan, items) {
        (ValuePlan::Number(_, number), ItemValues::Numbers(values)) => {
            Ok(of_numbers(number, values, nulls))
        }
        (ValuePlan::Bytes(_, values), ItemValues::Slices(slices)) => {
            of_bytes(field, *values, &slices, nulls, &rows, context)
        }
        (
            ValuePlan::Message {
                plan,
                form,
                unit,
                zone,
                ..
            },
            ItemValues::Slices(bodies),
        ) => of_nested(
            field,
            plan,
            (*form, *unit, zone),
            Level { bodies, rows },
            nulls,
            context,
        ),
        // `Gathered::new` makes numbers for numbers, and slices for others.
        (ValuePlan::Number(..), ItemValues::Slices(_))
        | (ValuePlan::Bytes(..) | ValuePlan::Message { .. }, ItemValues::Numbers(_)) => {
            Err(ColumnError::Row {
                row: 0,
                kind: ErrorKind::unsupported("internal error: values of another kind"),
            })
        }
    }
}

/// Makes the array of numbers.
fn of_numbers(number: &NumberType, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    match number {
        NumberType::Bool => {
            let values = values.iter().map(|value| *value != 0).collect();
            Arc::new(BooleanArray::new(values, nulls))
        }
        NumberType::Int32 => Arc::new(Int32Array::new(
            values.iter().map(|value| *value as i32).collect(),
            nulls,
        )),
        NumberType::Int64 => Arc::new(Int64Array::new(values.into(), nulls)),
        NumberType::UInt32 => Arc::new(UInt32Array::new(
            values.iter().map(|value| *value as u32).collect(),
            nulls,
        )),
        NumberType::UInt64 => Arc::new(UInt64Array::new(
            values.iter().map(|value| *value as u64).collect(),
            nulls,
        )),
        NumberType::Float32 => {
            let values = values
                .iter()
                .map(|bits| f32::from_bits(*bits as u32))
                .collect();
            Arc::new(Float32Array::new(values, nulls))
        }
        NumberType::Float64 => {
            let values = values
                .iter()
                .map(|bits| f64::from_bits(*bits as u64))
                .collect();
            Arc::new(Float64Array::new(values, nulls))
        }
        NumberType::Enum(names, text) => of_enum(names, *text, &values, nulls.as_ref()),
    }
}

/// Makes the array of an enum: names, or numbers in decimal.
fn of_enum(
    names: &EnumNames,
    text: Values,
    values: &[i64],
    nulls: Option<&NullBuffer>,
) -> ArrayRef {
    let all = values.iter().enumerate().map(|(row, value)| {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        (!is_null).then(|| name_of(names, *value as i32))
    });
    if text == Values::Utf8View {
        let mut builder = StringViewBuilder::with_capacity(values.len()).with_deduplicate_strings();
        all.for_each(|name| builder.append_option(name));
        Arc::new(builder.finish())
    } else {
        let mut builder = StringBuilder::with_capacity(values.len(), 0);
        all.for_each(|name| builder.append_option(name));
        Arc::new(builder.finish())
    }
}

/// Returns the name of a number of an enum, or else the number in decimal.
fn name_of(names: &EnumNames, number: i32) -> Cow<'_, str> {
    match names.name(number) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(number.to_string()),
    }
}

/// Makes the array of bytes or text.
fn of_bytes(
    field: &FieldPlan,
    values: Values,
    slices: &[Body<'_>],
    nulls: Option<NullBuffer>,
    rows: &[u32],
    context: &Context<'_>,
) -> Result<ArrayRef> {
    let bytes: usize = slices.iter().flatten().map(|slice| slice.len()).sum();
    let is_view = matches!(values, Values::BinaryView | Values::Utf8View);
    if !is_view {
        within_offsets("bytes of one column of a batch", bytes)?;
    }
    if matches!(values, Values::Utf8 | Values::Utf8View)
        && let Some(index) = slices
            .iter()
            .position(|slice| slice.as_deref().is_some_and(is_no_text))
    {
        let row = rows.get(index).map_or(0, |row| *row as usize);
        return Err(ColumnError::Row {
            row,
            kind: ErrorKind::FieldNotUtf8 {
                field: field.path.clone(),
            },
        });
    }
    let places = Places {
        chunk: context.chunk,
        joined: &[],
        nesting: 0,
    };
    let of_slices = slices
        .iter()
        .map(|slice| slice.as_deref().unwrap_or_default());
    match values {
        Values::BinaryView => ViewDecoder::binary(places)
            .of_values(of_slices, nulls)
            .map_err(ColumnError::Arrow),
        Values::Utf8View => ViewDecoder::utf8(places)
            .of_values(of_slices, nulls)
            .map_err(ColumnError::Arrow),
        Values::Binary | Values::Float32 | Values::Int64 => {
            of_copies::<BinaryType>(slices, bytes, nulls, context)
        }
        Values::Utf8 => of_copies::<Utf8Type>(slices, bytes, nulls, context),
    }
}

/// Makes the array of bytes or text, of `bytes` bytes together, that are copied out of the chunk,
/// but for a long one.
fn of_copies<T: ByteArrayType<Offset = i32>>(
    slices: &[Body<'_>],
    bytes: usize,
    nulls: Option<NullBuffer>,
    context: &Context<'_>,
) -> Result<ArrayRef> {
    if let [Some(value)] = slices
        && let Some(array) = value_of_chunk::<T>(context.chunk, value)
    {
        return Ok(array);
    }
    let mut builder = BinaryBuilder::with_capacity(slices.len(), bytes);
    slices
        .iter()
        .for_each(|slice| builder.append_value(slice.as_deref().unwrap_or_default()));
    let (offsets, data, _) = builder.finish().into_parts();
    Ok(Arc::new(
        GenericByteArray::<T>::try_new(offsets, data, nulls).map_err(ColumnError::Arrow)?,
    ))
}

fn is_no_text(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_err()
}

/// Makes the array of nested messages, in their form; `unit` and `zone` are the unit and the time
/// zone of times.
fn of_nested(
    field: &FieldPlan,
    plan: &MessagePlan,
    (form, unit, zone): (MessageForm, TimeUnit, &Option<Arc<str>>),
    level: Level<'_>,
    nulls: Option<NullBuffer>,
    context: &mut Context<'_>,
) -> Result<ArrayRef> {
    let arrays = of_messages(plan, &level, context)?;
    Ok(match form {
        MessageForm::Struct => {
            let arrays = match &nulls {
                Some(nulls) => null_with(&arrays, nulls)?,
                None => arrays,
            };
            let array = StructArray::try_new_with_length(
                plan.columns.clone(),
                arrays,
                nulls,
                level.bodies.len(),
            );
            Arc::new(array.map_err(ColumnError::Arrow)?)
        }
        MessageForm::Wrapper => {
            let Some(values) = arrays.first() else {
                return Err(ColumnError::Row {
                    row: 0,
                    kind: ErrorKind::unsupported("a wrapper without a value"),
                });
            };
            let data = values
                .to_data()
                .into_builder()
                .nulls(nulls)
                .build()
                .map_err(ColumnError::Arrow)?;
            arrow_array::make_array(data)
        }
        MessageForm::Timestamp if unit == TimeUnit::Microsecond => {
            let values = times(field, &arrays, &level.rows, unit, false)?;
            let array = TimestampMicrosecondArray::new(values.into(), nulls);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        MessageForm::Timestamp => {
            let values = times(field, &arrays, &level.rows, unit, false)?;
            let array = TimestampNanosecondArray::new(values.into(), nulls);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        MessageForm::Duration => {
            let values = times(field, &arrays, &level.rows, unit, true)?;
            Arc::new(DurationNanosecondArray::new(values.into(), nulls))
        }
    })
}

/// Makes the fields of messages that are null also null: functions that take a field out of a
/// struct may ignore the nulls of the struct, as DataFusion's do.
fn null_with(arrays: &[ArrayRef], nulls: &NullBuffer) -> Result<Vec<ArrayRef>> {
    let is_null = BooleanArray::new(!nulls.inner(), None);
    let fields = arrays.iter().map(|array| nullif(array, &is_null));
    fields
        .collect::<Result<Vec<_>, _>>()
        .map_err(ColumnError::Arrow)
}

/// Returns times that consist of seconds and nanoseconds as numbers of `unit`, which is nanoseconds
/// or microseconds. The nanoseconds of a time are positive; those of a duration have the sign of
/// the seconds.
///
/// # Errors
/// A time that 64 bits of the unit cannot hold, that is no whole number of units, or that has
/// nanoseconds out of their range.
fn times(
    field: &FieldPlan,
    parts: &[ArrayRef],
    rows: &[u32],
    unit: TimeUnit,
    is_duration: bool,
) -> Result<Vec<i64>> {
    let [seconds, nanos] = parts else {
        return Ok(vec![0; rows.len()]);
    };
    let seconds = seconds.as_primitive::<Int64Type>().values();
    let nanos = nanos.as_primitive::<Int32Type>().values();
    let (nanos_of_unit, expected) = match unit {
        TimeUnit::Microsecond => (
            NANOS_OF_MICRO,
            "a time of whole microseconds, the unit of its column (that of nanoseconds keeps all digits)",
        ),
        _ => (1, "a time that 64 bits of nanoseconds hold"),
    };
    let mut times = Vec::with_capacity(rows.len());
    for (row, (seconds, nanos)) in rows.iter().zip(seconds.iter().zip(nanos)) {
        let parts = i64::from(*nanos);
        let fits = match is_duration {
            false => (0..NANOS).contains(&parts),
            true => parts.abs() < NANOS && seconds.signum() * parts.signum() >= 0,
        };
        let total = i128::from(*seconds) * i128::from(NANOS) + i128::from(parts);
        let time = i64::try_from(total / nanos_of_unit).ok();
        times.push(
            time.filter(|_| fits && total % nanos_of_unit == 0)
                .ok_or_else(|| ColumnError::Row {
                    row: *row as usize,
                    kind: ErrorKind::FieldOutOfRange {
                        field: field.path.clone(),
                        expected,
                        found: format!("{seconds} seconds and {nanos} nanoseconds"),
                    },
                })?,
        );
    }
    Ok(times)
}
