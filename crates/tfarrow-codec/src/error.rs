//! Errors of decoding and encoding, with their position in the data. Messages begin with the
//! position. The crate that opened the file adds the path in front.

use std::fmt;

use arrow_schema::ArrowError;
use serde::{Deserialize, Serialize};

use crate::{Limit, MOST_RECORD_BYTES, RecordType, Remedy, limits::NESTED_CELLS};

/// The full name of the message of [`RecordType::ExampleList`].
const EXAMPLE_LIST: &str = "tensorflow.serving.ExampleListWithContext";

/// The result of the fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its position. It has the size of a pointer, since every step of the hot loop
/// returns it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    position: Position,
    /// Whether the record was encoded from a row, and has no offset.
    is_row: bool,
}

/// The position of an error in a stream of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the record in its shard, counted from 0.
    pub record: u64,
    /// The offset in bytes of the record's frame in the decompressed shard.
    pub offset: u64,
    /// Name of the feature, if the error is about one.
    pub feature: Option<Box<str>>,
}

/// The categories of errors that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The input ends inside a frame.
    Truncated,
    /// The bytes are corrupt: a CRC does not match.
    Corrupt,
    /// The bytes are intact, and do not have the expected form: messages of another type, or
    /// features of another kind or length.
    Data,
    /// A limit of [`Limits`](crate::Limits), of Arrow or of protobuf is exceeded.
    Limit,
    /// The arguments of the caller are invalid: a schema, or an array.
    Usage,
}

/// The kinds of errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The CRC of a frame's length does not match. The length is not used, so that the end of the
    /// frame is unknown.
    LengthCrc {
        /// The masked CRC computed from the length.
        expected: u32,
        /// The masked CRC stored in the file.
        found: u32,
    },
    /// The CRC of a frame's payload does not match.
    DataCrc {
        /// The masked CRC computed from the payload.
        expected: u32,
        /// The masked CRC stored in the file.
        found: u32,
    },
    /// The input ends inside a frame.
    Truncated {
        /// Number of bytes of the frame that the input has.
        found: u64,
        /// Number of bytes of the complete frame; `None` if its header is truncated.
        expected: Option<u64>,
    },
    /// The payload is not a protobuf message of the expected type.
    Wire(WireError),
    /// An ExampleListWithContext, or a message of a type that is given by a descriptor, does not
    /// parse.
    Message {
        /// The full name of the message type.
        name: String,
        /// The reason.
        error: WireError,
    },
    /// A message has a field that its type does not define, or that has another wire type than its
    /// definition.
    UnknownField {
        /// The full name of the message type.
        name: String,
        /// The field number.
        field: u32,
        /// Whether the type has the number for extensions, which have no columns.
        is_extension: bool,
    },
    /// The bytes of a field of type `string` are not UTF-8.
    FieldNotUtf8 {
        /// The names of the field and of those around it, joined by dots.
        field: String,
    },
    /// The value of a field is out of the range of its column.
    FieldOutOfRange {
        /// The names of the field and of those around it, joined by dots.
        field: String,
        /// The range.
        expected: &'static str,
        /// The value.
        found: String,
    },
    /// The descriptors of a message are not valid, or do not have the message.
    Descriptors(String),
    /// A record has a field that its record type does not define: the data set probably has another
    /// type.
    Foreign {
        /// The field number.
        field: u32,
        /// The expected record type.
        record_type: &'static str,
    },
    /// A feature has another kind than its column.
    Kind {
        /// The kind of the column.
        expected: &'static str,
        /// The kind in the record.
        found: &'static str,
    },
    /// The list for a scalar column does not have exactly one value.
    NotScalar {
        /// Number of values in the list.
        found: usize,
    },
    /// The bytes for a text column are not UTF-8.
    NotUtf8,
    /// A value does not have the type that a reader declared for it.
    Declared {
        /// Description of the declared type.
        expected: String,
        /// Description of the value in the record.
        found: String,
    },
    /// A limit is exceeded.
    Limit {
        /// Name of the limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The actual number.
        found: u64,
        /// The limit in [`Limits`](crate::Limits); `None` for a limit of Arrow or of protobuf.
        name: Option<Limit>,
    },
    /// The records of a batch have more bytes or values together than Arrow's 32-bit offsets can
    /// count, or more messages times columns than memory may hold. No single record causes it;
    /// batches of fewer records can be decoded.
    BatchLimit {
        /// Name of the counted quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The actual number.
        found: u64,
        /// Number of records in the batch. The first one is at the position of the error.
        records: u64,
    },
    /// The features of a data set have more names than [`Limits`](crate::Limits) allow. No single
    /// record causes it.
    ManyNames {
        /// Maximum number of names.
        columns: usize,
        /// Maximum number of bytes of all names together.
        name_bytes: usize,
        /// The exceeded limit of the two.
        passed: Limit,
    },
    /// Records cannot be decoded to the column, or it cannot be encoded.
    Unsupported {
        /// The column and the reason.
        reason: String,
        /// Changes to the column, or another record type, that make it supported.
        remedies: Vec<Remedy>,
    },
    /// A value cannot be written without a change, and losses are not allowed.
    Lossy {
        /// The number of the row that has the value; `None` if all values of the column would
        /// change.
        row: Option<u64>,
        /// The value and its change.
        reason: String,
        /// Changes to the column that avoid the loss, besides allowing losses.
        remedies: Vec<Remedy>,
    },
    /// A feature has several kinds in one data set.
    MixedKinds(String),
    /// A caller cannot use the value of a feature, for example an image that does not decode.
    /// Contains what was expected and found.
    Value(String),
    /// Arrow cannot build an array or a batch.
    Arrow(ArrowError),
}

