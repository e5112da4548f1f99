//! Where records are put together: small pieces in a block that stays in the cache, long ones straight in the caller's
//! memory.
//!
//! A copy of a few bytes whose number is not known beforehand costs more than the bytes themselves. Small pieces are
//! therefore stored in whole words, past their end, and what follows overwrites the rest; that takes memory which is
//! there to be written to, and the block is.

/// Bytes of the block.
const BLOCK: usize = 8 << 10;
/// Bytes that go straight to the caller's memory, where there are at least so many at once.
const LONG: usize = 1 << 10;
/// Varints that are written in one go.
const RUN: usize = 64;
/// Bytes of the longest varint, 10, for each of these, and what the last is stored with.
const ROOM: usize = 10 * RUN + 8;
/// Bytes that a short piece is stored with.
pub(super) const PIECE: usize = 16;
/// The high bit of each byte of a word: set where a varint goes on.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Bytes that `value` takes as a varint.
#[inline]
pub(super) fn varint_len(value: u64) -> u64 {
    let bits = u64::from((value | 1).ilog2());
    // Seven bits a byte: bits / 7 + 1, without the division.
    (bits * 9 + 73) / 64
}

/// Appends to the caller's bytes. What is in the block gets there by [`flush`](Self::flush) at the latest.
pub(super) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    block: [u8; BLOCK],
    used: usize,
}

impl<'a> Out<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, block: [0; BLOCK], used: 0 }
    }

    /// All bytes so far.
    pub(super) fn flush(&mut self) -> &mut Vec<u8> {
        self.bytes.extend_from_slice(self.block.get(..self.used).unwrap_or_default());
        self.used = 0;
        self.bytes
    }

    /// Bytes of any number.
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

    /// The bytes of `all` from `start`, `len` of them. Short ones are taken with what lies behind them in `all`.
    #[inline]
    pub(super) fn part(&mut self, all: &[u8], start: usize, len: usize) {
        let rest = all.get(start..).unwrap_or_default();
        match rest.first_chunk::<PIECE>() {
            Some(piece) if len <= PIECE => self.put(*piece, len),
            _ => self.bytes(rest.get(..len).unwrap_or_default()),
        }
    }

    /// The first `len` bytes of `N`.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        self.room(N);
        if let Some(place) = self.block.get_mut(self.used..).and_then(<[u8]>::first_chunk_mut) {
            *place = bytes;
        }
        self.used += len;
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.put([byte], 1);
    }

    /// The bytes of whole pieces, but for the last `spare`, which are fewer than a piece.
    #[inline]
    pub(super) fn pieces(&mut self, first: [u8; PIECE], rest: &[[u8; PIECE]], spare: usize) {
        self.put(first, PIECE);
        rest.iter().for_each(|piece| self.put(*piece, PIECE));
        self.used -= spare;
    }

    #[inline]
    pub(super) fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.byte(value as u8);
        }
        let (word, rest, len) = varint(value);
        self.put(word, len.min(8));
        if len > 8 {
            self.put(rest, len - 8);
        }
    }

    /// The varints of a packed list.
    pub(super) fn varints(&mut self, values: &[i64]) {
        for values in values.chunks(RUN) {
            self.room(ROOM);
            if let Some(place) = self.block.get_mut(self.used..).and_then(<[u8]>::first_chunk_mut) {
                self.used += put_varints(values, place);
            }
        }
    }

    /// Sees to it that `count` bytes fit in the block, which is longer than any that are asked for.
    #[inline]
    fn room(&mut self, count: usize) {
        if BLOCK - self.used < count {
            self.flush();
        }
    }
}

/// Writes at most [`RUN`] varints, and returns how many bytes they take.
#[inline]
fn put_varints(values: &[i64], place: &mut [u8; ROOM]) -> usize {
    let mut at = 0;
    for value in values {
        let (word, rest, len) = varint(*value as u64);
        if let Some(place) = place.get_mut(at..at + 8) {
            place.copy_from_slice(&word);
        }
        if len > 8 && let Some(place) = place.get_mut(at + 8..at + 10) {
            place.copy_from_slice(&rest);
        }
        at += len;
    }
    at
}

/// A varint's first eight bytes, its last two, and how many bytes of them it has.
#[inline]
fn varint(value: u64) -> ([u8; 8], [u8; 2], usize) {
    let len = varint_len(value) as usize;
    // Each byte but the last says that there is more.
    let more = MORE & u64::MAX.checked_shr(72 - 8 * len as u32).unwrap_or_default();
    let word = spread(value & ((1 << 56) - 1));
    if len <= 8 {
        return ((word | more).to_le_bytes(), [0, 0], len);
    }
    let high = (value >> 56) as u8;
    ((word | MORE).to_le_bytes(), if len == 9 { [high, 0] } else { [high | 0x80, 1] }, len)
}

/// Seven bits of the low 56 to a byte.
#[inline]
fn spread(x: u64) -> u64 {
    let x = (x & 0x0fff_ffff) | ((x & 0x00ff_ffff_f000_0000) << 4);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x0fff_c000_0fff_c000) << 2);
    (x & 0x007f_007f_007f_007f) | ((x & 0x3f80_3f80_3f80_3f80) << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the specification has it.
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
    fn varints_of_every_length() {
        for value in (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, u64::MAX << bit, u64::MAX >> bit]) {
            let mut bytes = Vec::new();
            let mut out = Out::new(&mut bytes);
            out.varint(value);
            out.flush();
            assert_eq!(bytes, plain_varint(value), "{value:#x}");
            assert_eq!(varint_len(value), bytes.len() as u64);
        }
    }

    #[test]
    fn pieces_of_all_lengths_in_their_order() {
        let source: Vec<u8> = (0..4 * BLOCK).map(|i| (i * 7 % 251) as u8).collect();
        let mut bytes = vec![9];
        let mut out = Out::new(&mut bytes);
        let mut expect = vec![9];
        for (i, len) in (0..200).chain([LONG - 1, LONG, BLOCK, 2 * BLOCK]).cycle().take(1000).enumerate() {
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
