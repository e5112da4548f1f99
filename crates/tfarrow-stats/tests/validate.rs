//! Compares anomalies with those of TensorFlow Data Validation 1.16.1 in
//! `testdata/tfdv/anomalies.json`, and checks the places of records, which TFDV does not report.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{fs, ops::ControlFlow, path::Path};

use tfarrow_codec::Place;
use tfarrow_dataset::resolve;
use tfarrow_scan::InferOptions;
use tfarrow_stats::{
    Anomaly, AnomalyKind, Comparison, Expected, Measure, Statistics, Validation, proto::Schema,
    schema_from_text,
};
use tfarrow_testkit::oracle::{
    ModelCell, ModelRow, ModelSide, ModelValue, example_from_row, sequence_example_from_row,
};

fn testdata(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(file)
}

fn options() -> InferOptions {
    InferOptions {
        threads: 2,
        ..InferOptions::default()
    }
}

fn validate(file: &str, schema: &Schema) -> Validation {
    let shards = resolve(&[testdata(file)]).unwrap();
    Validation::validate(&shards, schema, None, &options(), &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

fn statistics(file: &str) -> Statistics {
    let shards = resolve(&[testdata(file)]).unwrap();
    Statistics::collect(&shards, &options(), &|_, _| ControlFlow::Continue(())).unwrap()
}

/// Returns the anomalies of a file of `testdata` under a schema.
fn found(file: &str, schema: &str) -> Vec<Anomaly> {
    validate(file, &schema_from_text(schema).unwrap()).anomalies
}

fn names<'a>(anomalies: impl IntoIterator<Item = &'a Anomaly>) -> Vec<&'static str> {
    let mut names: Vec<_> = anomalies
        .into_iter()
        .map(|anomaly| anomaly.kind.as_str_name())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn anomalies_equal_those_of_tfdv() {
    let cases = fs::read_to_string(testdata("tfdv/anomalies.json")).unwrap();
    let cases: Vec<(String, String, Vec<String>)> = serde_json::from_str(&cases).unwrap();
    assert!(cases.len() > 200);
    let mut others = Vec::new();
    for (name, schema, expect) in cases {
        let file = if name == "train" {
            "shards/train-00000-of-00004.tfrecord"
        } else {
            &format!("{name}.tfrecord")
        };
        let parsed = schema_from_text(&schema).unwrap();
        let validation = validate(file, &parsed);
        let feature = parsed.feature[0].name();
        let own = validation
            .anomalies
            .iter()
            .filter(|anomaly| anomaly.feature.as_deref() == Some(feature));
        let own = names(own);
        // TFDV converts the largest integer to a double and back, which overflows to the smallest
        // integer.
        let is_overflow = name == "numbers" && schema.contains("int_domain { min: 1 max: 1 }");
        if own != expect && !is_overflow {
            others.push(format!("{name}: {schema}: {own:?} and not {expect:?}"));
        }
        // The data has no anomalies under the updated schema.
        let rest = validate(file, &validation.updated).anomalies;
        assert_eq!(rest, [], "{name}: {schema} became {:?}", validation.updated);
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn a_data_set_has_no_anomalies_under_its_inferred_schema() {
    for file in [
        "scalar", "ragged", "numbers", "states", "text", "names", "sequence",
    ] {
        let file = format!("{file}.tfrecord");
        assert_eq!(
            validate(&file, &statistics(&file).infer_schema()).anomalies,
            [],
            "{file}"
        );
    }
}

#[test]
fn anomalies_have_the_place_of_their_first_record() {
    let city = r#"name: "city" type: BYTES presence { min_count: 1 min_fraction: 1.0 }"#;
    let schema = format!(
        r#"feature {{ {city} string_domain {{ value: "Lima" value: "Nairobi" value: "Oslo" }} }}
           feature {{ name: "wanted" type: INT presence {{ min_count: 1 }} }}"#
    );
    let found = found("shards/", &schema);
    let of = |kind: AnomalyKind| found.iter().find(|anomaly| anomaly.kind == kind).unwrap();
    let wanted = of(AnomalyKind::SchemaMissingColumn);
    assert_eq!(
        (wanted.feature.as_deref(), wanted.records),
        (Some("wanted"), Some(200))
    );
    assert_eq!(
        wanted.first,
        Some(Place {
            shard: 0,
            record: 0,
            offset: Some(0)
        })
    );
    let city = of(AnomalyKind::EnumTypeUnexpectedStringValues);
    let figures = statistics("shards/").summarize();
    let strings = figures
        .features
        .iter()
        .find(|feature| feature.name == "city")
        .unwrap()
        .kinds[0]
        .strings
        .as_ref();
    let others = strings
        .unwrap()
        .top
        .iter()
        .filter(|top| ![&b"Lima"[..], b"Nairobi", b"Oslo"].contains(&&*top.value));
    assert_eq!(city.records, Some(others.map(|top| top.count as u64).sum()));
    assert!(
        city.description.contains("\"Porto\" (~23%)"),
        "{}",
        city.description
    );
    assert_eq!(city.first.map(|place| place.shard), Some(0));
    assert!(
        found
            .iter()
            .any(|anomaly| anomaly.kind == AnomalyKind::SchemaNewColumn)
    );
}

#[test]
fn feature_lists_are_validated() {
    let mut schema = statistics("sequence.tfrecord").infer_schema();
    assert_eq!(
        found("sequence.tfrecord", "")
            .iter()
            .filter(|a| a
                .feature
                .as_deref()
                .is_some_and(|f| f.starts_with("##SEQUENCE##.")))
            .count(),
        {
            let steps = schema
                .feature
                .iter()
                .find(|feature| feature.name() == "##SEQUENCE##")
                .unwrap();
            match &steps.domain_info {
                Some(tfarrow_stats::proto::feature::DomainInfo::StructDomain(steps)) => {
                    steps.feature.len()
                }
                _ => 0,
            }
        }
    );
    schema
        .feature
        .retain(|feature| feature.name() == "##SEQUENCE##");
    let text = tfarrow_stats::schema_to_text(&schema)
        .unwrap()
        .replace("min: 1", "min: 1000");
    assert!(names(&found("sequence.tfrecord", &text)).contains(&"FEATURE_TYPE_LOW_NUMBER_VALUES"));
}

/// Returns the anomalies of records of the feature list `f` under a schema of it. A record is given
/// by the numbers of values of its steps.
fn found_in_steps(records: &[&[usize]], feature: &str) -> Vec<Anomaly> {
    let folder = tempfile::tempdir().unwrap();
    let row = |steps: &&[usize]| {
        let cell = ModelCell::Steps(
            steps
                .iter()
                .map(|length| ModelValue::Int64(vec![2; *length]))
                .collect(),
        );
        ModelRow::from([((ModelSide::Lists, "f".to_owned()), cell)])
    };
    let file = tfarrow_testkit::frame::file(
        records
            .iter()
            .map(|steps| sequence_example_from_row(&row(steps))),
    );
    fs::write(folder.path().join("a.tfrecord"), file).unwrap();
    let schema = format!(
        r###"feature {{ name: "##SEQUENCE##" type: STRUCT value_count {{ min: 1 max: 1 }}
             struct_domain {{ feature {{ name: "f" type: INT {feature} }} }} }}"###
    );
    let shards = resolve(&[folder.path()]).unwrap();
    let schema = schema_from_text(&schema).unwrap();
    let progress = |_: u64, _: u64| ControlFlow::Continue(());
    let found = Validation::validate(&shards, &schema, None, &options(), &progress).unwrap();
    assert_eq!(
        Validation::validate(&shards, &found.updated, None, &options(), &progress)
            .unwrap()
            .anomalies,
        []
    );
    found.anomalies
}

#[test]
fn shapes_of_feature_lists_are_steps_and_values() {
    let shape = "shape { dim { size: 3 } dim { size: 2 } }";
    assert_eq!(found_in_steps(&[&[2, 2, 2], &[2, 2, 2]], shape), []);
    // As in TFDV, the product counts.
    assert_eq!(
        found_in_steps(&[&[2, 2, 2]], "shape { dim { size: 6 } }"),
        []
    );
    for (records, places) in [
        (&[&[2, 2, 2][..], &[2, 2]][..], Some(1)),
        (&[&[2, 2, 2], &[1, 2, 3]], Some(1)),
        (&[&[2, 2, 2], &[]], Some(1)),
        (&[&[2, 2]], Some(1)),
        // Each record has six values, but not in the same number of steps.
        (&[&[2, 2, 2], &[3, 3]], None),
    ] {
        let found = found_in_steps(records, shape);
        assert_eq!(names(&found), ["INVALID_FEATURE_SHAPE"], "{records:?}");
        assert_eq!(
            found[0].records, places,
            "{records:?}: {}",
            found[0].description
        );
    }
}

#[test]
fn features_are_validated_by_environment() {
    let schema = r#"default_environment: "TRAINING" default_environment: "SERVING"
        feature { name: "label" type: INT presence { min_count: 1 } not_in_environment: "SERVING" }
        feature { name: "target" type: INT presence { min_count: 1 } not_in_environment: "SERVING" }"#;
    let shards = resolve(&[testdata("shards/")]).unwrap();
    let of = |environment| {
        let schema = schema_from_text(schema).unwrap();
        let found = Validation::validate(&shards, &schema, environment, &options(), &|_, _| {
            ControlFlow::Continue(())
        })
        .unwrap();
        let own = found
            .anomalies
            .into_iter()
            .filter(|a| matches!(a.feature.as_deref(), Some("label" | "target")));
        own.map(|anomaly| (anomaly.feature.unwrap(), anomaly.kind))
            .collect::<Vec<_>>()
    };
    let missing = || ("target".to_owned(), AnomalyKind::SchemaMissingColumn);
    assert_eq!(of(None), [missing()]);
    assert_eq!(of(Some("TRAINING")), [missing()]);
    assert_eq!(
        of(Some("SERVING")),
        [("label".to_owned(), AnomalyKind::SchemaNewColumn)]
    );
}

#[test]
fn the_number_of_records_is_validated() {
    for (bounds, expect) in [
        ("min_examples_count: 200 max_examples_count: 200", &[][..]),
        ("min_examples_count: 201", &["DATASET_LOW_NUM_EXAMPLES"]),
        ("max_examples_count: 199", &["DATASET_HIGH_NUM_EXAMPLES"]),
    ] {
        let found = found("shards/", &format!("dataset_constraints {{ {bounds} }}"));
        assert_eq!(
            names(found.iter().filter(|anomaly| anomaly.feature.is_none())),
            expect
        );
    }
}

#[test]
fn a_data_set_has_no_distance_from_itself_and_some_from_another() {
    let schema = statistics("shards/").infer_schema();
    let mut same = validate("shards/", &schema);
    let distances = same.compare(&statistics("shards/"), Some(0.0));
    assert!(
        distances.len() > 4 && distances.iter().all(|distance| distance.value == 0.0),
        "{distances:?}"
    );
    assert_eq!(same.anomalies, []);
    let mut part = validate("shards/", &schema);
    let distances = part.compare(
        &statistics("shards/train-00000-of-00004.tfrecord"),
        Some(0.01),
    );
    assert!(distances.iter().any(|distance| distance.value > 0.0));
    assert!(
        names(&part.anomalies).contains(&"COMPARATOR_L_INFTY_HIGH"),
        "{:?}",
        part.anomalies
    );
    // The updated schema allows the distance.
    let mut again = validate("shards/", &part.updated);
    again.compare(
        &statistics("shards/train-00000-of-00004.tfrecord"),
        Some(0.01),
    );
    assert_eq!(again.anomalies, []);
}

#[test]
fn the_schema_of_a_comparison_is_by_default_that_of_the_baseline() {
    let file = "shards/train-00000-of-00004.tfrecord";
    let shards = resolve(&[testdata(file)]).unwrap();
    let compare = |expected| {
        Comparison::run(&shards, expected, &options(), &|_, _| {
            ControlFlow::Continue(())
        })
        .unwrap()
    };
    let part = compare(Expected {
        baseline: Some(statistics("shards/")),
        ..Expected::default()
    });
    let schema = statistics("shards/").infer_schema();
    assert_eq!(
        part.anomalies(),
        Some(validate(file, &schema).anomalies.as_slice())
    );
    assert_eq!(part.schema, Some(schema));
    assert!(!part.distances.is_empty());
    let schema = schema_from_text("").unwrap();
    let part = compare(Expected {
        schema: Some(schema),
        ..Expected::default()
    });
    assert!(part.distances.is_empty() && part.has_anomalies());
    let alone = compare(Expected::default());
    assert!(alone.anomalies().is_none() && !alone.has_anomalies());
}

#[test]
fn comparators_of_the_schema_set_thresholds() {
    let schema = r#"dataset_constraints { num_examples_drift_comparator { max_fraction_threshold: 2.0 } }
        feature { name: "city" type: BYTES skew_comparator { infinity_norm { threshold: 0.001 } } }
        feature { name: "label" type: INT drift_comparator { jensen_shannon_divergence { threshold: 0.0001 } } }"#;
    let mut found = validate("shards/", &schema_from_text(schema).unwrap());
    found.compare(&statistics("shards/train-00000-of-00004.tfrecord"), None);
    let own = found
        .anomalies
        .iter()
        .filter(|anomaly| anomaly.kind != AnomalyKind::SchemaNewColumn);
    let expect = [
        "COMPARATOR_HIGH_NUM_EXAMPLES",
        "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH",
        "COMPARATOR_L_INFTY_HIGH",
    ];
    assert_eq!(names(own), expect);
    let mut found = validate("shards/", &schema_from_text(schema).unwrap());
    found.compare(&statistics("scalar.tfrecord"), None);
    assert!(names(&found.anomalies).contains(&"COMPARATOR_CONTROL_DATA_MISSING"));
}

#[test]
fn contradictory_schemas_are_repaired() {
    let own = |schema: &str| {
        let validation = validate("shards/", &schema_from_text(schema).unwrap());
        let is_own = |anomaly: &&Anomaly| anomaly.kind != AnomalyKind::SchemaNewColumn;
        let found = names(validation.anomalies.iter().filter(is_own));
        assert_eq!(
            validate("shards/", &validation.updated).anomalies,
            [],
            "{schema}"
        );
        found
    };
    // The first of two features with one name counts.
    let twice = r#"feature { name: "city" type: BYTES } feature { name: "city" type: INT presence { min_count: 1 } }"#;
    assert_eq!(own(twice), [""; 0]);
    // A feature with a string domain and no type gets the type BYTES.
    let untyped = r#"feature { name: "city" string_domain { value: "Lima" } distribution_constraints { min_domain_mass: 0 } }"#;
    assert_eq!(own(untyped), ["FEATURE_MISSING_TYPE"]);
    let invalid = r#"feature { name: "city" type: INT string_domain { value: "Lima" } }"#;
    assert_eq!(
        own(invalid),
        ["DOMAIN_INVALID_FOR_TYPE", "UNEXPECTED_DATA_TYPE"]
    );
    let nested = r#"feature { name: "city" type: BYTES value_counts { value_count { min: 1 } value_count { min: 1 } } }"#;
    assert_eq!(own(nested), ["VALUE_NESTEDNESS_MISMATCH"]);
    assert_eq!(
        own(r#"feature { name: "label" type: INT int_domain { min: 9 max: 1 } }"#),
        ["INT_TYPE_BIG_INT", "INT_TYPE_SMALL_INT"]
    );
    assert_eq!(
        own(r#"feature { name: "label" type: INT presence { min_fraction: nan } }"#),
        ["INVALID_SCHEMA_SPECIFICATION"]
    );
    // The domain of a new feature gets another name if its own is taken, here by a domain that
    // lacks most values.
    assert_eq!(
        own(r#"string_domain { name: "city" value: "Rome" }"#),
        [""; 0]
    );
    let deep = format!("feature {{ {}", "struct_domain { feature {".repeat(2_000));
    assert!(
        schema_from_text(&deep)
            .unwrap_err()
            .to_string()
            .contains("nested")
    );
    let braces = r#"feature { name: "{{{\"{" } # {{{"#.replace("{{{", &"{".repeat(200));
    assert!(schema_from_text(&braces).is_ok());
}

#[test]
fn large_domains_are_kept() {
    let values: String = (0..500).map(|i| format!("value: \"v{i}\" ")).collect();
    let schema = format!(r#"feature {{ name: "city" type: BYTES string_domain {{ {values} }} }}"#);
    let validation = validate("shards/", &schema_from_text(&schema).unwrap());
    let own = validation
        .anomalies
        .iter()
        .filter(|anomaly| anomaly.feature.as_deref() == Some("city"));
    assert_eq!(names(own), ["ENUM_TYPE_UNEXPECTED_STRING_VALUES"]);
    assert!(
        tfarrow_stats::schema_to_text(&validation.updated)
            .unwrap()
            .contains("\"v499\"")
    );
}

#[test]
fn a_feature_whose_kind_changed_has_drifted() {
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before.tfrecord");
    let row: ModelRow = [(
        (ModelSide::Features, "city".to_owned()),
        ModelCell::One(ModelValue::Int64(vec![7])),
    )]
    .into_iter()
    .collect();
    fs::write(
        &before,
        tfarrow_testkit::frame::file([example_from_row(&row)]),
    )
    .unwrap();
    let shards = resolve(&[&before]).unwrap();
    let before =
        Statistics::collect(&shards, &options(), &|_, _| ControlFlow::Continue(())).unwrap();
    let schema = r#"feature { name: "city" type: BYTES drift_comparator { infinity_norm { threshold: 0.01 } } }
        feature { name: "label" type: INT skew_comparator { jensen_shannon_divergence { threshold: 0.1 } } }
        feature { name: "price" type: FLOAT lifecycle_stage: DEPRECATED drift_comparator { infinity_norm { threshold: 0 } } }"#;
    let mut found = validate("shards/", &schema_from_text(schema).unwrap());
    found.compare(&before, None);
    let own = found
        .anomalies
        .iter()
        .filter(|anomaly| anomaly.kind != AnomalyKind::SchemaNewColumn);
    assert_eq!(
        names(own),
        ["COMPARATOR_CONTROL_DATA_MISSING", "COMPARATOR_L_INFTY_HIGH"]
    );
    let mut again = validate("shards/", &found.updated);
    again.compare(&before, None);
    assert_eq!(again.anomalies, []);
}

/// The statistics of records of the feature `x` with these texts.
fn of_texts(
    texts: impl Iterator<Item = String>,
) -> (tempfile::TempDir, Vec<tfarrow_dataset::Shard>) {
    let folder = tempfile::tempdir().unwrap();
    let row = |text: String| {
        let value = ModelValue::Bytes(vec![text.into_bytes()]);
        ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))])
    };
    let file = tfarrow_testkit::frame::file(texts.map(|text| example_from_row(&row(text))));
    fs::write(folder.path().join("a.tfrecord"), file).unwrap();
    let shards = resolve(&[folder.path()]).unwrap();
    (folder, shards)
}

#[test]
fn long_texts_with_a_common_beginning_drift() {
    let texts =
        |name: &'static str| (0..12_000).map(move |i| format!("{}{name} {i}", "x".repeat(1_000)));
    let ((_one, now), (_other, before)) = (of_texts(texts("now")), of_texts(texts("before")));
    let progress = |_: u64, _: u64| ControlFlow::Continue(());
    let baseline = Statistics::collect(&before, &options(), &progress).unwrap();
    let distances = |shards| {
        let mut found = Validation::validate(
            shards,
            &baseline.infer_schema(),
            None,
            &options(),
            &progress,
        )
        .unwrap();
        let distances = found.compare(&baseline, None);
        distances
            .into_iter()
            .map(|distance| (distance.measure, distance.value, distance.is_estimated))
            .collect::<Vec<_>>()
    };
    let one = 1.0 / 12_000.0;
    let expect = [
        (Measure::LInfty, one, false),
        (Measure::JensenShannonDivergence, 1.0, false),
        (Measure::NormalizedAbsoluteDifference, one / 2.0, false),
    ];
    assert_eq!(distances(&now), expect);
    assert!(distances(&before).iter().all(|(_, value, _)| *value == 0.0));
}
