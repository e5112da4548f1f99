//! `tfarrow stats`, and `schema --format pbtxt`.

use tfarrow_testkit::{
    frame,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

use crate::support::{command, tfarrow};

#[test]
fn stats_prints_figures_of_numbers_and_of_bytes() {
    let printed = tfarrow(&["stats", "testdata/shards/"]).prints();
    assert!(
        printed.starts_with("200 records, 56 kB of payload\n"),
        "{printed}"
    );
    let line = |name: &str| {
        let row = printed
            .lines()
            .find(|line| line.starts_with(&format!("| {name} ")));
        row.unwrap_or_else(|| panic!("{name} is not in {printed}"))
            .split('|')
            .map(str::trim)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        line("label")[2..10],
        ["0", "1", "17.5 %", "0", "2", "3", "1.705", "1.095"]
    );
    assert_eq!(
        line("city")[2..8],
        ["0", "1", "5", "4..7", "text", "Porto 23.5 %"]
    );
    assert!(line("image/encoded")[6].starts_with("PNG "), "{printed}");
}

#[test]
fn json_format_has_all_figures() {
    let printed = tfarrow(&["stats", "testdata/shards/", "--format", "json"]).prints();
    let figures: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(figures["records"], 200);
    let label = figures["features"]
        .as_array()
        .unwrap()
        .iter()
        .find(|feature| feature["name"] == "label")
        .unwrap();
    assert_eq!(label["kinds"][0]["numbers"]["mean"], 1.705);
    assert_eq!(
        label["kinds"][0]["numbers"]["deciles"]
            .as_array()
            .unwrap()
            .len(),
        11
    );
}

#[test]
fn each_kind_of_a_feature_has_its_own_figures() {
    let run = tfarrow(&["stats", "testdata/mixed_kinds/"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("(int64_list)") && run.stdout.contains("(float_list)"),
        "{}",
        run.stdout
    );
}

#[test]
fn pb_format_prints_a_protobuf_message() {
    let output = command(&["stats", "testdata/shards/", "--format", "pb"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    // The field `datasets` contains the field `num_examples` with the value 200.
    assert_eq!(output.stdout[0], 0x0a);
    assert!(output.stdout.windows(3).any(|part| part == [0x10, 200, 1]));
}

#[test]
fn pbtxt_format_prints_a_schema_for_tensorflow() {
    let printed = tfarrow(&["schema", "testdata/shards/", "--format", "pbtxt"]).prints();
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "name: \"label\" type: INT presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }",
        "domain: \"city\"",
        "value: \"Lima\" value: \"Nairobi\"",
    ] {
        assert!(words.contains(part), "{part} is not in {words}");
    }
    let stderr = tfarrow(&["schema", "testdata/mixed_kinds/", "--format", "pbtxt"]).ends(3);
    assert!(stderr.contains("more than one kind"), "{stderr}");
}

#[test]
fn damage_is_reported_with_its_position() {
    let error = tfarrow(&["stats", "testdata/corrupt/data_crc.tfrecord"]).fails();
    assert!(
        error.contains("data_crc.tfrecord: record 1 (byte 72)"),
        "{error}"
    );
}

#[test]
fn skipped_damage_is_reported() {
    for command in ["stats", "schema"] {
        let run = tfarrow(&[
            command,
            "testdata/corrupt/data_crc.tfrecord",
            "--on-error",
            "skip",
        ]);
        assert!(run.stdout.contains("records"), "{}", run.stdout);
        let stderr = run.ends(3);
        assert!(
            stderr.starts_with("tfarrow: skipped 1 record; the first: "),
            "{stderr}"
        );
        assert!(
            stderr.contains("data_crc.tfrecord: record 1 (byte 72)"),
            "{stderr}"
        );
    }
    // Reading continues after a corrupt length.
    let stderr = tfarrow(&[
        "stats",
        "testdata/corrupt/length.tfrecord",
        "--on-error",
        "skip",
        "--format",
        "json",
    ])
    .ends(3);
    assert!(
        stderr.contains("skipped 72 bytes in 1 place that no record can be made of; the first: "),
        "{stderr}"
    );
}

#[test]
fn records_that_are_not_examples_can_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.tfrecord");
    let mut bytes = std::fs::read(crate::support::path("testdata/scalar.tfrecord")).unwrap();
    bytes.extend(std::fs::read(crate::support::path("testdata/raw.tfrecord")).unwrap());
    std::fs::write(&path, bytes).unwrap();
    let name = path.to_str().unwrap();
    let run = tfarrow(&["stats", name, "--on-error", "skip"]);
    assert!(run.stdout.starts_with("20 records, "), "{}", run.stdout);
    let stderr = run.ends(3);
    assert!(
        stderr.starts_with("tfarrow: skipped ") && stderr.contains("mixed.tfrecord: record 20 "),
        "{stderr}"
    );
    tfarrow(&["stats", name]).ends(3);
}

#[test]
fn each_slice_has_its_own_figures() {
    let printed = tfarrow(&["stats", "testdata/shards/", "--by", "city"]).prints();
    let titles: Vec<_> = printed
        .lines()
        .filter(|line| line.contains(" records, "))
        .collect();
    assert!(
        titles[0].starts_with("200 records, ")
            && titles[1].starts_with("city = Porto: 47 records, "),
        "{titles:?}"
    );
    assert_eq!(titles.len(), 6, "{titles:?}");
    let printed = tfarrow(&[
        "stats",
        "testdata/shards/",
        "--by",
        "label",
        "--format",
        "json",
    ])
    .prints();
    let figures: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&figures["records"], &figures["by"], &figures["without"]),
        (&200.into(), &"label".into(), &0.into())
    );
    let slices = figures["slices"].as_array().unwrap();
    let zeros = slices.iter().find(|slice| slice["value"] == 0).unwrap();
    assert_eq!(zeros["records"], 35);
    assert_eq!(
        slices
            .iter()
            .map(|slice| slice["records"].as_u64().unwrap())
            .sum::<u64>(),
        200
    );
    let error = tfarrow(&["stats", "testdata/shards/", "--by", "town"]).fails();
    assert!(
        error.contains("no record has a feature \"town\" to slice by; there are city, "),
        "{error}"
    );
}

