//! What a column is: its kind, role and shape, and how an Arrow field says so.
//!
//! The types are those of docs/mapping.md. If you add a type, you must also add it to `column::build` (decode) and to
//! `encode`; the compiler finds both, since [`Values`] is matched exhaustively there.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::{Error, ErrorKind, Limits, Result};

/// Metadata key of a field: the kind of its feature, in TensorFlow's words (`bytes_list`, `float_list`, `int64_list`).
pub const KIND: &str = "tfarrow.kind";
/// Metadata key of a field: the part it plays (`feature`, `context`, `sequence`, `record`, `unset`,
/// `exact`, `index`, `offset`).
pub const ROLE: &str = "tfarrow.role";
/// Metadata key of a field: its feature's name, where the column has another.
pub const FEATURE: &str = "tfarrow.feature";
/// Metadata key of a schema: what its records are (`example`, `sequence-example`, `raw`).
pub const RECORD_TYPE: &str = "tfarrow.record_type";
/// The name of the one column of raw records.
pub const RECORD_COLUMN: &str = "record";
/// The name of the column of record numbers, where it is asked for.
pub const INDEX_COLUMN: &str = "_record";
/// The name of the column of byte offsets, where it is asked for.
pub const OFFSET_COLUMN: &str = "_offset";
/// The name of the column of whole records beside their features, where it is asked for.
pub const RAW_COLUMN: &str = "_raw";
/// The name of the column that lists the features which a record has without a kind.
pub const UNSET_COLUMN: &str = "_tfarrow_unset";

/// The name of the column that says of each record in what it differs from its usual form.
pub const EXACT_COLUMN: &str = "_tfarrow_exact";

/// The three kinds of `tf.train.Feature`, in the order of its oneof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `bytes_list`
    Bytes,
    /// `float_list`
    Float,
    /// `int64_list`
    Int64,
}

impl Kind {
    /// All kinds, by their field's number.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Float, Self::Int64];

    /// TensorFlow's name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes_list",
            Self::Float => "float_list",
            Self::Int64 => "int64_list",
        }
    }

    /// The kind of this name, if any.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// `tf.train.Example`
    Example,
    /// `tf.train.SequenceExample`
    SequenceExample,
    /// Any other payload.
    Raw,
}

impl RecordType {
    /// The name that options and metadata use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Example => "example",
            Self::SequenceExample => "sequence-example",
            Self::Raw => "raw",
        }
    }

    /// The record type of this name, if any.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Example, Self::SequenceExample, Self::Raw].into_iter().find(|t| t.name() == name)
    }
}

/// How features are laid out in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Bare values where every list has exactly one; text where every value is UTF-8. Lossless by what inference saw.
    #[default]
    Auto,
    /// Always a list of the kind's own type.
    List,
}

/// The part that a column plays in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A feature of an Example.
    Feature,
    /// A context feature of a SequenceExample.
    Context,
    /// A feature list of a SequenceExample.
    Sequence,
    /// The whole record as it is.
    Record,
    /// The names of the features that a record has without a kind.
    Unset,
    /// In what the record differs from the form that an encoder gives it: made by [`ExactColumn`](crate::ExactColumn), and
    /// no column that records are decoded to.
    Exact,
    /// The record's number in its shard, from 0. Not of the record itself: there only where a reader asks for it.
    Index,
    /// The offset in bytes of the record's frame in the decompressed shard. There only where a reader asks for it.
    Offset,
}

impl Role {
    const ALL: [Self; 8] = [
        Self::Feature,
        Self::Context,
        Self::Sequence,
        Self::Record,
        Self::Unset,
        Self::Exact,
        Self::Index,
        Self::Offset,
    ];

    /// The name that metadata uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Context => "context",
            Self::Sequence => "sequence",
            Self::Record => "record",
            Self::Unset => "unset",
            Self::Exact => "exact",
            Self::Index => "index",
            Self::Offset => "offset",
        }
    }

    /// Whether a column of this role holds what features have, and so has a kind.
    pub fn is_of_features(self) -> bool {
        matches!(self, Self::Feature | Self::Context | Self::Sequence)
    }
}

/// How many values a row of a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Exactly one.
    Scalar,
    /// A list.
    List,
    /// A list of steps, each a list.
    Steps,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Bytes, in the column's own buffer.
    Binary,
    /// Bytes; long ones are views into the chunk.
    BinaryView,
    /// UTF-8, in the column's own buffer.
    Utf8,
    /// UTF-8; long ones are views into the chunk.
    Utf8View,
    /// 32-bit floats.
    Float32,
    /// 64-bit integers.
    Int64,
}

impl Values {
    /// The kind of feature that these values come from.
    pub fn kind(self) -> Kind {
        match self {
            Self::Binary | Self::BinaryView | Self::Utf8 | Self::Utf8View => Kind::Bytes,
            Self::Float32 => Kind::Float,
            Self::Int64 => Kind::Int64,
        }
    }

