//! Errors of reading and writing files, each with the path of the file. The codec's errors have the
//! record and the byte; this module adds the path.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use tfarrow_codec::{Category, Limit, RecordType, Remedy};

use crate::{
    Compression, FaultKind,
    file_names::STDIN,
    store_error::{without_userinfo, without_variant},
    system::{is_machine, is_out_of_files},
};

/// The result of the fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with the path of its file. The message is one line, `path: cause`.
/// [`source`](std::error::Error::source) is the cause.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    path: Option<PathBuf>,
    kind: ErrorKind,
}

/// The kinds of errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An I/O error of the operating system, of an object store or of a web server.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// An error of the codec: corrupt or truncated records, records that do not fit the schema, or
    /// an exceeded limit.
    #[error("{0}")]
    Codec(#[source] tfarrow_codec::Error),
    /// The file is not TFRecord.
    #[error("not TFRecord: {looks_like}")]
    NotTfRecord {
        /// Description of the format that the first bytes look like, with the next step for the
        /// user if there is one.
        looks_like: String,
        /// Whether the first bytes are those of a known format. `false` for a shard whose first
        /// bytes are corrupt.
        is_known: bool,
    },
    /// The compressed data is corrupt.
    #[error("record {record}: the {compression} data {damage} at byte {offset} of the file")]
    Damaged {
        /// The compression of the file.
        compression: Compression,
        /// The kind of damage.
        damage: Damage,
        /// Offset in bytes in the compressed file.
        offset: u64,
        /// Number of the record that cannot be read, from 0.
        record: u64,
    },
    /// The checksum of a part of a Parquet or Arrow file does not match.
    #[error(
        "{part} is corrupt: its checksum does not match; restore the file from a copy, or write it again"
    )]
    Checksum {
        /// Description of the part, such as its column and row group.
        part: String,
        /// Number of the first record of the part, from 0.
        record: u64,
        /// Offset in bytes of the part in the file; 0 for the metadata of the file.
        offset: u64,
    },
    /// A shard has another number of records than `dataset_info.json` of TFDS says.
    #[error(
        "has {found} records, and {expected} by dataset_info.json; restore the shard from a copy, or write the data set again"
    )]
    ShardLength {
        /// The number of records of the shard.
        found: u64,
        /// The number in the description.
        expected: u64,
    },
    /// The rows of a file of another format than TFRecord cannot be read.
    #[error("{}{source}", before(.part))]
    Rows {
        /// Description of the part of the file, such as its row group; empty if the error is about
        /// the file.
        part: String,
        /// Number of the first row that may be affected, from 0.
        row: u64,
        /// The error of the library that reads the format.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A source contains no shards.
    #[error("nothing to read: {looked}{}{skipped_files}", .skipped_files.separator())]
    NoShards {
        /// Description of the place that was searched: a folder or a glob.
        looked: String,
        /// The files that were found there and skipped.
        skipped_files: SkippedFiles,
    },
    /// A glob has invalid syntax.
    #[error("{0}")]
    Glob(#[source] globset::Error),
    /// The output file exists.
    #[error("this file exists")]
    Exists,
    /// The path of the output is that of a folder or a device.
    #[error("cannot be replaced by a file: it is a folder or a device")]
    NotAFile,
    /// A feature has several kinds.
    #[error("{message}")]
    MixedKinds {
        /// The name of the feature.
        feature: String,
        /// The text of the error, with the place of each kind.
        message: String,
    },
    /// The shards contain several kinds of records.
    #[error("{message}")]
    MixedRecords {
        /// The text of the error, with the names of files.
        message: String,
        /// Whether the operation can read the records as they are.
        can_be_raw: bool,
    },
    /// A file does not define the wanted message. Contains the reason.
    #[error("{0}")]
    Descriptors(String),
    /// An error that another process reported.
    #[error("{message}")]
    Reported {
        /// The text of the error, without the path.
        message: String,
        /// The kind of the fault.
        fault: FaultKind,
        /// The actions that may resolve it.
        remedies: Vec<Remedy>,
    },
    /// The caller stopped the operation.
    #[error("stopped")]
    Stopped,
    /// The arguments of the caller are invalid.
    #[error("{0}")]
    Usage(&'static str),
}

/// The kinds of damage in compressed data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The data is truncated.
    #[error("is truncated")]
    Truncated,
    /// Other bytes follow the data.
    #[error("is followed by other data")]
    Trailing,
    /// The data does not decompress, or its checksum does not match. Contains the reason.
    #[error("is corrupt ({0})")]
    Corrupt(String),
    /// The compression ratio exceeds the limit, as that of a decompression bomb does.
    #[error(
        "expands more than {limit} times, like a decompression bomb (limit {}),",
        Limit::InflateRatio
    )]
    Bomb {
        /// The limit for the ratio of decompressed to compressed bytes.
        limit: u64,
    },
}

