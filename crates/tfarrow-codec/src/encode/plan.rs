//! The plan of a schema: the conversion of each column to a feature. It is made once, and rejects
//! columns that no record can hold.
//!
//! ```text
//! field                                      ColumnPlan
//! "x": List<Int16>                           feature "x", List, Leaf::Int16 (converted to int64)
//! "x": Timestamp                             rejected, unless losses are allowed
//! "x": Struct                                rejected; the remedy has a column for each field
//! ```
//!
//! A new type must also be added to `normalize`; the compiler finds the place, since it matches
//! [`Leaf`] exhaustively.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};

use crate::{
    Error, ErrorKind, Kind, RecordType, Remedy, Result, Rewrite, Role, Shape, Values,
    schema::{FEATURE, KIND, RECORD_COLUMN, RECORD_TYPE, UNSET_COLUMN, is_exact, role_of},
};

/// The plan of one column.
#[derive(Clone, Debug)]
pub(super) struct ColumnPlan {
    /// The index of the column in the schema.
    pub(super) index: usize,
    /// The name of the column, which errors have.
    pub(super) name: String,
    /// The name of the feature.
    pub(super) feature: String,
    pub(super) role: Role,
    pub(super) shape: Shape,
    pub(super) leaf: Leaf,
    /// The kind of the metadata, for a column whose type has none.
    pub(super) kind: Option<Kind>,
    /// Whether it is one of several columns of a feature: the metadata has a kind and another name.
    pub(super) splits: bool,
}

/// The Arrow type of a column's values, which decides how they are converted.
#[derive(Clone, Debug)]
pub(super) enum Leaf {
    /// No values: the column has the type null.
    Null,
    /// Values that need no conversion.
    Same(Values),
    /// Bytes with 64-bit offsets, as views.
    LargeBinary,
    /// Text with 64-bit offsets, as views.
    LargeUtf8,
    /// Bytes of a fixed size, as views.
    FixedSizeBinary,
    /// Booleans, as 0 and 1.
    Boolean,
    /// 8-bit integers, as `int64`.
    Int8,
    /// 16-bit integers, as `int64`.
    Int16,
    /// 32-bit integers, as `int64`.
    Int32,
    /// 8-bit unsigned integers, as `int64`.
    UInt8,
    /// 16-bit unsigned integers, as `int64`.
    UInt16,
    /// 32-bit unsigned integers, as `int64`.
    UInt32,
    /// 64-bit unsigned integers, as `int64`; values from 2^63 on would change.
    UInt64,
    /// 16-bit floats, as `float32`.
    Float16,
    /// 64-bit floats, as `float32`; values that `float32` cannot hold would change.
    Float64,
    /// Dates, times, timestamps and durations, whose unit is lost.
    Time,
    /// Decimals, which are rounded to floats.
    Decimal32,
    /// 64-bit decimals, rounded to floats.
    Decimal64,
    /// 128-bit decimals, rounded to floats.
    Decimal128,
    /// 256-bit decimals, rounded to floats.
    Decimal256,
    /// Keys into values of another type.
    Dictionary(Box<Leaf>),
}

impl Leaf {
    /// Returns the type of the converted values; `None` for the type null.
    pub(super) fn values(&self) -> Option<Values> {
        match self {
            Self::Null => None,
            Self::Same(values) => Some(*values),
            Self::LargeBinary | Self::FixedSizeBinary => Some(Values::BinaryView),
            Self::LargeUtf8 => Some(Values::Utf8View),
            Self::Boolean | Self::Int8 | Self::Int16 | Self::Int32 => Some(Values::Int64),
            Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64 | Self::Time => {
                Some(Values::Int64)
            }
            Self::Float16 | Self::Float64 => Some(Values::Float32),
            Self::Decimal32 | Self::Decimal64 | Self::Decimal128 | Self::Decimal256 => {
                Some(Values::Float32)
            }
            Self::Dictionary(leaf) => leaf.values().map(|values| match values {
                Values::Binary | Values::BinaryView => Values::BinaryView,
                Values::Utf8 | Values::Utf8View => Values::Utf8View,
                Values::Float32 | Values::Int64 => values,
            }),
        }
    }
}

/// The plan of a schema.
#[derive(Debug, Default)]
pub(super) struct SchemaPlan {
    /// The columns that records can hold.
    pub(super) columns: Vec<ColumnPlan>,
    /// The errors of the other columns: [`ErrorKind::Unsupported`] for a column that no record can
    /// hold, or [`ErrorKind::Lossy`] for one whose values would change.
    pub(super) errors: Vec<Error>,
}

