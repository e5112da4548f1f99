//! The headings of computed columns.

use datafusion::physical_plan::common::collect;
use tfarrow_sql::with_headings;

use crate::common::*;

/// The headings of the result of the last of these statements.
async fn headings(statements: &[&str]) -> Vec<String> {
    let context = session();
    let mut names = Vec::new();
    for statement in statements {
        let state = context.state();
        let plan =
            with_headings(state.create_logical_plan(statement).await.unwrap(), &state).unwrap();
        let frame = context.execute_logical_plan(plan).await.unwrap();
        let planned: Vec<_> = frame
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let stream = frame.execute_stream().await.unwrap();
        names = stream
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(planned, names);
        collect(stream).await.unwrap();
    }
    names
}

/// Checks the headings of a query in which `SHARDS` and `OTHERS` are the paths of two data sets.
async fn check_headings(query: &str, expect: &[&str]) {
    let (shards, others) = (testdata("shards/"), testdata("scalar.tfrecord"));
    let with_paths = |text: &str| text.replace("SHARDS", &shards).replace("OTHERS", &others);
    let expect: Vec<_> = expect.iter().map(|name| with_paths(name)).collect();
    let statements = with_paths(query);
    assert_eq!(
        headings(&statements.split(';').collect::<Vec<_>>()).await,
        expect,
        "{query}"
    );
}

#[tokio::test]
async fn expressions_are_named_without_the_path_of_their_table() {
    for (query, expect) in [
        ("SELECT avg(price) FROM 'SHARDS'", ["avg(price)"].as_slice()),
        (
            "SELECT label, count(*), avg(price) FROM 'SHARDS' GROUP BY label",
            &["label", "count(*)", "avg(price)"],
        ),
        (
            "SELECT max(\"SHARDS\".price) FROM 'SHARDS'",
            &["max(price)"],
        ),
        // Other names of functions, which DataFusion replaces after it has named the column.
        (
            "SELECT mean(price), covar(price, label) FROM 'SHARDS'",
            &["mean(price)", "covar(price,label)"],
        ),
        (
            "SELECT avg(price) FROM read_tfrecord('SHARDS')",
            &["avg(price)"],
        ),
        (
            "SELECT price + 1, -price FROM 'SHARDS'",
            &["price + Int64(1)", "(- price)"],
        ),
        (
            "SELECT upper(city), length(city) FROM 'SHARDS'",
            &["upper(city)", "length(city)"],
        ),
        (
            "SELECT length(substring(city, 2)) || 'x' FROM 'SHARDS'",
            &["length(substr(city, Int64(2))) || Utf8(\"x\")"],
        ),
        (
            "SELECT round(avg(price)) FROM 'SHARDS' HAVING avg(price) > 1 ORDER BY avg(price)",
            &["round(avg(price))"],
        ),
        (
            "SELECT CAST(max(label) AS DOUBLE) FROM 'SHARDS'",
            &["max(label)"],
        ),
        (
            "SELECT unnest(tags), unnest(embedding) + 1 FROM 'SHARDS'",
            &["UNNEST(tags)", "UNNEST(embedding) + Int64(1)"],
        ),
        (
            "SELECT label + 1, sum(price) FROM 'SHARDS' GROUP BY ROLLUP (label + 1)",
            &["label + Int64(1)", "sum(price)"],
        ),
        (
            "SELECT DISTINCT ON (label) label, price * 2 FROM 'SHARDS'",
            &["label", "price * Int64(2)"],
        ),
        (
            "SELECT row_number() OVER (ORDER BY price) FROM 'SHARDS'",
            &[
                "row_number() ORDER BY [price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            ],
        ),
        (
            "SELECT 1, (SELECT max(price) FROM 'SHARDS')",
            &["Int64(1)", "max(price)"],
        ),
        (
            "SELECT sum(price) FROM 'SHARDS' UNION ALL SELECT sum(label) FROM 'SHARDS'",
            &["sum(price)"],
        ),
        (
            "PREPARE q AS SELECT max(price) FROM 'SHARDS'; EXECUTE q",
            &["max(price)"],
        ),
    ] {
        check_headings(query, expect).await;
    }
}

#[tokio::test]
async fn names_that_the_user_has_chosen_stay() {
    for (query, expect) in [
        (
            "SELECT avg(t.price), max(price) AS \"SHARDS.price\" FROM 'SHARDS' t",
            ["avg(t.price)", "SHARDS.price"],
        ),
        (
            "SELECT avg(q.m), max(q.n) FROM (SELECT price AS m, 1 AS n FROM 'SHARDS') q",
            ["avg(q.m)", "max(q.n)"],
        ),
        (
            "WITH q AS (SELECT price FROM 'SHARDS') SELECT avg(price), count(*) FROM q",
            ["avg(q.price)", "count(*)"],
        ),
        (
            "CREATE EXTERNAL TABLE photos STORED AS TFRECORD LOCATION 'SHARDS'; SELECT avg(price), 1 AS n FROM photos",
            ["avg(photos.price)", "n"],
        ),
    ] {
        check_headings(query, &expect).await;
    }
}

#[tokio::test]
async fn paths_stay_where_two_headings_would_be_equal() {
    let query = "SELECT count(\"SHARDS\".label), count(\"OTHERS\".id), count(title) FROM 'SHARDS', 'OTHERS'";
    check_headings(query, &["count(label)", "count(id)", "count(title)"]).await;
    let query = "SELECT count(\"SHARDS\".price), count(\"SHARDStrain-00000-of-00004.tfrecord\".price), count(*) \
                 FROM 'SHARDS' CROSS JOIN 'SHARDStrain-00000-of-00004.tfrecord'";
    let expect = [
        "count(SHARDS.price)",
        "count(SHARDStrain-00000-of-00004.tfrecord.price)",
        "count(*)",
    ];
    check_headings(query, &expect).await;
    check_headings(
        "SELECT sum(price), 1 AS \"sum(price)\" FROM 'SHARDS'",
        &["sum(SHARDS.price)", "sum(price)"],
    )
    .await;
}

#[tokio::test]
async fn outer_queries_refer_to_columns_of_subqueries_by_the_names_of_datafusion() {
    let expect = [
        "avg(price)",
        "avg(price) + Int64(1)",
        "q.avg(price) + Int64(2)",
    ];
    let query = "SELECT *, \"avg(SHARDS.price)\" + 1 FROM (SELECT avg(price) FROM 'SHARDS')";
    check_headings(query, &expect[..2]).await;
    let query = "SELECT q.\"avg(SHARDS.price)\" + 2 FROM (SELECT avg(price) FROM 'SHARDS') q";
    check_headings(query, &expect[2..]).await;
}

#[tokio::test]
async fn tables_and_views_have_the_headings_as_columns() {
    for kind in ["TABLE", "VIEW"] {
        let query = format!(
            "CREATE {kind} t AS SELECT avg(price) FROM 'SHARDS'; SELECT \"avg(price)\" AS a, * FROM t"
        );
        check_headings(&query, &["a", "avg(price)"]).await;
    }
}

#[tokio::test]
async fn files_of_copy_have_the_headings_as_columns() {
    let folder = Folder::new();
    for ending in ["parquet", "arrow", "csv", "json", "tfrecord"] {
        let file = folder.name(&format!("x.{ending}"));
        let copy =
            format!("COPY (SELECT max(label) FROM 'SHARDS') TO '{file}'; SELECT * FROM '{file}'");
        check_headings(&copy, &["max(label)"]).await;
    }
}
