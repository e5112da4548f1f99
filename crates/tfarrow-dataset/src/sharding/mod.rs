//! Shards: one shard of a data set, the naming, order and completeness of sets of shards, and their
//! division into parts.

pub(crate) mod address;
pub(crate) mod dataset_info;
pub(crate) mod folder_columns;
pub(crate) mod glob;
pub(crate) mod identity;
pub(crate) mod listed_file;
pub(crate) mod missing;
pub(crate) mod natural_sort;
pub(crate) mod part;
pub(crate) mod shard;
pub(crate) mod spec;
