//! Data sets of shards: finding, reading and writing TFRecord files, on disk and in object stores.
//!
//! ```text
//! files, folders, globs, URLs ─▶ source ─▶ Shard ─▶ read ─▶ Records, RecordBatch
//! frames of the codec ─▶ write ─▶ files and objects that appear when they are complete
//! ```
//!
//! These modules use `sharding` (one shard, and numbered sets of shards), `format` (recognition and
//! decompression) and `store` (object stores).
//!
//! - [`resolve`] finds the shards that sources name (files, folders, globs, URLs, standard input),
//!   in a fixed order.
//! - [`ShardReader`] reads one shard, plain or compressed, as [`Records`](tfarrow_codec::Records).
//!   [`SharedReader`] reads one shard with several threads, and [`ShardBatchReader`] returns Arrow
//!   batches.
//! - [`count()`] counts the records of a shard.
//! - [`OutputFile`] and [`ShardWriter`] write; [`file_names`] derives the names of outputs.
//!
//! Formats and compressions are recognized by the bytes of a file, not by its name. Each [`Error`]
//! names the file.
//!
//! The feature `stores`, which is on by default, adds the clients of S3, Google Cloud Storage, Azure
//! and web servers. Without it, a URL is an error.
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

mod catch_panic;
mod compression;
mod damage;
mod descriptors;
mod error;
mod fault_kind;
pub mod file_names;
mod format;
mod images;
mod lock;
mod no_such_name;
mod process;
mod proto_sources;
mod read;
mod sharding;
mod snappy;
mod source;
mod store;
mod store_error;
mod system;
mod threads;
mod write;

pub use compression::Compression;
pub use damage::{DamageReport, Fault, Lost, Segment};
pub use descriptors::{event_message, load_message};
pub use error::{Damage, Error, ErrorKind, Result, SkippedFiles};
pub use fault_kind::FaultKind;
pub use format::sniff::ShardFormat;
pub use read::{
    batch_reader::ShardBatchReader,
    count::count,
    shard_reader::{PartialTail, ReadOptions, ShardReader},
    shared_reader::{SharedReader, Taken},
};
pub use sharding::{
    missing::MissingShards,
    part::{NotAPart, Part},
    shard::Shard,
};
pub use source::{Exclude, FormatFilter, Resolved, resolve, resolve_excluding, resolve_filtered};
pub use threads::OnProgress;
pub use write::{
    output_file::{CompleteFile, OutputFile},
    shard_writer::ShardWriter,
};

/// What the other crates of tfarrow use besides: parts of readers, names and addresses of shards,
/// folders `key=value`, stores, threads and locks. It may change with any version.
pub mod internals {
    pub use crate::{
        catch_panic::catch_panic,
        descriptors::EVENT_MESSAGE,
        error::shown,
        format::payload::Payload,
        images::{ImageFault, ImageHeader, decode_image},
        lock::{Lock, wait_while},
        no_such_name::no_such_name,
        read::{
            access_points::{AccessPoint, CollectedPoints},
            block_reader::IsWanted,
            file_piece::{FilePiece, changed_since_planned},
            frame_ranges::{FrameRanges, RangeFile, ShardAccess},
            probable::ProbablePayload,
            random_access::{RandomAccess, RandomReader},
            same_payload::{are_events, check_one_payload},
            shard_reader::CHUNK_BYTES,
        },
        sharding::{
            address::ShardAddress,
            dataset_info::{TfdsSplit, check_length, splits_note, tfds_splits},
            folder_columns::{
                FolderColumn, NULL_FOLDER, folder_name, folder_value, parse_folder_name,
            },
            identity::ShardIdentity,
            part::divide,
            shard::{ShardState, remove_copies},
            spec::is_shard_spec,
        },
        source::{read_heads, without_folder_columns},
        store::{
            location::{is_remote, store_of},
            object::ObjectAddress,
            upload::{ExistingObject, existing, existing_objects, names_in},
        },
        threads::{on_threads, try_map},
        write::output_file::UNFINISHED,
    };
}
