//! How far two data sets are apart, feature by feature: TFDV's measures of drift and skew (`anomalies/metrics.cc` there).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tfarrow_codec::Role;

use crate::{
    collect::{
        Statistics,
        bytes::{BytesAccumulator, DistinctValues},
        feature::FeatureAccumulator,
    },
    proto::{Feature, FeatureComparator, Schema},
    schema::{each_feature, feature_path, is_deprecated},
    summary_statistics::{HistogramBucket, NumberStatistics, excerpt, summarize},
    validation::{Anomaly, AnomalyKind, Validation},
};

/// How the distance of two distributions is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Measure {
    /// The largest difference of the shares that a value has.
    LInfty,
    /// The Jensen-Shannon divergence, from 0 to 1; of numbers, of their histograms of 10 buckets.
    JensenShannonDivergence,
    /// The largest difference of the numbers that there are of a value, as a share of all values of both.
    NormalizedAbsoluteDifference,
}

/// How far a feature is from what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// The feature, as a path of the schema.
    pub feature: String,
    /// How it is measured.
    pub measure: Measure,
    /// The distance.
    pub value: f64,
    /// What it may be at most, where something says so.
    pub threshold: Option<f64>,
    /// Whether values were too many to count, so that it is that of samples.
    pub is_estimated: bool,
    /// The value that differs most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
}

/// What a comparator holds against each other: its control, and what is looked at.
const DRIFT: [&str; 2] = ["previous", "current"];
const SKEW: [&str; 2] = ["serving", "training"];

impl Validation {
    /// Compares with a data set as it was: what drift and skew comparators of the schema ask for, and the number of
    /// records. `most` is what may differ where no comparator says so: of strings in L-infinity, of numbers in
    /// Jensen-Shannon divergence. Adds to the anomalies.
    pub fn compare(&mut self, baseline: &Statistics, most: Option<f64>) -> Vec<Distance> {
        let mut anomalies = records(&mut self.updated, &self.statistics, baseline);
        let (now, before) = (by_name(&self.statistics), by_name(baseline));
        // A feature that was found to be of another type is compared all the same.
        let has_changed = |anomaly: &&Anomaly| anomaly.kind == AnomalyKind::UnexpectedDataType;
        let changed: BTreeSet<_> =
            self.anomalies.iter().filter(has_changed).filter_map(|anomaly| anomaly.feature.clone()).collect();
        let mut deprecated = BTreeSet::new();
        each_feature(&mut self.updated, |feature, is_list, _| {
            if is_deprecated(feature) && !changed.contains(&feature_path(is_list, feature.name())) {
                deprecated.insert((is_list, feature.name().to_owned()));
            }
        });
        let mut distances = Vec::new();
        each_feature(&mut self.updated, |feature, is_list, _| {
            let key = (is_list, feature.name().to_owned());
            let path = feature_path(is_list, feature.name());
            if deprecated.contains(&key) {
                return;
            }
            let Some(values) = now.get(&key) else { return };
            let Some(control) = before.get(&key) else {
                for [control, _] in take_asking(feature) {
                    let text = format!("The {control} data has no values of it.");
                    let short = format!("{control} data missing");
                    let anomaly = Anomaly::new(AnomalyKind::ComparatorControlDataMissing, short, text);
                    anomalies.push(Anomaly { feature: Some(path.clone()), ..anomaly });
                }
                return;
            };
            for mut distance in measure(&path, values, control) {
                let (limits, is_left) = thresholds(feature, distance.measure);
                let is_default = is_left && !distance.is_estimated && is_usual(distance.measure, values);
                let default = most.filter(|_| is_default);
                for (names, threshold) in limits.into_iter().chain(default.map(|most| (DRIFT, most))) {
                    distance.threshold = Some(distance.threshold.map_or(threshold, |held| held.min(threshold)));
                    if distance.value > threshold {
                        anomalies.push(too_far(&distance, names, threshold));
                        raise(feature, names == SKEW, distance.measure, distance.value);
                    }
                }
                distances.push(distance);
            }
        });
        self.anomalies.extend(anomalies);
        self.anomalies.sort_by(|a, b| a.feature.cmp(&b.feature));
        distances
    }
}

type FeaturesByName<'a> = BTreeMap<(bool, String), &'a FeatureAccumulator>;

