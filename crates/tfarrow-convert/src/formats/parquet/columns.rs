//! The columns of a Parquet file, as Arrow and as Parquet describe them.
//!
//! Columns of Parquet sources keep their Parquet types, with annotations such as UUID and GEOMETRY
//! that no Arrow type has. The types of other columns follow from their Arrow types.

use std::{path::Path, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use parquet::{
    arrow::ArrowSchemaConverter,
    errors::ParquetError,
    file::metadata::KeyValue,
    schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr},
};
use tfarrow_codec::{
    RecordType,
    schema::{RECORD_TYPE, record_type_of},
};

use crate::{Error, Result};

/// The name of the root of a Parquet schema.
const ROOT: &str = "arrow_schema";
/// The beginning of the keys of tfarrow's metadata.
const OWN_PREFIX: &str = "tfarrow.";

/// The columns of a Parquet file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetColumns {
    /// The Arrow types of the columns, and the metadata of the file.
    pub(super) arrow: SchemaRef,
    /// Their Parquet types.
    pub(super) parquet: SchemaDescPtr,
    /// The key/values of the footer that other programs read there.
    pub(super) key_values: Vec<KeyValue>,
    /// The indices of the columns whose values are cast to [`written_type`], in ascending order.
    pub(super) cast: Vec<usize>,
}

impl ParquetColumns {
    /// The columns of decoded records.
    ///
    /// # Errors
    /// A column that Parquet cannot hold.
    pub(crate) fn of_records(schema: &SchemaRef) -> Result<Self> {
        Self::of(schema, record_type_of(schema) == RecordType::Message)
    }

    /// The columns of rows of other files. `sources` are their Parquet types in the sources, in the
    /// order of the columns; `None` for a column that has none.
    ///
    /// # Errors
    /// As [`of_records`](Self::of_records).
    pub(crate) fn of_rows(schema: &SchemaRef, sources: &[Option<TypePtr>]) -> Result<Self> {
        let is_of_features = schema.metadata().contains_key(RECORD_TYPE)
            && record_type_of(schema) != RecordType::Message;
        let columns = Self::of(schema, !is_of_features)?;
        let derived = columns.parquet.root_schema().get_fields();
        let mut types = Vec::with_capacity(derived.len());
        for (index, derived) in derived.iter().enumerate() {
            let source = sources
                .get(index)
                .and_then(Option::as_ref)
                .filter(|_| !columns.cast.contains(&index));
            types.push(match source {
                Some(source) if is_stored_alike(source, derived).map_err(internal)? => {
                    Arc::clone(source)
                }
                _ => Arc::clone(derived),
            });
        }
        let parquet = Arc::new(descriptor(types).map_err(internal)?);
        Ok(Self {
            parquet,
            key_values: key_values(schema),
            ..columns
        })
    }

    /// The same columns, in a file with the metadata of `schema`, whose columns they are.
    /// Conversions to many files share the types.
    pub(crate) fn with_metadata(&self, schema: &SchemaRef) -> Self {
        let arrow = match self.arrow.fields() == schema.fields() {
            true => Arc::clone(schema),
            false => Arc::new(Schema::new_with_metadata(
                self.arrow.fields().clone(),
                schema.metadata().clone(),
            )),
        };
        Self {
            arrow,
            ..self.clone()
        }
    }

