//! Drift and skew: the distances between the distributions of two data sets, by TFDV's measures
//! (`anomalies/metrics.cc`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tfarrow_codec::Role;

use crate::{
    collect::{
        Statistics,
        bytes::{BytesAccumulator, ValueFrequency},
        distinct::KeptValue,
        feature::FeatureAccumulator,
    },
    excerpt::{beginning, excerpt},
    proto::{Feature, FeatureComparator, Schema},
    schema::{each_feature, feature_path, is_deprecated},
    summary_statistics::{HistogramBucket, NumberStatistics, summarize},
    validation::{Anomaly, AnomalyKind, Validation},
};

/// A measure of the distance between two distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Measure {
    /// The largest difference between the shares of a value: L-infinity, from 0 to 1.
    LInfty,
    /// The Jensen-Shannon divergence in bits, from 0 to 1; for numbers, that of histograms with 10
    /// buckets each.
    JensenShannonDivergence,
    /// The largest difference between the counts of a value, divided by the number of values of
    /// both data sets.
    NormalizedAbsoluteDifference,
}

/// The distance of a feature from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// The feature, as a path of the schema.
    pub feature: String,
    /// The measure.
    pub measure: Measure,
    /// The distance, in the unit of the measure.
    pub value: f64,
    /// The threshold of the schema or the caller, the smallest if there are several; `None` if
    /// there is none.
    pub threshold: Option<f64>,
    /// Whether a data set has too many distinct values to count, so that the distance is between
    /// samples.
    pub is_estimated: bool,
    /// The value with the largest difference, for measures that are such a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
}

/// The names of the control and of the treatment of a comparator: the baseline is the control.
const DRIFT: [&str; 2] = ["previous", "current"];
const SKEW: [&str; 2] = ["serving", "training"];

impl Validation {
    /// Compares the data set with a baseline: the number of records, and the features'
    /// distributions. Adds an anomaly for each violated threshold, and raises the threshold in the
    /// updated schema.
    ///
    /// Thresholds are those of the schema's drift and skew comparators. For a feature whose
    /// comparators set none, `most` is the threshold of L-infinity (strings) or of the
    /// Jensen-Shannon divergence (numbers), unless the distance is estimated.
    ///
    /// Returns the distances of the features that both data sets have, without deprecated ones.
    pub fn compare(&mut self, baseline: &Statistics, most: Option<f64>) -> Vec<Distance> {
        let mut anomalies = records(&mut self.updated, &self.statistics, baseline);
        let deprecated = self.deprecated_features();
        let now = by_name(&self.statistics);
        let before = by_name(baseline);
        let mut distances = Vec::new();
        each_feature(&mut self.updated, |feature, is_list, _| {
            let key = (is_list, feature.name().to_owned());
            if deprecated.contains(&key) {
                return;
            }
            let path = feature_path(is_list, feature.name());
            match (now.get(&key), before.get(&key)) {
                (None, _) => {}
                (Some(_), None) => missing_control(feature, &path, &mut anomalies),
                (Some(now), Some(before)) => {
                    for mut distance in measure(&path, now, before) {
                        let most = most.filter(|_| is_default_measure(&distance, feature, now));
                        apply_thresholds(feature, &mut distance, most, &mut anomalies);
                        distances.push(distance);
                    }
                }
            }
        });
        self.anomalies.extend(anomalies);
        self.anomalies.sort_by(|a, b| a.feature.cmp(&b.feature));
        distances
    }

    /// The deprecated features of the updated schema, by whether they are feature lists and by
    /// their names. The validator has deprecated features of an unexpected type; they are compared
    /// nevertheless.
    fn deprecated_features(&mut self) -> BTreeSet<(bool, String)> {
        let mut changed = BTreeSet::new();
        for anomaly in &self.anomalies {
            if anomaly.kind == AnomalyKind::UnexpectedDataType {
                changed.extend(anomaly.feature.clone());
            }
        }
        let mut deprecated = BTreeSet::new();
        each_feature(&mut self.updated, |feature, is_list, _| {
            if is_deprecated(feature) && !changed.contains(&feature_path(is_list, feature.name())) {
                deprecated.insert((is_list, feature.name().to_owned()));
            }
        });
        deprecated
    }
}

/// Removes the comparators of a feature that the baseline lacks, with an anomaly for each of them
/// that has a threshold.
fn missing_control(feature: &mut Feature, path: &str, anomalies: &mut Vec<Anomaly>) {
    for [control, _] in remove_comparators(feature) {
        let text = format!("The {control} data has no values of the feature.");
        let short = format!("{control} data missing");
        anomalies.push(Anomaly {
            feature: Some(path.to_owned()),
            ..Anomaly::new(AnomalyKind::ComparatorControlDataMissing, short, text)
        });
    }
}

