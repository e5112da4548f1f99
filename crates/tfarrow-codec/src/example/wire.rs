//! Protobuf's wire format: varints, tags, lengths, and skipping unknown fields.
//!
//! Each function removes the bytes that it reads from the front of `rest`. A message is a sequence
//! of fields, each a tag and a value:
//!
//! ```text
//! 08 96 01        tag 08 = field 1 << 3 | VARINT;   varint: 0x16 + (0x01 << 7) = 150
//! 12 02 'h' 'i'   tag 12 = field 2 << 3 | LEN;      length 2, then 2 bytes
//! 1d 00 00 80 3f  tag 1d = field 3 << 3 | FIXED32;  4 bytes, little-endian: 1.0f
//! ```
//!
//! The source is <https://protobuf.dev/programming-guides/encoding/>. Where that is not specific,
//! the rules are those of the parsers that TensorFlow is built with: varints of values and lengths
//! have up to 10 bytes, those of tags up to 5; bits beyond the width of a value are dropped; and a
//! known field with an unexpected wire type is an unknown field. docs/mapping.md lists these rules.

use crate::{WireError, slices};

/// The result of reading wire bytes.
pub(crate) type Result<T> = std::result::Result<T, WireError>;

/// Wire type of `int64` in a field of its own.
pub(crate) const VARINT: u8 = 0;
/// Wire type of `fixed64` and `double`.
pub(crate) const FIXED64: u8 = 1;
/// Wire type of bytes, strings, messages and packed lists.
pub(crate) const LEN: u8 = 2;
/// Wire type of the start of a group.
pub(crate) const START_GROUP: u8 = 3;
/// Wire type of the end of a group.
pub(crate) const END_GROUP: u8 = 4;
/// Wire type of `float` in a field of its own.
pub(crate) const FIXED32: u8 = 5;

/// The high bit of each byte of a word, which is set in all bytes of a varint except its last.
pub(crate) const MORE: u64 = 0x8080_8080_8080_8080;

/// The length of a varint by the position of its value's highest bit: a byte for every seven bits.
pub(crate) const LENS: [u8; 64] = {
    let mut lens = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        lens[bit] = bit as u8 / 7 + 1;
        bit += 1;
    }
    lens
};

/// A field number and a wire type.
pub(crate) type Tag = (u32, u8);

/// Reads the varint of a value.
///
/// # Errors
/// [`WireError::PastEnd`] if it is truncated, [`WireError::LongVarint`] for more than 10 bytes.
pub(crate) fn varint(rest: &mut &[u8]) -> Result<u64> {
    if let [byte @ ..=0x7f, tail @ ..] = *rest {
        *rest = tail;
        return Ok(u64::from(*byte));
    }
    long_varint(rest, 10)
}

/// Reads a varint of more than one byte, of at most `most` bytes. Not inlined, since most varints
/// have one byte.
///
/// Bits beyond 64 are dropped, as by protobuf's parsers.
#[inline(never)]
fn long_varint(rest: &mut &[u8], most: usize) -> Result<u64> {
    let mut value = 0u64;
    for (i, byte) in rest.iter().enumerate().take(most) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            *rest = slices::part(rest, i + 1..);
            return Ok(value);
        }
    }
    Err(if rest.len() < most {
        WireError::PastEnd
    } else {
        WireError::LongVarint
    })
}

/// Reads a tag.
///
/// # Errors
/// [`WireError::FieldNumber`] for a field number outside of 1 to 2^29 - 1, and the errors of
/// [`varint`].
#[inline]
pub(crate) fn tag(rest: &mut &[u8]) -> Result<Tag> {
    let tag = match *rest {
        [byte @ ..=0x7f, tail @ ..] => {
            *rest = tail;
            u64::from(*byte)
        }
        _ => long_varint(rest, 5)?,
    };
    let field = u32::try_from(tag >> 3)
        .ok()
        .filter(|field| (1..1 << 29).contains(field));
    Ok((field.ok_or(WireError::FieldNumber)?, (tag & 7) as u8))
}

/// Reads a length, and returns as many bytes.
///
/// # Errors
/// [`WireError::PastEnd`] if there are fewer bytes, and the errors of [`varint`].
#[inline]
pub(crate) fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    if let Some((bytes, tail)) = short_bytes(rest) {
        *rest = tail;
        return Ok(bytes);
    }
    let length = long_varint(rest, 10)?;
    let length = usize::try_from(length).map_err(|_| WireError::PastEnd)?;
    let (bytes, tail) = rest.split_at_checked(length).ok_or(WireError::PastEnd)?;
    *rest = tail;
    Ok(bytes)
}

