//! The start of a stream in TensorFlow's Snappy, which consists of blocks.
//!
//! ```text
//! │ length  │ size │ elements: literals and copies │ length │ ..
//!   4 bytes  └──────────── length ──────────────┘
//! ```
//!
//! The length is that of the compressed bytes, in big-endian order (`SnappyOutputBuffer` of
//! TensorFlow). The bytes after it are a [block of
//! Snappy](https://github.com/google/snappy/blob/main/format_description.txt): its size,
//! decompressed, and elements. A stream has neither a magic number nor checksums. One that begins
//! with a record is known by the CRC of the record's length.

use tfarrow_codec::frame::{HEADER, length};

/// Number of bytes of the length before a block.
pub(crate) const BLOCK_HEADER: usize = 4;

/// Returns the number of compressed bytes of the block that `stored` begins with; `None` if the
/// bytes end before.
pub(crate) fn block_length(stored: &[u8]) -> Option<usize> {
    stored
        .first_chunk()
        .map(|length| u32::from_be_bytes(*length) as usize)
}

/// Returns whether `stored` is the start of a stream whose first record has a length with a valid
/// CRC.
pub(crate) fn begins_with_record(stored: &[u8]) -> bool {
    block_length(stored).is_some_and(|length| length > 0)
        && length(&start(stored, HEADER)).is_some()
}

/// Decompresses the start of the first block of `stored`, as far as its bytes are there and are
/// valid: about `most` bytes.
pub(crate) fn start(stored: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let block = stored.get(BLOCK_HEADER..).unwrap_or_default();
    let length = block_length(stored).unwrap_or_default();
    let block = block.get(..length).unwrap_or(block);
    // The size is a varint, whose last byte has no highest bit.
    let size = block.iter().position(|byte| byte & 0x80 == 0);
    let mut rest = size.and_then(|last| block.get(last + 1..));
    while let Some(elements) = rest.filter(|_| out.len() < most) {
        rest = element(elements, &mut out);
    }
    out
}

/// Decompresses the element that `elements` begin with. Returns the rest; `None` if the bytes end
/// within the element, or are invalid.
fn element<'b>(elements: &'b [u8], out: &mut Vec<u8>) -> Option<&'b [u8]> {
    let (&tag, rest) = elements.split_first()?;
    let value = usize::from(tag >> 2);
    let (length, (offset, rest)) = match tag & 3 {
        0 => {
            let (last, rest) = if value < 60 {
                (value, rest)
            } else {
                number(rest, value - 59)?
            };
            out.extend_from_slice(rest.get(..=last).unwrap_or(rest));
            return rest.get(last + 1..);
        }
        1 => (
            4 + (value & 7),
            number(rest, 1).map(|(low, rest)| (value >> 3 << 8 | low, rest))?,
        ),
        2 => (value + 1, number(rest, 2)?),
        _ => (value + 1, number(rest, 4)?),
    };
    let from = out.len().checked_sub(offset).filter(|_| offset > 0)?;
    for at in from..from + length {
        let byte = *out.get(at)?;
        out.push(byte);
    }
    Some(rest)
}

/// Splits off a number of up to four bytes in little-endian order.
fn number(bytes: &[u8], count: usize) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_at_checked(count)?;
    Some((
        number
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | usize::from(*byte)),
        rest,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stream of one block.
    fn stream(data: &[u8]) -> Vec<u8> {
        let block = snap::raw::Encoder::new().compress_vec(data).unwrap();
        [&(block.len() as u32).to_be_bytes()[..], &block].concat()
    }

    #[test]
    fn the_start_of_a_block_is_decompressed_as_far_as_it_is_there() {
        // Long literals, and copies with offsets of one and two bytes.
        let literal: Vec<u8> = (0..70_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let data = [&literal[..1000], &[7; 300], &literal[..1000], &literal[..]].concat();
        let stream = stream(&data);
        assert_eq!(start(&stream, usize::MAX), data);
        for end in [0, 4, 5, 8, 100, 900, 1020, 1400, 12_000] {
            let found = start(&stream[..end], usize::MAX);
            assert!(
                data.starts_with(&found) && found.len() + 20 >= end.min(1000),
                "{end}: {}",
                found.len()
            );
        }
    }

    #[test]
    fn copies_from_before_the_block_are_invalid() {
        for element in [&[1, 0][..], &[1, 5], &[2, 9, 0], &[3, 1, 0, 0, 0]] {
            assert_eq!(
                start(&[&[0, 0, 0, 9, 8], element].concat(), 100),
                Vec::<u8>::new(),
                "{element:?}"
            );
        }
    }

    #[test]
    fn streams_are_known_by_the_length_of_their_first_record() {
        let mut frame = Vec::new();
        tfarrow_codec::frame::write(&[0; 100], &mut frame);
        assert!(begins_with_record(&stream(&frame)));
        frame[0] ^= 1;
        assert!(!begins_with_record(&stream(&frame)));
        assert!(!begins_with_record(b""));
    }
}
