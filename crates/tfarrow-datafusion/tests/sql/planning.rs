//! Statements that `plan_statement` plans otherwise than DataFusion: DROP, INSERT and DESCRIBE.

use crate::common::*;

#[tokio::test]
async fn drop_of_files_is_an_error() {
    let folder = testdata("shards/");
    for statement in ["DROP TABLE", "DROP TABLE IF EXISTS", "DROP VIEW", "DROP VIEW IF EXISTS"] {
        let message = refusal(&format!("{statement} '{folder}'")).await;
        assert!(message.contains("is a file source, not a table"), "{statement}: {message}");
    }
    check(answer("DROP TABLE IF EXISTS nosuch").await, []);
    assert!(refusal("DROP TABLE 'nosuch/'").await.contains("doesn't exist"));
}

#[tokio::test]
async fn an_insert_of_another_number_of_columns_names_both_numbers() {
    let table = "CREATE TABLE t AS VALUES (1, 2, 3); ";
    for (insert, expect) in [
        ("INSERT INTO t SELECT 1, 2", "INSERT INTO t: the query has 2 columns, the table has 3; list the columns"),
        ("INSERT INTO t (column1) SELECT 1, 2", "the query has 2 columns, the list of the statement has 1"),
        ("INSERT INTO t SELECT nosuch", "nosuch"),
    ] {
        let message = refusal(&format!("{table}{insert}")).await;
        assert!(message.contains(expect), "{insert}: {message}");
    }
    let columns = "column1, column2, column3";
    let insert = format!("{table}INSERT INTO t ({columns}) SELECT {columns} FROM t; SELECT count(*) FROM t");
    check(answer(&insert).await, ["2"]);
}

#[tokio::test]
async fn described_types_have_no_metadata() {
    for file in ["example_list/queries.tfrecord", "sequence.tfrecord", "ragged.tfrecord"] {
        let rows = answer(&format!("DESCRIBE '{}'", testdata(file))).await.unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| !row.contains("metadata")), "{rows:?}");
    }
}
