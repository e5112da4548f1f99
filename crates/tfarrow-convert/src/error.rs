//! Errors of conversions, each with the path of the file.

use std::{
    io,
    path::{Path, PathBuf},
};

use arrow_schema::{ArrowError, DataType};
use parquet::errors::ParquetError;
use tfarrow_codec::{Category, Limit, RecordType, Remedy, diff::Incomparable};
use tfarrow_dataset::{ErrorKind, internals::shown};

/// The result of the fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shard cannot be found, read or written.
    #[error(transparent)]
    Dataset(#[from] tfarrow_dataset::Error),
    /// A Parquet file cannot be read or written.
    #[error("{}: {source}", shown(.path))]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the `parquet` crate.
        source: ParquetError,
    },
    /// An Arrow file cannot be read or written.
    #[error("{}: {source}", shown(.path))]
    Arrow {
        /// The file.
        path: PathBuf,
        /// The error of the `arrow-ipc` crate.
        source: ArrowError,
    },
    /// Records cannot be decoded to the columns, or the columns cannot be encoded as records.
    #[error("{}{source}", before(.path.as_deref()))]
    Columns {
        /// The source of the columns; `None` if the options have them.
        path: Option<PathBuf>,
        /// The column and the reason.
        source: tfarrow_codec::Error,
    },
    /// A file is not a schema: neither Parquet, Arrow nor the JSON of a schema.
    #[error("{}: not a schema: {source}", shown(.path))]
    NotASchema {
        /// The file.
        path: PathBuf,
        /// The error in its JSON.
        source: NotASchema,
    },
    /// Outputs exist, and may not be overwritten.
    #[error("{}{}: already exists", shown(.path), and_others(*.others))]
    Exists {
        /// The first existing output.
        path: PathBuf,
        /// Number of other existing outputs.
        others: usize,
    },
    /// The folder contains the outputs of an interrupted conversion.
    #[error("{}: {}", shown(.folder), interruption(*.is_other))]
    Interrupted {
        /// The folder.
        folder: PathBuf,
        /// Whether that conversion should be resumed, and had other options or another version of
        /// the crate.
        is_other: bool,
    },
    /// The output format is unknown: there is no option for it, and the extension is not that of a
    /// format. Contains the message.
    #[error("{0}")]
    NoFormat(String),
    /// The rows have no columns, which Parquet does not support.
    #[error("Parquet cannot hold rows without columns")]
    NoColumns,
    /// Parquet has no type for the values of a column.
    #[error(
        "column {column:?}: Parquet has no type for {data_type}; leave the column out, or write Arrow"
    )]
    NoParquetType {
        /// The name of the column, and the names of fields in it.
        column: String,
        /// The type of the values.
        data_type: DataType,
    },
    /// There is a path for a quarantine, and corrupt records are not skipped.
    #[error("a quarantine requires that damage is skipped")]
    NoQuarantine,
    /// The options are invalid, or do not fit the sources. Contains the message.
    #[error("{0}")]
    Usage(String),
    /// Names of columns or features do not fit the data set.
    #[error("{}{message}", before(.path.as_deref()))]
    Selection {
        /// The file whose columns they do not fit; `None` for inferred columns and those of the
        /// options.
        path: Option<PathBuf>,
        /// The name, and the names that there are.
        message: String,
        /// Whether the columns were inferred from a sample, so that all records may have others.
        sampled: bool,
    },
    /// A record does not fit the schema that was inferred from a sample.
    #[error("{}: {what}: it is not in the sample", shown(.path))]
    NotSampled {
        /// The file.
        path: PathBuf,
        /// Description of the part of the record that does not fit.
        what: String,
    },
    /// The columns of a part of a conversion, which are those of a sample of all shards, are not
    /// those of all records.
    #[error(
        "{misfit}; the columns of this part are those of a sample of all shards, and others are needed"
    )]
    PartColumns {
        /// The error of a record or a name that does not fit them.
        #[source]
        misfit: Box<Self>,
    },
    /// The columns of a part of a conversion would be those of a sample of all shards, which does
    /// not determine those of all records.
    #[error(
        "a part of a conversion needs the columns of all records, and a sample cannot show them: {why}"
    )]
    UnsettledColumns {
        /// The reason, such as the feature whose column is not determined.
        why: String,
    },
    /// Rows cannot be compared, because no record has their values.
    #[error(transparent)]
    NotComparable(tfarrow_dataset::Error),
    /// Records cannot be compared.
    #[error("{}", incomparable(.0))]
    Incomparable(Incomparable),
    /// The data does not have the stated or inferred properties. Contains the message, with the
    /// place.
    #[error("{0}")]
    Data(String),
    /// A conversion is resumed, and an existing output differs from the output of the conversion.
    #[error("{}: already exists, and differs from the output of this conversion", shown(.path))]
    Differs {
        /// The output.
        path: PathBuf,
    },
    /// A source was changed or removed during the conversion, so that some of its records may be
    /// old and others new.
    #[error("{}: {}", shown(.path), change(.source.as_ref()))]
    SourceChanged {
        /// The source.
        path: PathBuf,
        /// The error of reading its size and time; `None` if these have changed.
        source: Option<io::Error>,
    },
    /// The caller cancelled the operation.
    #[error("stopped")]
    Cancelled,
}

