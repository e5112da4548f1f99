//! Joins that are right only if one task runs all of their partitions.

use std::sync::Arc;

use datafusion::{
    common::{
        JoinType,
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties,
        coalesce_partitions::CoalescePartitionsExec,
        execution_plan::replace_children_if_necessary,
        joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode},
        limit::GlobalLimitExec,
    },
};

/// Merges the right side of some joins into one partition, so that an engine that runs each
/// partition of a plan as a task of its own returns the same rows.
///
/// A join that collects its left side, and returns rows of it, keeps a bitmap of the rows that have
/// found a partner. In one process its partitions share the bitmap, and the last one returns the
/// other rows. Tasks cannot share it: each would return the rows without a partner in its part of
/// the right side.
///
/// # Errors
/// Those of DataFusion, for a plan that is not valid.
pub fn with_single_tasks(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let single = plan.transform_up(|node| match node.children().as_slice() {
        [left, right]
            if shares_bitmap(node.as_ref())
                && right.output_partitioning().partition_count() > 1 =>
        {
            let merged = Arc::new(CoalescePartitionsExec::new(Arc::clone(right)));
            // Engines remove a merge that no operator requires, and this one requires it.
            let right = Arc::new(GlobalLimitExec::new(merged, 0, None));
            let inputs = vec![Arc::clone(left), right];
            replace_children_if_necessary(node, inputs).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(single.data)
}

/// Returns whether the partitions of an operator share a bitmap of rows of its left side.
fn shares_bitmap(node: &dyn ExecutionPlan) -> bool {
    let nested = node
        .downcast_ref::<NestedLoopJoinExec>()
        .map(NestedLoopJoinExec::join_type);
    let hash = node
        .downcast_ref::<HashJoinExec>()
        .filter(|join| *join.partition_mode() == PartitionMode::CollectLeft);
    nested
        .or_else(|| hash.map(HashJoinExec::join_type))
        .is_some_and(|join_type| returns_left_rows(*join_type))
}

/// Returns whether a join returns rows of its left side by whether they have a partner.
fn returns_left_rows(join_type: JoinType) -> bool {
    match join_type {
        JoinType::Left
        | JoinType::Full
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::LeftMark => true,
        JoinType::Inner
        | JoinType::Right
        | JoinType::RightSemi
        | JoinType::RightAnti
        | JoinType::RightMark => false,
    }
}
