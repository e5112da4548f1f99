//! Names of data sets, which are the same for every command and for `FROM`.

use std::{fs, path::Path};

use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::{path, tfarrow, tfarrow_reads};

/// Writes a file of 50 Examples.
fn write_examples(folder: &Path, name: &str) {
    let records = (0..50).map(|x| proto::example([("x", KindOneof::ints([x]))]));
    fs::write(folder.join(name), frame::file(records)).unwrap();
}

/// Writes a file of 99 TensorBoard events.
fn write_events(folder: &Path, name: &str) {
    let first = b"\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0dbrain.Event:2".to_vec();
    // Events with a scalar summary named `loss`.
    let others = (1..99).map(|step| {
        [
            b"\x09\0\0\0\0\0\0\xf0\x3f\x10",
            &[step][..],
            b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80\x3f",
        ]
        .concat()
    });
    fs::write(
        folder.join(name),
        frame::file(std::iter::once(first).chain(others)),
    )
    .unwrap();
}

#[track_caller]
fn check(source: &str, records: u64) {
    check_rows(source, records, records);
}

/// Checks the number of records of a source, and that of its rows in SQL.
#[track_caller]
fn check_rows(source: &str, records: u64, rows: u64) {
    // Missing shards are reported on standard error.
    let counted = tfarrow(&["count", source]);
    assert_eq!(counted.stdout, format!("{records}\n"), "count {source}");
    counted.ends(0);
    let query = format!("SELECT count(*) AS n FROM '{source}'");
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", &query]).prints(),
        format!("n\n{rows}\n"),
        "{query}"
    );
}

#[test]
fn a_file_is_a_source() {
    check("testdata/scalar.tfrecord", 20);
    check("testdata/tfds/mnist-train.tfrecord-00000-of-00002", 5);
    check("testdata/compressed/zlib-00002-of-00003.tfrecord", 30);
    check(path("testdata/scalar.tfrecord").to_str().unwrap(), 20);
}

#[test]
fn a_folder_is_a_source_without_the_files_beside_its_shards() {
    check("testdata/shards/", 200);
    check("testdata/tfds", 10);
    check("testdata/compressed/", 120);
}

#[test]
fn a_folder_with_the_log_of_a_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().to_str().unwrap();
    write_examples(folder.path(), "a.tfrecord");
    fs::create_dir(folder.path().join("_delta_log")).unwrap();
    let out = tempfile::tempdir()
        .unwrap()
        .path()
        .join("out")
        .display()
        .to_string();
    let query = format!("SELECT * FROM '{source}'");
    let commands: [&[&str]; 5] = [
        &["count", source],
        &["stats", source],
        &["verify", source],
        &["convert", source, &out],
        &["sql", &query],
    ];
    for command in commands {
        let error = tfarrow(command).stderr;
        assert!(
            error.contains(
                "a table of Delta Lake: its log _delta_log lists the files that are current"
            ),
            "{error}"
        );
    }
    // A glob names the files.
    check(&format!("{source}/*.tfrecord"), 50);
}

#[test]
fn a_glob_is_a_source() {
    check("testdata/shards/*.tfrecord", 200);
    check("testdata/shards/train-0000[12]-of-*", 100);
    check("testdata/{tfds,shards}/*-00000-of-*", 55);
    check("testdata/**/train-?????-of-00004.tfrecord", 200);
}

#[test]
fn tensorboard_files_beside_shards_are_skipped_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a.tfrecord", "b.tfrecord"] {
        write_examples(folder.path(), name);
    }
    write_events(folder.path(), "events.out.tfevents.1700000000.host");
    let (source, out) = (at(""), tempfile::tempdir().unwrap());
    let out = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    let commands: [&[&str]; 9] = [
        &["count", &source],
        &["verify", &source],
        &["schema", &source],
        &["schema", &source, "--record-type", "example"],
        &["stats", &source],
        &["diff", &source, &source],
        &["report", &source, "-o", &out("x.html")],
        &["convert", &source, &out("parquet/")],
        &["repair", &source, &out("repaired/")],
    ];
    for command in commands {
        let run = tfarrow(command);
        assert_eq!(run.status, Some(0), "{command:?}: {}", run.stderr);
        let skipped = "1 of TensorBoard (such as ";
        assert!(
            run.stderr.contains(skipped) && run.stderr.contains("events.out.tfevents"),
            "{command:?}: {}",
            run.stderr
        );
    }
    check(&source, 100);
    check(&at("*"), 100);
    let printed = tfarrow(&["head", &source, "-n", "1000"]).prints();
    assert!(
        printed.lines().count() == 100 && printed.lines().all(|line| line.starts_with("{\"x\"")),
        "{printed}"
    );
    assert_eq!(fs::read_dir(out("parquet")).unwrap().count(), 2);
    // Event files are read if they are named, or if the folder has no other files.
    // SQL has a row for each of their values; the first event has none.
    check_rows(&at("events.out.tfevents.1700000000.host"), 99, 98);
    check_rows(&at("events.*"), 99, 98);
    let logs = tempfile::tempdir().unwrap();
    write_events(logs.path(), "events.out.tfevents.1.host");
    check_rows(logs.path().to_str().unwrap(), 99, 98);
}

