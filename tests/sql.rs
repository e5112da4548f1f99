//! `tfarrow sql`.

use crate::support::{path, tfarrow, tfarrow_reads};

#[test]
fn answers_statements_in_order() {
    let printed =
        tfarrow(&["sql", "--format", "csv", "SELECT 1 AS a; -- not; this\nSELECT ';' AS b", "SELECT 3 AS c;"]);
    assert_eq!(printed.prints(), "a\n1\nb\n;\nc\n3\n");
}

#[test]
fn reads_statements_from_files_and_standard_input() {
    let file = path("sql/01-class-balance.sql");
    let printed = tfarrow(&["sql", "-f", file.to_str().unwrap(), "--format", "csv"]).prints();
    assert!(printed.starts_with("label,records,percent\n0,"), "{printed}");
    assert_eq!(tfarrow_reads(&["sql", "--format", "csv"], b"SELECT 1 AS a").prints(), "a\n1\n");
    assert_eq!(tfarrow_reads(&["sql", "--format", "csv", "-f", "-"], b"SELECT 1 AS a").prints(), "a\n1\n");
    assert_eq!(tfarrow(&["sql"]).prints(), "");
}

#[test]
fn averages_a_column_of_all_shards() {
    let printed = tfarrow(&["sql", "--format", "csv", "SELECT avg(label) AS a, count(*) AS n FROM 'testdata/shards/'"]);
    let printed = printed.prints();
    assert!(printed.ends_with(",200\n"), "{printed}");
}

#[test]
fn syntax_errors_come_before_any_answer() {
    let said = tfarrow(&["sql", "SELECT 1; SELEC 2"]).fails();
    assert!(said.starts_with("syntax error: ") && said.contains("SELEC"), "{said}");
}

#[test]
fn a_failing_statement_ends_the_run() {
    let run =
        tfarrow(&["sql", "--format", "csv", "SELECT 1 AS a; SELECT nosuch FROM 'testdata/scalar.tfrecord'; SELECT 3"]);
    assert_eq!(run.stdout, "a\n1\n");
    assert!(run.ends(1).contains("nosuch"));
}

#[test]
fn a_column_that_is_not_found_is_explained_by_the_sample() {
    let said = tfarrow(&["sql", "--sample", "2", "SELECT nosuch FROM 'testdata/shards/'"]).fails();
    assert!(said.contains("nosuch") && said.contains("8 of") || said.contains("8 records"), "{said}");
}

#[test]
fn options_decide_how_records_are_read() {
    let query = "SELECT arrow_typeof(id) AS t FROM 'testdata/scalar.tfrecord' LIMIT 1";
    assert_eq!(tfarrow(&["sql", "--format", "csv", query]).prints(), "t\nInt64\n");
    assert!(tfarrow(&["sql", "--format", "csv", "--layout", "list", query]).prints().contains("List("));
    let query = "SELECT count(record) AS n FROM 'testdata/scalar.tfrecord'";
    assert_eq!(tfarrow(&["sql", "--format", "csv", "--record-type", "raw", query]).prints(), "n\n20\n");
    let query = "SELECT count(i) AS n FROM 'testdata/corrupt/data_crc.tfrecord'";
    tfarrow(&["sql", query]).ends(1);
    assert_eq!(tfarrow(&["sql", "--format", "csv", "--verify-crc", "never", query]).prints(), "n\n3\n");
}

#[test]
fn settings_hold_for_the_statements_that_follow() {
    let query = "SET tfarrow.layout = 'list'; SELECT id[1] AS id FROM 'testdata/scalar.tfrecord' LIMIT 1";
    assert_eq!(tfarrow(&["sql", "--format", "csv", query]).prints(), "id\n-5\n");
}

#[test]
fn plans_are_shown_whole() {
    let printed = tfarrow(&["sql", "EXPLAIN SELECT label FROM 'testdata/shards/' WHERE price > 10"]).prints();
    assert!(printed.contains("DataSourceExec") && printed.lines().count() > 6, "{printed}");
}

#[test]
fn mixed_kinds_name_both_places() {
    let said = tfarrow(&["sql", "SELECT * FROM 'testdata/mixed_kinds/'"]).fails();
    let places = ["\"x\"", "part-00000-of-00002.tfrecord", "part-00001-of-00002.tfrecord", "int64_list", "float_list"];
    assert!(places.iter().all(|place| said.contains(place)), "{said}");
}

#[test]
fn starts_quickly() {
    let best = (0..5).map(|_| {
        let start = std::time::Instant::now();
        tfarrow(&["sql", "SELECT 1"]).prints();
        start.elapsed()
    });
    let best = best.min().unwrap();
    assert!(best.as_millis() < 100, "{best:?}");
}
