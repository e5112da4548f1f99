//! Indexes travel with their files, so that tasks read parts of a file by it.

use std::{fs, ops::ControlFlow, path::PathBuf, sync::Arc};

use arrow_array::{cast::AsArray, types::Int64Type};
use datafusion::{datasource::source::DataSourceExec, physical_plan::ExecutionPlan};
use tempfile::TempDir;
use tfarrow_dataset::resolve;
use tfarrow_scan::{IndexOptions, index};
use tfarrow_testkit::{frame, proto};

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

#[test]
fn sorted_files_are_merged_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..3 {
        let records = (0..2000).map(|number| {
            let time = proto::KindOneof::ints([number * 3 + file]);
            proto::example([("time", time)])
        });
        let path = folder.path().join(format!("{file}.tfrecord"));
        fs::write(path, frame::file(records)).unwrap();
    }
    let shards = resolve(&[folder.path()]).unwrap();
    index(&shards, &IndexOptions::default(), &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let query = format!(
        "SELECT time FROM '{}' ORDER BY time",
        folder.path().display()
    );
    let (sent, _) = common::sent(&query);
    assert!(!common::text(&sent).contains("SortExec"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let batches = runtime.block_on(run(sent)).unwrap();
    let mut times = Vec::new();
    for batch in &batches {
        let column = batch.column(0).as_primitive::<Int64Type>();
        times.extend(column.values().iter().copied());
    }
    assert_eq!(times, (0..6000).collect::<Vec<i64>>());
}
