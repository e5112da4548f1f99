//! The walk over the messages of one level, which collects the values of each field.

use std::{borrow::Cow, collections::HashSet, hash::Hash};

use super::Context;
use crate::{
    ErrorKind, WireError,
    decode::column::{ColumnError, Result, within},
    example::wire::{self, LEN, START_GROUP},
    message::{ColumnOfField, FieldPlan, MessagePlan, NumberWire, ValuePlan},
    slices,
};

/// The fields of a message: part of a record, or concatenated from several pieces; `None` for no
/// message.
pub(super) type Body<'a> = Option<Cow<'a, [u8]>>;

/// The messages of one field in a batch.
pub(super) struct Level<'a> {
    /// The messages.
    pub(super) bodies: Vec<Body<'a>>,
    /// The row of the batch that each message is part of. Rows increase.
    pub(super) rows: Vec<u32>,
}

/// The values of one field in all messages of a level.
pub(super) struct FieldValues<T> {
    /// The values of all messages.
    pub(super) values: Vec<T>,
    /// For each message, the number of values up to its last one.
    pub(super) ends: Vec<usize>,
    /// Number of values in the messages of earlier rows.
    before_row: usize,
}

impl<T> FieldValues<T> {
    fn new(messages: usize) -> Self {
        Self {
            values: Vec::new(),
            ends: Vec::with_capacity(messages),
            before_row: 0,
        }
    }

    /// Number of values in the messages before the current one.
    fn before(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Checks that `count` more values of `cells` array elements each are within the limit for one
    /// record.
    fn check(&self, count: usize, cells: usize, most: usize) -> wire::Result<()> {
        let found = (self.values.len() - self.before_row)
            .saturating_add(count)
            .saturating_mul(cells);
        if found <= most {
            Ok(())
        } else {
            Err(WireError::ManyValues)
        }
    }
}

/// The values of one field; numbers by their bits.
pub(super) enum Gathered<'a> {
    /// The field has no column.
    Skipped,
    /// Numbers: integers, or the bits of floats.
    Numbers(FieldValues<i64>),
    /// Bytes, text and messages.
    Slices(FieldValues<Cow<'a, [u8]>>),
}

impl Gathered<'_> {
    fn new(field: &FieldPlan, messages: usize) -> Self {
        match field.column.as_ref().map(|column| &column.value) {
            None => Self::Skipped,
            Some(ValuePlan::Number(..)) => Self::Numbers(FieldValues::new(messages)),
            Some(ValuePlan::Bytes(..) | ValuePlan::Message { .. }) => {
                Self::Slices(FieldValues::new(messages))
            }
        }
    }

    /// Ends the current message.
    fn end(&mut self) {
        match self {
            Self::Skipped => {}
            Self::Numbers(numbers) => numbers.ends.push(numbers.values.len()),
            Self::Slices(slices) => slices.ends.push(slices.values.len()),
        }
    }

    /// Begins the messages of the next row.
    fn begin_row(&mut self) {
        match self {
            Self::Skipped => {}
            Self::Numbers(numbers) => numbers.before_row = numbers.values.len(),
            Self::Slices(slices) => slices.before_row = slices.values.len(),
        }
    }

    /// Removes the values of the current message.
    fn clear(&mut self) {
        match self {
            Self::Skipped => {}
            Self::Numbers(numbers) => numbers.values.truncate(numbers.before()),
            Self::Slices(slices) => slices.values.truncate(slices.before()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Skipped => 0,
            Self::Numbers(numbers) => numbers.values.len(),
            Self::Slices(slices) => slices.values.len(),
        }
    }
}

/// Collects the values of each field of a level, in the order of the plan's fields.
///
/// # Errors
/// A message that does not parse or exceeds a limit, or that has a field that its type does not
/// define if the context is strict; repeated messages of more array elements than a record or a
/// batch can have; and more values in a batch than [`Limits::values`](crate::Limits::values) allows
/// for a record.
pub(super) fn gather<'a>(
    plan: &MessagePlan,
    level: &'a Level<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Gathered<'a>>> {
    let mut gathered: Vec<_> = plan
        .fields
        .iter()
        .map(|field| Gathered::new(field, level.bodies.len()))
        .collect();
    let mut last_row = None;
    for (body, row) in level.bodies.iter().zip(&level.rows) {
        if last_row.replace(*row) != Some(*row) {
            gathered.iter_mut().for_each(Gathered::begin_row);
        }
        let fault = |kind| ColumnError::Row {
            row: *row as usize,
            kind,
        };
        let mut walk = MessageWalk {
            plan,
            gathered: &mut gathered,
            context,
            row: *row,
            unknown: None,
        };
        let walked = walk.message(body.as_deref().unwrap_or_default());
        walked.map_err(|error| {
            fault(ErrorKind::Message {
                name: plan.name.to_string(),
                error,
            })
        })?;
        if let Some(field) = walk.unknown.filter(|_| context.strict) {
            let is_extension = plan
                .extensions
                .iter()
                .any(|numbers| numbers.contains(&field));
            return Err(fault(ErrorKind::UnknownField {
                name: plan.name.to_string(),
                field,
                is_extension,
            }));
        }
        gathered.iter_mut().for_each(Gathered::end);
        context.cells.check_batch()?;
    }
    check_batch(plan, &gathered, context.limits.values)?;
    Ok(gathered)
}

/// Checks the number of array elements of a level, of which one record has fewer than `most` for
/// each field.
fn check_batch(plan: &MessagePlan, gathered: &[Gathered<'_>], most: usize) -> Result<()> {
    for (field, gathered) in plan.fields.iter().zip(gathered) {
        let cells = field
            .column
            .as_ref()
            .map_or(0, |column| column.value.cells());
        within(
            "values of messages in a batch",
            gathered.len().saturating_mul(cells),
            most as u64,
        )?;
    }
    Ok(())
}

/// The walk over one message.
struct MessageWalk<'w, 'a, 'c> {
    plan: &'w MessagePlan,
    gathered: &'w mut [Gathered<'a>],
    context: &'w mut Context<'c>,
    /// The row of the batch that the message is part of.
    row: u32,
    /// The first field of the message that its type does not define.
    unknown: Option<u32>,
}

