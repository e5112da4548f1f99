//! Shards: one shard of a data set, and the naming, order and completeness of sets of shards.

pub(crate) mod glob;
pub(crate) mod missing;
pub(crate) mod natural_sort;
pub(crate) mod shard;
pub(crate) mod spec;
