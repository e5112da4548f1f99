//! Records that are messages of a type that `--proto` and `--message`, or the options `proto` and
//! `message`, name.

use std::fs;

use serde_json::{Value, json};

use crate::support::{path, tfarrow, tfarrow_in, tfarrow_reads};

const SHAPES: &str = "testdata/message/shapes.tfrecord";
const DESCRIPTORS: &str = "testdata/message/shapes.desc";
const SHAPE: [&str; 4] = ["--proto", DESCRIPTORS, "--message", "tfarrow.test.Shape"];

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The rows of a query as CSV, without the names of the columns.
#[track_caller]
fn csv(query: &str, args: &[&str]) -> String {
    let rows = tfarrow(&[&["sql", query, "--format", "csv"], args].concat()).prints();
    rows.split_once('\n').unwrap().1.to_owned()
}

/// A copy of the shapes in which `change` has changed the bytes.
fn changed(folder: &tempfile::TempDir, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = fs::read(path(SHAPES)).unwrap();
    change(&mut bytes);
    let file = folder.path().join("changed.tfrecord");
    fs::write(&file, bytes).unwrap();
    file.display().to_string()
}

/// Frames one record.
fn framed(record: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    tfarrow_codec::frame::write(record, &mut bytes);
    bytes
}

/// `testdata/message/shapes.txt` has the same values, as protobuf prints them.
#[test]
fn head_prints_messages_as_objects() {
    let rows = json_lines(&tfarrow(&[&["head", SHAPES, "--full"], &SHAPE[..]].concat()).prints());
    assert_eq!(rows.len(), 3);
    let full = &rows[0];
    assert_eq!(full["name"], "círculo");
    assert_eq!(full["scalars"]["a_color"], "GREEN");
    assert_eq!(full["scalars"]["a_double"], "Infinity");
    assert_eq!(full["scalars"]["a_uint64"], json!(u64::MAX));
    assert_eq!(full["scalars"]["a_bytes"], json!({"b64": "/wA="}));
    assert_eq!(
        full["lists"]["colors"],
        json!(["COLOR_UNSET", "GREEN", "BLUE", "99"])
    );
    assert_eq!(
        full["points"],
        json!([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 2.0}])
    );
    assert_eq!(full["counts"], json!({"": 0, "a": 1}));
    assert_eq!(full["corners"], json!({"-1": {"x": 3.0, "y": 0.0}}));
    assert_eq!(full["colors"], json!({"true": "RED"}));
    assert_eq!(full["time"], "2001-02-03T04:05:06.789000001Z");
    assert_eq!((&full["wrapped"], &full["text"]), (&json!(0), &json!("")));
    // Of a oneof, only the member that is set is shown, also in nested messages.
    assert_eq!(
        (&full["radius"], full.get("label"), full.get("center")),
        (&json!(-0.0), None, None)
    );
    assert_eq!(
        (&full["parts"][0]["label"], full["parts"][0].get("radius")),
        (&json!("a"), None)
    );
    // Fields without presence have their default, absent messages are left out.
    assert_eq!(
        (&rows[1]["name"], rows[1].get("scalars")),
        (&json!(""), None)
    );
    assert_eq!(rows[2]["time"], "1969-12-31T23:59:59.999999999Z");
}

#[test]
fn sql_prints_messages_as_json() {
    let query = "SELECT counts, radius, label, scalars['a_bytes'] AS bytes, parts[1]['name'] AS part \
                 FROM 'testdata/message/shapes.tfrecord' LIMIT 1";
    let rows = json_lines(
        &tfarrow(&[&["sql", query, "--format", "ndjson"], &SHAPE[..]].concat()).prints(),
    );
    let expected = json!({"counts": {"": 0, "a": 1}, "radius": -0.0, "label": null, "bytes": {"b64": "/wA="}, "part": "part"});
    assert_eq!(rows, [expected]);
}

#[test]
fn a_source_and_the_end_of_a_name_are_sufficient() {
    let schema = |proto: &str, message: &str| {
        tfarrow(&[
            "schema",
            SHAPES,
            "--format",
            "json",
            "--proto",
            proto,
            "--message",
            message,
        ])
        .prints()
    };
    let of_descriptors = schema(DESCRIPTORS, "tfarrow.test.Shape");
    assert_eq!(
        schema("testdata/message/shapes.proto", "Shape"),
        of_descriptors
    );
    let schema: Value = serde_json::from_str(&of_descriptors).unwrap();
    assert_eq!(
        (&schema["record_type"], &schema["message"]),
        (&json!("message"), &json!("tfarrow.test.Shape"))
    );
    let columns = schema["columns"].as_array().unwrap();
    let named = |name: &str| {
        columns
            .iter()
            .find(|column| column["name"] == name)
            .unwrap()
    };
    let point = json!([
        {"name": "x", "arrow": "float64", "nullable": false},
        {"name": "y", "arrow": "float64", "nullable": false},
    ]);
    assert_eq!(
        named("points"),
        &json!({"name": "points", "arrow": "list<struct>", "nullable": false, "columns": point})
    );
    assert_eq!(
        named("counts"),
        &json!({"name": "counts", "arrow": "map<utf8, int32>", "nullable": false})
    );
}

