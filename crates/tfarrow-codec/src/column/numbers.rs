//! Lists of floats and of integers.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array};
use arrow_buffer::{MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, within_offsets};
use crate::{
    ErrorKind,
    schema::Kind,
    walk::{self, Numbers},
    wire,
};

/// `int64_list` as `Int64`.
#[derive(Default)]
pub(super) struct Int64Family {
    count: usize,
    values: Vec<i64>,
}

impl<'t> Family<'t> for Int64Family {
    fn kind(&self) -> Kind {
        Kind::Int64
    }

    #[inline]
    fn count(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let mut count = 0;
        walk::int64_pieces(body, |piece| {
            count += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)?,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?;
        self.count += count;
        Ok(count)
    }

    fn reserve(&mut self, nulls: usize) -> Result<(), ErrorKind> {
        within_offsets("values in one column of a batch", self.count + nulls)?;
        self.values.reserve_exact(self.count + nulls);
        Ok(())
    }

    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<()> {
        walk::int64_pieces(body, |piece| match piece {
            Numbers::Packed(bytes) => wire::unpack_varints(bytes, &mut self.values),
            Numbers::One(value) => {
                self.values.push(value as i64);
                Ok(())
            }
        })
    }

    fn push_null(&mut self) {
        self.values.push(0);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(Int64Array::try_new(self.values.into(), nulls)?))
    }
}

/// `float_list` as `Float32`, to the bit.
#[derive(Default)]
pub(super) struct FloatFamily {
    count: usize,
    /// The values' bytes: a packed list is copied as it stands.
    values: MutableBuffer,
}

impl<'t> Family<'t> for FloatFamily {
    fn kind(&self) -> Kind {
        Kind::Float
    }

    #[inline]
    fn count(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let mut count = 0;
        walk::float_pieces(body, |piece| {
            count += match piece {
                Numbers::Packed(bytes) => bytes.len() / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?;
        self.count += count;
        Ok(count)
    }

    fn reserve(&mut self, nulls: usize) -> Result<(), ErrorKind> {
        within_offsets("values in one column of a batch", self.count + nulls)?;
        self.values.reserve(4 * (self.count + nulls));
        Ok(())
    }

    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<()> {
        walk::float_pieces(body, |piece| {
            match piece {
                Numbers::Packed(bytes) => push_packed(bytes, &mut self.values),
                Numbers::One(value) => self.values.push(f32::from_le_bytes(value)),
            }
            Ok(())
        })
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

/// The wire has floats as a little-endian machine has them in memory.
fn push_packed(bytes: &[u8], values: &mut MutableBuffer) {
    if cfg!(target_endian = "little") {
        values.extend_from_slice(bytes);
    } else {
        bytes.as_chunks::<4>().0.iter().for_each(|value| values.push(f32::from_le_bytes(*value)));
    }
}