#[test]
fn files_of_two_record_types_are_not_one_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a.tfrecord", "b.tfrecord"] {
        write_examples(folder.path(), name);
    }
    // The extension does not show that the records are events.
    write_events(folder.path(), "c.tfrecord");
    let (source, out) = (at(""), tempfile::tempdir().unwrap());
    let out = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    fs::write(out("x.pbtxt"), "feature { name: \"x\" type: INT }").unwrap();
    let (query, declared) = (
        format!("SELECT count(*) FROM '{source}'"),
        format!(
            "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS TFRECORD LOCATION '{source}'; SELECT count(*) FROM t"
        ),
    );
    let commands: [(&[&str], i32); 12] = [
        (&["convert", &source, &out("parquet/")], 2),
        (
            &["convert", &source, &out("parquet/"), "--on-error", "skip"],
            2,
        ),
        (&["sql", &query], 1),
        (&["sql", &declared], 1),
        (&["schema", &source], 1),
        (&["schema", &source, "--record-type", "example"], 1),
        (&["stats", &source], 1),
        (&["diff", &source, &source], 1),
        (&["diff", &source, &source, "--record-type", "example"], 1),
        (&["validate", &source, "--schema", &out("x.pbtxt")], 1),
        (&["report", &source, "-o", &out("x.html")], 1),
        (&["head", &source], 1),
    ];
    for (command, status) in commands {
        let run = tfarrow(command);
        assert_eq!(run.status, Some(status), "{command:?}: {}", run.stderr);
        let (examples, events) = (
            "2 files of tf.Example records (such as ",
            "1 file of TensorBoard events (such as ",
        );
        assert!(
            run.stderr.contains(examples) && run.stderr.contains(events),
            "{command:?}: {}",
            run.stderr
        );
        assert!(
            run.stderr.contains("a.tfrecord") && run.stderr.contains("c.tfrecord"),
            "{command:?}: {}",
            run.stderr
        );
        // The error advises only options that the command has.
        let has_type = !["stats", "validate", "report"].contains(&command[0]);
        let advice =
            run.stderr.contains("record-type raw") || run.stderr.contains("record_type = 'raw'");
        assert!(!advice || has_type, "{command:?}: {}", run.stderr);
        assert!(
            run.stderr.contains("name the files of one kind"),
            "{command:?}: {}",
            run.stderr
        );
    }
    assert!(!Path::new(&out("parquet")).exists() && !Path::new(&out("x.html")).exists());
    // Raw records may be of any type. The commands count and verify need no record type.
    tfarrow(&["convert", &source, &out("parquet/"), "--record-type", "raw"]).ends(0);
    tfarrow(&["schema", &source, "--record-type", "raw"]).ends(0);
    assert_eq!(tfarrow(&["count", &source]).prints(), "199\n");
    assert!(
        tfarrow(&["verify", &source])
            .stderr
            .contains("warning: two kinds of records in one data set")
    );
}

#[test]
fn messages_that_would_parse_as_empty_examples_are_another_kind() {
    let folder = tempfile::tempdir().unwrap();
    write_examples(folder.path(), "a.tfrecord");
    // Statistics of TFDV: a data set with a number of examples and features, in a record that may
    // be longer than the bytes by which a file is recognized.
    for size in [3, 5_000] {
        let features = [vec![0x1a], varint(size), vec![0; size]].concat();
        let data_set = [b"\x10\x05".to_vec(), features].concat();
        let record = [vec![0x0a], varint(data_set.len()), data_set].concat();
        fs::write(folder.path().join("stats.tfrecord"), frame::file([record])).unwrap();
        let error = tfarrow(&["schema", folder.path().to_str().unwrap()]).fails();
        assert!(
            error.contains("two kinds of records") && error.contains("1 file of other records"),
            "{error}"
        );
    }
}

