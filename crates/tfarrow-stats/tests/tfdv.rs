//! Compares schemas and statistics with those of TensorFlow Data Validation 1.16.1 in
//! `testdata/tfdv`: the results of `infer_schema` and `generate_statistics_from_tfrecord` for the
//! files of `testdata`.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use tfarrow_dataset::resolve;
use tfarrow_scan::InferOptions;
use tfarrow_stats::{
    Statistics,
    proto::{
        CommonStatistics, FeatureNameStatistics, Histogram, NumericStatistics, StringStatistics,
        feature_name_statistics::{FieldId, Stats},
        histogram::HistogramType,
    },
    schema_from_text, statistics_from_text,
};

const FILES: [(&str, &str); 9] = [
    ("scalar", "scalar.tfrecord"),
    ("ragged", "ragged.tfrecord"),
    ("numbers", "numbers.tfrecord"),
    ("states", "states.tfrecord"),
    ("text", "text.tfrecord"),
    ("names", "names.tfrecord"),
    ("tensors", "tensors.tfrecord"),
    ("empty", "empty.tfrecord"),
    ("train", "shards/train-00000-of-00004.tfrecord"),
];

fn testdata() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn answer(name: &str, what: &str) -> String {
    fs::read_to_string(testdata().join(format!("tfdv/{name}.{what}.pbtxt"))).unwrap()
}

fn collect(file: &str) -> Statistics {
    let shards = resolve(&[testdata().join(file)]).unwrap();
    Statistics::collect(&shards, &InferOptions::default(), &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

#[test]
fn schemas_equal_those_of_tfdv() {
    for (name, file) in FILES {
        let mut expect = schema_from_text(&answer(name, "schema")).unwrap();
        let mut found = collect(file).infer_schema();
        for schema in [&mut expect, &mut found] {
            schema.feature.sort_by(|a, b| a.name.cmp(&b.name));
            schema.string_domain.sort_by(|a, b| a.name.cmp(&b.name));
            schema
                .string_domain
                .iter_mut()
                .for_each(|domain| domain.value.sort());
        }
        assert_eq!(found.feature.len(), expect.feature.len(), "{name}");
        for (found, expect) in found.feature.iter().zip(&expect.feature) {
            assert_eq!(found, expect, "{name}");
        }
        assert_eq!(found.string_domain, expect.string_domain, "{name}");
    }
}

fn by_name(features: Vec<FeatureNameStatistics>) -> BTreeMap<String, FeatureNameStatistics> {
    let name = |feature: &FeatureNameStatistics| match &feature.field_id {
        Some(FieldId::Path(path)) => path.step.join("/"),
        other => panic!("no path: {other:?}"),
    };
    features
        .into_iter()
        .map(|feature| (name(&feature), feature))
        .collect()
}

#[test]
fn statistics_equal_those_of_tfdv() {
    for (name, file) in FILES {
        let expect = statistics_from_text(&answer(name, "stats"))
            .unwrap()
            .datasets
            .remove(0);
        let found = collect(file).summarize().to_proto().datasets.remove(0);
        assert_eq!(found.num_examples, expect.num_examples, "{name}");
        let (mut found, expect) = (by_name(found.features), by_name(expect.features));
        for (feature, expect) in expect {
            let found = found
                .remove(&feature)
                .unwrap_or_else(|| panic!("{name}: no {feature}"));
            let place = format!("{name}: {feature}");
            assert_eq!(found.r#type, expect.r#type, "{place}");
            match (found.stats.unwrap(), expect.stats.unwrap()) {
                (Stats::NumStats(found), Stats::NumStats(expect)) => {
                    numbers(&place, &found, &expect)
                }
                (Stats::StringStats(found), Stats::StringStats(expect)) => {
                    strings(&place, &found, &expect)
                }
                other => panic!("{place}: {other:?}"),
            }
        }
        assert!(found.is_empty(), "{name}: {:?}", found.keys());
    }
}

fn is_close(found: f64, expect: f64) -> bool {
    found == expect
        || (found.is_nan() && expect.is_nan())
        || (found - expect).abs() <= 1e-6 * expect.abs()
}

fn common(place: &str, found: Option<&CommonStatistics>, expect: Option<&CommonStatistics>) {
    let counts = |stats: &CommonStatistics| {
        [
            stats.num_non_missing,
            stats.num_missing,
            stats.min_num_values,
            stats.max_num_values,
            stats.tot_num_values,
        ]
    };
    let (found, expect) = (found.unwrap(), expect.unwrap());
    assert_eq!(counts(found), counts(expect), "{place}");
    assert!(
        is_close(found.avg_num_values.into(), expect.avg_num_values.into()),
        "{place}"
    );
}

fn numbers(place: &str, found: &NumericStatistics, expect: &NumericStatistics) {
    common(
        place,
        found.common_stats.as_ref(),
        expect.common_stats.as_ref(),
    );
    assert_eq!(found.num_zeros, expect.num_zeros, "{place}");
    // TFDV's mean of values with infinities is NaN; ours is infinite if they have one sign.
    let is_finite = found.min.is_finite() && found.max.is_finite();
    for (what, found, expect) in [
        ("min", found.min, expect.min),
        ("max", found.max, expect.max),
        ("mean", found.mean, expect.mean),
        ("std_dev", found.std_dev, expect.std_dev),
    ] {
        assert!(
            is_close(found, expect) || !is_finite,
            "{place}: {what} is {found}, expected {expect}"
        );
    }
    for (found, expect) in found.histograms.iter().zip(&expect.histograms) {
        assert_eq!(
            (found.num_nan, found.r#type),
            (expect.num_nan, expect.r#type),
            "{place}"
        );
    }
    let is_quantiles = |histogram: &&Histogram| histogram.r#type() == HistogramType::Quantiles;
    if let Some(histogram) = expect.histograms.iter().find(is_quantiles)
        && is_finite
    {
        // The rank of tfarrow's median among TFDV's quantiles.
        let total: f64 = histogram
            .buckets
            .iter()
            .map(|bucket| bucket.sample_count)
            .sum();
        let below: f64 = histogram
            .buckets
            .iter()
            .filter(|b| b.high_value < found.median)
            .map(|b| b.sample_count)
            .sum();
        let upto: f64 = histogram
            .buckets
            .iter()
            .filter(|b| b.low_value <= found.median)
            .map(|b| b.sample_count)
            .sum();
        assert!(
            below <= total * 0.52 && upto >= total * 0.48,
            "{place}: {} of {:?}",
            found.median,
            histogram.buckets
        );
    }
}

fn strings(place: &str, found: &StringStatistics, expect: &StringStatistics) {
    common(
        place,
        found.common_stats.as_ref(),
        expect.common_stats.as_ref(),
    );
    assert_eq!(
        (found.unique, found.invalid_utf8_count),
        (expect.unique, expect.invalid_utf8_count),
        "{place}"
    );
    assert!(
        is_close(found.avg_length.into(), expect.avg_length.into()),
        "{place}"
    );
    if expect.invalid_utf8_count == 0 {
        assert_eq!(found.top_values, expect.top_values, "{place}");
    }
}