    /// The columns of a schema. Lists and maps have the names of Parquet's specification if
    /// `specified_names` is true. Lists of features have those of earlier versions, by which
    /// programs may know them.
    fn of(schema: &SchemaRef, specified_names: bool) -> Result<Self> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        let mut cast = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if let Some((path, data_type)) = unwritable(field) {
                return Err(Error::NoParquetType {
                    column: path,
                    data_type,
                });
            }
            let written = written_field(field);
            if written != *field {
                cast.push(index);
            }
            fields.push(if specified_names {
                with_specified_names(&written)
            } else {
                written
            });
        }
        let arrow = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let parquet = ArrowSchemaConverter::new()
            .with_coerce_types(specified_names)
            .convert(&arrow)
            .map_err(internal)?;
        Ok(Self {
            arrow,
            parquet: Arc::new(parquet),
            key_values: Vec::new(),
            cast,
        })
    }

    /// Casts the values of the columns that are written as another type.
    ///
    /// # Errors
    /// Values that the other type does not have.
    pub(super) fn cast(&self, path: &Path, batch: RecordBatch) -> Result<RecordBatch> {
        if self.cast.is_empty() {
            return Ok(batch);
        }
        let (schema, mut columns, rows) = batch.into_parts();
        let mut fields = schema.fields().to_vec();
        for &index in &self.cast {
            if let (Some(field), Some(column)) = (fields.get_mut(index), columns.get_mut(index)) {
                let written = written_field(field);
                *column = cast_exactly(path, field, column, written.data_type())?;
                *field = written;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        batch.map_err(|e| Error::arrow(path, e))
    }
}

/// The error of a library for columns that were checked.
fn internal(error: ParquetError) -> Error {
    Error::Usage(format!("the columns cannot be written to Parquet: {error}"))
}

/// The first type in a field that Parquet's writer has no type for, with its path.
fn unwritable(field: &Field) -> Option<(String, DataType)> {
    let within = match field.data_type() {
        DataType::Struct(fields) if !fields.is_empty() => {
            fields.iter().find_map(|child| unwritable(child))
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => unwritable(item),
        DataType::ListView(item) | DataType::LargeListView(item) => unwritable(item),
        DataType::RunEndEncoded(_, values) => unwritable(values),
        DataType::Dictionary(_, values) if !values.is_nested() => None,
        none @ (DataType::Union(..)
        | DataType::Struct(_)
        | DataType::Dictionary(..)
        | DataType::FixedSizeBinary(0)
        | DataType::Interval(IntervalUnit::MonthDayNano)) => {
            return Some((field.name().clone(), none.clone()));
        }
        _ => None,
    };
    let (path, data_type) = within?;
    Some((format!("{}.{path}", field.name()), data_type))
}

fn written_field(field: &FieldRef) -> FieldRef {
    let written = written_type(field.data_type());
    if written == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_data_type(written))
}

/// The type that values of a type are written as. Parquet has neither times in seconds nor dates in
/// milliseconds: written as numbers, other programs than Arrow's would not read them as times.
fn written_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::List(item) => DataType::List(written_field(item)),
        DataType::LargeList(item) => DataType::LargeList(written_field(item)),
        DataType::FixedSizeList(item, length) => {
            DataType::FixedSizeList(written_field(item), *length)
        }
        DataType::Map(entries, sorted) => DataType::Map(written_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(written_field).collect()),
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), Box::new(written_type(values)))
        }
        other => other.clone(),
    }
}

/// A field whose lists and maps have the names of Parquet's specification, so that the Arrow schema
/// in the footer is the one that readers make of the Parquet types.
fn with_specified_names(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(named(item, "element")),
        DataType::LargeList(item) => DataType::LargeList(named(item, "element")),
        DataType::FixedSizeList(item, length) => {
            DataType::FixedSizeList(named(item, "element"), *length)
        }
        DataType::Map(entries, sorted) => DataType::Map(named_entries(entries), *sorted),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(with_specified_names).collect())
        }
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// An item of a list with a name.
fn named(item: &FieldRef, name: &str) -> FieldRef {
    Arc::new(with_specified_names(item).as_ref().clone().with_name(name))
}

/// The entries of a map.
fn named_entries(entries: &FieldRef) -> FieldRef {
    let entries = named(entries, "key_value");
    let DataType::Struct(columns) = entries.data_type() else {
        return entries;
    };
    let columns = columns
        .iter()
        .zip(["key", "value"])
        .map(|(column, name)| named(column, name));
    Arc::new(
        entries
            .as_ref()
            .clone()
            .with_data_type(DataType::Struct(columns.collect())),
    )
}

/// Casts values of a field, which must be the same afterwards.
fn cast_exactly(path: &Path, field: &Field, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = cast_with_options(values, to, &options);
    let back = cast
        .as_ref()
        .ok()
        .and_then(|cast| cast_with_options(cast, field.data_type(), &options).ok());
    match cast {
        Ok(cast) if back.is_some_and(|back| back.as_ref() == values.as_ref()) => Ok(cast),
        _ => Err(Error::Data(format!(
            "{}: column {:?}: a value of the type {} is none of {to}, as which Parquet stores it",
            path.display(),
            field.name(),
            field.data_type()
        ))),
    }
}

/// Whether the writer of a column of the type `derived` writes one of the type `source`: all leaves
/// have the same levels and the same physical types. Timestamps of 96 bits, for example, are
/// written with 64.
fn is_stored_alike(source: &TypePtr, derived: &TypePtr) -> Result<bool, ParquetError> {
    let source = descriptor(vec![Arc::clone(source)])?;
    let derived = descriptor(vec![Arc::clone(derived)])?;
    if source.num_columns() != derived.num_columns() {
        return Ok(false);
    }
    for (source, derived) in source.columns().iter().zip(derived.columns()) {
        if source.physical_type() != derived.physical_type()
            || source.type_length() != derived.type_length()
            || source.max_def_level() != derived.max_def_level()
            || source.max_rep_level() != derived.max_rep_level()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn descriptor(columns: Vec<TypePtr>) -> Result<SchemaDescriptor, ParquetError> {
    Ok(SchemaDescriptor::new(Arc::new(
        Type::group_type_builder(ROOT)
            .with_fields(columns)
            .build()?,
    )))
}

/// The metadata of a schema as key/values, which programs without Arrow read, such as `geo`. That
/// of tfarrow is in the Arrow schema only.
fn key_values(schema: &Schema) -> Vec<KeyValue> {
    let mut key_values: Vec<_> = schema
        .metadata()
        .iter()
        .filter(|(key, _)| !key.starts_with(OWN_PREFIX))
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    key_values.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    key_values
}
