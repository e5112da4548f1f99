//! TensorBoard's event files. `testdata/events/generate.py` writes them, and the values that
//! TensorBoard's reader reads.

use std::fs;

use serde_json::{Value, json};

use crate::support::{path, tfarrow};

const LOGS: &str = "testdata/events/logs/";
const FIRST: &str = "testdata/events/logs/events.out.tfevents.1700000000.host";

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The rows of a query, each as an array of its values.
#[track_caller]
fn rows(query: &str) -> Vec<Value> {
    let rows = json_lines(&tfarrow(&["sql", query, "--format", "ndjson"]).prints());
    rows.iter()
        .map(|row| Value::Array(row.as_object().unwrap().values().cloned().collect()))
        .collect()
}

fn expected(part: &str) -> Vec<Value> {
    let expected: Value =
        serde_json::from_slice(&fs::read(path("testdata/events/expected.json")).unwrap()).unwrap();
    expected[part].as_array().unwrap().clone()
}

/// The seconds since 1970 of a timestamp of microseconds.
const SECONDS: &str = "CAST(CAST(wall_time AS BIGINT) AS DOUBLE) / 1000000";

#[test]
fn scalars_texts_and_images_are_those_of_tensorboard() {
    let order = "ORDER BY run, tag, step";
    let query = format!(
        "SELECT run, tag, step, {SECONDS} AS t, value FROM '{LOGS}' WHERE kind = 'scalar' {order}"
    );
    assert_eq!(rows(&query), expected("scalars"));
    let query = format!(
        "SELECT run, tag, step, {SECONDS} AS t, text FROM '{LOGS}' WHERE kind = 'text' {order}"
    );
    assert_eq!(rows(&query), expected("texts"));
    let image = "image['width'] AS w, image['height'] AS h, encode(image['bytes'], 'hex') AS bytes";
    let query = format!(
        "SELECT run, tag, step, {SECONDS} AS t, {image} FROM '{LOGS}' WHERE kind = 'image' {order}"
    );
    assert_eq!(rows(&query), expected("images"));
}

/// TensorBoard converts the histograms of TensorFlow 1 to buckets with two edges, in 32 bits.
#[test]
fn histograms_are_those_of_tensorboard() {
    let parts = "histogram['left'] AS l, histogram['right'] AS r, histogram['count'] AS c";
    let query = format!(
        "SELECT run, tag, step, {SECONDS} AS t, {parts} FROM '{LOGS}' WHERE kind = 'histogram' ORDER BY run, tag, step"
    );
    assert_eq!(rows(&query), expected("histograms"));
}

