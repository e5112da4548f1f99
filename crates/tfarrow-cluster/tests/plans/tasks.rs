//! Plans whose partitions run in tasks that share nothing, as an engine runs them.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    datasource::{
        physical_plan::{FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties, coalesce_partitions::CoalescePartitionsExec,
    },
};
use tfarrow_cluster::with_single_tasks;

use crate::common::{decoded, encoded, planned, rows, run, session, testdata};

/// The part of a plan that one task runs: its scans read one group of files, but for those whose
/// partitions are merged.
fn task(plan: Arc<dyn ExecutionPlan>, partition: usize) -> Arc<dyn ExecutionPlan> {
    let task = plan.transform_down(|node| {
        if node.is::<CoalescePartitionsExec>() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let scan = node
            .downcast_ref::<DataSourceExec>()
            .map(|scan| scan.data_source());
        let Some(config) = scan.and_then(|source| source.downcast_ref::<FileScanConfig>()) else {
            return Ok(Transformed::no(node));
        };
        let group = vec![config.file_groups[partition].clone()];
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(group)
            .build();
        Ok(Transformed::yes(
            DataSourceExec::from_data_source(config) as _
        ))
    });
    task.unwrap().data
}

/// The rows of a plan, each partition of which is decoded and executed alone.
async fn rows_of_tasks(plan: Arc<dyn ExecutionPlan>) -> Vec<String> {
    let bytes = encoded(&plan).unwrap();
    let mut batches = Vec::new();
    for partition in 0..plan.output_partitioning().partition_count() {
        batches.extend(
            run(task(decoded(&bytes).unwrap(), partition))
                .await
                .unwrap(),
        );
    }
    rows(&batches)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_return_each_row_once() {
    let shards = format!("'{}'", testdata("shards/"));
    let mut repeated = 0;
    for query in [
        "SELECT a.price FROM SHARDS a WHERE NOT EXISTS (SELECT 1 FROM SHARDS b WHERE b.price > a.price)",
        "SELECT a.price FROM SHARDS a WHERE EXISTS (SELECT 1 FROM SHARDS b WHERE b.price > a.price + 100)",
        "SELECT a.price, b.label FROM SHARDS a LEFT JOIN SHARDS b ON b.price > a.price + 180",
        "SELECT a.price, b.label FROM SHARDS a FULL JOIN SHARDS b ON b.price > a.price + 180",
        "SELECT a.price, b.label FROM SHARDS a RIGHT JOIN SHARDS b ON b.price > a.price + 180",
        "SELECT a.price, b.label FROM SHARDS a JOIN SHARDS b ON b.price > a.price + 180",
        "SELECT price FROM SHARDS WHERE price NOT IN (SELECT price FROM SHARDS WHERE label > 0)",
    ] {
        let plan = planned(&session(), &query.replace("SHARDS", &shards))
            .await
            .unwrap();
        let expected = rows(&run(Arc::clone(&plan)).await.unwrap());
        repeated += usize::from(rows_of_tasks(Arc::clone(&plan)).await != expected);
        assert_eq!(
            rows_of_tasks(with_single_tasks(plan).unwrap()).await,
            expected,
            "{query}"
        );
    }
    // Otherwise the test shows nothing: without the change, tasks repeat rows.
    assert!(repeated >= 4, "{repeated}");
}