impl ErrorKind {
    /// Creates the error of a record that does not parse as one of this type.
    pub(crate) fn of_wire(error: WireError, record_type: RecordType) -> Self {
        match record_type {
            RecordType::ExampleList => Self::Message {
                name: EXAMPLE_LIST.to_owned(),
                error,
            },
            RecordType::Example
            | RecordType::SequenceExample
            | RecordType::Message
            | RecordType::Raw => Self::Wire(error),
        }
    }

    /// Creates the error of a column that is not supported, without remedies.
    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported {
            reason: reason.into(),
            remedies: Vec::new(),
        }
    }
}

/// The reasons why bytes are not a valid protobuf message, or exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireError {
    /// A value extends beyond the end of its message.
    PastEnd,
    /// A varint has too many bytes: more than 10, or more than 5 in a tag.
    LongVarint,
    /// A field number is 0 or above 2^29 - 1.
    FieldNumber,
    /// A wire type is 6 or 7, which are undefined.
    WireType,
    /// A group has an end without a start, or a start without an end.
    Group,
    /// Unknown groups are nested deeper than [`Limits::nesting`](crate::Limits::nesting). Not
    /// counted as an exceeded limit: text, which is no message, can have this error as well.
    Depth,
    /// The length of a packed list of floats, or of other numbers of a fixed width, is not a
    /// multiple of that width.
    PackedLength,
    /// The name of a feature is not UTF-8.
    Key,
    /// The name of a feature is longer than [`Limits::key_bytes`](crate::Limits::key_bytes).
    LongKey,
    /// The record has more features than
    /// [`Limits::record_features`](crate::Limits::record_features).
    ManyFeatures,
    /// A feature has more values than [`Limits::values`](crate::Limits::values).
    ManyValues,
    /// The repeated messages of a record, or the examples of its list, take more than 2^26 elements
    /// of all columns.
    ManyMessages,
}

