//! Compares statistics with a plain count over records decoded by `prost`, for unusual wire
//! encodings, and for several numbers of threads and sizes of chunks.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io::Write,
    ops::ControlFlow,
};

use proptest::{prelude::*, test_runner::TestRunner};
use tfarrow_dataset::{ReadOptions, resolve};
use tfarrow_scan::InferOptions;
use tfarrow_stats::{
    DatasetStatistics, ImageStatistics, KindStatistics, NumberValue, SliceError, SliceValue,
    SlicedStatistics, Statistics,
    proto::{Schema, ValueCount, feature::ShapeType, feature_name_statistics::Stats},
};
use tfarrow_testkit::{
    config, frame,
    generate::mixed,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

fn summarize(file: &[u8], threads: usize, chunk_bytes: usize) -> DatasetStatistics {
    collect(file, threads, chunk_bytes).summarize()
}

fn collect(file: &[u8], threads: usize, chunk_bytes: usize) -> Statistics {
    let mut temp = tempfile::NamedTempFile::new().unwrap();
    temp.write_all(file).unwrap();
    let shards = resolve(&[temp.path()]).unwrap();
    let read = ReadOptions {
        chunk_bytes,
        ..ReadOptions::default()
    };
    let options = InferOptions {
        threads,
        read,
        ..InferOptions::default()
    };
    Statistics::collect(&shards, &options, &|_, _| ControlFlow::Continue(())).unwrap()
}

/// The plain count of one kind of one feature.
#[derive(Default)]
struct Count {
    lists: u64,
    empty: u64,
    lengths: Vec<u64>,
    numbers: Vec<f64>,
    strings: Vec<Vec<u8>>,
}

fn counts(rows: &[ModelRow]) -> BTreeMap<(bool, String, &'static str), Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for ((side, name), cell) in rows.iter().flatten() {
        for value in cell.values() {
            let kind = match value {
                ModelValue::Unset => continue,
                ModelValue::Bytes(_) => "bytes_list",
                ModelValue::Float(_) => "float_list",
                ModelValue::Int64(_) => "int64_list",
            };
            let count = counts
                .entry((*side == ModelSide::Lists, name.clone(), kind))
                .or_default();
            count.lists += 1;
            count.empty += u64::from(value.is_empty());
            count.lengths.push(value.len() as u64);
            match value {
                ModelValue::Bytes(values) => count.strings.extend(values.iter().cloned()),
                ModelValue::Float(values) => count
                    .numbers
                    .extend(values.iter().map(|bits| f64::from(f32::from_bits(*bits)))),
                ModelValue::Int64(values) => count
                    .numbers
                    .extend(values.iter().map(|value| *value as f64)),
                ModelValue::Unset => {}
            }
        }
    }
    counts
}

fn is_close(found: f64, expect: f64) -> bool {
    found == expect
        || (found - expect).abs() <= 1e-9 * expect.abs().max(1e-300)
        || (found.is_nan() && expect.is_nan())
}