fn by_name(statistics: &Statistics) -> FeaturesByName<'_> {
    let named = |values: &FeatureAccumulator| (values.role == Role::Sequence, values.name.clone());
    statistics.features().map(|(_, values)| (named(values), values)).collect()
}

/// How many records there are now, and were.
fn records(schema: &mut Schema, now: &Statistics, before: &Statistics) -> Vec<Anomaly> {
    let (now, before) = (now.inferred.summary.records(), before.inferred.summary.records());
    let Some(constraints) = &mut schema.dataset_constraints else { return Vec::new() };
    let comparators = [
        ("previous span", &mut constraints.num_examples_drift_comparator),
        ("previous version", &mut constraints.num_examples_version_comparator),
    ];
    let mut found = Vec::new();
    for (name, comparator) in comparators {
        let Some(comparator) = comparator else { continue };
        let ratio = now as f64 / before as f64;
        let text = |bound: f64| {
            format!("There are {now} records, {before} in the {name}: {ratio:.6} of it; the bound is {bound}.")
        };
        if let Some(most) = comparator.max_fraction_threshold.as_mut().filter(|most| ratio > **most) {
            let short = format!("High num examples in current dataset versus the {name}.");
            found.push(Anomaly::new(AnomalyKind::ComparatorHighNumExamples, short, text(*most)));
            *most = ratio;
        }
        if let Some(least) = comparator.min_fraction_threshold.as_mut().filter(|least| ratio < **least) {
            let short = format!("Low num examples in current dataset versus the {name}.");
            found.push(Anomaly::new(AnomalyKind::ComparatorLowNumExamples, short, text(*least)));
            *least = ratio;
        }
    }
    found
}

