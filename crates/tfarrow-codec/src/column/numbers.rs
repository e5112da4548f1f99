//! `int64_list` and `float_list` columns.
//!
//! ```text
//! Int64List  0a 03  01  96 01              packed varints: 1, 150
//! FloatList  0a 04  00 00 80 3f            packed little-endian floats: 1.0
//! FloatList  0d 00 00 80 3f                not packed: 1.0
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array};
use arrow_buffer::{MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, Size};
use crate::{
    schema::Kind,
    walk::{self, Numbers},
    wire,
};

/// `int64_list` as `Int64`.
pub(super) struct Int64Family {
    /// The decoded values.
    values: Vec<i64>,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
}

impl Int64Family {
    /// Creates an empty column.
    pub(super) fn new(nesting: usize) -> Self {
        Self { values: Vec::new(), nesting }
    }
}

impl<'t> Family<'t> for Int64Family {
    fn kind(&self) -> Kind {
        Kind::Int64
    }

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

    fn push_null(&mut self) {
        self.values.push(0);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(Int64Array::try_new(self.values.into(), nulls)?))
    }
}

/// `float_list` as `Float32`, with the bits of the wire, NaNs included.
pub(super) struct FloatFamily {
    /// The bytes of the values. A packed list is copied to it in one piece.
    values: MutableBuffer,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
}

impl FloatFamily {
    /// Creates an empty column.
    pub(super) fn new(nesting: usize) -> Self {
        Self { values: MutableBuffer::default(), nesting }
    }
}

impl<'t> Family<'t> for FloatFamily {
    fn kind(&self) -> Kind {
        Kind::Float
    }

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

    fn push_null(&mut self) {
        self.values.push(0f32);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let len = self.values.len() / 4;
        let values = ScalarBuffer::new(self.values.into(), 0, len);
        Ok(Arc::new(Float32Array::try_new(values, nulls)?))
    }
}

/// Appends packed floats, which are little-endian on the wire.
fn push_packed(bytes: &[u8], values: &mut MutableBuffer) {
    if cfg!(target_endian = "little") {
        values.extend_from_slice(bytes);
    } else {
        bytes.as_chunks::<4>().0.iter().for_each(|value| values.push(f32::from_le_bytes(*value)));
    }
}
