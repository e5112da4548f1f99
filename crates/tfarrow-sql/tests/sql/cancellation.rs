//! Cancelled queries that compute for a long time without an output end, and use no more CPU time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arrow_array::BooleanArray;
use arrow_schema::DataType;
use datafusion::{
    logical_expr::{ColumnarValue, Volatility, create_udf},
    prelude::SessionContext,
};
use tfarrow_sql::{Cancellation, SessionOptions, session_context};

use crate::common::*;

/// Self-joins of 40,000 records, which run for minutes.
const QUERIES: [&str; 8] = [
    "SELECT count(*) FROM u a, u b WHERE a.x + b.x < -a.y",
    "SELECT count(*) FROM u a CROSS JOIN u b CROSS JOIN u c",
    "SELECT count(*) FROM u a LEFT JOIN u b ON a.x * b.x < 0",
    "SELECT count(*) FROM u a WHERE EXISTS (SELECT 1 FROM u b WHERE a.x * b.x < 0)",
    "SELECT count(*) FROM u a JOIN u b ON a.y = b.y JOIN u c ON b.y = c.y",
    "SELECT max(a.x + b.x) FROM u a JOIN u b ON a.y = b.y AND a.x + b.x < 0",
    "SELECT count(*) FROM (SELECT unnest(range(0, 100)) FROM u a, u b)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE has_begun(n)) SELECT count(*) FROM r",
];

/// Time within which a cancelled query must end.
const PATIENCE: Duration = Duration::from_secs(1);

fn folder() -> Folder {
    let folder = Folder::new();
    folder.shard(
        "t",
        (0..40_000_i64).map(|x| example(&[("x", Value::Ints(&[x])), ("y", Value::Ints(&[1]))])),
    );
    folder
}

/// A function that signals that the query is running.
fn has_begun(context: &SessionContext) -> Arc<AtomicBool> {
    let begun = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&begun);
    let function = move |args: &[ColumnarValue]| {
        set.store(true, Ordering::SeqCst);
        let rows = args
            .iter()
            .map(|arg| {
                if let ColumnarValue::Array(a) = arg {
                    a.len()
                } else {
                    1
                }
            })
            .max();
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(
            vec![true; rows.unwrap_or(1)],
        ))))
    };
    let types = vec![DataType::Int64];
    context.register_udf(create_udf(
        "has_begun",
        types,
        DataType::Boolean,
        Volatility::Immutable,
        Arc::new(function),
    ));
    begun
}

#[test]
fn a_query_that_is_cancelled_ends_within_a_second() {
    let folder = folder();
    for query in QUERIES {
        for prefers_hash_join in [true, false] {
            // The runtime shuts down only when no thread of the query is running.
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .build()
                .unwrap();
            let cancellation = Cancellation::default();
            let options = SessionOptions {
                cancellation: cancellation.clone(),
                ..SessionOptions::default()
            };
            let context = session_context(options).unwrap();
            let begun = has_begun(&context);
            let task = runtime.spawn({
                let table = format!(
                    "CREATE VIEW u AS SELECT * FROM '{}' WHERE has_begun(x)",
                    folder.name("t")
                );
                async move {
                    let set =
                        format!("SET datafusion.optimizer.prefer_hash_join = {prefers_hash_join}");
                    rows(&context, &set).await.unwrap();
                    rows(&context, &table).await.unwrap();
                    rows(&context, query).await
                }
            });
            while !begun.load(Ordering::SeqCst) && !task.is_finished() {
                std::thread::yield_now();
            }
            cancellation.cancel();
            task.abort();
            let cancelled = Instant::now();
            let outcome = runtime.block_on(task);
            drop(runtime);
            let took = cancelled.elapsed();
            assert!(
                !matches!(outcome, Ok(Ok(_))),
                "{query} has ended before its cancellation"
            );
            assert!(took < PATIENCE, "{query} ran for another {took:?}");
        }
    }
}

/// Cancellation affects only queries that are already planned.
#[tokio::test]
async fn a_later_query_is_not_cancelled() {
    let cancellation = Cancellation::default();
    let options = SessionOptions {
        cancellation: cancellation.clone(),
        ..SessionOptions::default()
    };
    let (folder, context) = (folder(), session_context(options).unwrap());
    let query = format!(
        "SELECT count(*) FROM '{0}' a JOIN '{0}' b ON a.x = b.x",
        folder.name("t")
    );
    let before = context
        .sql(&query)
        .await
        .unwrap()
        .create_physical_plan()
        .await
        .unwrap();
    cancellation.cancel();
    check(rows(&context, &query).await, ["40000"]);
    let error = datafusion::physical_plan::collect(before, context.task_ctx())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("the query was cancelled"),
        "{error}"
    );
}
