//! CSV and JSON files as sources of the commands.

use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::tfarrow;

/// A folder with the same table as CSV and as JSON lines.
fn tables() -> (TempDir, [String; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let csv =
        "id,price,is_new,city\n1,0.1,true,Oslo\n2,0.5,false,\"Rio, RJ\"\n3,,true,\n4,1e300,,Oslo\n";
    let json = "{\"id\": 1, \"price\": 0.1, \"is_new\": true, \"city\": \"Oslo\"}\n\
                {\"id\": 2, \"price\": 0.5, \"is_new\": false, \"city\": \"Rio, RJ\"}\n\
                {\"id\": 3, \"is_new\": true}\n{\"id\": 4, \"price\": 1e300, \"city\": \"Oslo\"}\n";
    let names = ["a.csv", "a.tsv", "a.jsonl"]
        .map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    fs::write(&names[0], csv).unwrap();
    fs::write(
        &names[1],
        csv.replace("Rio, RJ", "Rio; RJ")
            .replace(',', "\t")
            .replace("Rio; RJ", "Rio, RJ"),
    )
    .unwrap();
    fs::write(&names[2], json).unwrap();
    (folder, names)
}

fn convert(args: &[&str]) -> String {
    tfarrow(&[&["convert"], args].concat()).ends(0)
}

/// The output of a command without what names the file or its size.
fn of_any_file(printed: &str, path: &str) -> String {
    printed.replace(path, "FILE")
}

#[test]
fn commands_read_text_as_its_conversion() {
    let (folder, names) = tables();
    for name in &names {
        let record = format!("{name}.tfrecord");
        let stderr = convert(&[name, &record]);
        let rounded = "changed to what a record can hold: column \"price\": float64 rounded to float32 (2 values)";
        assert_eq!(stderr.matches(rounded).count(), 1, "{stderr}");
        for command in [
            &["schema", "--json"][..],
            &["stats", "--json"],
            &["schema", "--format", "pbtxt"],
        ] {
            let found = tfarrow(&[command, &[name]].concat());
            assert!(found.stderr.contains(rounded), "{}", found.stderr);
            let expected = of_any_file(
                &tfarrow(&[command, &[record.as_str()]].concat()).prints(),
                &record,
            );
            let stdout = without_offsets(&found.stdout);
            assert_eq!(
                of_any_file(&stdout, name),
                without_offsets(&expected),
                "{command:?} {name}"
            );
            found.ends(0);
        }
        let run = tfarrow(&["diff", name, &record]);
        assert!(run.stdout.contains("equal"), "{run:?}");
        run.ends(0);
        let validated = tfarrow(&["validate", name, "--baseline", &record]);
        assert!(validated.stdout.contains("no anomalies"), "{validated:?}");
        validated.ends(0);
        let page = folder.path().join("report.html");
        let report = tfarrow(&["report", name, "-o", page.to_str().unwrap()]);
        assert!(
            report.stdout.ends_with(": 4 records, 4 features\n"),
            "{report:?}"
        );
        assert_eq!(tfarrow(&["count", name]).prints(), "4\n");
        let verified = tfarrow(&["verify", name]).ends(0);
        assert!(
            verified.contains("4 valid records") && verified.contains("without checksums"),
            "{verified}"
        );
        let first = tfarrow(&["head", "-n", "2", name]).prints();
        let first: Vec<Value> = first
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(first[1]["city"], json!("Rio, RJ"), "{first:?}");
        assert_eq!(first[0]["price"], json!(0.1), "{first:?}");
        let summary = tfarrow(&[
            "sql",
            "--format",
            "csv",
            &format!("SELECT feature, present FROM summarize('{name}')"),
        ]);
        assert!(summary.stdout.contains("price,3\n"), "{summary:?}");
    }
}

/// JSON without the offsets of records, which rows do not have.
fn without_offsets(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("\"offset\":"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn text_becomes_parquet_and_arrow_with_its_own_types() {
    let (folder, names) = tables();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for source in &names {
        for target in ["b.parquet", "b.arrow"] {
            let stderr = convert(&[source, &place(target), "--overwrite"]);
            assert!(!stderr.contains("float32"), "{stderr}");
            let query = format!("SELECT * FROM '{}' ORDER BY id", place(target));
            let printed = tfarrow(&["sql", "--format", "csv", &query]).prints();
            let expected = "id,price,is_new,city\n1,0.1,true,Oslo\n2,0.5,false,\"Rio, RJ\"\n3,,true,\n4,1e+300,,Oslo\n";
            assert_eq!(printed, expected, "{source} {target}");
        }
        convert(&[
            source,
            &place("c.parquet"),
            "--columns",
            "city,id",
            "--overwrite",
        ]);
        let printed = tfarrow(&[
            "sql",
            "--format",
            "csv",
            &format!("SELECT * FROM '{}' LIMIT 1", place("c.parquet")),
        ]);
        assert_eq!(printed.prints(), "city,id\nOslo,1\n");
    }
    let wanted = ["id", "city"]
        .map(|name| json!({"name": name, "type": if name == "id" { "int64" } else { "utf8" }}));
    let plan = tfarrow(&[
        "convert",
        &names[0],
        &place("d.parquet"),
        "--columns",
        "id,city",
        "--dry-run",
        "--json",
    ]);
    let plan: Value = serde_json::from_str(&plan.prints()).unwrap();
    assert_eq!(plan["columns"], json!(wanted));
    // The output of many files, and new shards.
    convert(&[&names[0], &names[1], &place("both.tfrecord")]);
    assert_eq!(tfarrow(&["count", &place("both.tfrecord")]).prints(), "8\n");
    convert(&[
        &names[0],
        &place("cut/"),
        "--to",
        "tfrecord",
        "--shards",
        "2",
    ]);
    assert!(Path::new(&place("cut/a-00001-of-00002.tfrecord")).exists());
    let stderr = tfarrow(&["convert", &names[0], &place("none/")]).ends(2);
    assert!(
        stderr.contains("the output format is not known"),
        "{stderr}"
    );
}

#[test]
fn rounding_is_the_only_change_that_text_allows() {
    let (folder, names) = tables();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let summary = tfarrow(&["convert", &names[0], &place("a.tfrecord"), "--json"]);
    let found: Value = serde_json::from_str(&summary.stdout).unwrap();
    let change = json!({"column \"price\": float64 rounded to float32": 2});
    assert_eq!(
        (&found["rounded"], &found["lossy_changes"]),
        (&change, &json!({}))
    );
    summary.ends(0);
    let lossy = tfarrow(&[
        "convert",
        &names[0],
        &place("b.tfrecord"),
        "--lossy",
        "--json",
    ]);
    let found: Value = serde_json::from_str(&lossy.stdout).unwrap();
    assert_eq!(
        (&found["rounded"], &found["lossy_changes"]),
        (&json!({}), &change)
    );
    lossy.ends(3);
    let nulls = place("nulls.jsonl");
    fs::write(&nulls, "{\"x\": [1, null, 2]}\n").unwrap();
    let error = tfarrow(&["convert", &nulls, &place("c.tfrecord")]).fails();
    assert!(error.contains("\"x\"") && error.contains("null"), "{error}");
    let objects = place("objects.jsonl");
    fs::write(&objects, "{\"x\": {\"y\": 1}, \"z\": 1}\n").unwrap();
    let error = tfarrow(&["convert", &objects, &place("d.tfrecord")]).ends(2);
    assert!(
        error.contains("\"x\"") && error.contains("flattens it"),
        "{error}"
    );
    convert(&[&objects, &place("e.tfrecord"), "--exclude", "x"]);
    let left_out = tfarrow(&["schema", &objects]);
    assert!(
        left_out
            .stderr
            .contains("left out, because no record can hold it: ")
            && left_out.stdout.contains("z")
    );
    // A wrong line leaves no output.
    let ragged = place("ragged.csv");
    fs::write(&ragged, "a,b\n1,2\n3\n").unwrap();
    for args in [
        &["stats", &ragged][..],
        &["head", &ragged],
        &["convert", &ragged, &place("f.tfrecord")],
    ] {
        let error = tfarrow(args).ends(1);
        assert!(
            error.contains(
                "ragged.csv: line 3 (row 1): found 1 fields, expected 2 as in the header"
            ),
            "{error}"
        );
    }
    assert!(!Path::new(&place("f.tfrecord")).exists());
}

/// What is accepted can be read from the outputs.
#[test]
fn the_deepest_json_becomes_files_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (open, close) in [("{\"b\":", "}"), ("[", "]")] {
        let line = |depth| format!("{{\"a\":{}1{}}}\n", open.repeat(depth), close.repeat(depth));
        fs::write(place("a.jsonl"), line(50)).unwrap();
        for target in ["a.parquet", "a.arrow"] {
            convert(&[&place("a.jsonl"), &place(target), "--overwrite"]);
            assert_eq!(
                tfarrow(&["head", "--full", &place(target)])
                    .prints()
                    .replace(' ', ""),
                line(50),
                "{target}"
            );
            tfarrow(&["verify", &place(target)]).ends(0);
        }
        fs::write(place("deep.jsonl"), line(51)).unwrap();
        let error = tfarrow(&["convert", &place("deep.jsonl"), &place("deep.parquet")]).ends(1);
        assert!(
            error.contains("more than 50 lists and objects are nested in each other"),
            "{error}"
        );
    }
}

#[test]
fn folders_and_globs_of_text_are_data_sets() {
    let (folder, _) = tables();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // JSON files that end in .json are often next to data, and are read if they are named.
    fs::write(place("info.json"), "{\"id\": 1}\n").unwrap();
    assert_eq!(tfarrow(&["count", &place("")]).prints(), "12\n");
    assert_eq!(tfarrow(&["count", &place("*.csv")]).prints(), "4\n");
    assert_eq!(tfarrow(&["count", &place("*.json")]).prints(), "1\n");
    assert_eq!(tfarrow(&["count", &place("info.json")]).prints(), "1\n");
    // Text next to shards is no data.
    fs::copy(
        crate::support::path("testdata/scalar.tfrecord"),
        place("scalar.tfrecord"),
    )
    .unwrap();
    let run = tfarrow(&["count", &place("")]);
    assert_eq!(run.stdout, "20\n");
    assert!(run.ends(0).contains("3 of a format that was not asked for"));
    let repaired = tfarrow(&["repair", &place("a.csv"), &place("b.tfrecord")]).ends(2);
    assert!(
        repaired.contains("a.csv: is CSV; only TFRecord files can be repaired"),
        "{repaired}"
    );
    let mixed = tfarrow(&[
        "convert",
        &place("a.csv"),
        &place("scalar.tfrecord"),
        &place("x.parquet"),
    ])
    .ends(2);
    assert!(
        mixed.contains("scalar.tfrecord is TFRecord and ") && mixed.contains("a.csv is CSV"),
        "{mixed}"
    );
    // SQL reads text as before.
    let rows = tfarrow(&[
        "sql",
        "--format",
        "csv",
        &format!("SELECT count(*) AS n FROM '{}'", place("a.csv")),
    ])
    .prints();
    assert_eq!(rows, "n\n4\n");
}

/// The outputs of an earlier run are no sources, though text beside other files is no data.
#[test]
fn text_is_converted_again_beside_its_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(place("a.csv"), "x\n1\n").unwrap();
    fs::write(place("b.csv"), "x\n2\n").unwrap();
    let here = place("");
    convert(&[&here, &here, "--to", "parquet"]);
    convert(&[&here, &here, "--to", "parquet", "--resume"]);
    fs::write(place("a.csv"), "x\n3\n").unwrap();
    convert(&[&here, &here, "--to", "parquet", "--overwrite"]);
    // The Parquet files are stale, and not the sources.
    fs::write(place("a.csv"), "x\n4\n5\n").unwrap();
    let stderr = convert(&[&here, &here, "--to", "tfrecord"]);
    assert!(
        stderr.contains("2 of a format that was not asked for"),
        "{stderr}"
    );
    let printed = tfarrow(&["head", &place("a.tfrecord")])
        .prints()
        .replace(' ', "");
    assert_eq!(printed, "{\"x\":[4]}\n{\"x\":[5]}\n");
    convert(&[&here, &here, "--to", "tfrecord", "--overwrite"]);
    // One file for all, and new shards.
    for name in ["a.tfrecord", "b.tfrecord", "a.parquet", "b.parquet"] {
        fs::remove_file(place(name)).unwrap();
    }
    convert(&[&here, &place("all.parquet")]);
    convert(&[&here, &place("all.parquet"), "--overwrite"]);
    fs::remove_file(place("all.parquet")).unwrap();
    convert(&[&here, &here, "--to", "parquet", "--shards", "2"]);
    convert(&[
        &here,
        &here,
        "--to",
        "parquet",
        "--shards",
        "2",
        "--overwrite",
    ]);
    // Files that are no outputs of text are the sources.
    let other = tempfile::tempdir().unwrap();
    fs::copy(
        crate::support::path("testdata/scalar.tfrecord"),
        other.path().join("scalar.tfrecord"),
    )
    .unwrap();
    fs::write(other.path().join("labels.csv"), "x\n1\n").unwrap();
    let there = other.path().to_str().unwrap();
    convert(&[there, there, "--to", "parquet"]);
    assert!(
        other.path().join("scalar.parquet").exists()
            && !other.path().join("labels.parquet").exists()
    );
}

#[test]
fn text_files_are_parts_of_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sql = |query: String| tfarrow(&["sql", "--format", "csv", &query]).prints();
    fs::write(place("a.jsonl"), "{\"a\":1,\"b\":2}\n").unwrap();
    fs::write(place("b.jsonl"), "{\"b\":1.5,\"a\":2,\"c\":\"x\"}\n").unwrap();
    fs::write(place("c.csv"), "b,a\n7,8\n").unwrap();
    let sources = ["a.jsonl", "b.jsonl", "c.csv"].map(place);
    let files: Vec<_> = sources.iter().map(String::as_str).collect();
    convert(&[&files[..], &[&place("all.parquet")]].concat());
    let printed = sql(format!("SELECT * FROM '{}'", place("all.parquet")));
    assert_eq!(printed, "a,b,c\n1,2.0,\n2,1.5,x\n8,7.0,\n");
    convert(
        &[
            &files[..],
            &[&place("cut/"), "--to", "arrow", "--shards", "2"],
        ]
        .concat(),
    );
    assert_eq!(
        sql(format!("SELECT sum(b) AS b FROM '{}'", place("cut/"))),
        "b\n10.5\n"
    );
    // Each file of its own has its own columns, with the types of all.
    convert(&[&files[..], &[&place("own/"), "--to", "parquet"]].concat());
    assert_eq!(
        sql(format!("SELECT * FROM '{}'", place("own/a.parquet"))),
        "a,b\n1,2.0\n"
    );
    assert_eq!(
        sql(format!("SELECT * FROM '{}'", place("own/c.parquet"))),
        "b,a\n7.0,8\n"
    );
    let schema: Value =
        serde_json::from_str(&tfarrow(&[&["schema", "--json"], &files[..]].concat()).prints())
            .unwrap();
    assert!(
        schema.to_string().contains("float") && !schema.to_string().contains("conflict"),
        "{schema}"
    );
    // Two data sets that are compared have common types as well.
    fs::write(place("ints.csv"), "a\n1\n2\n").unwrap();
    fs::write(place("floats.csv"), "a\n1\n2.5\n").unwrap();
    let run = tfarrow(&["diff", &place("ints.csv"), &place("floats.csv")]);
    assert!(run.stdout.contains("differs in 1 record"), "{run:?}");
    run.ends(3);
}