#[test]
fn the_table_has_a_row_for_each_value_of_a_summary() {
    let columns = rows(&format!("DESCRIBE '{LOGS}'"));
    let names: Vec<_> = columns
        .iter()
        .map(|column| column[0].as_str().unwrap())
        .collect();
    let all = [
        "run",
        "step",
        "wall_time",
        "tag",
        "plugin",
        "kind",
        "value",
        "text",
        "image",
        "histogram",
    ];
    assert_eq!(names, all);
    let kinds = rows(&format!(
        "SELECT run, plugin, kind, count(*) FROM '{LOGS}' GROUP BY run, plugin, kind ORDER BY run, kind, plugin"
    ));
    let expected = [
        json!([".", null, "audio", 1]),
        json!([".", null, "histogram", 2]),
        json!([".", null, "image", 1]),
        json!([".", null, "scalar", 3]),
        json!(["train", "audio", "audio", 1]),
        json!(["train", "histograms", "histogram", 2]),
        json!(["train", "images", "image", 2]),
        json!(["train", "scalars", "scalar", 2]),
        json!(["train", "other", "tensor", 1]),
        json!(["train", "text", "text", 2]),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn texts_and_bytes_have_the_types_of_the_option() {
    let read = |bytes_type: &str, columns: &str, order: &str| {
        rows(&format!(
            "SELECT {columns} FROM read_tfrecord('{LOGS}', bytes_type => '{bytes_type}') {order}"
        ))
    };
    let columns = ["tag", "plugin", "kind", "text", "image['bytes']"];
    let types = columns
        .map(|column| format!("arrow_typeof({column})"))
        .join(", ");
    let types = |bytes_type: &str| read(bytes_type, &format!("DISTINCT {types}"), "");
    let views = [json!([
        "Utf8View",
        "Utf8View",
        "Utf8View",
        "Utf8View",
        "BinaryView"
    ])];
    assert_eq!(
        (types("auto"), types("binary_view")),
        (views.to_vec(), views.to_vec())
    );
    assert_eq!(
        types("binary"),
        [json!(["Utf8", "Utf8", "Utf8", "Utf8", "Binary"])]
    );
    let all = |bytes_type: &str| {
        let order = "ORDER BY run, tag, step, kind";
        read(
            bytes_type,
            "run, step, wall_time, tag, plugin, kind, value, text, image, histogram",
            order,
        )
    };
    assert_eq!((all("binary"), all("binary").len()), (all("auto"), 17));
}

#[test]
fn events_are_filtered_joined_and_limited() {
    let query = format!(
        "SELECT max(step) FROM '{LOGS}' WHERE run = 'train' AND tag = 'loss' AND step < 50"
    );
    assert_eq!(rows(&query), [json!([0])]);
    assert!(
        tfarrow(&["sql", &query, "--format", "csv"])
            .prints()
            .starts_with("max(step)\n")
    );
    let query = format!(
        "SELECT a.step, b.value - a.value FROM '{LOGS}' a JOIN '{LOGS}' b ON a.tag = b.tag AND a.step = b.step \
         WHERE a.tag = 'loss' AND a.run = '.' AND b.run = 'train'"
    );
    assert_eq!(rows(&query), [json!([0, -0.5])]);
    assert_eq!(
        rows(&format!("SELECT value FROM '{FIRST}' LIMIT 1")),
        [json!([1.0])]
    );
    assert_eq!(
        rows(&format!("SELECT count(*) FROM '{LOGS}**/*.host'")),
        [json!([17])]
    );
    let query = format!(
        "SELECT DISTINCT run, _file FROM read_tfrecord('{LOGS}', metadata_columns => '_file') ORDER BY 1"
    );
    let second = "testdata/events/logs/train/events.out.tfevents.1700000010.host";
    assert_eq!(
        rows(&query),
        [json!([".", FIRST]), json!(["train", second])]
    );
}

#[test]
fn tables_of_events_are_created_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scalars.parquet").display().to_string();
    let query = format!(
        "CREATE EXTERNAL TABLE logs STORED AS TFRECORD LOCATION '{LOGS}'; \
         COPY (SELECT run, step, tag, value FROM logs WHERE kind = 'scalar') TO '{out}'"
    );
    tfarrow(&["sql", &query]).ends(0);
    assert_eq!(rows(&format!("SELECT count(*) FROM '{out}'")), [json!([5])]);
    let shown = &rows(&format!("SHOW CREATE TABLE '{LOGS}'"))[0][3];
    assert_eq!(
        shown,
        &json!(format!(
            "CREATE EXTERNAL TABLE \"logs\" STORED AS TFRECORD LOCATION '{LOGS}'"
        ))
    );
}

#[test]
fn events_are_also_messages() {
    let head = json_lines(&tfarrow(&["head", FIRST]).prints());
    assert_eq!(
        (head.len(), &head[0]["file_version"]),
        (7, &json!("brain.Event:2"))
    );
    assert_eq!(
        head[1]["summary"]["value"][0],
        json!({"tag": "loss", "simple_value": 1.0, "node_name": ""})
    );
    let table = tfarrow(&["schema", LOGS]).prints();
    assert!(
        table.starts_with("tensorflow.Event: 10 columns, "),
        "{table}"
    );
    let query = format!(
        "SELECT step FROM read_tfrecord('{FIRST}', message => 'tensorflow.Event') WHERE session_log IS NOT NULL"
    );
    assert_eq!(rows(&query), [json!([3])]);
    assert_eq!(
        tfarrow(&["count", FIRST])
            .prints()
            .split_whitespace()
            .next(),
        Some("7")
    );
    // As bytes, if that is stated.
    let raw = tfarrow(&["head", FIRST, "--record-type", "raw", "-n", "1"]).prints();
    assert!(raw.starts_with("{\"record\":"), "{raw}");
}

#[test]
fn converted_events_convert_back_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    tfarrow(&["convert", LOGS, &at("parquet/")]).ends(0);
    tfarrow(&["convert", &at("parquet/"), &at("back/"), "--to", "tfrecord"]).ends(0);
    for file in [
        "events.out.tfevents.1700000000.host",
        "train/events.out.tfevents.1700000010.host",
    ] {
        assert_eq!(
            fs::read(at("back/") + file).unwrap(),
            fs::read(path(LOGS).join(file)).unwrap(),
            "{file}"
        );
    }
    let rows_of_events = "SET tfarrow.message = 'tensorflow.Event'";
    let query = format!(
        "{rows_of_events}; SELECT count(*) FROM '{}' WHERE summary IS NOT NULL",
        at("parquet/")
    );
    assert_eq!(rows(&query), [json!([7])]);
}

