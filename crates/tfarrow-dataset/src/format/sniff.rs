//! The format of a file, recognized by its first bytes; if these are damaged, by its last bytes or
//! its name. Text is recognized by its name only.

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};
use tfarrow_codec::frame::length;

use super::{
    magic,
    payload::Payload,
    stream::{Failure, Stream, contains_record},
};
use crate::{Compression, Error, Result};

/// Number of bytes after a damaged first record in which another record is searched for.
const SEARCHED: u64 = 1 << 20;

/// Number of bytes at the end of a file that identify its format.
pub(crate) const TAIL: u64 = 6;

/// Magic number at the start and at the end of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// Magic number at the start and at the end of an Arrow IPC file.
const ARROW: &[u8] = b"ARROW1";
/// The first bytes of an Arrow IPC stream, before the length of its schema.
const ARROW_STREAM: &[u8] = &[0xff; 4];
/// Maximum bytes of the schema of a stream that is recognized.
const MAX_STREAM_SCHEMA: u32 = 1 << 30;

/// Properties of a shard, besides its format, that its first bytes show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadInfo {
    /// The compression, if a valid record follows or the file has no data.
    pub(crate) compression: Option<Compression>,
    /// The kind of the first records.
    pub(crate) payload: Payload,
    /// Whether the file is compressed, and has no data.
    is_empty_stream: bool,
}

impl HeadInfo {
    fn of(stream: &Stream) -> Self {
        let compression = stream.begins_sound().then(|| stream.compression());
        let is_compressed = stream.compression() != Compression::None;
        let is_empty_stream = is_compressed && stream.head().is_empty() && !stream.failed();
        Self {
            compression,
            payload: Payload::of(stream.head()),
            is_empty_stream,
        }
    }

    /// Returns the format of CSV and JSON for a compressed file without data that has the name of
    /// one. Such a file is otherwise a shard of TFRecord without records.
    pub(crate) fn empty_text(&self, path: &Path) -> Option<ShardFormat> {
        ShardFormat::text_of_name(path).filter(|_| self.is_empty_stream)
    }
}

/// Format of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ShardFormat {
    /// TFRecord, compressed or not.
    TfRecord,
    /// Parquet.
    Parquet,
    /// An Arrow IPC file, or an Arrow IPC stream in a file.
    Arrow,
    /// CSV or TSV with a header.
    Csv,
    /// JSON, with one object a line or one array of objects.
    Json,
}

impl ShardFormat {
    /// Recognizes the format of the file at `path`; `None` if it has no known format.
    ///
    /// A compressed file is decompressed as far as needed. If it is damaged before that, it counts
    /// as TFRecord, so that reading it reports the damage. A file with unknown first bytes counts
    /// as Parquet or Arrow if it ends like one, or has the name of one.
    ///
    /// # Errors
    /// An I/O error.
    pub fn sniff(path: &Path) -> Result<Option<Self>> {
        Self::sniff_head(path).map(|(format, _)| format)
    }

