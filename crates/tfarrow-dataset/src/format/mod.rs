//! Formats: what a file contains, recognized by its bytes, and its bytes without compression.
//!
//! ```text
//! file ─▶ StoredInput ─┬──────────────▶ Stream ─▶ FrameBuffer of the codec      plain
//!                      └─▶ Inflate ───────▲                                     gzip, zlib
//!
//! first bytes ─▶ sniff ─▶ format, compression, kind of records
//! ```

mod doubts;
mod inflate;
mod input;
pub(crate) mod magic;
mod members;
pub(crate) mod payload;
pub(crate) mod sniff;
pub(crate) mod stream;