/// The metadata of the files says that their rows are events.
#[test]
fn converted_events_have_the_table_of_the_event_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (source, format) in [(at("parquet/"), "parquet"), (at("arrow/"), "arrow")] {
        tfarrow(&["convert", LOGS, &source, "--to", format]).ends(0);
        for query in [
            "SELECT * FROM 'LOGS' ORDER BY run, tag, step, kind, wall_time",
            "SELECT value FROM 'LOGS' WHERE run = 'train' AND tag = 'loss' ORDER BY step DESC LIMIT 1",
            "SELECT run, count(*) FROM 'LOGS**/*.host*' GROUP BY run ORDER BY run",
            "SELECT count(*) FROM 'LOGSevents.out.tfevents.1700000000.host*'",
            "SELECT a.step, b.value - a.value FROM 'LOGS' a JOIN 'LOGS' b USING (tag) WHERE a.run = '.' AND a.tag = 'loss' ORDER BY 1, 2",
            "SET tfarrow.bytes_type = 'binary'; SELECT arrow_typeof(tag), image FROM 'LOGS' WHERE kind = 'image' ORDER BY step",
            "SET tfarrow.metadata_columns = '_record,_offset,_raw'; SELECT tag, _record, _offset, _raw FROM 'LOGS' ORDER BY 1, 2, 3, 4",
            "DESCRIBE 'LOGS'",
            // A row for each event, with all fields of the message.
            "SET tfarrow.message = 'tensorflow.Event'; SELECT * FROM 'LOGS' ORDER BY wall_time, step",
        ] {
            let [found, expected] =
                [&source, LOGS].map(|source| rows(&query.replace("LOGS", source)));
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(found, expected, "{format}: {query}");
        }
        let shown = &rows(&format!("SHOW CREATE TABLE '{source}'"))[0][3];
        let view = format!("CREATE VIEW \"{format}\" AS SELECT * FROM '{source}'");
        assert_eq!(shown, &json!(view));
        assert_eq!(
            rows(&format!("{view}; SELECT count(*) FROM {format}")),
            [json!([17])]
        );
        // A table that a statement declares has the columns of its files.
        let file = format!("{source}events.out.tfevents.1700000000.host.{format}");
        let declared = format!(
            "CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{file}'; SELECT count(*) FROM t"
        );
        assert_eq!(rows(&declared), [json!([7])]);
    }
}

#[test]
fn files_without_the_columns_of_events_are_no_tables_of_events() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    tfarrow(&["convert", LOGS, &at("some/"), "--columns", "step,wall_time"]).ends(0);
    let columns = |source: &str| {
        let columns = rows(&format!("DESCRIBE '{source}'"));
        columns
            .iter()
            .map(|column| column[0].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(columns(&at("some/")), ["step", "wall_time"]);
    assert_eq!(
        rows(&format!("SELECT count(*) FROM '{}'", at("some/"))),
        [json!([11])]
    );
    // Beside another file, which has other columns.
    tfarrow(&["convert", LOGS, &at("mixed/")]).ends(0);
    tfarrow(&[
        "convert",
        "testdata/scalar.tfrecord",
        &at("mixed/scalar.parquet"),
    ])
    .ends(0);
    let mixed = columns(&at("mixed/"));
    assert!(
        mixed.contains(&"summary".to_owned()) && !mixed.contains(&"tag".to_owned()),
        "{mixed:?}"
    );
}

/// A file of a converted log that is corrupt is named once, with the row.
#[test]
fn corrupt_files_of_converted_events_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.parquet");
    tfarrow(&["convert", FIRST, file.to_str().unwrap()]).ends(0);
    let mut bytes = fs::read(&file).unwrap();
    // The first pages, and not the footer.
    bytes[4..400].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let error = tfarrow(&[
        "sql",
        &format!("SELECT count(tag) FROM '{}'", file.display()),
    ])
    .fails();
    assert_eq!(error.matches("events.parquet").count(), 1, "{error}");
}