/// Splits `rest` after a length of one or two bytes and the bytes that it counts; `None` for a
/// longer length or too few bytes. Calls no function, so that the variables of the loop around it
/// stay in registers.
#[inline(always)]
pub(crate) fn short_bytes(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    match rest {
        [length @ ..=0x7f, rest @ ..] => rest.split_at_checked(usize::from(*length)),
        [low, high @ ..=0x7f, rest @ ..] => {
            rest.split_at_checked(usize::from(low & 0x7f) | (usize::from(*high) << 7))
        }
        _ => None,
    }
}

/// Reads four bytes.
///
/// # Errors
/// [`WireError::PastEnd`] if there are fewer.
pub(crate) fn fixed32(rest: &mut &[u8]) -> Result<[u8; 4]> {
    let (value, tail) = rest.split_first_chunk::<4>().ok_or(WireError::PastEnd)?;
    *rest = tail;
    Ok(*value)
}

/// Returns the bytes of the length-delimited field `tag` that is all of `message`: the form of
/// nearly every message here. `None` for any other form.
#[inline]
pub(crate) fn sole(message: &[u8], tag: u8) -> Option<&[u8]> {
    match message {
        [first, rest @ ..] if *first == tag => last_bytes(rest),
        _ => None,
    }
}

/// Returns the bytes after a length, if the length is exactly their number.
#[inline]
pub(crate) fn last_bytes(rest: &[u8]) -> Option<&[u8]> {
    if let [length @ ..=0x7f, body @ ..] = rest {
        return (body.len() == usize::from(*length)).then_some(body);
    }
    let mut rest = rest;
    let body = bytes(&mut rest).ok()?;
    rest.is_empty().then_some(body)
}

/// Skips an unknown field whose tag was read. `most` is the allowed depth of nested groups.
///
/// # Errors
/// [`WireError::Depth`] for groups that are nested deeper, [`WireError::Group`] for a group without
/// its end, [`WireError::WireType`] for the wire types 6 and 7, and the errors of the field's
/// value.
///
/// ```text
/// 0b 08 01 13 14 0c        group 1 { field 1: 1, group 2 { } }: start 0b, end 0c; start 13, end 14
/// ```
#[cold]
pub(crate) fn skip(rest: &mut &[u8], mut field: Tag, most: usize) -> Result<()> {
    // The field numbers of the open groups. A stack on the heap instead of recursion, so that the
    // depth cannot exhaust the thread's stack.
    let mut open = Vec::new();
    loop {
        match field {
            (_, VARINT) => varint(rest).map(drop)?,
            (_, FIXED64) => *rest = rest.get(8..).ok_or(WireError::PastEnd)?,
            (_, LEN) => bytes(rest).map(drop)?,
            (_, START_GROUP) if open.len() >= most => return Err(WireError::Depth),
            (group, START_GROUP) => open.push(group),
            (group, END_GROUP) if open.pop() == Some(group) => {}
            (_, END_GROUP) => return Err(WireError::Group),
            (_, FIXED32) => fixed32(rest).map(drop)?,
            _ => return Err(WireError::WireType),
        }
        if open.is_empty() {
            return Ok(());
        }
        if rest.is_empty() {
            return Err(WireError::Group);
        }
        field = tag(rest)?;
    }
}

/// Reads the fields of the group `number`, whose start was read, and its end. `most` is the allowed
/// depth of groups in it.
///
/// # Errors
/// [`WireError::Group`] for a group without its end, and the errors of its fields.
pub(crate) fn group<'a>(rest: &mut &'a [u8], number: u32, most: usize) -> Result<&'a [u8]> {
    let start = *rest;
    loop {
        if rest.is_empty() {
            return Err(WireError::Group);
        }
        let length = start.len() - rest.len();
        let field = tag(rest)?;
        if field == (number, END_GROUP) {
            return Ok(slices::part(start, ..length));
        }
        skip(rest, field, most)?;
    }
}

/// Reads eight bytes.
///
/// # Errors
/// [`WireError::PastEnd`] if there are fewer.
pub(crate) fn fixed64(rest: &mut &[u8]) -> Result<[u8; 8]> {
    let (value, tail) = rest.split_first_chunk::<8>().ok_or(WireError::PastEnd)?;
    *rest = tail;
    Ok(*value)
}

