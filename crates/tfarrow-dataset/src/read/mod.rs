//! Reading of shards.

pub(crate) mod same_payload;
