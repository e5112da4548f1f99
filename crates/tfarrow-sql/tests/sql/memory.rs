//! Queries over long records keep DataFusion's memory limit, and spill.

use std::{sync::Arc, time::Duration};

use datafusion::{
    execution::SessionStateBuilder,
    physical_plan::{ExecutionPlan, execute_stream},
    prelude::{SessionConfig, SessionContext},
};
use futures::StreamExt;
use tfarrow_datafusion::LongRows;
use tfarrow_sql::{SessionOptions, enable_sql, session_context};

use crate::common::*;

/// Bytes of an image, and the number of records, which together exceed the memory limit.
const IMAGE: usize = 100_000;
const RECORDS: usize = 4000;
const LIMIT: usize = 256 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_with_images_beside_it_spills() {
    let folder = Folder::new();
    let record = |i: usize| {
        let name = format!("name {:05}", (i * 7919) % RECORDS);
        let mut image = vec![0; IMAGE];
        image[..8].copy_from_slice(&(i as u64).to_le_bytes());
        example(&[
            ("image", Value::Bytes(&[&image])),
            ("name", Value::Bytes(&[name.as_bytes()])),
        ])
    };
    for shard in 0..4 {
        folder.shard(
            &format!("s-{shard}"),
            (0..RECORDS).filter(|i| i % 4 == shard).map(record),
        );
    }
    let config = SessionConfig::new().with_target_partitions(2);
    let context = session_context(SessionOptions {
        memory_limit: Some(LIMIT),
        config,
        ..SessionOptions::default()
    })
    .unwrap();
    let query = format!(
        "SELECT name, image FROM '{}' ORDER BY name",
        folder.name("s-*")
    );
    let frame = context.sql(&query).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    let mut batches = execute_stream(Arc::clone(&plan), context.task_ctx()).unwrap();
    let (mut rows, mut last) = (0, String::new());
    while let Some(batch) = batches.next().await {
        let batch = batch.unwrap();
        assert!(
            batch.get_array_memory_size() < LIMIT / 4,
            "a batch holds no more than its rows"
        );
        let names = datafusion::common::cast::as_string_view_array(batch.column(0)).unwrap();
        let images = datafusion::common::cast::as_binary_view_array(batch.column(1)).unwrap();
        for (name, image) in names.iter().zip(images.iter()) {
            let (name, image) = (name.unwrap(), image.unwrap());
            assert!(last.as_str() < name, "{last} comes before {name}");
            let i = u64::from_le_bytes(image[..8].try_into().unwrap()) as usize;
            assert_eq!(
                (name, image.len()),
                (format!("name {:05}", (i * 7919) % RECORDS).as_str(), IMAGE)
            );
            last = name.to_owned();
            rows += 1;
        }
    }
    assert_eq!(rows, RECORDS);
    assert!(spills(plan.as_ref()) > 0, "all fitted into memory");
}

/// Number of spills of the operators of a plan.
fn spills(plan: &dyn ExecutionPlan) -> usize {
    let own = plan
        .metrics()
        .and_then(|metrics| metrics.spill_count())
        .unwrap_or(0);
    own + plan
        .children()
        .into_iter()
        .map(|child| spills(child.as_ref()))
        .sum::<usize>()
}