/// Writes a tag.
pub(crate) fn put_tag(number: u32, wire_type: u8, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | u64::from(wire_type), out);
}

/// Writes a length-delimited field 1.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(1 << 3 | LEN);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a varint in its shortest form.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the position of the highest set bit; that of 0 is 0.
#[inline]
pub(crate) fn highest(value: u64) -> usize {
    (value | 1).ilog2() as usize
}

/// Returns the length in bytes of `value` as a varint in its shortest form. A table is faster than
/// a division by 7 here, since the encoder measures every value.
#[inline]
pub(crate) fn varint_len(value: u64) -> u64 {
    u64::from(look_up(&LENS, highest(value)))
}

/// Returns an element of a table that is indexed by [`highest`]. All positions are below 64, so
/// that the compiler removes the check.
#[inline]
pub(crate) fn look_up<T: Copy + Default>(table: &[T; 64], bit: usize) -> T {
    slices::item(table, bit)
}

/// Returns the number of varints of a packed list, eight bytes at a time: each byte with a clear
/// high bit ends one.
///
/// # Errors
/// [`WireError::PastEnd`] if the last varint is truncated, [`WireError::LongVarint`] for one of
/// more than 10 bytes.
///
/// ```text
/// 96 01 | 05 | ff ff 03        the high bits are 1 0 0 1 1 0: 6 bytes - 3 set bits = 3 varints
/// ```
pub(crate) fn count_varints(packed: &[u8]) -> Result<usize> {
    let Some(last) = packed.last() else {
        return Ok(0);
    };
    if *last >= 0x80 {
        return Err(WireError::PastEnd);
    }
    if packed.len() < 8 {
        return Ok(packed.iter().filter(|byte| **byte < 0x80).count());
    }
    let (words, tail) = packed.as_chunks::<8>();
    let mut more = 0;
    let mut long = false;
    for word in words {
        let high = u64::from_le_bytes(*word) & MORE;
        more += high.count_ones() as usize;
        // A varint of more than 10 bytes has 10 or more consecutive bytes with the high bit, at
        // most 6 of which are in the tail, whose last byte ends a varint. The others cover an
        // aligned half of a word.
        long |= high as u32 == MORE as u32 || (high >> 32) as u32 == MORE as u32;
    }
    // The last word overlaps the words before; its bytes that were counted are masked out.
    let last = packed
        .last_chunk::<8>()
        .map_or(0, |last| u64::from_le_bytes(*last));
    let last = last
        & u64::MAX
            .checked_shl(64 - 8 * tail.len() as u32)
            .unwrap_or(0);
    more += (last & MORE).count_ones() as usize;
    if long {
        check_varints(packed)?;
    }
    Ok(packed.len() - more)
}

/// Returns up to eight bytes as a little-endian word; missing ones are 0.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

/// Checks that no varint has more than 10 bytes.
fn check_varints(packed: &[u8]) -> Result<()> {
    let (words, tail) = packed.as_chunks::<8>();
    // Number of consecutive bytes with the high bit at the end of the words before.
    let mut run = 0_u32;
    let mut long = false;
    for word in words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .chain([word_of(tail)])
    {
        let ends = !word & MORE;
        long |= run.saturating_add(ends.trailing_zeros() / 8) > 9;
        run = if ends == 0 {
            run.saturating_add(8)
        } else {
            ends.leading_zeros() / 8
        };
    }
    if long {
        Err(WireError::LongVarint)
    } else {
        Ok(())
    }
}

/// Decodes a packed list of varints that [`count_varints`] has checked, and appends the values to
/// `out`.
///
/// # Errors
/// The errors of [`varint`], for a list that was not checked.
///
/// Three cases of a word are distinguished by the bytes that end a varint: all of them (eight
/// values below 128), none of them (a varint of more than eight bytes), or some.
pub(crate) fn unpack_varints(mut packed: &[u8], out: &mut Vec<i64>) -> Result<()> {
    while let Some(word) = packed.first_chunk::<8>() {
        let ends = !u64::from_le_bytes(*word) & MORE;
        if ends == MORE {
            out.extend(word.iter().map(|byte| i64::from(*byte)));
            packed = slices::part(packed, 8..);
        } else if ends == 0 {
            out.push(varint(&mut packed)? as i64);
        } else {
            let taken = unpack_word(u64::from_le_bytes(*word), ends, out);
            packed = slices::part(packed, taken..);
        }
    }
    while !packed.is_empty() {
        out.push(varint(&mut packed)? as i64);
    }
    Ok(())
}