/// A field of a message with a body.
fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut length = body.len();
    let mut bytes = vec![number << 3 | 2];
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    [bytes, body.to_vec()].concat()
}

/// A file with an event for each tensor.
fn file_of_tensors(folder: &tempfile::TempDir, tensors: &[Vec<u8>]) -> String {
    let summary = |tensor: &Vec<u8>| field(1, &[field(1, b"tag"), field(8, tensor)].concat());
    let mut bytes = Vec::new();
    let events = tensors.iter().map(|tensor| field(5, &summary(tensor)));
    for event in [field(3, b"brain.Event:2")].into_iter().chain(events) {
        tfarrow_codec::frame::write(
            &[&b"\x09\0\0\0\0\0\0\xf0\x3f"[..], &event].concat(),
            &mut bytes,
        );
    }
    let file = folder.path().join("events.out.tfevents.1.host");
    fs::write(&file, bytes).unwrap();
    file.display().to_string()
}

/// A few bytes can describe any number of values, the last of which is repeated.
#[test]
fn values_of_tensors_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    // float: 0.5, of the shape [n, 3], with n in two bytes.
    let histogram = |n: [u8; 2]| {
        [
            &b"\x08\x01\x12\x09\x12\x03\x08"[..],
            &n,
            b"\x12\x02\x08\x03\x2d\0\0\0\x3f",
        ]
        .concat()
    };
    // 2,730 buckets of three numbers take 65,520 bytes, 4,200 buckets more than a tensor may.
    let (small, large) = (histogram([0xaa, 0x15]), histogram([0xe8, 0x20]));
    // string: "a", of the shape [2^24].
    let text = b"\x08\x07\x12\x07\x12\x05\x08\x80\x80\x80\x08\x42\x01a".to_vec();
    let kinds = |file: &str| {
        rows(&format!(
            "SELECT kind, cardinality(histogram['left']) FROM '{file}'"
        ))
    };
    let file = file_of_tensors(&folder, &[small.clone(), large, text]);
    assert_eq!(
        kinds(&file),
        [
            json!(["histogram", 2730]),
            json!(["tensor", null]),
            json!(["tensor", null])
        ]
    );
    let file = file_of_tensors(&folder, &vec![small; 5000]);
    // The values of 5,000 tensors in one batch would take 328 MB together.
    let error = tfarrow(&["sql", &format!("SELECT count(text) FROM '{file}'")]).fails();
    assert!(
        error.contains(
            "tensors of one batch of events repeat values, which take more than 268435456"
        ),
        "{error}"
    );
    // The messages have the tensors as they are stored.
    let query = format!(
        "SELECT count(*) FROM (SELECT unnest(summary['value']) FROM read_tfrecord('{file}', message => 'tensorflow.Event'))"
    );
    assert_eq!(rows(&query), [json!([5000])]);
}

/// A tensor has its values in a field of their type, or as bytes.
#[test]
fn tensors_of_converted_events_have_the_same_values() {
    // One number of each type: the dtype, the size of a value, and the field of the type.
    let types = [
        (1, 4, 5),
        (2, 8, 6),
        (3, 4, 7),
        (4, 1, 7),
        (5, 2, 7),
        (6, 1, 7),
        (9, 8, 10),
        (10, 1, 11),
        (14, 2, 13),
        (17, 2, 7),
        (19, 2, 13),
        (22, 4, 16),
        (23, 8, 17),
        // Complex numbers have no value.
        (8, 8, 9),
    ];
    let dtype = |dtype: u8| vec![0x08, dtype];
    let mut tensors = Vec::new();
    for (number, size, of_type) in types {
        tensors.push([dtype(number), field(4, &vec![1; size])].concat());
        // Numbers of other types than floats are varints.
        let value = if matches!(of_type, 5 | 6 | 9) {
            vec![1; size]
        } else {
            vec![0x80, 0x78]
        };
        let (tag, length) = (u32::from(of_type as u8) << 3 | 2, value.len() as u8);
        let tag = if tag < 0x80 {
            vec![tag as u8]
        } else {
            vec![tag as u8 | 0x80, 1]
        };
        tensors.push([dtype(number), tag, vec![length], value].concat());
    }
    // A text, a histogram, and tensors of other forms.
    let shape = |sizes: &[u8]| {
        field(
            2,
            &sizes
                .iter()
                .flat_map(|size| field(2, &[0x08, *size]))
                .collect::<Vec<_>>(),
        )
    };
    tensors.push([dtype(7), shape(&[2]), field(8, b"one"), field(8, b"two")].concat());
    tensors.push([dtype(2), shape(&[2, 3]), field(6, &[0x3f; 16])].concat());
    tensors.push([dtype(1), shape(&[5]), field(5, &[0x3f; 20])].concat());
    let folder = tempfile::tempdir().unwrap();
    let file = file_of_tensors(&folder, &tensors);
    let converted = folder.path().join("events.parquet").display().to_string();
    tfarrow(&["convert", &file, &converted]).ends(0);
    let values = |file: &str| {
        rows(&format!(
            "SELECT kind, value, text, histogram FROM '{file}'"
        ))
    };
    let expected = values(&file);
    assert_eq!(
        expected.iter().filter(|row| row[0] == "scalar").count(),
        26,
        "{expected:?}"
    );
    assert_eq!(expected.len(), tensors.len());
    assert_eq!(values(&converted), expected);
}

