//! The kinds of faults.
//!
//! A module of its own, since errors of other processes have a kind, and reports of damage use
//! errors.

use serde::{Deserialize, Serialize};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FaultKind {
    /// A corrupt length of a record.
    Length,
    /// A CRC of a record's data that does not match, or a checksum of a part of a Parquet or Arrow
    /// file.
    Data,
    /// A record that is not a message of the expected type.
    Message,
    /// A truncated last record.
    Tail,
    /// Compressed bytes that cannot be decompressed, are truncated, or are followed by other bytes.
    Compression,
    /// An exceeded limit.
    Limit,
    /// A file of an unknown format, or one that cannot be read.
    File,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Length,
        Self::Data,
        Self::Message,
        Self::Tail,
        Self::Compression,
        Self::Limit,
        Self::File,
    ];

    /// The name, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Data => "data",
            Self::Message => "message",
            Self::Tail => "tail",
            Self::Compression => "compression",
            Self::Limit => "limit",
            Self::File => "file",
        }
    }
}