/// Decodes the varints that end in a word, where `ends` has the high bit of each byte that ends
/// one. Returns their length in bytes.
///
/// A varint that begins in the word and does not end in it is left for the next word.
#[inline]
fn unpack_word(mut word: u64, mut ends: u64, out: &mut Vec<i64>) -> usize {
    let taken = 8 - ends.leading_zeros() as usize / 8;
    loop {
        let bits = ends.trailing_zeros() + 1;
        out.push(gather(word & (u64::MAX >> (64 - bits))) as i64);
        ends &= ends - 1;
        if ends == 0 {
            return taken;
        }
        // Another varint ends in a higher byte, so that the shift is by less than 64 bits.
        word >>= bits;
        ends >>= bits;
    }
}

/// Concatenates the low seven bits of each byte.
///
/// In three steps of pairs: 7 + 7 bits to 14, 14 + 14 to 28, 28 + 28 to 56. A ninth and tenth byte
/// do not fit in a word; [`unpack_varints`] reads such varints one by one.
///
/// ```text
/// 96 01        10010110 00000001
/// low bits      0010110  0000001        0000001 0010110 = 150
/// ```
fn gather(x: u64) -> u64 {
    let x = (x & 0x007f_007f_007f_007f) | ((x & 0x7f00_7f00_7f00_7f00) >> 1);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x3fff_0000_3fff_0000) >> 2);
    (x & 0x0fff_ffff) | ((x & 0x0fff_ffff_0000_0000) >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length_are_unpacked_at_every_position() {
        let values: Vec<i64> = (0..64)
            .flat_map(|bit| [1i64 << bit, (1i64 << bit).wrapping_sub(1), -1, bit])
            .collect();
        for start in 0..values.len() {
            let values = &values[start..];
            let mut packed = Vec::new();
            values
                .iter()
                .for_each(|v| put_varint(*v as u64, &mut packed));
            let mut out = Vec::new();
            assert_eq!(count_varints(&packed), Ok(values.len()));
            unpack_varints(&packed, &mut out).unwrap();
            assert_eq!(out, values);
        }
    }

    #[test]
    fn a_varint_has_at_most_ten_bytes() {
        for (lead, tail) in (0..12).flat_map(|lead| (0..10).map(move |tail| (lead, tail))) {
            for more in 0..28 {
                let packed: Vec<u8> =
                    [vec![1; lead], vec![0x80; more], vec![0], vec![1; tail]].concat();
                let expect = if more > 9 {
                    Err(WireError::LongVarint)
                } else {
                    Ok(lead + 1 + tail)
                };
                assert_eq!(count_varints(&packed), expect, "{lead} {more} {tail}");
            }
        }
        assert_eq!(count_varints(&[0x80]), Err(WireError::PastEnd));
        assert_eq!(
            varint(&mut [0x80u8; 10].as_slice()),
            Err(WireError::LongVarint)
        );
        assert_eq!(varint(&mut [0x80u8; 9].as_slice()), Err(WireError::PastEnd));
    }

    #[test]
    fn groups_are_skipped() {
        let group = [0x0b, 0x08, 1, 0x13, 0x14, 0x0c, 7];
        let mut rest = group.as_slice();
        let t = tag(&mut rest).unwrap();
        skip(&mut rest, t, 2).unwrap();
        assert_eq!(rest, [7]);
        assert_eq!(
            skip(&mut &group[1..], (1, START_GROUP), 1),
            Err(WireError::Depth)
        );
        // Deep groups take no stack.
        let deep = [vec![0x0b; 1 << 20], vec![0x0c; 1 << 20]].concat();
        assert_eq!(skip(&mut &deep[1..], (1, START_GROUP), 1 << 20), Ok(()));
        assert_eq!(
            skip(&mut &deep[1..], (1, START_GROUP), (1 << 20) - 1),
            Err(WireError::Depth)
        );
        assert_eq!(
            skip(&mut &deep[1..deep.len() - 1], (1, START_GROUP), 1 << 20),
            Err(WireError::Group)
        );
    }
}
