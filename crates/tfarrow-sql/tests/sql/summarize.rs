//! `SUMMARIZE`, and the table function `summarize`.

use tfarrow_dataset::resolve;
use tfarrow_scan::InferOptions;
use tfarrow_sql::{QueryLimits, statements};
use tfarrow_stats::Statistics;

use crate::common::*;

/// The rows of a text of one statement, which is parsed as the program does.
async fn answer(text: &str) -> datafusion::error::Result<Vec<String>> {
    let context = session();
    let statement = statements(text, &context, QueryLimits::default())?
        .next()
        .unwrap()?;
    let plan = context.state().statement_to_plan(statement).await?;
    table_rows(&context.execute_logical_plan(plan).await?.collect().await?)
}

#[tokio::test]
async fn the_figures_are_those_of_the_statistics() {
    for source in [
        "shards/",
        "ragged.tfrecord",
        "sequence.tfrecord",
        "states.tfrecord",
    ] {
        let source = testdata(source);
        let shards = resolve(&[&source]).unwrap();
        let progress = |_, _| std::ops::ControlFlow::Continue(());
        let expect = Statistics::collect(&shards, &InferOptions::default(), &progress)
            .unwrap()
            .summarize();
        let expect = expect.features.iter().flat_map(|feature| {
            let rows = feature
                .kinds
                .iter()
                .map(|kind| format!("{} | {} | {}", feature.name, kind.kind, kind.values));
            rows.chain(
                feature
                    .kinds
                    .is_empty()
                    .then(|| format!("{} |  | ", feature.name)),
            )
        });
        let expect: Vec<_> = expect.map(|row| row.trim_end().to_owned()).collect();
        let query = format!("SELECT feature, kind, \"values\" FROM summarize('{source}')");
        let found: Vec<_> = answer(&query)
            .await
            .unwrap()
            .iter()
            .map(|row| row.trim_end().to_owned())
            .collect();
        assert_eq!(found, expect, "{source}");
    }
}

#[tokio::test]
async fn a_conversion_has_the_figures_of_its_source() {
    let (folder, source) = (Folder::new(), testdata("shards/"));
    let parquet = folder.name("all.parquet");
    answer(&format!("COPY (SELECT * FROM '{source}') TO '{parquet}'"))
        .await
        .unwrap();
    let expect = answer(&format!("SUMMARIZE '{source}'")).await.unwrap();
    assert_eq!(
        answer(&format!("SUMMARIZE '{parquet}'")).await.unwrap(),
        expect
    );
}

/// Unset features are a part of those that are present.
#[tokio::test]
async fn records_with_and_without_a_feature_are_all_records() {
    let query = "SELECT DISTINCT present + missing FROM summarize";
    check(
        answer(&format!("{query}('{}')", testdata("states.tfrecord"))).await,
        ["13"],
    );
    let unset = format!(
        "SELECT present, missing, unset FROM summarize('{}') WHERE feature = 'b'",
        testdata("states.tfrecord")
    );
    check(answer(&unset).await, ["8 | 5 | 2"]);
}

/// Records whose features have no statistics are summarized by the columns of their table.
#[tokio::test]
async fn other_records_are_summarized_by_their_columns() {
    let lists = testdata("example_list/queries.tfrecord");
    let figures = "SELECT feature, present, missing FROM summarize";
    let rows = answer(&format!("{figures}('{lists}')")).await.unwrap();
    assert_eq!(
        rows,
        answer(&format!("{figures}((SELECT * FROM '{lists}'))"))
            .await
            .unwrap()
    );
    assert!(!rows.is_empty());
    let messages = format!(
        "(SELECT name, radius FROM read_tfrecord('{}', proto => '{}', message => 'tfarrow.test.Shape'))",
        testdata("message/shapes.tfrecord"),
        testdata("message/shapes.desc")
    );
    let features = answer(&format!("SELECT feature FROM summarize({messages})")).await;
    check(features, ["name", "radius"]);
    let raw = format!(
        "SELECT feature, kind, present FROM summarize('{}')",
        testdata("raw.tfrecord")
    );
    let rows = answer(&raw).await.unwrap();
    assert!(
        matches!(&rows[..], [row] if row.starts_with("record | bytes_list | ")),
        "{rows:?}"
    );
}

#[tokio::test]
async fn two_formats_in_a_folder_are_an_error() {
    let folder = Folder::new();
    for name in ["a.tfrecord", "a.parquet"] {
        answer(&format!("COPY (SELECT 1 AS a) TO '{}'", folder.name(name)))
            .await
            .unwrap();
    }
    let error = answer(&format!("SUMMARIZE '{}'", folder.name("")))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("one table cannot hold both"), "{error}");
}