fn check(found: &KindStatistics, mut expect: Count) {
    assert_eq!((found.lists, found.empty), (expect.lists, expect.empty));
    expect.lengths.sort_unstable();
    assert_eq!(found.values, expect.lengths.iter().sum::<u64>());
    assert_eq!(Some(&found.lengths.min), expect.lengths.first());
    assert_eq!(Some(&found.lengths.max), expect.lengths.last());
    if let Some(strings) = &found.strings {
        assert_eq!(
            strings.distinct as usize,
            expect.strings.iter().collect::<HashSet<_>>().len()
        );
        assert_eq!(
            strings.invalid_utf8 as usize,
            expect
                .strings
                .iter()
                .filter(|s| std::str::from_utf8(s).is_err())
                .count()
        );
        let total: usize = expect.strings.iter().map(Vec::len).sum();
        if !expect.strings.is_empty() {
            assert!(is_close(
                strings.mean_length,
                total as f64 / expect.strings.len() as f64
            ));
            let most = &strings.top[0];
            assert_eq!(
                most.count as usize,
                expect
                    .strings
                    .iter()
                    .filter(|value| **value == *most.value)
                    .count()
            );
        }
    }
    let Some(numbers) = &found.numbers else {
        return;
    };
    let mut values: Vec<_> = expect
        .numbers
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(numbers.nan as usize, expect.numbers.len() - values.len());
    assert_eq!(numbers.count as usize, values.len());
    assert_eq!(
        numbers.zeros as usize,
        values.iter().filter(|value| **value == 0.0).count()
    );
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return;
    };
    assert_eq!(
        (numbers.min.to_f64(), numbers.max.to_f64()),
        (*first, *last)
    );
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    assert!(
        is_close(numbers.median, low.midpoint(high)),
        "{} {low} {high}",
        numbers.median
    );
    let held: f64 = numbers.histogram.iter().map(|bucket| bucket.count).sum();
    assert!(is_close(held, values.len() as f64), "{held}");
    if first.is_finite() && last.is_finite() && first.abs().max(last.abs()) < 1e9 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / values.len() as f64;
        assert!(
            (numbers.mean - mean).abs() <= 1e-9 * last.abs().max(first.abs()).max(1.0),
            "{} {mean}",
            numbers.mean
        );
        assert!(
            (numbers.std_dev - variance.sqrt()).abs() <= 1e-6 * variance.sqrt().max(1e-3),
            "{} {variance}",
            numbers.std_dev
        );
    }
}

#[test]
fn statistics_equal_a_plain_count() {
    let mut runner = TestRunner::new(config(64));
    runner
        .run(
            &(mixed(), prop::collection::vec(any::<u8>(), 0..200)),
            |(set, bytes)| {
                let mut choices = tfarrow_testkit::odd_wire::Choices::new(&bytes);
                let file = set.odd_file(&mut choices);
                let found = summarize(&file, 1, 1 << 20);
                assert_eq!(found.records as usize, set.rows.len());
                let mut expect = counts(&set.rows);
                for feature in &found.features {
                    for kind in &feature.kinds {
                        let expect = expect
                            .remove(&(feature.is_list, feature.name.clone(), kind.kind))
                            .unwrap();
                        check(kind, expect);
                    }
                }
                assert!(expect.is_empty(), "left out: {:?}", expect.keys());
                Ok(())
            },
        )
        .unwrap();
}

/// Returns a file of records with an integer, a string and a list of floats each.
fn many(records: i64) -> Vec<u8> {
    let row = |i: i64| -> ModelRow {
        let one = |name: &str, value| {
            (
                (ModelSide::Features, name.to_owned()),
                ModelCell::One(value),
            )
        };
        let word = format!("word {}", i * i % 30_011);
        let list = (0..i % 5)
            .map(|j| (i as f32).sin() * j as f32)
            .map(f32::to_bits)
            .collect();
        ModelRow::from([
            one("number", ModelValue::Int64(vec![i])),
            one("word", ModelValue::Bytes(vec![word.into_bytes()])),
            one("list", ModelValue::Float(list)),
        ])
    };
    frame::file((0..records).map(|i| example_from_row(&row(i))))
}

#[test]
fn statistics_do_not_depend_on_threads_and_chunks() {
    let file = many(60_000);
    let expect = serde_json::to_string(&summarize(&file, 1, 1 << 20)).unwrap();
    for (threads, chunk_bytes) in [(4, 1 << 20), (3, 10_000), (1, 100_000)] {
        assert_eq!(
            serde_json::to_string(&summarize(&file, threads, chunk_bytes)).unwrap(),
            expect,
            "{threads}"
        );
    }
}

