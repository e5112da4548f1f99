//! The types of single values of text.

use arrow_array::types::{Float64Type, Int64Type};
use arrow_cast::parse::Parser;
use arrow_schema::DataType;

/// Number of bits of the integers that float64 holds: those of its significand.
const FLOAT64_BITS: u32 = f64::MANTISSA_DIGITS;

/// The type of some values. Digits of integers are never lost: where a number of the column would
/// lose some, it is text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// There are no values.
    #[default]
    None,
    Boolean,
    /// Integers that float64 holds.
    Integer,
    /// Integers, of which float64 does not hold some.
    LongInteger,
    Number,
    /// Texts in JSON that name numbers that are not finite: numbers beside other numbers, and else
    /// texts.
    NotFinite,
    Text,
}

/// The texts of numbers that are not finite, as outputs have them. JSON has no such numbers.
const NOT_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

impl ScalarType {
    /// The type of a field of CSV.
    pub(crate) fn of_text(text: &str) -> Self {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
        if let [b'0', b'0'..=b'9', ..] = digits {
            // A number would lose the zero, which identifiers have.
            return Self::Text;
        }
        // The decoder parses with these functions.
        if let Some(value) = Int64Type::parse(text) {
            Self::of_int64(value)
        } else if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            let is_held = text
                .parse()
                .is_ok_and(|value: i128| float64_holds(value.unsigned_abs()));
            if is_held { Self::Number } else { Self::Text }
        } else if Float64Type::parse(text).is_some() {
            Self::Number
        } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Boolean
        } else {
            Self::Text
        }
    }

    /// The type of an integer of JSON.
    pub(crate) fn of_int64(value: i64) -> Self {
        if float64_holds(value.unsigned_abs().into()) {
            Self::Integer
        } else {
            Self::LongInteger
        }
    }

    /// The type of an integer of JSON. Those beyond 64 bits are numbers, because the parser keeps
    /// no digits of them.
    pub(crate) fn of_uint64(value: u64) -> Self {
        match i64::try_from(value) {
            Ok(value) => Self::of_int64(value),
            Err(_) if float64_holds(value.into()) => Self::Number,
            Err(_) => Self::Text,
        }
    }

    /// The type of a text of JSON.
    pub(crate) fn of_json_text(text: &str) -> Self {
        if NOT_FINITE.contains(&text) {
            Self::NotFinite
        } else {
            Self::Text
        }
    }

    /// The type of values of two types.
    pub(crate) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::None, one) | (one, Self::None) => one,
            (Self::Integer, Self::LongInteger) | (Self::LongInteger, Self::Integer) => {
                Self::LongInteger
            }
            (
                Self::Integer | Self::Number | Self::NotFinite,
                Self::Integer | Self::Number | Self::NotFinite,
            ) => Self::Number,
            _ => Self::Text,
        }
    }

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer | Self::LongInteger => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::None | Self::NotFinite | Self::Text => DataType::Utf8,
        }
    }

    /// The name of a value in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "null",
            Self::Boolean => "a boolean",
            Self::Integer | Self::LongInteger => "an integer",
            Self::Number => "a number",
            Self::NotFinite | Self::Text => "a text",
        }
    }
}

/// Whether float64 holds an integer of this magnitude without rounding.
fn float64_holds(magnitude: u128) -> bool {
    u128::BITS - magnitude.leading_zeros() <= FLOAT64_BITS + magnitude.trailing_zeros()
}