/// Whether floats are rounded does not depend on the other sources.
#[test]
fn floats_of_text_are_rounded_beside_other_sources() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, text) in [("digits.csv", "x\n0.1\n"), ("held.csv", "x\n0.5\n")] {
        fs::write(place(name), text).unwrap();
    }
    convert(&[&place("digits.csv"), &place("digits.parquet")]);
    convert(&[&place("held.csv"), &place("held.parquet")]);
    let one = place("one.tfrecord");
    let run = tfarrow(&[
        "convert",
        &place("digits.csv"),
        &place("held.parquet"),
        &one,
        "--json",
    ]);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        found["rounded"],
        json!({"column \"x\": float64 rounded to float32": 1})
    );
    assert_eq!(found["lossy_changes"], json!({}));
    run.ends(0);
    for order in [
        ["held.csv", "digits.parquet"],
        ["digits.parquet", "held.csv"],
    ] {
        let error = tfarrow(&[
            "convert",
            &place(order[0]),
            &place(order[1]),
            &place("two.tfrecord"),
        ])
        .fails();
        assert!(
            error.contains("digits.parquet: ") && error.contains("0.1"),
            "{error}"
        );
    }
}

#[test]
fn text_in_folders_is_verified() {
    let (folder, _) = tables();
    let verified = tfarrow(&["verify", folder.path().to_str().unwrap()]).ends(0);
    assert!(verified.contains("12 valid records"), "{verified}");
    fs::write(folder.path().join("bad.csv"), "a,b\n1\n").unwrap();
    let run = tfarrow(&["verify", folder.path().join("*.csv").to_str().unwrap()]);
    let printed = [run.stdout.as_str(), &run.stderr].concat();
    assert!(
        printed.contains("bad.csv") && printed.contains("line 2 (row 0)"),
        "{run:?}"
    );
    run.ends(3);
}

