//! Columns of a table that are decoded from records, and the casts of declared columns.
//!
//! With an inferred schema, a query reads the decoded columns. With declared columns, which
//! correspond to a parse spec of `tf.io`, each column is decoded to the type of its kind, and cast
//! to the declared type. A value that cannot be cast exactly is an error with its position, never
//! null. A missing feature gives the default of the column, else null.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, Scalar, UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::{
    arrow::{
        compute::{CastOptions, cast_with_options, is_not_null, kernels::zip::zip, take},
        util::display::array_value_to_string,
    },
    common::{ScalarValue, exec_err, plan_err},
    error::Result,
};
use tfarrow_codec::{
    RecordType, Role,
    schema::{self, FEATURE, fields_of_examples, role_of, with_example_fields},
};

use crate::options::MetadataColumns;

/// Maximum characters of a value in an error message.
const MAX_SHOWN: usize = 60;

/// The columns of the files of a table, without partition columns.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The columns that a query reads.
    schema: SchemaRef,
    /// The columns that records are decoded to, in the same order.
    decoded: SchemaRef,
    /// The cast of each column; `None` for a column that a query reads without a cast.
    casts: Vec<Option<ColumnCast>>,
}

/// The name of the feature of a column.
pub(crate) fn feature_of(field: &Field) -> &str {
    field.metadata().get(FEATURE).unwrap_or(field.name())
}

