//! Columns: their kind, role and shape, and how an Arrow field describes them.
//!
//! ```text
//! Arrow type                            shape     values      from
//! Int64                                 Scalar    Int64       lists of exactly one value
//! List<Utf8>                            List      Utf8        lists of any length
//! List<List<Float32>>                   Steps     Float32     a feature list: a list for each step
//! List<Struct<..>>                      -         -           the examples of an ExampleListWithContext
//!
//! field metadata    tfarrow.kind = int64_list, tfarrow.role = feature, tfarrow.feature = the name, if it differs
//! schema metadata   tfarrow.record_type = example
//! ```
//!
//! ```
//! use arrow_schema::{DataType, Field};
//! use tfarrow_codec::{Column, Kind, RecordType, Role, Shape};
//! # fn main() -> tfarrow_codec::Result<()> {
//! let field = Field::new("tokens", DataType::new_list(DataType::Int64, true), true);
//! let column = Column::try_new(&field, RecordType::Example)?;
//! assert_eq!((column.role, column.shape, column.values.kind()), (Role::Feature, Shape::List, Kind::Int64));
//! # Ok(()) }
//! ```
//!
//! docs/mapping.md lists all types. A new type must also be added to `build` in `decode/column/`
//! and to `encode/`; the compiler finds both places, since they match [`Values`] exhaustively.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::{Error, ErrorKind, Limit, Limits, RecordType, Result, named_values};

/// Metadata key of a field: the kind of its feature, by its name in `feature.proto` (`bytes_list`,
/// `float_list`, `int64_list`).
pub const KIND: &str = "tfarrow.kind";
/// Metadata key of a field: the role of the column (`feature`, `context`, `sequence`, `examples`,
/// `record`, `unset`, `exact`, `index`, `offset`).
pub const ROLE: &str = "tfarrow.role";
/// Metadata key of a field: the name of its feature, if the column has another.
pub const FEATURE: &str = "tfarrow.feature";
/// Metadata key of a schema: the type of its records (`example`, `sequence-example`,
/// `example-list`, `message`, `raw`).
pub const RECORD_TYPE: &str = "tfarrow.record_type";
/// Metadata key of a schema of [messages](RecordType::Message): the full name of their type.
pub const MESSAGE: &str = "tfarrow.message";
/// Metadata key of a schema of [messages](RecordType::Message): a
/// `google.protobuf.FileDescriptorSet` with the file that defines their type, and the files that it
/// imports, in base64.
pub const DESCRIPTORS: &str = "tfarrow.descriptors";
/// Name of the only column of raw records.
pub const RECORD_COLUMN: &str = "record";
/// Name of the column of the examples of an [ExampleListWithContext](RecordType::ExampleList),
/// unless a context feature has it.
pub const EXAMPLES_COLUMN: &str = "examples";
/// Name of the optional column of record numbers.
pub const INDEX_COLUMN: &str = "_record";
/// Name of the optional column of byte offsets.
pub const OFFSET_COLUMN: &str = "_offset";
/// Name of the optional column of complete records, beside their features.
pub const RAW_COLUMN: &str = "_raw";
/// Name of the column that lists the features of a record without a kind.
pub const UNSET_COLUMN: &str = "_tfarrow_unset";

/// Name of the column with the difference between a record's bytes and its canonical bytes.
pub const EXACT_COLUMN: &str = "_tfarrow_exact";

/// The kinds of `tf.train.Feature`, in the order of its `oneof`. Also an index, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `bytes_list`
    Bytes,
    /// `float_list`
    Float,
    /// `int64_list`
    Int64,
}

named_values!(Kind { Bytes = "bytes_list", Float = "float_list", Int64 = "int64_list" });

/// The representation of features as columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A value without a list if every list has exactly one; text if every value is UTF-8. Lossless
    /// for the records that inference read.
    #[default]
    Auto,
    /// A list of the kind's own type in any case: binary for bytes.
    List,
}

named_values!(Layout {
    Auto = "auto": "Plain values where every list has exactly one, text where all bytes are UTF-8",
    List = "list": "Always a list of int64, float32 or binary",
});

