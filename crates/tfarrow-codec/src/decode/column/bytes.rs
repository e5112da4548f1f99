//! `bytes_list` columns whose values are copied to a buffer of the column.
//!
//! ```text
//! BytesList  0a 01 'a'  0a 02 'b' 'c'      values  'a' 'b' 'c'      offsets  0  1  3
//! ```
//!
//! A `BytesList` (`repeated bytes value = 1` in `feature.proto`) has a tag and a length before each
//! value, so that values are copied one by one. Where that costs too much, a schema with view types
//! avoids it, see `views.rs`. A single long value is not copied either.

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteArray,
    types::{BinaryType, ByteArrayType, Utf8Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Size, ValueDecoder};
use crate::{
    example::{
        tape::{Places, Slot, State, offset_in},
        walk, wire,
    },
    frame::SPARSE,
    schema::Kind,
};

/// Smallest length of a value that stays in the chunk, see [`only_value`].
const LONG: usize = 1 << 20;

/// Returns the array of a column that has one row with one value, if [it stays in the
/// chunk](value_of_chunk). `None` for all other columns, and for a value that is corrupt.
pub(super) fn only_value<T: ByteArrayType<Offset = i32>>(
    slots: &[Slot],
    places: Places<'_>,
) -> Option<ArrayRef> {
    let [slot] = slots else { return None };
    if slot.state != State::List(Kind::Bytes) || slot.len() < LONG {
        return None;
    }
    let mut values = Vec::new();
    let walked = walk::bytes_values(places.body(slot), places.nesting, |value| {
        values.push(value);
        Ok(())
    });
    match (values.as_slice(), walked) {
        ([value], Ok(())) => value_of_chunk::<T>(places.chunk, value),
        _ => None,
    }
}

/// Makes the array of one long value that its chunk consists of for the most part. The value stays
/// in the chunk, so that it is not in memory twice. `None` for any other value, and for one that is
/// not of the type `T`.
pub(super) fn value_of_chunk<T: ByteArrayType<Offset = i32>>(
    chunk: &Buffer,
    value: &[u8],
) -> Option<ArrayRef> {
    if value.len() < LONG.max(chunk.capacity() / SPARSE) {
        return None;
    }
    let values = chunk.slice_with_length(offset_in(chunk, value)?, value.len());
    let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![
        0,
        i32::try_from(value.len()).ok()?,
    ]));
    let array = GenericByteArray::<T>::try_new(offsets, values, None).ok()?;
    Some(Arc::new(array))
}

/// Decodes `bytes_list` to `Binary` or `Utf8`.
///
/// `T` is the type of the array. Arrow validates the UTF-8 of the complete column at once, when the
/// array is made, which is faster than value by value; the row of invalid text is searched only
/// after that has failed.
pub(super) struct BytesDecoder<T> {
    /// The end of each value in `values`, after a 0.
    offsets: Vec<i32>,
    /// The bytes of all values.
    values: Vec<u8>,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
    array: PhantomData<T>,
}

impl BytesDecoder<BinaryType> {
    /// Creates the decoder of `Binary` columns.
    pub(super) fn binary(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl BytesDecoder<Utf8Type> {
    /// Creates the decoder of `Utf8` columns.
    pub(super) fn utf8(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl<T> BytesDecoder<T> {
    /// Creates an empty column, whose only offset is the start of the first value.
    fn new(nesting: usize) -> Self {
        Self {
            offsets: vec![0],
            values: Vec::new(),
            nesting,
            array: PhantomData,
        }
    }

    /// Ends a value, which may be empty: appends the end of `values` to the offsets.
    fn end_value(&mut self) {
        // The total was checked against the largest offset when memory was allocated.
        self.offsets.push(self.values.len() as i32);
    }
}

impl<'t, T: ByteArrayType<Offset = i32>> ValueDecoder<'t> for BytesDecoder<T> {
    fn kind(&self) -> Kind {
        Kind::Bytes
    }

    /// Counts values and their bytes without copying them.
    #[inline]
    fn size(&self, body: &'t [u8]) -> wire::Result<Size> {
        let mut size = Size::default();
        walk::bytes_values(body, self.nesting, |value| {
            size.values += 1;
            size.bytes += value.len();
            Ok(())
        })?;
        Ok(size)
    }

    /// The value is shorter than the body, which also has its tag and length.
    fn copied(&self, len: usize) -> usize {
        len
    }

    fn reserve(&mut self, size: Size) {
        self.values.reserve_exact(size.bytes);
        self.offsets.reserve_exact(size.values);
    }

    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let before = self.offsets.len();
        walk::bytes_values(body, self.nesting, |value| {
            self.values.extend_from_slice(value);
            self.end_value();
            Ok(())
        })?;
        Ok(self.offsets.len() - before)
    }

    /// A null takes an empty value, as Arrow requires an offset for each row.
    fn push_null(&mut self) {
        self.end_value();
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let array = GenericByteArray::<T>::try_new(offsets, Buffer::from_vec(self.values), nulls)?;
        Ok(Arc::new(array))
    }
}
