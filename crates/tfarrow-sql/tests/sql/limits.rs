//! Statements whose plans or values grow far beyond their text are errors, before memory is
//! allocated for them.

use tfarrow_sql::{SessionOptions, session_context};

use crate::common::*;

/// A chain of common table expressions, each of which joins the one before it with itself.
fn joins(levels: usize) -> String {
    let mut tables = vec!["t0 AS (SELECT 1 AS x)".to_owned()];
    for level in 1..=levels {
        let before = level - 1;
        tables.push(format!(
            "t{level} AS (SELECT a.x FROM t{before} AS a, t{before} AS b WHERE a.x = b.x)"
        ));
    }
    format!("WITH {} SELECT count(*) FROM t{levels}", tables.join(", "))
}

#[tokio::test]
async fn common_table_expressions_that_multiply_are_refused() {
    let message = refusal(&joins(30)).await;
    assert!(
        message.contains("more than query_relations=10000"),
        "{message}"
    );
    check(answer(&joins(5)).await, ["1"]);
    // In a subquery, and below another WITH.
    let query = format!("SELECT (WITH u AS (SELECT 1) SELECT 1) + ({})", joins(30));
    assert!(refusal(&query).await.contains("query_relations"));
}

#[tokio::test]
async fn expressions_that_multiply_are_refused() {
    // A filter above is moved below all of these, with the expressions in place of the columns.
    let sums = |levels: usize| {
        let mut tables = vec!["t0 AS (SELECT 1 AS x)".to_owned()];
        for level in 1..=levels {
            tables.push(format!(
                "t{level} AS (SELECT x + x AS x FROM t{})",
                level - 1
            ));
        }
        format!(
            "WITH {} SELECT count(*) FROM t{levels} WHERE x > 1",
            tables.join(", ")
        )
    };
    let message = refusal(&sums(24)).await;
    assert!(message.contains("more than plan_size=500000"), "{message}");
    check(answer(&sums(8)).await, ["1"]);
}

#[tokio::test]
async fn views_that_multiply_are_refused() {
    let mut text = "CREATE VIEW v0 AS SELECT 1 AS x;".to_owned();
    for level in 1..40 {
        let before = level - 1;
        text += &format!(
            "CREATE VIEW v{level} AS SELECT a.x FROM v{before} a JOIN v{before} b ON a.x = b.x;"
        );
    }
    let message = refusal(&text).await;
    assert!(message.contains("more than plan_size=500000"), "{message}");
}

#[tokio::test]
async fn calls_with_long_results_are_refused() {
    for (call, name) in [
        ("length(repeat('x', 2000000000))", "repeat"),
        (
            "length(repeat('x', n)) FROM (VALUES (2000000000)) v(n)",
            "repeat",
        ),
        ("length(lpad('x', 2000000000, 'y'))", "lpad"),
        ("length(rpad('x', 2000000000))", "rpad"),
        (
            "length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))",
            "replace",
        ),
        (
            "array_length(array_repeat('x', 2000000000))",
            "array_repeat",
        ),
        (
            "array_length(array_resize([1], 2000000000, 2))",
            "array_resize",
        ),
        ("array_length(range(2000000000))", "range"),
        (
            "array_length(generate_series(-2000000000, 2000000000, 3))",
            "generate_series",
        ),
        (
            "array_length(generate_series(9, -2000000000, -1))",
            "generate_series",
        ),
        (
            "array_length(range(TIMESTAMP '2000-01-01', TIMESTAMP '2100-01-01', INTERVAL '1 second'))",
            "range",
        ),
        (
            "array_length(array_repeat(array_repeat(array_repeat('x', 300), 300), 30000))",
            "array_repeat",
        ),
    ] {
        let message = refusal(&format!("SELECT {call}")).await;
        assert!(
            message.contains(&format!("the values of a call of {name} take ")),
            "{call}: {message}"
        );
    }
    let call = "length(repeat('ab', 3)), lpad('x', 2, 'y'), array_length(range(0, 10, 3)), replace('aa', 'a', 'bc')";
    check(
        answer(&format!(
            "SELECT {call}, array_repeat(NULL, 2), range(5, 0)"
        ))
        .await,
        ["6 | yx | 4 | bcbc | [, ] | []"],
    );
}

#[tokio::test]
async fn a_memory_limit_bounds_the_values_of_a_call() {
    let options = SessionOptions {
        memory_limit: Some(1 << 20),
        ..SessionOptions::default()
    };
    let context = session_context(options).unwrap();
    let message = error(&context, "SELECT length(repeat('x', 2000000))").await;
    assert!(
        message.contains("take 2000000 bytes, more than the limit of 1048576"),
        "{message}"
    );
    check(
        rows(&context, "SELECT length(repeat('x', 1000000))").await,
        ["1000000"],
    );
}

#[tokio::test]
async fn absurd_lengths_of_lists_and_windows_are_refused() {
    for query in [
        "SELECT arrow_cast([1, 2], 'FixedSizeList(2147483647, Int64)')",
        "SELECT array_length(arrow_cast([1, 2], 'FixedSizeList(2147483647, Int64)'))",
        "SELECT TRY_CAST([1, 2] AS INT[2147483647])",
    ] {
        let message = refusal(query).await;
        assert!(
            message.contains("a batch of 8192 rows of "),
            "{query}: {message}"
        );
    }
    check(answer("SELECT [1, 2]::INT[2]").await, ["[1, 2]"]);
    let frame = "SELECT count(*) OVER (ORDER BY 1 ROWS 9223372036854775808 PRECEDING)";
    let message = refusal(frame).await;
    assert!(
        message.contains("a window frame of 9223372036854775808 rows is too long"),
        "{message}"
    );
    check(
        answer("SELECT count(*) OVER (ORDER BY 1 ROWS 9223372036854775807 PRECEDING)").await,
        ["1"],
    );
}
