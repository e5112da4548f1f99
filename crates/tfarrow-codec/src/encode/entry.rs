//! One entry of a record's map from names to features: `key: name, value: { kind: { .. } }`.
//!
//! Like TensorFlow, it always has both fields, also where they are empty.

use super::out::{Out, PIECE, put_at, varint_len};
use crate::Kind;

/// Bytes that a short entry's head is written in: at most 129, and those that a piece has past its end.
const SHORT: usize = 160;

/// Tag of a length-delimited field of this number.
pub(super) const fn tag(field: u8) -> u8 {
    field << 3 | 2
}

/// The tag of a list of this kind in its feature.
pub(super) fn kind_tag(kind: Kind) -> u8 {
    match kind {
        Kind::Bytes => tag(1),
        Kind::Float => tag(2),
        Kind::Int64 => tag(3),
    }
}

/// Bytes of a length-delimited field whose body has `body` bytes.
#[inline]
pub(super) fn field_len(body: u64) -> u64 {
    1 + varint_len(body) + body
}

/// What stands before the body that a column writes.
pub(super) struct Entry {
    /// The field `key`, tag and length included.
    key: Vec<u8>,
    /// The same in whole pieces, the last with zeros.
    pieces: Vec<[u8; PIECE]>,
    /// The tag of the list in its feature; `None` where the body is all that the value has.
    kind: Option<u8>,
    /// Bytes of a short entry but for its body. In a short one, each length takes one byte.
    short_len: u64,
    /// Bodies of fewer bytes make a short entry.
    short_end: u64,
}

impl Entry {
    /// An entry of this name. With a kind its value is a feature, and the body a list's; without one the body is all of
    /// the value.
    pub(super) fn new(name: &str, kind: Option<Kind>) -> Self {
        let mut key = Vec::new();
        let mut out = Out::new(&mut key);
        out.byte(tag(1));
        out.varint(name.len() as u64);
        out.bytes(name.as_bytes());
        out.flush();
        let mut padded = key.clone();
        padded.resize(key.len().next_multiple_of(PIECE), 0);
        let pieces = padded.as_chunks::<PIECE>().0.to_vec();
        let kind = kind.map(kind_tag);
        let inside = key.len() as u64 + 2 + if kind.is_some() { 2 } else { 0 };
        Self { key, pieces, kind, short_len: 2 + inside, short_end: 0x80u64.saturating_sub(inside) }
    }

    /// Bytes of the entry around a body of `body` bytes, and with it.
    #[inline]
    pub(super) fn len(&self, body: u64) -> u64 {
        if body < self.short_end { self.short_len + body } else { field_len(self.inside(self.value_len(body))) }
    }

    /// Writes everything before the body.
    #[inline]
    pub(super) fn begin(&self, body: u64, out: &mut Out<'_>) {
        if body >= self.short_end {
            return self.begin_long(body, out);
        }
        // Less than 128, as are all lengths in it.
        let len = (self.short_len + body - 2) as u8;
        out.write(|place: &mut [u8; SHORT]| {
            put_at(place, 0, [tag(1), len]);
            self.pieces.iter().enumerate().for_each(|(i, piece)| put_at(place, 2 + PIECE * i, *piece));
            let value = 2 + self.key.len();
            match self.kind {
                Some(kind) => {
                    put_at(place, value, [tag(2), body as u8 + 2, kind, body as u8]);
                    value + 4
                }
                None => {
                    put_at(place, value, [tag(2), body as u8]);
                    value + 2
                }
            }
        });
    }

    fn begin_long(&self, body: u64, out: &mut Out<'_>) {
        let value = self.value_len(body);
        out.byte(tag(1));
        out.varint(self.inside(value));
        out.bytes(&self.key);
        out.byte(tag(2));
        out.varint(value);
        if let Some(kind) = self.kind {
            out.byte(kind);
            out.varint(body);
        }
    }

    fn inside(&self, value: u64) -> u64 {
        self.key.len() as u64 + field_len(value)
    }

    fn value_len(&self, body: u64) -> u64 {
        if self.kind.is_some() { field_len(body) } else { body }
    }
}