#[test]
fn images_are_shown_with_their_sizes() {
    let printed = tfarrow(&["stats", "testdata/shards/"]).prints();
    assert!(printed.contains("| PNG 4..8×4..8 |"), "{printed}");
}

/// A file of records with one feature each.
fn file_of(folder: &std::path::Path, values: impl IntoIterator<Item = ModelValue>) -> String {
    let path = folder.join("data.tfrecord");
    let row =
        |value| ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))]);
    let payloads = values
        .into_iter()
        .map(|value| example_from_row(&row(value)));
    std::fs::write(&path, frame::file(payloads)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn nan_and_infinity_are_shown_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        1.0,
        f32::NAN,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        2.0,
    ]
    .map(f32::to_bits);
    let source = file_of(
        folder.path(),
        values.map(|value| ModelValue::Float(vec![value])),
    );
    let printed = tfarrow(&["stats", &source]).prints();
    assert!(
        printed.contains(" NaN, inf |") && printed.contains("| 2 NaN, 1 inf, 1 -inf |"),
        "{printed}"
    );
    let plain = tfarrow(&["stats", "testdata/shards/"]).prints();
    assert!(!plain.contains("NaN, inf"), "{plain}");
}

#[test]
fn binary_values_are_not_shown_as_most_frequent_text() {
    let folder = tempfile::tempdir().unwrap();
    let jpeg = [b"\xff\xd8\xff\xe0".as_slice(), &[b'a'; 96]].concat();
    let source = file_of(
        folder.path(),
        std::iter::repeat_n(ModelValue::Bytes(vec![jpeg]), 3),
    );
    let printed = tfarrow(&["stats", &source]).prints();
    assert!(
        printed.contains("| JPEG ") && printed.contains("| <JPEG 100 B> 100 % |"),
        "{printed}"
    );
    let page = tfarrow(&["report", &source, "-o", "-"]).prints();
    assert!(page.contains(">&lt;JPEG 100 B&gt;</th>"), "{page}");
}

