//! The summary statistics of a data set, for reports and for a `DatasetFeatureStatisticsList`
//! message.
//!
//! The types serialize to the JSON of `tfarrow stats`. They nest as the data does:
//!
//! ```text
//! DatasetStatistics ─▶ FeatureStatistics ─▶ KindStatistics ─┬▶ ListLengths
//!  records, bytes       present, missing     lists, values  ├▶ NumberStatistics       (int64_list, float_list)
//!                                                           └▶ ByteStringStatistics ─▶ ImageStatistics, TopValue
//! ```

mod distribution;
pub(crate) mod quantiles;
pub(crate) mod summarize;
mod to_proto;

use serde::Serialize;
use tfarrow_codec::Kind;

pub use self::{
    distribution::{Distribution, DistributionSide, PERCENTAGES},
    quantiles::HistogramBucket,
};
use crate::{
    collect::{
        bytes::ValueFrequency,
        formats::{ValueFormat, is_text},
        numbers::NumberValue,
    },
    excerpt::text_or_bytes,
};

/// The statistics of a data set, or of a slice of one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DatasetStatistics {
    /// Number of records.
    pub records: u64,
    /// Size of their payloads in bytes.
    pub bytes: u64,
    /// Number of shards that were read and number of all shards, where only a sample was read.
    pub sampled: Option<(usize, usize)>,
    /// The features, ordered by name.
    pub features: Vec<FeatureStatistics>,
}

/// The statistics of one feature.
#[derive(Clone, Debug, Serialize)]
pub struct FeatureStatistics {
    /// The name.
    pub name: String,
    /// Whether it is a feature list of SequenceExamples.
    pub is_list: bool,
    /// Number of records that have the feature, including those without a kind.
    pub present: u64,
    /// Number of records that do not have the feature.
    pub missing: u64,
    /// Number of records, or of steps of a feature list, that have the feature without a kind: the
    /// `oneof` is not set.
    pub unset: u64,
    /// Smallest and largest number of steps of a feature list.
    pub steps: Option<(u64, u64)>,
    /// The statistics of each kind that the feature has: one, unless records disagree.
    pub kinds: Vec<KindStatistics>,
}

/// The statistics of the lists of one kind of a feature.
#[derive(Clone, Debug, Serialize)]
pub struct KindStatistics {
    /// The kind by its name in `feature.proto`: `bytes_list`, `float_list` or `int64_list`.
    pub kind: &'static str,
    #[serde(skip)]
    pub(crate) kind_of: Kind,
    /// Number of lists: one for each record, or for each step.
    pub lists: u64,
    /// Number of lists without a value.
    pub empty: u64,
    /// Number of values of all lists.
    pub values: u64,
    /// The lengths of lists.
    pub lengths: ListLengths,
    /// The numbers of an `int64_list` or a `float_list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumberStatistics>,
    /// The byte strings of a `bytes_list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strings: Option<ByteStringStatistics>,
}

/// The numbers of values that lists have.
#[derive(Clone, Debug, Serialize)]
pub struct ListLengths {
    /// Length of the shortest list.
    pub min: u64,
    /// Mean length.
    pub mean: f64,
    /// Length of the longest list.
    pub max: u64,
    /// The 11 deciles, from the minimum to the maximum.
    pub deciles: Vec<f64>,
    /// Size of the sample of lists that the deciles are of; `None` if they are of all lists.
    pub sampled: Option<u64>,
    #[serde(skip)]
    pub(crate) quantiles: Vec<HistogramBucket>,
}