/// A value that cannot be cast to the type of its column.
#[derive(Debug)]
pub(crate) struct CastError {
    /// The row of the batch.
    pub(crate) row: usize,
    pub(crate) column: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Columns {
    /// Columns that a query reads without a cast.
    pub(crate) fn decoded(schema: SchemaRef) -> Self {
        let casts = vec![None; schema.fields().len()];
        Self {
            decoded: Arc::clone(&schema),
            schema,
            casts,
        }
    }

    /// Columns that a query reads without a cast, and without the type of their records, because
    /// the table has no columns that records are made of.
    pub(crate) fn without_record_type(schema: SchemaRef) -> Self {
        let bare = Arc::new(Schema::new(schema.fields().clone()));
        Self {
            schema: bare,
            ..Self::decoded(schema)
        }
    }

    /// Declared columns, with the default values of some of them. With `views`, text and bytes are
    /// view arrays.
    ///
    /// # Errors
    /// A type that features cannot be cast to, or a default that cannot be cast to the type of its
    /// column.
    pub(crate) fn declared(
        declared: &Schema,
        defaults: &HashMap<String, ScalarValue>,
        record_type: Option<RecordType>,
        views: bool,
    ) -> Result<Self> {
        let mut fields = Vec::new();
        let mut decoded = Vec::new();
        let mut casts = Vec::new();
        for field in declared.fields() {
            let Some(decoded_type) = decoded_type(field.data_type(), views) else {
                return not_decoded(field);
            };
            let data_type = with_views(field.data_type(), views);
            let default = defaults
                .get(field.name())
                .filter(|default| !default.is_null());
            let default = default
                .map(|default| default_of(field, default, &data_type))
                .transpose()?;
            let required = !field.is_nullable();
            let cast = ColumnCast {
                to: data_type.clone(),
                default,
                required,
            };
            casts.push(
                (data_type != decoded_type || required || cast.default.is_some()).then_some(cast),
            );
            decoded.push(
                Field::new(field.name(), decoded_type, true)
                    .with_metadata(field.metadata().clone()),
            );
            fields.push(field.as_ref().clone().with_data_type(data_type));
        }
        let record_type =
            record_type.unwrap_or_else(|| schema::record_type_of(&Schema::new(decoded.clone())));
        let [schema, decoded] =
            [fields, decoded].map(|fields| schema::with_record_type(fields, record_type));
        Ok(Self {
            schema,
            decoded,
            casts,
        })
    }

    /// Appends the metadata columns that the decoder makes: record number, offset, raw record.
    ///
    /// # Errors
    /// A feature has the name of one of them.
    pub(crate) fn with_metadata(mut self, wanted: MetadataColumns, views: bool) -> Result<Self> {
        let fields: Vec<_> = wanted.roles().map(schema::place_field).collect();
        if let Some(taken) = fields
            .iter()
            .find(|field| self.schema.column_with_name(field.name()).is_some())
        {
            return plan_err!(
                "the data already has a feature {:?}; leave that name out of tfarrow.metadata_columns",
                taken.name()
            );
        }
        let places = schema::with_views(&Schema::new(fields), views);
        self.schema = with_fields(&self.schema, &places);
        self.decoded = with_fields(&self.decoded, &places);
        self.casts.resize(self.schema.fields().len(), None);
        Ok(self)
    }

    /// Makes the columns of another process: `cast` are the numbers of those that are cast,
    /// `defaults` arrays of one value.
    ///
    /// # Errors
    /// The parts do not belong together.
    pub fn of_parts(
        schema: SchemaRef,
        decoded: SchemaRef,
        cast: impl Iterator<Item = usize>,
        mut defaults: HashMap<usize, ArrayRef>,
    ) -> Result<Self> {
        let mut casts = vec![None; schema.fields().len()];
        for column in cast {
            let (Some(slot), Some(field)) = (casts.get_mut(column), schema.fields().get(column))
            else {
                return exec_err!("the plan casts a column that it does not have");
            };
            let to = field.data_type().clone();
            let required = !field.is_nullable();
            let default = defaults.remove(&column);
            if default
                .as_ref()
                .is_some_and(|default| *default.data_type() != to)
            {
                return exec_err!("the plan has a default of another type than its column");
            }
            *slot = Some(ColumnCast {
                to,
                default,
                required,
            });
        }
        let mut are_read = schema.fields().len() == decoded.fields().len() && defaults.is_empty();
        for ((field, decoded), cast) in schema.fields().iter().zip(decoded.fields()).zip(&casts) {
            are_read &= field.name() == decoded.name()
                && (cast.is_some() || field.data_type() == decoded.data_type());
        }
        match are_read {
            true => Ok(Self {
                schema,
                decoded,
                casts,
            }),
            false => exec_err!("the plan decodes other columns than it reads"),
        }
    }

    /// Whether the values of a column are cast.
    pub(crate) fn is_cast(&self, column: usize) -> bool {
        self.casts.get(column).is_some_and(Option::is_some)
    }

    /// The defaults, each with the number of its column.
    pub fn defaults(&self) -> impl Iterator<Item = (usize, &ArrayRef)> {
        self.casts
            .iter()
            .enumerate()
            .filter_map(|(column, cast)| Some((column, cast.as_ref()?.default.as_ref()?)))
    }

    /// The type of the records.
    pub(crate) fn record_type(&self) -> RecordType {
        schema::record_type_of(&self.decoded)
    }

    /// The columns that a query reads.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns that a decoder produces.
    pub fn decoded_schema(&self) -> &SchemaRef {
        &self.decoded
    }

    /// Returns whether a query reads a column without a cast.
    pub fn is_as_decoded(&self, column: usize) -> bool {
        matches!(self.casts.get(column), None | Some(None))
    }

    /// Casts a decoded batch of the columns `columns` to the types that a query reads. If values
    /// cannot be cast, returns the errors of all rows of the first such column.
    pub(crate) fn cast(&self, columns: &[usize], batch: RecordBatch) -> Result<CastBatch> {
        if columns.iter().all(|column| self.is_as_decoded(*column)) {
            return Ok(CastBatch::Cast(batch));
        }
        let mut arrays = Vec::with_capacity(columns.len());
        for (column, array) in columns.iter().zip(batch.columns()) {
            let Some(Some(cast)) = self.casts.get(*column) else {
                arrays.push(Arc::clone(array));
                continue;
            };
            match cast.array(array)? {
                Ok(array) => arrays.push(array),
                Err(errors) => {
                    let name = self.schema.field(*column).name();
                    let mut failed = Vec::with_capacity(errors.len());
                    for (row, expected, found) in errors {
                        failed.push(CastError {
                            row,
                            column: name.clone(),
                            expected,
                            found,
                        });
                    }
                    return Ok(CastBatch::Failed(failed, batch));
                }
            }
        }
        let schema = Arc::new(self.schema.project(columns)?);
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(CastBatch::Cast(RecordBatch::try_new_with_options(
            schema, arrays, &options,
        )?))
    }
}

/// The schema with the fields of `more` at its end.
fn with_fields(schema: &Schema, more: &Schema) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    fields.extend_from_slice(more.fields());
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The result of [`Columns::cast`].
pub(crate) enum CastBatch {
    Cast(RecordBatch),
    /// The errors, and the decoded batch.
    Failed(Vec<CastError>, RecordBatch),
}

/// Rows that cannot be cast, each with the expected type and the value found.
type RowErrors = Vec<(usize, String, String)>;

/// The cast of a decoded column to its declared type.
#[derive(Clone, Debug)]
struct ColumnCast {
    to: DataType,
    /// An array of one value, which replaces nulls.
    default: Option<ArrayRef>,
    /// Whether a null is an error.
    required: bool,
}

impl ColumnCast {
    fn array(&self, array: &ArrayRef) -> Result<Result<ArrayRef, RowErrors>, ArrowError> {
        let Ok(mut cast) = cast_exactly(array, &self.to) else {
            return Ok(Err(self.errors(array)));
        };
        if let Some(default) = &self.default
            && cast.null_count() > 0
        {
            cast = zip(
                &is_not_null(&cast)?,
                &cast,
                &Scalar::new(Arc::clone(default)),
            )?;
        }
        if self.required && cast.null_count() > 0 {
            let mut absent = Vec::new();
            for row in 0..cast.len() {
                if cast.is_null(row) {
                    let expected = format!("{} NOT NULL", self.to);
                    absent.push((row, expected, "no such feature".to_owned()));
                }
            }
            return Ok(Err(absent));
        }
        Ok(Ok(cast))
    }

