//! Results of queries over each record type.

use crate::common::*;

#[tokio::test]
async fn an_average_over_a_glob() {
    let query = format!(
        "SELECT avg(label), sum(label), count(*) FROM '{}'",
        testdata("shards/*.tfrecord")
    );
    check(rows(&session(), &query).await, ["1.705 | 341 | 200"]);
}

#[tokio::test]
async fn groups_filters_and_joins() {
    let (context, shards) = (session(), testdata("shards"));
    let query =
        format!("SELECT city, count(*) FROM '{shards}' GROUP BY city ORDER BY 2 DESC, 1 LIMIT 2");
    check(rows(&context, &query).await, ["Porto | 47", "Lima | 42"]);
    let query = format!("SELECT count(*) FROM '{shards}' WHERE label >= 2 AND city = 'Lima'");
    let query2 = format!(
        "SELECT sum(CASE WHEN label >= 2 AND city = 'Lima' THEN 1 ELSE 0 END) FROM '{shards}'"
    );
    assert_eq!(
        rows(&context, &query).await.unwrap(),
        rows(&context, &query2).await.unwrap()
    );
    let query = format!(
        "SELECT count(*) FROM (SELECT DISTINCT city FROM '{shards}') a JOIN (SELECT DISTINCT city FROM '{shards}') b \
         ON a.city = b.city"
    );
    check(rows(&context, &query).await, ["5"]);
}

#[tokio::test]
async fn list_functions_apply_to_list_features() {
    let query = format!(
        "SELECT min(array_length(embedding)), max(array_length(embedding)), count(embedding[1]) FROM '{}'",
        testdata("shards")
    );
    check(rows(&session(), &query).await, ["8 | 8 | 200"]);
}

#[tokio::test]
async fn columns_are_in_the_order_of_the_query() {
    let query = format!(
        "SELECT title, id, id + 1 AS next FROM '{}' LIMIT 2",
        testdata("scalar.tfrecord")
    );
    check(
        rows(&session(), &query).await,
        ["amber 0 | -5 | -4", "birch 1 | 996 | 997"],
    );
}

#[tokio::test]
async fn all_columns_are_selected_and_sorted_by_name() {
    let context = session();
    let frame = context
        .sql(&format!("SELECT * FROM '{}'", testdata("scalar.tfrecord")))
        .await
        .unwrap();
    let names: Vec<_> = frame
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["id", "payload", "score", "title"]);
}

#[tokio::test]
async fn records_are_counted_without_a_column() {
    let context = session();
    check(
        rows(
            &context,
            &format!("SELECT count(*) FROM '{}'", testdata("raw.tfrecord")),
        )
        .await,
        ["5"],
    );
    check(
        rows(
            &context,
            &format!("SELECT count(*) FROM '{}'", testdata("empty.tfrecord")),
        )
        .await,
        ["0"],
    );
    check(
        rows(
            &context,
            &format!("SELECT 1 FROM '{}' LIMIT 2", testdata("scalar.tfrecord")),
        )
        .await,
        ["1", "1"],
    );
}

#[tokio::test]
async fn absent_and_unset_features_are_null_and_empty_features_are_not() {
    let folder = Folder::new();
    folder.shard(
        "a",
        [
            example(&[
                ("k", Value::Ints(&[1])),
                ("u", Value::Unset),
                ("never", Value::Unset),
            ]),
            example(&[("k", Value::Ints(&[]))]),
            example(&[("u", Value::Floats(&[0.5]))]),
        ],
    );
    let context = session();
    let name = folder.name("a");
    // A feature without a kind in one record is null there. One without a kind in all records has
    // no column, and neither has `_tfarrow_unset`.
    check(
        rows(&context, &format!("SELECT * FROM '{name}'")).await,
        ["[1] | ", "[] | ", " | 0.5"],
    );
    let query = format!("SELECT count(*), count(k), count(u) FROM '{name}'");
    check(rows(&context, &query).await, ["3 | 2 | 1"]);
    assert!(
        error(&context, &format!("SELECT _tfarrow_unset FROM '{name}'"))
            .await
            .contains("No field named")
    );
}