#[test]
fn sampled_statistics_are_marked_and_close() {
    let found = summarize(&many(60_000), 2, 1 << 20);
    let number = found
        .features
        .iter()
        .find(|feature| feature.name == "number")
        .unwrap();
    let numbers = number.kinds[0].numbers.as_ref().unwrap();
    assert_eq!(numbers.sampled, Some(16_384));
    let range = (NumberValue::Int64(0), NumberValue::Int64(59_999));
    assert_eq!(
        ((numbers.min, numbers.max), numbers.mean),
        (range, 29_999.5)
    );
    for (part, decile) in numbers.deciles.iter().enumerate() {
        assert!(
            (decile / 60_000.0 - part as f64 / 10.0).abs() < 0.0127,
            "{part}: {decile}"
        );
    }
    let word = found
        .features
        .iter()
        .find(|feature| feature.name == "word")
        .unwrap();
    let strings = word.kinds[0].strings.as_ref().unwrap();
    let distinct = (0..60_000i64)
        .map(|i| i * i % 30_011)
        .collect::<HashSet<_>>()
        .len() as f64;
    assert!(
        strings.is_distinct_exact && strings.distinct as f64 == distinct
            || (strings.distinct as f64 / distinct - 1.0).abs() < 0.03
    );
}

#[test]
fn schemas_round_trip_through_text() {
    let statistics = collect(&many(100), 1, 1 << 20);
    let schema = statistics.infer_schema();
    let text = tfarrow_stats::schema_to_text(&schema).unwrap();
    assert_eq!(
        tfarrow_stats::schema_from_text(&text).unwrap(),
        schema,
        "{text}"
    );
    let odd = "feature { name: \"a\\303\\266 \\\"b\\\"\" type: INT skew_comparator { infinity_norm { threshold: 0.01 } } }
        default_environment: [\"x\", \"y\"]
        tensor_representation_group { key: \"\" value { tensor_representation { key: \"t\" value { varlen_sparse_tensor {} } } } }";
    let schema = tfarrow_stats::schema_from_text(odd).unwrap();
    let text = tfarrow_stats::schema_to_text(&schema).unwrap();
    assert_eq!(
        tfarrow_stats::schema_from_text(&text).unwrap(),
        schema,
        "{text}"
    );
    assert_eq!(schema.feature[0].name.as_deref(), Some("aö \"b\""));
    let error = tfarrow_stats::schema_from_text("feature { nme: \"x\" }")
        .unwrap_err()
        .to_string();
    assert!(error.contains("nme"), "{error}");
}

/// Returns the inferred schema, as text on one line, of records that have one feature `x` with
/// these values.
fn schema_of(values: &[ModelValue]) -> String {
    let row = |value: &ModelValue| {
        ModelRow::from([(
            (ModelSide::Features, "x".to_owned()),
            ModelCell::One(value.clone()),
        )])
    };
    let file = frame::file(values.iter().map(|value| example_from_row(&row(value))));
    let schema = collect(&file, 1, 1 << 20).infer_schema();
    tfarrow_stats::schema_to_text(&schema)
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn inferred_schemas_follow_the_rules_of_tfdv() {
    let words = |words: &[&str]| {
        ModelValue::Bytes(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    };
    let cases: [(&[ModelValue], &[&str]); 9] = [
        (
            &[ModelValue::Int64(vec![0]), ModelValue::Int64(vec![1])],
            &["type: INT", "bool_domain", "shape { dim { size: 1 } }"],
        ),
        (
            &[ModelValue::Int64(vec![0]), ModelValue::Int64(vec![0])],
            &["type: INT", "min_fraction: 1"],
        ),
        (
            &[ModelValue::Int64(vec![1, 2]), ModelValue::Int64(vec![3])],
            &["value_count { min: 1 }"],
        ),
        (
            &[ModelValue::Int64(vec![1, 2]), ModelValue::Unset],
            &["value_count { min: 2 max: 2 }", "presence { min_count: 1 }"],
        ),
        (
            &[words(&["a"]), words(&["b"])],
            &[
                "domain: \"x\"",
                "string_domain { name: \"x\" value: \"a\" value: \"b\" }",
            ],
        ),
        (
            &[words(&["true"]), words(&["0"])],
            &["bool_domain { true_value: \"true\" false_value: \"0\" }"],
        ),
        (&[words(&["7"]), words(&["-12"])], &["int_domain"]),
        (&[ModelValue::Bytes(vec![vec![0xff]])], &["type: BYTES"]),
        (
            &[ModelValue::Unset, ModelValue::Int64(vec![])],
            &["type: INT", "presence { min_count: 1 }"],
        ),
    ];
    for (values, parts) in cases {
        let schema = schema_of(values);
        for part in parts {
            assert!(schema.contains(part), "{part} is not in {schema}");
        }
    }
    assert!(!schema_of(&[ModelValue::Bytes(vec![vec![0xff]])]).contains("domain"));
    assert!(!schema_of(&[ModelValue::Float(vec![0.5f32.to_bits()])]).contains("domain"));
    let many: Vec<_> = (0..101).map(|i| words(&[&format!("word {i}")])).collect();
    assert!(
        !schema_of(&many).contains("domain"),
        "more than a hundred values"
    );
    assert!(schema_of(&many[..100]).contains("domain"));
}

/// Returns the inferred schema of records of the feature list `f`, whose steps have these numbers
/// of integers; `None` for a step without a kind.
fn schema_of_steps(records: &[&[Option<usize>]]) -> Schema {
    let step = |length: &Option<usize>| {
        length.map_or(ModelValue::Unset, |length| {
            ModelValue::Int64(vec![2; length])
        })
    };
    let row = |steps: &&[Option<usize>]| {
        let cell = ModelCell::Steps(steps.iter().map(step).collect());
        ModelRow::from([((ModelSide::Lists, "f".to_owned()), cell)])
    };
    let payloads = records
        .iter()
        .map(|steps| tfarrow_testkit::oracle::sequence_example_from_row(&row(steps)));
    collect(&frame::file(payloads), 1, 1 << 20).infer_schema()
}

#[test]
fn feature_lists_of_fixed_lengths_have_shapes() {
    let text = |schema: &Schema| {
        let text = tfarrow_stats::schema_to_text(schema).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let schema = schema_of_steps(&[&[Some(2); 3], &[Some(2); 3]]);
    let (lists, found) = (schema.feature[0].clone(), text(&schema));
    assert_eq!(lists.name(), "##SEQUENCE##");
    assert_eq!(
        lists.shape_type,
        Some(ShapeType::ValueCount(ValueCount {
            min: Some(1),
            max: Some(1)
        }))
    );
    assert!(
        found.contains("shape { dim { size: 3 } dim { size: 2 } }")
            && !found.contains("value_counts"),
        "{found}"
    );
    for varying in [
        &[&[Some(2); 3], &[Some(2); 2][..]][..],
        &[&[Some(2), Some(1)], &[Some(2), Some(1)]],
        &[&[Some(0); 3], &[Some(0); 3]],
        &[&[Some(2), None], &[Some(2), None]],
    ] {
        let found = text(&schema_of_steps(varying));
        assert!(
            found.contains("value_counts {") && !found.contains("shape {"),
            "{found}"
        );
    }
}

#[test]
fn many_features_have_smaller_samples() {
    let row = |i: i64| -> ModelRow {
        let one = |j: i64| {
            (
                (ModelSide::Features, format!("f{j}")),
                ModelCell::One(ModelValue::Int64(vec![i * j])),
            )
        };
        (0..1_000).map(one).collect()
    };
    let file = frame::file((0..6_000).map(|i| example_from_row(&row(i))));
    let found = summarize(&file, 2, 1 << 20);
    assert_eq!(found.features.len(), 1_000);
    let sizes: HashSet<_> = found
        .features
        .iter()
        .map(|f| f.kinds[0].numbers.as_ref().unwrap().sampled)
        .collect();
    assert_eq!(sizes, HashSet::from([Some((4 << 20) / 1_000)]));
}

fn sliced(file: &[u8], threads: usize, by: &str) -> Result<SlicedStatistics, SliceError> {
    let mut temp = tempfile::NamedTempFile::new().unwrap();
    temp.write_all(file).unwrap();
    let shards = resolve(&[temp.path()]).unwrap();
    let read = ReadOptions {
        chunk_bytes: 1_000,
        ..ReadOptions::default()
    };
    let options = InferOptions {
        threads,
        read,
        ..InferOptions::default()
    };
    Statistics::collect_sliced(&shards, &options, &|_, _| ControlFlow::Continue(()), by)
}

/// Compares each slice with a data set of its records. The data is small, so that samples have all
/// values.
#[test]
fn slice_statistics_equal_those_of_a_data_set_of_its_records() {
    let mut runner = TestRunner::new(config(64));
    runner
        .run(
            &(
                mixed(),
                prop::collection::vec(any::<u8>(), 0..200),
                0_usize..8,
            ),
            |(set, bytes, feature)| {
                let names: Vec<_> = counts(&set.rows)
                    .into_keys()
                    .filter(|(is_list, ..)| !is_list)
                    .collect();
                let Some((_, by, _)) = names.get(feature % names.len().max(1)) else {
                    return Ok(());
                };
                let held = |row: &ModelRow| {
                    row.get(&(ModelSide::Features, by.clone()))?
                        .values()
                        .first()
                        .map(|value| (*value).clone())
                };
                let values = |row: &ModelRow| -> BTreeSet<SliceValue> {
                    match held(row) {
                        None | Some(ModelValue::Unset | ModelValue::Float(_)) => BTreeSet::new(),
                        Some(ModelValue::Int64(list)) => {
                            list.into_iter().map(SliceValue::Int64).collect()
                        }
                        Some(ModelValue::Bytes(list)) => list
                            .into_iter()
                            .map(|value| SliceValue::Bytes(value.into()))
                            .collect(),
                    }
                };
                let is_unfit = |row: &ModelRow| match held(row) {
                    Some(ModelValue::Float(list)) => !list.is_empty(),
                    Some(ModelValue::Bytes(list)) => list.iter().any(|value| value.len() > 256),
                    _ => false,
                };
                let all: Vec<_> = set.rows.iter().map(values).collect();
                let found = sliced(
                    &set.odd_file(&mut tfarrow_testkit::odd_wire::Choices::new(&bytes)),
                    2,
                    by,
                );
                if set.rows.iter().any(is_unfit) {
                    prop_assert!(matches!(found, Err(SliceError::Unsupported(..))));
                    return Ok(());
                }
                let found = found.unwrap();
                prop_assert_eq!(
                    found.without as usize,
                    all.iter().filter(|values| values.is_empty()).count()
                );
                let expect: BTreeSet<_> = all.iter().flatten().collect();
                prop_assert_eq!(
                    found
                        .slices
                        .iter()
                        .map(|slice| &slice.value)
                        .collect::<BTreeSet<_>>(),
                    expect
                );
                let records: Vec<_> = found
                    .slices
                    .iter()
                    .map(|slice| slice.statistics.summarize().records)
                    .collect();
                prop_assert!(records.is_sorted_by(|one, next| one >= next));
                for slice in &found.slices {
                    let rows = set.payloads().into_iter().zip(&all);
                    let own = rows
                        .filter(|(_, values)| values.contains(&slice.value))
                        .map(|(payload, _)| payload);
                    let own = frame::file(own);
                    let [mut expect, mut found] =
                        [summarize(&own, 1, 1 << 20), slice.statistics.summarize()];
                    // The sliced file has unusual wire encodings, which take more bytes.
                    (expect.bytes, found.bytes) = (0, 0);
                    prop_assert_eq!(
                        serde_json::to_string(&found).unwrap(),
                        serde_json::to_string(&expect).unwrap()
                    );
                }
                Ok(())
            },
        )
        .unwrap();
}

#[test]
fn unsupported_slice_features_are_errors() {
    let file = many(1_000);
    let error = |by: &str| sliced(&file, 3, by).unwrap_err().to_string();
    assert!(
        error("number").contains("\"number\" has more than 256 values"),
        "{}",
        error("number")
    );
    assert!(
        error("list").contains("\"list\" has floats, in "),
        "{}",
        error("list")
    );
    assert!(
        error("nothing").ends_with("there are list, number, word"),
        "{}",
        error("nothing")
    );
    assert!(matches!(
        sliced(b"damaged", 1, "x"),
        Err(SliceError::Read(_))
    ));
}

#[test]
fn image_sizes_are_read_from_headers() {
    let png = |width: u32, height: u32| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_luma8(width, height)
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    };
    let images = [
        png(28, 14),
        png(3, 200),
        b"\x89PNG\r\n\x1a\nno header".to_vec(),
    ];
    let row = |image: &Vec<u8>| {
        ModelRow::from([(
            (ModelSide::Features, "image".to_owned()),
            ModelCell::One(ModelValue::Bytes(vec![image.clone(), b"text".to_vec()])),
        )])
    };
    let found = summarize(
        &frame::file(images.iter().map(|image| example_from_row(&row(image)))),
        2,
        100,
    );
    let sizes = found.features[0].kinds[0].strings.as_ref().unwrap().images;
    let expect = ImageStatistics {
        count: 2,
        damaged: 1,
        width: Some((3, 28)),
        height: Some((14, 200)),
    };
    assert_eq!(sizes, Some(expect));
}

#[test]
fn records_that_are_not_examples_are_in_no_slice() {
    let row = |i: i64| {
        ModelRow::from([(
            (ModelSide::Features, "label".to_owned()),
            ModelCell::One(ModelValue::Int64(vec![i % 2])),
        )])
    };
    let mut payloads: Vec<_> = (0..20).map(|i| example_from_row(&row(i))).collect();
    payloads.push(b"no example".to_vec());
    let found = sliced(&frame::file(payloads), 2, "label").unwrap();
    assert_eq!((found.all.summarize().records, found.without), (21, 1));
    assert_eq!(
        found
            .slices
            .iter()
            .map(|slice| slice.statistics.summarize().records)
            .collect::<Vec<_>>(),
        [10, 10]
    );
}

/// Returns records of 20 features with texts of this length, all of them distinct except in the
/// first feature.
fn texts(records: usize, bytes: usize) -> Vec<u8> {
    let payloads = (0..records).map(|record| {
        let row: ModelRow = (0..20)
            .map(|feature: usize| {
                let number = if feature == 0 {
                    record % 2
                } else {
                    record * 20 + feature
                };
                let text = format!("{number:08}").repeat(bytes / 8).into_bytes();
                (
                    (ModelSide::Features, format!("t{feature:02}")),
                    ModelCell::One(ModelValue::Bytes(vec![text])),
                )
            })
            .collect();
        example_from_row(&row)
    });
    payloads
        .flat_map(|payload| frame::file([payload]))
        .collect()
}

#[test]
fn statistics_of_long_texts_do_not_depend_on_threads_and_chunks() {
    let file = texts(600, 8_000);
    let strings = |threads, chunk_bytes| {
        let features = summarize(&file, threads, chunk_bytes).features.into_iter();
        features
            .map(|mut feature| feature.kinds.remove(0).strings.unwrap())
            .collect::<Vec<_>>()
    };
    let one = strings(1, 1 << 20);
    for (threads, chunk_bytes) in [(1, 300_000), (4, 200_000)] {
        for (one, other) in one.iter().zip(strings(threads, chunk_bytes)) {
            assert_eq!(
                (&one.top, one.is_distinct_exact, one.sampled),
                (&other.top, other.is_distinct_exact, other.sampled)
            );
        }
    }
    // The budget allows two values of 8 kB, but of 600 only the beginnings.
    assert_eq!(
        (
            one[0].distinct,
            one[0].is_distinct_exact,
            one[0].top[0].count
        ),
        (2, true, 300.0)
    );
    assert_eq!(
        (one[0].top[0].value.len(), one[0].top[0].length),
        (8_000, 8_000)
    );
    assert_eq!(
        (
            one[7].distinct,
            one[7].is_distinct_exact,
            one[7].top[0].count
        ),
        (600, true, 1.0)
    );
    assert_eq!(
        (one[7].top[0].value.len(), one[7].top[0].length),
        (256, 8_000)
    );
}

/// Returns a file of records of the feature `x` with these values.
fn of_values(values: impl Iterator<Item = ModelValue>) -> Vec<u8> {
    let row =
        |value| ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))]);
    frame::file(values.map(|value| example_from_row(&row(value))))
}