#[test]
fn a_message_without_a_file_is_an_error() {
    let error = tfarrow(&["head", FIRST, "--message", "waymo.Scenario"]).fails();
    assert!(
        error.contains("only tensorflow.Event is defined without a file"),
        "{error}"
    );
}

/// The rows of a query over events are Examples: no other command takes them for messages.
#[test]
fn copied_events_are_read_by_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (parquet, records) = (at("scalars.parquet"), at("scalars.tfrecord"));
    let scalars = format!("(SELECT run, step, tag, value FROM '{LOGS}' WHERE kind = 'scalar')");
    tfarrow(&[
        "sql",
        &format!("COPY {scalars} TO '{parquet}'; COPY {scalars} TO '{records}'"),
    ])
    .ends(0);
    assert_eq!(json_lines(&tfarrow(&["head", &records]).prints()).len(), 5);
    for command in ["stats", "schema", "head", "count", "verify"] {
        tfarrow(&[command, &parquet]).ends(0);
    }
    tfarrow(&["diff", &parquet, &records]).ends(0);
    tfarrow(&["convert", &parquet, &at("back.tfrecord")]).ends(0);
    let query = format!("SELECT run, step, tag, value FROM '{LOGS}' WHERE kind = 'scalar'");
    tfarrow(&["sql", &query, "-o", &at("out.parquet")]).ends(0);
    tfarrow(&["diff", &parquet, &at("out.parquet")]).ends(0);
}

#[test]
fn events_are_summarized() {
    let figures = "SELECT feature, kind, present, missing FROM summarize";
    let out = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    let out = out.path().to_str().unwrap();
    let converted = tempfile::tempdir().unwrap();
    let converted = format!("{}/", converted.path().display());
    tfarrow(&["convert", LOGS, &converted]).ends(0);
    for source in [
        format!("'{LOGS}'"),
        format!("(SELECT * FROM '{LOGS}')"),
        format!("'{converted}'"),
    ] {
        let query = format!("{figures}({source}) WHERE feature IN ('value', 'wall_time')");
        // Structs have no statistics.
        let warning = tfarrow(&["sql", &query, "-o", out, "--overwrite"]).ends(0);
        assert!(warning.contains("\"histogram\""), "{warning}");
        let expected =
            "feature,kind,present,missing\nvalue,float_list,5,12\nwall_time,int64_list,17,0\n";
        assert_eq!(fs::read_to_string(out).unwrap(), expected, "{source}");
    }
    let found = rows(&format!(
        "{figures}((SELECT step + 1 AS next FROM '{LOGS}'))"
    ));
    assert_eq!(found, [json!(["next", "int64_list", 17, 0])]);
}