#[test]
fn schema_lists_the_fields_of_nested_messages() {
    let table = tfarrow(&[&["schema", SHAPES], &SHAPE[..]].concat()).prints();
    assert!(
        table.starts_with("tfarrow.test.Shape: 22 columns, "),
        "{table}"
    );
    let cells = |line: &str| {
        line.split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = table
        .lines()
        .map(cells)
        .filter(|cells| cells.len() == 5)
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|cells| cells[1] == name)
            .map(|cells| cells[2..4].join(" "))
            .unwrap()
    };
    assert_eq!(row("points"), "list<struct> empty");
    assert_eq!(row("points.x"), "float64 default");
    assert_eq!(row("lists.maybe_sint32"), "int32 null");
    assert_eq!(row("corners"), "map<int64, struct> empty");
    let python = tfarrow(&[&["schema", SHAPES, "--format", "python"], &SHAPE[..]].concat()).ends(2);
    assert!(
        python.contains("messages have the formats table, json and arrow"),
        "{python}"
    );
}

#[test]
fn sql_reads_messages_by_options_of_the_table() {
    let query = "SELECT _record, name, scalars['an_int64'] AS big, points[2]['y'] AS y, counts['a'] AS a \
                 FROM read_tfrecord('testdata/message/shapes.tfrecord', proto => 'testdata/message/shapes.desc', \
                 message => 'Shape', metadata_columns => '_record') WHERE far < 0 OR name = 'early' ORDER BY 1";
    assert_eq!(
        csv(query, &[]),
        "0,círculo,9223372036854775807,2.0,1\n2,early,,,\n"
    );
    let query = "CREATE EXTERNAL TABLE shapes STORED AS TFRECORD LOCATION 'testdata/message/shapes.tfrecord' \
                 OPTIONS (proto 'testdata/message/shapes.proto', message 'tfarrow.test.Shape'); \
                 SELECT name, unnest(durations) AS d FROM shapes";
    assert_eq!(csv(query, &[]), "círculo,-PT1.5S\ncírculo,P0D\n");
    assert_eq!(
        csv(
            "SELECT count(*) FROM 'testdata/message/shapes.tfrecord'",
            &SHAPE
        ),
        "3\n"
    );
    let set = "SET tfarrow.proto = 'testdata/message/shapes.desc'; SET tfarrow.message = 'Legacy'; \
               SELECT id, grade, box['lid']['color'] AS color FROM 'testdata/message/legacy.tfrecord' ORDER BY id";
    assert_eq!(csv(set, &[]), "0,BAD,red\n1,,\n");
}

#[test]
fn show_create_table_has_the_options_of_messages() {
    let shown = csv(
        "SHOW CREATE TABLE 'testdata/message/shapes.tfrecord'",
        &SHAPE,
    );
    let expected = "STORED AS TFRECORD LOCATION 'testdata/message/shapes.tfrecord' \
                    OPTIONS (proto 'testdata/message/shapes.desc', message 'tfarrow.test.Shape')";
    assert!(shown.contains(expected), "{shown}");
}

/// The records were serialized by protobuf, in whose form they are written again, so that the bytes
/// are equal.
#[test]
fn parquet_and_arrow_convert_back_to_the_same_bytes_without_options() {
    let folder = tempfile::tempdir().unwrap();
    for (file, message) in [("shapes", "Shape"), ("legacy", "Legacy")] {
        for format in ["parquet", "arrow"] {
            let at = |name: &str| folder.path().join(name).display().to_string();
            let (columnar, back) = (
                at(&format!("{file}.{format}")),
                at(&format!("{file}.{format}.tfrecord")),
            );
            let source = format!("testdata/message/{file}.tfrecord");
            tfarrow(&[
                "convert",
                &source,
                &columnar,
                "--proto",
                DESCRIPTORS,
                "--message",
                message,
            ])
            .ends(0);
            tfarrow(&["convert", &columnar, &back]).ends(0);
            assert_eq!(
                fs::read(back).unwrap(),
                fs::read(path(&source)).unwrap(),
                "{file} {format}"
            );
        }
    }
}

