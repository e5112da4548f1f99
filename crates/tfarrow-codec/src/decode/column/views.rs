//! `bytes_list` columns of views: long values stay in the chunk.
//!
//! An Arrow view has 16 bytes: the length of the value, and either the value itself (up to 12
//! bytes) or its first 4 bytes, the number of a buffer and an offset in it.
//!
//! ```text
//! length of the value    stored in
//! 0 ..= 12               the view
//! 13 .. 1024             buffer 1, a copy in the column's own buffer
//! 1024 ..                buffer 0, the chunk; buffer 1 if the value is not in the chunk
//! ```

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteViewArray,
    builder::make_view,
    types::{BinaryViewType, ByteViewType, StringViewType},
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Size, ValueDecoder};
use crate::{
    example::{
        tape::{Places, offset_in},
        walk, wire,
    },
    schema::Kind,
};

/// Smallest length of values that stay in the chunk. Shorter ones are copied, so that a small
/// result does not keep chunks in memory.
const LONG: usize = 1024;

/// Largest length of values that are stored in the view itself.
const INLINE: usize = 12;

/// Number of the chunk among the buffers of the array.
const CHUNK: u32 = 0;
/// Number of the column's own buffer.
const OWN: u32 = 1;

/// Decodes `bytes_list` to `BinaryView` or `Utf8View`. `T` is the type of the array.
pub(super) struct ViewDecoder<'t, T> {
    /// The chunk, which becomes a buffer of the array if a view refers to it.
    places: Places<'t>,
    /// The views of all values.
    views: Vec<u128>,
    /// The bytes of values that are neither in their views nor in the chunk.
    own: Vec<u8>,
    array: PhantomData<T>,
}

impl<'t> ViewDecoder<'t, BinaryViewType> {
    /// Creates the decoder of `BinaryView` columns.
    pub(super) fn binary(places: Places<'t>) -> Self {
        Self::new(places)
    }
}

impl<'t> ViewDecoder<'t, StringViewType> {
    /// Creates the decoder of `Utf8View` columns.
    pub(super) fn utf8(places: Places<'t>) -> Self {
        Self::new(places)
    }
}

impl<'t, T> ViewDecoder<'t, T> {
    /// Creates an empty column.
    fn new(places: Places<'t>) -> Self {
        Self {
            places,
            views: Vec::new(),
            own: Vec::new(),
            array: PhantomData,
        }
    }

    /// Returns the offset of a value in the chunk, if it is to stay there.
    ///
    /// ```text
    /// chunk  [.. 2,000 bytes of an image ..]     a view: length 2000, first 4 bytes, buffer 0, offset in the chunk
    /// ```
    fn stays(&self, value: &[u8]) -> Option<u32> {
        let offset = offset_in(self.places.chunk, value).filter(|_| value.len() >= LONG)?;
        // The offsets of views are signed in Arrow's specification.
        i32::try_from(offset).ok().map(|offset| offset as u32)
    }

    /// Makes the array of these values, for messages of any type.
    ///
    /// # Errors
    /// Arrow rejects the array.
    pub(super) fn of_values<'v>(
        mut self,
        values: impl Iterator<Item = &'v [u8]>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, ArrowError>
    where
        T: ByteViewType,
    {
        values.for_each(|value| self.push_value(value));
        self.finish(nulls)
    }

    /// Appends the view of a value, and copies the value unless it is in the view or stays in the
    /// chunk.
    fn push_value(&mut self, value: &[u8]) {
        let view = if value.len() <= INLINE {
            make_view(value, OWN, 0)
        } else if let Some(offset) = self.stays(value) {
            make_view(value, CHUNK, offset)
        } else {
            let offset = self.own.len() as u32;
            self.own.extend_from_slice(value);
            make_view(value, OWN, offset)
        };
        self.views.push(view);
    }
}

impl<'t, T: ByteViewType> ValueDecoder<'t> for ViewDecoder<'t, T> {
    fn kind(&self) -> Kind {
        Kind::Bytes
    }

    /// Counts values, and the bytes of those that [`push_value`](Self::push_value) will copy.
    #[inline]
    fn size(&self, body: &'t [u8]) -> wire::Result<Size> {
        let mut size = Size::default();
        walk::bytes_values(body, self.places.nesting, |value| {
            size.values += 1;
            if value.len() > INLINE && self.stays(value).is_none() {
                size.bytes += value.len();
            }
            Ok(())
        })?;
        Ok(size)
    }

    fn copied(&self, len: usize) -> usize {
        // A longer body has one long value, which stays in the chunk, or several values, which are
        // an error in a scalar column.
        if len < LONG + 16 { len } else { 0 }
    }

    fn reserve(&mut self, size: Size) {
        self.own.reserve_exact(size.bytes);
        self.views.reserve_exact(size.values);
    }

    #[inline]
    fn push(&mut self, body: &'t [u8]) -> wire::Result<usize> {
        let before = self.views.len();
        walk::bytes_values(body, self.places.nesting, |value| {
            self.push_value(value);
            Ok(())
        })?;
        Ok(self.views.len() - before)
    }

    /// The view under a null is that of an empty value.
    fn push_null(&mut self) {
        self.views.push(0);
    }

    /// Makes the array. Its buffers hold the chunk only if a view refers to it, since they keep it
    /// in memory.
    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let views_chunk = self
            .views
            .iter()
            .any(|view| *view as u32 > INLINE as u32 && (view >> 64) as u32 == CHUNK);
        let chunk = if views_chunk {
            self.places.chunk.clone()
        } else {
            Buffer::from(&[])
        };
        let buffers = if views_chunk || !self.own.is_empty() {
            vec![chunk, self.own.into()]
        } else {
            vec![]
        };
        let array =
            GenericByteViewArray::<T>::try_new(ScalarBuffer::from(self.views), buffers, nulls)?;
        Ok(Arc::new(array))
    }
}