    /// The Arrow type of one value.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Binary => DataType::Binary,
            Self::BinaryView => DataType::BinaryView,
            Self::Utf8 => DataType::Utf8,
            Self::Utf8View => DataType::Utf8View,
            Self::Float32 => DataType::Float32,
            Self::Int64 => DataType::Int64,
        }
    }

    /// The values of this Arrow type, where it is one that features are decoded to.
    pub fn from_data_type(data_type: &DataType) -> Option<Self> {
        let all = [Self::Binary, Self::BinaryView, Self::Utf8, Self::Utf8View, Self::Float32, Self::Int64];
        all.into_iter().find(|values| values.data_type() == *data_type)
    }
}

/// What one column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The feature's name, which may differ from the field's.
    pub feature: String,
    /// The part that the column plays.
    pub role: Role,
    /// How many values a row has.
    pub shape: Shape,
    /// The type of the values.
    pub values: Values,
}

impl Column {
    /// What `field` of a schema to decode with says.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where its type is none that features are decoded to.
    pub fn try_new(field: &Field, record_type: RecordType) -> Result<Self> {
        let unsupported = || {
            let message = format!(
                "column {:?}: features are not decoded to {}; take int64, float32, binary or utf8, a list of these, \
                 or, for a feature list, a list of lists",
                field.name(),
                field.data_type()
            );
            Error::usage(ErrorKind::Unsupported(message))
        };
        let (shape, value_type) = shape_of(field.data_type());
        let values = Values::from_data_type(value_type).ok_or_else(unsupported)?;
        let role = role_of(field).unwrap_or_else(|| default_role(field, shape, record_type));
        let shape_fits = match role {
            Role::Feature | Role::Context => shape != Shape::Steps,
            Role::Sequence => shape == Shape::Steps,
            Role::Record => shape == Shape::Scalar && matches!(values, Values::Binary | Values::BinaryView),
            Role::Unset => shape == Shape::List && values == Values::Utf8,
            Role::Exact => false,
            Role::Index | Role::Offset => shape == Shape::Scalar && values == Values::Int64,
        };
        if !shape_fits {
            return Err(unsupported());
        }
        Ok(Self { feature: feature_of(field).to_owned(), role, shape, values })
    }

    /// The Arrow type of the column.
    pub fn data_type(&self) -> DataType {
        let value = self.values.data_type();
        match self.shape {
            Shape::Scalar => value,
            Shape::List => list_of(value),
            Shape::Steps => list_of(list_of(value)),
        }
    }

    /// The Arrow field of the column, with what the way back needs in its metadata.
    pub fn field(&self, name: &str) -> Field {
        let mut metadata = HashMap::from([(ROLE.to_owned(), self.role.name().to_owned())]);
        if self.role.is_of_features() {
            metadata.insert(KIND.to_owned(), self.values.kind().name().to_owned());
        }
        if self.feature != name {
            metadata.insert(FEATURE.to_owned(), self.feature.clone());
        }
        let nullable = self.role.is_of_features() || matches!(self.role, Role::Unset | Role::Exact);
        Field::new(name, self.data_type(), nullable).with_metadata(metadata)
    }
}

fn list_of(value: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(value, true)))
}

/// A type's shape, and the type of its values.
fn shape_of(data_type: &DataType) -> (Shape, &DataType) {
    let DataType::List(item) = data_type else { return (Shape::Scalar, data_type) };
    match item.data_type() {
        DataType::List(item) => (Shape::Steps, item.data_type()),
        value => (Shape::List, value),
    }
}

/// The role that a field's metadata gives it.
pub fn role_of(field: &Field) -> Option<Role> {
    let name = field.metadata().get(ROLE)?;
    Role::ALL.into_iter().find(|role| role.name() == name)
}

/// The name of the feature that a field holds: its own, unless its metadata has another.
fn feature_of(field: &Field) -> &str {
    field.metadata().get(FEATURE).unwrap_or(field.name())
}

fn default_role(field: &Field, shape: Shape, record_type: RecordType) -> Role {
    match record_type {
        RecordType::Raw => Role::Record,
        _ if field.name() == UNSET_COLUMN => Role::Unset,
        _ if field.name() == EXACT_COLUMN => Role::Exact,
        RecordType::Example => Role::Feature,
        RecordType::SequenceExample if shape == Shape::Steps => Role::Sequence,
        RecordType::SequenceExample => Role::Context,
    }
}

