//! The masked CRC32C of TFRecord frames.
//!
//! A frame is `length: u64`, `crc of length: u32`, `data`, `crc of data: u32`, all little-endian
//! (`tensorflow/core/lib/io/record_writer.h`). Its CRCs are *masked*
//! (`tensorflow/core/lib/hash/crc32c.h`): rotated by 15 bits and offset by a constant, since the
//! CRC of data that contains its own CRC is weak.
//!
//! ```text
//! data      00 00 00 00 00 00 00 00        the length field of an empty record
//! crc32c    8c28b28a
//! masked    rotate_right(15) + a282ead8 = 07980329
//! ```
//!
//! The crate `crc32c` computes CRCs on all machines. On x86-64, [`hardware`] takes less than half
//! of its time for records of a few hundred bytes (`crc and walk` of the bench `decode`).
//!
//! # CRCs as polynomials
//! A CRC32C is the remainder of a polynomial over GF(2), whose coefficients are the bits of the
//! data, modulo `x^32 + x^28 + x^27 + .. + 1` (RFC 3720, section 12.1). Two properties follow, on
//! which [`shifted`] and [`hardware`] rely:
//!
//! - CRCs are linear: those of parts of the data are combined by XOR.
//! - `n` bytes after a part multiply its remainder by `x^(8 n)`. The product is computed from a
//!   table of powers, in a time that does not depend on `n`, or on its logarithm only.
//!
//! The bits of a CRC32C are reversed: the highest bit of a word is the coefficient of `x^0`.

/// The constant that masking adds.
const MASK_DELTA: u32 = 0xa282_ead8;

/// Returns the masked CRC32C of `data`, as a frame stores it.
pub(crate) fn masked(data: &[u8]) -> u32 {
    mask(crc32c(data))
}

/// Masks a CRC32C, as `crc32c::Mask` of TensorFlow does.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Returns the CRC32C of `data`, not masked.
pub(crate) fn crc32c(data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq") {
        #[expect(
            unsafe_code,
            reason = "less than half of the time, for records of a few hundred bytes"
        )]
        // SAFETY: the processor has the instructions that the function is compiled for, which was
        // just checked.
        return unsafe { hardware::crc32c(data) };
    }
    crc32c::crc32c(data)
}

/// The polynomial of CRC32C with its bits reversed: the highest bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `x^(8 * 2^n)` modulo the polynomial, for each `n`: the factor that 2^n bytes of zeros multiply a
/// CRC by.
static BYTES: [u32; u64::BITS as usize] = {
    let mut powers = [0; u64::BITS as usize];
    let mut n = 0;
    // With reversed bits, bit 31 - 8 is x^8.
    let mut power = 1 << 23;
    while n < powers.len() {
        powers[n] = power;
        power = product(power, power);
        n += 1;
    }
    powers
};

