//! Names, values and paths with characters that change the display of a terminal. No output
//! contains them unescaped.

use std::{fs, path::Path};

use tfarrow_testkit::{
    frame,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

use crate::support::{command, tfarrow, tfarrow_reads};

/// Control characters, and characters that change the direction of text.
const MARKS: &str = "\u{9b}\u{7f}\u{85}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{200f}\u{61c}";

/// Writes a file with the marks in its name, in the name of a feature and in its values.
fn hostile(folder: &Path, name: &str, number: i64) -> String {
    let row = ModelRow::from([
        (
            (ModelSide::Features, format!("name{MARKS}")),
            ModelCell::One(ModelValue::Bytes(vec![format!("{number}{MARKS}").into()])),
        ),
        (
            (ModelSide::Features, "ok".to_owned()),
            ModelCell::One(ModelValue::Int64(vec![number])),
        ),
    ]);
    let path = folder.join(format!("{name}{MARKS}.tfrecord"));
    fs::write(
        &path,
        frame::file([example_from_row(&row), example_from_row(&row)]),
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

/// Checks that both outputs of the program have no such character but line feeds, and returns
/// standard output.
#[track_caller]
fn output(args: &[&str]) -> String {
    let output = command(args).output().unwrap();
    let [printed, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    for text in [&printed, &stderr] {
        let bad = text
            .chars()
            .find(|c| *c != '\n' && (c.is_control() || MARKS.contains(*c)));
        assert_eq!(bad, None, "tfarrow {args:?}: {text:?}");
    }
    assert!(printed.len() + stderr.len() > 10, "tfarrow {args:?}");
    printed
}

#[test]
fn no_output_has_control_characters_of_names_values_and_paths() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (
        &hostile(folder.path(), "one", 1),
        &hostile(folder.path(), "other", 2),
    );
    for format in [
        "table",
        "json",
        "arrow",
        "python",
        "rust",
        "sql",
        "features-json",
        "pbtxt",
    ] {
        output(&["schema", one, "--format", format]);
    }
    let name = &format!("name{MARKS}");
    for format in ["table", "json"] {
        output(&["stats", one, "--format", format]);
        output(&["stats", one, "--by", name, "--format", format]);
        output(&["diff", one, other, "--format", format]);
        output(&["verify", one, "--format", format]);
    }
    for format in ["table", "json", "pbtxt"] {
        output(&[
            "validate",
            one,
            "--baseline",
            other,
            "--max-drift",
            "0.1",
            "--format",
            format,
        ]);
    }
    for title in [&[][..], &["--title", name]] {
        output(&[&["report", one, "-o", "-", "--baseline", other], title].concat());
    }
    output(&["head", one]);
    // Faults contain paths and messages.
    fs::write(one, &fs::read(other).unwrap()[..40]).unwrap();
    for format in ["table", "json"] {
        output(&["verify", one, "--format", format]);
    }
}

#[test]
fn json_and_python_contain_escaped_names() {
    let folder = tempfile::tempdir().unwrap();
    let one = &hostile(folder.path(), "one", 1);
    let name = format!("name{MARKS}");
    let json = |args: &[&str]| serde_json::from_str::<serde_json::Value>(&output(args)).unwrap();
    assert_eq!(
        json(&["schema", one, "--format", "json"])["features"][0]["name"],
        name
    );
    assert!(
        json(&["schema", one, "--format", "features-json"])["featuresDict"]["features"]
            .get(&name)
            .is_some()
    );
    assert_eq!(
        json(&["stats", one, "--format", "json"])["features"][0]["name"],
        name
    );
    let python = output(&["schema", one, "--format", "python"]);
    let escaped = r#""name\x9b\x7f\x85\u202a\u202e\u2066\u2069\u2028\u200f\u061c": tf.io."#;
    assert!(python.contains(escaped), "{python}");
}

#[test]
fn the_sql_schema_of_hostile_names_and_paths_is_a_valid_statement() {
    let folder = tempfile::tempdir().unwrap();
    let quoted = folder.path().join("it's\\a folder");
    fs::create_dir(&quoted).unwrap();
    let one = &hostile(&quoted, "one", 7);
    let statement = output(&["schema", one, "--format", "sql"]);
    assert!(
        statement.contains("cannot be declared, for the control characters in its name"),
        "{statement}"
    );
    let table = statement.split('"').nth(1).unwrap();
    let sql = format!("{statement} SELECT * FROM \"{table}\";");
    let run = tfarrow_reads(&["sql", "--format", "csv"], sql.as_bytes());
    assert_eq!(
        (run.status, run.stdout.as_str()),
        (Some(0), "ok\n7\n7\n"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("1 feature has no column: \"name\\u{9b}"),
        "{}",
        run.stderr
    );
    // Names without control characters are declared.
    let plain = tfarrow(&["schema", "testdata/shards", "--format", "sql"]).prints();
    assert!(!plain.contains("cannot be declared"), "{plain}");
}
