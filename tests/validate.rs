//! `tfarrow validate`.

use std::{fs, path::Path};

use tfarrow_testkit::{
    frame,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

use crate::support::{command, tfarrow};

/// Writes an edited schema of testdata/shards to a file in `folder`.
fn schema_in(folder: &Path, edit: impl FnOnce(String) -> String) -> String {
    let path = folder.join("schema.pbtxt");
    fs::write(
        &path,
        edit(tfarrow(&["schema", "testdata/shards/", "--format", "pbtxt"]).prints()),
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

fn validate(schema: &str, more: &[&str]) -> crate::support::Run {
    tfarrow(&[&["validate", "testdata/shards/", "--schema", schema], more].concat())
}

#[test]
fn data_that_matches_its_schema_has_no_anomalies() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| schema);
    assert_eq!(
        validate(&schema, &[]).prints(),
        "200 records, no anomalies\n"
    );
}

#[test]
fn colors_are_printed_to_terminals_only() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| {
        schema.replace("  value: \"Lima\"\n", "")
    });
    let args = ["validate", "testdata/shards/", "--schema", &schema];
    let printed = |variables: &[(&str, &str)]| {
        let output = command(&args)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let forced = printed(&[("CLICOLOR_FORCE", "1")]);
    assert!(forced.contains("\x1b[31m1 anomaly\x1b[0m"), "{forced:?}");
    assert!(!printed(&[]).contains('\x1b'));
    assert!(!printed(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\x1b'));
}

#[test]
fn anomalies_are_reported_with_their_positions() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| {
        schema.replace("  value: \"Lima\"\n", "")
    });
    let run = validate(&schema, &[]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[0], "200 records, 1 anomaly");
    assert!(
        lines[1].starts_with("city: ENUM_TYPE_UNEXPECTED_STRING_VALUES in "),
        "{}",
        lines[1]
    );
    assert!(
        lines[1].contains(
            " of 200 records, first testdata/shards/train-00000-of-00004.tfrecord: record "
        ),
        "{}",
        lines[1]
    );
    assert!(lines[2].contains("\"Lima\" (~"), "{}", lines[2]);
    assert_eq!(run.ends(3), "");
}

#[test]
fn anomalies_are_printed_as_json_and_pbtxt() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| {
        schema.replace("type: INT", "type: FLOAT")
    });
    let run = validate(&schema, &["--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["records"], 200);
    let label = found["anomalies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|anomaly| anomaly["feature"] == "label")
        .unwrap();
    assert_eq!(
        (&label["type"], &label["records"]),
        (&"UNEXPECTED_DATA_TYPE".into(), &200.into())
    );
    assert_eq!(
        (&label["first"]["record"], &label["first"]["offset"]),
        (&0.into(), &0.into())
    );
    let run = validate(&schema, &["--format", "pbtxt"]);
    assert!(
        run.stdout.contains("type: UNEXPECTED_DATA_TYPE") && run.stdout.contains("baseline {"),
        "{}",
        run.stdout
    );
    run.ends(3);
}

#[test]
fn an_updated_schema_has_no_anomalies() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| {
        schema
            .replace("type: INT", "type: FLOAT")
            .replace("size: 1", "size: 2")
    });
    validate(&schema, &["--update", &schema]).ends(3);
    assert_eq!(
        validate(&schema, &[]).prints(),
        "200 records, no anomalies\n"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn drift_from_a_baseline_is_an_anomaly() {
    let same = tfarrow(&[
        "validate",
        "testdata/shards/",
        "--baseline",
        "testdata/shards/",
        "--max-drift",
        "0",
    ])
    .prints();
    assert!(same.starts_with("200 records, no anomalies\n"), "{same}");
    assert!(
        same.lines()
            .any(|line| line.starts_with("| city ") && line.contains("L_INFTY")),
        "{same}"
    );
    let one = "testdata/shards/train-00000-of-00004.tfrecord";
    let run = tfarrow(&[
        "validate",
        "testdata/shards/",
        "--baseline",
        one,
        "--max-drift",
        "0.001",
    ]);
    assert!(
        run.stdout.contains("city: COMPARATOR_L_INFTY_HIGH\n"),
        "{}",
        run.stdout
    );
    run.ends(3);
}

#[test]
fn a_missing_or_invalid_schema_is_an_error() {
    let stderr = tfarrow(&["validate", "testdata/shards/"]).ends(2);
    assert!(stderr.contains("--schema"), "{stderr}");
    let error = validate("not there.pbtxt", &[]).fails();
    assert!(error.starts_with("not there.pbtxt: "), "{error}");
    let error = validate("README.md", &[]).fails();
    assert!(
        error.starts_with("README.md is not a schema in text format: "),
        "{error}"
    );
}

#[test]
fn a_data_set_without_records_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema_in(folder.path(), |schema| schema);
    let run = tfarrow(&["validate", "testdata/empty.tfrecord", "--schema", &schema]);
    assert_eq!(run.stdout, "0 records, no anomalies\n");
    assert_eq!(run.ends(3), "tfarrow: there are no records to validate\n");
}

#[test]
fn nan_and_infinity_are_notes_unless_the_schema_disallows_them() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("data.tfrecord");
    let row = |value: f32| {
        ModelRow::from([(
            (ModelSide::Features, "x".to_owned()),
            ModelCell::One(ModelValue::Float(vec![value.to_bits()])),
        )])
    };
    let payloads =
        [1.0, f32::NAN, f32::NAN, f32::INFINITY].map(|value| example_from_row(&row(value)));
    fs::write(&source, frame::file(payloads)).unwrap();
    let validated = |domain: &str, format: &str| {
        let schema = folder.path().join("schema.pbtxt");
        fs::write(
            &schema,
            format!("feature {{ name: \"x\" type: FLOAT {domain} }}"),
        )
        .unwrap();
        let [source, schema] = [&source, &schema].map(|path| path.to_str().unwrap());
        tfarrow(&["validate", source, "--schema", schema, "--format", format])
    };
    let printed = validated("", "table").prints();
    let [nan, infinite] = [
        "2 of 4 values are NaN; float_domain { disallow_nan: true }",
        "1 of 4 values are infinite; ",
    ];
    assert!(
        printed.contains("no anomalies\nx: note: ")
            && printed.contains(nan)
            && printed.contains(infinite),
        "{printed}"
    );
    let json: serde_json::Value = serde_json::from_str(&validated("", "json").prints()).unwrap();
    assert_eq!(
        json["non_finite"],
        serde_json::json!([{"feature": "x", "nan": 2, "infinite": 1, "values": 4}])
    );
    let run = validated("float_domain { disallow_nan: true }", "table");
    assert!(
        run.stdout
            .contains("x: FLOAT_TYPE_HAS_NAN in 2 of 4 records"),
        "{}",
        run.stdout
    );
    assert!(
        !run.stdout.contains(nan) && run.stdout.contains(infinite),
        "{}",
        run.stdout
    );
    run.ends(3);
}