fn comparators(feature: &Feature) -> impl Iterator<Item = ([&'static str; 2], &FeatureComparator)> {
    let both = [(DRIFT, feature.drift_comparator.as_ref()), (SKEW, feature.skew_comparator.as_ref())];
    both.into_iter().filter_map(|(names, comparator)| Some((names, comparator?)))
}

fn threshold(comparator: &FeatureComparator, measure: Measure) -> Option<f64> {
    match measure {
        Measure::LInfty => comparator.infinity_norm.as_ref()?.threshold,
        Measure::JensenShannonDivergence => comparator.jensen_shannon_divergence.as_ref()?.threshold,
        Measure::NormalizedAbsoluteDifference => comparator.normalized_abs_difference.as_ref()?.threshold,
    }
}

const MEASURES: [Measure; 3] =
    [Measure::LInfty, Measure::JensenShannonDivergence, Measure::NormalizedAbsoluteDifference];

/// Whether a comparator asks for anything.
fn is_asking(comparator: &FeatureComparator) -> bool {
    MEASURES.iter().any(|measure| threshold(comparator, *measure).is_some())
}

/// What the comparators of a feature allow in this measure, and whether they ask for none at all.
fn thresholds(feature: &Feature, measure: Measure) -> (Vec<([&'static str; 2], f64)>, bool) {
    let own = comparators(feature).filter_map(|(names, comparator)| Some((names, threshold(comparator, measure)?)));
    (own.collect(), !comparators(feature).any(|(_, comparator)| is_asking(comparator)))
}

/// What the comparators that ask for something hold against each other; they are taken away.
fn take_asking(feature: &mut Feature) -> Vec<[&'static str; 2]> {
    let asking: Vec<_> =
        comparators(feature).filter(|(_, comparator)| is_asking(comparator)).map(|(names, _)| names).collect();
    (feature.drift_comparator, feature.skew_comparator) = (None, None);
    asking
}

/// Whether this is what values of this kind are usually measured by.
fn is_usual(measure: Measure, values: &FeatureAccumulator) -> bool {
    measure == if values.bytes.is_some() { Measure::LInfty } else { Measure::JensenShannonDivergence }
}

/// Allows this much.
fn raise(feature: &mut Feature, is_skew: bool, measure: Measure, to: f64) {
    let comparator = if is_skew { &mut feature.skew_comparator } else { &mut feature.drift_comparator };
    let comparator = comparator.get_or_insert_default();
    match measure {
        Measure::LInfty => comparator.infinity_norm.get_or_insert_default().threshold = Some(to),
        Measure::JensenShannonDivergence => {
            comparator.jensen_shannon_divergence.get_or_insert_default().threshold = Some(to);
        }
        Measure::NormalizedAbsoluteDifference => {
            comparator.normalized_abs_difference.get_or_insert_default().threshold = Some(to);
        }
    }
}

fn too_far(distance: &Distance, [control, treatment]: [&str; 2], threshold: f64) -> Anomaly {
    let (kind, name) = match distance.measure {
        Measure::LInfty => (AnomalyKind::ComparatorLInftyHigh, "Linfty distance"),
        Measure::JensenShannonDivergence => {
            (AnomalyKind::ComparatorJensenShannonDivergenceHigh, "approximate Jensen-Shannon divergence")
        }
        Measure::NormalizedAbsoluteDifference => {
            (AnomalyKind::ComparatorNormalizedAbsoluteDifferenceHigh, "normalized absolute difference")
        }
    };
    let most = distance.most.as_ref().map_or(String::new(), |most| format!(" {most:?} differs most."));
    let value = distance.value;
    let text = format!("The {name} between {treatment} and {control} is {value:.6}, above {threshold}.{most}");
    let short = format!("High {name} between {treatment} and {control}");
    Anomaly { feature: Some(distance.feature.clone()), ..Anomaly::new(kind, short, text) }
}

/// All distances that values of this kind have.
fn measure(path: &str, now: &FeatureAccumulator, before: &FeatureAccumulator) -> Vec<Distance> {
    let is_estimated = is_many(now) || is_many(before);
    let distance = |measure, value, most| {
        let feature = path.to_owned();
        Distance { feature, measure, value, threshold: None, is_estimated, most }
    };
    if now.bytes.is_some() || before.bytes.is_some() {
        // What has no strings has none of any value.
        let both = shares(now.bytes.as_deref(), before.bytes.as_deref());
        let [count, count_before] = [now, before].map(|of| of.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64);
        let word = |value: &[u8]| Some(excerpt(value));
        let (most, infinity) = largest(both.iter().map(|(value, (a, b))| (*value, (a - b).abs())));
        let all = count + count_before;
        let counts = both.iter().map(|(value, (a, b))| (*value, (a * count - b * count_before).abs() / all));
        let (most_often, absolute) = largest(counts);
        let mut found = vec![
            distance(Measure::LInfty, infinity, word(most)),
            distance(Measure::NormalizedAbsoluteDifference, absolute, word(most_often)),
        ];
        // Of samples of unique values it would be that of the samples, and not of what they are taken from.
        if now.bytes.is_some() && before.bytes.is_some() && !is_estimated {
            let divergence = divergence(both.values().copied());
            found.insert(1, distance(Measure::JensenShannonDivergence, divergence, None));
        }
        return found;
    }
    let numbers = |values: &FeatureAccumulator| match (&values.floats, &values.ints) {
        (Some(floats), _) => Some(summarize::numbers(floats)),
        (None, Some(ints)) => Some(summarize::numbers(ints)),
        (None, None) => None,
    };
    let (Some(now), Some(before)) = (numbers(now), numbers(before)) else { return Vec::new() };
    let aligned = aligned(&now, &before);
    vec![distance(Measure::JensenShannonDivergence, divergence(aligned.into_iter()), None)]
}

fn is_many(values: &FeatureAccumulator) -> bool {
    values.bytes.as_ref().is_some_and(|bytes| matches!(bytes.distinct, DistinctValues::Estimated(_)))
}

/// The largest, of equal ones the last.
fn largest<'a>(differences: impl Iterator<Item = (&'a [u8], f64)>) -> (&'a [u8], f64) {
    differences.fold((&[], 0.0), |most, one| if one.1 >= most.1 { one } else { most })
}

/// The share of each value, in both.
fn shares<'a>(
    now: Option<&'a BytesAccumulator>,
    before: Option<&'a BytesAccumulator>,
) -> BTreeMap<&'a [u8], (f64, f64)> {
    let mut both = BTreeMap::<&[u8], (f64, f64)>::new();
    now.into_iter().for_each(|now| each_share(now, |value, share| both.entry(value).or_default().0 += share));
    before.into_iter().for_each(|before| each_share(before, |value, share| both.entry(value).or_default().1 += share));
    both
}