/// Plans all columns of a schema, for records that are no [messages](RecordType::Message). Of an
/// [ExampleListWithContext](RecordType::ExampleList), only the column with differences to canonical
/// records is planned: the others are those of Examples. `lossy` allows losses.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for raw records that are not one column.
pub(super) fn plan(schema: &Schema, record_type: RecordType, lossy: bool) -> Result<SchemaPlan> {
    let mut columns = Vec::new();
    let mut errors = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        if record_type == RecordType::ExampleList && !is_exact(field) {
            continue;
        }
        match column(index, field, record_type, lossy) {
            Ok(column) => columns.push(column),
            Err(kind) => errors.push(Error::usage(kind).with_feature(field.name())),
        }
    }
    let columns = with_unique_names(columns, &mut errors);
    if record_type == RecordType::Raw
        && let Err(error) = check_raw(&columns)
    {
        return Err(errors.into_iter().next().unwrap_or(error));
    }
    Ok(SchemaPlan { columns, errors })
}

/// Returns the record type of the metadata of the schema or of its columns, or else Example. A list
/// of lists does not make a SequenceExample: that must be requested.
pub(super) fn record_type_of(schema: &Schema) -> RecordType {
    let said = schema
        .metadata()
        .get(RECORD_TYPE)
        .and_then(|name| RecordType::from_name(name));
    match said {
        Some(record_type) => record_type,
        None if has_role(schema, &[Role::Record]) => RecordType::Raw,
        None if has_role(schema, &[Role::Examples]) => RecordType::ExampleList,
        None if has_role(schema, &[Role::Context, Role::Sequence]) => RecordType::SequenceExample,
        None => RecordType::Example,
    }
}

/// Returns whether the metadata gives a column one of the `wanted` roles.
fn has_role(schema: &Schema, wanted: &[Role]) -> bool {
    let mut roles = schema.fields().iter().filter_map(|field| role_of(field));
    roles.any(|role| wanted.contains(&role))
}

/// Plans one column.
fn column(
    index: usize,
    field: &Field,
    record_type: RecordType,
    lossy: bool,
) -> Result<ColumnPlan, ErrorKind> {
    let (shape, value_type) = shape_of(field)?;
    let leaf = leaf(field.name(), shape, value_type, lossy)?;
    let role = role(field, shape, &leaf, record_type)?;
    let metadata = field.metadata();
    Ok(ColumnPlan {
        index,
        name: field.name().clone(),
        feature: metadata.get(FEATURE).unwrap_or(field.name()).clone(),
        role,
        shape,
        leaf,
        kind: metadata.get(KIND).and_then(|name| Kind::from_name(name)),
        splits: metadata.contains_key(KIND) && metadata.contains_key(FEATURE),
    })
}

/// Returns the type of a list's items; `None` if the type is not a list.
pub(super) fn item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// Returns the shape of a column and the type of its values.
///
/// ```text
/// Utf8                        Scalar    Utf8
/// LargeList<Int8>             List      Int8
/// List<FixedSizeList<T, 3>>   Steps     T
/// List<List<List<T>>>         rejected: a record has two levels of lists at most
/// ```
fn shape_of(field: &Field) -> Result<(Shape, &DataType), ErrorKind> {
    let Some(list) = item(field.data_type()) else {
        return Ok((Shape::Scalar, field.data_type()));
    };
    let Some(step) = item(list) else {
        return Ok((Shape::List, list));
    };
    match item(step) {
        None => Ok((Shape::Steps, step)),
        Some(_) => Err(refused(
            "lists are three deep, a record has two at most".to_owned(),
            field.name(),
            Rewrite::Unnest,
        )),
    }
}

