//! The messages of TensorFlow Metadata, generated from the `.proto` files of this crate. See
//! `text_format.rs` for their text format.

#![expect(
    missing_docs,
    reason = "generated; the names and numbers are TensorFlow Metadata's"
)]
#![allow(clippy::all, clippy::pedantic, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/tensorflow.metadata.v0.rs"));