/// Compares a distance with the thresholds of the feature, and with `most` of the caller. Adds an
/// anomaly for each threshold that it exceeds, and raises the threshold.
fn apply_thresholds(
    feature: &mut Feature,
    distance: &mut Distance,
    most: Option<f64>,
    anomalies: &mut Vec<Anomaly>,
) {
    let mut limits = thresholds(feature, distance.measure);
    limits.extend(most.map(|most| (DRIFT, most)));
    for (names, threshold) in limits {
        distance.threshold = Some(match distance.threshold {
            Some(held) => held.min(threshold),
            None => threshold,
        });
        if distance.value > threshold {
            anomalies.push(threshold_exceeded(distance, names, threshold));
            raise(feature, names == SKEW, distance.measure, distance.value);
        }
    }
}

/// Accumulators by names, and by whether they are of feature lists.
type FeaturesByName<'a> = BTreeMap<(bool, String), &'a FeatureAccumulator>;

/// Returns the accumulators of all features by name.
fn by_name(statistics: &Statistics) -> FeaturesByName<'_> {
    let mut by_name = BTreeMap::new();
    for (_, values) in statistics.features() {
        let is_list = values.role == Role::Sequence;
        by_name.insert((is_list, values.name.clone()), values);
    }
    by_name
}

/// Compares the numbers of records, `now` and `before`.
fn records(schema: &mut Schema, now: &Statistics, before: &Statistics) -> Vec<Anomaly> {
    let now = now.inferred.summary.records();
    let before = before.inferred.summary.records();
    let Some(constraints) = &mut schema.dataset_constraints else {
        return Vec::new();
    };
    let comparators = [
        (
            "previous span",
            &mut constraints.num_examples_drift_comparator,
        ),
        (
            "previous version",
            &mut constraints.num_examples_version_comparator,
        ),
    ];
    let mut found = Vec::new();
    for (name, comparator) in comparators {
        let Some(comparator) = comparator else {
            continue;
        };
        let ratio = now as f64 / before as f64;
        let counts =
            format!("There are {now} records, and {before} in the {name}: the ratio is {ratio:.6}");
        if let Some(most) = comparator
            .max_fraction_threshold
            .as_mut()
            .filter(|most| ratio > **most)
        {
            let short = format!("High num examples in current dataset versus the {name}.");
            found.push(Anomaly::new(
                AnomalyKind::ComparatorHighNumExamples,
                short,
                format!("{counts}, the bound is {most}."),
            ));
            *most = ratio;
        }
        if let Some(least) = comparator
            .min_fraction_threshold
            .as_mut()
            .filter(|least| ratio < **least)
        {
            let short = format!("Low num examples in current dataset versus the {name}.");
            found.push(Anomaly::new(
                AnomalyKind::ComparatorLowNumExamples,
                short,
                format!("{counts}, the bound is {least}."),
            ));
            *least = ratio;
        }
    }
    found
}