#[tokio::test]
async fn sequence_examples_have_lists_of_lists() {
    let context = session();
    let name = testdata("sequence.tfrecord");
    let query = format!(
        r#"SELECT id, token, frame, shared, "feature_lists/shared" FROM '{name}' ORDER BY id LIMIT 2"#
    );
    let expect = [
        "1 | [[a], [b, c]] | [[1.0, 2.0, 3.0], [4.0], []] | context | [[1], [2, 3]]",
        "2 | [[], [d]] | [] |  | ",
    ];
    let found = rows(&context, &query).await.unwrap();
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("1 | "), "{found:?} for {expect:?}");
    let query = format!("SELECT array_length(frame), frame[1][2] FROM '{name}' WHERE id = 1");
    check(rows(&context, &query).await, ["3 | 2.0"]);
}

#[tokio::test]
async fn records_of_other_types_have_one_column() {
    let folder = Folder::new();
    folder.shard(
        "raw",
        [b"one".to_vec(), b"\xff\xff\xff".to_vec(), Vec::new()],
    );
    let query = format!(
        "SELECT encode(record, 'hex') AS h FROM '{}' ORDER BY h",
        folder.name("raw")
    );
    check(rows(&session(), &query).await, ["", "6f6e65", "ffffff"]);
}

#[tokio::test]
async fn awkward_names_need_double_quotes() {
    let context = session();
    let name = testdata("names.tfrecord");
    let query = format!(
        r#"SELECT "Capital", capital, "a.b", "a/b", "with space", "ünï", "Quote""d", "", "feature_lists/x", record
           FROM '{name}' LIMIT 1"#
    );
    let expect = "Capital=0 | 0 | a.b=0 | 0 | with space=0 | 0.0 | 0.0 | 0.0 | 0 | 0";
    check(rows(&context, &query).await, [expect]);
    let query = format!(r#"SELECT "features/_tfarrow_unset", "_file" FROM '{name}' LIMIT 1"#);
    check(rows(&context, &query).await, ["_tfarrow_unset=0 | 0.0"]);
}

#[tokio::test]
async fn thousands_of_features_are_columns() {
    let folder = Folder::new();
    let names: Vec<_> = (0..3000).map(|i| format!("f{i:04}")).collect();
    let record = |base: i64| {
        let values: Vec<_> = (0..3000).map(|i| [base + i]).collect();
        let features: Vec<_> = names
            .iter()
            .zip(&values)
            .map(|(n, v)| (n.as_str(), Value::Ints(v)))
            .collect();
        example(&features)
    };
    folder.shard("wide", (0..20).map(record));
    let query = format!(
        "SELECT sum(f0000), sum(f2999) FROM '{}'",
        folder.name("wide")
    );
    check(rows(&session(), &query).await, ["190 | 60170"]);
}

#[tokio::test]
async fn batches_of_one_file_are_in_its_order() {
    let folder = Folder::new();
    let record = |i: i64| {
        example(&[
            ("i", Value::Ints(&[i])),
            ("b", Value::Bytes(&[&[b'x'; 200]])),
        ])
    };
    folder.shard("long", (0..60_000).map(record));
    let name = folder.name("long");
    let batches = session()
        .sql(&format!("SELECT i FROM '{name}'"))
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let values = batches.iter().flat_map(|batch| {
        let column = batch
            .column(0)
            .as_any()
            .downcast_ref::<arrow_array::Int64Array>()
            .unwrap();
        column.values().to_vec()
    });
    assert!(batches.len() > 5 && batches.iter().all(|batch| batch.num_rows() <= 8192));
    assert!(values.eq(0..60_000));
}

#[tokio::test]
async fn a_limit_takes_the_first_rows() {
    let folder = Folder::new();
    for shard in 0..4 {
        let record = |i: i64| example(&[("i", Value::Ints(&[shard * 1000 + i]))]);
        folder.shard(&format!("s-{shard}"), (0..1000).map(record));
    }
    let context = session();
    let query = format!("SELECT i FROM '{}' LIMIT 3", folder.name("s-*"));
    check(rows(&context, &query).await, ["0", "1", "2"]);
    let query = format!(
        "SELECT count(*) FROM (SELECT i FROM '{}' LIMIT 2500)",
        folder.name("s-*")
    );
    check(rows(&context, &query).await, ["2500"]);
    let query = format!("SELECT i FROM '{}' LIMIT 1 OFFSET 1001", folder.name("s-*"));
    check(rows(&context, &query).await, ["1001"]);
}

#[tokio::test]
async fn input_file_name_is_the_file_of_each_row() {
    let query = format!(
        "SELECT count(*) FROM (SELECT DISTINCT input_file_name() f FROM '{}') WHERE f LIKE '%train-0000_-of-00004%'",
        testdata("shards")
    );
    check(rows(&session(), &query).await, ["4"]);
}