/// The bytes of a varint.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn standard_input_is_a_source() {
    let bytes = std::fs::read(path("testdata/scalar.tfrecord")).unwrap();
    assert_eq!(tfarrow_reads(&["count", "-"], &bytes).prints(), "20\n");
    let query = "SELECT count(*), min(id) FROM '-'";
    assert_eq!(
        tfarrow_reads(&["sql", query, "--format", "ndjson"], &bytes)
            .prints()
            .lines()
            .count(),
        1
    );
    assert_eq!(
        tfarrow_reads(&["head", "-"], &bytes)
            .prints()
            .lines()
            .count(),
        10
    );
    assert!(
        tfarrow_reads(&["schema", "-"], &bytes)
            .prints()
            .contains("title")
    );
}

#[test]
fn standard_input_may_be_parquet_or_arrow() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.arrow"] {
        let file = folder.path().join(name);
        let outcome = tfarrow(&[
            "convert",
            "testdata/scalar.tfrecord",
            file.to_str().unwrap(),
        ]);
        assert_eq!(outcome.status, Some(0));
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(
            tfarrow_reads(&["count", "-"], &bytes).prints(),
            "20\n",
            "{name}"
        );
        assert_eq!(
            tfarrow_reads(&["head", "-", "-n", "3"], &bytes)
                .prints()
                .lines()
                .count(),
            3,
            "{name}"
        );
    }
}

#[test]
fn the_error_of_a_missing_source_names_the_source() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no shard").unwrap();
    let folder = folder.path().to_str().unwrap();
    let sources = [
        "testdata/nothing.tfrecord",
        "testdata/nothing/*.tfrecord",
        folder,
    ];
    for source in sources {
        for command in ["count", "head", "schema"] {
            let error = tfarrow(&[command, source]).fails();
            assert!(
                error.contains(source.trim_end_matches("*.tfrecord")),
                "{command} {source}: {error}"
            );
        }
        let error = tfarrow(&["sql", &format!("SELECT * FROM '{source}'")]).fails();
        assert!(
            error.contains(source.trim_end_matches("*.tfrecord")),
            "sql {source}: {error}"
        );
    }
}

#[test]
fn empty_shards_survive_a_round_trip() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("in")).unwrap();
    std::fs::copy(
        crate::support::path("testdata/scalar.tfrecord"),
        path("in/a.tfrecord"),
    )
    .unwrap();
    std::fs::write(path("in/b.tfrecord"), "").unwrap();
    std::fs::write(path("in/notes"), "of no known format").unwrap();
    let stderr = tfarrow(&["convert", &path("in"), &path("out/")]).ends(0);
    assert!(
        stderr.contains("skipped: 1 of no known format (such as "),
        "{stderr}"
    );
    tfarrow(&["convert", &path("out"), &path("back/"), "--to", "tfrecord"]).ends(0);
    assert_eq!(std::fs::read(path("back/b.tfrecord")).unwrap(), b"");
    assert_eq!(
        tfarrow(&["count", &path("back/a.tfrecord")]).prints(),
        tfarrow(&["count", &path("in")]).stdout
    );
}

/// TFDS writes Parquet files with one column of serialized Examples, which are the records.
#[test]
fn parquet_of_tensorflow_datasets_has_examples_as_records() {
    const PARQUET: &str = "testdata/tfds_parquet/mnist-train.parquet-00000-of-00001";
    const RECORDS: &str = "testdata/tfds/mnist-train.tfrecord-00000-of-00002";
    for command in [&["head"][..], &["schema"], &["schema", "--format", "pbtxt"]] {
        let printed = |source| tfarrow(&[command, &[source]].concat()).prints();
        assert_eq!(printed(PARQUET), printed(RECORDS), "{command:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("back.tfrecord");
    tfarrow(&["convert", PARQUET, out.to_str().unwrap()]).ends(0);
    assert_eq!(
        std::fs::read(out).unwrap(),
        std::fs::read(path(RECORDS)).unwrap()
    );
    // Other bytes, and bytes beside other columns, are values.
    let out = folder.path().join("bytes.parquet");
    let out = out.to_str().unwrap();
    for query in [
        "SELECT X'0a050a030a0161' AS x, 1 AS y",
        "SELECT X'68656c6c6f' AS x",
    ] {
        tfarrow(&[
            "sql",
            &format!("COPY ({query}) TO '{out}' OPTIONS (overwrite true)"),
        ])
        .ends(0);
        assert!(tfarrow(&["schema", out]).prints().contains("x "), "{query}");
    }
}
