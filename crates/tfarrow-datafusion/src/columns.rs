//! The columns of a table: what the codec decodes records to, and what is made of that.
//!
//! A table whose schema was inferred shows what was decoded. One whose columns were declared, which is the parse spec of
//! `tf.io` in SQL, shows the declared types: each is decoded to the type of its kind and cast, and a value that does not
//! fit is an error with its place, never a null. A column with no default is null where the feature is absent.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, Scalar, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use datafusion::{
    arrow::{
        compute::{CastOptions, cast_with_options, is_not_null, kernels::zip::zip, take},
        util::display::array_value_to_string,
    },
    common::{ScalarValue, plan_err},
    error::Result,
};
use tfarrow_codec::{RecordType, schema};

use crate::options::MetadataColumns;

/// Characters of a value that an error shows.
const SHOWN: usize = 60;

/// The columns of a table's files, without those that its folders give.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// What a query sees.
    schema: SchemaRef,
    /// What records are decoded to, column by column.
    decoded: SchemaRef,
    /// What is made of each column; `None`: nothing.
    fits: Vec<Option<Fit>>,
}

/// A value of a row that does not fit its column.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) row: usize,
    pub(crate) column: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Columns {
    /// The columns are those that the codec decodes.
    pub(crate) fn decoded(schema: SchemaRef) -> Self {
        let fits = vec![None; schema.fields().len()];
        Self { decoded: Arc::clone(&schema), schema, fits }
    }

    /// The columns are those that a user declared, with these values where a record has no such feature.
    pub(crate) fn declared(
        declared: &Schema,
        defaults: &HashMap<String, ScalarValue>,
        record_type: Option<RecordType>,
        views: bool,
    ) -> Result<Self> {
        let (mut seen, mut decoded, mut fits) = (Vec::new(), Vec::new(), Vec::new());
        for field in declared.fields() {
            let Some(decoded_type) = decoded_type(field.data_type(), views) else { return not_decoded(field) };
            let data_type = with_views(field.data_type(), views);
            let default = defaults.get(field.name()).filter(|default| !default.is_null());
            let default = default.map(|default| default_of(field, default, &data_type)).transpose()?;
            let required = !field.is_nullable();
            let fit = Fit { to: data_type.clone(), default, required };
            fits.push((data_type != decoded_type || required || fit.default.is_some()).then_some(fit));
            decoded.push(Field::new(field.name(), decoded_type, true).with_metadata(field.metadata().clone()));
            seen.push(field.as_ref().clone().with_data_type(data_type));
        }
        let record_type = record_type.unwrap_or_else(|| schema::record_type_of(&Schema::new(decoded.clone())));
        let [schema, decoded] = [seen, decoded].map(|fields| schema::with_record_type(fields, record_type));
        Ok(Self { schema, decoded, fits })
    }

    /// These columns, and after them those that say where a record stands.
    pub(crate) fn with_metadata(mut self, wanted: MetadataColumns, views: bool) -> Result<Self> {
        let fields: Vec<_> = wanted.roles().map(schema::place_field).collect();
        if let Some(taken) = fields.iter().find(|field| self.schema.column_with_name(field.name()).is_some()) {
            return plan_err!(
                "the data has a feature {:?} of its own; leave that name out of tfarrow.metadata_columns",
                taken.name()
            );
        }
        let places = schema::with_views(&Schema::new(fields), views);
        let more = |schema: &Schema| {
            let fields: Vec<_> = schema.fields().iter().chain(places.fields()).cloned().collect();
            Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
        };
        (self.schema, self.decoded) = (more(&self.schema), more(&self.decoded));
        self.fits.resize(self.schema.fields().len(), None);
        Ok(self)
    }

    /// What a query sees.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What a decoder makes.
    pub(crate) fn decoded_schema(&self) -> &SchemaRef {
        &self.decoded
    }

    /// Whether a query sees a column as it was decoded.
    pub(crate) fn is_as_decoded(&self, column: usize) -> bool {
        matches!(self.fits.get(column), None | Some(None))
    }

    /// Makes the columns that a query sees, `columns` of all, of those that a decoder made; else says what does not fit:
    /// all rows to blame in the first column that has any.
    pub(crate) fn fit(&self, columns: &[usize], batch: RecordBatch) -> Result<Fitted> {
        if columns.iter().all(|column| self.is_as_decoded(*column)) {
            return Ok(Fitted::Batch(batch));
        }
        let mut arrays = Vec::with_capacity(columns.len());
        for (column, array) in columns.iter().zip(batch.columns()) {
            let Some(Some(fit)) = self.fits.get(*column) else {
                arrays.push(Arc::clone(array));
                continue;
            };
            match fit.array(array)? {
                Ok(array) => arrays.push(array),
                Err(misfits) => {
                    let name = self.schema.field(*column).name();
                    let misfit = |(row, expected, found)| Misfit { row, column: name.clone(), expected, found };
                    return Ok(Fitted::Misfits(misfits.into_iter().map(misfit).collect(), batch));
                }
            }
        }
        let schema = Arc::new(self.schema.project(columns)?);
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(Fitted::Batch(RecordBatch::try_new_with_options(schema, arrays, &options)?))
    }
}

/// What came of a batch.
pub(crate) enum Fitted {
    Batch(RecordBatch),
    /// What does not fit, and the batch as it was.
    Misfits(Vec<Misfit>, RecordBatch),
}

/// Rows that do not fit, each with what was expected and what was found.
type Misfits = Vec<(usize, String, String)>;

/// What a declared column makes of what was decoded.
#[derive(Clone, Debug)]
struct Fit {
    to: DataType,
    /// An array of one value.
    default: Option<ArrayRef>,
    /// Whether a row may not be null.
    required: bool,
}

