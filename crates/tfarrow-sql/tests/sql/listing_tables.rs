//! TFRecord in DataFusion's own listing tables has the rows of a table of this project.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::{datasource::listing::ListingOptions, error::Result, prelude::SessionContext};
use tfarrow_codec::{Limits, OnError};
use tfarrow_datafusion::{TfRecordFormat, TfRecordOptions};

use crate::common::*;

/// A session of DataFusion with the listing table `t` of a folder or a file.
async fn listing(path: &str, options: TfRecordOptions, keys: &[&str]) -> Result<SessionContext> {
    let context = SessionContext::new();
    let keys = keys
        .iter()
        .map(|key| ((*key).to_owned(), DataType::Utf8View))
        .collect();
    let listing = ListingOptions::new(Arc::new(TfRecordFormat::new(options)))
        .with_file_extension("")
        .with_table_partition_cols(keys);
    context
        .register_listing_table("t", path, listing, None, None)
        .await?;
    Ok(context)
}

#[tokio::test]
async fn listing_tables_have_the_same_columns_and_rows() {
    for name in [
        "scalar", "ragged", "states", "sequence", "numbers", "text", "raw", "names",
    ] {
        let path = testdata(&format!("{name}.tfrecord"));
        let context = listing(&path, TfRecordOptions::default(), &[])
            .await
            .unwrap();
        for query in [
            "DESCRIBE TABLE",
            "SELECT * FROM TABLE",
            "SELECT count(*) FROM TABLE",
        ] {
            let found = rows(&context, &query.replace("TABLE", "t")).await.unwrap();
            let own = rows(&session(), &query.replace("TABLE", &format!("'{path}'")))
                .await
                .unwrap();
            assert_eq!(found, own, "{name}: {query}");
        }
    }
}

#[tokio::test]
async fn folders_compressions_and_filters() {
    let folder = Folder::new();
    let record = |x: i64| example(&[("x", Value::Ints(&[x]))]);
    folder.shard("t/k=a/0.tfrecord", (0..100).map(record));
    folder.shard("t/k=b/1.tfrecord", (100..150).map(record));
    let gzip = std::fs::read(testdata("compressed/gzip_members.tfrecord.gz")).unwrap();
    std::fs::write(folder.name("zipped.tfrecord.gz"), gzip).unwrap();
    let path = format!("{}/", folder.name("t"));
    let context = listing(&path, TfRecordOptions::default(), &["k"])
        .await
        .unwrap();
    let query = "SELECT k, count(*), min(x), max(x) FROM t WHERE x >= 90 GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&context, query).await.unwrap(),
        ["a | 10 | 90 | 99", "b | 50 | 100 | 149"]
    );
    let pruned = rows(
        &context,
        "EXPLAIN SELECT x FROM t WHERE k = 'b' AND x > 120",
    )
    .await
    .unwrap()
    .join("\n");
    assert!(
        pruned.contains("1.tfrecord") && !pruned.contains("0.tfrecord"),
        "{pruned}"
    );
    assert!(pruned.contains("predicate=x@0 > 120"), "{pruned}");
    let zipped = folder.name("zipped.tfrecord.gz");
    let context = listing(&zipped, TfRecordOptions::default(), &[])
        .await
        .unwrap();
    let own = rows(&session(), &format!("SELECT count(*) FROM '{zipped}'"))
        .await
        .unwrap();
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await.unwrap(), own);
}

#[tokio::test]
async fn rows_are_inserted() {
    let folder = Folder::new();
    folder.shard("t/0.tfrecord", [example(&[("x", Value::Ints(&[1]))])]);
    let context = listing(
        &format!("{}/", folder.name("t")),
        TfRecordOptions::default(),
        &[],
    )
    .await
    .unwrap();
    rows(&context, "INSERT INTO t VALUES (2), (3)")
        .await
        .unwrap();
    assert_eq!(
        rows(&context, "SELECT x FROM t ORDER BY x").await.unwrap(),
        ["1", "2", "3"]
    );
    let own = format!("SELECT count(*) FROM '{}'", folder.name("t"));
    assert_eq!(rows(&session(), &own).await.unwrap(), ["3"]);
}

#[tokio::test]
async fn errors_name_the_object_and_corrupt_records_can_be_skipped() {
    let corrupt = testdata("corrupt/data.tfrecord");
    let error = listing(&corrupt, TfRecordOptions::default(), &[])
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("corrupt/data.tfrecord: record 1 (byte 72)"),
        "{error}"
    );
    let skip = TfRecordOptions {
        on_error: OnError::Skip,
        ..TfRecordOptions::default()
    };
    let context = listing(&corrupt, skip, &[]).await.unwrap();
    assert_eq!(
        rows(&context, "SELECT count(*) FROM t").await.unwrap(),
        ["2"]
    );
    let mixed = format!("{}/", testdata("mixed_kinds"));
    let error = listing(&mixed, TfRecordOptions::default(), &[])
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("kinds"), "{error}");
    let other = listing(
        &testdata("shards/train-00000-of-00004.json"),
        TfRecordOptions::default(),
        &[],
    )
    .await
    .err()
    .unwrap();
    assert!(
        other.to_string().contains("not TFRecord: starts like JSON"),
        "{other}"
    );
}

/// More names than the limits allow are no damage, which could be skipped.
#[tokio::test]
async fn names_above_the_limit_are_not_skipped() {
    let folder = Folder::new();
    folder.shard(
        "t.tfrecord",
        ["a", "b", "c"].map(|name| example(&[(name, Value::Ints(&[1]))])),
    );
    let options = TfRecordOptions {
        on_error: OnError::Skip,
        limits: Limits {
            features: 2,
            ..Limits::default()
        },
        ..TfRecordOptions::default()
    };
    let error = listing(&folder.name("t.tfrecord"), options, &[])
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("more names than the limits"), "{error}");
}
