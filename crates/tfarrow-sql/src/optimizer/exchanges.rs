//! Exchanges that cannot deadlock under a memory limit.
//!
//! An exchange of DataFusion that runs out of memory spills batches to files, which its readers
//! read in the order of their creation. If several inputs spill at the same time, a reader may wait
//! for the oldest file while its next batch is in another file, the writers wait for the reader,
//! and the query never ends. An exchange with one input writes one file at a time.
//!
//! Workaround for DataFusion 55: apache/datafusion#24883, fixed in 56 by #24891. Delete with
//! DataFusion 56.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    error::Result,
    execution::memory_pool::{MemoryLimit, MemoryPool},
    physical_plan::{
        ExecutionPlan, coalesce_partitions::CoalescePartitionsExec,
        execution_plan::replace_children_if_necessary, repartition::RepartitionExec,
    },
};

/// Merges the inputs of each exchange into one, if memory is limited. Exchanges that preserve an
/// order need no change, because they have separate files for each input.
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
