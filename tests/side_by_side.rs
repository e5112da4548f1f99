//! Queries give the same rows on TFRecord files and on the Parquet files that `convert` writes.

use crate::support::tfarrow;

/// Queries that define the order of their rows completely. `SHARDS`, `RAGGED` and `SEQUENCE` stand
/// for the data sets.
const QUERIES: &str = include_str!("side_by_side.sql");

const DATA: [(&str, &str); 3] = [
    ("SHARDS", "testdata/shards/"),
    ("RAGGED", "testdata/ragged.tfrecord"),
    ("SEQUENCE", "testdata/sequence.tfrecord"),
];

/// The lines of [`QUERIES`] that are queries.
fn queries() -> Vec<&'static str> {
    let queries: Vec<_> = QUERIES
        .lines()
        .filter(|line| !line.starts_with("--"))
        .collect();
    assert_eq!(queries.len(), 24);
    queries
}

/// The rows of a query of these data sets.
fn answer(query: &str, data: &[(&str, String)], options: &[&str]) -> String {
    let mut query = query.to_owned();
    for (name, source) in data {
        query = query.replace(name, &format!("'{source}'"));
    }
    let sql = ["sql", "--sample", "all", "--format", "csv", &query];
    let printed = tfarrow(&[&sql[..], options].concat()).prints();
    // The first line has the names of the columns, which may contain those of the tables.
    printed.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn tfrecord_and_parquet_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let of_tfrecord = DATA.map(|(name, source)| (name, source.to_owned()));
    let mut of_parquet = Vec::new();
    for (name, source) in DATA {
        let parquet = folder.path().join(name).display().to_string() + "/";
        tfarrow(&["convert", source, &parquet]).ends(0);
        of_parquet.push((name, parquet));
    }
    for query in queries() {
        let tfrecord = answer(query, &of_tfrecord, &[]);
        assert!(!tfrecord.is_empty(), "{query} has no rows");
        assert_eq!(tfrecord, answer(query, &of_parquet, &[]), "{query}");
    }
}

#[test]
fn files_with_and_without_indexes_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let of_tfrecord = DATA.map(|(name, source)| (name, source.to_owned()));
    let indexes = folder.path().join("indexes").display().to_string();
    let mut of_gzip = Vec::new();
    for (name, source) in DATA {
        tfarrow(&["index", source, "--to", &indexes]).ends(0);
        let gzip = folder.path().join(name).display().to_string() + "/";
        tfarrow(&[
            "convert",
            source,
            &gzip,
            "--to",
            "tfrecord",
            "--compression",
            "gzip",
        ])
        .ends(0);
        tfarrow(&["index", &gzip]).ends(0);
        of_gzip.push((name, gzip));
    }
    let option = format!("index={indexes}");
    for query in queries() {
        let without = answer(query, &of_tfrecord, &["--option", "index=none"]);
        let with = answer(query, &of_tfrecord, &["--option", &option]);
        assert_eq!(with, without, "{query}");
        assert_eq!(answer(query, &of_gzip, &[]), without, "{query}");
    }
}
