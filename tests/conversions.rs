//! `schema`, `stats`, `validate` and `head` on conversions to Parquet and Arrow: all figures are
//! those of the TFRecord source.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::{path, tfarrow};

/// The data sets of `testdata/` as TensorFlow writes them: folders, and files.
fn sources() -> Vec<String> {
    let folders = ["shards/", "mixed_kinds/", "compressed/", "tfds/", "magic/"]
        .map(|name| format!("testdata/{name}"));
    folders.into_iter().chain(files("testdata")).collect()
}

/// The TFRecord files in a folder.
fn files(folder: &str) -> Vec<String> {
    let names = fs::read_dir(path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = names
        .filter(|name| name.ends_with(".tfrecord"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    files
}

/// Converts a source to files in a folder. Returns their path.
fn converted(source: &str, folder: &Path, options: &[&str]) -> String {
    let out = folder
        .join(options.join("").replace(['-', '/'], ""))
        .to_string_lossy()
        .into_owned()
        + "/";
    let run = tfarrow(
        &[
            &["convert", source, &out, "--on-conflict", "split"],
            options,
        ]
        .concat(),
    );
    assert!(
        matches!(run.status, Some(0 | 3)),
        "{source} {options:?}: {}",
        run.stderr
    );
    out
}

/// The JSON that a command prints for a data set, without the names of files and the offsets of
/// records, which differ.
fn figures(command: &[&str], source: &str) -> (Option<i32>, Value) {
    let run = tfarrow(&[command, &[source, "--format", "json"]].concat());
    let mut json = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|_| panic!("{command:?} {source}: {}", run.stderr));
    without_files(&mut json);
    (run.status, json)
}

fn without_files(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            if fields.contains_key("file") {
                fields.retain(|name, _| name == "record");
            }
            fields.values_mut().for_each(without_files);
        }
        Value::Array(items) => items.iter_mut().for_each(without_files),
        _ => {}
    }
}

/// Figures without the number of bytes, which is that of the canonical form for records of another
/// form.
fn without_bytes((status, mut figures): (Option<i32>, Value)) -> (Option<i32>, Value) {
    figures.as_object_mut().unwrap().remove("bytes");
    (status, figures)
}

/// Compares the figures, the schema, the anomalies and the first records of conversions with those
/// of their source.
fn compare(source: &str, folder: &Path, all: &[&[&str]]) {
    let schema_file = folder.join("schema.pbtxt");
    // A schema that fits no file, so that there are anomalies.
    fs::write(
        &schema_file,
        "feature { name: \"id\" type: BYTES presence { min_fraction: 1.0 } }\n",
    )
    .unwrap();
    let validate = ["validate", "--schema", schema_file.to_str().unwrap()];
    let head = |source: &str| tfarrow(&["head", "-n", "300", "--full", source]).stdout;
    let (stats, schema, anomalies) = (
        figures(&["stats"], source),
        figures(&["schema"], source),
        figures(&validate, source),
    );
    let records = head(source);
    for options in all {
        let out = converted(source, folder, options);
        let what = format!("{source} {options:?}");
        assert_eq!(
            without_bytes(figures(&["stats"], &out)),
            without_bytes(stats.clone()),
            "stats of {what}"
        );
        // The probable kind of raw records is that of TFRecord files.
        let without_kind = |(status, mut schema): (Option<i32>, Value)| {
            schema.as_object_mut().unwrap().remove("probable");
            (status, schema)
        };
        assert_eq!(
            figures(&["schema"], &out),
            without_kind(schema.clone()),
            "schema of {what}"
        );
        assert_eq!(figures(&validate, &out), anomalies, "validate of {what}");
        assert_eq!(head(&out), records, "head of {what}");
        if options.contains(&"--exact") {
            assert_eq!(figures(&["stats"], &out), stats, "stats of {what}");
        }
    }
}

#[test]
fn figures_of_conversions_are_those_of_their_source() {
    for source in sources() {
        let folder = tempfile::tempdir().unwrap();
        let all: [&[&str]; 5] = [
            &["--to", "parquet", "--layout", "auto"],
            &["--to", "parquet", "--layout", "list"],
            &["--to", "arrow", "--layout", "auto"],
            &["--to", "arrow", "--layout", "list"],
            &["--to", "parquet", "--exact"],
        ];
        compare(&source, folder.path(), &all);
    }
}

/// Records in forms that other writers of protobuf may choose. One file has a SequenceExample with
/// an empty `feature_lists`, whose canonical form is that of an Example.
#[test]
fn figures_of_other_wire_forms_are_those_of_their_source() {
    for source in files("testdata/wire")
        .into_iter()
        .filter(|file| !file.ends_with("sequence_context_split.tfrecord"))
    {
        let folder = tempfile::tempdir().unwrap();
        compare(
            &source,
            folder.path(),
            &[&["--to", "parquet"], &["--to", "arrow", "--exact"]],
        );
    }
}

#[test]
fn slices_of_conversions_are_those_of_their_source() {
    let folder = tempfile::tempdir().unwrap();
    let out = converted("testdata/shards/", folder.path(), &["--to", "parquet"]);
    let by = ["stats", "--by", "city"];
    assert_eq!(figures(&by, &out), figures(&by, "testdata/shards/"));
}

#[test]
fn a_baseline_may_have_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let out = converted("testdata/shards/", folder.path(), &["--to", "parquet"]);
    let against =
        |baseline: &str| figures(&["validate", "--baseline", baseline], "testdata/shards/");
    assert_eq!(against(&out), against("testdata/shards/"));
    let page = folder.path().join("page.html");
    let report = |source: &str| {
        tfarrow(&[
            "report",
            source,
            "--baseline",
            "testdata/shards/",
            "-o",
            page.to_str().unwrap(),
        ])
        .prints();
        fs::read_to_string(&page).unwrap()
    };
    assert!(report(&out).contains("train-00000-of-00004.parquet: record "));
}

#[test]
fn a_data_set_may_have_files_of_several_formats() {
    let folder = tempfile::tempdir().unwrap();
    let out = converted(
        "testdata/scalar.tfrecord",
        folder.path(),
        &["--to", "parquet"],
    );
    let run = tfarrow(&[
        "stats",
        "testdata/scalar.tfrecord",
        &format!("{out}scalar.parquet"),
        "--format",
        "json",
    ]);
    let both: Value = serde_json::from_str(&run.prints()).unwrap();
    let (_, one) = figures(&["stats"], "testdata/scalar.tfrecord");
    assert_eq!(
        both["records"].as_u64(),
        one["records"].as_u64().map(|records| 2 * records)
    );
}

#[test]
fn rows_are_named_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let out = converted("testdata/mixed_kinds/", folder.path(), &["--to", "parquet"]);
    let warning = tfarrow(&["schema", &out]).ends(3);
    assert!(
        warning.contains("part-00001-of-00002.parquet, row 0, 3 in all"),
        "{warning}"
    );
    let refused = tfarrow(&["schema", &out, "--format", "sql"]).ends(2);
    assert!(
        refused.contains("SQL reads other formats by their names"),
        "{refused}"
    );
}