/// The number of files of a source that were skipped, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// Files skipped because of their names: hidden ones, and indexes and descriptions of unknown
    /// format.
    pub by_name: u64,
    /// Empty files.
    pub empty: u64,
    /// Files that are not TFRecord, Parquet or Arrow.
    pub other: u64,
    /// Files of a known format that was not requested.
    pub unwanted: u64,
    /// Files of TensorBoard next to files with other records.
    pub events: u64,
    /// An example of `other`, `unwanted` or `events`.
    pub example: Option<PathBuf>,
    /// Description of the format of the example, if known.
    pub looks_like: Option<String>,
}

impl SkippedFiles {
    /// Returns whether skipped files may contain data: files that were skipped for another reason
    /// than their names.
    pub fn may_matter(&self) -> bool {
        self.empty + self.other + self.unwanted + self.events > 0
    }

    /// What stands before the list of the files in a message.
    fn separator(&self) -> &'static str {
        if *self == Self::default() { "" } else { "; " }
    }

    /// Adds a file of an unknown format.
    pub(crate) fn other(&mut self, path: PathBuf) {
        self.other += 1;
        self.example.get_or_insert(path);
    }

    /// Adds a file of a format that was not requested.
    pub fn unwanted(&mut self, path: PathBuf) {
        self.unwanted += 1;
        self.example.get_or_insert(path);
    }

    /// Adds a file of TensorBoard.
    pub(crate) fn events(&mut self, path: PathBuf) {
        self.events += 1;
        self.example.get_or_insert(path);
    }

    /// Adds the skipped files of another source.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            by_name,
            empty,
            other,
            unwanted,
            events,
            example,
            looks_like,
        } = other;
        self.by_name += by_name;
        self.empty += empty;
        self.other += other;
        self.unwanted += unwanted;
        self.events += events;
        if self.example.is_none() {
            (self.example, self.looks_like) = (example, looks_like);
        }
    }
}