/// The reasons why a file is not a schema.
#[derive(Debug, thiserror::Error)]
pub enum NotASchema {
    /// It is not JSON.
    #[error("{0}; expected a Parquet file, an Arrow file, or the JSON of a schema")]
    Json(#[source] serde_json::Error),
    /// It is JSON, and not that of a schema.
    #[error(transparent)]
    Schema(SchemaJsonError),
}

impl Error {
    /// Why records of other types than Example and SequenceExample have no column of a folder.
    pub(crate) const NO_FEATURES: &str =
        "only records of tf.Example and tf.SequenceExample can have them as features";

    /// The error that the folders `key=value` of a source would be lost.
    pub(crate) fn lost_folders(path: &Path, why: &str) -> Self {
        Self::Usage(format!(
            "{}: its folders `key=value` would be lost: {why}; convert to a folder, with an output for each file, which keeps \
             them",
            shown(path)
        ))
    }

    /// Returns whether the arguments are invalid, as opposed to the data or the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Columns { .. }
            | Self::NotASchema { .. }
            | Self::Exists { .. }
            | Self::Interrupted { .. }
            | Self::NoFormat(_)
            | Self::NoColumns
            | Self::NoParquetType { .. }
            | Self::NoQuarantine
            | Self::Selection { .. }
            | Self::UnsettledColumns { .. }
            | Self::Usage(_) => true,
            Self::Dataset(e) => matches!(e.kind(), ErrorKind::MixedRecords { .. }),
            Self::Parquet { .. }
            | Self::Arrow { .. }
            | Self::NotSampled { .. }
            | Self::PartColumns { .. }
            | Self::NotComparable(_)
            | Self::Incomparable(_)
            | Self::Data(_)
            | Self::Differs { .. }
            | Self::SourceChanged { .. }
            | Self::Cancelled => false,
        }
    }

    /// Returns the actions that may resolve the error, best first; empty if there is none beyond
    /// the message.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Dataset(e) => e.remedies(),
            // A comparison changes no values.
            Self::NotComparable(e) => e
                .remedies()
                .into_iter()
                .filter(|remedy| *remedy != Remedy::AllowLossy)
                .collect(),
            Self::Columns { source, .. } => source.remedies(),
            Self::NotASchema {
                source: NotASchema::Json(_),
                ..
            } => vec![Remedy::WriteSchema],
            Self::NotASchema {
                source: NotASchema::Schema(e),
                ..
            } => e.remedies(),
            Self::Exists { .. } | Self::Differs { .. } => vec![Remedy::Overwrite],
            Self::Interrupted { is_other: true, .. } => vec![Remedy::StartOver],
            Self::Interrupted {
                is_other: false, ..
            } => vec![Remedy::Resume, Remedy::StartOver],
            Self::NoFormat(_) => vec![Remedy::StateFormat],
            Self::NoColumns => vec![Remedy::ReadAs(RecordType::Raw), Remedy::WriteArrow],
            Self::NoQuarantine => vec![Remedy::SkipErrors],
            Self::NotSampled { .. } | Self::Selection { sampled: true, .. } => {
                vec![Remedy::SampleAll]
            }
            Self::PartColumns { .. } | Self::UnsettledColumns { .. } => vec![Remedy::StateColumns],
            Self::Incomparable(Incomparable::Names) => {
                vec![
                    Remedy::RaiseLimit(Limit::Columns),
                    Remedy::RaiseLimit(Limit::NameBytes),
                ]
            }
            Self::Parquet { .. }
            | Self::Arrow { .. }
            | Self::NoParquetType { .. }
            | Self::Selection { sampled: false, .. }
            | Self::Usage(_)
            | Self::Incomparable(Incomparable::Left(_) | Incomparable::Right(_))
            | Self::Data(_)
            | Self::SourceChanged { .. }
            | Self::Cancelled => Vec::new(),
        }
    }

    /// Returns whether the schema may be wrong: a record or a name does not fit it, or an existing
    /// output has other bytes.
    pub(crate) fn is_misfit(&self) -> bool {
        match self {
            Self::Data(_)
            | Self::NotSampled { .. }
            | Self::Selection { .. }
            | Self::Differs { .. } => true,
            Self::Dataset(e) => {
                matches!(e.kind(), ErrorKind::Codec(e) if e.category() == Category::Data)
            }
            _ => false,
        }
    }

    /// Returns whether the completed outputs should be kept, because the conversion can be resumed:
    /// it was cancelled, an I/O operation failed, or a source is corrupt, which can be repaired or
    /// skipped.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Cancelled | Self::SourceChanged { .. } => true,
            Self::Dataset(e) => matches!(e.kind(), ErrorKind::Io(_)) || e.is_damage(),
            _ => false,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        if source.get_ref().is_some_and(|cause| cause.is::<Differs>()) {
            return Self::Differs {
                path: path.to_owned(),
            };
        }
        Self::Dataset(tfarrow_dataset::Error::io(path, source))
    }

    pub(crate) fn codec(path: &Path, source: tfarrow_codec::Error) -> Self {
        Self::Dataset(tfarrow_dataset::Error::codec(path, source))
    }

    /// Converts an error of the `parquet` crate. An I/O error in it becomes an I/O error of the
    /// file.
    pub(crate) fn parquet(path: &Path, source: ParquetError) -> Self {
        let source = match source {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => return Self::io(path, *error),
                Err(error) => ParquetError::External(error),
            },
            source => source,
        };
        Self::Parquet {
            path: path.to_owned(),
            source,
        }
    }

    /// Converts an error of the `arrow-ipc` crate. An I/O error in it becomes an I/O error of the
    /// file.
    pub(crate) fn arrow(path: &Path, source: ArrowError) -> Self {
        match source {
            ArrowError::IoError(_, error) => Self::io(path, error),
            source => Self::Arrow {
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// The start of a message about a file, if it is about one.
fn before(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!("{}: ", shown(path)))
}

fn and_others(others: usize) -> String {
    if others == 0 {
        return String::new();
    }
    format!(" (and {others} more outputs)")
}

fn interruption(is_other: bool) -> &'static str {
    if is_other {
        "the interrupted conversion in this folder had other options, or ran with another version; use the same options"
    } else {
        "a conversion to this folder was interrupted"
    }
}

fn incomparable(reason: &Incomparable) -> String {
    match reason {
        Incomparable::Left(error) | Incomparable::Right(error) => error.to_string(),
        Incomparable::Names => format!(
            "the data sets have more feature names than the limits {} and {} allow",
            Limit::Columns,
            Limit::NameBytes
        ),
    }
}

/// What has happened to a source, given the error of reading its size and time.
fn change(error: Option<&io::Error>) -> String {
    match error {
        None => "was changed while it was read; convert it again after writing to it has ended"
            .to_owned(),
        Some(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("was removed while it was read: {error}")
        }
        Some(error) => format!("cannot be checked for changes during the conversion: {error}"),
    }
}

/// The error for JSON that is not a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaJsonError {
    /// An unexpected value. The message has the feature and the expected value.
    #[error("{0}")]
    Unexpected(String),
    /// A column to which features cannot be decoded.
    #[error(transparent)]
    Column(tfarrow_codec::Error),
}

impl SchemaJsonError {
    /// Returns the actions that may resolve the error, best first.
    fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Unexpected(_) => Vec::new(),
            Self::Column(error) => error.remedies(),
        }
    }
}

/// Marks a difference among the I/O errors that the Parquet and Arrow writers return.
#[derive(Debug, thiserror::Error)]
#[error("the output differs from the existing file")]
pub(crate) struct Differs;
