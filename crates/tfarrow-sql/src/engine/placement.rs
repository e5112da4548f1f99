//! The parts of a plan that an engine runs.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    datasource::{physical_plan::FileScanConfig, sink::DataSinkExec, source::DataSourceExec},
    error::Result,
    physical_plan::{
        ExecutionPlan, analyze::AnalyzeExec, execution_plan::replace_children_if_necessary,
    },
};

use crate::engine::{Engine, RemoteExec, may_end_early, with_whole_files};

/// Returns the plan that this process executes in place of `plan`: the engine runs what reads or
/// writes files. Other plans, such as that of `SELECT 1`, stay here.
pub(crate) fn placed(
    plan: Arc<dyn ExecutionPlan>,
    engine: &Arc<dyn Engine>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !uses_files(&plan)? {
        return Ok(plan);
    }
    // This process measures the query, and the engine runs it.
    if plan.is::<AnalyzeExec>() {
        let children = plan
            .children()
            .into_iter()
            .map(|child| placed(Arc::clone(child), engine))
            .collect::<Result<_>>()?;
        return replace_children_if_necessary(plan, children);
    }
    let plan = if may_end_early(&plan) {
        with_whole_files(plan)?
    } else {
        plan
    };
    Ok(Arc::new(RemoteExec::new(plan, Arc::clone(engine))))
}

fn uses_files(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        let scan = node
            .downcast_ref::<DataSourceExec>()
            .map(|scan| scan.data_source());
        found =
            node.is::<DataSinkExec>() || scan.is_some_and(|source| source.is::<FileScanConfig>());
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}
