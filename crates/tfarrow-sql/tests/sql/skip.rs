//! `on_error = skip`: corrupt and mismatched records are skipped, counted and reported; all others
//! are in the result.

use std::sync::Arc;

use tfarrow_codec::OnError;
use tfarrow_datafusion::{Notice, TfRecordOptions, TfRecordTableBuilder};

use crate::common::*;

/// Records 0 to 9: the data of 3 is corrupt, 5 has a list, and 7 has another kind.
fn folder() -> Folder {
    let folder = Folder::new();
    let record = |i: i64| match i {
        5 => example(&[("x", Value::Ints(&[1, 2]))]),
        7 => example(&[("x", Value::Floats(&[0.5]))]),
        _ => example(&[("x", Value::Ints(&[i])), ("y", Value::Ints(&[1]))]),
    };
    let path = folder.shard("a.tfrecord", (0..10).map(record));
    let mut bytes = std::fs::read(&path).unwrap();
    let frame = record(0).len() + 16;
    bytes[3 * frame + 12] ^= 1;
    std::fs::write(path, bytes).unwrap();
    folder
}

async fn skipped(query: &str, statements: &[&str]) -> (Vec<String>, Vec<Notice>) {
    let folder = folder();
    let (context, notices) = session_with_notices();
    rows(&context, "SET tfarrow.on_error = 'skip'")
        .await
        .unwrap();
    rows(&context, "SET tfarrow.sample_records = 1")
        .await
        .unwrap();
    for statement in statements {
        rows(&context, statement).await.unwrap();
    }
    let found = rows(&context, &query.replace("FILE", &folder.name("a.tfrecord")))
        .await
        .unwrap();
    let notices = notices.lock().unwrap().clone();
    (found, notices)
}

#[tokio::test]
async fn corrupt_and_mismatched_records_are_skipped_and_reported() {
    let (found, notices) = skipped("SELECT count(x), sum(x) FROM 'FILE'", &[]).await;
    assert_eq!(found, ["7 | 30"]);
    let [Notice::Skipped(skipped)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(
        (skipped.records, skipped.corrupt, skipped.ranges),
        (3, 1, 0)
    );
    let message = skipped.to_string();
    assert!(
        message.starts_with("skipped 3 records; the first: "),
        "{message}"
    );
    assert!(message.contains("a.tfrecord: record 3 (byte "), "{message}");
}

#[tokio::test]
async fn filters_skip_records_that_do_not_match_the_schema() {
    let (found, notices) = skipped("SELECT x FROM 'FILE' WHERE x > 1 ORDER BY x", &[]).await;
    assert_eq!(found, ["2", "4", "6", "8", "9"]);
    let [Notice::Skipped(skipped)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(skipped.records, 3);
    // Other columns are decoded only in records that the filter keeps, so that only mismatches in
    // these are counted.
    let (found, notices) = skipped_where("y = 1").await;
    assert_eq!(found, ["0", "1", "2", "4", "6", "8", "9"]);
    assert!(
        matches!(notices.as_slice(), [Notice::Skipped(skipped)] if skipped.records == 1),
        "{notices:?}"
    );
}

async fn skipped_where(filter: &str) -> (Vec<String>, Vec<Notice>) {
    skipped(
        &format!("SELECT x FROM 'FILE' WHERE {filter} ORDER BY x"),
        &[],
    )
    .await
}

#[tokio::test]
async fn records_that_do_not_fit_declared_columns_are_skipped() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i * 100])), ("y", Value::Ints(&[i]))]);
    let file = folder
        .shard("a.tfrecord", (0..4).map(record))
        .display()
        .to_string();
    let (context, notices) = session_with_notices();
    let create = format!(
        "CREATE EXTERNAL TABLE t (x TINYINT, y INT) STORED AS TFRECORD LOCATION '{file}' OPTIONS (on_error 'skip')"
    );
    rows(&context, &create).await.unwrap();
    check(
        rows(&context, "SELECT x, y FROM t").await,
        ["0 | 0", "100 | 1"],
    );
    assert!(
        matches!(&notices.lock().unwrap()[..], [Notice::Skipped(skipped)] if skipped.records == 2)
    );
    check(rows(&context, "SELECT y FROM t WHERE x > 0").await, ["1"]);
}

#[tokio::test]
async fn a_truncated_file_is_read_up_to_its_last_whole_record() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i]))]);
    let path = folder.shard("a.tfrecord", (0..4).map(record));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (context, notices) = session_with_notices();
    let query = format!(
        "SELECT x FROM read_tfrecord('{}', on_error => 'skip')",
        path.display()
    );
    check(rows(&context, &query).await, ["0", "1", "2"]);
    let notices = notices.lock().unwrap().clone();
    let [Notice::Skipped(skipped)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!((skipped.records, skipped.ranges), (0, 1));
    let expected = format!(
        "skipped {} bytes in 1 place that no record can be made of",
        skipped.bytes
    );
    assert!(skipped.to_string().starts_with(&expected), "{skipped}");
    assert_eq!(skipped.bytes as usize, bytes.len() / 4 - 1);
    let query = format!(
        "SELECT x FROM read_tfrecord('{}', partial_tail => 'ignore')",
        path.display()
    );
    let (context, notices) = session_with_notices();
    check(rows(&context, &query).await, ["0", "1", "2"]);
    assert!(notices.lock().unwrap().is_empty(), "nothing is lost");
}

