//! Counting the records of a shard.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use tfarrow_codec::frame::{HEADER, frame_length};

use crate::{Compression, Error, ReadOptions, Result, Shard, ShardReader, sharding::listed_file::check_size};

/// Minimum mean size in bytes of records whose data is skipped with seeks. Below it, reading everything is faster than
/// a seek for each header.
const HOP_BYTES: u64 = 64 << 10;

/// Returns the number of records in a shard. Verifies the CRC of every length. Does not verify the data, and skips it
/// where that is faster.
///
/// # Errors
/// I/O errors, corrupt lengths, truncated shards, and shards that are truncated while they are read.
pub fn count(shard: &Shard, options: &ReadOptions) -> Result<u64> {
    let mut reader = ShardReader::open(shard, options)?;
    let (mut records, mut bytes) = (0, 0);
    while let Some(some) = reader.next()? {
        records += some.len() as u64;
        bytes += some.bytes() as u64;
        let plain = reader.compression() == Compression::None && !shard.is_stream() && !shard.is_remote();
        if plain && bytes / records.max(1) >= HOP_BYTES {
            return match hop(shard, records, reader.offset()).map_err(|error| Error::io(&shard.path, error))? {
                Some(records) => Ok(records),
                // A header is corrupt or truncated. The reader finds it again, and returns the error with its position,
                // or skips it.
                None => read_on(reader, records),
            };
        }
    }
    Ok(records)
}

fn read_on(mut reader: ShardReader, mut records: u64) -> Result<u64> {
    while let Some(some) = reader.next()? {
        records += some.len() as u64;
    }
    Ok(records)
}

/// Continues the count at `offset`, from header to header. `None` if a header is corrupt or a frame is truncated.
fn hop(shard: &Shard, mut records: u64, mut offset: u64) -> io::Result<Option<u64>> {
    let mut file = File::open(shard.local_path())?;
    let end = file.metadata()?.len();
    check_size(end, shard.size)?;
    let mut header = [0; HEADER];
    while offset < end {
        if end - offset < HEADER as u64 {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut header)?;
        match frame_length(&header).and_then(|frame| offset.checked_add(frame)) {
            Some(next) if next <= end => offset = next,
            _ => return Ok(None),
        }
        records += 1;
    }
    // The data after the last header was not read.
    check_size(file.metadata()?.len(), end)?;
    Ok(Some(records))
}
