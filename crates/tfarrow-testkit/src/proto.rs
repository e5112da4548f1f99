//! The messages of `tensorflow/core/example/example.proto` and `feature.proto`, written by hand for
//! `prost`.
//!
//! Maps are declared as repeated entries, which is their form on the wire; of several entries with
//! one key, the last counts. The maps of `prost` accept entries of any wire type, and leave out
//! empty keys and values, which TensorFlow writes.

use prost::Message;

/// `tensorflow.Example`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Example {
    /// The features of the record.
    #[prost(message, optional, tag = "1")]
    pub features: Option<Features>,
}

/// `tensorflow.SequenceExample`
#[derive(Clone, PartialEq, prost::Message)]
pub struct SequenceExample {
    /// The features of the complete record.
    #[prost(message, optional, tag = "1")]
    pub context: Option<Features>,
    /// The features of each step.
    #[prost(message, optional, tag = "2")]
    pub feature_lists: Option<FeatureLists>,
}

/// `tensorflow.Features`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Features {
    /// Features by name.
    #[prost(message, repeated, tag = "1")]
    pub feature: Vec<FeatureEntry>,
}

/// An entry of [`Features`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureEntry {
    /// The name of the feature.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The feature.
    #[prost(message, optional, tag = "2")]
    pub value: Option<Feature>,
}

/// `tensorflow.FeatureLists`
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureLists {
    /// Feature lists by name.
    #[prost(message, repeated, tag = "1")]
    pub feature_list: Vec<FeatureListEntry>,
}

/// An entry of [`FeatureLists`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureListEntry {
    /// The name of the feature list.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The feature list.
    #[prost(message, optional, tag = "2")]
    pub value: Option<FeatureList>,
}

/// `tensorflow.FeatureList`
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureList {
    /// One feature for each step.
    #[prost(message, repeated, tag = "1")]
    pub feature: Vec<Feature>,
}

/// `tensorflow.Feature`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Feature {
    /// The values, if a kind is set.
    #[prost(oneof = "KindOneof", tags = "1, 2, 3")]
    pub kind: Option<KindOneof>,
}

/// The oneof of [`Feature`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum KindOneof {
    /// `bytes_list`
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    /// `float_list`
    #[prost(message, tag = "2")]
    Float(FloatList),
    /// `int64_list`
    #[prost(message, tag = "3")]
    Int64(Int64List),
}

/// `tensorflow.BytesList`
#[derive(Clone, PartialEq, prost::Message)]
pub struct BytesList {
    /// The values.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// `tensorflow.FloatList`
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The values.
    #[prost(float, repeated, packed = "true", tag = "1")]
    pub value: Vec<f32>,
}

/// `tensorflow.Int64List`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Int64List {
    /// The values.
    #[prost(int64, repeated, packed = "true", tag = "1")]
    pub value: Vec<i64>,
}

/// Returns a length-delimited field of any message.
pub fn field(number: u32, body: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    prost::encoding::bytes::encode(number, &body.to_vec(), &mut field);
    field
}

/// Returns the bytes of an Example with these features, in this order.
pub fn example<N: Into<String>>(features: impl IntoIterator<Item = (N, KindOneof)>) -> Vec<u8> {
    let entry = |(name, kind): (N, KindOneof)| {
        let value = Some(Feature { kind: Some(kind) });
        FeatureEntry {
            key: Some(name.into()),
            value,
        }
    };
    let feature = features.into_iter().map(entry).collect();
    Example {
        features: Some(Features { feature }),
    }
    .encode_to_vec()
}

impl KindOneof {
    /// Creates a feature of one byte string.
    pub fn bytes(value: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(BytesList {
            value: vec![value.into()],
        })
    }

    /// Creates a feature of floats.
    pub fn floats(values: impl IntoIterator<Item = f32>) -> Self {
        Self::Float(FloatList {
            value: values.into_iter().collect(),
        })
    }

    /// Creates a feature of integers.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Self {
        Self::Int64(Int64List {
            value: values.into_iter().collect(),
        })
    }
}
