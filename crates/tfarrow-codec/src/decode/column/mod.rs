//! Building the Arrow arrays of a batch, one column at a time, from the slots of the tape.
//!
//! Lists are read twice: their sizes are counted, memory is allocated once, and the values are
//! written to it.
//!
//! ```text
//! slots of a column      count              allocate     fill
//! List [7]               1 value
//! Absent                 null               3 values     values   7  1  2
//! List [1, 2]            2 values                        offsets  0  1  1  3
//!                                                        validity 1  0  1
//! ```
//!
//! A column of scalars has one value a row, so that it is filled in one pass. A feature list is
//! built as a list column of all its steps, with the steps of each row as the outer list.
//!
//! The trait [`ValueDecoder`] is implemented for each type of values in Arrow; [`build`] chooses
//! the implementation, and [`shaped`] the shape:
//!
//! ```text
//! Values              implementation      Shape     function
//! Binary, Utf8        BytesDecoder; only_value for a row with one long value
//!                                         Scalar    scalars: one pass
//! BinaryView,         ViewDecoder         List      lists: count, allocate, fill
//!   Utf8View                              Steps     steps: the steps of all rows as lists, then the outer lists
//! Float32             FloatDecoder
//! Int64               Int64Decoder
//! ```

mod bytes;
pub(super) mod message;
mod numbers;
mod views;
pub(super) mod virtual_columns;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, ListArray,
    types::{BinaryType, Utf8Type},
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field};

use self::{
    bytes::BytesDecoder,
    numbers::{FloatDecoder, Int64Decoder},
    views::ViewDecoder,
};
use crate::{
    ErrorKind, WireError,
    example::{
        tape::{self, Places, Slot, State},
        walk, wire,
    },
    schema::{Kind, Shape, Values},
};

/// An error while building a column. The caller adds the position of the record and the name of the
/// feature.
#[derive(Debug)]
pub(crate) enum ColumnError {
    /// An error in the value of one row of the batch. With [`OnError::Skip`](crate::OnError::Skip)
    /// that row is left out.
    Row { row: usize, kind: ErrorKind },
    /// An error in a message inside of the record of one row, with the feature that it is in.
    Part {
        row: usize,
        kind: ErrorKind,
        feature: Option<Box<str>>,
    },
    /// A column that is too large for Arrow's offsets in this batch. No single record causes it; a
    /// batch of fewer records may fit.
    Overflow {
        what: &'static str,
        found: u64,
        limit: u64,
    },
    /// An error of Arrow while building the array.
    Arrow(ArrowError),
}

impl ColumnError {
    /// Returns a function that makes the error of row `row` from a [`WireError`], for `map_err`.
    fn wire(row: usize) -> impl Fn(WireError) -> Self {
        move |e| Self::Row {
            row,
            kind: ErrorKind::Wire(e),
        }
    }

    /// The row of the batch whose record has the error; `None` for an error of the batch.
    pub(crate) fn row(&self) -> Option<usize> {
        match self {
            Self::Row { row, .. } | Self::Part { row, .. } => Some(*row),
            Self::Overflow { .. } | Self::Arrow(_) => None,
        }
    }

    /// Maps the row of the error, for instance from a step to the row of the step.
    pub(crate) fn map_row(self, row: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Row { row: inner, kind } => Self::Row {
                row: row(inner),
                kind,
            },
            Self::Part {
                row: inner,
                kind,
                feature,
            } => Self::Part {
                row: row(inner),
                kind,
                feature,
            },
            Self::Overflow { .. } | Self::Arrow(_) => self,
        }
    }
}

/// The result of building a column.
pub(crate) type Result<T> = std::result::Result<T, ColumnError>;

/// The size of values, for which memory is allocated.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Number of values.
    values: usize,
    /// Number of bytes that are copied to the column's own buffer; 0 for numbers.
    bytes: usize,
}

