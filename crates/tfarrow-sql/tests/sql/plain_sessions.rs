//! Sessions that `session_context` did not create: the same results under all settings of
//! DataFusion.

use datafusion::prelude::{SessionConfig, SessionContext};
use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};
use tfarrow_scan::Sample;

use crate::common::*;

const RECORDS: i64 = 60_000;

/// 60,000 records in two shards: `c` counts from 0, `a` is `c` + 1,000, `b` is missing in the first
/// half of each shard, and `k` has one of seven values.
fn folder() -> Folder {
    let folder = Folder::new();
    let record = |c: i64| {
        let (a, b, c, k) = ([1000 + c], [c], [c], [c % 7]);
        let all = [
            ("a", Value::Ints(&a)),
            ("c", Value::Ints(&c)),
            ("k", Value::Ints(&k)),
            ("b", Value::Ints(&b)),
        ];
        let has_b = c[0] % (RECORDS / 2) >= RECORDS / 4;
        example(if has_b { &all } else { &all[..3] })
    };
    folder.shard("t/0", (0..RECORDS / 2).map(record));
    folder.shard("t/1", (RECORDS / 2..RECORDS).map(record));
    folder
}

const QUERIES: [&str; 10] = [
    "SELECT min(a), max(c + 1) FROM t",
    "SELECT min(a), max(b) FROM t",
    "SELECT max(c), min(b), max(a + c) FROM t WHERE c > 17",
    "SELECT min(c), max(c), count(*) FROM t",
    "SELECT k, min(a), max(b) FROM t GROUP BY k ORDER BY k",
    "SELECT a, b FROM t ORDER BY c DESC LIMIT 5",
    "SELECT max(b) FROM (SELECT b FROM t ORDER BY a LIMIT 40000) x",
    "SELECT count(*), min(x.a), max(y.b) FROM t x JOIN t y ON x.c = y.c WHERE y.k = 3 AND x.a < 30000",
    "SELECT min(x.a), max(y.c + 1) FROM t x LEFT JOIN t y ON x.c = y.a",
    "SELECT count(*), max(c) FROM t WHERE a = (SELECT max(a) FROM t)",
];

/// The settings of dynamic filters, of threads and of the batch size. The setting for all dynamic
/// filters is not included, because it overrides the others.
fn configs() -> Vec<SessionConfig> {
    let mut configs = Vec::new();
    for flags in 0..16_u32 {
        for partitions in [1, 2, 5] {
            for batch_size in [100, 8192] {
                let mut config = SessionConfig::new()
                    .with_target_partitions(partitions)
                    .with_batch_size(batch_size);
                let optimizer = &mut config.options_mut().optimizer;
                let is_set = |bit: u32| flags >> bit & 1 == 1;
                optimizer.enable_aggregate_dynamic_filter_pushdown = is_set(0);
                optimizer.enable_topk_dynamic_filter_pushdown = is_set(1);
                optimizer.enable_join_dynamic_filter_pushdown = is_set(2);
                optimizer.repartition_aggregations = is_set(3);
                optimizer.repartition_joins = is_set(3);
                optimizer.repartition_file_scans = is_set(3);
                optimizer.repartition_sorts = is_set(3);
                optimizer.enable_round_robin_repartition = is_set(3);
                configs.push(config);
            }
        }
    }
    configs
}

async fn answers(context: &SessionContext) -> Vec<Vec<String>> {
    let mut answers = Vec::new();
    for query in QUERIES {
        answers.push(rows(context, query).await.unwrap());
    }
    answers
}

/// Sessions with the table `t`, created in each of the three ways.
async fn plain(config: SessionConfig, way: usize, source: &str) -> SessionContext {
    let options = TfRecordOptions {
        sample: Sample::All,
        ..TfRecordOptions::default()
    };
    let context = SessionContext::new_with_config(config);
    match way % 3 {
        0 => context
            .register_tfrecord("t", source, &options)
            .await
            .unwrap(),
        1 => {
            let frame = context.read_tfrecord(source, &options).await.unwrap();
            context.register_table("t", frame.into_view()).unwrap();
        }
        _ => {
            context.enable_tfrecord().unwrap();
            let create = format!(
                "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{source}' OPTIONS (sample_records 'all')"
            );
            context.sql(&create).await.unwrap();
        }
    }
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_setting_of_datafusion_changes_a_result() {
    let folder = folder();
    let options = TfRecordOptions {
        pushdown_filters: false,
        sample: Sample::All,
        ..TfRecordOptions::default()
    };
    let source = folder.name("t/");
    let oracle = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    oracle
        .register_tfrecord("t", &source, &options)
        .await
        .unwrap();
    let expected = answers(&oracle).await;
    assert_eq!(expected[0], [format!("1000 | {RECORDS}")]);
    for (way, config) in configs().into_iter().enumerate() {
        let settings = format!(
            "{:?} {:?}",
            config.options().execution,
            config.options().optimizer
        );
        let found = answers(&plain(config, way, &source).await).await;
        for (query, (found, expected)) in QUERIES.iter().zip(found.iter().zip(&expected)) {
            assert_eq!(found, expected, "{query} with {settings}");
        }
    }
}
