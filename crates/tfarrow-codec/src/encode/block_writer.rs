//! Buffered output: short pieces are assembled in a block that stays in the cache, long ones are
//! appended to the caller's bytes.
//!
//! Copying a few bytes costs more than the bytes themselves if their number is not a constant.
//! Short pieces are therefore stored as a constant number of bytes, of which only the first are
//! used; the next piece overwrites the others:
//!
//! ```text
//! put([0a 03 00 00], 2)    block  .. 0a 03 00 00        used + 2
//! put([01 96 01 00], 3)    block  .. 0a 03 01 96 01 00  used + 3
//! ```
//!
//! A copy of a constant number of bytes is one or two instructions; one of a variable number is a
//! call of `memcpy`. The block bounds the bytes that may be overwritten, and is copied to the
//! caller's bytes when it is full.

use crate::{
    example::wire::{LENS, MORE, highest, look_up},
    slices,
};

/// Size of the block in bytes.
const BLOCK: usize = 8 << 10;
/// Smallest number of bytes that is appended to the caller's bytes without the block.
const LONG: usize = 1 << 10;
/// Number of varints that are written at once.
const RUN: usize = 64;
/// Size of a buffer for these varints: 10 bytes each, and 8 by which the last may be stored too
/// long.
const ROOM: usize = 10 * RUN + 8;
/// Number of bytes that a short piece is stored as.
pub(super) const PIECE: usize = 16;
/// The high bits of the first eight bytes of a varint, by the position of its value's highest bit:
/// set in all bytes except the last.
const MORES: [u64; 64] = {
    let mut mores = [MORE; 64];
    let mut bit = 0;
    while bit < 56 {
        mores[bit] = MORE & ((1 << (8 * (bit / 7))) - 1);
        bit += 1;
    }
    mores
};

/// Appends to the caller's bytes, through a block.
///
/// [`flush`](Self::flush) appends the rest of the block, and must be called at the end: bytes in
/// the block are lost with the writer.
pub(super) struct BlockWriter<'a> {
    /// The caller's bytes.
    bytes: &'a mut Vec<u8>,
    /// The bytes that are not appended yet, and room for more.
    block: [u8; BLOCK],
    /// Number of bytes of the block that are written.
    used: usize,
}

impl<'a> BlockWriter<'a> {
    /// Creates a writer that appends to `bytes`.
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self {
            bytes,
            block: [0; BLOCK],
            used: 0,
        }
    }

    /// Appends the block, and returns the caller's bytes.
    pub(super) fn flush(&mut self) -> &mut Vec<u8> {
        self.bytes
            .extend_from_slice(slices::part(&self.block, ..self.used));
        self.used = 0;
        self.bytes
    }

    /// Writes any number of bytes. Many are appended to the caller's bytes without the block.
    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() >= LONG {
            self.flush().extend_from_slice(bytes);
        } else {
            self.room(bytes.len());
            if let Some(place) = self.block.get_mut(self.used..self.used + bytes.len()) {
                place.copy_from_slice(bytes);
            }
            self.used += bytes.len();
        }
    }

    /// Writes `len` bytes of `all` from `start` on. Short ones are stored with the bytes after
    /// them.
    #[inline]
    pub(super) fn part(&mut self, all: &[u8], start: usize, len: usize) {
        let rest = slices::part(all, start..);
        match rest.first_chunk::<PIECE>() {
            Some(piece) if len <= PIECE => self.put(*piece, len),
            _ => self.bytes(slices::part(rest, ..len)),
        }
    }

    /// Writes the first `len` of `N` bytes; `len` is at most `N`.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        self.room(N);
        if let Some(place) = self
            .block
            .get_mut(self.used..)
            .and_then(<[u8]>::first_chunk_mut)
        {
            *place = bytes;
        }
        self.used += len;
    }

    /// Writes one byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.put([byte], 1);
    }

    /// Calls `write` with `N` bytes of the block, and keeps the first of them: as many as `write`
    /// returns.
    #[inline]
    pub(super) fn write<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        self.room(N);
        if let Some(place) = self
            .block
            .get_mut(self.used..)
            .and_then(<[u8]>::first_chunk_mut)
        {
            self.used += write(place);
        }
    }

    /// Writes a varint.
    #[inline]
    pub(super) fn varint(&mut self, value: u64) {
        self.write(|place: &mut [u8; 10]| put_varint(value, place, 0));
    }

    /// Writes the varints of a packed list.
    pub(super) fn varints(&mut self, values: &[i64]) {
        values
            .chunks(RUN)
            .for_each(|values| self.write(|place| put_varints(values, place)));
    }

    /// Flushes the block if it has no space for `count` bytes, which are fewer than its size.
    #[inline]
    fn room(&mut self, count: usize) {
        if BLOCK - self.used < count {
            self.flush();
        }
    }
}