/// Decodes the lists of one kind, and appends their values to an array.
///
/// ```text
/// size(list) of all rows ─▶ reserve(sum) ─▶ push(list) or push_null() of each row ─▶ finish(nulls)
/// ```
trait ValueDecoder<'t> {
    /// Returns the kind of the lists.
    fn kind(&self) -> Kind;

    /// Returns the size of a list, whose body is that of a `BytesList`, `FloatList` or `Int64List`.
    ///
    /// # Errors
    /// [`WireError`] for a list that does not parse.
    fn size(&self, body: &'t [u8]) -> wire::Result<Size>;

    /// Returns an upper bound of the bytes that are copied of a list, given the length of its body,
    /// if it has one value.
    fn copied(&self, len: usize) -> usize;

    /// Allocates memory for values of this size.
    fn reserve(&mut self, size: Size);

    /// Appends the values of a list, and returns their number.
    ///
    /// # Errors
    /// [`WireError`] for a list that does not parse.
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize>;

    /// Appends the value under a null, for a column of scalars.
    fn push_null(&mut self);

    /// Returns the array of all values, with these nulls.
    ///
    /// # Errors
    /// [`ArrowError`] for text that is not UTF-8.
    fn finish(self, nulls: Option<NullBuffer>) -> std::result::Result<ArrayRef, ArrowError>;
}

/// Builds the array of a column.
///
/// # Errors
/// [`ColumnError`] for a row of another kind, with several values in a scalar column, or with text
/// that is not UTF-8; and for a column that is too large.
pub(crate) fn build(
    shape: Shape,
    values: Values,
    slots: &[Slot],
    places: Places<'_>,
) -> Result<ArrayRef> {
    if shape == Shape::Steps {
        return steps(values, slots, places, build);
    }
    match values {
        Values::Binary => match bytes::only_value::<BinaryType>(slots, places) {
            Some(value) => shaped_value(shape, value),
            None => shaped(shape, slots, places, BytesDecoder::binary(places.nesting)),
        },
        Values::Utf8 => match bytes::only_value::<Utf8Type>(slots, places) {
            Some(value) => shaped_value(shape, value),
            None => shaped(shape, slots, places, BytesDecoder::utf8(places.nesting)),
        },
        Values::BinaryView => shaped(shape, slots, places, ViewDecoder::binary(places)),
        Values::Utf8View => shaped(shape, slots, places, ViewDecoder::utf8(places)),
        Values::Float32 => shaped(shape, slots, places, FloatDecoder::new(places.nesting)),
        Values::Int64 => shaped(shape, slots, places, Int64Decoder::new(places.nesting)),
    }
}

/// Builds the array of one of several columns of a feature, one for each of its `kinds`. Lists of
/// the other columns' kinds are null in this one; a list of a kind without a column is an error.
///
/// ```text
/// row         int64 column    bytes column
/// a = [1]     [1]             null
/// a = ["x"]   null            ["x"]
/// ```
pub(crate) fn build_split(
    shape: Shape,
    values: Values,
    kinds: [bool; 3],
    slots: &[Slot],
    places: Places<'_>,
) -> Result<ArrayRef> {
    if shape == Shape::Steps {
        return steps(values, slots, places, |shape, values, slots, places| {
            build_split(shape, values, kinds, slots, places)
        });
    }
    let slots: Vec<_> = slots
        .iter()
        .map(|slot| match slot.state {
            State::List(found) if found != values.kind() && kinds[found as usize] => {
                Slot::default()
            }
            _ => *slot,
        })
        .collect();
    build(shape, values, &slots, places)
}

/// Builds an array of scalars or of lists.
fn shaped<'t, D: ValueDecoder<'t>>(
    shape: Shape,
    slots: &[Slot],
    places: Places<'t>,
    decoder: D,
) -> Result<ArrayRef> {
    if shape == Shape::Scalar {
        scalars(slots, places, decoder)
    } else {
        lists(slots, places, decoder)
    }
}

/// Builds the array of one row from its only value.
fn shaped_value(shape: Shape, value: ArrayRef) -> Result<ArrayRef> {
    if shape == Shape::Scalar {
        Ok(value)
    } else {
        list_array(vec![1], value, None)
    }
}

