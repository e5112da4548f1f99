//! A cell of an Arrow array as a value that every text format can write. The only match over
//! Arrow's types.

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, StructArray,
    cast::AsArray,
    downcast_run_array,
    types::{
        Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{ArrowError, DataType};

/// A value, borrowed from its array where possible.
pub enum Value<'a> {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A float of 16 or 32 bits.
    Float(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A decimal number in digits.
    Digits(String),
    /// Text.
    Text(&'a str),
    /// Bytes, which may be UTF-8.
    Bytes(&'a [u8]),
    /// A date, a time or an interval in Arrow's text format.
    Other(String),
    /// A list, as an array of its items.
    List(ArrayRef),
    /// A row of a struct array.
    Struct(&'a StructArray, usize),
    /// A map, as an array of its entries: a key and a value.
    Map(StructArray),
}

impl<'a> Value<'a> {
    /// The value of `array` in `row`.
    ///
    /// # Errors
    /// Arrow cannot format a value, such as a date out of range.
    pub fn of(array: &'a dyn Array, row: usize) -> Result<Self, ArrowError> {
        if array.is_null(row) {
            return Ok(Self::Null);
        }
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(array.as_boolean().value(row)),
            DataType::Int8 => Self::Int(primitive::<Int8Type>(array, row).into()),
            DataType::Int16 => Self::Int(primitive::<Int16Type>(array, row).into()),
            DataType::Int32 => Self::Int(primitive::<Int32Type>(array, row).into()),
            DataType::Int64 => Self::Int(primitive::<Int64Type>(array, row)),
            DataType::UInt8 => Self::UInt(primitive::<UInt8Type>(array, row).into()),
            DataType::UInt16 => Self::UInt(primitive::<UInt16Type>(array, row).into()),
            DataType::UInt32 => Self::UInt(primitive::<UInt32Type>(array, row).into()),
            DataType::UInt64 => Self::UInt(primitive::<UInt64Type>(array, row)),
            DataType::Float16 => Self::Float(primitive::<Float16Type>(array, row).to_f32()),
            DataType::Float32 => Self::Float(primitive::<Float32Type>(array, row)),
            DataType::Float64 => Self::Double(primitive::<Float64Type>(array, row)),
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => Self::Digits(array_value_to_string(array, row)?),
            DataType::Utf8 => Self::Text(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Self::Text(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Self::Text(array.as_string_view().value(row)),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Self::Bytes(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => Self::Bytes(array.as_binary_view().value(row)),
            DataType::FixedSizeBinary(_) => Self::Bytes(array.as_fixed_size_binary().value(row)),
            DataType::List(_) => Self::List(array.as_list::<i32>().value(row)),
            DataType::LargeList(_) => Self::List(array.as_list::<i64>().value(row)),
            DataType::ListView(_) => Self::List(array.as_list_view::<i32>().value(row)),
            DataType::LargeListView(_) => Self::List(array.as_list_view::<i64>().value(row)),
            DataType::FixedSizeList(..) => Self::List(array.as_fixed_size_list().value(row)),
            DataType::Map(..) => Self::Map(array.as_map().value(row)),
            DataType::Struct(_) => Self::Struct(array.as_struct(), row),
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..) => {
                return Self::of_encoded(array, row);
            }
            DataType::Timestamp(..)
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(_) => Self::Other(array_value_to_string(array, row)?),
        })
    }

    /// The value that a key, a run or a variant refers to in a child array.
    fn of_encoded(array: &'a dyn Array, row: usize) -> Result<Self, ArrowError> {
        if let DataType::Union(..) = array.data_type() {
            let union = array.as_union();
            return Self::of(
                union.child(union.type_id(row)).as_ref(),
                union.value_offset(row),
            );
        }
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            return match Self::of(dictionary.keys(), row)? {
                Self::Int(key) => Self::of(
                    dictionary.values().as_ref(),
                    usize::try_from(key).unwrap_or_default(),
                ),
                Self::UInt(key) => Self::of(
                    dictionary.values().as_ref(),
                    usize::try_from(key).unwrap_or_default(),
                ),
                _ => Ok(Self::Null),
            };
        }
        downcast_run_array!(
            array => Self::of(array.values().as_ref(), array.get_physical_index(row)),
            _ => Ok(Self::Other(array_value_to_string(array, row)?))
        )
    }
}

/// The keys of the entries of a map as texts, and the array of their values; `None` for entries of
/// another form.
///
/// # Errors
/// Arrow cannot format a key.
pub fn entries(map: &StructArray) -> Result<Option<(Vec<String>, &ArrayRef)>, ArrowError> {
    let [keys, values] = map.columns() else {
        return Ok(None);
    };
    let texts = (0..keys.len())
        .map(|row| array_value_to_string(keys, row))
        .collect::<Result<_, _>>()?;
    Ok(Some((texts, values)))
}

fn primitive<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}