/// What the records of `schema` are: as its metadata says, else SequenceExamples where a column is a list of lists.
pub fn record_type_of(schema: &Schema) -> RecordType {
    let said = schema.metadata().get(RECORD_TYPE).and_then(|name| RecordType::from_name(name));
    said.unwrap_or_else(|| {
        let steps = |field: &Arc<Field>| shape_of(field.data_type()).0 == Shape::Steps;
        if schema.fields().iter().any(steps) { RecordType::SequenceExample } else { RecordType::Example }
    })
}

/// Refuses a schema of more features than `limits` allow, or with more bytes in their names. The columns of one feature
/// count once, and our own do not; whoever says of many that they are our own is not believed.
///
/// # Errors
/// [`ErrorKind::ManyNames`].
pub fn check_columns(schema: &Schema, limits: &Limits) -> Result<()> {
    let of_features = |field: &&Arc<Field>| role_of(field).is_none_or(Role::is_of_features);
    let (features, own): (Vec<_>, Vec<_>) = schema.fields().iter().partition(of_features);
    // As inference counts them: features and feature lists apart.
    let is_list = |field: &&&Arc<Field>| role_of(field) == Some(Role::Sequence);
    let (lists, features): (Vec<_>, Vec<_>) = features.iter().partition(is_list);
    let names = |fields: Vec<&&Arc<Field>>| fields.into_iter().map(|field| feature_of(field).to_owned()).collect();
    let sides: [HashSet<String>; 2] = [names(lists), names(features)];
    let (columns, name_bytes) = (limits.features, limits.name_bytes);
    let passed = if sides.iter().any(|names| names.len() > columns) || own.len() > columns.max(Role::ALL.len()) {
        "columns"
    } else if sides.iter().any(|names| names.iter().map(String::len).sum::<usize>() > name_bytes) {
        "name-bytes"
    } else {
        return Ok(());
    };
    Err(Error::usage(ErrorKind::ManyNames { columns, name_bytes, passed }))
}

/// The schema of raw records: one column, `record`.
pub fn raw_schema(values: Values) -> SchemaRef {
    let column = Column { feature: RECORD_COLUMN.to_owned(), role: Role::Record, shape: Shape::Scalar, values };
    with_record_type(vec![column.field(RECORD_COLUMN)], RecordType::Raw)
}

/// A schema of these fields that says what its records are.
pub fn with_record_type(fields: Vec<Field>, record_type: RecordType) -> SchemaRef {
    let metadata = HashMap::from([(RECORD_TYPE.to_owned(), record_type.name().to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The column that says where each record stands, or holds it as it is, under its usual name: `role` is
/// [`Role::Index`], [`Role::Offset`] or [`Role::Record`].
///
/// ```
/// use tfarrow_codec::{Role, schema::place_field};
/// assert_eq!(place_field(Role::Index).name(), "_record");
/// ```
pub fn place_field(role: Role) -> Field {
    let (name, values) = match role {
        Role::Index => (INDEX_COLUMN, Values::Int64),
        Role::Offset => (OFFSET_COLUMN, Values::Int64),
        Role::Record | Role::Feature | Role::Context | Role::Sequence | Role::Unset | Role::Exact => {
            (RAW_COLUMN, Values::Binary)
        }
    };
    Column { feature: name.to_owned(), role, shape: Shape::Scalar, values }.field(name)
}

/// The column `_tfarrow_unset`.
pub(crate) fn unset_field() -> Field {
    let feature = UNSET_COLUMN.to_owned();
    Column { feature, role: Role::Unset, shape: Shape::List, values: Values::Utf8 }.field(UNSET_COLUMN)
}

/// The column `_tfarrow_exact`.
pub(crate) fn exact_field() -> Field {
    let feature = EXACT_COLUMN.to_owned();
    Column { feature, role: Role::Exact, shape: Shape::Scalar, values: Values::Binary }.field(EXACT_COLUMN)
}

/// `schema` without the columns that are no part of what records are decoded to.
pub fn without_exact(schema: &Schema) -> SchemaRef {
    let is_decoded = |field: &&Arc<Field>| role_of(field) != Some(Role::Exact);
    let fields: Vec<_> = schema.fields().iter().filter(is_decoded).cloned().collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// `schema` with view types for all bytes and text, as SQL engines like them, or the other way round.
pub fn with_views(schema: &Schema, views: bool) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|field| with_view(field, views)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn with_view(field: &Field, views: bool) -> Field {
    if role_of(field) == Some(Role::Unset) {
        field.clone()
    } else {
        field.clone().with_data_type(view_type(field.data_type(), views))
    }
}

fn view_type(data_type: &DataType, views: bool) -> DataType {
    match data_type {
        DataType::Binary | DataType::BinaryView if views => DataType::BinaryView,
        DataType::Utf8 | DataType::Utf8View if views => DataType::Utf8View,
        DataType::BinaryView => DataType::Binary,
        DataType::Utf8View => DataType::Utf8,
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(view_type(item.data_type(), views))))
        }
        other => other.clone(),
    }
}
