//! Enums whose values have names. Each enum defines its names once, for options of the command line
//! and of SQL, metadata, journals and messages.

use std::fmt;

/// A value with a name; [`named_values!`](crate::named_values) implements it.
///
/// ```
/// use tfarrow_codec::{Layout, NamedValue};
/// assert_eq!(Layout::names(), "auto, list");
/// assert_eq!("list".parse(), Ok(Layout::List));
/// assert_eq!("wide".parse::<Layout>().unwrap_err().to_string(), "found \"wide\", expected one of: auto, list");
/// ```
pub trait NamedValue: Copy + Send + Sync + 'static {
    /// All values of the type.
    const ALL: &'static [Self];

    /// The name of the value. It does not change between versions.
    fn name(self) -> &'static str;

    /// The effect of the value in a few words, for the help of an option. Empty if the type is not
    /// used as an option.
    fn help(self) -> &'static str;

    /// The names of all values, with commas between them.
    fn names() -> String {
        Self::ALL
            .iter()
            .map(|value| value.name())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The error that no value has the name that was given. It lists the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The name that was given.
    found: String,
    /// The names of all values.
    expected: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found {:?}, expected one of: {}",
            self.found, self.expected
        )
    }
}

impl std::error::Error for UnknownName {}

/// Returns the value with the name `text`, as options spell it: the words of a name may be joined
/// by `-` or `_`.
///
/// ```
/// use tfarrow_codec::{VerifyCrc, parse_name};
/// assert_eq!(parse_name("on_parse_failure"), Ok(VerifyCrc::OnParseFailure));
/// ```
///
/// # Errors
/// [`UnknownName`] if no value has this name.
pub fn parse_name<T: NamedValue>(text: &str) -> Result<T, UnknownName> {
    for value in T::ALL {
        if value.name().replace('_', "-") == text.replace('_', "-") {
            return Ok(*value);
        }
    }
    Err(UnknownName {
        found: text.to_owned(),
        expected: T::names(),
    })
}

/// Implements [`NamedValue`], `Display` and `FromStr` for an enum without fields, and the constant
/// `ALL` and the functions `name` and `from_name`, which need no import.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Side {
///     Left,
///     Right,
/// }
/// tfarrow_codec::named_values!(Side {
///     Left = "left": "The side of the heart",
///     Right = "right": "The other side",
/// });
/// assert_eq!(Side::from_name("left"), Some(Side::Left));
/// assert_eq!(Side::Right.to_string(), "right");
/// ```
#[macro_export]
macro_rules! named_values {
    ($type:ident { $($variant:ident = $name:literal $(: $help:literal)?),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name of the value in options, metadata and journals.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value of exactly this name; `None` if there is none.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl $crate::NamedValue for $type {
            const ALL: &'static [Self] = &Self::ALL;

            fn name(self) -> &'static str {
                self.name()
            }

            fn help(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("" $(, $help)?)),+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                $crate::parse_name(text)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{
        Kind, Layout, Limit, NamedValue, OnConflict, OnError, RecordType, Role, VerifyCrc,
    };

    #[track_caller]
    fn check<T: NamedValue + std::fmt::Debug + PartialEq>(names: &str) {
        assert_eq!(T::names(), names);
        for value in T::ALL {
            assert_eq!(crate::parse_name(value.name()), Ok(*value));
            assert_eq!(
                crate::parse_name(&value.name().replace('-', "_")),
                Ok(*value)
            );
        }
    }

    /// Files and scripts contain these names.
    #[test]
    fn names_do_not_change() {
        check::<Kind>("bytes_list, float_list, int64_list");
        check::<Layout>("auto, list");
        check::<Limit>(
            "record-bytes, record-features, values, key-bytes, columns, name-bytes, nesting, recursion, inflate-ratio",
        );
        check::<OnConflict>("error, split");
        check::<OnError>("fail, skip");
        check::<RecordType>("example, sequence-example, example-list, message, raw");
        check::<Role>("feature, context, sequence, examples, record, unset, exact, index, offset");
        check::<VerifyCrc>("always, on-parse-failure, never");
    }

    #[test]
    fn metadata_has_the_exact_name() {
        assert_eq!(
            RecordType::from_name("sequence-example"),
            Some(RecordType::SequenceExample)
        );
        assert_eq!(RecordType::from_name("sequence_example"), None);
        assert_eq!("sequence_example".parse(), Ok(RecordType::SequenceExample));
        assert!("Raw".parse::<RecordType>().is_err());
    }
}
