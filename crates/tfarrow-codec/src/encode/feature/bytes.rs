//! Values of a `bytes_list`: a field for each value.
//!
//! ```text
//! ["a", "bc"]    0a 01 'a'   0a 02 'b' 'c'
//! []             (no field)
//! ```
//!
//! A `bytes_list` cannot be packed, so that each value has a tag and a length. Text is written as
//! its bytes.

use std::ops::Range;

use arrow_array::{
    GenericByteArray, GenericByteViewArray,
    types::{ByteArrayType, ByteViewType},
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::ValueEncoder;
use crate::{
    Kind,
    encode::{
        block_writer::BlockWriter,
        entry::{field_len, tag},
    },
};

/// Writes bytes or text of an array with offsets.
///
/// The two buffers of the array are held without its type, so that `Binary` and `Utf8` share the
/// code.
pub(super) struct BytesEncoder {
    /// The start of the first value, and the end of each value.
    offsets: OffsetBuffer<i32>,
    /// The bytes of all values.
    bytes: Buffer,
}

impl BytesEncoder {
    /// Creates the encoder of the values of `array`, which are not copied.
    pub(super) fn new<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Self {
        Self {
            offsets: array.offsets().clone(),
            bytes: array.values().clone(),
        }
    }

    /// Returns the start and the length of a value in `bytes`. Both are 0 past the end of the
    /// array, which columns do not read.
    #[inline]
    fn place(&self, value: usize) -> (usize, usize) {
        match self.offsets.get(value..value + 2) {
            Some([start, end]) => (*start as usize, (end - start) as usize),
            _ => (0, 0),
        }
    }
}

impl ValueEncoder for BytesEncoder {
    const KIND: Kind = Kind::Bytes;
    const PACKED: bool = false;

    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        field_len(self.place(value).1 as u64)
    }

    /// Writes the value with its tag and length. Short values are copied with the bytes after them,
    /// see [`BlockWriter::part`].
    #[inline]
    fn write_one(&self, value: usize, _: u64, out: &mut BlockWriter<'_>) {
        let (start, len) = self.place(value);
        begin(len, out);
        out.part(&self.bytes, start, len);
    }

    fn write_all(&self, values: Range<usize>, _: u64, out: &mut BlockWriter<'_>) {
        values.for_each(|value| self.write_one(value, 0, out));
    }
}

/// Writes bytes or text of an array of views, of the type `T`.
pub(super) struct ViewEncoder<T: ByteViewType> {
    /// The array, which finds the bytes of a view.
    array: GenericByteViewArray<T>,
    /// The views of the array, which have the lengths.
    views: ScalarBuffer<u128>,
}

impl<T: ByteViewType> ViewEncoder<T> {
    /// Creates the encoder of the values of `array`, which are not copied.
    pub(super) fn new(array: &GenericByteViewArray<T>) -> Self {
        Self {
            array: array.clone(),
            views: array.views().clone(),
        }
    }
}

impl<T: ByteViewType> ValueEncoder for ViewEncoder<T> {
    const KIND: Kind = Kind::Bytes;
    const PACKED: bool = false;

    /// Reads the length from the view, so that the bytes of the value are not touched.
    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        // The low 32 bits of a view are the length of the value.
        field_len(
            self.views
                .get(value)
                .map_or(0, |view| u64::from(*view as u32)),
        )
    }

    #[inline]
    fn write_one(&self, value: usize, _: u64, out: &mut BlockWriter<'_>) {
        let bytes: &[u8] = self.array.value(value).as_ref();
        begin(bytes.len(), out);
        out.bytes(bytes);
    }

    fn write_all(&self, values: Range<usize>, _: u64, out: &mut BlockWriter<'_>) {
        values.for_each(|value| self.write_one(value, 0, out));
    }
}

/// Writes the tag and the length of a value. Both are one piece of two bytes for values of less
/// than 128 bytes.
#[inline]
fn begin(len: usize, out: &mut BlockWriter<'_>) {
    match len {
        0..0x80 => out.put([tag(1), len as u8], 2),
        _ => {
            out.byte(tag(1));
            out.varint(len as u64);
        }
    }
}
