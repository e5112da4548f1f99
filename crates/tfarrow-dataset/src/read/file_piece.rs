//! Pieces of a plain file, which tasks read that know nothing of each other.
//!
//! ```text
//! bytes      0                a                    b                size
//! records    │ 0    │ 1       ┆  │ 2    │ 3        ┆ │ 4     │ 5    │
//! piece 0    └──────┴─────────┆──┘      │          ┆ │       │      │
//! piece 1                     ┆  └──────┴──────────┆─┘       │      │
//! piece 2                     ┆                    ┆ └───────┴──────┘
//! ```
//!
//! A piece from the byte `a` to the byte `b` has the records from `first(a)` to `first(b)`, where
//! `first(x)` is the first place at or after `x` at which both CRCs of a record match, or the end
//! of the file. A task finds both places itself, and its last record must end exactly at the second
//! one. If all tasks succeed, the pieces have the records of the file: piece 0 begins with the
//! first record and ends at a record, so that piece 1 begins there, and so on. No chance is
//! involved. A file that contains TFRecord in a feature may have a false place; the last record of
//! a piece then ends elsewhere, which is an error and no wrong record.
//!
//! The numbers of the records are not known, and a damaged record may be read differently in
//! pieces. After any error of a piece, the caller reads the file as a whole.

use std::{
    io::{self, Read},
    ops::Range,
    path::Path,
};

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    OnError,
    frame::{self, RecordSearch, Searched},
};

use crate::{
    Error, PartialTail, ReadOptions, Result, Shard, ShardReader, format::payload::Payload,
};

/// Number of bytes that a search reads first.
const SEARCH_BYTES: usize = 64 << 10;

/// A piece of a plain file: the records from the first one at or after a byte to the first one at
/// or after another byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece {
    /// The two bytes. An end at or after that of the file is the end of the file.
    pub bytes: Range<u64>,
    /// The [version](Shard::version) of the file of which this is a piece.
    pub version: Option<String>,
}

impl FilePiece {
    /// Divides a file into at most `count` pieces of about the same number of bytes, each with
    /// `least` bytes or more. `None` if the file has fewer than two of them, or can be read from
    /// its start only, as a compressed file, or is an object without an ETag, of which tasks could
    /// read different versions. Reads the first header.
    pub fn divide(shard: &Shard, count: usize, least: u64) -> Option<Vec<Self>> {
        let count = (shard.size / least.max(1)).min(count as u64);
        let is_sequential =
            shard.is_stream() || shard.needs_local_copy() || shard.payload() == Payload::Events;
        if count < 2 || is_sequential || !shard.checks_version() || !begins_plain(shard) {
            return None;
        }
        let version = shard.version();
        let mut pieces = Vec::with_capacity(count as usize);
        let mut begin = 0;
        for index in 1..=count {
            let end = (u128::from(shard.size) * u128::from(index) / u128::from(count)) as u64;
            pieces.push(Self {
                bytes: begin..end,
                version: version.clone(),
            });
            begin = end;
        }
        Some(pieces)
    }
}

impl ShardReader {
    /// Opens a piece of a plain file.
    ///
    /// # Errors
    /// An I/O error, and a file of another version than that of the piece. Reading ends with an
    /// error if the file has to be read as a whole.
    pub fn open_piece(shard: &Shard, piece: &FilePiece, options: &ReadOptions) -> Result<Self> {
        let wrap = |error| Error::io(&shard.path, error);
        if piece.version.is_some() && shard.version() != piece.version {
            return Err(changed_since_planned(&shard.path));
        }
        let most = options.limits.record_bytes;
        let Range { start, end } = piece.bytes;
        let begin = if start == 0 {
            0
        } else {
            first_record(shard, start, most).map_err(wrap)?
        };
        let is_last = end >= shard.size;
        let end = if is_last {
            shard.size
        } else {
            first_record(shard, end, most).map_err(wrap)?
        };
        let source = shard
            .open_at(begin)
            .map_err(wrap)?
            .take(end.saturating_sub(begin));
        // A record that the end of the piece cuts is not the truncated record of a file that is
        // being written.
        let partial_tail = if is_last {
            options.partial_tail
        } else {
            PartialTail::Fail
        };
        let options = ReadOptions {
            on_error: OnError::Fail,
            partial_tail,
            ..*options
        };
        Ok(Self::of_plain(
            Box::new(source),
            shard.path.clone(),
            &options,
            begin,
        ))
    }
}

/// The error that a file is another one than that of which a query has planned to read parts.
pub fn changed_since_planned(path: &Path) -> Error {
    let text = "the file has changed since the query was planned";
    Error::io(path, io::Error::other(text))
}

/// Returns whether a file begins with the header of a record, which no compressed file does.
fn begins_plain(shard: &Shard) -> bool {
    let mut header = [0; frame::HEADER];
    let read = shard
        .open_at(0)
        .and_then(|mut source| source.read_exact(&mut header));
    read.is_ok() && frame::length(&header).is_some()
}

/// The offset of the first record at or after the byte `from`; the size of the file if there is
/// none.
///
/// # Errors
/// No record begins where one begins in each valid file: at most one record after `from`.
fn first_record(shard: &Shard, from: u64, most: usize) -> io::Result<u64> {
    if from >= shard.size {
        return Ok(shard.size);
    }
    let mut source = shard.open_at(from)?;
    let mut bytes = Vec::new();
    let mut search = RecordSearch::default();
    let mut need = SEARCH_BYTES;
    // The offset of the first one of `bytes`.
    let mut begin = from;
    let last = from
        .saturating_add((frame::HEADER + frame::FOOTER) as u64)
        .saturating_add(most as u64);
    while begin <= last {
        let more = need.saturating_sub(bytes.len()).max(SEARCH_BYTES) as u64;
        let ended = source.by_ref().take(more).read_to_end(&mut bytes)? == 0;
        match search.find(&bytes, ended, most) {
            Searched::Found(at) => return Ok(begin + at as u64),
            Searched::Needs {
                searched,
                bytes: count,
            } => {
                need = count;
                // Fewer bytes would be moved too often.
                if searched >= bytes.len() / 2 {
                    bytes.drain(..searched);
                    search.pass(searched);
                    (begin, need) = (begin + searched as u64, need - searched);
                }
            }
        }
    }
    let text = format!("no record begins at the bytes {from} to {last}");
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}
