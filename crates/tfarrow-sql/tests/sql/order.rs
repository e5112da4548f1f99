//! The order of rows in results and in written files.

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow_array::BooleanArray;
use arrow_schema::DataType;
use datafusion::{
    logical_expr::{ColumnarValue, Volatility, create_udf},
    prelude::SessionContext,
};
use tfarrow_dataset::{Compression, ShardWriter};

use crate::common::*;

/// Records that count from 0 in shards of different sizes, and are long enough that a chunk has a
/// few hundred.
fn folder() -> Folder {
    let folder = Folder::new();
    let record = |x: i64| {
        let text = format!("{x:04000}");
        let list: Vec<_> = (0..x % 3).map(|k| x * 10 + k).collect();
        let (x, text) = ([x], [text.as_bytes()]);
        example(&[
            ("x", Value::Ints(&x)),
            ("list", Value::Ints(&list)),
            ("text", Value::Bytes(&text)),
        ])
    };
    let mut next = 0;
    for (shard, count) in [700, 1, 0, 3000, 5, 40, 900, 2000].into_iter().enumerate() {
        let path = folder.shard(&format!("s/{shard}"), (next..next + count).map(record));
        next += count;
        if shard % 2 == 0 {
            let mut gzip = ShardWriter::new(Vec::new(), Compression::Gzip);
            gzip.write_all(&std::fs::read(&path).unwrap()).unwrap();
            std::fs::write(&path, gzip.finish().unwrap()).unwrap();
        }
    }
    folder
}

const RECORDS: i64 = 6646;

async fn session_of(partitions: usize) -> SessionContext {
    let context = session();
    let set = format!("SET datafusion.execution.target_partitions = {partitions}");
    context.sql(&set).await.unwrap();
    context
}

