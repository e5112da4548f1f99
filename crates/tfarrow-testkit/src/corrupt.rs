//! Corruption: flipped bits, truncated input, and streams in parts.

use proptest::{collection::vec, prelude::*};

/// Returns `bytes` with one flipped bit. Bits are numbered from the lowest of the first byte.
pub fn flip(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    if let Some(byte) = flipped.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    flipped
}

/// Returns `bytes` with each bit flipped in turn, and the number of the bit.
pub fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len() * 8).map(|bit| (bit, flip(bytes, bit)))
}

/// Returns all prefixes of `bytes` except the complete one, by length.
pub fn cuts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).filter_map(|end| bytes.get(..end))
}

/// Returns all ways to split `bytes` in two.
pub fn halves(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|at| bytes.split_at(at).into())
}

/// Generates the sizes of parts of a stream: mostly small, sometimes 0, sometimes large.
pub fn piece_sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(
        prop_oneof![3 => 1..20usize, 1 => Just(0), 2 => 20..400usize, 1 => 400..20_000usize],
        1..40,
    )
}

/// Splits `bytes` into parts of these sizes, which are repeated.
pub fn pieces<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    // Prevents an endless loop if all sizes are 0.
    for size in sizes.iter().cycle().take(bytes.len() * sizes.len()) {
        let (piece, tail) = rest.split_at(rest.len().min(*size));
        pieces.push(piece);
        rest = tail;
        if rest.is_empty() {
            return pieces;
        }
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(pieces(&bytes, &[0, 3, 0, 100]).concat(), bytes);
        assert_eq!(pieces(&bytes, &[0]).concat(), bytes);
        assert_eq!(halves(&bytes).count(), 257);
        assert_eq!(cuts(&bytes).count(), 256);
        assert_eq!(flip(&[0, 0], 9), [0, 2]);
    }
}
