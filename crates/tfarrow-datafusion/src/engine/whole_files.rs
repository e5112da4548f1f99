//! Plans that read files as a whole.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::Result,
    physical_plan::ExecutionPlan,
};
use tfarrow_dataset::{FilePiece, Shard};

use crate::{engine::scan_of, scan::input::RecordRange, table::partitioned_file};

/// Returns a plan with the same partitions that reads each file in pieces as a whole, where its first piece was.
///
/// # Errors
/// Those of DataFusion, for a plan that is not valid.
pub fn with_whole_files(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let whole = plan.transform_up(|node| {
        let Some((config, _)) = scan_of(node.as_ref()) else { return Ok(Transformed::no(node)) };
        let group = |group: &FileGroup| FileGroup::new(group.iter().filter_map(whole_file).collect());
        let groups = config.file_groups.iter().map(group).collect();
        let config = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).build();
        Ok(Transformed::yes(DataSourceExec::from_data_source(config) as _))
    });
    Ok(whole?.data)
}

/// The file whose first piece this is; `None` for another piece.
fn whole_file(file: &PartitionedFile) -> Option<PartitionedFile> {
    match (file.extension::<FilePiece>(), file.extension::<Shard>()) {
        (Some(piece), Some(shard)) if piece.bytes.start == 0 => {
            Some(partitioned_file(shard, file.partition_values.clone(), RecordRange::of(file)))
        }
        (Some(_), _) => None,
        (None, _) => Some(file.clone()),
    }
}