/// The role of a column: the part of a record that it contains.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Role {
    /// A feature of an Example.
    Feature,
    /// A context feature of a SequenceExample.
    Context,
    /// A feature list of a SequenceExample.
    Sequence,
    /// The examples of an ExampleListWithContext: a list of structs, each field of which has the
    /// role [`Feature`](Self::Feature). Of a [`FeatureSummary`](crate::FeatureSummary), a feature
    /// of these examples.
    Examples,
    /// The complete record, as bytes.
    Record,
    /// The names of the features that the record has without a kind.
    Unset,
    /// The difference between the record and its canonical form, made by
    /// [`ExactColumn`](crate::ExactColumn). Records are not decoded to this column.
    Exact,
    /// The number of the record in its shard, from 0. Present only if a reader requests it.
    Index,
    /// The offset in bytes of the record's frame in the decompressed shard. Present only if a
    /// reader requests it.
    Offset,
}

named_values!(Role {
    Feature = "feature",
    Context = "context",
    Sequence = "sequence",
    Examples = "examples",
    Record = "record",
    Unset = "unset",
    Exact = "exact",
    Index = "index",
    Offset = "offset",
});

impl Role {
    /// Returns whether a column of this role has values of features.
    pub fn is_of_features(self) -> bool {
        matches!(
            self,
            Self::Feature | Self::Context | Self::Sequence | Self::Examples
        )
    }
}

/// The nesting of the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Exactly one value.
    Scalar,
    /// A list of values.
    List,
    /// A list of steps, each a list of values.
    Steps,
}

impl Shape {
    /// Returns the Arrow type of a column of this shape, given the type of its values.
    pub(crate) fn data_type(self, value: DataType) -> DataType {
        match self {
            Self::Scalar => value,
            Self::List => list_of(value),
            Self::Steps => list_of(list_of(value)),
        }
    }
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Bytes, copied to a buffer of the column.
    Binary,
    /// Bytes; long values are views into the chunk.
    BinaryView,
    /// UTF-8 text, copied to a buffer of the column.
    Utf8,
    /// UTF-8 text; long values are views into the chunk.
    Utf8View,
    /// 32-bit floats.
    Float32,
    /// 64-bit integers.
    Int64,
}

impl Values {
    /// Returns the kind of the features that have these values.
    pub fn kind(self) -> Kind {
        match self {
            Self::Binary | Self::BinaryView | Self::Utf8 | Self::Utf8View => Kind::Bytes,
            Self::Float32 => Kind::Float,
            Self::Int64 => Kind::Int64,
        }
    }

    /// Returns the Arrow type of one value.
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

    /// Returns the values of an Arrow type; `None` for a type that features are not decoded to.
    pub fn from_data_type(data_type: &DataType) -> Option<Self> {
        let all = [
            Self::Binary,
            Self::BinaryView,
            Self::Utf8,
            Self::Utf8View,
            Self::Float32,
            Self::Int64,
        ];
        all.into_iter()
            .find(|values| values.data_type() == *data_type)
    }
}

/// A column that records are decoded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the feature, which may differ from the name of the field.
    pub feature: String,
    /// The role of the column.
    pub role: Role,
    /// The nesting of the values of a row.
    pub shape: Shape,
    /// The type of the values.
    pub values: Values,
}

impl Column {
    /// Reads a column from a field of a schema to decode with. Without metadata, the role follows
    /// from the shape and the record type.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a type that features are not decoded to, or that does not fit
    /// the role.
    pub fn try_new(field: &Field, record_type: RecordType) -> Result<Self> {
        let unsupported = || {
            let message = format!(
                "column {:?}: features are not decoded to {}; take int64, float32, binary or utf8, a list of these, \
                 or, for a feature list, a list of lists",
                field.name(),
                field.data_type()
            );
            Error::usage(ErrorKind::unsupported(message))
        };
        let (shape, value_type) = shape_of(field.data_type());
        let values = Values::from_data_type(value_type).ok_or_else(unsupported)?;
        let role = role_of(field).unwrap_or_else(|| default_role(field, shape, record_type));
        let shape_fits = match role {
            Role::Feature | Role::Context => shape != Shape::Steps,
            Role::Sequence => shape == Shape::Steps,
            Role::Record => {
                shape == Shape::Scalar && matches!(values, Values::Binary | Values::BinaryView)
            }
            Role::Unset => shape == Shape::List && values == Values::Utf8,
            // A list of structs is decoded by `ExampleListDecoder`.
            Role::Exact | Role::Examples => false,
            Role::Index | Role::Offset => shape == Shape::Scalar && values == Values::Int64,
        };
        if !shape_fits {
            return Err(unsupported());
        }
        Ok(Self {
            feature: feature_of(field).to_owned(),
            role,
            shape,
            values,
        })
    }

