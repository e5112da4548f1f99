//! Lists of bytes, copied into a buffer of the column's own.

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteArray,
    types::{BinaryType, ByteArrayType, Utf8Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, Size};
use crate::{schema::Kind, walk, wire};

/// `bytes_list` as `Binary` or `Utf8`. Arrow checks that text is UTF-8, once for the whole column.
pub(super) struct BytesFamily<T> {
    offsets: Vec<i32>,
    values: Vec<u8>,
    nesting: usize,
    array: PhantomData<T>,
}

impl BytesFamily<BinaryType> {
    pub(super) fn binary(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl BytesFamily<Utf8Type> {
    pub(super) fn utf8(nesting: usize) -> Self {
        Self::new(nesting)
    }
}

impl<T> BytesFamily<T> {
    fn new(nesting: usize) -> Self {
        Self { offsets: vec![0], values: Vec::new(), nesting, array: PhantomData }
    }

    fn end_value(&mut self) {
        // The sum was held against what offsets can count when memory was taken.
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
