//! Lists of bytes as views: long values stay where they are, in the chunk.

use std::{marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, GenericByteViewArray,
    builder::make_view,
    types::{BinaryViewType, ByteViewType, StringViewType},
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{Family, Size};
use crate::{
    schema::Kind,
    tape::{Places, offset_in},
    walk, wire,
};

/// Values of at least this many bytes are views into the chunk. Shorter ones are copied, so that a small result does
/// not keep a data set's chunks alive.
const LONG: usize = 1024;

/// Values of at most this many bytes stand in the view itself.
const INLINE: usize = 12;

/// The number of the chunk among the array's buffers; the column's own buffer is the other.
const CHUNK: u32 = 0;
const OWN: u32 = 1;

/// `bytes_list` as `BinaryView` or `Utf8View`.
pub(super) struct ViewFamily<'t, T> {
    places: Places<'t>,
    views: Vec<u128>,
    own: Vec<u8>,
    array: PhantomData<T>,
}

impl<'t> ViewFamily<'t, BinaryViewType> {
    pub(super) fn binary(places: Places<'t>) -> Self {
        Self::new(places)
    }
}

impl<'t> ViewFamily<'t, StringViewType> {
    pub(super) fn utf8(places: Places<'t>) -> Self {
        Self::new(places)
    }
}

impl<'t, T> ViewFamily<'t, T> {
    fn new(places: Places<'t>) -> Self {
        Self { places, views: Vec::new(), own: Vec::new(), array: PhantomData }
    }

    /// Where a value lies in the chunk, if it is to stay there.
    fn stays(&self, value: &[u8]) -> Option<u32> {
        let offset = offset_in(self.places.chunk, value).filter(|_| value.len() >= LONG)?;
        // Arrow's views are signed in other languages.
        i32::try_from(offset).ok().map(|offset| offset as u32)
    }

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

impl<'t, T: ByteViewType> Family<'t> for ViewFamily<'t, T> {
    fn kind(&self) -> Kind {
        Kind::Bytes
    }

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
        // A body that is longer by a tag and a length holds one long value, or several short ones.
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

    fn push_null(&mut self) {
        self.views.push(0);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let views_chunk = self.views.iter().any(|view| *view as u32 > INLINE as u32 && (view >> 64) as u32 == CHUNK);
        let chunk = if views_chunk { self.places.chunk.clone() } else { Buffer::from(&[]) };
        let buffers = if views_chunk || !self.own.is_empty() { vec![chunk, self.own.into()] } else { vec![] };
        let array = GenericByteViewArray::<T>::try_new(ScalarBuffer::from(self.views), buffers, nulls)?;
        Ok(Arc::new(array))
    }
}
