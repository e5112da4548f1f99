//! `SHOW CREATE TABLE` of files, whose statement makes an equal table.

use datafusion::prelude::SessionContext;
use tfarrow_sql::{QueryLimits, plan_statement, statements};

use crate::common::*;

/// The batches of a statement.
async fn batches(context: &SessionContext, text: &str) -> Vec<arrow_array::RecordBatch> {
    let statement = statements(text, context, QueryLimits::default())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let plan = plan_statement(statement, &context.state()).await.unwrap();
    context
        .execute_logical_plan(plan)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap()
}

/// The definition of the table of a source.
async fn definition(context: &SessionContext, source: &str) -> String {
    use arrow_array::cast::AsArray;
    let rows = batches(context, &format!("SHOW CREATE TABLE '{source}'")).await;
    assert_eq!(
        rows[0]
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect::<Vec<_>>(),
        ["table_catalog", "table_schema", "table_name", "definition"]
    );
    rows[0].column(3).as_string::<i32>().value(0).to_owned()
}

/// The definition of a source makes a table of the same rows.
async fn makes_the_same_table(source: &str, name: &str) {
    let context = session();
    let created = definition(&context, source).await;
    assert!(
        created.starts_with(&format!("CREATE EXTERNAL TABLE \"{name}\"")),
        "{created}"
    );
    batches(&context, &created).await;
    let found = batches(&context, &format!("SELECT * FROM \"{name}\"")).await;
    let columns: Vec<_> = found[0]
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{:?}", field.name()))
        .collect();
    let expect = batches(
        &context,
        &format!("SELECT {} FROM '{source}'", columns.join(", ")),
    )
    .await;
    assert_eq!(
        table_rows(&found).unwrap(),
        table_rows(&expect).unwrap(),
        "{created}"
    );
}

#[tokio::test]
async fn the_definition_of_records_declares_their_columns() {
    for (source, name) in [
        ("scalar.tfrecord", "scalar"),
        ("ragged.tfrecord", "ragged"),
        ("sequence.tfrecord", "sequence"),
        ("raw.tfrecord", "raw"),
    ] {
        makes_the_same_table(&testdata(source), name).await;
    }
    let created = definition(&session(), &testdata("scalar.tfrecord")).await;
    assert!(
        created.contains("(\n  \"id\" BIGINT,\n") && created.contains("\"title\" VARCHAR"),
        "{created}"
    );
    // A column of another name than its feature is named in a comment.
    let created = definition(&session(), &testdata("sequence.tfrecord")).await;
    assert!(
        created.contains("\n  -- \"feature_lists/shared\": cannot be declared\n)"),
        "{created}"
    );
}

#[tokio::test]
async fn the_definition_has_folders_and_the_options_of_text() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for set in ["train", "test"] {
        std::fs::create_dir(folder.path().join(format!("set={set}"))).unwrap();
        std::fs::copy(
            testdata("scalar.tfrecord"),
            path(&format!("set={set}/a.tfrecord")),
        )
        .unwrap();
    }
    let context = session();
    let created = definition(&context, &format!("{}/", folder.path().display())).await;
    assert!(
        created.contains("PARTITIONED BY (\"set\") LOCATION"),
        "{created}"
    );
    batches(&context, &created).await;
    std::fs::write(path("it's.tsv"), "a\tb\n1\t2\n").unwrap();
    let source = path("it''s.tsv");
    let created = definition(&context, &source).await;
    assert!(
        created.contains("STORED AS CSV LOCATION") && created.contains("it''s.tsv'"),
        "{created}"
    );
    batches(&context, &created).await;
    check(rows(&context, "SELECT a, b FROM it").await, ["1 | 2"]);
}

#[tokio::test]
async fn json_functions_read_text() {
    let context = session();
    let query = r#"SELECT json_get_int(j, 'a', 0), j->'b'->>'c', json_length(j) FROM (SELECT '{"a": [7], "b": {"c": "x"}}' AS j)"#;
    check(rows(&context, query).await, ["7 | x | 2"]);
}
