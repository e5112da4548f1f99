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

#[test]
fn tfrecord_and_parquet_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut of_parquet = Vec::new();
    for (name, source) in DATA {
        let parquet = folder.path().join(name).display().to_string() + "/";
        tfarrow(&["convert", source, &parquet]).ends(0);
        of_parquet.push((name, parquet));
    }
    let queries = QUERIES.lines().filter(|line| !line.starts_with("--"));
    assert_eq!(queries.clone().count(), 24);
    for query in queries {
        let answer = |query: String| {
            let printed = tfarrow(&["sql", "--sample", "all", "--format", "csv", &query]).prints();
            // The first line has the names of the columns, which may contain those of the tables.
            printed.split_once('\n').unwrap().1.to_owned()
        };
        let of = |query: &str, (name, source): &(&str, &str)| {
            query.replace(name, &format!("'{source}'"))
        };
        let tfrecord = answer(
            DATA.iter()
                .fold(query.to_owned(), |query, data| of(&query, data)),
        );
        let parquet = of_parquet
            .iter()
            .fold(query.to_owned(), |query, (name, to)| {
                of(&query, &(*name, to.as_str()))
            });
        assert!(!tfrecord.is_empty(), "{query} has no rows");
        assert_eq!(tfrecord, answer(parquet), "{query}");
    }
}