impl Fit {
    fn array(&self, array: &ArrayRef) -> Result<Result<ArrayRef, Misfits>, ArrowError> {
        let Ok(mut cast) = cast_exactly(array, &self.to) else { return Ok(Err(self.misfits(array))) };
        if let Some(default) = &self.default
            && cast.null_count() > 0
        {
            cast = zip(&is_not_null(&cast)?, &cast, &Scalar::new(Arc::clone(default)))?;
        }
        if self.required && cast.null_count() > 0 {
            let absent = |row| (row, format!("{} NOT NULL", self.to), "no such feature".to_owned());
            return Ok(Err((0..cast.len()).filter(|row| cast.is_null(*row)).map(absent).collect()));
        }
        Ok(Ok(cast))
    }

    /// The rows that cannot be cast. Only asked where there are any, so that it may look at each row alone.
    fn misfits(&self, array: &ArrayRef) -> Misfits {
        // A copy of the row, since Arrow's cast to lists of a fixed size looks for a slice's nulls where they are not.
        let row_alone = |row: usize| take(array, &UInt32Array::from_value(row as u32, 1), None);
        let is_misfit = |row: &usize| row_alone(*row).and_then(|row| cast_exactly(&row, &self.to)).is_err();
        (0..array.len()).filter(is_misfit).map(|row| (row, self.to.to_string(), shown(array, row))).collect()
    }
}

/// A column's default, as an array of one value. It is cast as what is decoded is: what does not fit is an error, and a
/// fraction does not fit an integer.
fn default_of(field: &Field, default: &ScalarValue, to: &DataType) -> Result<ArrayRef> {
    let given = default.to_array()?;
    let is_whole = |cast: &ArrayRef| {
        let back = cast_with_options(cast, given.data_type(), &CastOptions { safe: false, ..Default::default() });
        !leaf(to).is_integer() || back.is_ok_and(|back| back.as_ref() == given.as_ref())
    };
    match cast_exactly(&given, to).ok().filter(is_whole) {
        Some(cast) => Ok(cast),
        None => plan_err!("column {:?}: DEFAULT {default} is no {to}", field.name()),
    }
}

/// Casts, or fails where a value would change.
fn cast_exactly(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let cast = |array: &ArrayRef, to| cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() });
    let made = cast(array, to)?;
    // Arrow takes any number but 0 for true.
    if leaf(to) == &DataType::Boolean && cast(&made, array.data_type())?.as_ref() != array.as_ref() {
        return Err(ArrowError::CastError("a number other than 0 and 1".to_owned()));
    }
    Ok(made)
}

fn shown(array: &ArrayRef, row: usize) -> String {
    let text = array_value_to_string(array, row).unwrap_or_default();
    let length = match item(array.data_type()) {
        Some(_) => arrow_length(array, row).map(|length| format!(" ({length} values)")).unwrap_or_default(),
        None => String::new(),
    };
    if text.chars().count() <= SHOWN {
        return text + &length;
    }
    text.chars().take(SHOWN).collect::<String>() + ".." + &length
}

fn arrow_length(array: &ArrayRef, row: usize) -> Option<usize> {
    let list = array.as_any().downcast_ref::<arrow_array::ListArray>()?;
    Some(list.value(row).len())
}

/// The type of a list's items.
fn item(data_type: &DataType) -> Option<&Arc<Field>> {
    match data_type {
        DataType::List(item) | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn leaf(data_type: &DataType) -> &DataType {
    item(data_type).map_or(data_type, |item| leaf(item.data_type()))
}

/// The type that the codec decodes for a declared one; `None` where there is none.
fn decoded_type(declared: &DataType, views: bool) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Boolean, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, List, UInt8,
        UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    Some(match declared {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Int64,
        Float32 | Float64 => Float32,
        Utf8 | LargeUtf8 | Utf8View => with_views(&Utf8, views),
        Binary | LargeBinary | BinaryView => with_views(&Binary, views),
        other => List(Arc::new(Field::new_list_field(decoded_type(item(other)?.data_type(), views)?, true))),
    })
}

/// The type that a query sees: bytes and text are views, or are not.
fn with_views(declared: &DataType, views: bool) -> DataType {
    let with_views = |item: &Arc<Field>| {
        let data_type = with_views(item.data_type(), views);
        Arc::new(item.as_ref().clone().with_data_type(data_type))
    };
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
        DataType::List(item) => DataType::List(with_views(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(with_views(item), *length),
        other => other.clone(),
    }
}

fn not_decoded<T>(field: &Field) -> Result<T> {
    plan_err!(
        "column {:?}: a feature cannot be read as {}; declare BOOLEAN, an integer (TINYINT to BIGINT, UNSIGNED or not), \
         FLOAT, DOUBLE, VARCHAR or BYTEA, a list of these such as FLOAT[] or FLOAT[3], or for a feature list FLOAT[][]",
        field.name(),
        field.data_type()
    )
}

/// Those rows of a batch that are not among `misfits`, and their numbers.
pub(crate) fn without(batch: &RecordBatch, misfits: &[Misfit]) -> Result<(RecordBatch, Vec<usize>), ArrowError> {
    let bad: std::collections::HashSet<_> = misfits.iter().map(|misfit| misfit.row).collect();
    let keep: BooleanArray = (0..batch.num_rows()).map(|row| Some(!bad.contains(&row))).collect();
    let rows = (0..batch.num_rows()).filter(|row| !bad.contains(row)).collect();
    Ok((datafusion::arrow::compute::filter_record_batch(batch, &keep)?, rows))
}
