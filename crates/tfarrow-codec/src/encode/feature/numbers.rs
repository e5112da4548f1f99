//! Values of a `float_list` or an `int64_list`: packed in one field, as TensorFlow writes them.
//!
//! ```text
//! int64 [1, 150]    0a 03   01  96 01
//! float [1.0]       0a 04   00 00 80 3f
//! []                (no field)
//! ```
//!
//! The tag of the packed field is that of field 1 with the wire type for bytes, 0a. An empty list
//! has no field, as protobuf's writers leave it out: the `Feature` then has an empty `FloatList` or
//! `Int64List`, which keeps its kind.

use std::ops::Range;

use arrow_array::{Float32Array, Int64Array};
use arrow_buffer::ScalarBuffer;

use super::ValueEncoder;
use crate::{
    Kind,
    encode::{
        block_writer::{BlockWriter, put_at, put_varint},
        entry::tag,
    },
    example::wire::varint_len,
    slices,
};

/// Writes 32-bit floats with their bits, NaNs included: four bytes each, little-endian.
pub(super) struct FloatEncoder {
    /// The values of the array, also those under nulls, which no list contains.
    values: ScalarBuffer<f32>,
}

impl FloatEncoder {
    /// Creates the encoder of the values of `array`, which are not copied.
    pub(super) fn new(array: &Float32Array) -> Self {
        Self {
            values: array.values().clone(),
        }
    }
}

impl ValueEncoder for FloatEncoder {
    const KIND: Kind = Kind::Float;
    const PACKED: bool = true;

    #[inline]
    fn one_len(&self, _: usize) -> u64 {
        4
    }

    #[inline]
    fn all_len(&self, values: Range<usize>) -> u64 {
        4 * values.len() as u64
    }

    /// Writes tag, length and value as one piece of six bytes.
    #[inline]
    fn write_one(&self, value: usize, len: u64, out: &mut BlockWriter<'_>) {
        let [a, b, c, d] = self
            .values
            .get(value)
            .copied()
            .unwrap_or_default()
            .to_le_bytes();
        out.put([tag(1), len as u8, a, b, c, d, 0, 0], 6);
    }

    /// Copies the values as bytes where the machine has the byte order of the wire.
    #[inline]
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut BlockWriter<'_>) {
        begin(len, out);
        if cfg!(target_endian = "little") {
            // Floats on the wire are little-endian, as in the memory of this machine.
            let bytes = self.values.inner().as_slice();
            out.part(bytes, 4 * values.start, 4 * values.len());
        } else {
            let values = self.values.get(values).unwrap_or_default();
            values
                .iter()
                .for_each(|value| out.put(value.to_le_bytes(), 4));
        }
    }
}

/// Writes 64-bit integers as varints of their bits: one byte for each seven bits, so that negative
/// values have ten.
pub(super) struct Int64Encoder {
    /// The values of the array, also those under nulls, which no list contains.
    values: ScalarBuffer<i64>,
}

impl Int64Encoder {
    /// Creates the encoder of the values of `array`, which are not copied.
    pub(super) fn new(array: &Int64Array) -> Self {
        Self {
            values: array.values().clone(),
        }
    }
}

impl ValueEncoder for Int64Encoder {
    const KIND: Kind = Kind::Int64;
    const PACKED: bool = true;

    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        varint_len(slices::item(&self.values, value) as u64)
    }

    #[inline]
    fn all_len(&self, values: Range<usize>) -> u64 {
        self.values
            .get(values)
            .unwrap_or_default()
            .iter()
            .map(|value| varint_len(*value as u64))
            .sum()
    }

    /// Writes tag, length and value as one piece of at most twelve bytes.
    #[inline]
    fn write_one(&self, value: usize, len: u64, out: &mut BlockWriter<'_>) {
        let value = slices::item(&self.values, value) as u64;
        out.write(|place: &mut [u8; 12]| {
            put_at(place, 0, [tag(1), len as u8]);
            2 + put_varint(value, place, 2)
        });
    }

    #[inline]
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut BlockWriter<'_>) {
        begin(len, out);
        out.varints(self.values.get(values).unwrap_or_default());
    }
}

/// Writes the tag and the length in bytes of packed values. An empty list has no field.
#[inline]
fn begin(len: u64, out: &mut BlockWriter<'_>) {
    match len {
        0 => {}
        1..0x80 => out.put([tag(1), len as u8], 2),
        _ => {
            out.byte(tag(1));
            out.varint(len);
        }
    }
}