/// Excluded columns are not encoded, so that they may have any values.
#[test]
fn diff_leaves_out_excluded_columns() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, y) in [("a.jsonl", 1), ("b.jsonl", 2)] {
        fs::write(
            place(name),
            format!("{{\"id\":7,\"x\":{{\"y\":{y}}},\"l\":[1,null,{y}],\"z\":1}}\n"),
        )
        .unwrap();
    }
    let (a, b) = (place("a.jsonl"), place("b.jsonl"));
    let error = tfarrow(&["diff", &a, &b, "--exclude", "l"]).fails();
    assert!(
        error.contains("\"x\"") && !error.contains("--lossy"),
        "{error}"
    );
    let error = tfarrow(&["diff", &a, &b, "--exclude", "x"]).fails();
    assert!(
        error.contains("\"l\"") && error.contains("null") && !error.contains("--lossy"),
        "{error}"
    );
    for more in [&[][..], &["--on", "id"]] {
        let run = tfarrow(&[&["diff", &a, &b, "--exclude", "x,l"], more].concat());
        assert!(run.stdout.contains("equal"), "{run:?}");
        run.ends(0);
    }
    // A key is read, also if it is excluded.
    tfarrow(&["diff", &a, &b, "--exclude", "x,l,id", "--on", "id"]).ends(0);
}