impl<'a> MessageWalk<'_, 'a, '_> {
    fn message(&mut self, mut rest: &'a [u8]) -> wire::Result<()> {
        let mut guess = 0;
        while !rest.is_empty() {
            let tag = wire::tag(&mut rest)?;
            let Some(index) = self.plan.find(tag.0, guess) else {
                self.unknown(&mut rest, tag)?;
                continue;
            };
            let Some(field) = self.plan.fields.get(index) else {
                continue;
            };
            guess = if field
                .column
                .as_ref()
                .is_some_and(|column| column.arity.is_many())
            {
                index
            } else {
                index + 1
            };
            self.field(index, field, tag, &mut rest)?;
        }
        Ok(())
    }

    /// Skips a field that the message does not define, or that has another wire type than its
    /// definition.
    #[cold]
    fn unknown(&mut self, rest: &mut &[u8], tag: wire::Tag) -> wire::Result<()> {
        self.unknown.get_or_insert(tag.0);
        self.context.foreign.get_or_insert((tag.0, 0)).1 += 1;
        wire::skip(rest, tag, self.context.limits.nesting)
    }

    /// Reads the value of a field, which replaces those of the other members of its `oneof`.
    fn field(
        &mut self,
        index: usize,
        field: &FieldPlan,
        tag: wire::Tag,
        rest: &mut &'a [u8],
    ) -> wire::Result<()> {
        if !field.accepts(tag.1) {
            return self.unknown(rest, tag);
        }
        let Some(column) = &field.column else {
            wire::skip(rest, tag, self.context.limits.nesting)?;
            self.clear_others(index, field);
            return Ok(());
        };
        let most = self.context.limits.values;
        match (self.gathered.get_mut(index), &column.value, tag.1) {
            (Some(Gathered::Numbers(numbers)), ValuePlan::Number(wire, _), LEN) => {
                packed(*wire, wire::bytes(rest)?, numbers, most)?;
            }
            (Some(Gathered::Numbers(numbers)), ValuePlan::Number(wire, _), _) => {
                if column.arity.is_many() {
                    numbers.check(1, 1, most)?;
                } else {
                    numbers.values.truncate(numbers.before());
                }
                numbers.values.push(number(*wire, rest)?);
            }
            (Some(Gathered::Slices(slices)), value, found) => {
                let body = match found {
                    START_GROUP => wire::group(rest, tag.0, self.context.limits.nesting)?,
                    _ => wire::bytes(rest)?,
                };
                if column.arity.is_many() && matches!(value, ValuePlan::Message { .. }) {
                    self.context.cells.add(self.row, value.cells())?;
                }
                push(column, value, body, slices, most)?;
            }
            // `Gathered::new` makes numbers for numbers, and slices for others.
            _ => return self.unknown(rest, tag),
        }
        self.clear_others(index, field);
        Ok(())
    }

    /// Removes the values of the other members of the `oneof` of a field.
    #[inline]
    fn clear_others(&mut self, index: usize, field: &FieldPlan) {
        let Some(members) = field.oneof.and_then(|oneof| self.plan.oneofs.get(oneof)) else {
            return;
        };
        for other in members.iter().filter(|other| **other != index) {
            if let Some(gathered) = self.gathered.get_mut(*other) {
                gathered.clear();
            }
        }
    }
}

/// Adds a value of bytes. Of several values of a field that is not repeated, the last one counts,
/// and messages are concatenated.
fn push<'a>(
    column: &ColumnOfField,
    value: &ValuePlan,
    body: &'a [u8],
    slices: &mut FieldValues<Cow<'a, [u8]>>,
    most: usize,
) -> wire::Result<()> {
    let before = slices.before();
    match slices
        .values
        .get_mut(before..)
        .and_then(<[_]>::last_mut)
        .filter(|_| !column.arity.is_many())
    {
        Some(piece) if value.merges() => piece.to_mut().extend_from_slice(body),
        Some(replaced) => *replaced = Cow::Borrowed(body),
        None => {
            slices.check(
                1,
                if column.arity.is_many() {
                    value.cells()
                } else {
                    1
                },
                most,
            )?;
            slices.values.push(Cow::Borrowed(body));
        }
    }
    Ok(())
}