/// Stores at most [`RUN`] varints, and returns their length. Eight values below 128 are stored at
/// once.
#[inline]
fn put_varints(values: &[i64], place: &mut [u8; ROOM]) -> usize {
    let mut at = 0;
    let (eights, tail) = values.as_chunks::<8>();
    for eight in eights {
        if (0..0x80).contains(&eight.iter().fold(0, |all, value| all | *value)) {
            let mut bytes = [0; 8];
            bytes
                .iter_mut()
                .zip(eight)
                .for_each(|(byte, value)| *byte = *value as u8);
            put_at(place, at, bytes);
            at += 8;
        } else {
            eight
                .iter()
                .for_each(|value| at += put_varint(*value as u64, place, at));
        }
    }
    tail.iter()
        .for_each(|value| at += put_varint(*value as u64, place, at));
    at
}

/// Stores a varint at `at`, and returns its length. Up to 10 bytes are overwritten.
#[inline]
pub(super) fn put_varint<const N: usize>(value: u64, place: &mut [u8; N], at: usize) -> usize {
    if value < 1 << 28 {
        let (word, len) = varint_to_4(value as u32);
        put_at(place, at, word);
        return len;
    }
    let (word, rest, len) = varint(value);
    put_at(place, at, word);
    if len > 8 {
        put_at(place, at + 8, rest);
    }
    len
}

/// Stores a constant number of bytes at `at`, if there is space.
#[inline]
pub(super) fn put_at<const N: usize, const M: usize>(
    place: &mut [u8; M],
    at: usize,
    bytes: [u8; N],
) {
    if let Some(place) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = bytes;
    }
}

/// Returns the varint of a value below 2^28, and its length.
#[inline]
fn varint_to_4(value: u32) -> ([u8; 4], usize) {
    let highest = highest(u64::from(value));
    let spread = (value & 0x7f)
        | (value << 1 & 0x7f00)
        | (value << 2 & 0x7f_0000)
        | (value << 3 & 0x7f00_0000);
    (
        (spread | look_up(&MORES, highest) as u32).to_le_bytes(),
        usize::from(look_up(&LENS, highest)),
    )
}

/// Returns the first eight bytes of a varint, its last two, and its length.
#[inline]
fn varint(value: u64) -> ([u8; 8], [u8; 2], usize) {
    let highest = highest(value);
    let low = spread(value & ((1 << 56) - 1)) | look_up(&MORES, highest);
    let high = (value >> 56) as u8;
    // A ninth byte has seven bits; the tenth has one.
    let rest = if highest == 63 {
        [high | 0x80, 1]
    } else {
        [high, 0]
    };
    (
        low.to_le_bytes(),
        rest,
        usize::from(look_up(&LENS, highest)),
    )
}

/// Distributes the low 56 bits to eight bytes of seven bits.
///
/// ```text
/// 150 = 0000001 0010110        bytes 16 01; with the high bit of all but the last: 96 01
/// ```
#[inline]
fn spread(x: u64) -> u64 {
    let x = (x & 0x0fff_ffff) | ((x & 0x00ff_ffff_f000_0000) << 4);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x0fff_c000_0fff_c000) << 2);
    (x & 0x007f_007f_007f_007f) | ((x & 0x3f80_3f80_3f80_3f80) << 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::wire::varint_len;

    /// A varint by the definition in the specification.
    fn plain_varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    #[test]
    fn varints_of_every_length_are_written() {
        for value in (0..64).flat_map(|bit| {
            [
                1u64 << bit,
                (1u64 << bit) - 1,
                u64::MAX << bit,
                u64::MAX >> bit,
            ]
        }) {
            let mut bytes = Vec::new();
            let mut out = BlockWriter::new(&mut bytes);
            out.varint(value);
            out.flush();
            assert_eq!(bytes, plain_varint(value), "{value:#x}");
            assert_eq!(varint_len(value), bytes.len() as u64);
        }
    }

    #[test]
    fn pieces_of_all_lengths_are_written_in_order() {
        let source: Vec<u8> = (0..4 * BLOCK).map(|i| (i * 7 % 251) as u8).collect();
        let mut bytes = vec![9];
        let mut out = BlockWriter::new(&mut bytes);
        let mut expect = vec![9];
        for (i, len) in (0..200)
            .chain([LONG - 1, LONG, BLOCK, 2 * BLOCK])
            .cycle()
            .take(1000)
            .enumerate()
        {
            out.part(&source, i, len);
            out.bytes(&source[..len]);
            out.varints(&[-1, i as i64]);
            out.put([1, 2, 3, 4], i % 4);
            out.byte(5);
            expect.extend(&source[i..i + len]);
            expect.extend(&source[..len]);
            expect.extend(plain_varint(u64::MAX));
            expect.extend(plain_varint(i as u64));
            expect.extend(&[1, 2, 3, 4][..i % 4]);
            expect.push(5);
        }
        out.part(&source[..20], 10, 10);
        expect.extend(&source[10..20]);
        out.flush();
        assert_eq!(bytes, expect);
    }
}
