//! `ExampleListWithContext` records, by all commands; and records of unknown types, whose probable
//! kind is named.

use std::fs;

use crate::support::{path, tfarrow};

const QUERIES: &str = "testdata/example_list/queries.tfrecord";

#[test]
fn the_schema_has_context_columns_and_features_of_examples() {
    let printed = tfarrow(&["schema", QUERIES]).prints();
    assert!(
        printed.starts_with("5 ExampleListWithContext records in 1 shard\n"),
        "{printed}"
    );
    let row = |name: &str| {
        printed
            .lines()
            .find(|line| line.starts_with(&format!("| {name} ")))
            .unwrap()
            .to_owned()
    };
    let cells = |name| {
        row(name)
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cells("query")[2..6],
        ["context", "bytes_list", "60.0 %", "2"]
    );
    assert_eq!(
        cells("title")[2..6],
        ["examples", "bytes_list", "85.7 %", "1"]
    );
    let python = tfarrow(&["schema", "--format", "python", QUERIES]).prints();
    assert!(
        python.contains("example_features = {\n    \"relevance\": tf.io.RaggedFeature(tf.int64)"),
        "{python}"
    );
}

#[test]
fn a_schema_in_json_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let [schema, dest] = ["schema.json", "queries.parquet"]
        .map(|name| folder.path().join(name).display().to_string());
    fs::write(
        &schema,
        tfarrow(&["schema", "--format", "json", QUERIES]).prints(),
    )
    .unwrap();
    tfarrow(&["convert", "-q", "--schema", &schema, QUERIES, &dest]).prints();
    assert!(
        tfarrow(&["diff", QUERIES, &dest])
            .prints()
            .ends_with("equal\n")
    );
}

#[test]
fn conversions_return_equal_records() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).display().to_string();
    for (to, exact) in [
        ("parquet", false),
        ("arrow", false),
        ("parquet", true),
        ("arrow", true),
    ] {
        let (middle, back) = (
            name(&format!("{exact}.{to}")),
            name(&format!("{exact}-{to}.tfrecord")),
        );
        let options: &[_] = if exact {
            &["convert", "-q", "--exact"]
        } else {
            &["convert", "-q"]
        };
        tfarrow(&[options, &[QUERIES, &middle]].concat()).prints();
        tfarrow(&["convert", "-q", &middle, &back]).prints();
        assert!(
            tfarrow(&["diff", QUERIES, &middle])
                .prints()
                .ends_with("equal\n")
        );
        assert!(
            tfarrow(&["diff", QUERIES, &back])
                .prints()
                .ends_with("equal\n")
        );
        if exact {
            assert_eq!(fs::read(&back).unwrap(), fs::read(path(QUERIES)).unwrap());
        }
        let schemas = [QUERIES, &middle].map(|source| tfarrow(&["schema", source]).prints());
        assert_eq!(schemas[0], schemas[1]);
        let heads = [QUERIES, &middle].map(|source| tfarrow(&["head", source]).prints());
        assert_eq!(heads[0], heads[1]);
    }
}

#[test]
fn sql_has_a_row_for_each_example() {
    let query = format!(
        "SELECT query, example.relevance[1] AS relevance FROM \
         (SELECT query, unnest(examples) AS example FROM '{QUERIES}') WHERE query IS NOT NULL"
    );
    let printed = tfarrow(&["sql", "--format", "csv", &query]).prints();
    assert_eq!(
        printed,
        "query,relevance\nrust arrow,2\nrust arrow,0\nlast,1\nlast,1\nlast,1\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.tfrecord").display().to_string();
    tfarrow(&[
        "sql",
        &format!("COPY (SELECT * FROM '{QUERIES}' WHERE query = 'last') TO '{copy}'"),
    ])
    .prints();
    assert_eq!(tfarrow(&["count", &copy]).prints(), "1\n");
    let run = tfarrow(&["diff", "--on", "query", &copy, QUERIES]);
    assert_eq!(run.status, Some(3));
    assert!(
        run.stdout.contains("1 record equal, 0 different"),
        "{run:?}"
    );
}

#[test]
fn head_prints_the_examples() {
    let printed = tfarrow(&["head", "-n", "3", QUERIES]).prints();
    let lines: Vec<_> = printed.lines().collect();
    let second = r#"{"context":{"query":["grün"],"tokens":{"unset":true}},"examples":[]}"#;
    let third = r#"{"context":{},"examples":[{},{"relevance":[],"title":["a title"]}]}"#;
    assert_eq!(lines[1..], [second, third]);
}

#[test]
fn statistics_warn_that_they_have_no_values_of_examples() {
    let printed = tfarrow(&["stats", QUERIES]);
    assert!(
        printed
            .stderr
            .contains("ExampleListWithContext messages, whose features have no statistics")
    );
}

/// Records that are no Examples: their probable kind, and the fields of messages.
#[test]
fn the_probable_kind_of_raw_records_is_named() {
    let printed = tfarrow(&["schema", "testdata/raw.tfrecord"]);
    assert!(
        printed.stdout.ends_with("\nprobably text, by 5 records\n"),
        "{}",
        printed.stdout
    );
    let printed = tfarrow(&["schema", "testdata/message/shapes.tfrecord"]).stdout;
    assert!(
        printed.contains("\nprobably protobuf messages, by 3 records\n+-------"),
        "{printed}"
    );
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("| 2.3 ") && line.contains(" integer ")),
        "{printed}"
    );
    let json = tfarrow(&[
        "schema",
        "--format",
        "json",
        "testdata/message/shapes.tfrecord",
    ])
    .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["probable"]["name"], "protobuf messages");
    assert_eq!(
        json["probable"]["fields"][0]["path"],
        serde_json::json!([1])
    );
    let head = tfarrow(&["head", "-n", "1", "testdata/message/legacy.tfrecord"]);
    assert!(
        head.stderr
            .contains("the records are no tf.Examples, and probably protobuf messages"),
        "{}",
        head.stderr
    );
    let line: serde_json::Value = serde_json::from_str(&head.stdout).unwrap();
    assert_eq!(line["fields"]["2"], 7);
    // A type that is stated needs no other.
    let head = tfarrow(&[
        "head",
        "-n",
        "1",
        "--record-type",
        "raw",
        "testdata/message/legacy.tfrecord",
    ]);
    assert!(
        head.stderr.is_empty() && !head.stdout.contains("fields"),
        "{}",
        head.stdout
    );
}