/// Returns the comparators of a feature, each with the names of its control and its treatment.
fn comparators(feature: &Feature) -> impl Iterator<Item = ([&'static str; 2], &FeatureComparator)> {
    let both = [
        (DRIFT, feature.drift_comparator.as_ref()),
        (SKEW, feature.skew_comparator.as_ref()),
    ];
    both.into_iter()
        .filter_map(|(names, comparator)| Some((names, comparator?)))
}

/// Returns the threshold of a comparator for a measure.
fn threshold(comparator: &FeatureComparator, measure: Measure) -> Option<f64> {
    match measure {
        Measure::LInfty => comparator.infinity_norm.as_ref()?.threshold,
        Measure::JensenShannonDivergence => {
            comparator.jensen_shannon_divergence.as_ref()?.threshold
        }
        Measure::NormalizedAbsoluteDifference => {
            comparator.normalized_abs_difference.as_ref()?.threshold
        }
    }
}

const MEASURES: [Measure; 3] = [
    Measure::LInfty,
    Measure::JensenShannonDivergence,
    Measure::NormalizedAbsoluteDifference,
];

/// Returns whether a comparator has a threshold.
fn has_threshold(comparator: &FeatureComparator) -> bool {
    MEASURES
        .iter()
        .any(|measure| threshold(comparator, *measure).is_some())
}

/// Returns the thresholds of a feature for a measure.
fn thresholds(feature: &Feature, measure: Measure) -> Vec<([&'static str; 2], f64)> {
    comparators(feature)
        .filter_map(|(names, comparator)| Some((names, threshold(comparator, measure)?)))
        .collect()
}

/// Removes the comparators of a feature, and returns the names of those that have a threshold.
fn remove_comparators(feature: &mut Feature) -> Vec<[&'static str; 2]> {
    let with_threshold: Vec<_> = comparators(feature)
        .filter(|(_, comparator)| has_threshold(comparator))
        .map(|(names, _)| names)
        .collect();
    (feature.drift_comparator, feature.skew_comparator) = (None, None);
    with_threshold
}

/// Returns whether the threshold of the caller applies to a distance: it is no estimate, its
/// measure is the default for values of this kind, and the comparators of the feature set no
/// threshold for any measure.
fn is_default_measure(distance: &Distance, feature: &Feature, values: &FeatureAccumulator) -> bool {
    let default = if values.bytes.is_some() {
        Measure::LInfty
    } else {
        Measure::JensenShannonDivergence
    };
    distance.measure == default
        && !distance.is_estimated
        && !comparators(feature).any(|(_, comparator)| has_threshold(comparator))
}

/// Raises the threshold of a comparator, so that the distance is allowed.
fn raise(feature: &mut Feature, is_skew: bool, measure: Measure, to: f64) {
    let comparator = if is_skew {
        &mut feature.skew_comparator
    } else {
        &mut feature.drift_comparator
    };
    let comparator = comparator.get_or_insert_default();
    match measure {
        Measure::LInfty => comparator.infinity_norm.get_or_insert_default().threshold = Some(to),
        Measure::JensenShannonDivergence => {
            comparator
                .jensen_shannon_divergence
                .get_or_insert_default()
                .threshold = Some(to);
        }
        Measure::NormalizedAbsoluteDifference => {
            comparator
                .normalized_abs_difference
                .get_or_insert_default()
                .threshold = Some(to);
        }
    }
}

/// Makes the anomaly of a distance above its threshold.
fn threshold_exceeded(
    distance: &Distance,
    [control, treatment]: [&str; 2],
    threshold: f64,
) -> Anomaly {
    let (kind, name) = match distance.measure {
        Measure::LInfty => (AnomalyKind::ComparatorLInftyHigh, "Linfty distance"),
        Measure::JensenShannonDivergence => (
            AnomalyKind::ComparatorJensenShannonDivergenceHigh,
            "approximate Jensen-Shannon divergence",
        ),
        Measure::NormalizedAbsoluteDifference => (
            AnomalyKind::ComparatorNormalizedAbsoluteDifferenceHigh,
            "normalized absolute difference",
        ),
    };
    let most = distance
        .most
        .as_ref()
        .map_or(String::new(), |most| format!(" {most:?} differs most."));
    let value = distance.value;
    let text = format!(
        "The {name} between {treatment} and {control} is {value:.6}, above {threshold}.{most}"
    );
    let short = format!("High {name} between {treatment} and {control}");
    Anomaly {
        feature: Some(distance.feature.clone()),
        ..Anomaly::new(kind, short, text)
    }
}

/// Returns the distances by all measures that apply to values of this kind.
fn measure(path: &str, now: &FeatureAccumulator, before: &FeatureAccumulator) -> Vec<Distance> {
    let is_estimated = is_counted_by_estimate(now) || is_counted_by_estimate(before);
    let measured = if now.bytes.is_some() || before.bytes.is_some() {
        measure_strings(now, before, is_estimated)
    } else {
        measure_numbers(now, before)
    };
    let mut distances = Vec::with_capacity(measured.len());
    for (measure, value, most) in measured {
        distances.push(Distance {
            feature: path.to_owned(),
            measure,
            value,
            threshold: None,
            is_estimated,
            most,
        });
    }
    distances
}

/// Measures strings: the value of each measure, and the value with the largest difference.
fn measure_strings(
    now: &FeatureAccumulator,
    before: &FeatureAccumulator,
    is_estimated: bool,
) -> Vec<(Measure, f64, Option<String>)> {
    let both = counts_of_values(now.bytes.as_deref(), before.bytes.as_deref());
    let [all, all_before] =
        [now, before].map(|of| of.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64);
    let (most, infinity) = largest(&both, |counts| {
        let (share, share_before) = counts.shares(all, all_before);
        (share - share_before).abs()
    });
    let (most_often, absolute) = largest(&both, |counts| {
        (counts.now - counts.before).abs() / (all + all_before)
    });
    let mut found = vec![(Measure::LInfty, infinity, most)];
    // Samples of mostly unique values have little in common, even if their distributions are equal,
    // so that their divergence would measure the sampling.
    if now.bytes.is_some() && before.bytes.is_some() && !is_estimated {
        let shares = both.iter().map(|counts| counts.shares(all, all_before));
        found.push((Measure::JensenShannonDivergence, divergence(shares), None));
    }
    found.push((Measure::NormalizedAbsoluteDifference, absolute, most_often));
    found
}

/// Measures numbers, if both data sets have them.
fn measure_numbers(
    now: &FeatureAccumulator,
    before: &FeatureAccumulator,
) -> Vec<(Measure, f64, Option<String>)> {
    let (Some(now), Some(before)) = (numbers(now), numbers(before)) else {
        return Vec::new();
    };
    let aligned = aligned(&now, &before);
    let divergence = divergence(aligned.into_iter());
    vec![(Measure::JensenShannonDivergence, divergence, None)]
}

/// Summarizes the numbers of a feature; `None` if it has none.
fn numbers(values: &FeatureAccumulator) -> Option<NumberStatistics> {
    match (&values.floats, &values.ints) {
        (Some(floats), _) => Some(summarize::numbers(floats)),
        (None, Some(ints)) => Some(summarize::numbers(ints)),
        (None, None) => None,
    }
}

/// Returns whether a feature has too many distinct values to count each.
fn is_counted_by_estimate(values: &FeatureAccumulator) -> bool {
    values
        .bytes
        .as_ref()
        .is_some_and(|bytes| !bytes.is_counted())
}

/// A value, and its number of occurrences in both data sets.
struct CountsOfValue<'a> {
    value: &'a KeptValue,
    now: f64,
    before: f64,
}

impl CountsOfValue<'_> {
    /// Returns the shares of the value in data sets with `all` and `all_before` strings. A data set
    /// without strings has a share of 0 of each value.
    fn shares(&self, all: f64, all_before: f64) -> (f64, f64) {
        (self.now / all.max(1.0), self.before / all_before.max(1.0))
    }
}

