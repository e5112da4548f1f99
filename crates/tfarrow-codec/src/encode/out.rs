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

/// Bytes of a varint, by the place of its value's highest bit: seven bits a byte.
const LENS: [u8; 64] = {
    let mut lens = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        lens[bit] = bit as u8 / 7 + 1;
        bit += 1;
    }
    lens
};
/// The bits that say that there is more, in each of the first eight bytes but the varint's last, likewise.
const MORES: [u64; 64] = {
    let mut mores = [MORE; 64];
    let mut bit = 0;
    while bit < 56 {
        mores[bit] = MORE & ((1 << (8 * (bit / 7))) - 1);
        bit += 1;
    }
    mores
};

/// The place of the highest bit. Zero is as long as one.
#[inline]
fn highest(value: u64) -> usize {
    (value | 1).ilog2() as usize
}

/// Bytes that `value` takes as a varint.
#[inline]
pub(crate) fn varint_len(value: u64) -> u64 {
    u64::from(look_up(&LENS, highest(value)))
}

/// What a table has for a bit. There are 64 of both, and no check is left of this.
#[inline]
fn look_up<T: Copy + Default>(table: &[T; 64], bit: usize) -> T {
    table.get(bit).copied().unwrap_or_default()
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

    /// What `write` writes, at most `N` bytes, of which it returns the number.
    #[inline]
    pub(super) fn write<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        self.room(N);
        if let Some(place) = self.block.get_mut(self.used..).and_then(<[u8]>::first_chunk_mut) {
            self.used += write(place);
        }
    }

    #[inline]
    pub(super) fn varint(&mut self, value: u64) {
        self.write(|place: &mut [u8; 10]| put_varint(value, place, 0));
    }

    /// The varints of a packed list.
    pub(super) fn varints(&mut self, values: &[i64]) {
        values.chunks(RUN).for_each(|values| self.write(|place| put_varints(values, place)));
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
    let (eights, tail) = values.as_chunks::<8>();
    for eight in eights {
        if (0..0x80).contains(&eight.iter().fold(0, |all, value| all | *value)) {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(eight).for_each(|(byte, value)| *byte = *value as u8);
            put_at(place, at, bytes);
            at += 8;
        } else {
            eight.iter().for_each(|value| at += put_varint(*value as u64, place, at));
        }
    }
    tail.iter().for_each(|value| at += put_varint(*value as u64, place, at));
    at
}

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

#[inline]
pub(super) fn put_at<const N: usize, const M: usize>(place: &mut [u8; M], at: usize, bytes: [u8; N]) {
    if let Some(place) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = bytes;
    }
}

/// The varint of a value of at most 28 bits, and how many of its bytes there are.
#[inline]
fn varint_to_4(value: u32) -> ([u8; 4], usize) {
    let highest = highest(u64::from(value));
    let spread = (value & 0x7f) | (value << 1 & 0x7f00) | (value << 2 & 0x7f_0000) | (value << 3 & 0x7f00_0000);
    ((spread | look_up(&MORES, highest) as u32).to_le_bytes(), usize::from(look_up(&LENS, highest)))
}

/// A varint's first eight bytes, its last two, and how many of them there are.
#[inline]
fn varint(value: u64) -> ([u8; 8], [u8; 2], usize) {
    let highest = highest(value);
    let low = spread(value & ((1 << 56) - 1)) | look_up(&MORES, highest);
    let high = (value >> 56) as u8;
    // A ninth byte has seven bits; the tenth has one.
    let rest = if highest == 63 { [high | 0x80, 1] } else { [high, 0] };
    (low.to_le_bytes(), rest, usize::from(look_up(&LENS, highest)))
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
