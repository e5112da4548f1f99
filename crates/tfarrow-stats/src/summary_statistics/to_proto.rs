//! Conversion to a `tensorflow.metadata.v0.DatasetFeatureStatisticsList`, which TFDV and Facets
//! read.

use tfarrow_codec::Kind;

use super::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, HistogramBucket, KindStatistics,
    NumberStatistics, TopValue,
};
use crate::{
    collect::slices::SliceValue,
    excerpt::excerpt,
    proto::{
        CommonStatistics, DatasetFeatureStatistics, DatasetFeatureStatisticsList,
        FeatureNameStatistics, Histogram, NumericStatistics, Path, RankHistogram, StringStatistics,
        feature_name_statistics::{FieldId, Stats, Type},
        histogram::{self, HistogramType},
        rank_histogram,
        string_statistics::FreqAndValue,
    },
    schema::SEQUENCE,
};

/// Number of top values that TFDV lists.
const TOP: usize = 20;
/// Length above which TFDV counts all strings as one value.
const LARGE: u64 = 1_024;
/// The placeholder of TFDV for a value that is not UTF-8.
const NO_TEXT: &str = "__BYTES_VALUE__";

/// TFDV's name of the data set that is sliced.
const ALL: &str = "All Examples";

impl DatasetStatistics {
    /// Converts the statistics to a message with one data set. A feature of several kinds has the
    /// statistics of the kind with most lists, since the message has room for one.
    pub fn to_proto(&self) -> DatasetFeatureStatisticsList {
        DatasetFeatureStatisticsList {
            datasets: vec![self.named("")],
        }
    }

    /// Converts the statistics and those of slices by the feature `by`. A slice is named
    /// `by_value`, as by TFDV.
    pub fn to_proto_with<'a>(
        &self,
        by: &str,
        slices: impl IntoIterator<Item = (&'a SliceValue, &'a Self)>,
    ) -> DatasetFeatureStatisticsList {
        let slices = slices
            .into_iter()
            .map(|(value, slice)| slice.named(&format!("{by}_{value}")));
        DatasetFeatureStatisticsList {
            datasets: std::iter::once(self.named(ALL)).chain(slices).collect(),
        }
    }

    /// Converts the statistics of a data set, or of a slice, with this name.
    fn named(&self, name: &str) -> DatasetFeatureStatistics {
        let features = self
            .features
            .iter()
            .map(|feature| feature_statistics(feature, self.records))
            .collect();
        let name = name.to_owned();
        let num_examples = self.records;
        DatasetFeatureStatistics {
            name,
            num_examples,
            features,
            ..Default::default()
        }
    }
}

/// Converts the statistics of a feature of a data set with this number of records.
fn feature_statistics(feature: &FeatureStatistics, records: u64) -> FeatureNameStatistics {
    let list = feature.is_list.then(|| SEQUENCE.to_owned());
    let step = list.into_iter().chain([feature.name.clone()]).collect();
    // `max_by_key` returns the last of equal maxima; reversed, that is the first kind.
    let kind = feature.kinds.iter().rev().max_by_key(|kind| kind.lists);
    let common = common(feature, kind, records);
    let (r#type, stats) = match kind {
        Some(KindStatistics {
            kind_of: Kind::Int64,
            numbers,
            ..
        }) => (Type::Int, numeric(numbers.as_ref(), common)),
        Some(KindStatistics {
            kind_of: Kind::Float,
            numbers,
            ..
        }) => (Type::Float, numeric(numbers.as_ref(), common)),
        Some(KindStatistics { strings, .. }) => (Type::String, string(strings.as_ref(), common)),
        None => (Type::String, string(None, common)),
    };
    FeatureNameStatistics {
        field_id: Some(FieldId::Path(Path { step })),
        r#type: r#type.into(),
        stats: Some(stats),
        ..Default::default()
    }
}

