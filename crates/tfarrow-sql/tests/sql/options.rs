//! `SET` applies to tables that are created later.

use crate::common::*;

#[tokio::test]
async fn the_layout_may_be_lists() {
    let context = session();
    let query = format!("SELECT id FROM '{}' LIMIT 1", testdata("scalar.tfrecord"));
    check(rows(&context, &query).await, ["-5"]);
    rows(&context, "SET tfarrow.layout = 'list'").await.unwrap();
    check(rows(&context, &query).await, ["[-5]"]);
    rows(&context, "SET tfarrow.layout = auto").await.unwrap();
    check(rows(&context, &query).await, ["-5"]);
}

#[tokio::test]
async fn the_record_type_may_be_declared() {
    let context = session();
    rows(&context, "SET tfarrow.record_type = 'raw'")
        .await
        .unwrap();
    let query = format!(
        "SELECT arrow_typeof(record) FROM '{}' LIMIT 1",
        testdata("scalar.tfrecord")
    );
    check(rows(&context, &query).await, ["BinaryView"]);
}

#[tokio::test]
async fn the_sample_may_be_all_records() {
    let folder = Folder::new();
    let record = |i: i64| {
        let mut features = vec![("x", Value::Ints(&[1]))];
        if i == 4999 {
            features.push(("late", Value::Floats(&[2.5])));
        }
        example(&features)
    };
    folder.shard("a", (0..5000).map(record));
    let context = session();
    let query = format!("SELECT sum(late) FROM '{}'", folder.name("a"));
    let found = context.sql(&query).await.unwrap_err();
    let hint = tfarrow_sql::explain_missing_column(&found, &context).unwrap();
    assert_eq!(
        hint,
        "the schema was inferred from a sample of 1000 records of 1 of 1 shard, without a feature \"late\"; \
         SET tfarrow.sample_records = 'all' reads every record"
    );
    rows(&context, "SET tfarrow.sample_records = 'all'")
        .await
        .unwrap();
    check(rows(&context, &query).await, ["2.5"]);
    let found = context
        .sql(&format!("SELECT later FROM '{}'", folder.name("a")))
        .await
        .unwrap_err();
    assert_eq!(tfarrow_sql::explain_missing_column(&found, &context), None);
    rows(&context, "SET tfarrow.sample_records = 5000")
        .await
        .unwrap();
    check(rows(&context, &query).await, ["2.5"]);
}

#[tokio::test]
async fn a_feature_without_any_kind_is_explained() {
    let folder = Folder::new();
    folder.shard(
        "a",
        [example(&[
            ("x", Value::Ints(&[1])),
            ("never", Value::Unset),
        ])],
    );
    let context = session();
    let found = context
        .sql(&format!("SELECT t.never FROM '{}' AS t", folder.name("a")))
        .await
        .unwrap_err();
    let hint = tfarrow_sql::explain_missing_column(&found, &context).unwrap();
    assert_eq!(
        hint,
        "feature \"never\" occurs in 1 record, but never with a kind, so it has no column"
    );
}

#[tokio::test]
async fn verification_of_data_crcs_can_be_disabled() {
    let context = session();
    let folder = damaged();
    let query = format!("SELECT count(x) FROM '{}'", folder.name("a"));
    // The sample is always verified, so that it must not contain the corrupt record.
    rows(&context, "SET tfarrow.sample_records = 1")
        .await
        .unwrap();
    assert!(error(&context, &query).await.contains("the data's CRC"));
    rows(&context, "SET tfarrow.verify_crc = 'never'")
        .await
        .unwrap();
    check(rows(&context, &query).await, ["3"]);
    rows(&context, "SET tfarrow.verify_crc = on_parse_failure")
        .await
        .unwrap();
    check(rows(&context, &query).await, ["3"]);
    let count = query.replace("count(x)", "count(*)");
    check(rows(&context, &count).await, ["3"]);
    rows(&context, "SET tfarrow.verify_crc = always")
        .await
        .unwrap();
    assert!(error(&context, &count).await.contains("the data's CRC"));
}

/// Three records, of which the last has a corrupt value.
fn damaged() -> Folder {
    let folder = Folder::new();
    let path = folder.shard("a", (1..4).map(|i| example(&[("x", Value::Ints(&[i]))])));
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 4;
    std::fs::write(path, bytes).unwrap();
    folder
}

#[tokio::test]
async fn unknown_options_and_values_are_errors() {
    let context = session();
    let message = error(&context, "SET tfarrow.layout = 'wide'").await;
    assert!(message.contains("expected one of: auto, list"), "{message}");
    let message = error(&context, "SET tfarrow.speed = 'high'").await;
    assert!(
        message.contains("there are: layout, record_type, proto, message, on_conflict"),
        "{message}"
    );
}

#[tokio::test]
async fn a_missing_column_of_another_relation_has_no_hint() {
    let folder = Folder::new();
    folder.shard("a", (0..2000).map(|_| example(&[("x", Value::Ints(&[1]))])));
    let (context, file) = (session(), folder.name("a"));
    rows(&context, &format!("SELECT x FROM '{file}' LIMIT 1"))
        .await
        .unwrap();
    let found = rows(&context, "SELECT nope FROM (VALUES (1)) v(a)")
        .await
        .unwrap_err();
    assert_eq!(tfarrow_sql::explain_missing_column(&found, &context), None);
    // With an alias, the table is found by its columns.
    let found = rows(&context, &format!("SELECT nope FROM '{file}' AS other"))
        .await
        .unwrap_err();
    let hint = tfarrow_sql::explain_missing_column(&found, &context).unwrap();
    assert!(hint.contains("without a feature \"nope\""), "{hint}");
}

#[tokio::test]
async fn of_tables_with_the_same_columns_the_named_one_is_explained() {
    let (context, folder) = (session(), Folder::new());
    for (name, records) in [("sampled", 2000), ("complete", 10), ("also_sampled", 2000)] {
        folder.shard(
            name,
            (0..records).map(|_| example(&[("x", Value::Ints(&[1]))])),
        );
        let create = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS TFRECORD LOCATION '{}'",
            folder.name(name)
        );
        rows(&context, &create).await.unwrap();
    }
    for (name, is_sampled) in [
        ("sampled", true),
        ("complete", false),
        ("also_sampled", true),
    ] {
        let found = rows(&context, &format!("SELECT nope FROM {name}"))
            .await
            .unwrap_err();
        let hint = tfarrow_sql::explain_missing_column(&found, &context);
        assert_eq!(hint.is_some(), is_sampled, "{name}: {hint:?}");
    }
}
