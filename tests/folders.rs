//! Folders `key=value` are columns in every command, and are written again by COPY and `convert`.

use std::fs;

use crate::support::tfarrow;

/// A folder whose files are in folders of a number, and another one whose folders have text and
/// null.
fn partitioned(format: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let values = "(VALUES (1, 7, 'a b'), (2, 8, '__HIVE_DEFAULT_PARTITION__'), (3, 7, NULL), (4, 8, 'a/b')) AS t(x, n, s)";
    for (key, to) in [("n", "numbers"), ("s", "texts")] {
        let to = folder.path().join(to);
        let query = format!("SELECT x, {key} FROM {values} ORDER BY x");
        let copy = format!(
            "COPY ({query}) TO '{}/' STORED AS {format} PARTITIONED BY ({key})",
            to.display()
        );
        tfarrow(&["sql", &copy]).prints();
    }
    folder
}

const FORMATS: [&str; 5] = ["TFRECORD", "PARQUET", "ARROW", "CSV", "JSON"];
/// The rows of the table of numbers, as JSON without `x`.
const NUMBERS: [&str; 4] = [
    "{\"x\":1,\"n\":7}",
    "{\"x\":2,\"n\":8}",
    "{\"x\":3,\"n\":7}",
    "{\"x\":4,\"n\":8}",
];