async fn numbers(context: &SessionContext, query: &str) -> Vec<i64> {
    rows(context, query)
        .await
        .unwrap()
        .iter()
        .map(|row| row.parse().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_in_the_order_of_the_files() {
    let folder = folder();
    let t = format!("'{}'", folder.name("s/"));
    let all = || 0..RECORDS;
    let expected = [
        ("SELECT x FROM t", all().collect::<Vec<_>>()),
        (
            "SELECT x FROM t WHERE x % 3 = 1",
            all().filter(|x| x % 3 == 1).collect(),
        ),
        (
            "SELECT x + 1 FROM t WHERE x > 500 AND random() < 2",
            all().filter(|x| *x > 500).map(|x| x + 1).collect(),
        ),
        (
            "SELECT x FROM (SELECT x, text FROM t) WHERE text > '0'",
            all().collect(),
        ),
        ("SELECT x FROM t OFFSET 5000", all().skip(5000).collect()),
        (
            "SELECT x FROM t LIMIT 4000 OFFSET 10",
            all().skip(10).take(4000).collect(),
        ),
        (
            "SELECT x FROM t WHERE x > 20 LIMIT 3000",
            all().skip(21).take(3000).collect(),
        ),
        (
            "SELECT unnest(list) FROM t",
            all()
                .flat_map(|x| (0..x % 3).map(move |k| x * 10 + k))
                .collect(),
        ),
        (
            "SELECT x FROM t WHERE x > (SELECT min(x) + 99 FROM t)",
            all().skip(100).collect(),
        ),
        (
            "WITH c AS (SELECT x FROM t) SELECT x FROM c",
            all().collect(),
        ),
    ];
    for partitions in [1, 2, 5] {
        let context = session_of(partitions).await;
        for (query, expected) in &expected {
            let query = query.replace("FROM t", &format!("FROM {t}"));
            for _ in 0..3 {
                assert_eq!(
                    &numbers(&context, &query).await,
                    expected,
                    "{query} with {partitions} partitions"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_parquet_come_in_the_order_of_the_files() {
    let (folder, context) = (folder(), session_of(4).await);
    let copy = format!(
        "COPY (SELECT x, text FROM '{}') TO '{}'",
        folder.name("s/"),
        folder.name("p/a.parquet")
    );
    rows(&context, &copy).await.unwrap();
    // DataFusion splits files into byte ranges of this minimum size.
    for setting in [
        "optimizer.repartition_file_min_size = 1",
        "execution.parquet.max_row_group_size = 500",
    ] {
        rows(&context, &format!("SET datafusion.{setting}"))
            .await
            .unwrap();
    }
    let copy = copy.replace("a.parquet", "b.parquet");
    rows(&context, &copy).await.unwrap();
    let twice: Vec<_> = (0..RECORDS).chain(0..RECORDS).collect();
    for _ in 0..3 {
        assert_eq!(
            numbers(&context, &format!("SELECT x FROM '{}'", folder.name("p/"))).await,
            twice
        );
    }
}

/// With `preserve_order = false`, files are read as several partitions.
#[tokio::test]
async fn the_order_can_be_disabled() {
    let (folder, context) = (folder(), session_of(2).await);
    let plan = async |query: String| rows(&context, &query).await.unwrap().join("\n");
    let query = format!("EXPLAIN SELECT x FROM '{}'", folder.name("s/"));
    assert!(plan(query.clone()).await.contains("file_groups={1 group:"));
    rows(&context, "SET tfarrow.preserve_order = false")
        .await
        .unwrap();
    assert!(plan(query.clone()).await.contains("file_groups={2 groups:"));
    let of_table = format!(
        "EXPLAIN SELECT x FROM read_tfrecord('{}', preserve_order => true)",
        folder.name("s/")
    );
    assert!(plan(of_table).await.contains("file_groups={1 group:"));
    let copy = format!(
        "EXPLAIN COPY (SELECT * FROM t) TO '{}' STORED AS TFRECORD",
        folder.name("out/")
    );
    rows(&context, "SET tfarrow.preserve_order = true")
        .await
        .unwrap();
    let table = format!(
        "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{}'",
        folder.name("s/")
    );
    rows(&context, &table).await.unwrap();
    assert!(plan(copy.clone()).await.contains("file_groups={1 group:"));
    assert!(
        plan(copy + " OPTIONS (preserve_order false)")
            .await
            .contains("file_groups={2 groups:")
    );
}

/// Inputs of groups, sorts and joins need no order, and are read as several partitions.
#[tokio::test]
async fn only_queries_that_show_the_order_of_files_preserve_it() {
    let (folder, context) = (folder(), session_of(2).await);
    let t = format!("'{}'", folder.name("s/"));
    for query in [
        "SELECT max(x) FROM t",
        "SELECT x FROM t ORDER BY text",
        "SELECT DISTINCT x FROM t",
    ] {
        let query = format!("EXPLAIN {}", query.replace("FROM t", &format!("FROM {t}")));
        let plan = rows(&context, &query).await.unwrap().join("\n");
        assert!(plan.contains("file_groups={2 groups:"), "{plan}");
    }
}

/// One thread is fastest for a few rows; a million rows are read as several partitions.
#[tokio::test]
async fn a_limit_of_many_rows_is_read_by_all_partitions() {
    let (folder, context) = (folder(), session_of(2).await);
    for (limit, groups) in [(10, "{1 group:"), (1_000_000, "{2 groups:")] {
        let query = format!(
            "EXPLAIN SELECT max(x) FROM (SELECT x FROM '{}' LIMIT {limit})",
            folder.name("s/")
        );
        let plan = rows(&context, &query).await.unwrap().join("\n");
        assert!(plan.contains(&format!("file_groups={groups}")), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_has_no_more_threads_than_target_partitions() {
    let folder = folder();
    for partitions in [1, 2] {
        let context = session_of(partitions).await;
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(0)));
        let (running, seen) = (Arc::clone(&now), Arc::clone(&most));
        let busy = move |args: &[ColumnarValue]| {
            let mut seen = seen.lock().unwrap();
            *seen = (running.fetch_add(1, Ordering::SeqCst) + 1).max(*seen);
            drop(seen);
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
            // Long enough to overlap with another thread.
            (0..50_000).for_each(|i| drop(std::hint::black_box(vec![i])));
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(
                vec![true; rows.unwrap_or(1)],
            ))))
        };
        let types = vec![DataType::Int64];
        context.register_udf(create_udf(
            "busy",
            types,
            DataType::Boolean,
            Volatility::Immutable,
            Arc::new(busy),
        ));
        for query in [
            "SELECT count(*) FROM t WHERE busy(x)",
            "SELECT x FROM t WHERE busy(x)",
        ] {
            let query = query.replace("FROM t", &format!("FROM '{}'", folder.name("s/3")));
            rows(&context, &query).await.unwrap();
        }
        let most = *most.lock().unwrap();
        assert!(
            (1..=partitions).contains(&most),
            "{most} threads for {partitions} partitions"
        );
    }
}

/// COPY writes the same bytes in every run, with any number of threads and any batch size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_copy_writes_are_reproducible() {
    let folder = folder();
    let mut first: Option<Vec<Vec<u8>>> = None;
    for run in 0..8 {
        let context = session_of(1 + run % 4).await;
        rows(
            &context,
            &format!(
                "SET datafusion.execution.batch_size = {}",
                [8192, 100][run % 2]
            ),
        )
        .await
        .unwrap();
        let to = folder.name(&format!("out{run}/a.tfrecord.gz"));
        let source = folder.name("s/");
        let copy = format!(
            "COPY (SELECT x, text FROM '{source}' WHERE x % 5 < 4) TO '{to}' OPTIONS (shards 3)"
        );
        rows(&context, &copy).await.unwrap();
        let name = |shard| folder.name(&format!("out{run}/a-{shard:05}-of-00003.tfrecord.gz"));
        let files: Vec<_> = (0..3)
            .map(|shard| std::fs::read(name(shard)).unwrap())
            .collect();
        assert_eq!(
            &files,
            first.get_or_insert_with(|| files.clone()),
            "run {run}"
        );
        // Rows are dealt out to the shards one by one.
        let found = numbers(&context, &format!("SELECT x FROM '{}' LIMIT 4", name(1))).await;
        assert_eq!(found, [1, 5, 8, 12]);
    }
}

/// The share of the first half of the numbers in each quarter of a list.
fn shares(numbers: &[i64], of: i64) -> Vec<f64> {
    let quarters = numbers.chunks(numbers.len().div_ceil(4));
    quarters
        .map(|quarter| {
            quarter.iter().filter(|x| **x < of / 2).count() as f64 / quarter.len() as f64
        })
        .collect()
}

/// A sort evaluates its keys in each partition, and each merge evaluates them again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_keys_have_one_value_for_a_row() {
    const COUNT: i64 = 40_000;
    let folder = Folder::new();
    for shard in 0..4 {
        let numbers = shard * COUNT / 4..(shard + 1) * COUNT / 4;
        folder.shard(
            &format!("s/{shard}.tfrecord"),
            numbers.map(|x| example(&[("x", Value::Ints(&[x]))])),
        );
    }
    let context = session_of(4).await;
    let parquet = folder.name("t.parquet");
    rows(
        &context,
        &format!(
            "COPY (SELECT * FROM '{}') TO '{parquet}'",
            folder.name("s/")
        ),
    )
    .await
    .unwrap();
    for table in [folder.name("s/"), parquet] {
        for query in [
            "SELECT x FROM t ORDER BY random()",
            "SELECT x FROM t ORDER BY random() LIMIT 20000",
            "SELECT x FROM (SELECT x, ntile(4) OVER (ORDER BY random()) AS part FROM t) ORDER BY part",
            "SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY round(random()) ORDER BY random()) AS place FROM t) ORDER BY place",
            "SELECT unnest(array_agg(x ORDER BY random())) FROM t",
        ] {
            let found = numbers(
                &context,
                &query.replace("FROM t", &format!("FROM '{table}'")),
            )
            .await;
            let shares = shares(&found, COUNT);
            assert!(
                shares.iter().all(|share| (0.45..0.55).contains(share)),
                "{query}: {shares:?}"
            );
            let mut distinct = found.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), found.len(), "{query}");
        }
    }
    let query = format!(
        "SELECT *, rank() OVER (ORDER BY random()) FROM '{}' ORDER BY random()",
        folder.name("s/")
    );
    let frame = context.sql(&query).await.unwrap();
    let names: Vec<_> = frame
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let rank = "rank() ORDER BY [random() ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
    assert_eq!(names, ["x", rank]);
}