    /// The rows that cannot be cast. Casts each row separately, because it runs only after an
    /// error.
    fn errors(&self, array: &ArrayRef) -> RowErrors {
        let mut errors = Vec::new();
        for row in 0..array.len() {
            // Copies the row, because Arrow's cast of a slice to a fixed-size list reads the wrong
            // null bits.
            let alone = take(array, &UInt32Array::from_value(row as u32, 1), None);
            let cast = alone.and_then(|alone| cast_exactly(&alone, &self.to));
            if cast.is_err() {
                errors.push((row, self.to.to_string(), shown(array, row)));
            }
        }
        errors
    }
}

/// The default of a column, as an array of one value. The cast must be exact, as for decoded
/// values: a fraction is not rounded to an integer.
fn default_of(field: &Field, default: &ScalarValue, to: &DataType) -> Result<ArrayRef> {
    let given = default.to_array()?;
    if let Ok(cast) = cast_exactly(&given, to) {
        let back = cast_strictly(&cast, given.data_type());
        if !leaf(to).is_integer() || back.is_ok_and(|back| back.as_ref() == given.as_ref()) {
            return Ok(cast);
        }
    }
    plan_err!(
        "column {:?}: DEFAULT {default} is not a valid {to}",
        field.name()
    )
}

/// Casts an array; a value that would change is an error.
fn cast_exactly(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let result = cast_strictly(array, to)?;
    // Arrow casts every number other than 0 to true.
    if leaf(to) == &DataType::Boolean
        && cast_strictly(&result, array.data_type())?.as_ref() != array.as_ref()
    {
        return Err(ArrowError::CastError(
            "a number other than 0 and 1".to_owned(),
        ));
    }
    Ok(result)
}

/// Casts an array; a value that Arrow cannot cast is an error.
fn cast_strictly(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..Default::default()
    };
    cast_with_options(array, to, &options)
}

/// A value as text, with the length of a list, truncated to [`MAX_SHOWN`] characters.
fn shown(array: &ArrayRef, row: usize) -> String {
    let text = array_value_to_string(array, row).unwrap_or_default();
    let length = match item(array.data_type()) {
        Some(_) => arrow_length(array, row)
            .map(|length| format!(" ({length} values)"))
            .unwrap_or_default(),
        None => String::new(),
    };
    if text.chars().count() <= MAX_SHOWN {
        return text + &length;
    }
    text.chars().take(MAX_SHOWN).collect::<String>() + ".." + &length
}

