//! Reading of shards: records of one thread, records of several threads, records by their offsets,
//! gzip files at any position, batches, pieces of files, and the number of records.

pub(crate) mod access_points;
pub(crate) mod batch_reader;
pub(crate) mod block_reader;
pub(crate) mod count;
pub(crate) mod file_piece;
pub(crate) mod frame_ranges;
pub(crate) mod positioned_file;
pub(crate) mod probable;
pub(crate) mod random_access;
pub(crate) mod same_payload;
pub(crate) mod shard_reader;
pub(crate) mod shared_reader;
mod stored_bytes;
