//! Alerts: properties of a data set that often are mistakes, found without a schema or a baseline.
//!
//! The rules are those of profilers such as ydata-profiling, with thresholds for training data. An
//! alert is a hint; anomalies ([`Anomaly`](crate::Anomaly)) are violations of a schema.

use tfarrow_codec::Kind;

use crate::{
    collect::formats::ValueFormat,
    profile::RecordProfile,
    summary_statistics::{
        ByteStringStatistics, DatasetStatistics, FeatureStatistics, KindStatistics,
        NumberStatistics,
    },
};

/// Share of records without a feature from which it is mostly missing.
const MOSTLY_MISSING: f64 = 0.5;
/// Share of zeros from which numbers are mostly zeros.
const MOSTLY_ZEROS: f64 = 0.9;
/// Share of the most frequent of several values from which the values are imbalanced.
const IMBALANCED: f64 = 0.95;
/// Magnitude of the skewness from which numbers are skewed; an exponential distribution has 2.
const SKEWED: f64 = 4.0;
/// Smallest number of values from which it is remarkable that no two are equal.
const MIN_UNIQUE: u64 = 10;
/// Magnitude of a correlation from which features are correlated.
const CORRELATED: f64 = 0.95;

/// A kind of alert, in descending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertKind {
    /// Records of the feature have several kinds; the value is their number.
    MixedKinds,
    /// Floats are NaN; the value is their share.
    Nan,
    /// Floats are infinite; the value is their share.
    Infinite,
    /// Images have no readable header; the value is their share.
    DamagedImages,
    /// Some texts are not UTF-8, while most are; the value is the share of the others.
    InvalidText,
    /// No record has a value: all lists are empty, or the feature never has a kind.
    NoValues,
    /// All numbers are zero.
    AllZero,
    /// All values are equal.
    Constant,
    /// At least half of the records do not have the feature; the value is their share.
    MostlyMissing,
    /// Records equal an earlier record of the data set, byte for byte; the value is their share.
    DuplicateRecords,
    /// At least 95 % of the values are equal; the value is their share.
    Imbalanced,
    /// At least 90 % of the numbers are zero; the value is their share.
    MostlyZeros,
    /// The magnitude of the skewness is at least 4; the value is the skewness.
    Skewed,
    /// The magnitude of the correlation with another feature is at least 0.95; the value is the
    /// coefficient.
    Correlated,
    /// No two texts are equal, or no two integers in a sample, of which each record has one, as in
    /// identifiers; the value is their number.
    Unique,
}

/// A property of a feature, or of the data set, that may be a mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The kind.
    pub kind: AlertKind,
    /// The name of the feature, and whether it is a feature list; `None` for the data set.
    pub feature: Option<(String, bool)>,
    /// The feature that it is correlated with.
    pub other: Option<String>,
    /// The number that the kind describes.
    pub value: Option<f64>,
}

/// Returns the alerts of a data set, the most severe kinds first, then sorted by name.
pub fn alerts(figures: &DatasetStatistics, profile: &RecordProfile) -> Vec<Alert> {
    let mut alerts = Vec::new();
    for feature in &figures.features {
        let found = of_feature(feature)
            .into_iter()
            .chain(feature.kinds.iter().flat_map(of_kind));
        alerts.extend(found.map(|(kind, value)| Alert {
            kind,
            feature: Some((feature.name.clone(), feature.is_list)),
            other: None,
            value,
        }));
    }
    let correlations = &profile.correlations;
    for pair in correlations
        .pairs
        .iter()
        .filter(|pair| pair.coefficient.abs() >= CORRELATED)
    {
        let [one, other] =
            [pair.one, pair.other].map(|index| correlations.features.get(index).cloned());
        let feature = one.map(|name| (name, false));
        alerts.push(Alert {
            kind: AlertKind::Correlated,
            feature,
            other,
            value: Some(pair.coefficient),
        });
    }
    let duplicates = profile.duplicates.records;
    if duplicates > 0 {
        let value = share(duplicates, figures.records);
        alerts.push(Alert {
            kind: AlertKind::DuplicateRecords,
            feature: None,
            other: None,
            value,
        });
    }
    alerts.sort_by(|a, b| (a.kind, &a.feature, &a.other).cmp(&(b.kind, &b.feature, &b.other)));
    alerts.dedup_by(|a, b| (a.kind, &a.feature, &a.other) == (b.kind, &b.feature, &b.other));
    alerts
}

