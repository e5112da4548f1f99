//! `SUMMARIZE`, and the table function `summarize`.

use tfarrow_datafusion::{QueryLimits, statements};
use tfarrow_dataset::{InferOptions, resolve};
use tfarrow_stats::Statistics;

use crate::common::*;

/// The rows of a text of one statement, which is parsed as the program does.
async fn answer(text: &str) -> datafusion::error::Result<Vec<String>> {
    let context = session();
    let statement = statements(text, &context, QueryLimits::default())?.next().unwrap()?;
    let plan = context.state().statement_to_plan(statement).await?;
    table_rows(&context.execute_logical_plan(plan).await?.collect().await?)
}

#[tokio::test]
async fn the_figures_are_those_of_the_statistics() {
    for source in ["shards/", "ragged.tfrecord", "sequence.tfrecord", "states.tfrecord"] {
        let source = testdata(source);
        let shards = resolve(&[&source]).unwrap();
        let progress = |_, _| std::ops::ControlFlow::Continue(());
        let expect = Statistics::collect(&shards, &InferOptions::default(), &progress).unwrap().summarize();
        let expect = expect.features.iter().flat_map(|feature| {
            let rows = feature.kinds.iter().map(|kind| format!("{} | {} | {}", feature.name, kind.kind, kind.values));
            rows.chain(feature.kinds.is_empty().then(|| format!("{} |  | ", feature.name)))
        });
        let expect: Vec<_> = expect.map(|row| row.trim_end().to_owned()).collect();
        let query = format!("SELECT feature, kind, \"values\" FROM summarize('{source}')");
        let found: Vec<_> = answer(&query).await.unwrap().iter().map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(found, expect, "{source}");
    }
}

#[tokio::test]
async fn a_conversion_has_the_figures_of_its_source() {
    let (folder, source) = (Folder::new(), testdata("shards/"));
    let parquet = folder.name("all.parquet");
    answer(&format!("COPY (SELECT * FROM '{source}') TO '{parquet}'")).await.unwrap();
    let expect = answer(&format!("SUMMARIZE '{source}'")).await.unwrap();
    assert_eq!(answer(&format!("SUMMARIZE '{parquet}'")).await.unwrap(), expect);
}

#[tokio::test]
async fn the_statement_is_a_query_of_the_function() {
    let source = testdata("scalar.tfrecord");
    let called = answer(&format!("SELECT * FROM summarize('{source}')")).await.unwrap();
    assert_eq!(answer(&format!("-- all of it\n summarize '{source}'")).await.unwrap(), called);
    let shard = |number| testdata(&format!("shards/train-0000{number}-of-00004.tfrecord"));
    let two = format!("SELECT present FROM summarize('{}', '{}') WHERE feature = 'label'", shard(0), shard(1));
    check(answer(&two).await, ["100"]);
}

#[tokio::test]
async fn other_arguments_are_errors() {
    for (text, expect) in [
        ("SUMMARIZE SELECT 1", "SUMMARIZE takes names of files"),
        ("SUMMARIZE", "SUMMARIZE takes names of files"),
        ("SUMMARIZE t", "SUMMARIZE takes names of files"),
        ("SUMMARIZE 'nosuch/'", "nosuch"),
        ("SELECT * FROM summarize()", "needs a source"),
        ("SELECT * FROM summarize(layout => 'list')", "expected sources only"),
    ] {
        let error = answer(text).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
    check(answer("SELECT summarize FROM (SELECT 1 AS summarize)").await, ["1"]);
}
