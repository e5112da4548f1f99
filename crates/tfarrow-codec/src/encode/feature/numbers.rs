//! Values of a `float_list` or an `int64_list`: packed in one field, as TensorFlow writes them.
//!
//! ```text
//! int64 [1, 150]    0a 03   01  96 01
//! float [1.0]       0a 04   00 00 80 3f
//! []                (no field)
//! ```

use std::ops::Range;

use arrow_array::{Float32Array, Int64Array};
use arrow_buffer::ScalarBuffer;

use super::Family;
use crate::{
    Kind,
    encode::{
        entry::tag,
        out::{Out, put_at, put_varint, varint_len},
    },
};

/// 32-bit floats, written with their bits.
pub(super) struct FloatFamily {
    values: ScalarBuffer<f32>,
}

impl FloatFamily {
    pub(super) fn new(array: &Float32Array) -> Self {
        Self { values: array.values().clone() }
    }
}

impl Family for FloatFamily {
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

    #[inline]
    fn write_one(&self, value: usize, len: u64, out: &mut Out<'_>) {
        let [a, b, c, d] = self.values.get(value).copied().unwrap_or_default().to_le_bytes();
        out.put([tag(1), len as u8, a, b, c, d, 0, 0], 6);
    }

    #[inline]
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut Out<'_>) {
        begin(len, out);
        if cfg!(target_endian = "little") {
            // Floats on the wire are little-endian, as in the memory of this machine.
            let bytes = self.values.inner().as_slice();
            out.part(bytes, 4 * values.start, 4 * values.len());
        } else {
            let values = self.values.get(values).unwrap_or_default();
            values.iter().for_each(|value| out.put(value.to_le_bytes(), 4));
        }
    }
}

/// 64-bit integers, written as varints.
pub(super) struct Int64Family {
    values: ScalarBuffer<i64>,
}

impl Int64Family {
    pub(super) fn new(array: &Int64Array) -> Self {
        Self { values: array.values().clone() }
    }
}

impl Family for Int64Family {
    const KIND: Kind = Kind::Int64;
    const PACKED: bool = true;

    #[inline]
    fn one_len(&self, value: usize) -> u64 {
        varint_len(self.values.get(value).copied().unwrap_or_default() as u64)
    }

    #[inline]
    fn all_len(&self, values: Range<usize>) -> u64 {
        self.values.get(values).unwrap_or_default().iter().map(|value| varint_len(*value as u64)).sum()
    }

    #[inline]
    fn write_one(&self, value: usize, len: u64, out: &mut Out<'_>) {
        let value = self.values.get(value).copied().unwrap_or_default() as u64;
        out.write(|place: &mut [u8; 12]| {
            put_at(place, 0, [tag(1), len as u8]);
            2 + put_varint(value, place, 2)
        });
    }

    #[inline]
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut Out<'_>) {
        begin(len, out);
        out.varints(self.values.get(values).unwrap_or_default());
    }
}

/// Writes the tag and the length of packed values. An empty list has no field.
#[inline]
fn begin(len: u64, out: &mut Out<'_>) {
    match len {
        0 => {}
        1..0x80 => out.put([tag(1), len as u8], 2),
        _ => {
            out.byte(tag(1));
            out.varint(len);
        }
    }
}