#[test]
fn bytes_of_control_characters_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let source = file_of(
        folder.path(),
        [0_u8, 1, 2, 3, 3].map(|byte| ModelValue::Bytes(vec![vec![byte]])),
    );
    let printed = tfarrow(&["stats", &source]).prints();
    assert!(
        printed.contains("| other ") && printed.contains("| 0x03 40.0 % "),
        "{printed}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&tfarrow(&["stats", &source, "--format", "json"]).prints()).unwrap();
    let strings = &json["features"][0]["kinds"][0]["strings"];
    assert_eq!(
        (&strings["invalid_utf8"], &strings["formats"][0][0]),
        (&0.into(), &"other".into())
    );
    let page = tfarrow(&["report", &source, "-o", "-"]).prints();
    assert!(page.contains(">0x03</th>"), "{page}");
    for (format, kind) in [
        ("arrow", "x: binary"),
        ("sql", "\"x\" BYTEA"),
        ("features-json", "\"dtype\": \"string\""),
    ] {
        let schema = tfarrow(&["schema", &source, "--format", format]).prints();
        assert!(schema.contains(kind), "{schema}");
    }
    // A feature is text if fewer than a tenth of its values have control characters, other than
    // those of lines.
    for (texts, kind) in [(10, "x: utf8"), (9, "x: binary")] {
        let values = std::iter::repeat_n(&b"a\n"[..], texts).chain([&b"\0"[..]]);
        let source = file_of(
            folder.path(),
            values.map(|value| ModelValue::Bytes(vec![value.to_vec()])),
        );
        let schema = tfarrow(&["schema", &source, "--format", "arrow"]).prints();
        assert!(schema.contains(kind), "{schema}");
    }
}

#[test]
fn integers_beyond_2_to_the_53_are_shown_with_all_digits() {
    let folder = tempfile::tempdir().unwrap();
    let source = file_of(
        folder.path(),
        (0..100).map(|i| ModelValue::Int64(vec![i64::MAX - i])),
    );
    let printed = tfarrow(&["stats", &source]).prints();
    let (low, high) = ("9,223,372,036,854,775,708", "9,223,372,036,854,775,807");
    assert!(
        printed.contains(low) && printed.contains(high) && printed.contains("| 28.87 |"),
        "{printed}"
    );
    let json = tfarrow(&["stats", &source, "--format", "json"]).prints();
    assert!(json.contains("\"max\": 9223372036854775807"), "{json}");
    let page = tfarrow(&["report", &source, "-o", "-"]).prints();
    assert!(page.contains(low) && page.contains(high), "{page}");
    let query = format!("SELECT min_integer, max_integer FROM summarize('{source}')");
    let row = tfarrow(&["sql", "--format", "csv", &query]).prints();
    assert_eq!(
        row,
        "min_integer,max_integer\n9223372036854775708,9223372036854775807\n"
    );
}

#[test]
fn estimates_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let few = file_of(folder.path(), (0..100).map(|i| ModelValue::Int64(vec![i])));
    assert!(!tfarrow(&["stats", &few]).prints().contains('~'));
    let exact = "SELECT is_median_exact FROM summarize";
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", &format!("{exact}('{few}')")]).prints(),
        "is_median_exact\ntrue\n"
    );
    let many = file_of(
        folder.path(),
        (0..20_000).map(|i| ModelValue::Int64(vec![i])),
    );
    let printed = tfarrow(&["stats", &many]).prints();
    let row: Vec<_> = printed
        .lines()
        .find(|line| line.starts_with("| x "))
        .unwrap()
        .split('|')
        .map(str::trim)
        .collect();
    assert!(
        row[6].starts_with('~') && row[10].starts_with('~'),
        "{printed}"
    );
    assert!(
        [5, 7, 8, 9]
            .iter()
            .all(|column| !row[*column].contains('~')),
        "{printed}"
    );
    assert!(
        printed.contains("~ marks estimates from samples of 16,384 values and more"),
        "{printed}"
    );
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", &format!("{exact}('{many}')")]).prints(),
        "is_median_exact\nfalse\n"
    );
    let page = tfarrow(&["report", &many, "-o", "-"]).prints();
    assert!(
        page.contains("<dd>about 9,") || page.contains("<dd>about 10,"),
        "{page}"
    );
}

