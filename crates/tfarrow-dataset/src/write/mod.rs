//! Writing: compression of shards, and outputs that appear only when they are complete.

pub(crate) mod output_file;
pub(crate) mod shard_writer;
mod snappy_writer;