#[tokio::test]
async fn reading_continues_after_a_corrupt_length() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i]))]);
    let path = folder.shard("a.tfrecord", (0..40).map(record));
    let mut bytes = std::fs::read(&path).unwrap();
    let frame = bytes.len() / 40;
    bytes[0] ^= 1;
    bytes[20 * frame + 9] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (context, notices) = session_with_notices();
    let query = format!(
        "SELECT count(*), sum(x) FROM read_tfrecord('{}', on_error => 'skip')",
        path.display()
    );
    check(
        rows(&context, &query).await,
        [&*format!("38 | {}", (0..40).sum::<i64>() - 20)],
    );
    let notices = notices.lock().unwrap().clone();
    let [Notice::Skipped(skipped)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!((skipped.ranges, skipped.bytes as usize), (2, 2 * frame));
}

#[tokio::test]
async fn a_corrupt_record_is_an_error_by_default() {
    let folder = folder();
    let message = error(
        &session(),
        &format!("SELECT x FROM '{}'", folder.name("a.tfrecord")),
    )
    .await;
    assert!(message.contains("record 3 (byte "), "{message}");
}

#[tokio::test]
async fn a_few_records_that_are_not_examples_are_skipped() {
    let folder = Folder::new();
    let record = |i: i64| match i {
        3 => b"\xff\xff\xff".to_vec(),
        // An Example with an unknown field.
        6 => [example(&[("x", Value::Ints(&[i]))]), b"\x2a\x01a".to_vec()].concat(),
        _ => example(&[("x", Value::Ints(&[i]))]),
    };
    folder.shard("a.tfrecord", (0..10).map(record));
    let query = format!(
        "SELECT sum(x), count(*) FROM '{}'",
        folder.name("a.tfrecord")
    );
    let (context, notices) = session_with_notices();
    assert!(
        rows(&context, &query)
            .await
            .unwrap_err()
            .to_string()
            .contains('x'),
        "all records are raw"
    );
    rows(&context, "SET tfarrow.on_error = 'skip'")
        .await
        .unwrap();
    assert_eq!(rows(&context, &query).await.unwrap(), ["36 | 8"]);
    let notices = notices.lock().unwrap().clone();
    assert!(
        matches!(notices.as_slice(), [.., Notice::Skipped(skipped)] if skipped.records == 2),
        "{notices:?}"
    );
}

#[tokio::test]
async fn a_count_skips_corrupt_records() {
    let (found, notices) = skipped("SELECT count(*) FROM 'FILE'", &[]).await;
    assert_eq!(found, ["9"]);
    assert!(
        matches!(notices.as_slice(), [Notice::Skipped(skipped)] if skipped.corrupt == 1),
        "{notices:?}"
    );
    let folder = folder();
    let count = |crc: &str| {
        format!(
            "SELECT count(*) FROM read_tfrecord('{}', sample_records => 1, verify_crc => '{crc}')",
            folder.name("a.tfrecord")
        )
    };
    let message = error(&session(), &count("always")).await;
    assert!(message.contains("record 3 (byte "), "{message}");
    check(rows(&session(), &count("never")).await, ["10"]);
}

#[tokio::test]
async fn a_limit_counts_only_valid_records() {
    let (found, _) = skipped("SELECT x FROM 'FILE' LIMIT 5", &[]).await;
    assert_eq!(found, ["0", "1", "2", "4", "6"]);
}

/// A feature has a column for each kind in the sample. A value of another kind is an error, and not
/// NULL.
#[tokio::test]
async fn a_value_of_a_kind_without_a_column_is_an_error() {
    let folder = Folder::new();
    let values = [
        Value::Bytes(&[b"a"]),
        Value::Ints(&[3]),
        Value::Floats(&[0.5]),
        Value::Ints(&[4]),
    ];
    folder.shard("a.tfrecord", values.map(|value| example(&[("x", value)])));
    for columns in ["*", "\"x/int64_list\""] {
        let query = format!("SELECT {columns} FROM '{}'", folder.name("a.tfrecord"));
        let (context, notices) = session_with_notices();
        rows(&context, "SET tfarrow.on_conflict = 'split'")
            .await
            .unwrap();
        rows(&context, "SET tfarrow.sample_records = 2")
            .await
            .unwrap();
        let message = error(&context, &query).await;
        assert!(
            message.contains("record 2 (byte ") && message.contains("found float_list"),
            "{message}"
        );
        rows(&context, "SET tfarrow.on_error = 'skip'")
            .await
            .unwrap();
        assert_eq!(rows(&context, &query).await.unwrap().len(), 3);
        let notices = notices.lock().unwrap().clone();
        assert!(
            matches!(notices.as_slice(), [Notice::Skipped(skipped)] if skipped.records == 1),
            "{notices:?}"
        );
    }
}

/// The stream of a scan ends with an error where a thread panics, and does not wait for its rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_receiver_of_notices_ends_the_query() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i]))]);
    let path = folder.shard("a.tfrecord", (0..50_000).map(record));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / (record(0).len() + 16) / 2 * (record(0).len() + 16);
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let options = TfRecordOptions {
        on_error: OnError::Skip,
        ..TfRecordOptions::default()
    };
    let table = TfRecordTableBuilder::new([path.display().to_string()])
        .with_options(options)
        .with_notices(Some(Arc::new(|_| panic!("the receiver"))))
        .build()
        .await
        .unwrap();
    let context = session();
    context.register_table("t", Arc::new(table)).unwrap();
    let found = error(&context, "SELECT sum(x) FROM t").await;
    assert!(found.contains("panicked"), "{found}");
}
