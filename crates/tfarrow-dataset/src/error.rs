//! What can go wrong with a file, and which file it was. The codec knows the record and the byte; here the name is added.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use tfarrow_codec::{Category, Limit, RecordType, Remedy};

use crate::{
    Compression,
    file_names::STDIN,
    system::{is_machine, is_out_of_files},
};

/// The result of everything fallible in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with the file that it is about. Its message is one line, `path: cause`; the cause is its source.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    path: Option<PathBuf>,
    kind: ErrorKind,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused.
    Io(io::Error),
    /// The codec found the records to be other than they should be.
    Codec(tfarrow_codec::Error),
    /// The file is something else.
    NotTfRecord {
        /// What it looks like, and the next step where there is one.
        looks_like: String,
        /// Whether that is a format; a shard whose first bytes are damaged looks like none.
        is_known: bool,
    },
    /// The compressed bytes are not what was written.
    Damaged {
        /// How the file is compressed.
        compression: Compression,
        /// In which way it is damaged.
        damage: Damage,
        /// The offset in bytes in the compressed file.
        offset: u64,
        /// The number of the record that could not be read, from 0.
        record: u64,
    },
    /// A part of a Parquet or Arrow file is not what was written.
    Checksum {
        /// Which part, in words.
        part: String,
        /// The number of its first record, from 0.
        record: u64,
        /// Where it begins in the file; 0 for what says where all else is.
        offset: u64,
    },
    /// A source names nothing to read.
    NoShards {
        /// Where it was looked: a folder or a glob, in words.
        looked: String,
        /// What was found there and skipped.
        skipped_files: SkippedFiles,
    },
    /// A glob that cannot be understood.
    Glob(globset::Error),
    /// The output is there already.
    Exists,
    /// The output's name belongs to something that is no file: a folder or a device.
    NotAFile,
    /// A feature has more than one kind. The message names the place of each.
    MixedKinds(String),
    /// The shards hold more than one kind of records. The message names the files.
    MixedRecords(String),
    /// The caller wanted no more.
    Stopped,
    /// The caller asked for something that cannot be.
    Usage(&'static str),
}

/// In which way compressed bytes are damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// They end too early.
    Truncated,
    /// Something else follows them.
    Trailing,
    /// They do not inflate, or to other bytes than were compressed: says why.
    Corrupt(String),
    /// They become more than this many times as long: a bomb, unless somebody knows better.
    Bomb {
        /// The limit.
        limit: u64,
    },
}

/// How many files a source named that were skipped, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// For their names: hidden ones, and those of indexes and descriptions.
    pub by_name: u64,
    /// For being empty.
    pub empty: u64,
    /// For being no TFRecord, Parquet or Arrow file.
    pub other: u64,
    /// For being of a format that was not asked for.
    pub unwanted: u64,
    /// For being TensorBoard's, beside files of other records.
    pub events: u64,
    /// One of the last three kinds, as an example.
    pub example: Option<PathBuf>,
    /// What the example looks like, where that is known.
    pub looks_like: Option<String>,
}

impl SkippedFiles {
    /// Whether there is more to it than what names tell: something that may be data.
    pub fn may_matter(&self) -> bool {
        self.empty + self.other + self.unwanted + self.events > 0
    }

    /// Adds a file of no known format.
    pub(crate) fn other(&mut self, path: PathBuf) {
        self.other += 1;
        self.example.get_or_insert(path);
    }

    /// Adds a file of a format that was not asked for.
    pub fn unwanted(&mut self, path: PathBuf) {
        self.unwanted += 1;
        self.example.get_or_insert(path);
    }

    /// Adds a file of TensorBoard's.
    pub(crate) fn events(&mut self, path: PathBuf) {
        self.events += 1;
        self.example.get_or_insert(path);
    }

    /// Adds what another source has that was skipped.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self { by_name, empty, other, unwanted, events, example, looks_like } = other;
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
    /// An error about the file at `path`.
    pub fn new(path: impl Into<PathBuf>, kind: ErrorKind) -> Self {
        Self(Box::new(Inner { path: Some(path.into()), kind }))
    }