#[test]
fn tables_of_events_are_dropped_and_replaced() {
    let create = format!("EXTERNAL TABLE logs STORED AS TFRECORD LOCATION '{LOGS}'");
    let types = "SELECT table_type FROM information_schema.tables WHERE table_name = 'logs'";
    let found = rows(&format!(
        "CREATE {create}; CREATE OR REPLACE {create}; {types}"
    ));
    assert!(found.contains(&json!(["BASE TABLE"])), "{found:?}");
    tfarrow(&[
        "sql",
        &format!("CREATE {create}; DROP TABLE logs; CREATE {create}"),
    ])
    .ends(0);
    for (clause, error) in [
        (
            "(step BIGINT) STORED AS TFRECORD",
            "the columns of TensorBoard's files are fixed",
        ),
        (
            "STORED AS TFRECORD PARTITIONED BY (split)",
            "leave PARTITIONED BY out",
        ),
    ] {
        let found = tfarrow(&[
            "sql",
            &format!("CREATE EXTERNAL TABLE logs {clause} LOCATION '{LOGS}'"),
        ])
        .fails();
        assert!(found.contains(error), "{found}");
    }
}

/// Files of different sources are different runs, also if each is in the folder that was named.
#[test]
fn runs_of_several_sources_have_the_names_of_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for run in ["one", "two"] {
        fs::create_dir(at(run)).unwrap();
        fs::copy(path(FIRST), at(run) + "/events.out.tfevents.1.host").unwrap();
    }
    let query = format!(
        "SELECT run, count(*) FROM read_tfrecord('{}', '{}') GROUP BY 1 ORDER BY 1",
        at("one"),
        at("two")
    );
    assert_eq!(rows(&query), [json!(["one", 7]), json!(["two", 7])]);
}

/// A value is read once, after the filter on its tag. A filter on its kind reads it as well.
#[test]
fn values_are_read_once_and_after_the_filter() {
    for (filter, reads) in [("tag = 'loss'", 1), ("kind = 'scalar'", 2)] {
        let plans = rows(&format!(
            "EXPLAIN SELECT kind, value, text FROM '{LOGS}' WHERE {filter}"
        ));
        let plan = plans[1][1].as_str().unwrap();
        assert_eq!(plan.matches("event_value(").count(), reads, "{plan}");
        assert!(
            plan.find("event_value(") < plan.find("FilterExec: get_field").or(Some(plan.len())),
            "{plan}"
        );
    }
}

#[test]
fn formats_of_features_reject_events() {
    for format in ["sql", "python", "rust", "features-json", "pbtxt"] {
        let run = tfarrow(&["schema", LOGS, "--format", format]);
        assert_eq!(run.stdout, "", "{format}");
        assert!(
            run.ends(2)
                .contains("the format describes features of tf.Example records"),
            "{format}"
        );
    }
}

/// A file that is written at this moment ends within an event.
#[test]
fn an_event_that_is_being_written_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let logs = format!("{}/", folder.path().display());
    let bytes = fs::read(path(FIRST)).unwrap();
    for (run, size) in [("done", bytes.len()), ("live", bytes.len() - 5)] {
        fs::create_dir(folder.path().join(run)).unwrap();
        fs::write(
            folder.path().join(run).join("events.out.tfevents.1.host"),
            &bytes[..size],
        )
        .unwrap();
    }
    let query = format!("SELECT run, count(*) FROM '{logs}' GROUP BY run ORDER BY run");
    assert_eq!(rows(&query), [json!(["done", 7]), json!(["live", 7])]);
    assert_eq!(
        tfarrow(&["count", &logs])
            .prints()
            .split_whitespace()
            .next(),
        Some("13")
    );
    let out = tempfile::tempdir().unwrap();
    let at = |name: &str| out.path().join(name).display().to_string();
    tfarrow(&["stats", &logs]).ends(0);
    tfarrow(&["report", &logs, "-o", &at("report.html")]).ends(0);
    tfarrow(&["convert", &logs, &at("out.parquet")]).ends(0);
    // Unless that is an error, or damage is looked for.
    let error = tfarrow(&["sql", &query, "--partial-tail", "fail"]).fails();
    assert!(
        error.contains("the file ends inside this record"),
        "{error}"
    );
    tfarrow(&["verify", &logs]).ends(3);
    tfarrow(&["verify", &logs, "--partial-tail", "ignore"]).ends(0);
}

