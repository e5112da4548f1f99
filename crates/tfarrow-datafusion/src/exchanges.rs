//! Exchanges that cannot block each other where memory is limited.
//!
//! An exchange of DataFusion's that finds no memory writes batches to files, which its readers read in the order in which
//! the files were begun. Where several inputs write at the same time, a reader waits for the oldest file while the batch
//! that it needs is in another, the writers wait for the reader, and the query never ends (DataFusion issue 24883, in all
//! releases up to 55.2). With one input there is one file at a time.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    error::Result,
    execution::memory_pool::{MemoryLimit, MemoryPool},
    physical_plan::{
        ExecutionPlan, coalesce_partitions::CoalescePartitionsExec, execution_plan::replace_children_if_necessary,
        repartition::RepartitionExec,
    },
};

/// The plan, where memory is limited with exchanges that have one input each. Those that keep an order need no change: they
/// have files of their own for each input.
pub(crate) fn with_single_inputs(
    plan: Arc<dyn ExecutionPlan>,
    memory: &dyn MemoryPool,
) -> Result<Arc<dyn ExecutionPlan>> {
    if matches!(memory.memory_limit(), MemoryLimit::Infinite) {
        return Ok(plan);
    }
    let single = plan.transform_up(|node| match node.downcast_ref::<RepartitionExec>() {
        Some(exchange) if has_shared_files(exchange) => {
            let input = Arc::new(CoalescePartitionsExec::new(Arc::clone(exchange.input())));
            replace_children_if_necessary(node, vec![input]).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(single.data)
}

fn has_shared_files(exchange: &RepartitionExec) -> bool {
    !exchange.preserve_order() && exchange.input().properties().partitioning.partition_count() > 1
}
