//! What can be wrong with input, and where. Messages name the place first; whoever opened the file puts its name before.

use std::fmt;

use arrow_schema::ArrowError;

use crate::{Limit, MOST_RECORD_BYTES, RecordType, Remedy};

/// The result of everything fallible in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its place. One word wide, since every step of the hot loop returns it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    position: Position,
}

/// Where in a stream of records something was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The record's number in its shard, counted from 0.
    pub record: u64,
    /// The offset in bytes of the record's frame in the decompressed shard.
    pub offset: u64,
    /// The name of the feature, where one is to blame.
    pub feature: Option<Box<str>>,
}

/// What programs branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The input ends inside a frame.
    Truncated,
    /// The bytes are not what was written: a checksum fails.
    Corrupt,
    /// The bytes are whole, but not what was expected: other payloads, kinds or lengths.
    Data,
    /// A limit of [`Limits`](crate::Limits) or of Arrow itself is passed.
    Limit,
    /// The caller asked for something that cannot be.
    Usage,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The CRC of a frame's length does not hold: the length is not believed, and the shard cannot be read on.
    LengthCrc {
        /// The masked CRC that the length bytes have.
        expected: u32,
        /// The masked CRC that stands in the file.
        found: u32,
    },
    /// The CRC of a frame's payload does not hold.
    DataCrc {
        /// The masked CRC that the payload has.
        expected: u32,
        /// The masked CRC that stands in the file.
        found: u32,
    },
    /// The input ends inside a frame.
    Truncated {
        /// Bytes of the frame that are there.
        found: u64,
        /// Bytes that the frame has, as far as its header is there to say so.
        expected: Option<u64>,
    },
    /// The payload is not the protobuf message it should be.
    Wire(WireError),
    /// A record has a field that a record of its type has not: the data set is something else.
    Foreign {
        /// The number of the field.
        field: u32,
        /// What the data set was taken for.
        record_type: &'static str,
    },
    /// A feature has another kind than its column.
    Kind {
        /// What the column holds.
        expected: &'static str,
        /// What the record has.
        found: &'static str,
    },
    /// A scalar column meets a list that has not exactly one value.
    NotScalar {
        /// How many values the list has.
        found: usize,
    },
    /// A text column meets bytes that are no UTF-8.
    NotUtf8,
    /// A value does not fit the type that a reader declared for it.
    Declared {
        /// What was declared, in words.
        expected: String,
        /// What the record has, in words.
        found: String,
    },
    /// A limit is passed.
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What was found.
        found: u64,
        /// Which of [`Limits`](crate::Limits) it is; `None` where it is Arrow's own or protobuf's.
        name: Option<Limit>,
    },
    /// The records of one batch have more together than Arrow can count, for which no one of them is to blame. Fewer at
    /// once can be decoded.
    BatchLimit {
        /// What is counted.
        what: &'static str,
        /// As far as Arrow can count.
        limit: u64,
        /// What was found.
        found: u64,
        /// How many records the batch has, from the one at the error's position on.
        records: u64,
    },
    /// A data set has more different names of features than [`Limits`](crate::Limits) allow, which no one record is to
    /// blame for.
    ManyNames {
        /// How many there may be.
        columns: usize,
        /// How many bytes they may have together.
        name_bytes: usize,
        /// Which of the two is passed.
        passed: Limit,
    },
    /// A column cannot be decoded to or encoded from.
    Unsupported {
        /// The column, and why.
        reason: String,
        /// What else can be written.
        remedies: Vec<Remedy>,
    },
    /// A value would change on its way, unless losses are allowed.
    Lossy {
        /// The value and its change.
        reason: String,
        /// What else can be written, besides allowing losses.
        remedies: Vec<Remedy>,
    },
    /// A feature has more than one kind in one data set.
    MixedKinds(String),
    /// Arrow refused to build an array or a batch.
    Arrow(ArrowError),
}

impl ErrorKind {
    /// A column that cannot be decoded to or encoded from, for which only its reason is known.
    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported { reason: reason.into(), remedies: Vec::new() }
    }
}