    /// Recognizes the format of the file at `path` as [`sniff`](Self::sniff) does, and returns the
    /// properties that its first bytes show.
    pub(crate) fn sniff_head(path: &Path) -> Result<(Option<Self>, HeadInfo)> {
        let wrap = |error| Error::io(path, error);
        let mut file = File::open(path).map_err(wrap)?;
        let head = file.try_clone().map_err(wrap)?;
        let stream = Stream::new(Box::new(head), usize::MAX).map_err(|failure| match failure {
            Failure::Io(error) => wrap(error),
            Failure::Damage(_) => wrap(std::io::ErrorKind::InvalidData.into()),
        })?;
        if let Some(known) = Self::of_stream(&stream) {
            return Ok((Some(known), HeadInfo::of(&stream)));
        }
        let len = file.seek(SeekFrom::End(0)).map_err(wrap)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))
            .map_err(wrap)?;
        file.read_to_end(&mut tail).map_err(wrap)?;
        Ok((
            Self::of_tail(&tail).or_else(|| Self::of_name(path)),
            HeadInfo::default(),
        ))
    }

    /// Recognizes Parquet and Arrow by the last bytes of a file.
    pub(crate) fn of_tail(tail: &[u8]) -> Option<Self> {
        if tail.ends_with(PARQUET) {
            Some(Self::Parquet)
        } else {
            tail.ends_with(ARROW).then_some(Self::Arrow)
        }
    }

    /// Recognizes Parquet and Arrow by the extension of a file, for files whose first and last
    /// bytes are damaged.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" | "arrows" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// Returns the format of a file that is named itself, by its content or by its name. One of no
    /// known format counts as TFRecord, so that reading it reports the error.
    pub(crate) fn of_named(found: Option<Self>, head: &HeadInfo, path: &Path) -> Self {
        head.empty_text(path)
            .or(found)
            .or_else(|| Self::text_of_name(path))
            .unwrap_or(Self::TfRecord)
    }

    /// Recognizes CSV and JSON by the extension of a file, which may be followed by that of gzip.
    /// The content of a text shows no format.
    pub(crate) fn text_of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        match name
            .strip_suffix(".gz")
            .unwrap_or(&name)
            .rsplit_once('.')?
            .1
        {
            "csv" | "tsv" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns whether files of the format are text.
    pub fn is_text(self) -> bool {
        match self {
            Self::Csv | Self::Json => true,
            Self::TfRecord | Self::Parquet | Self::Arrow => false,
        }
    }

    /// Recognizes an uncompressed Parquet or Arrow file by its first bytes.
    pub(crate) fn columnar_of_head(head: &[u8]) -> Option<Self> {
        if head.starts_with(PARQUET) {
            return Some(Self::Parquet);
        }
        (head.starts_with(ARROW) || is_arrow_stream(head)).then_some(Self::Arrow)
    }

    /// Returns whether a file with unknown first bytes contains a valid record after a damaged
    /// first one. Searches as many bytes as records usually take.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn has_record_after_damage(path: &Path) -> Result<bool> {
        let wrap = |error| Error::io(path, error);
        let mut file = File::open(path).map_err(wrap)?;
        let mut head = Vec::new();
        file.by_ref()
            .take(magic::HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(wrap)?;
        if magic::is_surely_known(&head) {
            return Ok(false);
        }
        file.take(SEARCHED).read_to_end(&mut head).map_err(wrap)?;
        Ok(contains_record(&head))
    }

    /// Recognizes the format of a file by its first bytes, as [`sniff`](Self::sniff) does.
    pub(crate) fn of_head(head: Bytes) -> (Option<Self>, HeadInfo) {
        let stream = Stream::new(Box::new(head.reader()), usize::MAX).ok();
        stream.map_or_else(Default::default, |stream| {
            (Self::of_stream(&stream), HeadInfo::of(&stream))
        })
    }

    fn of_stream(stream: &Stream) -> Option<Self> {
        let head = stream.head();
        if length(head).is_some() {
            return Some(Self::TfRecord);
        }
        match stream.compression() {
            Compression::None => Self::columnar_of_head(head),
            // A compressed file without bytes is a shard without records.
            _ if HeadInfo::of(stream).is_empty_stream => Some(Self::TfRecord),
            // The magic number of zlib is too short to assume a damaged zlib file.
            Compression::Gzip if stream.failed() && magic::known(head).is_none() => {
                Some(Self::TfRecord)
            }
            Compression::Gzip | Compression::Zlib | Compression::Snappy => None,
        }
    }

    /// The name of the format in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::TfRecord => "TFRecord",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
            Self::Csv => "CSV",
            Self::Json => "JSON",
        }
    }
}

/// Returns whether these are the first bytes of an Arrow IPC stream: a marker, and the length of
/// the schema, which is padded to 8 bytes.
fn is_arrow_stream(head: &[u8]) -> bool {
    let len = head
        .strip_prefix(ARROW_STREAM)
        .and_then(|rest| rest.first_chunk().copied().map(u32::from_le_bytes));
    len.is_some_and(|len| len > 0 && len <= MAX_STREAM_SCHEMA && len.is_multiple_of(8))
}

impl fmt::Display for ShardFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
