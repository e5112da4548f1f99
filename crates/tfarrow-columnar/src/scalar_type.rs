//! The types of single values of text.

use arrow_array::types::{Float64Type, Int64Type};
use arrow_cast::parse::Parser;
use arrow_schema::DataType;
use serde_json::Value;

/// The type of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// There are no values.
    #[default]
    None,
    Boolean,
    Integer,
    Number,
    Text,
}

impl ScalarType {
    /// The type of a field of CSV.
    pub(crate) fn of_text(text: &str) -> Self {
        // The decoder parses with these functions.
        if Int64Type::parse(text).is_some() {
            Self::Integer
        } else if Float64Type::parse(text).is_some() {
            Self::Number
        } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Boolean
        } else {
            Self::Text
        }
    }

    /// The type of a value of JSON; `None` for a null, a list and an object.
    pub(crate) fn of_json(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Null | Value::Array(_) | Value::Object(_) => Self::None,
        }
    }

    /// The type of values of two types.
    pub(crate) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::None, one) | (one, Self::None) => one,
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            _ => Self::Text,
        }
    }

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::None | Self::Text => DataType::Utf8,
        }
    }

    /// The name of a value in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Text => "a text",
        }
    }
}