/// The statistics of numbers. NaNs are counted in `nan` and in no other field.
#[derive(Clone, Debug, Serialize)]
pub struct NumberStatistics {
    /// Number of values that are not NaN.
    pub count: u64,
    /// Number of NaNs.
    pub nan: u64,
    /// Number of zeros.
    pub zeros: u64,
    /// Number of values that are positive infinity.
    pub positive_infinities: u64,
    /// Number of values that are negative infinity.
    pub negative_infinities: u64,
    /// The mean; infinite if there are infinities of one sign, NaN if there are infinities of both
    /// signs.
    pub mean: f64,
    /// The population standard deviation; NaN if a value is infinite.
    pub std_dev: f64,
    /// The skewness of the finite values, from the same sample as the median; NaN if they do not
    /// vary. 0 for symmetric distributions, 2 for an exponential one.
    pub skewness: f64,
    /// The minimum.
    pub min: NumberValue,
    /// The median, as a float: integers beyond 2^53 may be rounded.
    pub median: f64,
    /// The maximum.
    pub max: NumberValue,
    /// The 11 deciles, from the minimum to the maximum, as floats.
    pub deciles: Vec<f64>,
    /// The histogram with buckets of equal width.
    pub histogram: Vec<HistogramBucket>,
    /// The histogram with buckets of equal counts.
    pub quantiles: Vec<HistogramBucket>,
    /// Size of the sample that the median, the deciles and the histograms are of; `None` if they
    /// are of all values.
    pub sampled: Option<u64>,
    /// Whether no two values of this sample are equal.
    #[serde(skip)]
    pub(crate) are_distinct: bool,
}

/// The statistics of byte strings.
#[derive(Clone, Debug, Serialize)]
pub struct ByteStringStatistics {
    /// Number of values.
    pub total: u64,
    /// Number of distinct values.
    pub distinct: u64,
    /// Whether `distinct` is exact; otherwise it is an estimate with a standard error of about 0.8
    /// %.
    pub is_distinct_exact: bool,
    /// Length of the shortest value in bytes.
    pub min_length: u64,
    /// Mean length in bytes.
    pub mean_length: f64,
    /// Length of the longest value in bytes.
    pub max_length: u64,
    /// Number of values that are not UTF-8.
    pub invalid_utf8: u64,
    /// The formats that values look like (see [`ValueFormat::name`]), each with its number of
    /// values.
    pub formats: Vec<(&'static str, u64)>,
    /// The sizes of the values that look like images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageStatistics>,
    /// The most frequent values, in descending order of their counts.
    pub top: Vec<TopValue>,
    /// Size of the sample that `top` is of, whose counts are estimates; `None` if it is of all
    /// values.
    pub sampled: Option<u64>,
}

/// The sizes of images in pixels, as their headers have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImageStatistics {
    /// Number of images with a readable header.
    pub count: u64,
    /// Number of values that begin as an image does but have no readable header.
    pub damaged: u64,
    /// Smallest and largest width.
    pub width: Option<(u32, u32)>,
    /// Smallest and largest height.
    pub height: Option<(u32, u32)>,
}

/// A frequent value. Values are counted by a hash of the whole value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopValue {
    /// The value, or its first 256 bytes, which is all that is kept of the values of large data
    /// sets. In JSON it has at most 256 bytes.
    #[serde(serialize_with = "text_or_bytes")]
    pub value: Box<[u8]>,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// XXH3 of the whole value, which tells it apart from values that begin as it does.
    #[serde(skip)]
    pub hash: u64,
    /// Number of times the value occurs; estimated if values were sampled.
    pub count: f64,
}

impl TopValue {
    /// Copies a value and its count.
    pub(crate) fn of(frequency: ValueFrequency<'_>) -> Self {
        let ValueFrequency { hash, value, count } = frequency;
        Self {
            value: value.bytes.clone(),
            length: value.length,
            hash,
            count,
        }
    }

    /// Returns the format that the value looks like.
    pub fn format(&self) -> ValueFormat {
        ValueFormat::of(
            &self.value,
            is_text(&self.value, std::str::from_utf8(&self.value).is_ok()),
        )
    }

    /// Returns the value if it is text; `None` if it is binary or has [control
    /// characters](tfarrow_codec::infer::has_control_character).
    pub fn text(&self) -> Option<&str> {
        let is_text = matches!(
            self.format(),
            ValueFormat::Empty | ValueFormat::Text | ValueFormat::Json
        );
        std::str::from_utf8(&self.value).ok().filter(|_| is_text)
    }
}

impl FeatureStatistics {
    /// Returns the number of records without a value that has a kind. Feature lists without a kind
    /// are not counted, since `unset` counts their steps.
    pub fn absent(&self) -> u64 {
        self.missing + if self.is_list { 0 } else { self.unset }
    }
}