#[tokio::test]
async fn the_statement_is_a_query_of_the_function() {
    let source = testdata("scalar.tfrecord");
    let called = answer(&format!("SELECT * FROM summarize('{source}')"))
        .await
        .unwrap();
    assert_eq!(
        answer(&format!("-- all of it\n summarize '{source}'"))
            .await
            .unwrap(),
        called
    );
    let shard = |number| testdata(&format!("shards/train-0000{number}-of-00004.tfrecord"));
    let two = format!(
        "SELECT present FROM summarize('{}', '{}') WHERE feature = 'label'",
        shard(0),
        shard(1)
    );
    check(answer(&two).await, ["100"]);
}

#[tokio::test]
async fn a_query_has_the_figures_of_its_result_as_a_file() {
    let source = testdata("shards/");
    let expect = answer(&format!("SUMMARIZE '{source}'")).await.unwrap();
    for query in [
        format!("SUMMARIZE SELECT * FROM '{source}'"),
        format!("SUMMARIZE (SELECT * FROM '{source}')"),
        format!("SUMMARIZE read_tfrecord('{source}')"),
        format!("SUMMARIZE WITH t AS (SELECT * FROM '{source}') SELECT * FROM t"),
        format!("SUMMARIZE FROM '{source}'"),
    ] {
        assert_eq!(answer(&query).await.unwrap(), expect, "{query}");
    }
    for two in [
        "(SELECT 1 AS a) UNION ALL (SELECT 2)",
        "((SELECT 1 AS a UNION ALL SELECT 2))",
    ] {
        let rows = answer(&format!("SUMMARIZE {two}")).await.unwrap();
        assert!(
            rows[0].starts_with("a | int64_list | 2 | 0 | 0 | 2 |"),
            "{two}: {rows:?}"
        );
    }
    let rows = answer("SUMMARIZE VALUES (1), (2)").await.unwrap();
    assert!(
        rows[0].starts_with("column1 | int64_list | 2 |"),
        "{rows:?}"
    );
    let half = format!("SUMMARIZE SELECT label * 2 AS twice FROM '{source}' WHERE label = 1");
    let half = answer(&half).await.unwrap();
    assert_eq!(half.len(), 1);
    assert!(half[0].starts_with("twice | int64_list | "), "{half:?}");
    let projected = format!(
        "SELECT feature, max FROM summarize((SELECT label FROM '{source}')) WHERE present > 0"
    );
    check(answer(&projected).await, ["label | 3.0"]);
    check(
        answer("SELECT feature, present FROM summarize((SELECT 1 AS a WHERE false))").await,
        [],
    );
}

#[tokio::test]
async fn columns_that_no_record_can_hold_are_a_notice() {
    let notices = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let gathered = std::sync::Arc::clone(&notices);
    let on_notice: tfarrow_datafusion::OnNotice =
        std::sync::Arc::new(move |notice: &tfarrow_datafusion::Notice| {
            gathered.lock().unwrap().push(notice.to_string())
        });
    let options = tfarrow_sql::SessionOptions {
        on_notice: Some(on_notice),
        ..Default::default()
    };
    let context = tfarrow_sql::session_context(options).unwrap();
    let query = "SELECT feature FROM summarize((SELECT 1 AS a, named_struct('b', 2) AS s))";
    let rows = context.sql(query).await.unwrap().collect().await.unwrap();
    check(table_rows(&rows), ["a"]);
    let notices = notices.lock().unwrap();
    assert!(
        matches!(&notices[..], [notice] if notice.contains("left out") && notice.contains('s')),
        "{notices:?}"
    );
}

#[tokio::test]
async fn other_arguments_are_errors() {
    for (text, expect) in [
        ("SUMMARIZE", "SUMMARIZE takes names of files"),
        ("SUMMARIZE 1", "SUMMARIZE takes names of files"),
        ("SUMMARIZE nosuch", "nosuch"),
        ("SUMMARIZE SELECT nosuch", "nosuch"),
        (
            "SELECT * FROM summarize((SELECT 1), 'x')",
            "expected a constant",
        ),
        ("SUMMARIZE 'nosuch/'", "nosuch"),
        ("SELECT * FROM summarize()", "needs a source"),
        (
            "SELECT * FROM summarize(layout => 'list')",
            "expected sources or one query",
        ),
    ] {
        let error = answer(text).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
    check(
        answer("SELECT summarize FROM (SELECT 1 AS summarize)").await,
        ["1"],
    );
}
