//! Clauses that DataFusion parses and ignores, and statements that exceed a limit, are errors.

use datafusion::{error::Result, prelude::SessionContext};
use tfarrow_sql::{QueryLimits, enable_sql, statements};

use crate::common::*;

/// Plans and runs the statements of a text, which `statements` checks first.
async fn run(
    context: &SessionContext,
    text: &str,
) -> Result<Vec<datafusion::arrow::array::RecordBatch>> {
    let mut batches = Vec::new();
    for statement in statements(text, context, QueryLimits::default())? {
        let plan = context.state().statement_to_plan(statement?).await?;
        batches = context.execute_logical_plan(plan).await?.collect().await?;
    }
    Ok(batches)
}

async fn refusal(context: &SessionContext, text: &str) -> String {
    match run(context, text).await {
        Ok(batches) => panic!("{text}: {batches:?}"),
        Err(error) => error.strip_backtrace(),
    }
}

#[tokio::test]
async fn clauses_without_effect_are_refused() {
    let context = session();
    run(
        &context,
        "CREATE VIEW t AS SELECT * FROM (VALUES (1), (2)) AS v(a)",
    )
    .await
    .unwrap();
    for (query, clause) in [
        ("SELECT * FROM t TABLESAMPLE (10)", "TABLESAMPLE"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
        (
            "SELECT * FROM (SELECT * FROM t) TABLESAMPLE (10 ROWS)",
            "TABLESAMPLE",
        ),
        (
            "SELECT (SELECT max(a) FROM t TABLESAMPLE (10))",
            "TABLESAMPLE",
        ),
        (
            "WITH c AS (SELECT * FROM t TABLESAMPLE (10)) SELECT * FROM c",
            "TABLESAMPLE",
        ),
        (
            "SELECT * FROM t JOIN t AS u TABLESAMPLE (10) ON t.a = u.a",
            "TABLESAMPLE",
        ),
        ("EXPLAIN SELECT * FROM t TABLESAMPLE (10)", "TABLESAMPLE"),
        (
            "CREATE VIEW u AS SELECT * FROM t TABLESAMPLE (10)",
            "TABLESAMPLE",
        ),
        (
            "INSERT INTO t SELECT * FROM t TABLESAMPLE (10)",
            "TABLESAMPLE",
        ),
        (
            "COPY (SELECT * FROM t TABLESAMPLE (10)) TO 'none.csv'",
            "TABLESAMPLE",
        ),
        ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
        ("SELECT * FROM t FOR SHARE", "FOR UPDATE"),
        ("SELECT * FROM t SETTINGS max_threads = 1", "SETTINGS"),
        ("SELECT * FROM t FORMAT JSON", "FORMAT"),
        ("SELECT * FROM t FETCH FIRST 1 ROWS ONLY", "FETCH"),
        ("SELECT * FROM t FETCH FIRST 1 ROWS WITH TIES", "FETCH"),
        ("SELECT TOP 1 * FROM t", "TOP"),
        ("SELECT * FROM t PREWHERE a = 1", "PREWHERE"),
        ("SELECT a FROM t GROUP BY a WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT a FROM t GROUP BY a WITH TOTALS", "WITH ROLLUP"),
        ("SELECT a FROM t CLUSTER BY a", "CLUSTER BY"),
        ("SELECT a FROM t DISTRIBUTE BY a", "DISTRIBUTE BY"),
        ("SELECT a FROM t SORT BY a", "SORT BY"),
        (
            "SELECT a FROM t START WITH a = 1 CONNECT BY a = a",
            "CONNECT BY",
        ),
        (
            "SELECT * FROM t LATERAL VIEW explode(a) x AS y",
            "LATERAL VIEW",
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3 LIMIT 1) SELECT * FROM r",
            "LIMIT of",
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 3 ORDER BY n) SELECT * FROM r",
            "ORDER BY,",
        ),
        ("SELECT median(0.5)(a) FROM t", "a second list of arguments"),
        ("SELECT FROM t", "SELECT without columns"),
        ("SELECT 1 INTO x UNION ALL SELECT 2", "INTO within UNION"),
        (
            "SELECT * FROM t AS v(b INT)",
            "a type in the columns of an alias",
        ),
        (
            "SELECT * FROM t GLOBAL JOIN t AS u ON t.a = u.a",
            "GLOBAL JOIN",
        ),
        ("SELECT * FROM t WITH (NOLOCK)", "WITH (..) after a table"),
        (
            "SELECT * FROM read_tfrecord('x') WITH ORDINALITY",
            "WITH ORDINALITY",
        ),
        ("SELECT upper(DISTINCT 'a')", "DISTINCT of upper"),
        ("SELECT upper('a') FILTER (WHERE false)", "FILTER of upper"),
        ("SELECT upper('a') OVER ()", "OVER of upper"),
        ("SELECT upper('a' ORDER BY 1)", "ORDER BY of upper"),
        (
            "SELECT array_agg(a ORDER BY a DESC) OVER () FROM t",
            "ORDER BY among the arguments of array_agg",
        ),
        ("SELECT CAST('abc' AS VARCHAR(2))", "the size of VARCHAR(2)"),
        ("SELECT 'abc'::CHAR(2)", "the size of CHAR(2)"),
        ("SELECT CAST(1 AS FLOAT(53))", "the size of FLOAT(53)"),
        ("CREATE TABLE x (a INT COMMENT 'c')", "COMMENT 'c'"),
        ("CREATE SCHEMA s WITH (a = 1)", "CREATE SCHEMA"),
        ("DROP VIEW t CASCADE", "CASCADE"),
        ("DROP TABLE t PURGE", "PURGE"),
        (
            "COPY t TO 'none.csv' STORED AS nonsense",
            "STORED AS NONSENSE",
        ),
        ("SHOW FULL COLUMNS FROM t", "SHOW FULL COLUMNS"),
    ] {
        let message = refusal(&context, query).await;
        assert!(message.contains(clause), "{query}: {message}");
        assert!(
            message.contains("; ") || message.contains("syntax"),
            "{query}: {message}"
        );
    }
    assert!(!std::path::Path::new("none.csv").exists());
}