    /// An error that is about no one file.
    pub(crate) fn general(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { path: None, kind }))
    }

    /// What the system said of the file at `path`. Of a link that leads nowhere it says that it is not there itself.
    pub fn io(path: impl Into<PathBuf>, error: io::Error) -> Self {
        let path = path.into();
        let error = match fs::read_link(&path) {
            Ok(target) if error.kind() == io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), format!("is a link that leads nowhere, to {}", shown(&target)))
            }
            _ => error,
        };
        Self::new(path, ErrorKind::Io(error))
    }

    /// What the codec said of the file at `path`.
    pub fn codec(path: impl Into<PathBuf>, error: tfarrow_codec::Error) -> Self {
        Self::new(path, ErrorKind::Codec(error))
    }

    /// The file that the error is about, where it is about one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What a caller can do about it, the best first; empty if the message is all that can be said.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self.kind() {
            ErrorKind::Codec(error) => error.remedies(),
            ErrorKind::Io(_) if self.is_out_of_files() => vec![Remedy::RaiseOpenFiles],
            ErrorKind::NotTfRecord { is_known: false, .. } => vec![Remedy::RepairTfRecord],
            ErrorKind::Damaged { damage: Damage::Bomb { .. }, .. } => vec![Remedy::RaiseLimit(Limit::InflateRatio)],
            ErrorKind::Damaged { .. } => vec![Remedy::Repair],
            ErrorKind::MixedKinds(_) => vec![Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)],
            ErrorKind::MixedRecords(_) => vec![Remedy::ReadAs(RecordType::Raw)],
            ErrorKind::Exists => vec![Remedy::Overwrite],
            ErrorKind::Io(_)
            | ErrorKind::NotTfRecord { .. }
            | ErrorKind::Checksum { .. }
            | ErrorKind::NoShards { .. }
            | ErrorKind::Glob(_)
            | ErrorKind::NotAFile
            | ErrorKind::Stopped
            | ErrorKind::Usage(_) => Vec::new(),
        }
    }

    /// Whether bytes are not what was written, or end too early.
    pub fn is_damage(&self) -> bool {
        match self.kind() {
            ErrorKind::Damaged { .. } | ErrorKind::Checksum { .. } => true,
            ErrorKind::NotTfRecord { is_known, .. } => !is_known,
            ErrorKind::Codec(error) => matches!(error.category(), Category::Corrupt | Category::Truncated),
            _ => false,
        }
    }

    /// Whether the machine failed: it is out of file descriptors or memory, a disk or a network cannot be read. That says
    /// nothing about the file, and is never counted as damage.
    pub fn is_machine(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(error) if is_machine(error))
    }

    /// Whether the process, or the machine, has as many files open as it may.
    pub fn is_out_of_files(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(error) if is_out_of_files(error))
    }

    /// Whether bytes end too early, as those of a file do that is still being written.
    pub(crate) fn is_cut_short(&self) -> bool {
        match self.kind() {
            ErrorKind::Damaged { damage, .. } => *damage == Damage::Truncated,
            ErrorKind::Codec(error) => error.category() == Category::Truncated,
            _ => false,
        }
    }

    /// The number of the record to blame, where the error lies in the data; what else fails comes after all records.
    pub(crate) fn record(&self) -> u64 {
        match self.kind() {
            ErrorKind::Codec(error) => error.position().record,
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

/// A path as messages show it: as it is, unless that would break the line.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().any(char::is_control) { format!("{text:?}") } else { text }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Codec(error) => error.fmt(f),
            Self::Glob(error) => error.fmt(f),
            Self::NotTfRecord { looks_like, .. } => write!(f, "not TFRecord: {looks_like}"),
            Self::Damaged { compression, damage, offset, record } => {
                write!(f, "record {record}: the {compression} data {damage} at byte {offset} of the file")
            }
            Self::Checksum { part, .. } => {
                let way_out = "take the file from a copy, or make it again";
                write!(f, "{part} is not as it was written: its checksum does not hold; {way_out}")
            }
            Self::NoShards { looked, skipped_files } => {
                let before = if *skipped_files == SkippedFiles::default() { "" } else { "; " };
                write!(f, "nothing to read: {looked}{before}{skipped_files}")
            }
            Self::Exists => f.write_str("this file exists"),
            Self::NotAFile => f.write_str("cannot be replaced by a file: it is a folder or a device"),
            Self::MixedKinds(message) | Self::MixedRecords(message) => f.write_str(message),
            Self::Stopped => f.write_str("stopped"),
            Self::Usage(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("ends too early,"),
            Self::Trailing => f.write_str("is followed by something else,"),
            Self::Corrupt(why) => write!(f, "is damaged ({why})"),
            Self::Bomb { limit } => {
                write!(f, "becomes more than {limit} times as long, as a bomb would (limit {}),", Limit::InflateRatio)
            }
        }
    }
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
            (Some(path), Some(looks_like)) => write!(f, " (such as {}, which {looks_like})", shown(path)),
            (Some(path), None) => write!(f, " (such as {})", shown(path)),
            (None, _) => Ok(()),
        }
    }
}

impl From<tfarrow_codec::Error> for Error {
    /// An error of a schema, which is about no one file.
    fn from(error: tfarrow_codec::Error) -> Self {
        Self::general(ErrorKind::Codec(error))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Codec(error) => Some(error),
            ErrorKind::Glob(error) => Some(error),
            _ => None,
        }
    }
}
