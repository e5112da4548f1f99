//! Shards: what one shard is, and how sets of shards are named, ordered and checked to be complete.

pub(crate) mod glob;
pub(crate) mod missing;
pub(crate) mod natural_sort;
pub(crate) mod shard;
pub(crate) mod spec;