fn rows(source: &str, columns: &str) -> Vec<String> {
    let query = format!("SELECT {columns} FROM '{source}' ORDER BY x");
    tfarrow(&["sql", "--format", "ndjson", &query])
        .prints()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn folders_are_typed_columns_of_tables() {
    for format in FORMATS {
        let folder = partitioned(format);
        let name = |name: &str| folder.path().join(name).display().to_string();
        let types = format!(
            "SELECT DISTINCT arrow_typeof(n) AS t FROM '{}'",
            name("numbers")
        );
        assert_eq!(
            tfarrow(&["sql", "--format", "csv", &types]).prints(),
            "t\nInt64\n",
            "{format}"
        );
        assert_eq!(rows(&name("numbers"), "x, n"), NUMBERS, "{format}");
        let texts = rows(&name("texts"), "x, s");
        let expect = [
            "{\"x\":1,\"s\":\"a b\"}",
            "{\"x\":2,\"s\":\"__HIVE_DEFAULT_PARTITION__\"}",
            "{\"x\":3,\"s\":null}",
            "{\"x\":4,\"s\":\"a/b\"}",
        ];
        assert_eq!(texts, expect, "{format}");
        let count = |condition: &str| {
            let query = format!(
                "SELECT count(*) AS c FROM '{}' WHERE {condition}",
                name("texts")
            );
            tfarrow(&["sql", "--format", "csv", &query]).prints()
        };
        assert_eq!(count("s IS NULL"), "c\n1\n", "{format}");
        assert_eq!(count("s > 'a b'"), "c\n1\n", "{format}");
        assert_eq!(count("x > 1 AND s IS NOT NULL"), "c\n2\n", "{format}");
        assert!(
            folder
                .path()
                .join("texts/s=%5F_HIVE_DEFAULT_PARTITION__")
                .is_dir(),
            "{format}"
        );
    }
}

#[test]
fn folders_are_features_of_the_other_commands() {
    for format in FORMATS {
        let folder = partitioned(format);
        let source = folder.path().join("numbers").display().to_string();
        // JSON files are read only if a glob names them.
        let source = if format == "JSON" {
            format!("{source}/*/*.json")
        } else {
            source
        };
        let schema = tfarrow(&["schema", &source, "--format", "arrow"]).prints();
        assert!(
            schema.lines().any(|line| line.starts_with("n: int64")),
            "{format}: {schema}"
        );
        let stats = tfarrow(&["stats", &source, "--format", "json"]).prints();
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        assert!(
            stats.to_string().contains("\"name\":\"n\""),
            "{format}: {stats}"
        );
        let head = tfarrow(&["head", "-n", "9", &source]).prints();
        assert_eq!(
            head.lines()
                .filter(|line| line.contains("\"n\":7") || line.contains("\"n\":[7]"))
                .count(),
            2,
            "{head}"
        );
        let one = folder.path().join("one.parquet").display().to_string();
        tfarrow(&["convert", &source, &one]).ends(0);
        assert_eq!(rows(&one, "x, n"), NUMBERS, "{format}");
        let records = folder.path().join("one.tfrecord").display().to_string();
        tfarrow(&["convert", &source, &records, "--overwrite"]).ends(0);
        assert_eq!(rows(&records, "x, n"), NUMBERS, "{format}");
        tfarrow(&["diff", &source, &records]).prints();
        tfarrow(&["diff", &one, &source, "--on", "n,x"]).prints();
    }
}

#[test]
fn outputs_in_folders_keep_the_folders_and_new_shards_have_the_column() {
    let folder = partitioned("TFRECORD");
    let name = |name: &str| folder.path().join(name).display().to_string();
    for to in ["parquet", "tfrecord"] {
        let out = name(to);
        tfarrow(&["convert", &name("numbers"), &out, "--to", to]).ends(0);
        let file = folder.path().join(to).join(format!("n=7/part-00000.{to}"));
        assert!(file.is_file(), "{}", file.display());
        let own = tfarrow(&["schema", &file.display().to_string(), "--format", "arrow"]).prints();
        assert_eq!(own.lines().count(), 1, "{own}");
        assert_eq!(rows(&out, "x, n"), NUMBERS);
        let shards = name(&format!("{to}-shards"));
        tfarrow(&[
            "convert",
            &name("numbers"),
            &shards,
            "--to",
            to,
            "--shards",
            "2",
        ])
        .ends(0);
        assert!(
            folder
                .path()
                .join(format!("{to}-shards/part-00000-00001-of-00002.{to}"))
                .is_file()
        );
        assert_eq!(rows(&shards, "x, n"), NUMBERS);
        let sets = name(&format!("{to}-sets"));
        tfarrow(&[
            "convert",
            &name("numbers"),
            &sets,
            "--to",
            to,
            "--shards",
            "2",
            "--partition-by",
            "n",
        ])
        .ends(0);
        assert!(
            folder
                .path()
                .join(format!("{to}-sets/n=8/part-00000-00001-of-00002.{to}"))
                .is_file()
        );
        assert_eq!(rows(&sets, "x, n"), NUMBERS);
    }
    // Nothing is added to records that are kept byte for byte.
    let file = |folder_name: &str| {
        fs::read(
            folder
                .path()
                .join(folder_name)
                .join("n=7/part-00000.tfrecord"),
        )
        .unwrap()
    };
    assert_eq!(file("tfrecord"), file("numbers"));
    let message = tfarrow(&["convert", &name("numbers"), &name("e.parquet"), "--exact"]).ends(2);
    assert!(
        message.contains("its folders `key=value` would be lost"),
        "{message}"
    );
    let other = [
        "convert",
        &name("numbers"),
        &name("o"),
        "--shards",
        "2",
        "--partition-by",
        "x",
    ];
    assert!(
        tfarrow(&other)
            .ends(2)
            .contains("not in a folder x=..: partition_by names folders of the sources")
    );
    let raw = [
        "convert",
        &name("numbers"),
        &name("r.parquet"),
        "--record-type",
        "raw",
    ];
    assert!(
        tfarrow(&raw)
            .ends(2)
            .contains("its folders `key=value` would be lost")
    );
}

#[test]
fn a_feature_replaces_the_folder_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("n=9");
    fs::create_dir(&place).unwrap();
    let (file, out) = (place.join("a.tfrecord"), folder.path().join("out.tfrecord"));
    tfarrow(&[
        "sql",
        &format!("COPY (SELECT 1 AS x, 5 AS n) TO '{}'", file.display()),
    ])
    .prints();
    let source = folder.path().display().to_string();
    assert_eq!(rows(&source, "x, n"), ["{\"x\":1,\"n\":5}"]);
    tfarrow(&["convert", &source, &out.display().to_string()]).ends(0);
    assert_eq!(
        rows(&out.display().to_string(), "x, n"),
        ["{\"x\":1,\"n\":5}"]
    );
}