impl Error {
    /// Creates an error about the file at `path`.
    pub fn new(path: impl Into<PathBuf>, kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            path: Some(path.into()),
            kind,
        }))
    }

    /// Creates an error that is not about a single file.
    pub fn general(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { path: None, kind }))
    }

    /// Creates an I/O error about the file at `path`. The operating system reports a broken link as
    /// a missing file; the message then has the target of the link instead.
    pub fn io(path: impl Into<PathBuf>, error: io::Error) -> Self {
        let path = path.into();
        // A reader of the rows of a file passes on errors that have the path already.
        let error = match error.downcast::<Self>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        let error = match fs::read_link(&path) {
            Ok(target) if error.kind() == io::ErrorKind::NotFound => io::Error::new(
                error.kind(),
                format!("is a link to {}, which does not exist", shown(&target)),
            ),
            _ => without_variant(error),
        };
        Self::new(path, ErrorKind::Io(error))
    }

    /// Creates an error of the codec about the file at `path`.
    pub fn codec(path: impl Into<PathBuf>, error: tfarrow_codec::Error) -> Self {
        Self::new(path, ErrorKind::Codec(error))
    }

    /// The file that the error is about; `None` if it is not about a single file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the kind of the error without its path.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the error of an operation on features, which cannot read records as they are.
    pub fn of_features(mut self) -> Self {
        if let ErrorKind::MixedRecords { can_be_raw, .. } = &mut self.0.kind {
            *can_be_raw = false;
        }
        self
    }

    /// Returns the actions that may resolve the error, best first; empty if there is none beyond
    /// the message.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self.kind() {
            ErrorKind::Codec(error) => error.remedies(),
            ErrorKind::Io(_) if self.is_out_of_files() => vec![Remedy::RaiseOpenFiles],
            ErrorKind::NotTfRecord {
                is_known: false, ..
            } => vec![Remedy::RepairTfRecord],
            ErrorKind::Damaged {
                damage: Damage::Bomb { .. },
                ..
            } => vec![Remedy::RaiseLimit(Limit::InflateRatio)],
            ErrorKind::Damaged { .. } => vec![Remedy::Repair],
            ErrorKind::MixedKinds { .. } => {
                vec![Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)]
            }
            ErrorKind::MixedRecords {
                can_be_raw: true, ..
            } => vec![Remedy::ReadAs(RecordType::Raw)],
            ErrorKind::Exists => vec![Remedy::Overwrite],
            ErrorKind::Reported { remedies, .. } => remedies.clone(),
            ErrorKind::Io(_)
            | ErrorKind::NotTfRecord { .. }
            | ErrorKind::Checksum { .. }
            | ErrorKind::ShardLength { .. }
            | ErrorKind::Rows { .. }
            | ErrorKind::NoShards { .. }
            | ErrorKind::Glob(_)
            | ErrorKind::NotAFile
            | ErrorKind::MixedRecords {
                can_be_raw: false, ..
            }
            | ErrorKind::Descriptors(_)
            | ErrorKind::Stopped
            | ErrorKind::Usage(_) => Vec::new(),
        }
    }

    /// Returns whether the data is corrupt or truncated.
    pub fn is_damage(&self) -> bool {
        match self.kind() {
            ErrorKind::Damaged { .. } | ErrorKind::Checksum { .. } => true,
            ErrorKind::NotTfRecord { is_known, .. } => !is_known,
            ErrorKind::Codec(error) => {
                matches!(error.category(), Category::Corrupt | Category::Truncated)
            }
            ErrorKind::Reported { fault, .. } => match fault {
                FaultKind::Length | FaultKind::Data | FaultKind::Tail | FaultKind::Compression => {
                    true
                }
                FaultKind::Message | FaultKind::Limit | FaultKind::File => false,
            },
            _ => false,
        }
    }

    /// Returns whether the machine failed: it is out of file descriptors or memory, or a disk or a
    /// network cannot be read. Such a failure is no finding about the file, and never counts as
    /// damage.
    pub fn is_machine(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(error) if is_machine(error))
    }

    /// Returns whether the process or the machine has the maximum number of files open.
    pub fn is_out_of_files(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(error) if is_out_of_files(error))
    }

    /// Returns whether the data is truncated, as that of a file is while it is being written.
    pub(crate) fn is_cut_short(&self) -> bool {
        match self.kind() {
            ErrorKind::Damaged { damage, .. } => *damage == Damage::Truncated,
            ErrorKind::Codec(error) => error.category() == Category::Truncated,
            _ => false,
        }
    }

    /// The number of the record that caused the error; `u64::MAX` for errors without a record,
    /// which are ordered after all records.
    pub fn record(&self) -> u64 {
        match self.kind() {
            ErrorKind::Codec(error) => error.position().record,
            ErrorKind::Checksum { record, .. } | ErrorKind::Rows { row: record, .. } => *record,
            _ => u64::MAX,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            None => {}
            Some(path) if path == Path::new(STDIN) => write!(f, "standard input: ")?,
            Some(path) => write!(f, "{}: ", shown(path))?,
        }
        self.kind().fmt(f)
    }
}

/// Formats a path or a URL for messages: escaped if it has control characters, which could break
/// the line, and without a password.
pub fn shown(path: &Path) -> String {
    let text = without_userinfo(&path.display().to_string());
    if text.chars().any(char::is_control) {
        format!("{text:?}")
    } else {
        text
    }
}

/// The start of a message about a part of a file.
fn before(part: &str) -> String {
    if part.is_empty() {
        return String::new();
    }
    format!("{part}: ")
}

impl fmt::Display for SkippedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.by_name, "for the name"),
            (self.empty, "empty"),
            (self.other, "of no known format"),
            (self.unwanted, "of a format that was not asked for"),
            (self.events, "of TensorBoard"),
        ];
        let mut before = "skipped: ";
        for (count, why) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{before}{count} {why}")?;
            before = ", ";
        }
        match (&self.example, &self.looks_like) {
            (Some(path), Some(looks_like)) => {
                write!(f, " (such as {}, which {looks_like})", shown(path))
            }
            (Some(path), None) => write!(f, " (such as {})", shown(path)),
            (None, _) => Ok(()),
        }
    }
}

impl From<tfarrow_codec::Error> for Error {
    /// Creates an error of a schema, which is not about a single file.
    fn from(error: tfarrow_codec::Error) -> Self {
        Self::general(ErrorKind::Codec(error))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind().source()
    }
}