/// Builds the array of a list column with at most the first `most` values of each list. The values
/// after them are neither decoded nor checked.
///
/// # Errors
/// The errors of [`build`].
pub(crate) fn beginnings(
    values: Values,
    most: usize,
    slots: &[Slot],
    places: Places<'_>,
) -> Result<ArrayRef> {
    let kind = values.kind();
    let mut joined = Vec::new();
    let mut cut = Vec::with_capacity(slots.len());
    for (row, slot) in slots.iter().enumerate() {
        cut.push(match list(row, slot, places, kind)? {
            None => *slot,
            Some(body) => {
                beginning(kind, body, most, places, &mut joined).map_err(ColumnError::wire(row))?
            }
        });
    }
    build(
        Shape::List,
        values,
        &cut,
        Places {
            joined: &joined,
            ..places
        },
    )
}

/// Makes a slot of the first values of a list. Packed values are copied, since their length
/// precedes them.
///
/// ```text
/// Int64List 0a 04 01 02 03 04, most = 2     joined: 0a 02 01 02
/// ```
#[inline]
fn beginning(
    kind: Kind,
    body: &[u8],
    most: usize,
    places: Places<'_>,
    joined: &mut Vec<u8>,
) -> wire::Result<Slot> {
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

/// Builds an array of scalars in one pass: there is one value a row, and the lists' bodies bound
/// the bytes.
fn scalars<'t, D: ValueDecoder<'t>>(
    slots: &[Slot],
    places: Places<'t>,
    mut decoder: D,
) -> Result<ArrayRef> {
    let bytes = slots.iter().map(|slot| decoder.copied(slot.len())).sum();
    take_memory(
        &mut decoder,
        Size {
            values: slots.len(),
            bytes,
        },
        slots,
    )?;
    let kind = decoder.kind();
    let mut nulls = 0;
    for (row, slot) in slots.iter().enumerate() {
        match list(row, slot, places, kind)? {
            None => {
                nulls += 1;
                decoder.push_null();
            }
            Some(body) => match decoder.push(body).map_err(ColumnError::wire(row))? {
                1 => {}
                found => {
                    return Err(ColumnError::Row {
                        row,
                        kind: ErrorKind::NotScalar { found },
                    });
                }
            },
        }
    }
    decoder
        .finish(validity(slots, nulls))
        .map_err(|e| text_fault(e, slots, places, kind))
}

/// Builds an array of lists: counts, allocates, and fills.
fn lists<'t, D: ValueDecoder<'t>>(
    slots: &[Slot],
    places: Places<'t>,
    mut decoder: D,
) -> Result<ArrayRef> {
    let kind = decoder.kind();
    let mut nulls = 0;
    let mut total = Size::default();
    let mut lengths = Vec::with_capacity(slots.len());
    for (row, slot) in slots.iter().enumerate() {
        let body = list(row, slot, places, kind)?;
        nulls += usize::from(body.is_none());
        let size = body
            .map_or(Ok(Size::default()), |body| decoder.size(body))
            .map_err(ColumnError::wire(row))?;
        total = Size {
            values: total.values + size.values,
            bytes: total.bytes + size.bytes,
        };
        lengths.push(size.values);
    }
    take_memory(&mut decoder, total, slots)?;
    for (row, slot) in slots.iter().enumerate() {
        if let Some(body) = list(row, slot, places, kind)? {
            decoder.push(body).map_err(ColumnError::wire(row))?;
        }
    }
    let values = decoder
        .finish(None)
        .map_err(|e| text_fault(e, slots, places, kind))?;
    list_array(lengths, values, validity(slots, nulls))
}

/// Allocates memory, unless the column is too large for Arrow's 32-bit offsets.
fn take_memory<'t, D: ValueDecoder<'t>>(decoder: &mut D, size: Size, slots: &[Slot]) -> Result<()> {
    let bytes = slots.iter().map(Slot::len).sum();
    within_offsets("bytes of one column of a batch", bytes)?;
    within_offsets("values in one column of a batch", size.values)?;
    decoder.reserve(size);
    Ok(())
}

/// Builds the array of a feature list. `build` makes the array of all steps.
///
/// ```text
/// rows      [[1], [2, 3]]   null   []
/// steps     [1]  [2, 3]                      slots of a list column, built by `build`
/// lengths   2               0      0         of the outer lists
/// validity  1               0      1
/// ```
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
                    Some((kind, body)) => {
                        tape::slot(State::List(kind), body, places.chunk, &mut joined)
                    }
                    None => Slot::UNSET,
                })
            })?);
            Ok(())
        })
        .map_err(ColumnError::wire(row))?;
        lengths.push(inner.len() - before);
    }
    let places = Places {
        joined: &joined,
        ..places
    };
    let array = build(Shape::List, values, &inner, places)
        .map_err(|fault| fault.map_row(|step| outer_row(&lengths, step)))?;
    list_array(lengths, array, validity(slots, nulls))
}

