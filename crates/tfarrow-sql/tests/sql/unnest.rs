//! Joins with `UNNEST` of a list of another table.

use crate::common::*;

/// A table `t` of three rows: two items, no item, and no list.
const T: &str = "CREATE TABLE t AS VALUES (1, [10, 20]), (2, make_array()), (3, NULL); ";

#[tokio::test]
async fn a_row_for_each_item() {
    for join in [
        "t, UNNEST(t.column2) AS u(x)",
        "t CROSS JOIN UNNEST(column2) AS u(x)",
        "t CROSS JOIN LATERAL UNNEST(t.column2) AS u(x)",
        "t JOIN UNNEST(column2) AS u(x) ON true",
        "t, LATERAL (SELECT unnest(t.column2) AS x) AS u",
        "t JOIN LATERAL UNNEST(t.column2) AS u(x) ON x > 0",
    ] {
        check(
            answer(&format!(
                "{T}SELECT t.column1, u.x FROM {join} ORDER BY 1, 2"
            ))
            .await,
            ["1 | 10", "1 | 20"],
        );
        check(
            answer(&format!("{T}SELECT sum(x) FROM {join} WHERE x > 10")).await,
            ["20"],
        );
        check(
            answer(&format!("{T}SELECT count(*) FROM {join}")).await,
            ["2"],
        );
    }
}

#[tokio::test]
async fn a_left_join_keeps_rows_without_items() {
    let expect = ["1 | 10", "1 | 20", "2 | ", "3 | "].map(|row| row.trim_end().to_owned());
    for join in [
        "t LEFT JOIN UNNEST(column2) AS u(x) ON true",
        "t LEFT JOIN LATERAL UNNEST(t.column2) AS u(x) ON true",
    ] {
        let rows = answer(&format!("{T}SELECT column1, x FROM {join} ORDER BY 1, 2"))
            .await
            .unwrap();
        let rows: Vec<_> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(rows, expect, "{join}");
    }
}

#[tokio::test]
async fn lists_are_unnested_together_and_one_after_the_other() {
    let pairs = "SELECT a, b FROM (SELECT [1, 2] AS x, [3, 4] AS y) t, ";
    check(
        answer(&format!("{pairs}UNNEST(x, y) AS u(a, b) ORDER BY 1, 2")).await,
        ["1 | 3", "2 | 4"],
    );
    let product = format!("{pairs}UNNEST(x) AS u(a), UNNEST(y) AS v(b) ORDER BY 1, 2");
    check(answer(&product).await, ["1 | 3", "1 | 4", "2 | 3", "2 | 4"]);
    check(
        answer("SELECT b FROM (SELECT [[1, 2], [3]] AS x) t, UNNEST(x) AS u(a), UNNEST(u.a) AS v(b) ORDER BY 1").await,
        ["1", "2", "3"],
    );
}

#[tokio::test]
async fn steps_of_a_feature_list_are_rows() {
    let shards = testdata("shards/");
    let lateral = format!(
        "SELECT tag, count(*) FROM '{shards}' t, UNNEST(t.tags) AS u(tag) GROUP BY 1 ORDER BY 1"
    );
    let select = format!(
        "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM '{shards}') GROUP BY 1 ORDER BY 1"
    );
    assert_eq!(
        answer(&lateral).await.unwrap(),
        answer(&select).await.unwrap()
    );
    // A file without an alias is referred to by the names of its columns.
    let direct = format!(
        "SELECT tag, count(*) FROM '{shards}', UNNEST(tags) AS u(tag) GROUP BY 1 ORDER BY 1"
    );
    assert_eq!(
        answer(&direct).await.unwrap(),
        answer(&select).await.unwrap()
    );
}

#[tokio::test]
async fn unnest_without_a_reference_is_a_cross_join() {
    check(
        answer("SELECT a, b FROM UNNEST([1, 2]) AS t(a), UNNEST([3]) AS u(b) ORDER BY 1").await,
        ["1 | 3", "2 | 3"],
    );
}

#[tokio::test]
async fn fields_of_an_item_are_columns() {
    let file = testdata("example_list/queries.tfrecord");
    let direct = format!(
        "SELECT query, e['relevance'] AS r FROM (SELECT query, unnest(examples) AS e FROM '{file}')"
    );
    let rows = answer(&format!("{direct} ORDER BY 1, 2")).await.unwrap();
    assert!(!rows.is_empty());
    for join in [
        format!("'{file}', UNNEST(examples) AS u(e)"),
        format!("'{file}' AS t CROSS JOIN UNNEST(t.examples) AS u(e)"),
        format!("'{file}' AS t, LATERAL (SELECT unnest(t.examples) AS e) AS u"),
    ] {
        for field in ["e['relevance']", "u.e['relevance']"] {
            let query = format!("SELECT query, {field} AS r FROM {join} ORDER BY 1, 2");
            assert_eq!(answer(&query).await.unwrap(), rows, "{query}");
        }
    }
}
