//! TFRecord's masked CRC32C.
//!
//! Follows `tensorflow/core/lib/hash/crc32c.h`: a CRC that is stored beside the data it covers is rotated and moved, so
//! that a CRC over data with CRCs in it stays strong.

const MASK_DELTA: u32 = 0xa282_ead8;

/// The masked CRC32C of `data`, as it stands in a frame.
pub(crate) fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    #[test]
    fn masks_as_tensorflow_does() {
        // The first header that any TFRecord writer makes of an empty record: eight zero bytes.
        assert_eq!(super::masked(&[0; 8]), 0x0798_0329);
    }
}
