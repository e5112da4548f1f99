//! The message `tensorflow.TensorProto`, which `tf.io.serialize_tensor` writes, and its values in
//! row-major order.
//!
//! Follows tensorflow/core/framework/tensor.proto, tensor_shape.proto and types.proto, and the
//! semantics of `Tensor::FromProto`: the values are in `tensor_content`, little-endian, or in the
//! field of their type. If that field has fewer values than the shape, the last value is repeated.

use half::{bf16, f16};
use prost::{Message, bytes::Bytes};

/// Maximum number of values of a tensor with a repeated last value, because a few bytes can
/// describe any number of values.
const MAX_REPEATED: usize = 1 << 24;

/// The number of the dtype of strings.
const STRING: i32 = 7;

/// The message `TensorProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    tensor_shape: Option<TensorShapeProto>,
    #[prost(bytes = "bytes", tag = "4")]
    tensor_content: Bytes,
    #[prost(int32, repeated, tag = "13")]
    half_val: Vec<i32>,
    #[prost(float, repeated, tag = "5")]
    float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    int_val: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    string_val: Vec<Bytes>,
    #[prost(int64, repeated, tag = "10")]
    int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    bool_val: Vec<bool>,
    #[prost(uint32, repeated, tag = "16")]
    uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    uint64_val: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShapeProto {
    #[prost(message, repeated, tag = "2")]
    dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    unknown_rank: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Dim {
    #[prost(int64, tag = "1")]
    size: i64,
}

/// The values of a tensor, in a type that represents them exactly.
#[derive(Debug, PartialEq)]
pub(super) enum TensorValues {
    Floats(Vec<f64>),
    Ints(Vec<i64>),
    /// Values of dtype `uint64`.
    Unsigned(Vec<u64>),
    Strings(Vec<Bytes>),
}

/// An error of [`TensorProto`].
#[derive(Debug, thiserror::Error)]
pub(super) enum TensorError {
    /// The bytes are not a message.
    #[error("not a tensor of tf.io.serialize_tensor: {0}")]
    Message(#[source] prost::DecodeError),
    /// The dtype is missing.
    #[error("not a tensor of tf.io.serialize_tensor: the dtype is missing")]
    NoDtype,
    /// The dtype of this number is not supported.
    #[error("tensors of dtype {} are not supported", dtype_name(*.0))]
    Dtype(i32),
    /// The shape is unknown, negative or too large.
    #[error("the tensor's shape is unknown, negative or too large")]
    Shape,
    /// The number of bytes or values found, and the number that the shape requires.
    #[error("the tensor's content is corrupt: found {0} bytes or values, expected {1}")]
    Content(usize, usize),
    /// The number of values exceeds [`MAX_REPEATED`].
    #[error("the tensor repeats one value {0} times; the limit is {MAX_REPEATED}")]
    TooMany(usize),
}

type Result<T> = std::result::Result<T, TensorError>;

impl TensorProto {
    /// Parses the message.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let proto = Self::decode(bytes).map_err(TensorError::Message)?;
        if proto.dtype == 0 {
            Err(TensorError::NoDtype)
        } else {
            Ok(proto)
        }
    }

    /// Returns whether the values are strings.
    pub(super) fn is_text(&self) -> bool {
        self.dtype == STRING
    }

    /// TensorFlow's name of the dtype, such as `float32`.
    pub(super) fn dtype(&self) -> String {
        dtype_name(self.dtype)
    }

    /// The dimensions; empty for a scalar.
    pub(super) fn shape(&self) -> Result<Vec<i64>> {
        let Some(shape) = &self.tensor_shape else {
            return Ok(Vec::new());
        };
        let sizes: Vec<_> = shape.dim.iter().map(|dim| dim.size).collect();
        if shape.unknown_rank || sizes.iter().any(|size| *size < 0) {
            Err(TensorError::Shape)
        } else {
            Ok(sizes)
        }
    }

    /// The number of values that the shape requires.
    pub(super) fn count(&self) -> Result<usize> {
        let count = self.shape()?.into_iter().try_fold(1i64, i64::checked_mul);
        count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or(TensorError::Shape)
    }

    /// The number of bytes that the values take beyond `stored`, the bytes of the message, without
    /// making the values: 8 for a number, and one more than its length for a string.
    pub(super) fn growth(&self, stored: usize) -> Result<usize> {
        let count = self.count()?;
        let bytes = match self.is_text() {
            false => count.saturating_mul(8),
            // All strings are stored, with their lengths.
            true if !self.tensor_content.is_empty() => self.tensor_content.len(),
            true => {
                let strings = &self.string_val;
                let repeated = count.saturating_sub(strings.len());
                let last = strings.last().map_or(1, |string| string.len() + 1);
                repeated
                    .saturating_mul(last)
                    .saturating_add(strings.iter().map(|string| string.len() + 1).sum())
            }
        };
        Ok(bytes.saturating_sub(stored))
    }

    /// The values in row-major order.
    pub(super) fn values(&self) -> Result<TensorValues> {
        use TensorValues::{Floats, Ints, Strings, Unsigned};
        Ok(match self.dtype {
            1 => Floats(self.numbers(
                |b| f64::from(f32::from_le_bytes(b)),
                &self.float_val,
                |v| f64::from(*v),
            )?),
            2 => Floats(self.numbers(f64::from_le_bytes, &self.double_val, |v| *v)?),
            3 | 13 => self.ints(|b| i64::from(i32::from_le_bytes(b)))?,
            4 | 12 => self.ints(|b| i64::from(u8::from_le_bytes(b)))?,
            5 | 15 => self.ints(|b| i64::from(i16::from_le_bytes(b)))?,
            6 | 11 => self.ints(|b| i64::from(i8::from_le_bytes(b)))?,
            STRING => Strings(self.strings()?),
            9 => Ints(self.numbers(i64::from_le_bytes, &self.int64_val, |v| *v)?),
            10 => Ints(self.numbers(
                |[b]: [u8; 1]| i64::from(b != 0),
                &self.bool_val,
                |v| i64::from(*v),
            )?),
            14 => Floats(self.numbers(
                |b| f64::from(bf16::from_le_bytes(b)),
                &self.half_val,
                |v| f64::from(bf16::from_bits(*v as u16)),
            )?),
            16 | 17 => self.ints(|b| i64::from(u16::from_le_bytes(b)))?,
            19 => Floats(self.numbers(
                |b| f64::from(f16::from_le_bytes(b)),
                &self.half_val,
                |v| f64::from(f16::from_bits(*v as u16)),
            )?),
            22 => Ints(self.numbers(
                |b| i64::from(u32::from_le_bytes(b)),
                &self.uint32_val,
                |v| i64::from(*v),
            )?),
            23 => Unsigned(self.numbers(u64::from_le_bytes, &self.uint64_val, |v| *v)?),
            other => return Err(TensorError::Dtype(other)),
        })
    }

    /// Reads integers of `N` bytes each from `tensor_content`, or else from `int_val`.
    fn ints<const N: usize>(&self, of_bytes: fn([u8; N]) -> i64) -> Result<TensorValues> {
        let ints = self.numbers(of_bytes, &self.int_val, |v| i64::from(*v))?;
        Ok(TensorValues::Ints(ints))
    }

    /// Reads values of `N` bytes each from `tensor_content`, or else from the field of their type.
    fn numbers<const N: usize, T: Clone + Default, V>(
        &self,
        of_bytes: impl Fn([u8; N]) -> T,
        values: &[V],
        of_value: impl Fn(&V) -> T,
    ) -> Result<Vec<T>> {
        let count = self.count()?;
        if self.tensor_content.is_empty() {
            return repeated(values.iter().map(of_value).collect(), count);
        }
        let (words, rest) = self.tensor_content.as_chunks::<N>();
        if words.len() != count || !rest.is_empty() {
            return Err(TensorError::Content(
                self.tensor_content.len(),
                count.saturating_mul(N),
            ));
        }
        Ok(words.iter().map(|word| of_bytes(*word)).collect())
    }

    /// Reads strings. In `tensor_content`, all lengths come first, as varints, and then the bytes
    /// of all strings.
    fn strings(&self) -> Result<Vec<Bytes>> {
        let count = self.count()?;
        if self.tensor_content.is_empty() {
            return repeated(self.string_val.clone(), count);
        }
        let corrupt = || TensorError::Content(self.tensor_content.len(), count);
        let mut rest = self.tensor_content.clone();
        if count > rest.len() {
            return Err(corrupt());
        }
        let lengths =
            (0..count).map(|_| prost::decode_length_delimiter(&mut rest).map_err(|_| corrupt()));
        let lengths = lengths.collect::<Result<Vec<_>>>()?;
        if lengths
            .iter()
            .try_fold(0usize, |sum, length| sum.checked_add(*length))
            != Some(rest.len())
        {
            return Err(corrupt());
        }
        Ok(lengths
            .into_iter()
            .map(|length| rest.split_to(length))
            .collect())
    }
}

/// Extends `values` to `count` values by repeating the last one; without values, the default.
fn repeated<T: Clone + Default>(mut values: Vec<T>, count: usize) -> Result<Vec<T>> {
    if values.len() > count {
        return Err(TensorError::Content(values.len(), count));
    }
    if values.len() < count {
        if count > MAX_REPEATED {
            return Err(TensorError::TooMany(count));
        }
        values.resize(count, values.last().cloned().unwrap_or_default());
    }
    Ok(values)
}

fn dtype_name(number: i32) -> String {
    const NAMES: [&str; 24] = [
        "invalid",
        "float32",
        "float64",
        "int32",
        "uint8",
        "int16",
        "int8",
        "string",
        "complex64",
        "int64",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
        "qint16",
        "quint16",
        "uint16",
        "complex128",
        "float16",
        "resource",
        "variant",
        "uint32",
        "uint64",
    ];
    let name = usize::try_from(number)
        .ok()
        .and_then(|number| NAMES.get(number));
    name.map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(dtype: i32, shape: &[i64]) -> TensorProto {
        let dim = shape.iter().map(|size| Dim { size: *size }).collect();
        TensorProto {
            dtype,
            tensor_shape: Some(TensorShapeProto {
                dim,
                unknown_rank: false,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn memory_is_bounded_for_large_shapes() {
        assert!(matches!(
            proto(1, &[1 << 40]).values(),
            Err(TensorError::TooMany(_))
        ));
        assert!(matches!(
            proto(1, &[i64::MAX, 2]).values(),
            Err(TensorError::Shape)
        ));
        assert!(matches!(proto(1, &[-1]).values(), Err(TensorError::Shape)));
        let content = Bytes::from_static(&[1]);
        let strings = TensorProto {
            tensor_content: content,
            ..proto(7, &[1 << 40])
        };
        assert!(matches!(strings.values(), Err(TensorError::Content(1, _))));
        assert!(
            matches!(proto(1, &[0]).values(), Ok(TensorValues::Floats(values)) if values.is_empty())
        );
    }

    #[test]
    fn the_growth_of_values_is_known_before_they_are_made() {
        let growth = |tensor: &TensorProto, stored| tensor.growth(stored).unwrap();
        assert_eq!(growth(&proto(1, &[1 << 40]), 8), (8 << 40) - 8);
        assert_eq!(growth(&proto(1, &[1 << 61, 2]), 0), usize::MAX);
        assert_eq!(growth(&proto(2, &[2]), 100), 0);
        let repeated = TensorProto {
            string_val: vec!["ab".into(), "c".into()],
            ..proto(7, &[1000])
        };
        assert_eq!(growth(&repeated, 0), 3 + 999 * 2);
        let content = TensorProto {
            tensor_content: Bytes::from_static(&[1, b'a']),
            ..proto(7, &[1 << 40])
        };
        assert_eq!(growth(&content, 0), 2);
        assert!(matches!(proto(1, &[-1]).growth(0), Err(TensorError::Shape)));
    }

    #[test]
    fn corrupt_content_and_unsupported_dtypes_are_errors() {
        let short = TensorProto {
            tensor_content: Bytes::from_static(&[0; 5]),
            ..proto(1, &[2])
        };
        assert_eq!(
            short.values().unwrap_err().to_string(),
            "the tensor's content is corrupt: found 5 bytes or values, expected 8"
        );
        assert_eq!(
            proto(8, &[]).values().unwrap_err().to_string(),
            "tensors of dtype complex64 are not supported"
        );
        assert!(TensorProto::parse(b"").is_err() && TensorProto::parse(b"\xff").is_err());
        let lengths = TensorProto {
            tensor_content: Bytes::from_static(&[2, 200, 1, b'a']),
            ..proto(7, &[2])
        };
        assert!(matches!(lengths.values(), Err(TensorError::Content(..))));
    }
}
