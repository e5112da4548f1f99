//! Sources of tables: files, folders, globs, shard specifications, pipes.

use datafusion::prelude::SessionContext;
use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};

use crate::common::*;

async fn counted(context: &SessionContext, source: &str) -> String {
    rows(context, &format!("SELECT count(*) FROM '{source}'"))
        .await
        .unwrap()
        .remove(0)
}

#[tokio::test]
async fn files_folders_and_globs() {
    let context = session();
    for (source, expect) in [
        ("shards/train-00001-of-00004.tfrecord", "50"),
        ("shards", "200"),
        ("shards/", "200"),
        ("shards/*", "200"),
        ("shards/train-0000[01]-*", "100"),
        ("shards/train-0000?-of-00004.tfrecord", "200"),
        ("sh{ards,eep}/*-0000{0,2,3}-*.tfrecord", "150"),
        ("**/train-00003*", "50"),
        ("tfds", "10"),
        ("tfds/mnist-train.tfrecord-*", "10"),
        ("tfds/mnist-train.tfrecord-00000-of-00002", "5"),
    ] {
        assert_eq!(
            counted(&context, &testdata(source)).await,
            expect,
            "{source}"
        );
    }
}

#[tokio::test]
async fn compressed_and_plain_in_one_glob() {
    let query = format!(
        "SELECT count(*), count(ints), count(DISTINCT input_file_name()) FROM '{}'",
        testdata("compressed/*-of-00003*")
    );
    let found = rows(&session(), &query).await.unwrap();
    assert!(
        found[0].starts_with("90 | ") && found[0].ends_with(" | 3"),
        "{found:?}"
    );
}

#[tokio::test]
async fn the_content_determines_the_format() {
    let folder = Folder::new();
    let record = || example(&[("x", Value::Ints(&[7]))]);
    let context = session();
    for name in [
        "no_extension",
        "odd.csv.tfrecord",
        "with space",
        "x.bin",
        "a[1]",
        "deep/er/part-0",
        "quo\"te",
    ] {
        folder.shard(name, [record()]);
        let query = format!("SELECT x FROM '{}'", folder.name(name));
        check(rows(&context, &query).await, ["7"]);
    }
    assert_eq!(counted(&context, &folder.name("")).await, "7");
}

#[tokio::test]
async fn new_files_are_seen_by_the_next_query() {
    let folder = Folder::new();
    let context = session();
    let source = folder.name("*");
    folder.shard("a", [example(&[("x", Value::Ints(&[1]))])]);
    assert_eq!(counted(&context, &source).await, "1");
    folder.shard("b", [example(&[("x", Value::Ints(&[2]))])]);
    assert_eq!(counted(&context, &source).await, "2");
}

#[tokio::test]
async fn any_session_can_read_tfrecord() {
    let context = SessionContext::new();
    let options = TfRecordOptions::default();
    context
        .register_tfrecord("t", &testdata("shards"), &options)
        .await
        .unwrap();
    check(rows(&context, "SELECT sum(label) FROM t").await, ["341"]);
    let frame = context
        .read_tfrecord(&testdata("scalar.tfrecord"), &options)
        .await
        .unwrap();
    assert!(frame.count().await.unwrap() > 1);
}

#[tokio::test]
async fn errors_of_missing_sources_name_the_source() {
    let folder = Folder::new();
    folder.file("notes.txt", b"hello");
    let context = session();
    let message = error(
        &context,
        &format!("SELECT * FROM '{}'", folder.name("*.tfrecord")),
    )
    .await;
    assert!(
        message.contains("*.tfrecord") && !message.contains("table"),
        "{message}"
    );
    let message = error(
        &context,
        &format!("SELECT * FROM '{}'", folder.path().display()),
    )
    .await;
    assert!(
        message.contains(&folder.path().display().to_string()),
        "{message}"
    );
    let message = error(
        &context,
        &format!("SELECT * FROM '{}'", folder.name("gone.tfrecord")),
    )
    .await;
    assert!(message.contains("gone.tfrecord"), "{message}");
    let message = error(&context, "SELECT * FROM 's3://bucket/x.tfrecord'").await;
    assert!(message.contains("s3://bucket/x.tfrecord"), "{message}");
}

#[tokio::test]
async fn a_missing_table_is_an_error() {
    let message = error(&session(), "SELECT * FROM no_such_table").await;
    assert!(
        message.contains("table 'datafusion.public.no_such_table' not found"),
        "{message}"
    );
}

#[tokio::test]
async fn tables_of_a_session_come_first() {
    let context = session();
    rows(&context, "CREATE TABLE mine AS SELECT 1 AS x")
        .await
        .unwrap();
    check(rows(&context, "SELECT x FROM mine").await, ["1"]);
    let query = format!(
        "CREATE VIEW v AS SELECT label FROM '{}'",
        testdata("shards")
    );
    rows(&context, &query).await.unwrap();
    check(rows(&context, "SELECT sum(label) FROM v").await, ["341"]);
}

/// A pipe is copied, so that the sample, the scan and the next query read the same data.
#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_read_once_and_queried_often() {
    let folder = Folder::new();
    let pipe = folder.name("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let shard = std::fs::read(testdata("shards/train-00000-of-00004.tfrecord")).unwrap();
    let to = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(to, shard).unwrap());
    let context = session();
    assert_eq!(counted(&context, &pipe).await, "50");
    writer.join().unwrap();
    let query = format!(
        "SELECT count(*) FROM '{pipe}' a JOIN '{pipe}' b ON a.city = b.city WHERE a.label < 0"
    );
    check(rows(&context, &query).await, ["0"]);
}

#[tokio::test]
async fn a_shard_spec_is_a_table_of_all_its_shards() {
    let context = session();
    let spec = testdata("shards/train@4");
    check(
        rows(&context, &format!("SELECT count(*) FROM '{spec}'")).await,
        ["200"],
    );
    let message = error(
        &context,
        &format!("SELECT count(*) FROM '{}'", testdata("shards/train@5")),
    )
    .await;
    assert!(
        message.contains("of 5 shards 5 are missing, the first train-00000-of-00005"),
        "{message}"
    );
    let message = error(&context, "SELECT count(*) FROM 'train@5'").await;
    assert!(message.contains("of 5 shards 5 are missing"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_source_that_blocks_does_not_block_others() {
    use std::{io::Write, sync::mpsc, thread, time::Duration};
    let folder = Folder::new();
    let (pipe, file) = (folder.name("pipe.tfrecord"), testdata("scalar.tfrecord"));
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let context = session();
    let count = |source: &str| {
        let (context, query) = (context.clone(), format!("SELECT count(*) FROM '{source}'"));
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            sender.send(runtime.block_on(rows(&context, &query)))
        });
        receiver
    };
    let waits = count(&pipe);
    // Opening succeeds after the other end has been opened for reading.
    let mut input = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let others = count(&file)
        .recv_timeout(Duration::from_secs(60))
        .unwrap()
        .unwrap();
    input.write_all(&std::fs::read(&file).unwrap()).unwrap();
    drop(input);
    assert_eq!(
        waits
            .recv_timeout(Duration::from_secs(60))
            .unwrap()
            .unwrap(),
        others
    );
}