/// Calls `then` with each value and its share, of a sample where values are too many to count.
fn each_share<'a>(bytes: &'a BytesAccumulator, mut then: impl FnMut(&'a [u8], f64)) {
    match &bytes.distinct {
        DistinctValues::Counted { counts, .. } => {
            let all = bytes.count() as f64;
            counts.iter().for_each(|(value, count)| then(value, *count as f64 / all));
        }
        DistinctValues::Estimated(_) => {
            let all = bytes.sample.values().count() as f64;
            bytes.sample.values().for_each(|value| then(value, 1.0 / all));
        }
    }
}

/// Jensen-Shannon divergence of two distributions, of the shares that each part has.
fn divergence(shares: impl Iterator<Item = (f64, f64)>) -> f64 {
    let term = |share: f64, mean: f64| if share > 0.0 { share * (share / mean).log2() } else { 0.0 };
    let sum: f64 = shares.map(|(a, b)| term(a, f64::midpoint(a, b)) + term(b, f64::midpoint(a, b))).sum();
    (sum / 2.0).clamp(0.0, 1.0)
}

/// What two histograms have in each part, as shares of all: parts are as wide as both bounds allow, a value that is alone
/// in its bucket is a part of its own, and what is infinite or NaN is never the same in both.
fn aligned(now: &NumberStatistics, before: &NumberStatistics) -> Vec<(f64, f64)> {
    let histograms = [&now.histogram, &before.histogram];
    let is_finite = |bucket: &&HistogramBucket| bucket.low.is_finite() && bucket.high.is_finite();
    let buckets = || histograms.into_iter().flatten().filter(is_finite);
    // Bounds are finite, so that their order is that of their bits, but for the sign.
    let bounds = buckets().filter(|bucket| bucket.low < bucket.high).flat_map(|bucket| [bucket.low, bucket.high]);
    let mut bounds: Vec<f64> = bounds.collect();
    bounds.sort_unstable_by(f64::total_cmp);
    bounds.dedup();
    let points: BTreeSet<u64> = buckets().filter(|b| b.low == b.high).map(|b| (b.low + 0.0).to_bits()).collect();
    let mut parts: Vec<_> = bounds
        .windows(2)
        .map(|bounds| histograms.map(|histogram| histogram.iter().filter(is_finite).map(|b| within(b, bounds)).sum()))
        .chain(points.into_iter().map(|point| {
            let is_here = |b: &&HistogramBucket| b.low == b.high && (b.low + 0.0).to_bits() == point;
            histograms.map(|histogram| histogram.iter().filter(is_here).map(|b| b.count).sum())
        }))
        .collect();
    let infinite = histograms.map(|histogram| histogram.iter().filter(|b| !is_finite(b)).map(|b| b.count).sum::<f64>());
    for [a, b] in [infinite, [now.nan as f64, before.nan as f64]] {
        parts.extend([[a, 0.0], [0.0, b]]);
    }
    let all = [0, 1].map(|side| parts.iter().map(|part: &[f64; 2]| part[side]).sum::<f64>().max(f64::MIN_POSITIVE));
    parts.into_iter().map(|[a, b]| (a / all[0], b / all[1])).collect()
}

/// What a bucket, whose values are taken to be spread evenly, has within bounds.
fn within(bucket: &HistogramBucket, bounds: &[f64]) -> f64 {
    let &[low, high] = bounds else { return 0.0 };
    let overlap = bucket.high.min(high) - bucket.low.max(low);
    if overlap > 0.0 { bucket.count * overlap / (bucket.high - bucket.low) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_0_of_the_same_and_1_of_what_has_nothing_in_common() {
        assert_eq!(divergence([(0.5, 0.5), (0.5, 0.5)].into_iter()), 0.0);
        assert_eq!(divergence([(1.0, 0.0), (0.0, 1.0)].into_iter()), 1.0);
        // 0.75 log2(0.75 / 0.5) + 0.25 log2(0.25 / 0.5), of both.
        let some = divergence([(0.75, 0.25), (0.25, 0.75)].into_iter());
        assert!((some - 0.188_721_875_540_867).abs() < 1e-12, "{some}");
    }

    #[test]
    fn buckets_are_cut_where_the_other_ones_are() {
        let bucket = HistogramBucket { low: 0.0, high: 10.0, count: 20.0 };
        assert_eq!([[0.0, 5.0], [5.0, 20.0], [10.0, 20.0]].map(|bounds| within(&bucket, &bounds)), [10.0, 10.0, 0.0]);
    }
}
