//! Formats: recognition of the format of a file by its bytes, and decompression.
//!
//! ```text
//! file ─▶ StoredInput ─┬───────────────────▶ Stream ─▶ FrameBuffer of the codec      plain
//!                      ├─▶ Inflate ──────────▲                                      gzip, zlib
//!                      └─▶ SnappyBlocks ─────┘                                      snappy
//!
//! first bytes ─▶ sniff ─▶ format, compression, kind of records
//! ```

mod decompressor;
mod doubts;
pub(crate) mod inflate;
mod input;
pub(crate) mod magic;
mod members;
pub(crate) mod payload;
mod snappy_blocks;
pub(crate) mod sniff;
pub(crate) mod stream;