fn arrow_length(array: &ArrayRef, row: usize) -> Option<usize> {
    let list = array.as_any().downcast_ref::<arrow_array::ListArray>()?;
    Some(list.value(row).len())
}

/// The field of the items of a list type.
fn item(data_type: &DataType) -> Option<&Arc<Field>> {
    match data_type {
        DataType::List(item) | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

/// The type of the innermost items of a list type; any other type itself.
fn leaf(data_type: &DataType) -> &DataType {
    item(data_type).map_or(data_type, |item| leaf(item.data_type()))
}

/// The type that the codec decodes before the cast to a declared type; `None` if no feature can be
/// cast to it.
fn decoded_type(declared: &DataType, views: bool) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Boolean, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary,
        LargeUtf8, List, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    Some(match declared {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Int64,
        Float32 | Float64 => Float32,
        Utf8 | LargeUtf8 | Utf8View => with_views(&Utf8, views),
        Binary | LargeBinary | BinaryView => with_views(&Binary, views),
        other => List(Arc::new(Field::new_list_field(
            decoded_type(item(other)?.data_type(), views)?,
            true,
        ))),
    })
}

/// The type that a query reads: text and bytes are view arrays, or plain arrays.
fn with_views(declared: &DataType, views: bool) -> DataType {
    match declared {
        DataType::Binary | DataType::BinaryView => {
            if views {
                DataType::BinaryView
            } else {
                DataType::Binary
            }
        }
        DataType::Utf8 | DataType::Utf8View => {
            if views {
                DataType::Utf8View
            } else {
                DataType::Utf8
            }
        }
        DataType::List(item) => DataType::List(item_with_views(item, views)),
        DataType::FixedSizeList(item, length) => {
            DataType::FixedSizeList(item_with_views(item, views), *length)
        }
        other => other.clone(),
    }
}

/// The field of the items of a list that a query reads.
fn item_with_views(item: &Field, views: bool) -> FieldRef {
    let data_type = with_views(item.data_type(), views);
    Arc::new(item.clone().with_data_type(data_type))
}

fn not_decoded<T>(field: &Field) -> Result<T> {
    plan_err!(
        "column {:?}: a feature cannot be read as {}; declare BOOLEAN, an integer (TINYINT to BIGINT, UNSIGNED or not), \
         FLOAT, DOUBLE, VARCHAR or BYTEA, a list of these such as FLOAT[] or FLOAT[3], or for a feature list FLOAT[][]",
        field.name(),
        field.data_type()
    )
}

/// Removes the rows with errors from a batch. Returns the other rows, and their numbers in `batch`.
pub(crate) fn without(
    batch: &RecordBatch,
    errors: &[CastError],
) -> Result<(RecordBatch, Vec<usize>), ArrowError> {
    let bad: std::collections::HashSet<_> = errors.iter().map(|error| error.row).collect();
    let keep: BooleanArray = (0..batch.num_rows())
        .map(|row| Some(!bad.contains(&row)))
        .collect();
    let rows = (0..batch.num_rows())
        .filter(|row| !bad.contains(row))
        .collect();
    Ok((
        datafusion::arrow::compute::filter_record_batch(batch, &keep)?,
        rows,
    ))
}
/// The schema that a query reads: with view arrays if `views`, and without the column
/// `_tfarrow_unset`, also of the examples of a list, which only conversion back to TFRecord needs.
pub(crate) fn visible(schema: &Schema, views: bool) -> SchemaRef {
    let kept =
        without_unset(schema.fields())
            .into_iter()
            .map(|field| match fields_of_examples(&field) {
                Some(fields)
                    if role_of(&field) == Some(Role::Examples)
                        && !without_unset(fields).is_empty() =>
                {
                    Arc::new(with_example_fields(&field, without_unset(fields).into()))
                }
                _ => field,
            });
    schema::with_views(
        &Schema::new_with_metadata(kept.collect::<Vec<_>>(), schema.metadata().clone()),
        views,
    )
}

fn without_unset(fields: &Fields) -> Vec<FieldRef> {
    fields
        .iter()
        .filter(|field| role_of(field) != Some(Role::Unset))
        .cloned()
        .collect()
}