/// Returns the statistics of the one feature of a file.
fn only_kind(file: &[u8]) -> KindStatistics {
    summarize(file, 2, 1 << 20)
        .features
        .remove(0)
        .kinds
        .remove(0)
}

/// A text of 590 characters that differ in the end only.
fn prompt(number: usize) -> ModelValue {
    ModelValue::Bytes(vec![
        format!("{}{number:010}", "You are a helpful assistant. ".repeat(20)).into_bytes(),
    ])
}

#[test]
fn long_texts_that_differ_in_the_end_are_different_values() {
    // More values than are counted one by one: every second one is the same, and all others differ.
    let file = of_values((0..60_000).map(|i| prompt(if i % 2 == 0 { 0 } else { i })));
    let strings = only_kind(&file).strings.unwrap();
    assert!(
        (29_000..31_000).contains(&strings.distinct) && !strings.is_distinct_exact,
        "{}",
        strings.distinct
    );
    assert_eq!(strings.sampled, Some(16_384));
    let [top] = &strings.top[..] else {
        panic!("{}", strings.top.len())
    };
    assert!((29_000.0..31_000.0).contains(&top.count), "{}", top.count);
    let json = serde_json::to_value(top).unwrap();
    assert_eq!(
        (
            json["value"].as_str().unwrap().len(),
            json["length"].as_u64()
        ),
        (256, Some(590))
    );
    // Fewer values are counted, although they do not fit the budget of bytes.
    let strings = only_kind(&of_values((0..19_500).map(prompt).chain([prompt(7)])))
        .strings
        .unwrap();
    assert_eq!(
        (strings.distinct, strings.is_distinct_exact, strings.sampled),
        (19_500, true, None)
    );
    assert_eq!(
        (
            strings.top[0].count,
            strings.top[1].count,
            strings.top[0].length
        ),
        (2.0, 1.0, 590)
    );
}

