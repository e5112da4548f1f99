//! Indexes travel with their files, so that tasks read parts of a file by it.

use std::{fs, ops::ControlFlow, path::PathBuf, sync::Arc};

use datafusion::{datasource::source::DataSourceExec, physical_plan::ExecutionPlan};
use tempfile::TempDir;
use tfarrow_dataset::resolve;
use tfarrow_scan::{IndexOptions, index};

use crate::common::{self, check, rows, run, testdata};

/// A file of some megabytes with its index.
fn indexed() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    let shard = fs::read(testdata("shards/train-00000-of-00004.tfrecord")).unwrap();
    let times = (4 << 20) / shard.len();
    fs::write(&file, shard.repeat(times)).unwrap();
    let shards = resolve(&[&file]).unwrap();
    index(&shards, &IndexOptions::default(), &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    (folder, file)
}

/// The number of blocks that the scans of an executed plan have read.
fn blocks_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut read = 0;
    if plan.is::<DataSourceExec>() {
        let metrics = plan.metrics().unwrap();
        read += metrics.sum_by_name("blocks_read").unwrap().as_usize();
    }
    for child in plan.children() {
        read += blocks_read(child);
    }
    read
}

#[test]
fn parts_of_a_file_are_read_by_its_index() {
    let (_folder, file) = indexed();
    let query = format!(
        "SET tfarrow.piece_bytes = 1000; SET tfarrow.metadata_columns = 'all'; \
         SELECT _record, _offset, city FROM '{}' WHERE label > 1 AND _record > 1000",
        file.display()
    );
    check(&query);
    let (sent, plan) = common::sent(&query);
    let (late, _) = common::sent(&query);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let expected = rows(&runtime.block_on(run(Arc::clone(&sent))).unwrap());
    assert!(expected.len() > 1000);
    assert!(blocks_read(&sent) >= 3, "{}", blocks_read(&sent));

    // A task that does not find the index reads the records of its part.
    let index = file.with_extension("tfrecord.tfindex");
    let moved = index.with_extension("moved");
    fs::rename(&index, &moved).unwrap();
    assert_eq!(rows(&runtime.block_on(run(plan)).unwrap()), expected);

    // Of another version of the file it would be other records.
    fs::rename(&moved, &index).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_within(..);
    fs::write(&file, bytes).unwrap();
    let error = runtime.block_on(run(late)).unwrap_err().to_string();
    assert!(
        error.contains("changed since the query was planned"),
        "{error}"
    );
}
