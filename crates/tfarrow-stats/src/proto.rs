//! TensorFlow Metadata's messages, in bytes and in text.

#![expect(missing_docs, reason = "generated; the names and numbers are TensorFlow Metadata's")]
#![allow(clippy::all, clippy::pedantic, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/tensorflow.metadata.v0.rs"));
