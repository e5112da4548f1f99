//! `tfarrow head`.

use std::{io::Write, process::Stdio};

use crate::support::{command, path, tfarrow, tfarrow_reads};

#[track_caller]
fn check(args: &[&str], lines: &[&str]) {
    let printed = tfarrow(&[&["head"], args].concat()).prints();
    assert_eq!(printed.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn head_shows_features_as_lists() {
    check(
        &["testdata/scalar.tfrecord", "-n", "2"],
        &[
            r#"{"id":[-5],"payload":[{"b64":"/wAA"}],"score":[-1.0],"title":["amber 0"]}"#,
            r#"{"id":[996],"payload":[{"b64":"/gAB"}],"score":[-0.875],"title":["birch 1"]}"#,
        ],
    );
}

#[test]
fn head_leaves_out_nulls_of_any_type() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.arrow").display().to_string();
    let query = "SELECT 1 AS a, NULL AS b, arrow_cast(NULL, 'Dictionary(Int32, Utf8)') AS c, named_struct('d', NULL, 'e', 2) AS f";
    tfarrow(&["sql", query, "-o", &file]).ends(0);
    check(&[&file], &[r#"{"a":1,"f":{"e":2}}"#]);
}

#[test]
fn a_message_of_files_without_messages_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.parquet").display().to_string();
    tfarrow(&["sql", "SELECT 1 AS a", "-o", &file]).ends(0);
    for source in [file.as_str(), "testdata/events/logs/"] {
        let run = |command| tfarrow(&[command, source, "--message", "tensorflow.Event"]);
        for command in ["head", "schema"] {
            if source == file {
                let error = run(command).ends(2);
                assert!(
                    error.contains("--message applies to TFRecord sources only, and")
                        && error.contains("is Parquet")
                );
            } else {
                run(command).prints();
            }
        }
    }
    let parquet = std::fs::read(&file).unwrap();
    let error = tfarrow_reads(&["head", "-", "--message", "tensorflow.Event"], &parquet).ends(2);
    assert!(error.contains("is Parquet"), "{error}");
}

#[test]
fn head_distinguishes_absent_unset_and_empty_features() {
    check(
        &["testdata/states.tfrecord", "-n", "1"],
        &[
            r#"{"b_empty":[],"f":{"unset":true},"f_empty":[],"i":[],"i_empty":[],"never":{"unset":true}}"#,
        ],
    );
}

#[test]
fn head_shows_the_context_and_the_feature_lists_of_sequences() {
    check(
        &["testdata/sequence.tfrecord", "-n", "3"],
        &[
            r#"{"context":{"id":[1],"shared":["context"],"speaker":["ann"]},"feature_lists":{"frame":[[1.0,2.0,3.0],[4.0],[]],"shared":[[1],[2,3]],"token":[["a"],["b","c"]]}}"#,
            r#"{"context":{"id":[2]},"feature_lists":{"frame":[],"token":[[],["d"]]}}"#,
            r#"{"context":{"id":[3]},"feature_lists":{"frame":[{"unset":true},[5.0],{"unset":true}],"shared":[[]],"token":[{"unset":true}]}}"#,
        ],
    );
}

#[test]
fn head_shows_raw_records_as_text_or_base64() {
    check(
        &["testdata/raw.tfrecord", "-n", "1"],
        &[r#"{"record":"line 0: plain text, no proto"}"#],
    );
    let printed = tfarrow(&[
        "head",
        "--record-type",
        "raw",
        "--full",
        "-n",
        "1",
        "testdata/scalar.tfrecord",
    ])
    .prints();
    assert!(printed.starts_with(r#"{"record":{"b64":""#), "{printed}");
}

#[test]
fn head_shows_nan_and_infinity_as_strings() {
    let printed = tfarrow(&["head", "-n", "20", "testdata/numbers.tfrecord"]).prints();
    for line in [
        r#"{"f":["Infinity"],"i":[2147483648]}"#,
        r#"{"f":["-Infinity"],"i":[4294967296]}"#,
        r#"{"f":["NaN"],"i":[255]}"#,
        r#"{"f":[0.0],"i":[-9223372036854775808]}"#,
    ] {
        assert!(printed.lines().any(|l| l == line), "{line} in {printed}");
    }
}

#[test]
fn head_abbreviates_long_bytes_without_full() {
    let short = tfarrow(&["head", "-n", "1", "testdata/tfds"]).prints();
    assert!(
        short.starts_with(r#"{"image":["<PNG "#) && short.ends_with("],\"label\":[0]}\n"),
        "{short}"
    );
    let full = tfarrow(&["head", "-n", "1", "--full", "testdata/tfds"]).prints();
    assert!(
        full.starts_with(r#"{"image":[{"b64":"iVBORw0KGgo"#),
        "{full}"
    );
}

#[test]
fn head_continues_after_a_change_of_kind() {
    let parts = [
        "testdata/mixed_kinds/part-00000-of-00002.tfrecord",
        "testdata/mixed_kinds/part-00001-of-00002.tfrecord",
    ];
    let bytes = parts
        .map(|part| std::fs::read(path(part)).unwrap())
        .concat();
    let printed = tfarrow_reads(&["head", "-"], &bytes).prints();
    let expected = (0..3).map(|i| format!("{{\"x\":[{i}],\"y\":[{i}]}}\n"));
    let expected: String = expected
        .chain((0..3).map(|i| format!("{{\"x\":[{i}.5],\"y\":[{i}]}}\n")))
        .collect();
    assert_eq!(printed, expected);
}

#[test]
fn head_shows_the_records_before_damage() {
    let run = tfarrow(&["head", "testdata/corrupt/data.tfrecord"]);
    assert_eq!(run.stdout.lines().count(), 1);
    assert!(
        run.ends(1)
            .starts_with("tfarrow: testdata/corrupt/data.tfrecord: record 1 (byte ")
    );
}

#[test]
fn head_stops_reading_after_the_last_shown_record() {
    let bytes = std::fs::read(path("testdata/scalar.tfrecord")).unwrap();
    let mut child = command(&["head", "-n", "1", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The stream is endless until the program closes its input.
    while stdin.write_all(&bytes).is_ok() {}
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 1);
}
