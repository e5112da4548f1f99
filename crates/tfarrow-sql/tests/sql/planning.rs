//! Statements that `plan_statement` plans otherwise than DataFusion: DROP, INSERT, DESCRIBE, and
//! `SELECT *`.

use datafusion::{logical_expr::LogicalPlan, prelude::SessionContext};
use tfarrow_sql::{QueryLimits, plan_statement, statements};

use crate::common::*;

#[tokio::test]
async fn drop_of_files_is_an_error() {
    let folder = testdata("shards/");
    for statement in [
        "DROP TABLE",
        "DROP TABLE IF EXISTS",
        "DROP VIEW",
        "DROP VIEW IF EXISTS",
    ] {
        let message = refusal(&format!("{statement} '{folder}'")).await;
        assert!(
            message.contains("is a file source, not a table"),
            "{statement}: {message}"
        );
    }
    check(answer("DROP TABLE IF EXISTS nosuch").await, []);
    assert!(
        refusal("DROP TABLE 'nosuch/'")
            .await
            .contains("doesn't exist")
    );
}

#[tokio::test]
async fn an_insert_of_another_number_of_columns_names_both_numbers() {
    let table = "CREATE TABLE t AS VALUES (1, 2, 3); ";
    for (insert, expect) in [
        (
            "INSERT INTO t SELECT 1, 2",
            "INSERT INTO t: the query has 2 columns, the table has 3; list the columns",
        ),
        (
            "INSERT INTO t (column1) SELECT 1, 2",
            "the query has 2 columns, the list of the statement has 1",
        ),
        ("INSERT INTO t SELECT nosuch", "nosuch"),
    ] {
        let message = refusal(&format!("{table}{insert}")).await;
        assert!(message.contains(expect), "{insert}: {message}");
    }
    let columns = "column1, column2, column3";
    let insert =
        format!("{table}INSERT INTO t ({columns}) SELECT {columns} FROM t; SELECT count(*) FROM t");
    check(answer(&insert).await, ["2"]);
}

#[tokio::test]
async fn described_types_have_no_metadata() {
    for file in [
        "example_list/queries.tfrecord",
        "sequence.tfrecord",
        "ragged.tfrecord",
    ] {
        let rows = answer(&format!("DESCRIBE '{}'", testdata(file)))
            .await
            .unwrap();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| !row.contains("metadata")),
            "{rows:?}"
        );
    }
}

/// The plan of a statement.
async fn plan(context: &SessionContext, text: &str) -> LogicalPlan {
    let mut statements = statements(text, context, QueryLimits::default()).unwrap();
    plan_statement(statements.next().unwrap().unwrap(), &context.state())
        .await
        .unwrap()
}

/// DataFusion compares all pairs of selected columns, so that a selection of thousands takes
/// seconds.
#[tokio::test]
async fn all_columns_of_one_table_are_not_selected_one_by_one() {
    let (context, table) = (session(), testdata("shards/"));
    let names = |plan: &LogicalPlan| plan.schema().columns();
    for query in [
        "SELECT * FROM t",
        "FROM t",
        "FROM t SELECT *",
        "SELECT * FROM t a WHERE label > 1 LIMIT 3",
        "WITH a AS (SELECT label, city FROM t) SELECT * FROM a WHERE city = (SELECT max(city) FROM t)",
        "SELECT * FROM (SELECT label AS x FROM t) LIMIT 1 OFFSET 2",
        "SELECT * FROM (SELECT label AS x FROM t ORDER BY label) LIMIT 3",
        "SELECT * FROM (SELECT label AS x FROM t ORDER BY label) a ORDER BY x",
        "SELECT * FROM t ORDER BY label, price DESC, city",
        "SELECT * FROM t a WHERE price > 10 ORDER BY a.label DESC, a.price LIMIT 2",
    ] {
        // DataFusion has no columns for FROM without SELECT.
        let select = if query.starts_with("FROM") {
            "SELECT * FROM t"
        } else {
            query
        };
        let [query, select] =
            [query, select].map(|query| query.replace("FROM t", &format!("FROM '{table}'")));
        let (found, expect) = (
            plan(&context, &query).await,
            context.state().create_logical_plan(&select).await.unwrap(),
        );
        assert!(!matches!(found, LogicalPlan::Projection(_)), "{found}");
        assert_eq!(names(&found), names(&expect), "{query}");
        let expect = table_rows(
            &context
                .execute_logical_plan(expect)
                .await
                .unwrap()
                .collect()
                .await
                .unwrap(),
        );
        check(
            answer(&query).await,
            expect
                .unwrap()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
    }
    let unknown = refusal(&format!("SELECT * FROM '{table}' ORDER BY nope")).await;
    assert!(
        unknown.contains("nope") && !unknown.contains("all columns"),
        "{unknown}"
    );
    let folder = Folder::new();
    let copy = format!(
        "COPY (SELECT * FROM '{table}' WHERE label = 2) TO '{}'",
        folder.name("copy.parquet")
    );
    check(
        answer(&format!(
            "{copy}; SELECT sum(label) / count(*) FROM '{}'",
            folder.name("copy.parquet")
        ))
        .await,
        ["2"],
    );
    let to = folder.name("cities");
    let copy = format!(
        "COPY (SELECT * FROM '{table}' ORDER BY label) TO '{to}' STORED AS PARQUET PARTITIONED BY (city)"
    );
    let found = plan(&context, &copy).await;
    let LogicalPlan::Copy(copied) = &found else {
        panic!("{found}")
    };
    assert!(
        matches!(copied.input.as_ref(), LogicalPlan::Sort(_)),
        "{found}"
    );
    let expect = answer(&format!(
        "SELECT city, sum(label) FROM '{table}' GROUP BY city ORDER BY city"
    ))
    .await
    .unwrap();
    let found = answer(&format!(
        "{copy}; SELECT city, sum(label) FROM '{to}/' GROUP BY city ORDER BY city"
    ))
    .await;
    check(found, expect.iter().map(String::as_str).collect::<Vec<_>>());
    // Other clauses stay as they are.
    for query in [
        "SELECT DISTINCT * FROM t",
        "SELECT * EXCEPT (label) FROM t",
        "SELECT * FROM t ORDER BY 1 LIMIT 1",
        "SELECT * FROM t ORDER BY price + 1",
        "SELECT * FROM t NATURAL JOIN t b",
    ] {
        let query = query.replace(" t", &format!(" '{table}'"));
        let expect = context.state().create_logical_plan(&query).await.unwrap();
        assert_eq!(
            plan(&context, &query).await.to_string(),
            expect.to_string(),
            "{query}"
        );
    }
}
