//! Lists of bytes, copied into a buffer of the column's own.

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteArray,
    types::{BinaryType, ByteArrayType, Utf8Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, within_offsets};
use crate::{ErrorKind, schema::Kind, walk, wire};

/// `bytes_list` as `Binary` or `Utf8`. Arrow checks that text is UTF-8, once for the whole column.
pub(super) struct BytesFamily<T> {
    count: usize,
    bytes: usize,
    offsets: Vec<i32>,
    values: Vec<u8>,
    array: PhantomData<T>,
}

impl BytesFamily<BinaryType> {
    pub(super) fn binary() -> Self {
        Self::new()
    }
}

impl BytesFamily<Utf8Type> {
    pub(super) fn utf8() -> Self {
        Self::new()
    }
}

impl<T> BytesFamily<T> {
    fn new() -> Self {
        Self { count: 0, bytes: 0, offsets: Vec::new(), values: Vec::new(), array: PhantomData }
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
    fn count(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let mut count = 0;
        walk::bytes_values(body, |value| {
            count += 1;
            self.bytes += value.len();
            Ok(())
        })?;
        self.count += count;
        Ok(count)
    }

    fn reserve(&mut self, nulls: usize) -> Result<(), ErrorKind> {
        within_offsets("bytes of one column of a batch", self.bytes)?;
        within_offsets("values in one column of a batch", self.count + nulls)?;
        self.values.reserve_exact(self.bytes);
        self.offsets.reserve_exact(self.count + nulls + 1);
        self.offsets.push(0);
        Ok(())
    }

    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<()> {
        walk::bytes_values(body, |value| {
            self.values.extend_from_slice(value);
            self.end_value();
            Ok(())
        })
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
