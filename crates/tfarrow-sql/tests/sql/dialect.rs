//! Syntax of DuckDB that is planned as equal syntax of DataFusion.

use crate::common::*;

#[tokio::test]
async fn fields_of_items_are_named_after_a_dot() {
    let file = testdata("example_list/queries.tfrecord");
    for field in ["relevance", "Relevance", "\"relevance\""] {
        let [dotted, quoted] = [format!(".{field}"), "['relevance']".to_owned()].map(|field| {
            format!(
                "SELECT examples[1]{field} AS x FROM '{file}' WHERE examples[1]{field} IS NOT NULL"
            )
        });
        let rows = answer(&quoted).await.unwrap();
        assert!(!rows.is_empty());
        assert_eq!(answer(&dotted).await.unwrap(), rows, "{field}");
    }
    // Names in quotes keep their case.
    let nested = "SELECT x[1].a.\"B\" FROM (SELECT [named_struct('a', named_struct('B', 7))] AS x)";
    check(answer(nested).await, ["7"]);
    assert!(refusal(&nested.replace("\"B\"", "B")).await.contains('b'));
}

#[tokio::test]
async fn semi_and_anti_joins_need_no_side() {
    let tables = "CREATE TABLE a AS VALUES (1), (2), (3); CREATE TABLE b AS VALUES (2), (3), (4); ";
    for (join, expect) in [
        ("a SEMI JOIN b USING (column1)", ["2", "3"].as_slice()),
        ("a SEMI JOIN b ON a.column1 = b.column1", &["2", "3"]),
        ("a ANTI JOIN b USING (column1)", &["1"]),
        ("(a ANTI JOIN b ON a.column1 = b.column1)", &["1"]),
        ("a LEFT ANTI JOIN b ON a.column1 = b.column1", &["1"]),
        ("a RIGHT ANTI JOIN b ON a.column1 = b.column1", &["4"]),
    ] {
        check(
            answer(&format!("{tables}SELECT * FROM {join} ORDER BY 1")).await,
            expect,
        );
    }
}

#[tokio::test]
async fn order_by_all_orders_by_every_column() {
    let values = "(VALUES (2, 'b'), (1, 'c'), (2, 'a')) AS t(x, y)";
    for (query, expect) in [
        (
            format!("SELECT x, y FROM {values} ORDER BY ALL"),
            ["1 | c", "2 | a", "2 | b"],
        ),
        (
            format!("SELECT x, y FROM {values} ORDER BY all DESC"),
            ["2 | b", "2 | a", "1 | c"],
        ),
        (
            format!("SELECT x, min(y) AS \"A b\" FROM {values} GROUP BY x, y ORDER BY ALL"),
            ["1 | c", "2 | a", "2 | b"],
        ),
        (
            "SELECT 2 AS x, 'b' AS y UNION ALL SELECT 1, 'c' UNION ALL SELECT 2, 'a' ORDER BY ALL"
                .to_owned(),
            ["1 | c", "2 | a", "2 | b"],
        ),
        (
            "VALUES (2, 'b'), (1, 'c'), (2, 'a') ORDER BY ALL".to_owned(),
            ["1 | c", "2 | a", "2 | b"],
        ),
        (
            format!("SELECT * FROM (SELECT y, x FROM {values}) AS \"all\" ORDER BY x, y"),
            ["c | 1", "a | 2", "b | 2"],
        ),
    ] {
        check(answer(&query).await, expect);
    }
    for query in [
        "SELECT * FROM t ORDER BY ALL",
        "FROM t ORDER BY ALL",
        "SELECT t.*, x FROM t ORDER BY ALL DESC",
    ] {
        let message = refusal(&query.replace("FROM t", &format!("FROM {values}"))).await;
        assert!(
            message.contains("ORDER BY ALL of * is not supported; name the columns after ORDER BY"),
            "{message}"
        );
    }
    check(
        answer("SELECT \"all\" FROM (VALUES (2), (1)) AS t(\"all\") ORDER BY \"all\"").await,
        ["1", "2"],
    );
}