#[test]
fn timestamps_are_written_in_microseconds_and_converted_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    // {time: {seconds: 1, nanos: 5000}}, and a time with nanoseconds.
    let whole = framed(b"\x72\x05\x08\x01\x10\x88\x27");
    fs::write(at("whole.tfrecord"), &whole).unwrap();
    fs::write(
        at("more.tfrecord"),
        [whole.clone(), framed(b"\x72\x05\x08\x01\x10\x89\x27")].concat(),
    )
    .unwrap();
    let convert = |from: &str, to: &str, options: &[&str]| {
        tfarrow(
            &[
                &["convert", &at(from), &at(to), "--timestamp-unit", "us"],
                &SHAPE[..],
                options,
            ]
            .concat(),
        )
    };
    for format in ["parquet", "arrow"] {
        let columnar = format!("whole.{format}");
        convert("whole.tfrecord", &columnar, &[]).ends(0);
        let query = format!("SELECT arrow_typeof(time), time FROM '{}'", at(&columnar));
        assert_eq!(
            csv(&query, &[]),
            "\"Timestamp(\u{b5}s, \"\"UTC\"\")\",1970-01-01T00:00:01.000005Z\n"
        );
        tfarrow(&[
            "convert",
            &at(&columnar),
            &at("back.tfrecord"),
            "--overwrite",
        ])
        .ends(0);
        assert_eq!(fs::read(at("back.tfrecord")).unwrap(), whole);
    }
    let error = convert("more.tfrecord", "more.parquet", &[]).ends(1);
    assert!(
        error.contains(
            "more.tfrecord: record 1 (byte 23): field time: expected a time of whole micros"
        ),
        "{error}"
    );
    assert!(!folder.path().join("more.parquet").exists());
    let skipped = convert("more.tfrecord", "more.parquet", &["--on-error", "skip"]).ends(3);
    assert!(skipped.contains("skipped 1 record"), "{skipped}");
}

#[test]
fn a_unit_of_timestamps_is_refused_where_it_would_be_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    tfarrow(&[&["convert", SHAPES, &at("ns.parquet")], &SHAPE[..]].concat()).ends(0);
    for (source, dest) in [
        ("testdata/shards/", "a/"),
        (SHAPES, "raw.parquet"),
        (SHAPES, "b.tfrecord"),
        (&at("ns.parquet"), "us.parquet"),
    ] {
        let error = tfarrow(&["convert", source, &at(dest), "--timestamp-unit", "us"]).ends(2);
        assert!(
            error.contains("timestamp_unit is for records that are messages"),
            "{source}: {error}"
        );
        assert!(!folder.path().join(dest).exists());
    }
}

#[test]
fn converted_messages_are_read_without_options() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shapes.parquet").display().to_string();
    tfarrow(&[&["convert", SHAPES, &file], &SHAPE[..]].concat()).ends(0);
    let of_records =
        |command: &[&str]| tfarrow(&[command, &[SHAPES], &SHAPE[..]].concat()).prints();
    let of_rows = |command: &[&str]| tfarrow(&[command, &[&file]].concat()).prints();
    for command in [
        &["head", "--full"][..],
        &["schema"],
        &["schema", "--format", "json"],
    ] {
        assert_eq!(of_rows(command), of_records(command), "{command:?}");
    }
    assert_eq!(
        csv(
            &format!("SELECT scalars['a_color'] FROM '{file}' LIMIT 1"),
            &[]
        ),
        "GREEN\n"
    );
    // The schema of the file defines the messages, as the descriptors do.
    let again = folder.path().join("again.parquet").display().to_string();
    tfarrow(&["convert", SHAPES, &again, "--schema", &file]).ends(0);
    assert_eq!(fs::read(again).unwrap(), fs::read(file).unwrap());
}

#[test]
fn selected_columns_convert_back_to_messages_without_the_other_fields() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (columnar, back) = (at("names.parquet"), at("names.tfrecord"));
    tfarrow(
        &[
            &["convert", SHAPES, &columnar, "--columns", "name,origin"],
            &SHAPE[..],
        ]
        .concat(),
    )
    .ends(0);
    tfarrow(&["convert", &columnar, &back]).ends(0);
    let rows = json_lines(&tfarrow(&[&["head", &back], &SHAPE[..]].concat()).prints());
    assert_eq!(
        (
            &rows[0]["name"],
            rows[0].get("scalars"),
            rows[0].get("radius")
        ),
        (&json!("círculo"), None, None)
    );
    assert_eq!(fs::metadata(&back).unwrap().len(), 3 * 16 + 10 + 7);
}

