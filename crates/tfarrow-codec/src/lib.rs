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
//! The crate performs no IO and knows no path, thread, clock or environment: whoever reads the bytes drives it. The
//! shortest way is the push [`Decoder`]:
//!
//! ```
//! use tfarrow_codec::{DecoderBuilder, EncoderBuilder, Layout, Summary, infer};
//! # use std::sync::Arc;
//! # use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Any Arrow columns become TFRecord bytes ..
//! let labels: ArrayRef = Arc::new(Int64Array::from(vec![1, 0, 1]));
//! let batch = RecordBatch::try_from_iter([("label", labels)])?;
//! let mut bytes = Vec::new();
//! EncoderBuilder::new().build(batch.schema())?.encode(&batch, &mut bytes)?;
//!
//! // .. whose schema can be inferred, and which are decoded by it.
//! let schema = infer::infer_schema(&bytes, Layout::Auto)?;
//! let mut decoder = DecoderBuilder::new(schema).build()?;
//! let mut rest = bytes.as_slice();
//! while !rest.is_empty() {
//!     let taken = decoder.decode(rest)?;
//!     rest = &rest[taken..];
//! }
//! decoder.finish()?;
//! let back = decoder.flush()?.expect("three records");
//! assert_eq!(back.column(0).as_primitive::<Int64Type>().values(), &[1, 0, 1]);
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
pub use limits::{BATCH_CELLS, Limits, OnError, VerifyCrc};
pub use pieces::{Cut, Cutter};
pub use schema::{Column, Kind, Layout, RecordType, Role, Shape, Values};
pub use skipped::Skipped;
