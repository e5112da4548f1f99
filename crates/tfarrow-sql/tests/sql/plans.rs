//! Plans of scans, and the end of a scan whose stream is dropped.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    execution::object_store::ObjectStoreUrl,
    physical_plan::{ExecutionPlan, collect},
    prelude::SessionContext,
};
use futures::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use tfarrow_datafusion::TfRecordSource;

use crate::common::*;

#[tokio::test]
async fn only_projected_columns_are_decoded() {
    let context = session();
    let query = format!("EXPLAIN SELECT avg(label) FROM '{}'", testdata("shards"));
    let plan = rows(&context, &query).await.unwrap().join("\n");
    assert!(
        plan.contains("projection=[label], file_type=tfrecord"),
        "{plan}"
    );
    let query = format!(
        "EXPLAIN ANALYZE SELECT avg(label) FROM '{}'",
        testdata("shards")
    );
    let plan = rows(&context, &query).await.unwrap().join("\n");
    assert!(
        plan.contains("records_decoded=200") && plan.contains("bytes_scanned="),
        "{plan}"
    );
}

fn source() -> Arc<TfRecordSource> {
    Arc::new(TfRecordSource::new(Arc::new(Schema::new(vec![
        Field::new("label", DataType::Int64, true),
    ]))))
}

fn plan(url: &str, files: Vec<PartitionedFile>) -> Arc<dyn ExecutionPlan> {
    let files = files
        .into_iter()
        .map(|file| FileGroup::new(vec![file]))
        .collect();
    let url = ObjectStoreUrl::parse(url).unwrap();
    DataSourceExec::from_data_source(
        FileScanConfigBuilder::new(url, source())
            .with_file_groups(files)
            .build(),
    )
}

async fn count(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> usize {
    let batches = collect(plan, context.task_ctx()).await.unwrap();
    batches.iter().map(|batch| batch.num_rows()).sum()
}

#[tokio::test]
async fn files_of_any_store_are_read() {
    let context = session();
    let store = InMemory::new();
    let mut files = Vec::new();
    for name in [
        "shards/train-00000-of-00004.tfrecord",
        "shards/train-00002-of-00004.tfrecord",
    ] {
        let bytes = std::fs::read(testdata(name)).unwrap();
        files.push(PartitionedFile::new(name, bytes.len() as u64));
        store.put(&Path::from(name), bytes.into()).await.unwrap();
    }
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    context.register_object_store(ObjectStoreUrl::parse("test://x").unwrap().as_ref(), store);
    assert_eq!(count(&context, plan("test://x", files)).await, 100);
    let local = std::fs::canonicalize(testdata("shards/train-00001-of-00004.tfrecord")).unwrap();
    let file = PartitionedFile::from_path(local.display().to_string()).unwrap();
    assert_eq!(count(&context, plan("file://", vec![file])).await, 50);
    let missing = plan("test://x", vec![PartitionedFile::new("gone", 1)]);
    assert!(
        collect(missing, context.task_ctx())
            .await
            .unwrap_err()
            .to_string()
            .contains("gone: ")
    );
}

#[tokio::test]
async fn byte_ranges_of_another_planner_read_each_record_once() {
    let context = session();
    let local = std::fs::canonicalize(testdata("shards/train-00001-of-00004.tfrecord")).unwrap();
    let file = PartitionedFile::from_path(local.display().to_string()).unwrap();
    let size = file.object_meta.size as i64;
    let ranges = [(0, 100), (100, size / 2), (size / 2, size)];
    let files = ranges.map(|(start, end)| file.clone().with_range(start, end));
    assert_eq!(count(&context, plan("file://", files.to_vec())).await, 50);
}

#[test]
fn dropping_a_stream_ends_its_threads() {
    let folder = Folder::new();
    let record = |i: i64| {
        example(&[
            ("i", Value::Ints(&[i])),
            ("b", Value::Bytes(&[&[b'x'; 1000]])),
        ])
    };
    folder.shard("long", (0..50_000).map(record));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let plan = runtime.block_on(async {
        let context = session();
        let frame = context
            .sql(&format!("SELECT i FROM '{}'", folder.name("long")))
            .await
            .unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let mut stream =
            datafusion::physical_plan::execute_stream(Arc::clone(&plan), context.task_ctx())
                .unwrap();
        assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
        plan
    });
    // Waits for the threads of the scan.
    drop(runtime);
    let decoded = plan
        .metrics()
        .unwrap()
        .sum_by_name("records_decoded")
        .unwrap()
        .as_usize();
    assert!(decoded < 50_000, "{decoded}");
}

/// A join builds its hash table of the smaller side, whatever the order of the tables.
#[tokio::test]
async fn a_join_reads_the_smaller_table_first() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("i", Value::Ints(&[i]))]);
    folder.shard("small", (0..10).map(record));
    folder.shard("large", (0..20_000).map(record));
    let context = session();
    for order in [["small", "large"], ["large", "small"]] {
        let [left, right] = order.map(|name| folder.name(name));
        let query = format!("SELECT count(*) FROM '{left}' AS l JOIN '{right}' AS r ON l.i = r.i");
        let plan = context
            .sql(&query)
            .await
            .unwrap()
            .create_physical_plan()
            .await
            .unwrap();
        let plan = datafusion::physical_plan::displayable(plan.as_ref())
            .indent(false)
            .to_string();
        let (small, large) = (plan.find("small").unwrap(), plan.find("large").unwrap());
        assert!(small < large, "{plan}");
    }
}