#[test]
fn missing_and_unset_features_are_counted_as_by_schema() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        ModelValue::Int64(vec![1]),
        ModelValue::Unset,
        ModelValue::Unset,
    ];
    let source = file_of(folder.path(), values);
    let printed = tfarrow(&["stats", &source]).prints();
    assert!(
        printed.contains("| numbers | missing | unset |")
            && printed.contains("| x       |       0 |     2 |"),
        "{printed}"
    );
    assert!(
        !tfarrow(&["stats", "testdata/shards/"])
            .prints()
            .contains("unset")
    );
}

#[test]
fn features_without_values_have_no_figures() {
    let folder = tempfile::tempdir().unwrap();
    for empty in [
        ModelValue::Int64(Vec::new()),
        ModelValue::Float(Vec::new()),
        ModelValue::Bytes(Vec::new()),
    ] {
        let source = file_of(folder.path(), [empty.clone(), empty]);
        let printed = tfarrow(&["stats", &source]).prints();
        let row = printed
            .lines()
            .find(|line| line.starts_with("| x "))
            .unwrap();
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..4], ["0", "0"], "{printed}");
        assert!(cells[4..].iter().all(|cell| cell.is_empty()), "{printed}");
        let query = format!("SELECT min, median, mean FROM summarize('{source}')");
        assert_eq!(
            tfarrow(&["sql", "--format", "csv", &query]).prints(),
            "min,median,mean\n,,\n"
        );
    }
}

#[test]
fn files_without_records_have_no_features() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, parquet) = (at("empty.tfrecord"), at("empty.parquet"));
    std::fs::write(&empty, b"").unwrap();
    tfarrow(&[
        "sql",
        &format!("COPY (SELECT 1 AS a WHERE false) TO '{parquet}'"),
    ])
    .ends(0);
    for source in [empty, parquet] {
        let printed = tfarrow(&["schema", &source]).stdout;
        assert!(!printed.contains("| record "), "{printed}");
    }
}

#[test]
fn event_files_have_no_features_and_a_note_that_names_sql() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html").to_str().unwrap().to_owned();
    let logs = "testdata/events/logs/";
    for command in [
        &["stats", logs][..],
        &["validate", logs, "--baseline", logs],
        &["report", logs, "-o", &page],
    ] {
        let run = tfarrow(command);
        let note = "the records are TensorBoard events, which have no features: sql reads them as a table of their values";
        assert!(
            run.stderr.contains(note) && !run.stderr.contains("field 3"),
            "{command:?}: {}",
            run.stderr
        );
        assert!(
            !run.stdout.contains("feature"),
            "{command:?}: {}",
            run.stdout
        );
    }
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("id=\"curves\"")
            && !page.contains("id=\"features\"")
            && !page.contains("#features")
    );
}

#[test]
fn one_record_is_not_several() {
    let folder = tempfile::tempdir().unwrap();
    let [rows, page] =
        ["x.jsonl", "x.html"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&rows, "{\"a\":1}\n").unwrap();
    assert!(
        tfarrow(&["stats", &rows])
            .prints()
            .starts_with("1 record, ")
    );
    assert!(
        tfarrow(&["validate", &rows, "--baseline", &rows])
            .prints()
            .starts_with("1 record, no anomalies")
    );
    assert!(
        tfarrow(&["schema", &rows])
            .prints()
            .starts_with("1 tf.Example record in 1 shard")
    );
    assert_eq!(
        tfarrow(&["report", &rows, "-o", &page]).prints(),
        format!("{page}: 1 record, 1 feature\n")
    );
}
