//! Scans: the stages from a node of a physical plan to record batches.
//!
//! ```text
//! source ─▶ opener ─▶ input ─▶ file_scan ─▶ decoders, filter ─▶ batches
//! of a plan  of a      bytes    threads of   of an execution
//!            partition          a file
//! ```

pub(crate) mod blocks;
pub(crate) mod decoders;
pub(crate) mod file_scan;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod metrics;
pub(crate) mod opener;
pub(crate) mod record_range;
pub(crate) mod source;

/// Default rows per batch, as in DataFusion.
pub const BATCH_SIZE: usize = 8192;