/// Returns the role of a column. Its shape decides, except for columns of tfarrow's own.
///
/// ```text
/// metadata role or name          record type         role
/// "_tfarrow_unset" or unset      (Sequence)Example   Unset, for a list of text
/// "_tfarrow_exact" or exact      (Sequence)Example   Exact, for bytes
/// list of lists                  SequenceExample     Sequence
/// list of lists                  Example             rejected
/// others                         SequenceExample     Context
/// others                         Example             Feature
/// one column of bytes            Raw                 Record
/// ```
fn role(
    field: &Field,
    shape: Shape,
    leaf: &Leaf,
    record_type: RecordType,
) -> Result<Role, ErrorKind> {
    let bytes = leaf
        .values()
        .is_some_and(|values| values.kind() == Kind::Bytes);
    let unset = match role_of(field) {
        Some(role) => role == Role::Unset,
        None => field.name() == UNSET_COLUMN,
    };
    let exact = is_exact(field);
    let wrong = |what: &str| {
        Err(ErrorKind::unsupported(format!(
            "{what}, found {}",
            field.data_type()
        )))
    };
    match record_type {
        RecordType::Raw if shape == Shape::Scalar && bytes => Ok(Role::Record),
        RecordType::Raw => wrong("a raw record is one binary value"),
        RecordType::Message => wrong("messages are written by their descriptors"),
        RecordType::Example | RecordType::SequenceExample
            if role_of(field) == Some(Role::Record) =>
        {
            let reason = "this column is the whole record".to_owned();
            Err(ErrorKind::Unsupported {
                reason,
                remedies: vec![Remedy::WriteAs(RecordType::Raw)],
            })
        }
        _ if exact => match (shape, bytes) {
            (Shape::Scalar, true) => Ok(Role::Exact),
            _ => wrong("this column says in which form a record was, as binary"),
        },
        RecordType::Example | RecordType::SequenceExample if unset => match (shape, leaf) {
            (Shape::List, leaf)
                if matches!(leaf.values(), Some(Values::Utf8 | Values::Utf8View)) =>
            {
                Ok(Role::Unset)
            }
            (Shape::List | Shape::Scalar, Leaf::Null) => Ok(Role::Unset),
            _ => wrong("this column lists the names of features without a kind, as list<utf8>"),
        },
        RecordType::SequenceExample if shape == Shape::Steps => Ok(Role::Sequence),
        RecordType::SequenceExample | RecordType::ExampleList => Ok(Role::Context),
        RecordType::Example if shape == Shape::Steps => Err(ErrorKind::Unsupported {
            reason: "a list of lists is a feature list, which a tf.Example does not have"
                .to_owned(),
            remedies: vec![
                Remedy::WriteAs(RecordType::SequenceExample),
                rewrite(field.name(), Rewrite::Flatten),
            ],
        }),
        RecordType::Example => Ok(Role::Feature),
    }
}

/// Returns the columns without those whose feature has an earlier one of the same kind, which are
/// errors: each feature has one column, or one for each of its kinds. Of two columns of one kind,
/// readers would see the last.
///
/// ```text
/// column              metadata                          feature, kind
/// "a"                 -                                 "a"
/// "a/int64_list"      feature = a, kind = int64_list    "a", int64_list
/// "a/bytes_list"      feature = a, kind = bytes_list    "a", bytes_list
/// ```
///
/// The last two may be in one schema; the first and either of them may not.
fn with_unique_names(columns: Vec<ColumnPlan>, errors: &mut Vec<Error>) -> Vec<ColumnPlan> {
    let mut kinds: HashMap<_, Vec<Option<Option<Kind>>>> = HashMap::new();
    let mut first = Vec::with_capacity(columns.len());
    for column in columns {
        if matches!(column.role, Role::Unset | Role::Exact) {
            first.push(column);
            continue;
        }
        let kind = column
            .splits
            .then_some(column.leaf.values().map(Values::kind).or(column.kind));
        let others = kinds
            .entry((column.role == Role::Sequence, column.feature.clone()))
            .or_default();
        if others
            .iter()
            .any(|other| kind.is_none() || other.is_none() || *other == kind)
        {
            let message = format!(
                "a second column for the feature {:?}; rename one of them",
                column.feature
            );
            errors.push(Error::usage(ErrorKind::unsupported(message)).with_feature(&column.name));
        } else {
            others.push(kind);
            first.push(column);
        }
    }
    first
}

/// Checks that there is one column of raw records.
fn check_raw(columns: &[ColumnPlan]) -> Result<()> {
    match columns {
        [_] => Ok(()),
        _ => {
            let reason = format!(
                "raw records are written from one column, found {}",
                columns.len()
            );
            Err(Error::usage(refused(reason, RECORD_COLUMN, Rewrite::Alone)))
        }
    }
}