/// Converts presence and list lengths. A record without a list of this kind is missing; a feature
/// list is present even without a step.
fn common(
    feature: &FeatureStatistics,
    kind: Option<&KindStatistics>,
    records: u64,
) -> CommonStatistics {
    let present = if feature.is_list {
        feature.present
    } else {
        kind.map_or(0, |kind| kind.lists)
    };
    let Some(kind) = kind else {
        return CommonStatistics {
            num_missing: records,
            ..Default::default()
        };
    };
    CommonStatistics {
        num_non_missing: present,
        num_missing: records.saturating_sub(present),
        min_num_values: kind.lengths.min,
        max_num_values: kind.lengths.max,
        avg_num_values: (kind.values as f64 / present.max(1) as f64) as f32,
        tot_num_values: kind.values,
        num_values_histogram: Some(histogram(
            &kind.lengths.quantiles,
            HistogramType::Quantiles,
            0,
        )),
        ..Default::default()
    }
}

/// Converts a histogram.
fn histogram(buckets: &[HistogramBucket], r#type: HistogramType, num_nan: u64) -> Histogram {
    let buckets = buckets.iter().map(|bucket| histogram::Bucket {
        low_value: bucket.low,
        high_value: bucket.high,
        sample_count: bucket.count,
    });
    Histogram {
        num_nan,
        buckets: buckets.collect(),
        r#type: r#type.into(),
        ..Default::default()
    }
}

/// Converts the statistics of numbers; without a value, only the common ones.
fn numeric(numbers: Option<&NumberStatistics>, common: CommonStatistics) -> Stats {
    let common_stats = Some(common);
    let Some(numbers) = numbers.filter(|numbers| numbers.count + numbers.nan > 0) else {
        return Stats::NumStats(NumericStatistics {
            common_stats,
            ..Default::default()
        });
    };
    let histograms = vec![
        histogram(&numbers.histogram, HistogramType::Standard, numbers.nan),
        histogram(&numbers.quantiles, HistogramType::Quantiles, numbers.nan),
    ];
    if numbers.count == 0 {
        return Stats::NumStats(NumericStatistics {
            common_stats,
            histograms,
            ..Default::default()
        });
    }
    Stats::NumStats(NumericStatistics {
        common_stats,
        mean: numbers.mean,
        std_dev: numbers.std_dev,
        num_zeros: numbers.zeros,
        min: numbers.min.to_f64(),
        median: numbers.median,
        max: numbers.max.to_f64(),
        histograms,
    })
}

/// Converts the statistics of byte strings.
fn string(strings: Option<&ByteStringStatistics>, common: CommonStatistics) -> Stats {
    let common_stats = Some(common);
    let Some(strings) = strings else {
        return Stats::StringStats(StringStatistics {
            common_stats,
            ..Default::default()
        });
    };
    let ranks = strings
        .top
        .iter()
        .enumerate()
        .map(|(rank, top)| rank_histogram::Bucket {
            low_rank: rank as u64,
            high_rank: rank as u64,
            label: label(top),
            sample_count: top.count,
        });
    let top = strings.top.iter().take(TOP);
    Stats::StringStats(StringStatistics {
        common_stats,
        unique: strings.distinct,
        top_values: top
            .map(|top| FreqAndValue {
                value: label(top),
                frequency: top.count,
            })
            .collect(),
        avg_length: if strings.total > 0 {
            strings.mean_length as f32
        } else {
            0.0
        },
        rank_histogram: Some(RankHistogram {
            buckets: ranks.collect(),
            ..Default::default()
        }),
        invalid_utf8_count: strings.invalid_utf8,
        ..Default::default()
    })
}

/// Returns the text by which TFDV tells a value apart from others. A long text has its beginning
/// and its hash.
fn label(top: &TopValue) -> String {
    match std::str::from_utf8(&top.value) {
        Err(_) => NO_TEXT.to_owned(),
        Ok(text) if text.len() as u64 == top.length && top.length <= LARGE => text.to_owned(),
        Ok(_) => format!("{} XXH3 {:016x}", excerpt(&top.value, top.length), top.hash),
    }
}
