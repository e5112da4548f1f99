//! COLUMNS: the slots of one column become one Arrow array, a column at a time: sizes are counted first, memory is taken
//! once, and then filled. A file a family of values, behind the trait [`Family`]; one `match`, in [`build`].

mod bytes;
mod numbers;
pub(crate) mod own;
mod views;

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field};

use self::{
    bytes::BytesFamily,
    numbers::{FloatFamily, Int64Family},
    views::ViewFamily,
};
use crate::{
    ErrorKind, WireError,
    schema::{Kind, Shape, Values},
    tape::{self, Places, Slot, State},
    walk, wire,
};

/// What is wrong with a column.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The value of one row.
    Row { row: usize, kind: ErrorKind },
    /// All rows together have more than Arrow can count.
    Overflow { what: &'static str, found: u64, limit: u64 },
    /// Arrow refused to build the array.
    Arrow(ArrowError),
}

impl Fault {
    fn wire(row: usize) -> impl Fn(WireError) -> Self {
        move |e| Self::Row { row, kind: ErrorKind::Wire(e) }
    }

    /// The same fault, with its row mapped by `row`.
    fn map_row(self, row: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Row { row: inner, kind } => Self::Row { row: row(inner), kind },
            Self::Overflow { .. } | Self::Arrow(_) => self,
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// What values take: how many they are, and, where they are bytes that are copied, how many bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

/// How the lists of one kind become an array of their values.
trait Family<'t> {
    /// The kind of the lists.
    fn kind(&self) -> Kind;

    /// What a list takes.
    fn size(&self, body: &'t [u8]) -> wire::Result<Size>;

    /// How many bytes of a list whose body has `len` are copied into a buffer of bytes, at most, where it has one value.
    fn copied(&self, len: usize) -> usize;

    /// Takes memory for so much.
    fn reserve(&mut self, size: Size);

    /// Adds a list's values, and returns how many they are.
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize>;

    /// Adds a value that is null.
    fn push_null(&mut self);

    /// The array of all values.
    fn finish(self, nulls: Option<NullBuffer>) -> std::result::Result<ArrayRef, ArrowError>;
}

/// The array of a column.
pub(crate) fn build(shape: Shape, values: Values, slots: &[Slot], places: Places<'_>) -> Result<ArrayRef> {
    if shape == Shape::Steps {
        return steps(values, slots, places, build);
    }
    match values {
        Values::Binary => shaped(shape, slots, places, BytesFamily::binary(places.nesting)),
        Values::Utf8 => shaped(shape, slots, places, BytesFamily::utf8(places.nesting)),
        Values::BinaryView => shaped(shape, slots, places, ViewFamily::binary(places)),
        Values::Utf8View => shaped(shape, slots, places, ViewFamily::utf8(places)),
        Values::Float32 => shaped(shape, slots, places, FloatFamily::new(places.nesting)),
        Values::Int64 => shaped(shape, slots, places, Int64Family::new(places.nesting)),
    }
}

/// The array of a column of a feature whose lists of other `kinds` stand in columns of their own: here they are null. A list
/// of a kind that no column is of is a fault.
pub(crate) fn build_split(
    shape: Shape,
    values: Values,
    kinds: [bool; 3],
    slots: &[Slot],
    places: Places<'_>,
) -> Result<ArrayRef> {
    if shape == Shape::Steps {
        let build =
            |shape, values, slots: &[Slot], places: Places<'_>| build_split(shape, values, kinds, slots, places);
        return steps(values, slots, places, build);
    }
    let is_elsewhere = |found: Kind| found != values.kind() && kinds[found as usize];
    let here = |slot: &Slot| match slot.state {
        State::List(found) if is_elsewhere(found) => Slot::default(),
        _ => *slot,
    };
    let slots: Vec<_> = slots.iter().map(here).collect();
    build(shape, values, &slots, places)
}

fn shaped<'t, F: Family<'t>>(shape: Shape, slots: &[Slot], places: Places<'t>, family: F) -> Result<ArrayRef> {
    if shape == Shape::Scalar { scalars(slots, places, family) } else { lists(slots, places, family) }
}

/// The array of a column of lists, of which no more than the first `most` values are asked for.
pub(crate) fn beginnings(values: Values, most: usize, slots: &[Slot], places: Places<'_>) -> Result<ArrayRef> {
    let kind = values.kind();
    let mut joined = Vec::new();
    let mut cut = Vec::with_capacity(slots.len());
    for (row, slot) in slots.iter().enumerate() {
        cut.push(match list(row, slot, places, kind)? {
            None => *slot,
            Some(body) => beginning(kind, body, most, places, &mut joined).map_err(Fault::wire(row))?,
        });
    }
    build(Shape::List, values, &cut, Places { joined: &joined, ..places })
}

/// A list of the first values of another. Packed ones are copied, since they bear their length in front.
#[inline]
fn beginning(kind: Kind, body: &[u8], most: usize, places: Places<'_>, joined: &mut Vec<u8>) -> wire::Result<Slot> {
    let state = State::List(kind);
    let (fields, packed) = walk::first_values(kind, body, most, places.nesting)?;
    if packed.is_empty() {
        return Ok(tape::slot(state, fields, places.chunk, joined));
    }
    let start = joined.len();
    joined.extend_from_slice(fields);
    wire::put_bytes(packed, joined);
    Ok(tape::joined_slot(state, joined, start))
}

/// One value a list: as many as there are rows, and no more bytes than the lists' bodies have. So one pass is enough.
fn scalars<'t, F: Family<'t>>(slots: &[Slot], places: Places<'t>, mut family: F) -> Result<ArrayRef> {
    let bytes = slots.iter().map(|slot| family.copied(slot.len())).sum();
    take_memory(&mut family, Size { values: slots.len(), bytes }, slots)?;
    let kind = family.kind();
    let mut nulls = 0;
    for (row, slot) in slots.iter().enumerate() {
        match list(row, slot, places, kind)? {
            None => {
                nulls += 1;
                family.push_null();
            }
            Some(body) => match family.push(body).map_err(Fault::wire(row))? {
                1 => {}
                found => return Err(Fault::Row { row, kind: ErrorKind::NotScalar { found } }),
            },
        }
    }
    family.finish(validity(slots, nulls)).map_err(|e| text_fault(e, slots, places, kind))
}

fn lists<'t, F: Family<'t>>(slots: &[Slot], places: Places<'t>, mut family: F) -> Result<ArrayRef> {
    let kind = family.kind();
    let mut nulls = 0;
    let mut total = Size::default();
    let mut lengths = Vec::with_capacity(slots.len());
    for (row, slot) in slots.iter().enumerate() {
        let body = list(row, slot, places, kind)?;
        nulls += usize::from(body.is_none());
        let size = body.map_or(Ok(Size::default()), |body| family.size(body)).map_err(Fault::wire(row))?;
        total = Size { values: total.values + size.values, bytes: total.bytes + size.bytes };
        lengths.push(size.values);
    }
    take_memory(&mut family, total, slots)?;
    for (row, slot) in slots.iter().enumerate() {
        if let Some(body) = list(row, slot, places, kind)? {
            family.push(body).map_err(Fault::wire(row))?;
        }
    }
    let values = family.finish(None).map_err(|e| text_fault(e, slots, places, kind))?;
    list_array(lengths, values, validity(slots, nulls))
}

/// Takes memory, unless Arrow's 32-bit offsets could not count what it is for.
fn take_memory<'t, F: Family<'t>>(family: &mut F, size: Size, slots: &[Slot]) -> Result<()> {
    let bytes = slots.iter().map(Slot::len).sum();
    within_offsets("bytes of one column of a batch", bytes)?;
    within_offsets("values in one column of a batch", size.values)?;
    family.reserve(size);
    Ok(())
}

/// `build` makes the array of all steps.
fn steps(
    values: Values,
    slots: &[Slot],
    places: Places<'_>,
    build: impl Fn(Shape, Values, &[Slot], Places<'_>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let mut inner = Vec::new();
    let mut joined = Vec::new();
    let mut nulls = 0;
    let mut lengths = Vec::with_capacity(slots.len());
    for (row, outer) in slots.iter().enumerate() {
        let before = inner.len();
        nulls += usize::from(outer.state == State::Absent);
        walk::steps(places.body(outer), places.nesting, |step| {
            inner.push(walk::feature(step, places.nesting, |feature| {
                Ok(match feature {
                    Some((kind, body)) => tape::slot(State::List(kind), body, places.chunk, &mut joined),
                    None => Slot::UNSET,
                })
            })?);
            Ok(())
        })
        .map_err(Fault::wire(row))?;
        lengths.push(inner.len() - before);
    }
    let places = Places { joined: &joined, ..places };
    let array =
        build(Shape::List, values, &inner, places).map_err(|fault| fault.map_row(|step| outer_row(&lengths, step)))?;
    list_array(lengths, array, validity(slots, nulls))
}

/// The row that step `step` of all is in.
fn outer_row(lengths: &[usize], step: usize) -> usize {
    let mut end = 0;
    lengths
        .iter()
        .take_while(|length| {
            end += **length;
            end <= step
        })
        .count()
}

fn list_array(lengths: Vec<usize>, values: ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    within_offsets("values in one column of a batch", values.len())?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let array = ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, nulls);
    array.map(|array| Arc::new(array) as ArrayRef).map_err(Fault::Arrow)
}

/// Refuses what Arrow's offsets of 31 bits cannot count.
pub(crate) fn within_offsets(what: &'static str, found: usize) -> Result<()> {
    within(what, found, i32::MAX as u64)
}

/// Refuses what Arrow cannot count.
pub(crate) fn within(what: &'static str, found: usize, limit: u64) -> Result<()> {
    let found = found as u64;
    if found <= limit { Ok(()) } else { Err(Fault::Overflow { what, found, limit }) }
}

fn validity(slots: &[Slot], nulls: usize) -> Option<NullBuffer> {
    (nulls > 0).then(|| slots.iter().map(|slot| !matches!(slot.state, State::Absent | State::Unset)).collect())
}

/// Arrow's word on a whole array of text, turned into that on the row to blame.
fn text_fault(error: ArrowError, slots: &[Slot], places: Places<'_>, kind: Kind) -> Fault {
    let is_text = |slot: &Slot| {
        walk::bytes_values(places.body(slot), places.nesting, |value| match simdutf8::basic::from_utf8(value) {
            Ok(_) => Ok(()),
            Err(_) => Err(WireError::Key),
        })
        .is_ok()
    };
    match slots.iter().position(|slot| !is_text(slot)) {
        Some(row) if kind == Kind::Bytes => Fault::Row { row, kind: ErrorKind::NotUtf8 },
        _ => Fault::Arrow(error),
    }
}

/// The body of a slot, or `None` where it is null. Another kind than the column's is a fault.
#[inline]
fn list<'t>(row: usize, slot: &Slot, places: Places<'t>, kind: Kind) -> Result<Option<&'t [u8]>> {
    match slot.state {
        State::List(found) if found == kind => Ok(Some(places.body(slot))),
        State::Absent | State::Unset => Ok(None),
        State::List(found) => {
            Err(Fault::Row { row, kind: ErrorKind::Kind { expected: kind.name(), found: found.name() } })
        }
        State::Steps => Err(Fault::Row { row, kind: ErrorKind::Kind { expected: kind.name(), found: "feature_list" } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrow_cannot_count_is_an_overflow() {
        for (limit, found, fits) in [
            (i32::MAX as u64, (1 << 31) - 1, true),
            (i32::MAX as u64, 1 << 31, false),
            (u32::MAX.into(), (1 << 32) - 1, true),
            (u32::MAX.into(), 1 << 32, false),
        ] {
            assert_eq!(within("bytes", found, limit).is_ok(), fits, "{found}");
        }
        let error = crate::Error::from(ArrowError::OffsetOverflowError(1 << 31));
        assert_eq!(error.category(), crate::Category::Limit);
    }
}