    /// Returns the Arrow type of the column.
    pub fn data_type(&self) -> DataType {
        self.shape.data_type(self.values.data_type())
    }

    /// Returns the Arrow field of the column with the name `name`, and with the metadata that the
    /// encoder needs.
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

/// Returns the number of arrays that fields have together: one for each field, and those of the
/// fields of structs.
///
/// ```
/// use arrow_schema::{DataType, Field, Fields};
/// use tfarrow_codec::schema::array_count;
/// let point = DataType::Struct(Fields::from(vec![Field::new("x", DataType::Int64, true)]));
/// assert_eq!(array_count(&Fields::from(vec![Field::new("points", DataType::new_list(point, true), true)])), 2);
/// ```
pub fn array_count(fields: &Fields) -> usize {
    fields
        .iter()
        .map(|field| 1 + nested_count(field.data_type()))
        .sum()
}

fn nested_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => array_count(fields),
        DataType::List(item) | DataType::Map(item, _) => nested_count(item.data_type()),
        _ => 0,
    }
}

/// Returns the type of a list with nullable items.
fn list_of(value: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(value, true)))
}

/// Returns the shape of a type, and the type of its values.
fn shape_of(data_type: &DataType) -> (Shape, &DataType) {
    let DataType::List(item) = data_type else {
        return (Shape::Scalar, data_type);
    };
    match item.data_type() {
        DataType::List(item) => (Shape::Steps, item.data_type()),
        value => (Shape::List, value),
    }
}

/// Returns the role that the metadata of a field gives it.
pub fn role_of(field: &Field) -> Option<Role> {
    Role::from_name(field.metadata().get(ROLE)?)
}

/// Returns the name of the feature of a field: that of its metadata, or else its own.
pub fn feature_of(field: &Field) -> &str {
    field.metadata().get(FEATURE).unwrap_or(field.name())
}

/// Returns the role of a field without metadata.
///
/// ```text
/// record type        "_tfarrow_unset"   "_tfarrow_exact"   list of lists   others
/// Raw                Record             Record             Record          Record
/// Example            Unset              Exact              Feature         Feature
/// SequenceExample    Unset              Exact              Sequence        Context
/// ExampleList        Unset              Exact              Context         Context
/// ```
fn default_role(field: &Field, shape: Shape, record_type: RecordType) -> Role {
    match record_type {
        RecordType::Raw => Role::Record,
        // The fields of messages have no role, and are not decoded by `Column`.
        RecordType::Message => Role::Feature,
        _ if field.name() == UNSET_COLUMN => Role::Unset,
        _ if field.name() == EXACT_COLUMN => Role::Exact,
        RecordType::Example => Role::Feature,
        RecordType::SequenceExample if shape == Shape::Steps => Role::Sequence,
        RecordType::SequenceExample | RecordType::ExampleList => Role::Context,
    }
}

/// Returns the type of the records of `schema`: that of its metadata, or else SequenceExample if a
/// column is a list of lists, or else Example.
pub fn record_type_of(schema: &Schema) -> RecordType {
    let declared = schema
        .metadata()
        .get(RECORD_TYPE)
        .and_then(|name| RecordType::from_name(name));
    if let Some(record_type) = declared {
        return record_type;
    }
    for field in schema.fields() {
        if shape_of(field.data_type()).0 == Shape::Steps {
            return RecordType::SequenceExample;
        }
    }
    RecordType::Example
}