/// Returns the largest difference, and the beginning of its value; the last of equal ones.
fn largest(
    counts: &[CountsOfValue<'_>],
    difference: impl Fn(&CountsOfValue<'_>) -> f64,
) -> (Option<String>, f64) {
    let mut most = 0.0;
    let mut value = None;
    for counts in counts {
        let found = difference(counts);
        if found >= most {
            (most, value) = (found, Some(counts.value));
        }
    }
    (value.map(|value| excerpt(&value.bytes, value.length)), most)
}

/// Returns the counts of each value in both data sets, in the order of the beginnings of values;
/// those that samples stand for, if there are too many values to count.
fn counts_of_values<'a>(
    now: Option<&'a BytesAccumulator>,
    before: Option<&'a BytesAccumulator>,
) -> Vec<CountsOfValue<'a>> {
    let mut both = BTreeMap::new();
    for (bytes, is_now) in [(now, true), (before, false)] {
        let Some(bytes) = bytes else {
            continue;
        };
        for ValueFrequency { hash, value, count } in bytes.frequencies() {
            // One data set may have the value whole, and the other one its beginning.
            let key = (beginning(&value.bytes), hash);
            let counts = both.entry(key).or_insert(CountsOfValue {
                value,
                now: 0.0,
                before: 0.0,
            });
            if is_now {
                counts.now = count;
            } else {
                counts.before = count;
            }
        }
    }
    both.into_values().collect()
}

/// Returns the Jensen-Shannon divergence in bits of two distributions, given the two shares of each
/// part.
///
/// ```text
/// JSD = (sum p log2(p / m) + sum q log2(q / m)) / 2,    m = (p + q) / 2
/// ```
fn divergence(shares: impl Iterator<Item = (f64, f64)>) -> f64 {
    let terms = shares.map(|(a, b)| {
        let mean = f64::midpoint(a, b);
        divergence_term(a, mean) + divergence_term(b, mean)
    });
    (terms.sum::<f64>() / 2.0).clamp(0.0, 1.0)
}

/// Returns the term of a share in a sum of [`divergence`].
#[inline]
fn divergence_term(share: f64, mean: f64) -> f64 {
    if share > 0.0 {
        share * (share / mean).log2()
    } else {
        0.0
    }
}

