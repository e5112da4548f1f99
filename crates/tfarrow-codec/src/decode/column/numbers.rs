//! `int64_list` and `float_list` columns.
//!
//! ```text
//! Int64List  0a 03  01  96 01              packed varints: 1, 150
//! FloatList  0a 04  00 00 80 3f            packed little-endian floats: 1.0
//! FloatList  0d 00 00 80 3f                not packed: 1.0
//! ```
//!
//! `feature.proto` declares both lists as packed, which is the form that TensorFlow writes: one
//! field with all values. Parsers must also accept a field for each value, and any mixture. A
//! packed list is decoded as a whole, which is where the speed of the codec comes from:
//!
//! - varints are decoded eight bytes at a time ([`wire::unpack_varints`]),
//! - floats have the form of Arrow's buffer, and are copied.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array};
use arrow_buffer::{MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Size, ValueDecoder};
use crate::{
    example::{
        walk::{self, Numbers},
        wire,
    },
    schema::Kind,
};

/// Decodes `int64_list` to `Int64`. Varints are the 64 bits of the value, so that a negative one
/// takes ten bytes.
pub(super) struct Int64Decoder {
    /// The decoded values.
    values: Vec<i64>,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
}

impl Int64Decoder {
    /// Creates an empty column.
    pub(super) fn new(nesting: usize) -> Self {
        Self {
            values: Vec::new(),
            nesting,
        }
    }
}

impl<'t> ValueDecoder<'t> for Int64Decoder {
    fn kind(&self) -> Kind {
        Kind::Int64
    }

    /// Counts the varints, and checks that the last one is complete and none is too long.
    /// [`push`](Self::push) relies on that.
    #[inline]
    fn size(&self, body: &'t [u8]) -> wire::Result<Size> {
        let mut values = 0;
        walk::int64_pieces(body, self.nesting, |piece| {
            values += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)?,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?;
        Ok(Size { values, bytes: 0 })
    }

    fn copied(&self, _: usize) -> usize {
        0
    }

    fn reserve(&mut self, size: Size) {
        self.values.reserve_exact(size.values);
    }

    /// Decodes a list. A packed list of one value, as most scalar features have, is read without
    /// the general loop.
    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        if let Some(mut one) = wire::sole(body, 0x0a)
            && let Ok(value) = wire::varint(&mut one)
            && one.is_empty()
        {
            self.values.push(value as i64);
            return Ok(1);
        }
        let before = self.values.len();
        walk::int64_pieces(body, self.nesting, |piece| match piece {
            Numbers::Packed(bytes) => wire::unpack_varints(bytes, &mut self.values),
            Numbers::One(value) => {
                self.values.push(value as i64);
                Ok(())
            }
        })?;
        Ok(self.values.len() - before)
    }

    /// The value under a null is 0.
    fn push_null(&mut self) {
        self.values.push(0);
    }

    /// Makes the array of the values, without a copy.
    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(Int64Array::try_new(self.values.into(), nulls)?))
    }
}

/// Decodes `float_list` to `Float32`, with the bits of the wire, NaNs included.
pub(super) struct FloatDecoder {
    /// The bytes of the values. A packed list is copied to it in one piece.
    values: MutableBuffer,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
}

impl FloatDecoder {
    /// Creates an empty column.
    pub(super) fn new(nesting: usize) -> Self {
        Self {
            values: MutableBuffer::default(),
            nesting,
        }
    }
}

impl<'t> ValueDecoder<'t> for FloatDecoder {
    fn kind(&self) -> Kind {
        Kind::Float
    }

    /// Counts the floats: a quarter of the bytes of a packed list, whose length was checked to be a
    /// multiple of 4.
    #[inline]
    fn size(&self, body: &'t [u8]) -> wire::Result<Size> {
        let mut values = 0;
        walk::float_pieces(body, self.nesting, |piece| {
            values += match piece {
                Numbers::Packed(bytes) => bytes.len() / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?;
        Ok(Size { values, bytes: 0 })
    }

    fn copied(&self, _: usize) -> usize {
        0
    }

    fn reserve(&mut self, size: Size) {
        self.values.reserve(4 * size.values);
    }

    /// Appends the values of a list. A packed list is copied in one piece.
    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let before = self.values.len();
        walk::float_pieces(body, self.nesting, |piece| {
            match piece {
                Numbers::Packed(bytes) => push_packed(bytes, &mut self.values),
                Numbers::One(value) => self.values.push(f32::from_le_bytes(value)),
            }
            Ok(())
        })?;
        Ok((self.values.len() - before) / 4)
    }

    /// The value under a null is 0.
    fn push_null(&mut self) {
        self.values.push(0f32);
    }

    /// Makes the array of the bytes, without a copy.
    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let len = self.values.len() / 4;
        let values = ScalarBuffer::new(self.values.into(), 0, len);
        Ok(Arc::new(Float32Array::try_new(values, nulls)?))
    }
}

/// Appends packed floats, which are little-endian on the wire: a copy of their bytes on machines of
/// the same byte order.
fn push_packed(bytes: &[u8], values: &mut MutableBuffer) {
    if cfg!(target_endian = "little") {
        values.extend_from_slice(bytes);
    } else {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .for_each(|value| values.push(f32::from_le_bytes(*value)));
    }
}
