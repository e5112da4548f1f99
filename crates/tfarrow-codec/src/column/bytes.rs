//! `bytes_list` columns whose values are copied to a buffer of the column.
//!
//! ```text
//! BytesList  0a 01 'a'  0a 02 'b' 'c'      values  'a' 'b' 'c'      offsets  0  1  3
//! ```

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteArray,
    types::{BinaryType, ByteArrayType, Utf8Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, Size};
use crate::{schema::Kind, walk, wire};

/// `bytes_list` as `Binary` or `Utf8`. Arrow validates the UTF-8 of the complete column at once.
pub(super) struct BytesFamily<T> {
    /// The end of each value in `values`, after a 0.
    offsets: Vec<i32>,
    /// The bytes of all values.
    values: Vec<u8>,
    /// Allowed depth of groups in unknown fields.
    nesting: usize,
    array: PhantomData<T>,
}

impl BytesFamily<BinaryType> {
    /// Creates the family of `Binary` columns.
    pub(super) fn binary(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl BytesFamily<Utf8Type> {
    /// Creates the family of `Utf8` columns.
    pub(super) fn utf8(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl<T> BytesFamily<T> {
    fn new(nesting: usize) -> Self {
        Self { offsets: vec![0], values: Vec::new(), nesting, array: PhantomData }
    }

    /// Ends a value, which may be empty.
    fn end_value(&mut self) {
        // The total was checked against the largest offset when memory was allocated.
        self.offsets.push(self.values.len() as i32);
    }
}

impl<'t, T: ByteArrayType<Offset = i32>> Family<'t> for BytesFamily<T> {
    fn kind(&self) -> Kind {
        Kind::Bytes
    }

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

    fn push_null(&mut self) {
        self.end_value();
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let array = GenericByteArray::<T>::try_new(offsets, Buffer::from_vec(self.values), nulls)?;
        Ok(Arc::new(array))
    }
}
