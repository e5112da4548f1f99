//! The decoded values of a feature.

use std::fmt;

use crate::{
    Kind,
    example::{
        walk::{self, Numbers},
        wire,
    },
};

/// A value of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureValue {
    /// A value of a `bytes_list`.
    Bytes(Vec<u8>),
    /// The bits of a value of a `float_list`.
    Float(u32),
    /// A value of an `int64_list`.
    Int64(i64),
}

/// Formats text in quotes, other bytes in quotes with escapes, floats as Rust does, and NaN with
/// its bits.
impl fmt::Display for FeatureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int64(value) => value.fmt(f),
            Self::Float(bits) => {
                let value = f32::from_bits(*bits);
                if value.is_nan() {
                    write!(f, "NaN ({bits:#010x})")
                } else {
                    write!(f, "{value:?}")
                }
            }
            Self::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => write!(f, "{text:?}"),
                Err(_) => write!(f, "\"{}\"", bytes.escape_ascii()),
            },
        }
    }
}

/// A decoded list of a feature.
#[derive(Debug)]
pub(super) enum List {
    /// A feature without a kind.
    Unset,
    /// The values of a `bytes_list`.
    Bytes(Vec<Vec<u8>>),
    /// The bits of the values of a `float_list`.
    Float(Vec<u32>),
    /// The values of an `int64_list`.
    Int64(Vec<i64>),
}

impl List {
    /// Returns the kind; `None` if it is unset.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Unset => None,
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Float(_) => Some(Kind::Float),
            Self::Int64(_) => Some(Kind::Int64),
        }
    }
}

/// Decodes the steps of a `FeatureList`.
pub(super) fn steps(message: &[u8], nesting: usize) -> wire::Result<Vec<List>> {
    let mut steps = Vec::new();
    walk::steps(message, nesting, |step| {
        steps.push(list(step, nesting)?);
        Ok(())
    })?;
    Ok(steps)
}

/// Decodes the list of a `Feature`.
pub(super) fn list(message: &[u8], nesting: usize) -> wire::Result<List> {
    walk::feature(message, nesting, |feature| {
        feature.map_or(Ok(List::Unset), |(kind, body)| values(kind, body, nesting))
    })
}

/// Decodes the body of a list.
///
/// # Errors
/// [`WireError`](crate::WireError) for a list that does not parse.
fn values(kind: Kind, body: &[u8], nesting: usize) -> wire::Result<List> {
    match kind {
        Kind::Bytes => {
            let mut values = Vec::new();
            walk::bytes_values(body, nesting, |value| {
                values.push(value.to_vec());
                Ok(())
            })?;
            Ok(List::Bytes(values))
        }
        Kind::Float => {
            let mut values = Vec::new();
            walk::float_pieces(body, nesting, |piece| {
                match piece {
                    Numbers::Packed(bytes) => {
                        values.extend(
                            bytes
                                .as_chunks()
                                .0
                                .iter()
                                .map(|bytes| u32::from_le_bytes(*bytes)),
                        );
                    }
                    Numbers::One(bytes) => values.push(u32::from_le_bytes(bytes)),
                }
                Ok(())
            })?;
            Ok(List::Float(values))
        }
        Kind::Int64 => {
            let mut values = Vec::new();
            walk::int64_pieces(body, nesting, |piece| {
                match piece {
                    Numbers::Packed(packed) => {
                        wire::count_varints(packed)?;
                        wire::unpack_varints(packed, &mut values)?;
                    }
                    Numbers::One(value) => values.push(value as i64),
                }
                Ok(())
            })?;
            Ok(List::Int64(values))
        }
    }
}