/// A value of a column, and the text of it in CSV.
fn cell(kind: usize) -> BoxedStrategy<Option<Value>> {
    let value = match kind {
        0 => any::<i64>().prop_map(Value::from).boxed(),
        // Floats of 32 bits are not rounded. Each has a fraction or an exponent, so that the column
        // is one of floats.
        1 => any::<f32>()
            .prop_filter("JSON has no others", |f| f.is_finite())
            .prop_map(|f| json!(f64::from(f)))
            .boxed(),
        2 => any::<bool>().prop_map(Value::from).boxed(),
        _ => "t[ -~\"\n\r,é;\\\\]{0,8}".prop_map(Value::from).boxed(),
    };
    proptest::option::weighted(0.8, value).boxed()
}

/// Tables of up to four columns with names that do not depend on the order.
fn any_table() -> impl Strategy<Value = Vec<Vec<Option<Value>>>> {
    proptest::collection::vec(0..4usize, 1..5).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.into_iter().map(cell).collect();
        proptest::collection::vec(row, 1..8)
    })
}

fn as_csv(table: &[Vec<Option<Value>>]) -> String {
    let line = |fields: Vec<String>| fields.join(",") + "\n";
    let field = |value: &Option<Value>| match value {
        None => "\"\"".to_owned(),
        Some(Value::String(text)) => format!("\"{}\"", text.replace('"', "\"\"")),
        Some(other) => other.to_string(),
    };
    let names = (0..table[0].len())
        .map(|column| format!("c{column}"))
        .collect();
    line(names)
        + &table
            .iter()
            .map(|row| line(row.iter().map(field).collect()))
            .collect::<String>()
}