/// Aligns two histograms, and returns the shares of both in each part. A part lies between two
/// adjacent bounds of either histogram; a bucket with a single value is a part of its own. Infinite
/// values and NaNs of the two data sets are counted as different.
///
/// ```text
/// now       |    4    |    4    |          parts    0-5   5-10  10-15  15-20
///           0         10        20         now       2     2      2      2
/// before         |    4    |               before    0     2      2      0
///                5         15
/// ```
fn aligned(now: &NumberStatistics, before: &NumberStatistics) -> Vec<(f64, f64)> {
    let both = [now, before];
    let mut parts: Vec<[f64; 2]> = Vec::new();
    for bounds in bounds_of_buckets(both).windows(2) {
        parts.push(both.map(|numbers| {
            let finite = finite_buckets(numbers);
            finite.map(|bucket| within(bucket, bounds)).sum()
        }));
    }
    for point in points_of_buckets(both) {
        parts.push(both.map(|numbers| {
            let here = finite_buckets(numbers).filter(|bucket| point_of(bucket) == Some(point));
            here.map(|bucket| bucket.count).sum()
        }));
    }
    let infinite = both.map(|numbers| {
        let infinite = numbers.histogram.iter().filter(|bucket| !is_finite(bucket));
        infinite.map(|bucket| bucket.count).sum()
    });
    for [a, b] in [infinite, [now.nan as f64, before.nan as f64]] {
        parts.extend([[a, 0.0], [0.0, b]]);
    }
    let mut all = [0.0; 2];
    for part in &parts {
        all[0] += part[0];
        all[1] += part[1];
    }
    let [all, all_before] = all.map(|all| all.max(f64::MIN_POSITIVE));
    parts
        .into_iter()
        .map(|[now, before]| (now / all, before / all_before))
        .collect()
}

fn is_finite(bucket: &HistogramBucket) -> bool {
    bucket.low.is_finite() && bucket.high.is_finite()
}

fn finite_buckets(numbers: &NumberStatistics) -> impl Iterator<Item = &HistogramBucket> {
    numbers.histogram.iter().filter(|bucket| is_finite(bucket))
}

/// The bits of the value of a bucket with a single value, which are the same for -0.0 and 0.0.
fn point_of(bucket: &HistogramBucket) -> Option<u64> {
    (bucket.low == bucket.high).then(|| (bucket.low + 0.0).to_bits())
}

/// The bounds of the buckets of both histograms, in order.
fn bounds_of_buckets(both: [&NumberStatistics; 2]) -> Vec<f64> {
    let mut bounds = Vec::new();
    for bucket in both.into_iter().flat_map(finite_buckets) {
        if bucket.low < bucket.high {
            bounds.extend([bucket.low, bucket.high]);
        }
    }
    // `total_cmp` orders -0.0 before 0.0; bounds are finite, so that this is the only difference
    // from `<`.
    bounds.sort_unstable_by(f64::total_cmp);
    bounds.dedup();
    bounds
}

/// The single values of the buckets of both histograms, see [`point_of`].
fn points_of_buckets(both: [&NumberStatistics; 2]) -> BTreeSet<u64> {
    let buckets = both.into_iter().flat_map(finite_buckets);
    buckets.filter_map(point_of).collect()
}

/// Returns the count of a bucket within bounds, on the assumption that its values are spread
/// evenly.
fn within(bucket: &HistogramBucket, bounds: &[f64]) -> f64 {
    let &[low, high] = bounds else { return 0.0 };
    let overlap = bucket.high.min(high) - bucket.low.max(low);
    if overlap > 0.0 {
        bucket.count * overlap / (bucket.high - bucket.low)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_0_for_equal_and_1_for_disjoint_distributions() {
        assert_eq!(divergence([(0.5, 0.5), (0.5, 0.5)].into_iter()), 0.0);
        assert_eq!(divergence([(1.0, 0.0), (0.0, 1.0)].into_iter()), 1.0);
        // 0.75 log2(0.75 / 0.5) + 0.25 log2(0.25 / 0.5), of both.
        let some = divergence([(0.75, 0.25), (0.25, 0.75)].into_iter());
        assert!((some - 0.188_721_875_540_867).abs() < 1e-12, "{some}");
    }

    #[test]
    fn a_bucket_is_split_at_the_bounds_of_the_other_histogram() {
        let bucket = HistogramBucket {
            low: 0.0,
            high: 10.0,
            count: 20.0,
        };
        assert_eq!(
            [[0.0, 5.0], [5.0, 20.0], [10.0, 20.0]].map(|bounds| within(&bucket, &bounds)),
            [10.0, 10.0, 0.0]
        );
    }
}
