//! An entry of the map from names to features: `key: name, value: { kind: { .. } }`.
//!
//! Like TensorFlow's writer, it always has both fields, also empty ones. A column writes the body
//! of the list, and [`Entry`] everything before it:
//!
//! ```text
//! 0a 10                 entry: field 1 of the map, 16 bytes
//!    0a 03 'a' 'g' 'e'  key
//!    12 09              value: a Feature of 9 bytes
//!       1a 07           int64_list of 7 bytes            <- the last bytes that Entry writes
//!          0a 05 ..     the body, which the column writes
//! ```

use super::block_writer::{BlockWriter, PIECE, put_at};
use crate::{Kind, example::wire::varint_len};

/// Size of the buffer for the start of a short entry: at most 129 bytes, and those by which the
/// last piece exceeds it.
const SHORT: usize = 160;

/// Returns the tag of a length-delimited field.
pub(super) const fn tag(field: u8) -> u8 {
    field << 3 | 2
}

/// Returns the tag of a list of this kind in its `Feature`.
pub(super) fn kind_tag(kind: Kind) -> u8 {
    match kind {
        Kind::Bytes => tag(1),
        Kind::Float => tag(2),
        Kind::Int64 => tag(3),
    }
}

/// Returns the length of a length-delimited field with a body of `body` bytes.
#[inline]
pub(super) fn field_len(body: u64) -> u64 {
    1 + varint_len(body) + body
}

/// The bytes before the body of a list, which are the same in every row but for lengths.
pub(super) struct Entry {
    /// The field `key` with its tag and length.
    key: Vec<u8>,
    /// The same bytes in pieces of a fixed size, padded with zeros.
    pieces: Vec<[u8; PIECE]>,
    /// The tag of the list in its `Feature`; `None` if the body is the complete value.
    kind: Option<u8>,
    /// Length of a short entry without its body. All lengths in a short entry take one byte.
    short_len: u64,
    /// Smallest length of a body with which the entry is not short.
    short_end: u64,
}

impl Entry {
    /// Creates the entry of a feature. With a kind, the value is a `Feature` and the body that of
    /// its list; without one, the body is the complete value.
    pub(super) fn new(name: &str, kind: Option<Kind>) -> Self {
        let mut key = Vec::new();
        let mut out = BlockWriter::new(&mut key);
        out.byte(tag(1));
        out.varint(name.len() as u64);
        out.bytes(name.as_bytes());
        out.flush();
        let mut padded = key.clone();
        padded.resize(key.len().next_multiple_of(PIECE), 0);
        let pieces = padded.as_chunks::<PIECE>().0.to_vec();
        let kind = kind.map(kind_tag);
        let inside = key.len() as u64 + 2 + if kind.is_some() { 2 } else { 0 };
        Self {
            key,
            pieces,
            kind,
            short_len: 2 + inside,
            short_end: 0x80u64.saturating_sub(inside),
        }
    }

    /// Returns the length of the entry with a body of `body` bytes.
    #[inline]
    pub(super) fn len(&self, body: u64) -> u64 {
        if body < self.short_end {
            self.short_len + body
        } else {
            field_len(self.inside(self.value_len(body)))
        }
    }

    /// Writes everything before a body of `body` bytes. The start of a short entry is one piece,
    /// with its lengths patched in.
    #[inline]
    pub(super) fn begin(&self, body: u64, out: &mut BlockWriter<'_>) {
        if body >= self.short_end {
            return self.begin_long(body, out);
        }
        // Less than 128, as are all lengths inside the entry.
        let len = (self.short_len + body - 2) as u8;
        out.write(|place: &mut [u8; SHORT]| {
            put_at(place, 0, [tag(1), len]);
            self.pieces
                .iter()
                .enumerate()
                .for_each(|(i, piece)| put_at(place, 2 + PIECE * i, *piece));
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

    /// Writes the start of an entry whose lengths may take several bytes.
    fn begin_long(&self, body: u64, out: &mut BlockWriter<'_>) {
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

    /// Returns the length of the entry's fields, given the length of the value.
    fn inside(&self, value: u64) -> u64 {
        self.key.len() as u64 + field_len(value)
    }

    /// Returns the length of the value, given the length of the body.
    fn value_len(&self, body: u64) -> u64 {
        if self.kind.is_some() {
            field_len(body)
        } else {
            body
        }
    }
}
