//! The progress of the scans of a plan.

use datafusion::{
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    physical_plan::ExecutionPlan,
};
use tfarrow_datafusion::TfRecordSource;

use crate::engine::RemoteExec;

/// The bytes that the scans of a plan have read, and will read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanProgress {
    /// Bytes read so far, as stored.
    pub read: u64,
    /// Bytes of all TFRecord files of the plan, as stored; `None` if another scan reads an unknown
    /// part of its files, as that of Parquet does.
    pub total: Option<u64>,
}

/// Returns the progress of a plan, which may be running.
///
/// A query that ends early, such as one with a LIMIT, does not read all bytes.
pub fn scan_progress(plan: &dyn ExecutionPlan) -> ScanProgress {
    let mut progress = ScanProgress {
        read: 0,
        total: Some(0),
    };
    add(plan, &mut progress);
    progress
}

fn add(plan: &dyn ExecutionPlan, progress: &mut ScanProgress) {
    if let Some(remote) = plan.downcast_ref::<RemoteExec>() {
        let ScanProgress { total, .. } = scan_progress(remote.input().as_ref());
        progress.read += remote.progress().read_of(total.unwrap_or(0));
        progress.total = progress
            .total
            .zip(total)
            .map(|(known, total)| known + total);
        return;
    }
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let read = plan
            .metrics()
            .and_then(|metrics| metrics.sum_by_name("bytes_scanned"));
        progress.read += read.map_or(0, |read| read.as_usize() as u64);
        let config = scan.data_source().downcast_ref::<FileScanConfig>();
        let is_tfrecord = scan.downcast_to_file_source::<TfRecordSource>().is_some();
        let files = config.map(|config| config.file_groups.iter().flat_map(|group| group.iter()));
        match files {
            Some(files) if is_tfrecord => {
                let size = files.map(|file| file.object_meta.size).sum::<u64>();
                progress.total = progress.total.map(|total| total + size);
            }
            Some(_) => progress.total = None,
            // Rows in memory.
            None => {}
        }
    }
    plan.children()
        .into_iter()
        .for_each(|child| add(child.as_ref(), progress));
}
