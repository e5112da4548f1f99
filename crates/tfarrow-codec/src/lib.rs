//! TFRecord files of `tf.Example` and `tf.SequenceExample` records as Arrow, and back: bytes in,
//! batches out.
//!
//! ```text
//! reading   chunk ─▶ FRAME ─▶ WALK ─▶ COLUMNS ─▶ RecordBatch          FrameBuffer, Records, BatchDecoder
//! writing   RecordBatch ─▶ COLUMNS ─▶ example bytes ─▶ FRAME          Encoder
//! ```
//!
//! - **FRAME** ([`frame`]) finds the complete records of a chunk by going from header to header.
//! - **WALK** (`example`) reads the protobuf wire of a record once and notes, for each wanted
//!   column, where its value is.
//! - **COLUMNS** (`decode`, `encode`) turns the values of one column of a batch into one Arrow
//!   array, and back.
//!
//! [`infer`] makes the schema, which [`schema`] describes; [`diff`] compares records.
//!
//! [`Reader`] and [`Writer`] are the shortest way, as in arrow-csv and arrow-json:
//!
//! ```
//! use tfarrow_codec::{ReaderBuilder, Layout, Writer, infer};
//! # use std::sync::Arc;
//! # use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let count = 100_000;
//! # let labels: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
//! # let texts = (0..count).map(|label| format!("{label:0100}"));
//! # let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
//! # let batch = RecordBatch::try_from_iter([("label", labels), ("text", texts)])?;
//! // Batches become the bytes of a TFRecord file,
//! let mut writer = Writer::new(Vec::new(), batch.schema())?;
//! writer.write(&batch)?;
//! let bytes = writer.into_inner();
//! # assert!(bytes.len() > 10_000_000);
//!
//! // whose schema can be inferred, and which become batches again.
//! let schema = infer::infer_schema(bytes.as_slice(), Layout::Auto, None)?;
//! let input = std::io::BufReader::new(bytes.as_slice()); // or of a `File`
//! let reader = ReaderBuilder::new(schema).with_batch_size(1000).build(input)?;
//! let batches = reader.collect::<Result<Vec<_>, _>>()?;
//! assert!(batches.iter().all(|batch| batch.num_rows() == 1000));
//! # assert_eq!(batches.len(), 100);
//! # assert_eq!(arrow_select::concat::concat_batches(&batch.schema(), &batches)?.columns(), batch.columns());
//! # Ok(()) }
//! ```
//!
//! Apart from these two, the crate performs no IO, and it uses no path, thread, clock or
//! environment variable. An async or multi-threaded program drives the push [`Decoder`], or cuts
//! [`Records`] with a [`FrameBuffer`] and decodes them with a [`BatchDecoder`] on each thread.
//! Payloads without frames become [`Records`] by [`Records::from_payloads`].
//!
//! # Columns
//! Each feature becomes a nullable column; null means that the record does not have the feature.
//! The Arrow type depends on the kind of the feature, on the length of its lists, and on the
//! [`Layout`]:
//!
//! | kind | lists in the data set | [`Layout::List`] | [`Layout::Auto`] |
//! |---|---|---|---|
//! | `int64_list` | each has one value | `List<Int64>` | `Int64` |
//! | `int64_list` | other lengths | `List<Int64>` | `List<Int64>` |
//! | `float_list` | each has one value | `List<Float32>` | `Float32` |
//! | `float_list` | other lengths | `List<Float32>` | `List<Float32>` |
//! | `bytes_list` | each has one value | `List<Binary>` | `Binary`, or `Utf8` if all values are text |
//! | `bytes_list` | other lengths | `List<Binary>` | `List<Binary>`, or `List<Utf8>` if all values are text |
//! | feature list of a SequenceExample | any | `List<List<T>>` of the kind's type | the same, with `Utf8` for text |
//! | payload that is neither message | | `record: Binary` | `record: Binary` |
//!
//! Text is valid UTF-8, not all values are empty, and fewer than a tenth of the others have a
//! control character ([`KindSummary::is_text`]). Protobuf messages of any other type become columns
//! by their descriptors, see [`MessageType`] (feature `messages`, on by default).
//! [`schema::with_views`] replaces `Binary` and `Utf8` by view types, which do not copy long
//! values. A decoder makes lists with or without nullable items, as its schema has them
//! ([`file_schema::with_nullable_items`]).
//!
//! # Errors and limits
//! Every [`Error`] has a [`Position`]: the record's number, the byte offset of its frame in the
//! decompressed stream and the feature, if the error is in one. Its [remedies](Error::remedies) are
//! data, which a program words in the syntax of its own options. Input bytes cannot panic the
//! codec, nor make it hold more than its [`Limits`].

mod decode;
pub mod diff;
mod encode;
mod error;
mod exact;
mod example;
pub mod file_schema;
pub mod frame;
pub mod infer;
mod limits;
mod message;
mod named_value;
mod record_type;
mod remedy;
pub mod schema;
mod slices;

pub use decode::{BatchDecoder, Decoder, Reader, ReaderBuilder};
pub use encode::{Encoder, ExactColumn, Writer, WriterBuilder, schema_of_rows};
pub use error::{Category, Error, ErrorKind, Position, Result, WireError};
pub use example::SharedValue;
pub use example::Validator;
pub use frame::{FrameBuffer, Lost, Records, Segment, SharedFeatures};
pub use infer::{FeatureSummary, KindSummary, OnConflict, Place, Summary, SummaryState};
pub use limits::BATCH_CELLS;
pub use limits::{Limit, Limits, MOST_RECORD_BYTES, OnError, VerifyCrc};
#[cfg(feature = "messages")]
pub use message::{DefinitionCount, MessageType, descriptor_pool};
pub use named_value::{NamedValue, UnknownName, parse_name};
pub use record_type::RecordType;
pub use remedy::{Remedy, Rewrite};
pub use schema::{Column, Kind, Layout, Role, Shape, Values, with_exact};