#[test]
fn copy_and_insert_write_messages() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let copy = format!(
        "COPY (SELECT * FROM 'testdata/message/shapes.tfrecord') TO '{}'",
        at("copy.tfrecord")
    );
    tfarrow(&[&["sql", &copy], &SHAPE[..]].concat()).ends(0);
    assert_eq!(
        fs::read(at("copy.tfrecord")).unwrap(),
        fs::read(path(SHAPES)).unwrap()
    );
}

#[test]
fn standard_input_and_compressed_files_are_read() {
    let bytes = fs::read(path(SHAPES)).unwrap();
    let of_pipe = tfarrow_reads(&[&["head", "-"], &SHAPE[..]].concat(), &bytes).prints();
    assert_eq!(
        of_pipe,
        tfarrow(&[&["head", SHAPES], &SHAPE[..]].concat()).prints()
    );
    let counted = tfarrow_reads(
        &[
            &["sql", "SELECT count(*) FROM '-'", "--format", "csv"],
            &SHAPE[..],
        ]
        .concat(),
        &bytes,
    );
    assert_eq!(counted.prints().lines().last(), Some("3"));
}

#[test]
fn names_and_files_that_are_wrong_are_errors_with_the_next_step() {
    let fails = |proto: &str, message: &str| {
        tfarrow(&["head", SHAPES, "--proto", proto, "--message", message]).fails()
    };
    let error = fails(DESCRIPTORS, "Shap");
    assert!(
        error.starts_with(&format!(
            "{DESCRIPTORS}: there is no message \"Shap\" (did you mean \"Shape\"?)"
        )),
        "{error}"
    );
    let error = fails(SHAPES, "Shape");
    assert!(error.starts_with(&format!("{SHAPES}: ")), "{error}");
    assert!(
        error.contains("expected a google.protobuf.FileDescriptorSet with all imports"),
        "{error}"
    );
    assert!(fails("nosuch.desc", "Shape").starts_with("nosuch.desc: "));
    // In SQL as well.
    let query = "SELECT * FROM read_tfrecord('testdata/message/shapes.tfrecord', proto => 'testdata/message/shapes.desc', \
                 message => 'Shap')";
    let error = tfarrow(&["sql", query]).fails();
    assert!(error.contains("(did you mean \"Shape\"?)"), "{error}");
    for (options, expected) in [
        (
            "proto 'testdata/message/shapes.desc'",
            "tfarrow.proto needs tfarrow.message",
        ),
        (
            "message 'Shape'",
            "only tensorflow.Event is defined without a file",
        ),
        (
            "message 'Shape', proto 'testdata/message/shapes.desc', record_type 'raw'",
            "each states the type of the records",
        ),
    ] {
        let query = format!(
            "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{SHAPES}' OPTIONS ({options})"
        );
        let error = tfarrow(&["sql", &query]).fails();
        assert!(error.contains(expected), "{error}");
    }
    let stderr = tfarrow(&["head", SHAPES, "--proto", DESCRIPTORS]).ends(2);
    assert!(stderr.contains("--message <NAME>"), "{stderr}");
    let stderr = tfarrow(&[&["head", SHAPES, "--record-type", "raw"], &SHAPE[..]].concat()).ends(2);
    assert!(stderr.contains("cannot be used with"), "{stderr}");
}

#[test]
fn records_that_are_no_such_messages_are_errors_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.tfrecord");
    // The field `name` has a text that is not UTF-8, and the field `origin` has a point that is
    // cut.
    for (record, field) in [
        (&b"\x0a\x01\xff"[..], "name"),
        (b"\x22\x02\x09\x00", "not a message"),
    ] {
        fs::write(&wrong, [framed(b""), framed(record)].concat()).unwrap();
        let name = wrong.display().to_string();
        let error = tfarrow(&[&["head", &name, "-n", "5"], &SHAPE[..]].concat());
        assert_eq!(error.stdout.lines().count(), 1);
        let stderr = error.ends(1);
        assert!(
            stderr.contains(&format!("{name}: record 1 (byte 16): ")) && stderr.contains(field),
            "{stderr}"
        );
        let query = format!("SELECT count(name), count(origin) FROM '{name}'");
        let stderr = tfarrow(&[&["sql", &query], &SHAPE[..]].concat()).fails();
        assert!(
            stderr.contains("record 1 (byte 16): ") && stderr.contains(field),
            "{stderr}"
        );
        let out = folder.path().join("out.parquet").display().to_string();
        let stderr = tfarrow(&[&["convert", &name, &out], &SHAPE[..]].concat()).ends(1);
        assert!(
            stderr.contains("record 1 (byte 16): ") && stderr.contains(field),
            "{stderr}"
        );
        assert!(!folder.path().join("out.parquet").exists());
        let skipped =
            tfarrow(&[&["convert", &name, &out, "--on-error", "skip"], &SHAPE[..]].concat())
                .ends(3);
        assert!(skipped.contains("1 record"), "{skipped}");
        fs::remove_file(out).unwrap();
    }
}

