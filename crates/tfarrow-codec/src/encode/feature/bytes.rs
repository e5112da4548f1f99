//! Values of a `bytes_list`: a field for each value.
//!
//! ```text
//! ["a", "bc"]    0a 01 'a'   0a 02 'b' 'c'
//! ```

use std::ops::Range;

use arrow_array::{
    GenericByteArray, GenericByteViewArray,
    types::{ByteArrayType, ByteViewType},
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::Family;
use crate::{
    Kind,
    encode::{
        entry::{field_len, tag},
        out::Out,
    },
};

/// Bytes or text of an array with offsets.
pub(super) struct BytesFamily {
    offsets: OffsetBuffer<i32>,
    bytes: Buffer,
}

impl BytesFamily {
    pub(super) fn new<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Self {
        Self { offsets: array.offsets().clone(), bytes: array.values().clone() }
    }

    /// Returns the start and the length of a value in `bytes`.
    #[inline]
    fn place(&self, value: usize) -> (usize, usize) {
        match self.offsets.get(value..value + 2) {
            Some([start, end]) => (*start as usize, (end - start) as usize),
            _ => (0, 0),
        }
    }
}

impl Family for BytesFamily {
    const KIND: Kind = Kind::Bytes;
    const PACKED: bool = false;

    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        field_len(self.place(value).1 as u64)
    }

    #[inline]
    fn write_one(&self, value: usize, _: u64, out: &mut Out<'_>) {
        let (start, len) = self.place(value);
        begin(len, out);
        out.part(&self.bytes, start, len);
    }

    fn write_all(&self, values: Range<usize>, _: u64, out: &mut Out<'_>) {
        values.for_each(|value| self.write_one(value, 0, out));
    }
}

/// Bytes or text of an array of views.
pub(super) struct ViewFamily<T: ByteViewType> {
    array: GenericByteViewArray<T>,
    views: ScalarBuffer<u128>,
}

impl<T: ByteViewType> ViewFamily<T> {
    pub(super) fn new(array: &GenericByteViewArray<T>) -> Self {
        Self { array: array.clone(), views: array.views().clone() }
    }
}

impl<T: ByteViewType> Family for ViewFamily<T> {
    const KIND: Kind = Kind::Bytes;
    const PACKED: bool = false;

    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        // The low 32 bits of a view are the length of the value.
        field_len(self.views.get(value).map_or(0, |view| u64::from(*view as u32)))
    }

    #[inline]
    fn write_one(&self, value: usize, _: u64, out: &mut Out<'_>) {
        let bytes: &[u8] = self.array.value(value).as_ref();
        begin(bytes.len(), out);
        out.bytes(bytes);
    }

    fn write_all(&self, values: Range<usize>, _: u64, out: &mut Out<'_>) {
        values.for_each(|value| self.write_one(value, 0, out));
    }
}

/// Writes the tag and the length of a value.
#[inline]
fn begin(len: usize, out: &mut Out<'_>) {
    match len {
        0..0x80 => out.put([tag(1), len as u8], 2),
        _ => {
            out.byte(tag(1));
            out.varint(len as u64);
        }
    }
}
