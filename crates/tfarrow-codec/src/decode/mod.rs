//! Decoding records to batches.
//!
//! ```text
//! Reader ─▶ Decoder ─▶ BatchDecoder ─▶ column ─▶ RecordBatch
//! BufRead   bytes      Records         arrays
//! ```
//!
//! - [`Reader`] drives a [`Decoder`] from anything that implements [`BufRead`](std::io::BufRead).
//! - [`Decoder`] takes bytes as they arrive, and collects the frames of one batch.
//! - [`BatchDecoder`] walks the records of a batch, and makes all batches of the codec.
//! - `column` builds one Arrow array from the places that the walk has noted.

mod batch_decoder;
mod column;
mod decoder;
mod reader;

pub use self::{
    batch_decoder::BatchDecoder,
    decoder::{Decoder, ReaderBuilder},
    reader::Reader,
};
