//! COPY and INSERT, encoded and decoded.

use std::path::Path;

use crate::common::{decoded, encoded, planned, rows, run, session, testdata, text};

/// Runs a statement on the other side of the codec. Returns the text of its error.
async fn written(statement: &str) -> Result<(), String> {
    let plan = planned(&session(), statement)
        .await
        .map_err(|error| error.to_string())?;
    let sent = decoded(&encoded(&plan).map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())?;
    assert_eq!(text(&sent), text(&plan), "{statement}");
    run(sent)
        .await
        .map(|_| ())
        .map_err(|error| error.to_string())
}

async fn read(source: &Path) -> Vec<String> {
    let query = format!("SELECT label, price, city FROM '{}'", source.display());
    rows(
        &run(planned(&session(), &query).await.unwrap())
            .await
            .unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_each_format_appear() {
    let folder = tempfile::tempdir().unwrap();
    let shards = testdata("shards/");
    let expected = read(Path::new(&shards)).await;
    for (name, options) in [
        ("a.tfrecord", ""),
        ("b.tfrecord.gz", ""),
        ("c/", "STORED AS TFRECORD OPTIONS (shards 3)"),
        ("d/", "STORED AS TFRECORD OPTIONS (lossy true)"),
        ("e.parquet", ""),
        ("f.csv", "OPTIONS ('format.has_header' 'true')"),
        ("g.json", ""),
        ("h/", "STORED AS PARQUET"),
    ] {
        let to = folder.path().join(name);
        let statement = format!(
            "COPY (SELECT label, price, city FROM '{shards}') TO '{}/{name}' {options}",
            folder.path().display()
        );
        written(&statement)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
        if !name.ends_with("csv") {
            assert_eq!(read(&to).await, expected, "{statement}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_files_are_replaced_only_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let shards = testdata("shards/");
    for name in ["a.tfrecord", "a.parquet"] {
        let copy = |options| {
            format!(
                "COPY (SELECT label FROM '{shards}') TO '{}/{name}' {options}",
                folder.path().display()
            )
        };
        written(&copy("")).await.unwrap();
        let error = written(&copy("")).await.unwrap_err();
        assert!(error.contains("exists"), "{error}");
        written(&copy("OPTIONS (overwrite true)")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_of_partitions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let shards = testdata("shards/");
    let to = folder.path().join("out");
    let copy = format!(
        "COPY (SELECT label, city FROM '{shards}') TO '{}/' STORED AS TFRECORD PARTITIONED BY (city)",
        to.display()
    );
    written(&copy).await.unwrap();
    let names = std::fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| name.starts_with("city=")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arrow_file_is_for_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let copy = format!(
        "COPY (SELECT label FROM '{}') TO '{}/a.arrow'",
        testdata("shards/"),
        folder.path().display()
    );
    assert!(written(&copy).await.is_err());
}