/// Checks that a schema has no more features, and no more bytes in their names, than `limits`
/// allow. Several columns of one feature count once. Virtual columns do not count, as long as there
/// are not more of them than the limit, since the metadata alone gives a column its role.
///
/// # Errors
/// [`ErrorKind::ManyNames`] with the limit that is exceeded.
pub fn check_columns(schema: &Schema, limits: &Limits) -> Result<()> {
    // Features and feature lists are counted separately, as inference counts them.
    let mut lists: HashSet<&str> = HashSet::new();
    let mut features: HashSet<&str> = HashSet::new();
    let mut own = 0;
    for field in schema.fields() {
        let role = role_of(field);
        if role == Some(Role::Sequence) {
            lists.insert(feature_of(field));
        } else if role.is_none_or(Role::is_of_features) {
            features.insert(feature_of(field));
        } else {
            own += 1;
        }
    }
    let sides = [lists, features];
    let columns = limits.features;
    let name_bytes = limits.name_bytes;
    let passed =
        if sides.iter().any(|names| names.len() > columns) || own > columns.max(Role::ALL.len()) {
            Limit::Columns
        } else if sides
            .iter()
            .any(|names| names.iter().map(|name| name.len()).sum::<usize>() > name_bytes)
        {
            Limit::NameBytes
        } else {
            return Ok(());
        };
    Err(Error::usage(ErrorKind::ManyNames {
        columns,
        name_bytes,
        passed,
    }))
}

/// Returns the schema of raw records: one column, `record`, whose values are binary or binary
/// views.
///
/// ```
/// use arrow_schema::DataType;
/// use tfarrow_codec::{Values, schema::raw_schema};
/// let schema = raw_schema(Values::BinaryView);
/// assert_eq!((schema.field(0).name().as_str(), schema.field(0).data_type()), ("record", &DataType::BinaryView));
/// ```
pub fn raw_schema(values: Values) -> SchemaRef {
    let column = Column {
        feature: RECORD_COLUMN.to_owned(),
        role: Role::Record,
        shape: Shape::Scalar,
        values,
    };
    with_record_type(vec![column.field(RECORD_COLUMN)], RecordType::Raw)
}

