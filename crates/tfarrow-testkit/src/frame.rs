//! TFRecord frames: `length: u64 | masked crc of length | data | masked crc of data`, all
//! little-endian.

use crate::{Error, Result};

/// The Castagnoli polynomial, with reversed bits.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Returns the CRC32C of `data`, computed bit by bit.
pub fn crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ POLYNOMIAL
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

/// Returns the masked CRC32C of `data`, as TFRecord stores it.
pub fn masked(data: &[u8]) -> u32 {
    let crc = crc32c(data);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Appends one record.
pub fn write(data: &[u8], out: &mut Vec<u8>) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked(data).to_le_bytes());
}

/// Returns a file of these records.
pub fn file<D: AsRef<[u8]>>(records: impl IntoIterator<Item = D>) -> Vec<u8> {
    let mut out = Vec::new();
    for data in records {
        write(data.as_ref(), &mut out);
    }
    out
}

/// Returns the data of each record of a complete and valid file.
///
/// # Errors
/// A truncated or corrupt file.
pub fn read(mut file: &[u8]) -> Result<Vec<&[u8]>> {
    let mut records = Vec::new();
    while !file.is_empty() {
        let length = take(&mut file, 8)?;
        check(length, take(&mut file, 4)?)?;
        let length = length
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let data = take(&mut file, usize::try_from(length).unwrap_or(usize::MAX))?;
        check(data, take(&mut file, 4)?)?;
        records.push(data);
    }
    Ok(records)
}

fn take<'a>(file: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, rest) = file
        .split_at_checked(count)
        .ok_or_else(|| Error::new("the file ends inside a record"))?;
    *file = rest;
    Ok(taken)
}

fn check(data: &[u8], crc: &[u8]) -> Result<()> {
    if masked(data).to_le_bytes() == crc {
        Ok(())
    } else {
        Err(Error::new("a CRC does not hold"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_check_string() {
        // The check value that every catalogue of CRCs gives for CRC-32C.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn written_records_are_read_again() {
        let records = [&b"one"[..], b"", b"three"];
        let file = file(records);
        assert_eq!(read(&file).unwrap(), records);
        assert!(read(&file[..file.len() - 1]).is_err());
    }
}