/// In which way bytes fail to be protobuf wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A value goes on past the end of its message.
    PastEnd,
    /// A varint of more bytes than its place allows: 10, or 5 in a tag.
    LongVarint,
    /// A field number of 0, or one past 2^29 - 1.
    FieldNumber,
    /// The wire types 6 and 7, which do not exist.
    WireType,
    /// The end of a group that nothing began, or a group without its end.
    Group,
    /// Unknown groups that stand deeper than [`Limits::nesting`](crate::Limits::nesting). That is no limit of what may be
    /// a message: text that is none looks like that at times.
    Depth,
    /// A packed list of floats whose length is no multiple of 4.
    PackedLength,
    /// A feature's name that is no UTF-8.
    Key,
    /// A feature's name that is longer than [`Limits::key_bytes`](crate::Limits::key_bytes).
    LongKey,
    /// More features than [`Limits::record_features`](crate::Limits::record_features).
    ManyFeatures,
    /// A feature of more values than [`Limits::values`](crate::Limits::values).
    ManyValues,
}

impl WireError {
    /// Whether the bytes are protobuf, and a limit is passed.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::LongKey | Self::ManyFeatures | Self::ManyValues)
    }

    /// The limit that is passed, if any.
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
        Self(Box::new(Inner { kind, position }))
    }

    /// The error that the record at `position` cannot be read.
    pub fn wire(error: WireError, position: Position) -> Self {
        Self::new(ErrorKind::Wire(error), position)
    }

    /// An error that has no place in a stream: of a schema, or of a caller's array.
    pub(crate) fn usage(kind: ErrorKind) -> Self {
        Self::new(kind, Position::default())
    }

    pub(crate) fn at(kind: ErrorKind, record: u64, offset: u64) -> Self {
        Self::new(kind, Position { record, offset, feature: None })
    }

    pub(crate) fn with_feature(mut self, name: &str) -> Self {
        self.0.position.feature = Some(name.into());
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The limit that was passed, where it is one of [`Limits`](crate::Limits) and can be set to more.
    pub fn limit(&self) -> Option<Limit> {
        match &self.0.kind {
            ErrorKind::Limit { name, limit, .. } => name.filter(|name| !is_maximum(*name, *limit)),
            ErrorKind::ManyNames { passed, .. } => Some(*passed),
            ErrorKind::Wire(e) => e.limit(),
            _ => None,
        }
    }

    /// What a caller can do about it, the best first; empty if the message is all that can be said.
    pub fn remedies(&self) -> Vec<Remedy> {
        let raise = self.limit().map(Remedy::RaiseLimit);
        match &self.0.kind {
            ErrorKind::LengthCrc { .. } | ErrorKind::DataCrc { .. } | ErrorKind::Truncated { .. } => {
                vec![Remedy::Repair]
            }
            ErrorKind::Wire(e) if !e.is_limit() => raise.into_iter().chain([Remedy::ReadAs(RecordType::Raw)]).collect(),
            ErrorKind::Foreign { .. } => vec![Remedy::StateRecordType],
            ErrorKind::NotScalar { .. } => vec![Remedy::WidenToList],
            ErrorKind::NotUtf8 => vec![Remedy::WidenToBinary],
            ErrorKind::Unsupported { remedies, .. } => remedies.clone(),
            ErrorKind::Lossy { remedies, .. } => remedies.iter().cloned().chain([Remedy::AllowLossy]).collect(),
            ErrorKind::MixedKinds(_) => vec![Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)],
            ErrorKind::Wire(_)
            | ErrorKind::Limit { .. }
            | ErrorKind::ManyNames { .. }
            | ErrorKind::Kind { .. }
            | ErrorKind::Declared { .. }
            | ErrorKind::BatchLimit { .. }
            | ErrorKind::Arrow(_) => raise.into_iter().collect(),
        }
    }

    /// Whether it is about one record, so that the others can be had without that.
    pub(crate) fn is_of_record(&self) -> bool {
        matches!(self.category(), Category::Corrupt | Category::Data)
    }

    /// Where it was found. All zero for errors of a schema, which have no place.
    pub fn position(&self) -> &Position {
        &self.0.position
    }

    /// What programs branch on.
    pub fn category(&self) -> Category {
        match &self.0.kind {
            ErrorKind::LengthCrc { .. } | ErrorKind::DataCrc { .. } => Category::Corrupt,
            ErrorKind::Truncated { .. } => Category::Truncated,
            ErrorKind::Wire(e) if e.is_limit() => Category::Limit,
            ErrorKind::Wire(_)
            | ErrorKind::Foreign { .. }
            | ErrorKind::Kind { .. }
            | ErrorKind::NotScalar { .. }
            | ErrorKind::NotUtf8
            | ErrorKind::Declared { .. }
            | ErrorKind::Lossy { .. }
            | ErrorKind::MixedKinds(_) => Category::Data,
            ErrorKind::Limit { .. }
            | ErrorKind::BatchLimit { .. }
            | ErrorKind::ManyNames { .. }
            | ErrorKind::Arrow(ArrowError::OffsetOverflowError(_)) => Category::Limit,
            ErrorKind::Unsupported { .. } | ErrorKind::Arrow(_) => Category::Usage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, position } = &*self.0;
        match kind {
            ErrorKind::ManyNames { .. }
            | ErrorKind::Unsupported { .. }
            | ErrorKind::Lossy { .. }
            | ErrorKind::MixedKinds(_)
            | ErrorKind::Arrow(_) => {}
            ErrorKind::BatchLimit { records, .. } => {
                let last = position.record + records.saturating_sub(1);
                write!(f, "records {} to {last} (from byte {}): ", position.record, position.offset)?;
            }
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
                write!(f, "the length's CRC is {found:#010x}, expected {expected:#010x}: the file is damaged here")
            }
            Self::DataCrc { expected, found } => {
                write!(f, "the data's CRC is {found:#010x}, expected {expected:#010x}: the record is damaged")
            }
            Self::Truncated { found, expected: Some(expected) } => {
                write!(f, "the file ends inside this record: found {found} of {expected} bytes")
            }
            Self::Truncated { found, expected: None } => {
                write!(f, "the file ends inside a record's header: found {found} of 12 bytes")
            }
            Self::Wire(e) if e.is_limit() => e.fmt(f),
            Self::Wire(e) => write!(f, "not a tf.Example or tf.SequenceExample: {e}"),
            Self::Foreign { field, record_type } => {
                write!(f, "found field {field}, which a record of type {record_type} has not")
            }
            Self::Kind { expected, found } => write!(
                f,
                "expected {expected}, found {found}, which is not the kind that the schema or the sample says"
            ),
            Self::NotScalar { found } => write!(f, "expected exactly one value, found {found}"),
            Self::NotUtf8 => f.write_str("expected UTF-8 text, found other bytes"),
            Self::Declared { expected, found } => write!(f, "declared as {expected}, found {found}"),
            Self::Limit { what, limit, found, name } => {
                write!(f, "{what}: found {found}, the limit")?;
                name.map_or(Ok(()), |name| write!(f, " {name}"))?;
                let maximum = if name.is_some_and(|name| is_maximum(name, *limit)) { ", its maximum" } else { "" };
                write!(f, " is {limit}{maximum}")
            }
            Self::BatchLimit { what, limit, found, .. } => {
                write!(f, "{what}: found {found}, the limit of Arrow is {limit}; decode fewer records at once")
            }
            Self::ManyNames { columns, name_bytes, .. } => write!(
                f,
                "the features have more names than the limits {} ({columns}) and {} ({name_bytes}) allow",
                Limit::Columns,
                Limit::NameBytes,
            ),
            Self::Unsupported { reason, .. } | Self::Lossy { reason, .. } => f.write_str(reason),
            Self::MixedKinds(message) => f.write_str(message),
            Self::Arrow(e) => e.fmt(f),
        }
    }
}

/// Whether this limit cannot be set to more.
fn is_maximum(name: Limit, limit: u64) -> bool {
    name == Limit::RecordBytes && limit >= MOST_RECORD_BYTES as u64
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::PastEnd => "a field goes on past the end of its message",
            Self::LongVarint => "a varint is longer than protobuf allows",
            Self::FieldNumber => "a field number is out of range",
            Self::WireType => "a wire type is 6 or 7, which do not exist",
            Self::Group => "a group begins or ends alone",
            Self::Depth => return write!(f, "groups are nested deeper than the limit {} allows", Limit::Nesting),
            Self::PackedLength => "a packed float list is no multiple of 4 bytes long",
            Self::Key => "a feature's name is not UTF-8",
            Self::LongKey => return write!(f, "a feature's name is longer than the limit {}", Limit::KeyBytes),
            Self::ManyFeatures => {
                return write!(f, "the record has more features than the limit {}", Limit::RecordFeatures);
            }
            Self::ManyValues => return write!(f, "a feature has more values than the limit {}", Limit::Values),
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
