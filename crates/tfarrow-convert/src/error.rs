//! What can go wrong, and in which file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tfarrow_codec::Category;
use tfarrow_dataset::ErrorKind;

use crate::existing_file::Differs;

/// The result of everything fallible in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with the file that it is about.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Finding, reading or writing a shard failed.
    Dataset(tfarrow_dataset::Error),
    /// A Parquet file cannot be read or written.
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
    /// An Arrow file cannot be read or written.
    Arrow {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ArrowError,
    },
    /// What was asked for cannot be: says why, and what can.
    Usage(String),
    /// The data does not fit what was said or sampled of it: says where, and the way out.
    Data(String),
    /// A conversion is resumed, and an output that is there already is not what the conversion makes.
    Differs {
        /// The output.
        path: PathBuf,
    },
    /// Someone asked to stop.
    Cancelled,
}

impl Error {
    /// Whether the schema may be wrong: records were read that do not fit it, or an output that is there already has
    /// other bytes.
    pub(crate) fn is_misfit(&self) -> bool {
        match self {
            Self::Data(_) | Self::Differs { .. } => true,
            Self::Dataset(e) => matches!(e.kind(), ErrorKind::Codec(e) if e.category() == Category::Data),
            Self::Parquet { .. } | Self::Arrow { .. } | Self::Usage(_) | Self::Cancelled => false,
        }
    }

    /// Whether what was done is worth keeping, since it can be gone on with: someone asked to stop, the system refused
    /// something, or a source is damaged, which can be mended or passed over.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::Dataset(e) => matches!(e.kind(), ErrorKind::Io(_)) || e.is_damage(),
            Self::Parquet { .. } | Self::Arrow { .. } | Self::Usage(_) | Self::Data(_) | Self::Differs { .. } => false,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        if source.get_ref().is_some_and(|cause| cause.is::<Differs>()) {
            return Self::Differs { path: path.to_owned() };
        }
        Self::Dataset(tfarrow_dataset::Error::io(path, source))
    }

    pub(crate) fn codec(path: &Path, source: tfarrow_codec::Error) -> Self {
        Self::Dataset(tfarrow_dataset::Error::codec(path, source))
    }

    /// What Parquet says of a file, or through it the system.
    pub(crate) fn parquet(path: &Path, source: ParquetError) -> Self {
        let source = match source {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => return Self::io(path, *error),
                Err(error) => ParquetError::External(error),
            },
            source => source,
        };
        Self::Parquet { path: path.to_owned(), source }
    }

    /// What Arrow says of a file, or through it the system.
    pub(crate) fn arrow(path: &Path, source: ArrowError) -> Self {
        match source {
            ArrowError::IoError(_, error) => Self::io(path, error),
            source => Self::Arrow { path: path.to_owned(), source },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dataset(e) => e.fmt(f),
            Self::Parquet { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Arrow { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Usage(message) | Self::Data(message) => f.write_str(message),
            Self::Differs { path } => {
                let why = "is there already, and is not what this conversion makes; --overwrite replaces it";
                write!(f, "{}: {why}", path.display())
            }
            Self::Cancelled => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dataset(e) => e.source(),
            Self::Parquet { source, .. } => Some(source),
            Self::Arrow { source, .. } => Some(source),
            Self::Usage(_) | Self::Data(_) | Self::Differs { .. } | Self::Cancelled => None,
        }
    }
}

impl From<tfarrow_dataset::Error> for Error {
    fn from(e: tfarrow_dataset::Error) -> Self {
        Self::Dataset(e)
    }
}