impl WireError {
    /// Returns whether the bytes may be a valid message, and exceed a limit.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::LongKey | Self::ManyFeatures | Self::ManyValues | Self::ManyMessages
        )
    }

    /// Returns the exceeded limit; `None` for another error.
    fn limit(self) -> Option<Limit> {
        match self {
            Self::LongKey => Some(Limit::KeyBytes),
            Self::ManyFeatures => Some(Limit::RecordFeatures),
            Self::ManyValues => Some(Limit::Values),
            Self::Depth => Some(Limit::Nesting),
            _ => None,
        }
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, position: Position) -> Self {
        Self(Box::new(Inner {
            kind,
            position,
            is_row: false,
        }))
    }

    /// Creates an error without a position in a stream: of a schema, or of an array of the caller.
    pub(crate) fn usage(kind: ErrorKind) -> Self {
        Self::new(kind, Position::default())
    }

    pub(crate) fn at(kind: ErrorKind, record: u64, offset: u64) -> Self {
        Self::new(
            kind,
            Position {
                record,
                offset,
                feature: None,
            },
        )
    }

    /// Creates the error of a caller that cannot use the value of a feature of the record with this
    /// number and offset, for example an image that does not decode. `reason` says what was expected
    /// and found.
    pub fn of_value(record: u64, offset: u64, feature: &str, reason: String) -> Self {
        Self::at(ErrorKind::Value(reason), record, offset).with_feature(feature)
    }

    /// Returns the error as that of the record with this number and offset, for a caller that has
    /// decoded records in another order than that of their shard.
    pub fn moved(mut self, record: u64, offset: u64) -> Self {
        self.0.position.record = record;
        self.0.position.offset = offset;
        self
    }

    /// Marks the record as encoded from a row of a file, such as a Parquet file. The message names
    /// the row.
    pub(crate) fn of_row(mut self) -> Self {
        self.0.is_row = true;
        self
    }

    pub(crate) fn with_feature(mut self, name: &str) -> Self {
        self.0.position.feature = Some(name.into());
        self
    }

    /// Takes the kind, and the name of the feature if the error is in one.
    pub(crate) fn into_parts(self) -> (ErrorKind, Option<Box<str>>) {
        (self.0.kind, self.0.position.feature)
    }

    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the exceeded limit, if it is one of [`Limits`](crate::Limits) that can be raised.
    pub fn limit(&self) -> Option<Limit> {
        match &self.0.kind {
            ErrorKind::Limit { name, limit, .. } => name.filter(|name| !is_maximum(*name, *limit)),
            ErrorKind::ManyNames { passed, .. } => Some(*passed),
            ErrorKind::Wire(e) | ErrorKind::Message { error: e, .. } => e.limit(),
            _ => None,
        }
    }

    /// Returns the actions that may resolve the error, best first; empty if there is none beyond
    /// the message.
    pub fn remedies(&self) -> Vec<Remedy> {
        let raise = self.limit().map(Remedy::RaiseLimit);
        match &self.0.kind {
            ErrorKind::LengthCrc { .. }
            | ErrorKind::DataCrc { .. }
            | ErrorKind::Truncated { .. } => {
                vec![Remedy::Repair]
            }
            ErrorKind::Wire(error) | ErrorKind::Message { error, .. } if !error.is_limit() => raise
                .into_iter()
                .chain([Remedy::ReadAs(RecordType::Raw)])
                .collect(),
            ErrorKind::UnknownField {
                is_extension: true, ..
            } => {
                vec![Remedy::ReadAs(RecordType::Raw), Remedy::AllowLossy]
            }
            ErrorKind::UnknownField { .. } => vec![Remedy::NewerDescriptor, Remedy::AllowLossy],
            // The value of a row is the caller's, and cannot be read in another way.
            ErrorKind::FieldNotUtf8 { .. } | ErrorKind::FieldOutOfRange { .. } if self.0.is_row => {
                Vec::new()
            }
            ErrorKind::FieldNotUtf8 { .. } | ErrorKind::FieldOutOfRange { .. } => {
                vec![Remedy::ReadAs(RecordType::Raw)]
            }
            ErrorKind::Foreign { .. } => vec![Remedy::StateRecordType],
            ErrorKind::NotScalar { .. } => vec![Remedy::WidenToList],
            ErrorKind::NotUtf8 => vec![Remedy::WidenToBinary],
            ErrorKind::Unsupported { remedies, .. } => remedies.clone(),
            ErrorKind::Lossy { remedies, .. } => remedies
                .iter()
                .cloned()
                .chain([Remedy::AllowLossy])
                .collect(),
            ErrorKind::MixedKinds(_) => vec![Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)],
            ErrorKind::Wire(_)
            | ErrorKind::Message { .. }
            | ErrorKind::Descriptors(_)
            | ErrorKind::Limit { .. }
            | ErrorKind::ManyNames { .. }
            | ErrorKind::Kind { .. }
            | ErrorKind::Declared { .. }
            | ErrorKind::BatchLimit { .. }
            | ErrorKind::Value(_)
            | ErrorKind::Arrow(_) => raise.into_iter().collect(),
        }
    }

    /// Returns whether the error is about a single record, which can be skipped. A limit that can
    /// be raised may be wrong rather than the record, which is then not skipped.
    pub(crate) fn is_of_record(&self) -> bool {
        match self.kind() {
            ErrorKind::Wire(WireError::ManyMessages)
            | ErrorKind::Message {
                error: WireError::ManyMessages,
                ..
            } => true,
            _ => matches!(self.category(), Category::Corrupt | Category::Data),
        }
    }

    /// The position of the error. Its record and offset are 0 for errors of a schema.
    pub fn position(&self) -> &Position {
        &self.0.position
    }

    /// The category of the error.
    pub fn category(&self) -> Category {
        match &self.0.kind {
            ErrorKind::LengthCrc { .. } | ErrorKind::DataCrc { .. } => Category::Corrupt,
            ErrorKind::Truncated { .. } => Category::Truncated,
            ErrorKind::Wire(e) | ErrorKind::Message { error: e, .. } if e.is_limit() => {
                Category::Limit
            }
            ErrorKind::Wire(_)
            | ErrorKind::Message { .. }
            | ErrorKind::UnknownField { .. }
            | ErrorKind::FieldNotUtf8 { .. }
            | ErrorKind::FieldOutOfRange { .. }
            | ErrorKind::Foreign { .. }
            | ErrorKind::Kind { .. }
            | ErrorKind::NotScalar { .. }
            | ErrorKind::NotUtf8
            | ErrorKind::Declared { .. }
            | ErrorKind::Lossy { .. }
            | ErrorKind::Value(_)
            | ErrorKind::MixedKinds(_) => Category::Data,
            ErrorKind::Limit { .. }
            | ErrorKind::BatchLimit { .. }
            | ErrorKind::ManyNames { .. }
            | ErrorKind::Arrow(ArrowError::OffsetOverflowError(_)) => Category::Limit,
            ErrorKind::Unsupported { .. } | ErrorKind::Descriptors(_) | ErrorKind::Arrow(_) => {
                Category::Usage
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            position,
            is_row,
        } = &*self.0;
        match kind {
            ErrorKind::ManyNames { .. }
            | ErrorKind::Unsupported { .. }
            | ErrorKind::Lossy { .. }
            | ErrorKind::MixedKinds(_)
            | ErrorKind::Descriptors(_)
            | ErrorKind::Arrow(_) => {}
            ErrorKind::BatchLimit { records, .. } => {
                let last = position.record + records.saturating_sub(1);
                write!(
                    f,
                    "records {} to {last} (from byte {}): ",
                    position.record, position.offset
                )?;
            }
            _ if *is_row => write!(f, "row {}: ", position.record)?,
            _ => write!(f, "record {} (byte {}): ", position.record, position.offset)?,
        }
        if let Some(feature) = &position.feature {
            write!(f, "feature {feature:?}: ")?;
        }
        kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LengthCrc { expected, found } => {
                write!(
                    f,
                    "the length's CRC is {found:#010x}, expected {expected:#010x}: the file is corrupt here"
                )
            }
            Self::DataCrc { expected, found } => {
                write!(
                    f,
                    "the data's CRC is {found:#010x}, expected {expected:#010x}: the record is corrupt"
                )
            }
            Self::Truncated {
                found,
                expected: Some(expected),
            } => {
                write!(
                    f,
                    "the file ends inside this record: found {found} of {expected} bytes"
                )
            }
            Self::Truncated {
                found,
                expected: None,
            } => {
                write!(
                    f,
                    "the file ends inside a record's header: found {found} of 12 bytes"
                )
            }
            Self::Wire(e) if e.is_limit() => e.fmt(f),
            Self::Wire(e) => write!(f, "not a tf.Example or tf.SequenceExample: {e}"),
            Self::Message { error, .. } if error.is_limit() => error.fmt(f),
            Self::Message { name, error } => write!(f, "not a message {name}: {error}"),
            Self::UnknownField {
                name,
                field,
                is_extension: true,
            } => {
                write!(
                    f,
                    "found the extension {field} of a message {name}; extensions have no columns"
                )
            }
            Self::UnknownField {
                name,
                field,
                is_extension: false,
            } => {
                write!(
                    f,
                    "found field {field} in a message {name}, whose descriptor does not define it"
                )
            }
            Self::FieldNotUtf8 { field } => {
                write!(f, "field {field}: expected UTF-8 text, found other bytes")
            }
            Self::FieldOutOfRange {
                field,
                expected,
                found,
            } => {
                write!(f, "field {field}: expected {expected}, found {found}")
            }
            Self::Descriptors(reason) => f.write_str(reason),
            Self::Foreign { field, record_type } => {
                write!(
                    f,
                    "found field {field}, which a record of type {record_type} does not have"
                )
            }
            Self::Kind { expected, found } => write!(
                f,
                "expected {expected}, found {found}, which is not the kind that the schema or the sample says"
            ),
            Self::NotScalar { found } => write!(f, "expected exactly one value, found {found}"),
            Self::NotUtf8 => f.write_str("expected UTF-8 text, found other bytes"),
            Self::Value(reason) => f.write_str(reason),
            Self::Declared { expected, found } => {
                write!(f, "declared as {expected}, found {found}")
            }
            Self::Limit {
                what,
                limit,
                found,
                name,
            } => {
                write!(f, "{what}: found {found}, the limit")?;
                name.map_or(Ok(()), |name| write!(f, " {name}"))?;
                let maximum = if name.is_some_and(|name| is_maximum(name, *limit)) {
                    ", its maximum"
                } else {
                    ""
                };
                write!(f, " is {limit}{maximum}")
            }
            Self::BatchLimit {
                what, limit, found, ..
            } => {
                write!(f, "{what}: found {found}, the limit of a batch is {limit}")
            }
            Self::ManyNames {
                columns,
                name_bytes,
                ..
            } => write!(
                f,
                "the features have more names than the limits {} ({columns}) and {} ({name_bytes}) allow",
                Limit::Columns,
                Limit::NameBytes,
            ),
            Self::Lossy {
                row: Some(row),
                reason,
                ..
            } => write!(f, "row {row} has {reason}"),
            Self::Unsupported { reason, .. }
            | Self::Lossy {
                row: None, reason, ..
            } => f.write_str(reason),
            Self::MixedKinds(message) => f.write_str(message),
            Self::Arrow(e) => e.fmt(f),
        }
    }
}