/// TensorBoard takes each file whose name contains `tfevents`, in folders of any name.
#[test]
fn event_files_are_known_by_name_or_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        "run61.events.out.tfevents.1640984794.host.0",
        "a/my.tfevents",
        "b/tfevents.123",
        "c/events.out.tfevents.1.h.v2",
        "_d/events.out.tfevents.1.h.profile-empty",
        "e/by_content",
    ];
    for file in files {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(path(FIRST), file).unwrap();
    }
    fs::write(folder.path().join("_d/notes.txt"), "hidden").unwrap();
    let query = format!(
        "SELECT run, count(*) FROM '{}/' GROUP BY run ORDER BY run",
        folder.path().display()
    );
    assert_eq!(
        rows(&query),
        [".", "_d", "a", "b", "c", "e"].map(|run| json!([run, 7]))
    );
}

/// The first event of a file need not be the version.
#[test]
fn events_without_a_version_are_events() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(path(FIRST)).unwrap();
    let version = tfarrow_codec::frame::length(&bytes).unwrap() as usize + 16;
    let file = folder.path().join("log");
    fs::write(&file, &bytes[version..]).unwrap();
    let count = |file: &str| rows(&format!("SELECT count(value), min(tag) FROM '{file}'"));
    assert_eq!(count(file.to_str().unwrap()), count(FIRST));
}

/// An event: its time and step, and the field `number`.
fn event(step: u8, number: u8, body: &[u8]) -> Vec<u8> {
    let time = b"\x09\0\0\0\0\0\0\xf0\x3f";
    [&time[..], &[0x10, step], &field(number, body)].concat()
}

/// TensorBoard drops the values before the restart of a run, from its step on.
#[test]
fn values_that_a_restart_replaces_are_left_out_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let value = |step, tag: &[u8], value: f32| {
        let value = [&field(1, tag)[..], &[0x15], &value.to_le_bytes()].concat();
        event(step, 5, &field(1, &value))
    };
    // The status START.
    let restart = |step| event(step, 7, &[0x08, 0x01]);
    let version = event(0, 3, b"brain.Event:2");
    let first = [
        value(1, b"a", 1.0),
        value(2, b"a", 2.0),
        value(3, b"a", 3.0),
        value(3, b"b", 3.0),
    ];
    // In the same file, and in a later one.
    let files = [
        (
            "one/tfevents.1",
            [&first[..], &[restart(2), value(2, b"a", 20.0)]].concat(),
        ),
        ("two/tfevents.1", first.to_vec()),
        ("two/tfevents.2", vec![restart(3), value(3, b"a", 30.0)]),
        ("three/tfevents.1", first.to_vec()),
    ];
    for (file, events) in files {
        let mut bytes = Vec::new();
        for event in [&version].into_iter().chain(&events) {
            tfarrow_codec::frame::write(event, &mut bytes);
        }
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), bytes).unwrap();
    }
    let logs = format!("{}/", folder.path().display());
    let values = |table: &str| {
        rows(&format!(
            "SELECT run, tag, step, value FROM {table} ORDER BY run, tag, step, value"
        ))
    };
    assert_eq!(values(&format!("'{logs}'")).len(), 14);
    let expected = [
        json!(["one", "a", 1, 1.0]),
        json!(["one", "a", 2, 20.0]),
        json!(["three", "a", 1, 1.0]),
        json!(["three", "a", 2, 2.0]),
        json!(["three", "a", 3, 3.0]),
        json!(["three", "b", 3, 3.0]),
        json!(["two", "a", 1, 1.0]),
        json!(["two", "a", 2, 2.0]),
        json!(["two", "a", 3, 30.0]),
    ];
    let purged = format!("read_tfrecord('{logs}', purge_orphaned_data => true)");
    assert_eq!(values(&purged), expected);
    assert_eq!(
        rows(&format!(
            "SELECT count(*), max(value) FROM {purged} WHERE run = 'one'"
        )),
        [json!([2, 20.0])]
    );
    let columns = |table: &str| rows(&format!("DESCRIBE SELECT * FROM {table}"));
    assert_eq!(columns(&purged), columns(&format!("'{logs}'")));
    // The same of converted files, in which the order of the rows is that of the events.
    for format in ["parquet", "arrow"] {
        let converted = tempfile::tempdir().unwrap();
        let source = format!("{}/", converted.path().display());
        tfarrow(&["convert", &logs, &source, "--to", format]).ends(0);
        let query =
            format!("SELECT run, tag, step, value FROM '{source}' ORDER BY run, tag, step, value");
        assert_eq!(
            rows(&format!("SET tfarrow.purge_orphaned_data = true; {query}")),
            expected
        );
    }
}