#[test]
fn integers_beyond_2_to_the_53_have_exact_ranges_and_deviations() {
    for sign in [1, -1] {
        let found = only_kind(&of_values(
            (0..100).map(|i| ModelValue::Int64(vec![sign * (i64::MAX - i)])),
        ));
        let numbers = found.numbers.unwrap();
        let ends = [i64::MAX - 99, i64::MAX].map(|end| NumberValue::Int64(sign * end));
        let (low, high) = if sign > 0 {
            (ends[0], ends[1])
        } else {
            (ends[1], ends[0])
        };
        assert_eq!((numbers.min, numbers.max), (low, high));
        assert_eq!(numbers.std_dev, (9_999.0_f64 / 12.0).sqrt());
        assert!(
            is_close(numbers.mean, sign as f64 * 9_223_372_036_854_775_757.5),
            "{}",
            numbers.mean
        );
        let json = serde_json::to_string(&numbers).unwrap();
        let end = if sign > 0 {
            "\"max\":9223372036854775807"
        } else {
            "\"min\":-9223372036854775807"
        };
        assert!(json.contains(end), "{json}");
    }
}

#[test]
fn long_texts_have_labels_of_their_own_in_messages() {
    let file = of_values([1, 2, 2].into_iter().map(|number| {
        let ModelValue::Bytes(mut values) = prompt(number) else {
            panic!()
        };
        values[0].splice(0..0, b"long ".repeat(200));
        ModelValue::Bytes(values)
    }));
    let mut message = summarize(&file, 1, 1 << 20).to_proto();
    let Some(Stats::StringStats(strings)) = message.datasets.remove(0).features.remove(0).stats
    else {
        panic!()
    };
    let labels: Vec<_> = strings
        .top_values
        .iter()
        .map(|top| (top.value.as_str(), top.frequency))
        .collect();
    let [(one, 2.0), (other, 1.0)] = labels[..] else {
        panic!("{labels:?}")
    };
    assert!(
        one != other && one.starts_with("long long") && one.len() < 300,
        "{labels:?}"
    );
    // Shorter texts are complete, as TFDV's.
    let mut message = summarize(&of_values([prompt(1)].into_iter()), 1, 1 << 20).to_proto();
    let Some(Stats::StringStats(strings)) = message.datasets.remove(0).features.remove(0).stats
    else {
        panic!()
    };
    assert!(
        strings.top_values[0].value.ends_with("0000000001"),
        "{:?}",
        strings.top_values
    );
}