/// Returns a schema of these fields, with the record type in its metadata.
pub fn with_record_type(fields: Vec<Field>, record_type: RecordType) -> SchemaRef {
    let metadata = HashMap::from([(RECORD_TYPE.to_owned(), record_type.name().to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// Returns the field of the column with the number, the offset or the bytes of each record: `role`
/// is [`Role::Index`], [`Role::Offset`] or [`Role::Record`].
///
/// ```
/// use tfarrow_codec::{Role, schema::place_field};
/// assert_eq!(place_field(Role::Index).name(), "_record");
/// ```
pub fn place_field(role: Role) -> Field {
    let (name, values) = match role {
        Role::Index => (INDEX_COLUMN, Values::Int64),
        Role::Offset => (OFFSET_COLUMN, Values::Int64),
        Role::Record
        | Role::Feature
        | Role::Context
        | Role::Sequence
        | Role::Examples
        | Role::Unset
        | Role::Exact => (RAW_COLUMN, Values::Binary),
    };
    Column {
        feature: name.to_owned(),
        role,
        shape: Shape::Scalar,
        values,
    }
    .field(name)
}

/// Returns the field of the examples of an [ExampleListWithContext](RecordType::ExampleList), given
/// the fields of an example. `context` has the fields of the context, one of which may have the
/// name `examples`.
///
/// ```text
/// context                     name
/// query                       examples
/// query, examples             examples/examples
/// ```
pub fn examples_field(fields: Fields, context: &[Field]) -> Field {
    let mut name = EXAMPLES_COLUMN.to_owned();
    while context.iter().any(|field| *field.name() == name) {
        name.insert_str(0, "examples/");
    }
    let metadata = HashMap::from([(ROLE.to_owned(), Role::Examples.name().to_owned())]);
    Field::new(name, list_of(DataType::Struct(fields)), true).with_metadata(metadata)
}

/// Returns the field of a list of examples with other fields of the examples.
pub fn with_example_fields(field: &Field, fields: Fields) -> Field {
    field
        .clone()
        .with_data_type(list_of(DataType::Struct(fields)))
}

/// Returns the fields of an example, if `field` is the column of the examples of an
/// [ExampleListWithContext](RecordType::ExampleList): by its metadata or, without metadata, by its
/// type.
pub fn fields_of_examples(field: &Field) -> Option<&Fields> {
    let DataType::List(item) = field.data_type() else {
        return None;
    };
    let DataType::Struct(fields) = item.data_type() else {
        return None;
    };
    role_of(field)
        .is_none_or(|role| role == Role::Examples)
        .then_some(fields)
}

/// Checks that the fields of the examples of a record are features, or the names of those without a
/// kind, by their roles.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a field of another role, which is one of records as a whole.
pub(crate) fn check_example_fields(list: &Field, fields: &Fields) -> Result<()> {
    for field in fields {
        if let Some(role) =
            role_of(field).filter(|role| !matches!(role, Role::Feature | Role::Unset))
        {
            let place = format!("column {:?}, field {:?}", list.name(), field.name());
            let reason =
                format!("{place}: expected a feature of the examples, found the role {role}");
            return Err(Error::usage(ErrorKind::unsupported(reason)));
        }
    }
    Ok(())
}

/// Returns the field of the column `_tfarrow_unset`.
pub(crate) fn unset_field() -> Field {
    let feature = UNSET_COLUMN.to_owned();
    Column {
        feature,
        role: Role::Unset,
        shape: Shape::List,
        values: Values::Utf8,
    }
    .field(UNSET_COLUMN)
}

/// Returns whether a column has the differences between records and their canonical form: by its
/// metadata or, without metadata, by its name.
pub(crate) fn is_exact(field: &Field) -> bool {
    role_of(field).map_or_else(|| field.name() == EXACT_COLUMN, |role| role == Role::Exact)
}

/// Returns the field of the column `_tfarrow_exact`.
pub(crate) fn exact_field() -> Field {
    let feature = EXACT_COLUMN.to_owned();
    Column {
        feature,
        role: Role::Exact,
        shape: Shape::Scalar,
        values: Values::Binary,
    }
    .field(EXACT_COLUMN)
}

/// Returns `schema` with the column `_tfarrow_exact` as its last field.
pub fn with_exact(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .chain([exact_field()]);
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()).into()
}

/// Returns `schema` without the columns that records are not decoded to (the role [`Role::Exact`]).
pub fn without_exact(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| role_of(field) != Some(Role::Exact))
        .cloned()
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the columns of `schema` without the metadata of the schema and without their roles: the
/// schema of Examples with these columns.
pub fn without_record_type(schema: &Schema) -> SchemaRef {
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let mut metadata = field.metadata().clone();
        metadata.remove(ROLE);
        fields.push(field.as_ref().clone().with_metadata(metadata));
    }
    Arc::new(Schema::new(fields))
}

/// Returns `schema` with view types for bytes and text if `views` is true, and without view types
/// otherwise.
///
/// ```text
/// views = true     Utf8 ─▶ Utf8View,     List<Binary> ─▶ List<BinaryView>
/// views = false    Utf8View ─▶ Utf8,     List<BinaryView> ─▶ List<Binary>
/// ```
///
/// With view types, values of 1 KiB or more are not copied: they refer to the memory of the
/// records, which stays allocated as long as the batch.
pub fn with_views(schema: &Schema, views: bool) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| with_view(field, views))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns a field with or without view types. The column `_tfarrow_unset` has none.
fn with_view(field: &Field, views: bool) -> Field {
    if role_of(field) == Some(Role::Unset) {
        field.clone()
    } else {
        field
            .clone()
            .with_data_type(view_type(field.data_type(), views))
    }
}

/// Returns a type with or without view types, also in lists, structs and the values of maps. Keys
/// of maps have none, because Arrow's and DataFusion's functions look up keys of plain types.
fn view_type(data_type: &DataType, views: bool) -> DataType {
    match data_type {
        DataType::Binary | DataType::BinaryView if views => DataType::BinaryView,
        DataType::Utf8 | DataType::Utf8View if views => DataType::Utf8View,
        DataType::BinaryView => DataType::Binary,
        DataType::Utf8View => DataType::Utf8,
        DataType::List(item) => DataType::List(Arc::new(
            item.as_ref()
                .clone()
                .with_data_type(view_type(item.data_type(), views)),
        )),
        DataType::Map(entries, sorted) => {
            let parts: Fields = match entries.data_type() {
                DataType::Struct(parts) => parts
                    .iter()
                    .zip([false, views])
                    .map(|(part, views)| with_view(part, views))
                    .collect(),
                _ => return data_type.clone(),
            };
            let entries = entries
                .as_ref()
                .clone()
                .with_data_type(DataType::Struct(parts));
            DataType::Map(Arc::new(entries), *sorted)
        }
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| with_view(field, views)).collect())
        }
        other => other.clone(),
    }
}