/// Returns the product of two polynomials modulo CRC32C's, all with their bits reversed.
///
/// One addition for each set bit of `a`, from `x^0` (its highest bit) on, while `b` is multiplied
/// by `x`: a shift to the right, and a subtraction of the modulus if `x^32` results.
const fn product(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = u32::BITS;
    while bit > 0 {
        bit -= 1;
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = (b >> 1) ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

/// Returns the contribution of `crc`, the CRC of some data, to the CRC of that data followed by
/// `len` bytes: `crc(a ++ b) = shifted(crc(a), b.len()) ^ crc(b)`.
///
/// The product is computed by square and multiply: one factor of [`BYTES`] for each set bit of
/// `len`.
pub(crate) fn shifted(crc: u32, len: u64) -> u32 {
    let mut left = len;
    let mut shifted = crc;
    while left > 0 {
        shifted = product(BYTES[left.trailing_zeros() as usize], shifted);
        left &= left - 1;
    }
    shifted
}

/// CRC32C by the instructions of x86-64 for it.
#[cfg(target_arch = "x86_64")]
mod hardware {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    };

    use super::POLYNOMIAL;

    /// Largest number of 8-byte words in each of the three parts of a block.
    const MOST_WORDS: usize = 1024;
    /// Smallest number of words in each part for which parts are worth their cost.
    const LEAST_WORDS: usize = 4;

    /// `x^(64 n - 33)` modulo the polynomial with its bits reversed, for each `n` from 1.
    static POWERS: [u32; 2 * MOST_WORDS + 1] = powers();

    /// Computes [`POWERS`] when the crate is compiled: each entry is the one before times `x^64`.
    const fn powers() -> [u32; 2 * MOST_WORDS + 1] {
        let mut powers = [0; 2 * MOST_WORDS + 1];
        // With reversed bits, bit 0 is x^31 = x^(64 - 33).
        let mut power = 1;
        let mut words = 1;
        while words < powers.len() {
            powers[words] = power;
            let mut bit = 0;
            while bit < u64::BITS {
                power = (power >> 1) ^ if power & 1 == 1 { POLYNOMIAL } else { 0 };
                bit += 1;
            }
            words += 1;
        }
        powers
    }

    /// Returns the CRC32C of `data`.
    ///
    /// ```text
    /// data    | part one | part two | part three | .. further blocks .. | words | bytes |
    ///           crc        second     third                               one CRC after the other
    /// block   crc = crc * x^(128 n) ^ second * x^(64 n) ^ third           n words in each part
    /// ```
    ///
    /// The CRC instruction has a latency of three cycles and a throughput of one a cycle, so that
    /// three parts of the data are computed in parallel, and their CRCs combined: a CRC is a
    /// remainder of polynomials, and `n` words after a part multiply its CRC by `x^(64 n)` (Gopal
    /// et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011).
    /// There are no closures, since these would be compiled without the instructions and not
    /// inlined.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn crc32c(data: &[u8]) -> u32 {
        let mut crc = u64::from(u32::MAX);
        let mut rest = data;
        while rest.len() / 24 >= LEAST_WORDS {
            let words = (rest.len() / 24).min(MOST_WORDS);
            let (one, after) = rest.split_at(8 * words);
            let (two, after) = after.split_at(8 * words);
            let (three, after) = after.split_at(8 * words);
            let one = one.as_chunks().0;
            let two = two.as_chunks().0;
            let three = three.as_chunks().0;
            let mut second = 0;
            let mut third = 0;
            for ((one, two), three) in one.iter().zip(two).zip(three) {
                crc = _mm_crc32_u64(crc, u64::from_le_bytes(*one));
                second = _mm_crc32_u64(second, u64::from_le_bytes(*two));
                third = _mm_crc32_u64(third, u64::from_le_bytes(*three));
            }
            crc = _mm_crc32_u64(0, moved(crc, 2 * words) ^ moved(second, words)) ^ third;
            rest = after;
        }
        let (words, bytes) = rest.as_chunks();
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        let mut crc = crc as u32;
        for byte in bytes {
            crc = _mm_crc32_u8(crc, *byte);
        }
        !crc
    }

    /// Multiplies a CRC by `x^(64 words)`, not yet reduced: the CRC of the 64 bits returned is the
    /// result. (The product of two polynomials with reversed bits lacks a factor of `x`, and the
    /// CRC of 64 bits adds a factor of `x^32`.)
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn moved(crc: u64, words: usize) -> u64 {
        let power = _mm_cvtsi64_si128(i64::from(POWERS[words]));
        _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(
            _mm_cvtsi64_si128(crc as i64),
            power,
        )) as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_empty_record_has_the_crc_that_tensorflow_writes() {
        // The length of an empty record: eight zero bytes.
        assert_eq!(super::masked(&[0; 8]), 0x0798_0329);
    }

    #[test]
    fn crcs_of_parts_combine_to_that_of_all_bytes() {
        let data: Vec<u8> = (0..3_000_u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 11) as u8)
            .collect();
        for cut in (0..200).chain([1024, 2047, 2999, 3000]) {
            let one = super::crc32c(&data[..cut]);
            let two = super::crc32c(&data[cut..]);
            assert_eq!(
                super::shifted(one, 3000 - cut as u64) ^ two,
                super::crc32c(&data),
                "{cut}"
            );
        }
        for len in [0, 1, u64::from(u32::MAX), 1 << 40] {
            assert_eq!(
                super::shifted(0x1234_5678, len),
                crc32c::crc32c_combine(0x1234_5678, 0, len as usize),
                "{len}"
            );
        }
    }

    #[test]
    fn the_hardware_crc_equals_that_of_the_crate_for_all_lengths() {
        let data: Vec<u8> = (0..40_000_u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 13) as u8)
            .collect();
        // All numbers of words in a part, around the largest block, and all numbers of remaining
        // bytes.
        for len in (0..7_000).chain([24_575, 24_576, 24_577, 39_993]) {
            for start in [0, 1, 7] {
                let data = &data[start..start + len];
                assert_eq!(
                    super::crc32c(data),
                    crc32c::crc32c(data),
                    "{len} bytes from {start}"
                );
            }
        }
    }
}