/// Returns the row that has step `step`, counted over all rows.
///
/// ```text
/// lengths 2 0 3:   step 0 1 | 2 3 4   is in row   0 0 | 2 2 2
/// ```
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

/// Assembles an array of lists from the lengths of lists and the values.
fn list_array(
    lengths: Vec<usize>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    within_offsets("values in one column of a batch", values.len())?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let array = ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, nulls);
    array
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(ColumnError::Arrow)
}

/// Checks a number against the largest 32-bit offset, 2^31 - 1.
pub(crate) fn within_offsets(what: &'static str, found: usize) -> Result<()> {
    within(what, found, i32::MAX as u64)
}

/// Checks a number against a limit.
///
/// `what` names the quantity in the error, such as "bytes of one column of a batch".
pub(crate) fn within(what: &'static str, found: usize, limit: u64) -> Result<()> {
    let found = found as u64;
    if found <= limit {
        Ok(())
    } else {
        Err(ColumnError::Overflow { what, found, limit })
    }
}

/// Returns which rows have a list; `None` if all have.
fn validity(slots: &[Slot], nulls: usize) -> Option<NullBuffer> {
    (nulls > 0).then(|| {
        slots
            .iter()
            .map(|slot| !matches!(slot.state, State::Absent | State::Unset))
            .collect()
    })
}

/// Finds the row that has text which is not UTF-8, after Arrow has rejected the complete array.
fn text_fault(error: ArrowError, slots: &[Slot], places: Places<'_>, kind: Kind) -> ColumnError {
    match slots.iter().position(|slot| !is_text(slot, places)) {
        Some(row) if kind == Kind::Bytes => ColumnError::Row {
            row,
            kind: ErrorKind::NotUtf8,
        },
        _ => ColumnError::Arrow(error),
    }
}

/// Returns whether all values of a slot are UTF-8.
fn is_text(slot: &Slot, places: Places<'_>) -> bool {
    walk::bytes_values(places.body(slot), places.nesting, |value| {
        if simdutf8::basic::from_utf8(value).is_ok() {
            Ok(())
        } else {
            Err(WireError::Key)
        }
    })
    .is_ok()
}

/// Returns the body of a slot; `None` if the row is null. Another kind than the column's is an
/// error.
#[inline]
fn list<'t>(row: usize, slot: &Slot, places: Places<'t>, kind: Kind) -> Result<Option<&'t [u8]>> {
    match slot.state {
        State::List(found) if found == kind => Ok(Some(places.body(slot))),
        State::Absent | State::Unset => Ok(None),
        State::List(found) => Err(ColumnError::Row {
            row,
            kind: ErrorKind::Kind {
                expected: kind.name(),
                found: found.name(),
            },
        }),
        State::Steps => Err(ColumnError::Row {
            row,
            kind: ErrorKind::Kind {
                expected: kind.name(),
                found: "feature_list",
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_above_the_limit_of_arrow_is_an_overflow() {
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
