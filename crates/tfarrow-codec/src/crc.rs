//! TFRecord's masked CRC32C.
//!
//! Follows `tensorflow/core/lib/hash/crc32c.h`: a CRC that is stored beside the data it covers is rotated and moved, so
//! that a CRC over data with CRCs in it stays strong.
//!
//! What computes it everywhere is the crate `crc32c`. On x86-64 [`hardware`] takes less than half of its time for the
//! few hundred bytes that records have (`crc and walk` of the bench `decode`); a query of one feature spent a quarter of its
//! time there.

const MASK_DELTA: u32 = 0xa282_ead8;

/// The masked CRC32C of `data`, as it stands in a frame.
pub(crate) fn masked(data: &[u8]) -> u32 {
    mask(crc32c(data))
}

/// A CRC as it stands in a frame.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The CRC32C of `data`, as it is.
pub(crate) fn crc32c(data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq") {
        #[expect(unsafe_code, reason = "less than half of the time, for records of a few hundred bytes")]
        // SAFETY: the processor has what the function is compiled for, as was asked just now.
        return unsafe { hardware::crc32c(data) };
    }
    crc32c::crc32c(data)
}

/// CRC32C's polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `x^(8 * 2^n)` modulo the polynomial, its bits reversed, for each `n`.
static BYTES: [u32; u64::BITS as usize] = {
    let mut powers = [0; u64::BITS as usize];
    let mut n = 0;
    // x^8.
    let mut power = 1 << 23;
    while n < powers.len() {
        powers[n] = power;
        power = product(power, power);
        n += 1;
    }
    powers
};

/// The product of two polynomials modulo CRC32C's, all with their bits reversed.
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

/// What the CRC `crc` of some data adds to that of the same data with `len` bytes behind it: the CRC of both together is
/// this and that of the bytes, each bit of one added to that of the other.
pub(crate) fn shifted(crc: u32, len: u64) -> u32 {
    let mut left = len;
    let mut shifted = crc;
    while left > 0 {
        shifted = product(BYTES[left.trailing_zeros() as usize], shifted);
        left &= left - 1;
    }
    shifted
}

/// CRC32C with the instructions that x86-64 has for it.
#[cfg(target_arch = "x86_64")]
mod hardware {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64};

    use super::POLYNOMIAL;

    /// Words of 8 bytes that each of the three parts of a block has at most.
    const MOST_WORDS: usize = 1024;
    /// Words of each part below which it is not worth having parts.
    const LEAST_WORDS: usize = 4;

    /// `x^(64 n - 33)` modulo the polynomial, its bits reversed, for each `n` from 1.
    static POWERS: [u32; 2 * MOST_WORDS + 1] = powers();

    const fn powers() -> [u32; 2 * MOST_WORDS + 1] {
        let mut powers = [0; 2 * MOST_WORDS + 1];
        // x^31.
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

    /// The CRC instruction has its answer after three cycles, and can begin every cycle. So three parts of the data are
    /// taken side by side, and their CRCs put together: a CRC is a remainder of polynomials, and that of a part with `n`
    /// words behind it is its own times `x^(64 n)`. (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32
    /// Instruction", Intel 2011.) No closures: they are compiled without these instructions, and not inlined.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn crc32c(data: &[u8]) -> u32 {
        let mut crc = u64::from(u32::MAX);
        let mut rest = data;
        while rest.len() / 24 >= LEAST_WORDS {
            let words = (rest.len() / 24).min(MOST_WORDS);
            let (one, behind) = rest.split_at(8 * words);
            let (two, behind) = behind.split_at(8 * words);
            let (three, behind) = behind.split_at(8 * words);
            let (one, two, three) = (one.as_chunks().0, two.as_chunks().0, three.as_chunks().0);
            let (mut second, mut third) = (0, 0);
            for ((one, two), three) in one.iter().zip(two).zip(three) {
                crc = _mm_crc32_u64(crc, u64::from_le_bytes(*one));
                second = _mm_crc32_u64(second, u64::from_le_bytes(*two));
                third = _mm_crc32_u64(third, u64::from_le_bytes(*three));
            }
            crc = _mm_crc32_u64(0, moved(crc, 2 * words) ^ moved(second, words)) ^ third;
            rest = behind;
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

    /// A CRC with so many words of zeros behind it, up to a remainder: the CRC of these 64 bits is what is looked for.
    /// (The product of two polynomials with reversed bits lacks one power of `x`, and the CRC of 64 bits adds 32.)
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn moved(crc: u64, words: usize) -> u64 {
        let power = _mm_cvtsi64_si128(i64::from(POWERS[words]));
        _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(crc as i64), power)) as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn masks_as_tensorflow_does() {
        // The first header that any TFRecord writer makes of an empty record: eight zero bytes.
        assert_eq!(super::masked(&[0; 8]), 0x0798_0329);
    }

    #[test]
    fn crcs_of_parts_make_that_of_the_whole() {
        let data: Vec<u8> = (0..3_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 11) as u8).collect();
        for cut in (0..200).chain([1024, 2047, 2999, 3000]) {
            let (one, two) = (super::crc32c(&data[..cut]), super::crc32c(&data[cut..]));
            assert_eq!(super::shifted(one, 3000 - cut as u64) ^ two, super::crc32c(&data), "{cut}");
        }
        for len in [0, 1, u64::from(u32::MAX), 1 << 40] {
            assert_eq!(super::shifted(0x1234_5678, len), crc32c::crc32c_combine(0x1234_5678, 0, len as usize), "{len}");
        }
    }

    #[test]
    fn any_number_of_bytes_has_the_crc_that_another_finds() {
        let data: Vec<u8> = (0..40_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect();
        // Each number of words a part may have, the last and the first of a block among them, and each rest.
        for len in (0..7_000).chain([24_575, 24_576, 24_577, 39_993]) {
            for start in [0, 1, 7] {
                let data = &data[start..start + len];
                assert_eq!(super::crc32c(data), crc32c::crc32c(data), "{len} bytes from {start}");
            }
        }
    }
}