/// An alert of one feature: its kind and value.
type Finding = (AlertKind, Option<f64>);

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn of_feature(feature: &FeatureStatistics) -> Vec<Finding> {
    let records = feature.present + feature.missing;
    let absent = feature.absent();
    let mut found = Vec::new();
    if feature.kinds.len() > 1 {
        found.push((AlertKind::MixedKinds, Some(feature.kinds.len() as f64)));
    }
    if records > 0 && feature.kinds.iter().all(|kind| kind.values == 0) {
        found.push((AlertKind::NoValues, None));
    } else if absent > 0 && absent as f64 >= MOSTLY_MISSING * records as f64 {
        found.push((AlertKind::MostlyMissing, share(absent, records)));
    }
    found
}

fn of_kind(kind: &KindStatistics) -> Vec<Finding> {
    let mut found = kind.numbers.as_ref().map(of_numbers).unwrap_or_default();
    // Floats that are measured differ as well.
    let is_one_integer =
        kind.kind_of == Kind::Int64 && (kind.lengths.min, kind.lengths.max) == (1, 1);
    let unique = kind
        .numbers
        .as_ref()
        .filter(|numbers| is_one_integer && numbers.are_distinct && numbers.count >= MIN_UNIQUE);
    found.extend(unique.map(|numbers| (AlertKind::Unique, Some(numbers.count as f64))));
    found.extend(kind.strings.as_ref().map(of_strings).unwrap_or_default());
    found
}

fn of_numbers(numbers: &NumberStatistics) -> Vec<Finding> {
    let count = numbers.count;
    let all = numbers.count + numbers.nan;
    let infinite = numbers.positive_infinities + numbers.negative_infinities;
    let mut found = Vec::new();
    if numbers.nan > 0 {
        found.push((AlertKind::Nan, share(numbers.nan, all)));
    }
    if infinite > 0 {
        found.push((AlertKind::Infinite, share(infinite, all)));
    }
    if count > 0 && numbers.zeros == count {
        found.push((AlertKind::AllZero, None));
    } else if count > 1 && numbers.min == numbers.max {
        found.push((AlertKind::Constant, Some(numbers.min.to_f64())));
    } else if count > 0 && numbers.zeros as f64 >= MOSTLY_ZEROS * count as f64 {
        found.push((AlertKind::MostlyZeros, share(numbers.zeros, all)));
    } else if numbers.skewness.abs() >= SKEWED {
        found.push((AlertKind::Skewed, Some(numbers.skewness)));
    }
    found
}