#[test]
fn folders_that_begin_with_an_underscore_are_read() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().display();
        let copy = format!(
            "COPY (SELECT 1 AS x, 'a' AS _split) TO '{to}/p/' STORED AS {format} PARTITIONED BY (_split)"
        );
        tfarrow(&["sql", &copy]).prints();
        assert_eq!(
            rows(&format!("{to}/p/"), "x, _split"),
            ["{\"x\":1,\"_split\":\"a\"}"],
            "{format}"
        );
    }
}

#[test]
fn quoted_names_of_columns_can_be_folders() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display();
    let copy = format!(
        "COPY (SELECT 1 AS x, 5 AS \"image/height\") TO '{to}/p/' STORED AS TFRECORD PARTITIONED BY (\"image/height\")"
    );
    tfarrow(&["sql", &copy]).prints();
    assert!(
        folder
            .path()
            .join("p/image%2Fheight=5/part-00000.tfrecord")
            .is_file()
    );
    assert_eq!(
        rows(&format!("{to}/p/"), "\"image/height\" AS h"),
        ["{\"h\":5}"]
    );
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TFRECORD PARTITIONED BY (\"image/height\") LOCATION '{to}/p/'"
    );
    let query = format!("{create}; SELECT sum(\"image/height\") AS s FROM t");
    assert!(
        tfarrow(&["sql", "--format", "csv", &query])
            .prints()
            .ends_with("s\n5\n")
    );
}

#[test]
fn a_statement_that_runs_again_finds_its_files() {
    for format in FORMATS {
        for partitioned in ["", "PARTITIONED BY (k)"] {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("q").display().to_string();
            let copy = |rows: u32, options: &str| {
                let query =
                    format!("SELECT value AS x, value % 3 AS k FROM generate_series(1, {rows})");
                format!("COPY ({query}) TO '{to}/' STORED AS {format} {partitioned} {options}")
            };
            tfarrow(&["sql", &copy(9, "")]).prints();
            let count = || rows(&to, "count(*) OVER () AS c, x").len();
            assert_eq!(count(), 9, "{format}");
            let message = tfarrow(&["sql", &copy(9, "")]).ends(2);
            assert!(
                message.contains("part-00000.") && message.contains("this file exists"),
                "{format}: {message}"
            );
            // Files that are not written again are removed.
            tfarrow(&["sql", &copy(1, "OPTIONS (overwrite true)")]).prints();
            assert_eq!(count(), 1, "{format} {partitioned}");
        }
    }
}

#[test]
fn of_several_statements_at_once_one_writes_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("q").display().to_string();
    let copy = format!(
        "COPY (SELECT value AS x FROM generate_series(1, 200)) TO '{to}/' STORED AS PARQUET"
    );
    let runs = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| tfarrow(&["sql", &copy]).status))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(
        runs.iter().filter(|status| **status == Some(0)).count(),
        1,
        "{runs:?}"
    );
    assert_eq!(rows(&to, "x").len(), 200);
}

#[test]
fn code_for_records_has_no_features_of_folders() {
    let folder = partitioned("TFRECORD");
    let source = folder.path().join("numbers").display().to_string();
    let python = tfarrow(&["schema", &source, "--format", "python"]).prints();
    assert!(
        python.contains("# \"n\": a folder of the files, and no feature of the records"),
        "{python}"
    );
    let sql = tfarrow(&["schema", &source, "--format", "sql"]).prints();
    assert!(sql.contains("PARTITIONED BY (\"n\") LOCATION"), "{sql}");
    let query = format!("{sql} SELECT n, count(*) AS c FROM \"part-00000\" GROUP BY n ORDER BY n");
    assert!(
        tfarrow(&["sql", "--format", "csv", &query])
            .prints()
            .ends_with("n,c\n7,2\n8,2\n"),
        "{sql}"
    );
}