#[tokio::test]
async fn only_long_rows_have_smaller_batches() {
    let folder = Folder::new();
    let record = |length: usize| {
        example(&[
            ("image", Value::Bytes(&[&vec![7; length]])),
            ("x", Value::Ints(&[1])),
        ])
    };
    folder.shard("long", (0..3).map(|_| record(50_000)));
    folder.shard("short", (0..3).map(|_| record(5)));
    let context = session_context(SessionOptions::default()).unwrap();
    for (columns, file, batch_size) in [
        ("image, x", "long", Some("26")),
        ("x", "long", None),
        ("image", "short", None),
        ("image", "*", Some("52")),
    ] {
        let query = format!(
            "EXPLAIN SELECT {columns} FROM '{}' ORDER BY x",
            folder.name(file)
        );
        let plan = rows(&context, &query).await.unwrap().join("\n");
        let found = plan
            .split("CompactBatchesExec: batch_size=")
            .nth(1)
            .and_then(|rest| rest.split('\n').next());
        assert_eq!(found, batch_size, "{columns} {file}: {plan}");
    }
    let declared =
        "CREATE EXTERNAL TABLE declared (image BYTEA, x INT) STORED AS TFRECORD LOCATION";
    rows(&context, &format!("{declared} '{}'", folder.name("long")))
        .await
        .unwrap();
    let plan = rows(&context, "EXPLAIN SELECT image FROM declared ORDER BY x")
        .await
        .unwrap()
        .join("\n");
    assert!(plan.contains("CompactBatchesExec: batch_size=26"), "{plan}");
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(LongRows));
    let taught = SessionContext::new_with_state(state.build());
    enable_sql(&taught).unwrap();
    assert!(enable_sql(&taught).is_err(), "TFRecord is already enabled");
    let query = format!(
        "EXPLAIN SELECT image FROM read_tfrecord('{}') ORDER BY x",
        folder.name("long")
    );
    let plan = rows(&taught, &query).await.unwrap().join("\n");
    assert!(plan.contains("CompactBatchesExec: batch_size=26"), "{plan}");
    let setting = "SET datafusion.execution.sort_spill_reservation_bytes = 0";
    rows(&context, setting).await.unwrap();
    let plan = rows(&context, "EXPLAIN VALUES (1)")
        .await
        .unwrap()
        .join("\n");
    assert!(!plan.contains("CompactBatchesExec"), "{plan}");
}

/// 2,000 different rows of 40 kB, and a number that seven of them have in common.
fn long_rows() -> Folder {
    let folder = Folder::new();
    let record = |i: i64| {
        let mut image = vec![7; 40_000];
        image[..8].copy_from_slice(&i.to_le_bytes());
        example(&[
            ("image", Value::Bytes(&[&image])),
            ("k", Value::Ints(&[i % 300])),
            ("i", Value::Ints(&[i])),
        ])
    };
    for shard in 0..4 {
        folder.shard(
            &format!("s/{shard}"),
            (0..2000).filter(|i| i % 4 == shard).map(record),
        );
    }
    folder
}

/// Under a memory limit, each run of a query returns its result or the error of exhausted memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_spills_answers_or_fails() {
    let folder = long_rows();
    let queries = [
        ("SELECT count(DISTINCT image) FROM t", "2000"),
        (
            "SELECT k, count(DISTINCT image) FROM t GROUP BY k ORDER BY k LIMIT 1",
            "0 | 7",
        ),
        (
            "SELECT k, octet_length(max(image)) FROM t GROUP BY k ORDER BY k LIMIT 1",
            "0 | 40000",
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT k, image FROM t)",
            "2000",
        ),
        (
            "SELECT count(*) FROM (SELECT image FROM t ORDER BY image DESC OFFSET 1)",
            "1999",
        ),
        (
            "SELECT count(*) FROM t a JOIN t b ON a.image = b.image",
            "2000",
        ),
        (
            "SELECT count(*) FROM (SELECT image, row_number() OVER (PARTITION BY k ORDER BY i) r FROM t) WHERE r = 1",
            "300",
        ),
    ];
    for (query, expected) in queries {
        let query = query.replace("FROM t", &format!("FROM '{}'", folder.name("s/")));
        let query = query.replace("JOIN t", &format!("JOIN '{}'", folder.name("s/")));
        for run in 0..12 {
            let limit = [8, 24, 48, 128][run % 4] << 20;
            let config = SessionConfig::new().with_target_partitions(2 + run % 3);
            let options = SessionOptions {
                memory_limit: Some(limit),
                config,
                ..SessionOptions::default()
            };
            let context = session_context(options).unwrap();
            let answer =
                tokio::time::timeout(Duration::from_secs(60), rows(&context, &query)).await;
            match answer.unwrap_or_else(|_| panic!("{query} hangs with {limit} bytes")) {
                Ok(rows) => assert_eq!(rows, [expected], "{query}"),
                Err(error) => {
                    let message = error.strip_backtrace();
                    assert!(
                        message.contains("Resources exhausted"),
                        "{query}: {message}"
                    );
                    assert!(
                        limit < 128 << 20 || query.contains("JOIN"),
                        "{query} with {limit} bytes: {message}"
                    );
                }
            }
        }
    }
}
