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
    physical_plan::{
        ExecutionPlan, InputOrderMode,
        aggregates::{AggregateExec, AggregateMode},
        sorts::sort::SortExec,
    },
};
use tfarrow_datafusion::internals::{RecordRange, partitioned_file};
use tfarrow_dataset::{Shard, internals::FilePiece};

use crate::engine::scan_of;

/// Returns a plan with the same partitions that reads each file in pieces as a whole, where its
/// first piece was.
///
/// # Errors
/// Those of DataFusion, for a plan that is not valid.
pub fn with_whole_files(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let whole = plan.transform_up(|node| {
        let Some((config, _)) = scan_of(node.as_ref()) else {
            return Ok(Transformed::no(node));
        };
        let mut groups = Vec::with_capacity(config.file_groups.len());
        for group in &config.file_groups {
            let files = group.iter().filter_map(whole_file).collect();
            groups.push(FileGroup::new(files));
        }
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups)
            .build();
        Ok(Transformed::yes(
            DataSourceExec::from_data_source(config) as _
        ))
    });
    Ok(whole?.data)
}

/// Returns whether an operator, such as that of a LIMIT, may end a scan before its last record. The
/// records of a piece are those of the file only if all of them are read: a piece proves its first
/// record by its last one.
pub(crate) fn may_end_early(plan: &Arc<dyn ExecutionPlan>) -> bool {
    scan_may_end(plan.as_ref(), false)
}

/// Whether a scan below a node may end early. `parent_may_end` is whether the parent of the node
/// may not read all of its rows.
fn scan_may_end(node: &dyn ExecutionPlan, parent_may_end: bool) -> bool {
    if let Some((config, _)) = scan_of(node) {
        return parent_may_end || config.limit.is_some();
    }
    let may_end = !reads_all(node) && (parent_may_end || node.fetch().is_some());
    node.children()
        .into_iter()
        .any(|child| scan_may_end(child.as_ref(), may_end))
}

/// Whether an operator reads all of its input before it returns its first row.
fn reads_all(node: &dyn ExecutionPlan) -> bool {
    let groups = node.downcast_ref::<AggregateExec>();
    node.is::<SortExec>()
        || groups.is_some_and(|groups| {
            // A partial aggregate may return its groups early, and one with a limit ends when it
            // has enough of them.
            *groups.mode() != AggregateMode::Partial
                && *groups.input_order_mode() == InputOrderMode::Linear
                && groups.limit_options().is_none()
        })
}

/// The file whose first piece this is; `None` for another piece.
fn whole_file(file: &PartitionedFile) -> Option<PartitionedFile> {
    match (file.extension::<FilePiece>(), file.extension::<Shard>()) {
        (Some(piece), Some(shard)) if piece.bytes.start == 0 => Some(partitioned_file(
            shard,
            file.partition_values.clone(),
            RecordRange::of(file),
        )),
        (Some(_), _) => None,
        (None, _) => Some(file.clone()),
    }
}