/// Returns whether a limit is at its maximum, so that it cannot be raised.
fn is_maximum(name: Limit, limit: u64) -> bool {
    name == Limit::RecordBytes && limit >= MOST_RECORD_BYTES as u64
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::PastEnd => "a field extends past the end of its message",
            Self::LongVarint => "a varint is longer than protobuf allows",
            Self::FieldNumber => "a field number is out of range",
            Self::WireType => "a wire type is 6 or 7, which do not exist",
            Self::Group => "a group has no start or no end",
            Self::Depth => {
                return write!(
                    f,
                    "groups are nested deeper than the limit {} allows",
                    Limit::Nesting
                );
            }
            Self::PackedLength => "a packed list of numbers is no multiple of their width",
            Self::Key => "a feature's name is not UTF-8",
            Self::LongKey => {
                return write!(
                    f,
                    "a feature's name is longer than the limit {}",
                    Limit::KeyBytes
                );
            }
            Self::ManyFeatures => {
                return write!(
                    f,
                    "the record has more features than the limit {}",
                    Limit::RecordFeatures
                );
            }
            Self::ManyValues => {
                return write!(
                    f,
                    "a feature has more values than the limit {}",
                    Limit::Values
                );
            }
            Self::ManyMessages => {
                return write!(
                    f,
                    "the record has more messages times columns than the limit of {NESTED_CELLS}"
                );
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Arrow(e) => Some(e),
            _ => None,
        }
    }
}

impl From<ArrowError> for Error {
    fn from(e: ArrowError) -> Self {
        Self::usage(ErrorKind::Arrow(e))
    }
}

impl From<Error> for ArrowError {
    fn from(e: Error) -> Self {
        Self::ExternalError(Box::new(e))
    }
}