#[tokio::test]
async fn clauses_with_effect_are_answered() {
    let context = session();
    run(
        &context,
        "CREATE VIEW t AS SELECT * FROM (VALUES (1), (2)) AS v(a)",
    )
    .await
    .unwrap();
    for query in [
        "SELECT DISTINCT ON (a) a FROM t ORDER BY a LIMIT 1 OFFSET 0",
        "SELECT count(DISTINCT a) FILTER (WHERE a > 1) FROM t",
        "SELECT first_value(a) IGNORE NULLS OVER (ORDER BY a) FROM t",
        "SELECT array_agg(a ORDER BY a DESC) FROM t",
        "SELECT a FROM t GROUP BY ROLLUP (a)",
        "SELECT * EXCLUDE (a), a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
        "WITH c(b) AS (SELECT a FROM t) SELECT * FROM c AS d(e)",
        "SELECT CAST('1' AS DECIMAL(5, 2)), 'a'::VARCHAR, 1::FLOAT",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n LIMIT 1",
        "SELECT a INTO kept FROM t; SELECT * FROM kept",
        "SELECT /*+ a hint */ a FROM t",
        "SHOW TABLES; DESCRIBE t; EXPLAIN ANALYZE SELECT * FROM t",
        ";; SELECT 1 -- a comment; with a semicolon\n; /* ; */",
    ] {
        run(&context, query)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}

#[tokio::test]
async fn from_without_select_reads_all_columns() {
    let (context, file) = (session(), testdata("scalar.tfrecord"));
    let [short, long] = ["", "SELECT * "].map(|select| format!("{select}FROM '{file}' LIMIT 1"));
    let answer = run(&context, &short).await.unwrap();
    assert_eq!(answer, run(&context, &long).await.unwrap());
    assert!(
        answer[0].num_columns() > 1 && answer[0].num_rows() == 1,
        "{answer:?}"
    );
}

#[tokio::test]
async fn show_columns_describes_files() {
    let (context, file) = (session(), testdata("scalar.tfrecord"));
    let answer = run(&context, &format!("SHOW COLUMNS FROM '{file}'"))
        .await
        .unwrap();
    assert_eq!(
        answer,
        run(&context, &format!("DESCRIBE '{file}'")).await.unwrap()
    );
    assert!(
        answer.iter().map(|batch| batch.num_rows()).sum::<usize>() > 1,
        "{answer:?}"
    );
}

#[tokio::test]
async fn every_session_refuses_a_sample_of_a_table() {
    let (plain, file) = (SessionContext::new(), testdata("scalar.tfrecord"));
    enable_sql(&plain).unwrap();
    for (context, table) in [
        (session(), format!("'{file}'")),
        (plain, format!("read_tfrecord('{file}')")),
    ] {
        let message = error(&context, &format!("SELECT * FROM {table} TABLESAMPLE (10)")).await;
        assert!(
            message.contains("TABLESAMPLE is not supported; write WHERE random() < 0.1"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn keys_of_tfrecord_tables_are_refused() {
    let context = session();
    for keys in [
        "a INT PRIMARY KEY",
        "a INT UNIQUE",
        "a INT, PRIMARY KEY (a)",
        "a INT, UNIQUE (a)",
    ] {
        let folder = testdata("shards/");
        let query =
            format!("CREATE EXTERNAL TABLE t ({keys}) STORED AS TFRECORD LOCATION '{folder}'");
        let message = error(&context, &query).await;
        assert!(
            message.contains("leave PRIMARY KEY and UNIQUE out"),
            "{message}"
        );
    }
}

fn sum(terms: usize) -> String {
    format!("SELECT {}1", "1+".repeat(terms - 1))
}

#[tokio::test]
async fn deep_statements_are_refused() {
    let context = session();
    let repeated = |begin: &str, part: &str, count| format!("{begin}{}", part.repeat(count));
    for query in [
        sum(10_000),
        sum(40_000),
        format!("EXPLAIN {}", sum(10_000)),
        format!("CREATE VIEW v AS {}", sum(10_000)),
        repeated("SELECT 1", "::BIGINT::INT", 10_000),
        repeated("SELECT 'a'", "||'a'", 10_000),
        repeated("SELECT 1", " IS NULL", 40_000),
        repeated("SELECT 1", " UNION ALL SELECT 1", 5_000),
        repeated("SELECT 1", " EXCEPT SELECT 1", 20_000),
        repeated("SELECT 1 FROM t0", " JOIN t0 ON true", 5_000),
        repeated("SELECT 1 FROM t0", ", t0", 5_000),
        format!(
            "WITH {} SELECT 1",
            vec!["c AS (SELECT 1)"; 5_000].join(", ")
        ),
    ] {
        let message = refusal(&context, &query).await;
        assert!(
            message.contains("more than query_depth=1000"),
            "{}: {message}",
            &query[..40]
        );
    }
    let message = refusal(&context, &repeated("", "EXPLAIN ", 60_000)).await;
    assert!(message.contains("write EXPLAIN once"), "{message}");
}

#[tokio::test]
async fn deep_statements_within_the_limit_are_answered() {
    let context = session();
    run(&context, &sum(900)).await.unwrap();
    run(
        &context,
        &format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(900)),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn long_chains_of_or_and_and_are_answered() {
    let context = session();
    run(
        &context,
        "CREATE TABLE t AS SELECT value AS v FROM range(0, 20000)",
    )
    .await
    .unwrap();
    let chain = |count: usize, op: &str, sign: &str| {
        (0..count)
            .map(|i| format!("v {sign} {i}"))
            .collect::<Vec<_>>()
            .join(op)
    };
    for (condition, expect) in [
        (chain(10_000, " OR ", "="), 10_000),
        (chain(1_000, " AND ", "<>"), 19_000),
        (format!("({}) AND v < 50", chain(1_000, " OR ", "=")), 50),
        (
            format!("v < 50 OR v IS NULL OR {}", chain(99, " OR ", "=")),
            99,
        ),
    ] {
        let rows = run(&context, &format!("SELECT v FROM t WHERE {condition}"))
            .await
            .unwrap();
        assert_eq!(
            rows.iter().map(|batch| batch.num_rows()).sum::<usize>(),
            expect,
            "{}",
            &condition[..40]
        );
    }
}

#[tokio::test]
async fn long_texts_are_refused() {
    let context = session();
    let limits = QueryLimits::default();
    let message = refusal(&context, &" ".repeat(limits.bytes + 1)).await;
    assert!(
        message.contains("more than query_bytes=524288 bytes"),
        "{message}"
    );
    let message = refusal(
        &context,
        &format!("SELECT {}1", "1,".repeat(limits.tokens / 2)),
    )
    .await;
    assert!(
        message.contains("more than query_tokens=100000"),
        "{message}"
    );
    // The limit of tokens applies to each statement separately.
    let many = "SELECT 1;".repeat(limits.tokens / 2);
    assert_eq!(
        statements(&many, &context, limits)
            .unwrap()
            .filter(Result::is_ok)
            .count(),
        limits.tokens / 2
    );
}
