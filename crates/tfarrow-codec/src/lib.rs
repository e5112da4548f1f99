//! TFRecord files of `tf.Example` and `tf.SequenceExample` records as Arrow, and back: bytes in, batches out.
//!
//! ```text
//! reading   chunk ─▶ FRAME ─▶ WALK ─▶ COLUMNS ─▶ RecordBatch          Chunker, Records, BatchDecoder
//! writing   RecordBatch ─▶ COLUMNS ─▶ example bytes ─▶ FRAME          Encoder
//! ```
//!
//! - **FRAME** ([`frame`]) cuts a chunk into whole records by hopping from header to header.
//! - **WALK** reads one record's protobuf wire once and notes, for each wanted column, where its value lies.
//! - **COLUMNS** turns one column's places of a whole batch into one Arrow array.
//!
//! The crate performs no IO and knows no path, thread, clock or environment: its caller reads the bytes. The shortest way
//! from bytes to batches is the push [`Decoder`], here over any [`BufRead`](std::io::BufRead):
//!
//! ```
//! use std::io::BufRead;
//!
//! use tfarrow_codec::{DecoderBuilder, EncoderBuilder, Layout, infer};
//! # use std::sync::Arc;
//! # use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let count = 100_000;
//! # let labels: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
//! # let texts = (0..count).map(|label| format!("{label:0100}"));
//! # let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
//! # let batch = RecordBatch::try_from_iter([("label", labels), ("text", texts)])?;
//!
//! // Any Arrow columns become TFRecord bytes ..
//! let mut bytes = Vec::new();
//! EncoderBuilder::new().build(batch.schema())?.encode(&batch, &mut bytes)?;
//! # assert!(bytes.len() > 10_000_000);
//!
//! // .. whose schema can be inferred, and which are decoded by it.
//! let schema = infer::infer_schema(&bytes, Layout::Auto)?;
//! let mut decoder = DecoderBuilder::new(schema).with_batch_size(1000).build()?;
//! let mut input = std::io::BufReader::new(bytes.as_slice());
//! let mut batches = Vec::new();
//! loop {
//!     let taken = decoder.decode(input.fill_buf()?)?;
//!     input.consume(taken);
//!     if taken == 0 {
//!         // The batch is full, or the input has ended.
//!         let Some(batch) = decoder.flush()? else { break };
//!         batches.push(batch);
//!     }
//! }
//! // An error if the input ends inside a record.
//! decoder.finish()?;
//! assert!(batches.iter().all(|batch| batch.num_rows() == 1000));
//! # assert_eq!(batches.len(), 100);
//! # assert_eq!(arrow_select::concat::concat_batches(&batch.schema(), &batches)?.columns(), batch.columns());
//! # Ok(()) }
//! ```
//!
//! # Errors and limits
//! Every [`Error`] has a [`Position`]: the record's number, the byte offset of its frame in the decompressed stream and,
//! where one is to blame, the feature. Input bytes cannot panic the codec, nor make it hold more than its [`Limits`].

mod check;
mod chunk;
mod column;
mod crc;
mod decode;
mod decoder;
pub mod diff;
pub mod encode;
mod error;
mod exact;
pub mod frame;
pub mod infer;
mod keys;
mod limits;
mod names;
mod pieces;
mod resync;
pub mod schema;
mod skipped;
mod tape;
mod walk;
mod wire;

pub use check::Checker;
pub use chunk::{Chunker, Lost, Records, Segment};
pub use decode::BatchDecoder;
pub use decoder::{Decoder, DecoderBuilder};
pub use encode::{Encoder, EncoderBuilder};
pub use error::{Category, Error, ErrorKind, Position, Result, WireError};
pub use exact::{ExactColumn, with_exact};
pub use infer::{FeatureSummary, KindSummary, OnConflict, Place, Summary};
pub use limits::{BATCH_CELLS, Limits, MOST_RECORD_BYTES, OnError, VerifyCrc};
pub use pieces::{Cut, Cutter};
pub use schema::{Column, Kind, Layout, RecordType, Role, Shape, Values};
pub use skipped::Skipped;