fn objects(table: &[Vec<Option<Value>>]) -> Vec<Map<String, Value>> {
    let object = |row: &Vec<Option<Value>>| {
        let fields = row
            .iter()
            .enumerate()
            .filter_map(|(column, value)| Some((format!("c{column}"), value.clone()?)));
        fields.collect()
    };
    table.iter().map(object).collect()
}

/// A value as a feature of a record: a list, with booleans as integers, and floats of 32 bits.
fn feature(value: &Value) -> Value {
    json!([match value {
        Value::Bool(value) => json!(i64::from(*value)),
        other => other.clone(),
    }])
}

/// Numbers that are equal as floats of 32 bits are equal, since their texts may differ.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().map(|f| f as f32) == other.as_f64().map(|f| f as f32)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| is_same(value, other)))
        }
        (one, other) => one == other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_table_keeps_its_values(table in any_table()) {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let objects = objects(&table);
        // Parquet has no rows without columns.
        prop_assume!(objects.iter().any(|object| !object.is_empty()));
        fs::write(place("a.csv"), as_csv(&table)).unwrap();
        fs::write(place("a.jsonl"), objects.iter().map(|object| Value::from(object.clone()).to_string() + "\n").collect::<String>()).unwrap();
        let records: Vec<Value> =
            objects.iter().map(|object| object.iter().map(|(name, value)| (name.clone(), feature(value))).collect()).collect();
        for source in ["a.csv", "a.jsonl"] {
            convert(&[&place(source), &place("out.tfrecord"), "--overwrite"]);
            let printed = tfarrow(&["head", "--full", "-n", "100", &place("out.tfrecord")]).prints();
            let found: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert!(found.len() == records.len(), "{source}: {found:?} {records:?}");
            for (found, expected) in found.iter().zip(&records) {
                prop_assert!(is_same(found, expected), "{source}: {found} {expected}");
            }
            convert(&[&place(source), &place("out.parquet"), "--overwrite"]);
            let query = format!("SELECT * FROM '{}'", place("out.parquet"));
            let printed = tfarrow(&["sql", "--format", "ndjson", &query]).prints();
            for (line, object) in printed.lines().zip(&objects) {
                let mut found: Map<String, Value> = serde_json::from_str(line).unwrap();
                found.retain(|_, value| !value.is_null());
                prop_assert!(is_same(&Value::from(found.clone()), &Value::from(object.clone())), "{source}: {found:?} {object:?}");
            }
        }
    }
}