/// Reads one number.
#[inline]
fn number(wire: NumberWire, rest: &mut &[u8]) -> wire::Result<i64> {
    Ok(match wire {
        NumberWire::Varint => wire::varint(rest)? as i64,
        NumberWire::ZigZag32 => zig_zag_32(wire::varint(rest)? as i64),
        NumberWire::ZigZag64 => zig_zag_64(wire::varint(rest)? as i64),
        NumberWire::Fixed32 => i64::from(u32::from_le_bytes(wire::fixed32(rest)?)),
        NumberWire::Fixed64 => i64::from_le_bytes(wire::fixed64(rest)?),
    })
}

/// Reads packed numbers.
fn packed(
    wire: NumberWire,
    packed: &[u8],
    numbers: &mut FieldValues<i64>,
    most: usize,
) -> wire::Result<()> {
    let (chunks_4, rest_4) = packed.as_chunks::<4>();
    let (chunks_8, rest_8) = packed.as_chunks::<8>();
    let (count, is_whole) = match wire {
        NumberWire::Varint | NumberWire::ZigZag32 | NumberWire::ZigZag64 => {
            (wire::count_varints(packed)?, true)
        }
        NumberWire::Fixed32 => (chunks_4.len(), rest_4.is_empty()),
        NumberWire::Fixed64 => (chunks_8.len(), rest_8.is_empty()),
    };
    if !is_whole {
        return Err(WireError::PackedLength);
    }
    numbers.check(count, 1, most)?;
    let start = numbers.values.len();
    numbers.values.reserve(count);
    match wire {
        NumberWire::Fixed32 => numbers.values.extend(
            chunks_4
                .iter()
                .map(|four| i64::from(u32::from_le_bytes(*four))),
        ),
        NumberWire::Fixed64 => numbers
            .values
            .extend(chunks_8.iter().map(|eight| i64::from_le_bytes(*eight))),
        NumberWire::Varint | NumberWire::ZigZag32 | NumberWire::ZigZag64 => {
            wire::unpack_varints(packed, &mut numbers.values)?;
        }
    }
    let new = numbers.values.get_mut(start..).unwrap_or_default();
    match wire {
        NumberWire::ZigZag32 => new.iter_mut().for_each(|value| *value = zig_zag_32(*value)),
        NumberWire::ZigZag64 => new.iter_mut().for_each(|value| *value = zig_zag_64(*value)),
        NumberWire::Varint | NumberWire::Fixed32 | NumberWire::Fixed64 => {}
    }
    Ok(())
}

/// Returns a 32-bit number whose sign is the lowest bit: 0, -1, 1, -2 for 0, 1, 2, 3.
fn zig_zag_32(bits: i64) -> i64 {
    let bits = bits as u32;
    i64::from((bits >> 1) as i32 ^ -((bits & 1) as i32))
}

/// Returns a 64-bit number whose sign is the lowest bit.
fn zig_zag_64(bits: i64) -> i64 {
    let bits = bits as u64;
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}

/// Capacity of a set of keys that is kept for further maps, whatever their number of entries is.
const SPARE_CAPACITY: usize = 64;

/// Removes the entries of a map whose key a later entry of the same message has, and returns the
/// remaining numbers of entries up to the end of each message. `keys` has the key of each entry.
pub(super) fn last_of_keys<K: Hash + Eq>(
    keys: &[K],
    ends: &[usize],
) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut kept = Vec::with_capacity(keys.len());
    let mut kept_ends = Vec::with_capacity(ends.len());
    let mut seen: HashSet<_, foldhash::fast::RandomState> = HashSet::default();
    let mut start = 0;
    for end in ends {
        let from = kept.len();
        // Clearing takes time for the capacity, which one large map would leave to all small ones
        // after it.
        if seen.capacity() > SPARE_CAPACITY.max(4 * (end - start)) {
            seen = HashSet::default();
        }
        seen.clear();
        let entries = slices::part(keys, start..*end);
        kept.extend(
            (start..*end)
                .zip(entries)
                .rev()
                .filter(|(_, key)| seen.insert(*key))
                .map(|(index, _)| index),
        );
        if let Some(new) = kept.get_mut(from..) {
            new.reverse();
        }
        kept_ends.push(kept.len());
        start = *end;
    }
    (kept.len() < keys.len()).then_some((kept, kept_ends))
}

/// The number of values that a field has in each message.
pub(super) fn lengths(ends: &[usize]) -> Vec<usize> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter()
        .zip(starts)
        .map(|(end, start)| end - start)
        .collect()
}