/// Returns the conversion of a type. An error has the type, and values that can be written instead.
fn leaf(name: &str, shape: Shape, data_type: &DataType, lossy: bool) -> Result<Leaf, ErrorKind> {
    let refused = |with| {
        Err(refused(
            format!("a feature cannot hold {data_type}"),
            name,
            with,
        ))
    };
    let changed = |leaf, written: &str, to: DataType| {
        if lossy {
            return Ok(leaf);
        }
        let reason = format!("a feature holds no {data_type}, which would be written as {written}");
        Err(ErrorKind::Lossy {
            row: None,
            reason,
            remedies: vec![rewrite(name, cast(shape, to))],
        })
    };
    match data_type {
        DataType::Null => Ok(Leaf::Null),
        DataType::Binary => Ok(Leaf::Same(Values::Binary)),
        DataType::BinaryView => Ok(Leaf::Same(Values::BinaryView)),
        DataType::Utf8 => Ok(Leaf::Same(Values::Utf8)),
        DataType::Utf8View => Ok(Leaf::Same(Values::Utf8View)),
        DataType::Float32 => Ok(Leaf::Same(Values::Float32)),
        DataType::Int64 => Ok(Leaf::Same(Values::Int64)),
        DataType::LargeBinary => Ok(Leaf::LargeBinary),
        DataType::LargeUtf8 => Ok(Leaf::LargeUtf8),
        DataType::FixedSizeBinary(_) => Ok(Leaf::FixedSizeBinary),
        DataType::Boolean => Ok(Leaf::Boolean),
        DataType::Int8 => Ok(Leaf::Int8),
        DataType::Int16 => Ok(Leaf::Int16),
        DataType::Int32 => Ok(Leaf::Int32),
        DataType::UInt8 => Ok(Leaf::UInt8),
        DataType::UInt16 => Ok(Leaf::UInt16),
        DataType::UInt32 => Ok(Leaf::UInt32),
        DataType::UInt64 => Ok(Leaf::UInt64),
        DataType::Float16 => Ok(Leaf::Float16),
        DataType::Float64 => Ok(Leaf::Float64),
        DataType::Timestamp(unit, _)
        | DataType::Time32(unit)
        | DataType::Time64(unit)
        | DataType::Duration(unit) => changed(Leaf::Time, unit_name(*unit), DataType::Int64),
        DataType::Date32 => changed(Leaf::Time, "int64 days", DataType::Int64),
        DataType::Date64 => changed(Leaf::Time, "int64 milliseconds", DataType::Int64),
        DataType::Decimal32(_, _) => {
            changed(Leaf::Decimal32, "the nearest float32", DataType::Float32)
        }
        DataType::Decimal64(_, _) => {
            changed(Leaf::Decimal64, "the nearest float32", DataType::Float32)
        }
        DataType::Decimal128(_, _) => {
            changed(Leaf::Decimal128, "the nearest float32", DataType::Float32)
        }
        DataType::Decimal256(_, _) => {
            changed(Leaf::Decimal256, "the nearest float32", DataType::Float32)
        }
        // Expressions on lists, structs and maps do not apply to keys into such values.
        DataType::Dictionary(_, value_type) if value_type.is_nested() => {
            refused(cast(shape, value_type.as_ref().clone()))
        }
        DataType::Dictionary(_, value_type) => match leaf(name, shape, value_type, lossy)? {
            Leaf::Dictionary(_) => refused(cast(shape, DataType::Utf8)),
            leaf => Ok(Leaf::Dictionary(Box::new(leaf))),
        },
        DataType::Interval(
            IntervalUnit::YearMonth | IntervalUnit::DayTime | IntervalUnit::MonthDayNano,
        ) => refused(cast(shape, DataType::Utf8)),
        DataType::Struct(_) if shape == Shape::List => {
            let reason = format!("a feature cannot hold {data_type}");
            Err(ErrorKind::Unsupported {
                reason,
                remedies: vec![Remedy::WriteAs(RecordType::ExampleList)],
            })
        }
        // The fields and keys of values in lists are no columns of a query.
        DataType::Struct(_) | DataType::Map(_, _) | DataType::Union(_, _)
            if shape != Shape::Scalar =>
        {
            Err(ErrorKind::unsupported(format!(
                "a feature cannot hold {data_type}"
            )))
        }
        DataType::Struct(fields) if fields.is_empty() => Err(ErrorKind::unsupported(
            "a struct without fields has no values; leave the column out".to_owned(),
        )),
        DataType::Struct(fields) => refused(Rewrite::Fields(
            fields.iter().map(|field| field.name().clone()).collect(),
        )),
        DataType::Map(_, _) => refused(Rewrite::MapKeys),
        DataType::Union(_, _) => refused(Rewrite::UnionFields),
        DataType::RunEndEncoded(_, values) => refused(cast(shape, values.data_type().clone())),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(_, _) => refused(Rewrite::Unnest),
    }
}

/// Makes the rewriting of values as those of another type, in the shape of their column.
fn cast(shape: Shape, to: DataType) -> Rewrite {
    Rewrite::Cast(shape.data_type(to))
}

/// Makes the error of a column that is not supported, and whose values can be rewritten.
fn refused(reason: String, column: &str, with: Rewrite) -> ErrorKind {
    ErrorKind::Unsupported {
        reason,
        remedies: vec![rewrite(column, with)],
    }
}

/// Makes the remedy of writing other values in place of a column.
fn rewrite(column: &str, with: Rewrite) -> Remedy {
    Remedy::Rewrite {
        column: column.to_owned(),
        with,
    }
}

/// Returns the description of integers in a unit.
fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "int64 seconds",
        TimeUnit::Millisecond => "int64 milliseconds",
        TimeUnit::Microsecond => "int64 microseconds",
        TimeUnit::Nanosecond => "int64 nanoseconds",
    }
}
