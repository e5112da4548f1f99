//! The texts that the library `tfarrow_report` returns are those that the program prints.

use std::{ops::ControlFlow, slice};

use serde_json::{Value, json};
use tfarrow_codec::Layout;
use tfarrow_convert::{DiffOptions, Progress, diff};
use tfarrow_dataset::{FormatFilter, Resolved, Shard, resolve, resolve_filtered};
use tfarrow_report::{
    EventCurves, FaultReport, InferredSchema, SchemaFormat, StatisticsReport, diff_json, diff_text,
    error_message, record_warnings, report_page, schema_omissions, schema_text, schema_warnings,
    skipped_text, statistics_text,
    text::{Screen, pretty_json},
    validation_json, validation_text, verified_json, verified_text,
};
use tfarrow_scan::{InferOptions, VerifyOptions, infer, verify};
use tfarrow_stats::{Comparison, Expected, RecordProfiler, Statistics};

use crate::support::{path, tfarrow};

/// The absolute path of test data. The library and the program run in different folders.
fn source(name: &str) -> String {
    path("testdata")
        .join(name)
        .into_os_string()
        .into_string()
        .unwrap()
}

/// A text without styles, of any width.
const PLAIN: Screen = Screen::plain(None);

fn shards(source: &str) -> Vec<Shard> {
    resolve(&[source]).unwrap()
}

fn statistics(source: &str) -> Statistics {
    Statistics::collect(&shards(source), &InferOptions::default(), &go_on).unwrap()
}

fn inferred_schema(source: &str) -> InferredSchema {
    let shards = shards(source);
    let inferred = infer(&shards, &InferOptions::default(), &go_on).unwrap();
    InferredSchema::new(shards, inferred, Layout::Auto, None).unwrap()
}

fn go_on(_bytes: u64, _records: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn schemas() {
    let source = source("shards/");
    let found = inferred_schema(&source);
    for name in [
        "table",
        "json",
        "arrow",
        "python",
        "rust",
        "sql",
        "features-json",
    ] {
        let format = SchemaFormat::from_name(name).unwrap();
        let text = schema_text(&found, format, slice::from_ref(&source), PLAIN).unwrap();
        assert_eq!(
            tfarrow(&["schema", &source, "--format", name]).prints(),
            text + "\n",
            "{name}"
        );
        assert!(schema_omissions(&found, format).is_empty());
    }
    assert!(schema_warnings(&found, skipped_text).texts.is_empty());
    let narrow = schema_text(&found, SchemaFormat::Table, &[], Screen::plain(Some(70))).unwrap();
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 70),
        "{narrow}"
    );
    assert!(schema_text(&found, SchemaFormat::Pbtxt, &[], PLAIN).is_err());
    assert_eq!(SchemaFormat::from_name("xml"), None);
}

#[test]
fn warnings() {
    let source = source("mixed_kinds/");
    let warnings = schema_warnings(&inferred_schema(&source), skipped_text).texts;
    assert!(!warnings.is_empty());
    let lines: Vec<_> = warnings
        .iter()
        .map(|warning| format!("tfarrow: {warning}\n"))
        .collect();
    assert_eq!(tfarrow(&["schema", &source]).ends(3), lines.concat());
    assert!(
        record_warnings(&statistics(&source).inferred, skipped_text)
            .texts
            .is_empty()
    );
}

#[test]
fn figures() {
    let source = source("shards/");
    let text = statistics_text(&statistics(&source).summarize(), PLAIN);
    assert_eq!(tfarrow(&["stats", &source]).prints(), text + "\n");
    let sliced =
        Statistics::collect_sliced(&shards(&source), &InferOptions::default(), &go_on, "label")
            .unwrap();
    let report = StatisticsReport::sliced(&sliced, "label");
    let text = report.text(PLAIN);
    assert_eq!(
        tfarrow(&["stats", &source, "--by", "label"]).prints(),
        text + "\n"
    );
    let json: Value = serde_json::from_str(&pretty_json(&report).unwrap()).unwrap();
    assert_eq!(json["by"], "label");
}

#[test]
fn anomalies_and_pages() {
    let (today, before) = (
        source("shards/train-00000-of-00004.tfrecord"),
        source("shards/"),
    );
    let expected = Expected {
        baseline: Some(statistics(&before)),
        max_drift: Some(0.01),
        ..Expected::default()
    };
    let options = InferOptions::default();
    let profiler = || RecordProfiler::new(24);
    let (compared, profilers) =
        Comparison::run_with(&shards(&today), expected, &options, &go_on, profiler).unwrap();
    assert!(compared.has_anomalies());
    let printed = |command: &str, more: &[&str]| {
        let args = [
            command,
            &today,
            "--baseline",
            &before,
            "--max-drift",
            "0.01",
        ];
        tfarrow(&[args.as_slice(), more].concat()).stdout
    };
    let text = validation_text(&compared, PLAIN);
    assert_eq!(printed("validate", &[]), text + "\n");
    let json = validation_json(&compared).unwrap();
    assert_eq!(printed("validate", &["--format", "json"]), json + "\n");
    let (shards, profile) = (
        shards(&today),
        RecordProfiler::merged(24, profilers).finish(),
    );
    let curves = EventCurves::default();
    let page = report_page("title", &compared, &profile, &shards, &curves, skipped_text);
    assert_eq!(printed("report", &["--title", "title", "-o", "-"]), page);
}

#[test]
fn faults() {
    let names = ["length", "data"].map(|name| source(&format!("corrupt/{name}.tfrecord")));
    let Resolved {
        shards,
        skipped_files,
        missing,
    } = resolve_filtered(&names, FormatFilter::ToVerify).unwrap();
    let found = verify(
        shards,
        &VerifyOptions {
            max_faults: 100,
            ..VerifyOptions::default()
        },
        &go_on,
    )
    .unwrap();
    let damage = &found.damage;
    let text = FaultReport { files: &[], damage }.text(PLAIN);
    let printed = tfarrow(&["verify", &names[0], &names[1]]);
    assert_eq!(printed.stdout, text.clone() + "\n");
    assert_eq!(
        FaultReport { files: &[], damage }.summary(),
        "2 faults (1 length, 1 data)"
    );
    let summary = printed.stderr.trim_end().trim_start_matches("tfarrow: ");
    assert_eq!(
        verified_text(&found, PLAIN),
        format!("{text}\n{}", summary.lines().last().unwrap())
    );
    let json = verified_json(&found, &skipped_files, &missing).unwrap();
    assert_eq!(
        tfarrow(&["verify", &names[0], &names[1], "--format", "json"]).stdout,
        json.clone() + "\n"
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["counts"], json!({"data": 1, "length": 1}));
    assert_eq!(json["faults"][0]["file"], names[0].as_str());
}

#[test]
fn differences() {
    let [left, right] = ["00000", "00001"]
        .map(|number| source(&format!("shards/train-{number}-of-00004.tfrecord")));
    let options = DiffOptions::default();
    let found = diff(&[&left], &[&right], &options, &Progress::default()).unwrap();
    let text = diff_text([&left, &right], &found, PLAIN);
    assert_eq!(tfarrow(&["diff", &left, &right]).stdout, text + "\n");
    let json = diff_json(&found).unwrap();
    assert_eq!(
        tfarrow(&["diff", &left, &right, "--format", "json"]).stdout,
        json + "\n"
    );
}

#[test]
fn errors() {
    let missing = source("missing.tfrecord");
    let error = resolve(&[&missing]).unwrap_err();
    assert_eq!(tfarrow(&["count", &missing]).fails(), error_message(&error));
}
