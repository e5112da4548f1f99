//! Counting the records of a shard.

use crate::{
    ReadOptions, Result, Shard, ShardReader,
    read::frame_ranges::{FrameRanges, ShardAccess},
};

/// Returns the number of records in a shard. Verifies the CRC of every length. Does not verify the
/// data, and does not read it where that is faster.
///
/// # Errors
/// I/O errors, corrupt lengths, truncated shards, and shards that are truncated while they are
/// read.
pub fn count(shard: &Shard, options: &ReadOptions) -> Result<u64> {
    let ranges = match ShardAccess::open(shard, options)? {
        ShardAccess::Stream(reader) => return count_rest(*reader, 0),
        ShardAccess::Ranges(ranges) => ranges,
    };
    count_ranges(*ranges)
}

fn count_ranges(mut ranges: FrameRanges) -> Result<u64> {
    let mut records = 0;
    loop {
        match ranges.next(usize::MAX, usize::MAX) {
            Ok(Some(range)) => records += range.records as u64,
            Ok(None) => break,
            Err(error) if ranges.skips(&error) => {
                return count_rest(ranges.to_reader()?.0, records);
            }
            Err(error) => return Err(error),
        }
    }
    ranges.file().check_size()?;
    Ok(records)
}

fn count_rest(mut reader: ShardReader, mut records: u64) -> Result<u64> {
    while let Some(some) = reader.next()? {
        records += some.len() as u64;
    }
    Ok(records)
}