fn of_strings(strings: &ByteStringStatistics) -> Vec<Finding> {
    let mut texts = 0;
    for (name, count) in &strings.formats {
        if *name == ValueFormat::Text.name() || *name == ValueFormat::Json.name() {
            texts += count;
        }
    }
    let is_mostly_text = 2 * texts > strings.total;
    let mut found = Vec::new();
    if let Some(images) = strings.images.filter(|images| images.damaged > 0) {
        found.push((
            AlertKind::DamagedImages,
            share(images.damaged, images.count + images.damaged),
        ));
    }
    if strings.invalid_utf8 > 0 && is_mostly_text {
        found.push((
            AlertKind::InvalidText,
            share(strings.invalid_utf8, strings.total),
        ));
    }
    if !strings.is_distinct_exact || strings.total < 2 {
        return found;
    }
    let most = strings.top.first().map_or(0.0, |top| top.count) / strings.total as f64;
    if strings.distinct == 1 {
        found.push((AlertKind::Constant, None));
    } else if strings.distinct == strings.total && strings.total >= MIN_UNIQUE && is_mostly_text {
        found.push((AlertKind::Unique, Some(strings.total as f64)));
    } else if most >= IMBALANCED {
        found.push((AlertKind::Imbalanced, Some(most)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NumberValue;
    use crate::profile::{Correlation, Correlations, Duplicates};

    fn feature(name: &str, present: u64, kinds: Vec<KindStatistics>) -> FeatureStatistics {
        let name = name.to_owned();
        let missing = 100 - present;
        FeatureStatistics {
            name,
            is_list: false,
            present,
            missing,
            unset: 0,
            steps: None,
            kinds,
        }
    }

    fn kind(
        numbers: Option<NumberStatistics>,
        strings: Option<ByteStringStatistics>,
    ) -> KindStatistics {
        let lengths = crate::ListLengths {
            min: 1,
            mean: 1.0,
            max: 1,
            deciles: vec![1.0; 11],
            sampled: None,
            quantiles: Vec::new(),
        };
        let kind_of = tfarrow_codec::Kind::Float;
        KindStatistics {
            kind: kind_of.name(),
            kind_of,
            lists: 100,
            empty: 0,
            values: 100,
            lengths,
            numbers,
            strings,
        }
    }

    fn numbers(change: impl Fn(&mut NumberStatistics)) -> Option<NumberStatistics> {
        let mut numbers = NumberStatistics {
            count: 100,
            nan: 0,
            zeros: 0,
            positive_infinities: 0,
            negative_infinities: 0,
            mean: 1.0,
            std_dev: 1.0,
            skewness: 0.0,
            min: NumberValue::Float(0.5),
            median: 1.0,
            max: NumberValue::Float(2.0),
            deciles: Vec::new(),
            histogram: Vec::new(),
            quantiles: Vec::new(),
            sampled: None,
            are_distinct: false,
        };
        change(&mut numbers);
        Some(numbers)
    }

    fn strings(change: impl Fn(&mut ByteStringStatistics)) -> Option<ByteStringStatistics> {
        let mut strings = ByteStringStatistics {
            total: 100,
            distinct: 50,
            is_distinct_exact: true,
            min_length: 1,
            mean_length: 1.0,
            max_length: 1,
            invalid_utf8: 0,
            formats: vec![(ValueFormat::Text.name(), 100)],
            images: None,
            top: vec![crate::TopValue {
                value: (*b"a").into(),
                length: 1,
                hash: 0,
                count: 2.0,
            }],
            sampled: None,
        };
        change(&mut strings);
        Some(strings)
    }

    fn found(feature: FeatureStatistics) -> Vec<Finding> {
        let figures = DatasetStatistics {
            records: 100,
            bytes: 0,
            sampled: None,
            features: vec![feature],
        };
        alerts(&figures, &RecordProfile::default())
            .into_iter()
            .map(|alert| (alert.kind, alert.value))
            .collect()
    }

    #[test]
    fn ordinary_features_have_no_alerts() {
        assert_eq!(
            found(feature("x", 100, vec![kind(numbers(|_| {}), None)])),
            []
        );
        assert_eq!(
            found(feature("x", 51, vec![kind(None, strings(|_| {}))])),
            []
        );
    }

    #[test]
    fn numbers_have_alerts() {
        let of = |change: fn(&mut NumberStatistics)| {
            found(feature("x", 100, vec![kind(numbers(change), None)]))
        };
        assert_eq!(
            of(|numbers| numbers.nan = 25),
            [(AlertKind::Nan, Some(0.2))]
        );
        assert_eq!(
            of(|numbers| numbers.negative_infinities = 1),
            [(AlertKind::Infinite, Some(0.01))]
        );
        assert_eq!(
            of(|numbers| numbers.zeros = 100),
            [(AlertKind::AllZero, None)]
        );
        assert_eq!(
            of(|numbers| numbers.zeros = 90),
            [(AlertKind::MostlyZeros, Some(0.9))]
        );
        assert_eq!(
            of(|numbers| numbers.min = numbers.max),
            [(AlertKind::Constant, Some(2.0))]
        );
        assert_eq!(
            of(|numbers| numbers.skewness = -4.5),
            [(AlertKind::Skewed, Some(-4.5))]
        );
        // Integers that differ are identifiers; floats that differ are measured.
        assert_eq!(of(|numbers| numbers.are_distinct = true), []);
        let kind = kind(numbers(|numbers| numbers.are_distinct = true), None);
        let integers = KindStatistics {
            kind: Kind::Int64.name(),
            kind_of: Kind::Int64,
            ..kind
        };
        assert_eq!(
            found(feature("x", 100, vec![integers])),
            [(AlertKind::Unique, Some(100.0))]
        );
    }

    #[test]
    fn byte_strings_have_alerts() {
        let of = |change: fn(&mut ByteStringStatistics)| {
            found(feature("x", 100, vec![kind(None, strings(change))]))
        };
        assert_eq!(
            of(|strings| strings.distinct = 1),
            [(AlertKind::Constant, None)]
        );
        assert_eq!(
            of(|strings| strings.distinct = 100),
            [(AlertKind::Unique, Some(100.0))]
        );
        assert_eq!(
            of(|strings| strings.top[0].count = 95.0),
            [(AlertKind::Imbalanced, Some(0.95))]
        );
        assert_eq!(
            of(|strings| strings.invalid_utf8 = 10),
            [(AlertKind::InvalidText, Some(0.1))]
        );
        // Encoded images are expected to differ.
        assert_eq!(
            of(|strings| (strings.distinct, strings.formats) = (100, vec![("PNG", 100)])),
            []
        );
        assert_eq!(
            of(|strings| (strings.distinct, strings.is_distinct_exact) = (100, false)),
            []
        );
    }

    #[test]
    fn features_records_and_pairs_have_alerts() {
        assert_eq!(
            found(feature("x", 50, vec![kind(numbers(|_| {}), None)])),
            [(AlertKind::MostlyMissing, Some(0.5))]
        );
        assert_eq!(
            found(feature("x", 100, Vec::new())),
            [(AlertKind::NoValues, None)]
        );
        let both = vec![kind(numbers(|_| {}), None), kind(None, strings(|_| {}))];
        assert_eq!(
            found(feature("x", 100, both)),
            [(AlertKind::MixedKinds, Some(2.0))]
        );
        let figures = DatasetStatistics {
            records: 100,
            bytes: 0,
            sampled: None,
            features: Vec::new(),
        };
        let pair = |other, coefficient| Correlation {
            one: 0,
            other,
            coefficient,
            records: 100,
        };
        let correlations = Correlations {
            features: ["a", "b", "c"].map(str::to_owned).to_vec(),
            pairs: vec![pair(1, -0.96), pair(2, 0.94)],
            ..Correlations::default()
        };
        let duplicates = Duplicates {
            records: 5,
            most: 2,
            is_estimated: false,
        };
        let profile = RecordProfile {
            correlations,
            duplicates,
            ..RecordProfile::default()
        };
        let found = alerts(&figures, &profile);
        assert_eq!(
            found.iter().map(|a| a.kind).collect::<Vec<_>>(),
            [AlertKind::DuplicateRecords, AlertKind::Correlated]
        );
        assert_eq!((found[0].value, found[1].value), (Some(0.05), Some(-0.96)));
        assert_eq!(
            (found[1].feature.clone(), found[1].other.as_deref()),
            (Some(("a".to_owned(), false)), Some("b"))
        );
    }
}
