//! Where the shards of a data set are, and how their bytes come and go.
//!
//! ```text
//! sources ─▶ resolve ─▶ Shard ─▶ ShardReader ─▶ Records            files, folders, globs, standard input
//!                         └────▶ infer ───────▶ Inferred           one summary, all cores
//! frames ─▶ ShardWriter ─▶ OutputFile ─▶ a file that appears whole
//! ```
//!
//! - [`resolve`] finds the shards that sources name, in an order that never varies. Objects in stores are shards too.
//! - [`ShardReader`] reads one shard, plain or compressed, and cuts it into [`Records`](tfarrow_codec::Records).
//!   [`SharedReader`] does so for several threads, and [`ShardBatchReader`] returns Arrow batches.
//! - [`infer`] sums up what a data set holds, and [`count`] how many records a shard has.
//!   [`verify`] finds what is wrong with it.
//! - [`OutputFile`] and [`ShardWriter`] write; [`names`] says under which name.
//!
//! Compression and contents are told by a file's bytes, never by its name. Every [`Error`] names the file.
//!
//! ```
//! use tfarrow_dataset::{ReadOptions, ShardReader, resolve};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let mut bytes = Vec::new();
//! # tfarrow_codec::frame::write(b"a record", &mut bytes);
//! # std::fs::write(folder.path().join("a.tfrecord"), &bytes)?;
//! # let source = folder.path();
//! let mut count = 0;
//! for shard in resolve(&[source])? {
//!     for records in ShardReader::open(&shard, &ReadOptions::default())? {
//!         count += records?.len();
//!     }
//! }
//! assert_eq!(count, 1);
//! # Ok(()) }
//! ```

mod batch_reader;
mod compression;
mod contents;
mod count;
mod credentials;
mod error;
mod fault;
mod glob;
mod guard;
mod images;
mod infer;
mod inflate;
mod lock;
mod looks;
mod missing;
pub mod names;
mod natural;
mod payload;
mod reader;
mod remote;
mod shard;
mod shared;
mod skipped;
mod source;
mod spec;
mod system;
mod upload;
mod verify;
mod writer;

pub use batch_reader::ShardBatchReader;
pub use compression::Compression;
pub use contents::Contents;
pub use count::count;
pub use error::{Damage, Error, ErrorKind, PassedOver, Result};
pub use fault::{Fault, FaultKind, Faults, Losses};
pub use guard::guard;
pub use images::{ImageHeader, decode_image};
pub use infer::{
    InferOptions, Inferred, NotASample, OnProgress, SAMPLE_BYTES, SAMPLE_RECORDS, SAMPLE_SHARDS, Sample, Sampled,
    infer, infer_observed, infer_with, place_in,
};
pub use missing::MissingShards;
pub use payload::{Payload, check_one_payload};
pub use reader::{CHUNK_BYTES, Lost, PartialTail, ReadOptions, Segment, ShardReader};
pub use remote::{is_remote, look_into, store_of};
pub use shard::{Shard, remove_copies};
pub use shared::{SharedReader, Taken};
pub use skipped::SkippedRecords;
pub use source::{Resolved, Wanted, resolve, resolve_wanted};
pub use spec::is_shard_spec;
pub use upload::{existing, names_in};
pub use verify::{Verified, verify};
pub use writer::{OutputFile, ShardWriter, UNFINISHED, WholeFile};