#[test]
fn damage_is_reported_and_skipped_as_in_other_records() {
    let folder = tempfile::tempdir().unwrap();
    let name = changed(&folder, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let query = format!("SELECT name FROM '{name}'");
    let error = tfarrow(&[&["sql", &query], &SHAPE[..]].concat()).fails();
    assert!(
        error.contains("record 2 ") && error.contains("CRC"),
        "{error}"
    );
    let skips = tfarrow(
        &[
            &["sql", &query, "--format", "csv", "--on-error", "skip"],
            &SHAPE[..],
        ]
        .concat(),
    );
    assert_eq!(
        (skips.stdout.as_str(), skips.status),
        ("name\ncírculo\n\"\"\n", Some(3))
    );
}

#[test]
fn convert_rejects_fields_that_the_message_does_not_define_unless_it_is_lossy() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("points.parquet").display().to_string();
    let args = [
        "convert",
        SHAPES,
        &out,
        "--proto",
        DESCRIPTORS,
        "--message",
        "Point",
    ];
    let error = tfarrow(&args).ends(1);
    assert!(error.contains("record 0 (byte 0): "), "{error}");
    assert!(
        error.contains("in a message tfarrow.test.Point, whose descriptor does not define it"),
        "{error}"
    );
    assert!(
        error.contains("--lossy") && error.contains("--proto"),
        "{error}"
    );
    let lossy = tfarrow(&[&args[..], &["--lossy"]].concat()).ends(3);
    assert!(lossy.contains("of the records has no column"), "{lossy}");
    // SQL skips such fields, as protobuf does, and reports them once.
    let warned = tfarrow(&[
        "sql",
        &format!("SELECT x FROM '{SHAPES}'"),
        "--proto",
        DESCRIPTORS,
        "--message",
        "Point",
    ])
    .ends(0);
    assert!(
        warned.contains("fields that their type does not define, such as field 1"),
        "{warned}"
    );
    assert_eq!(warned.lines().count(), 1);
}

#[test]
fn a_declared_table_has_no_columns_of_messages() {
    let query = "CREATE EXTERNAL TABLE t (name VARCHAR) STORED AS TFRECORD LOCATION 'testdata/message/shapes.tfrecord' \
                 OPTIONS (proto 'testdata/message/shapes.desc', message 'Shape')";
    let error = tfarrow(&["sql", query]).fails();
    assert!(
        error.contains("the option message defines the columns of the table"),
        "{error}"
    );
}

#[test]
fn the_files_of_the_options_are_relative_to_the_current_folder() {
    let folder = path("testdata/message");
    let args = [
        "head",
        "shapes.tfrecord",
        "-n",
        "1",
        "--proto",
        "shapes.proto",
        "--message",
        "Shape",
    ];
    assert!(
        tfarrow_in(&folder, &args)
            .prints()
            .starts_with("{\"name\":\"círculo\"")
    );
}

/// Writes a source of protobuf, and a file of one record.
fn written(folder: &tempfile::TempDir, source: &str, record: &[u8]) -> (String, String) {
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("m.proto"), source).unwrap();
    fs::write(at("m.tfrecord"), framed(record)).unwrap();
    (at("m.tfrecord"), at("m.proto"))
}

#[test]
fn extensions_of_proto2_are_errors_or_notes_that_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let source = "syntax = \"proto2\"; message M { optional int32 a = 1; extensions 100 to max; } \
                  extend M { optional int32 note = 100; }";
    let (file, proto) = written(&folder, source, b"\x08\x05\xa0\x06\x07");
    let of = ["--proto", &proto, "--message", "M"];
    let out = folder.path().join("m.parquet").display().to_string();
    let error = tfarrow(&[&["convert", &file, &out], &of[..]].concat()).fails();
    assert!(
        error.contains("found the extension 100 of a message M; extensions have no columns"),
        "{error}"
    );
    let head = tfarrow(&[&["head", &file], &of[..]].concat());
    assert_eq!(head.stdout, "{\"a\":5}\n");
    assert!(
        head.stderr
            .contains("fields without columns, such as field 100"),
        "{}",
        head.stderr
    );
}
