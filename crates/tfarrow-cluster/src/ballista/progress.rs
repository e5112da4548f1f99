//! The progress of a job that the scheduler runs.

use std::{collections::HashSet, sync::Arc};

use ballista_core::serde::protobuf::{job_status::Status as JobState, task_status};
use ballista_scheduler::state::{
    execution_graph::ExecutionGraph,
    execution_stage::{ExecutionStage, RunningStage},
};
use datafusion::{
    common::tree_node::TreeNode,
    datasource::source::DataSourceExec,
    physical_plan::{ExecutionPlan, ExecutionPlanProperties},
};

/// Whether a task of a job runs on one of the executors that run tasks, or can run. Also true of a
/// job that has no tasks yet.
pub(crate) fn proceeds(graph: &dyn ExecutionGraph, busy: &HashSet<String>) -> bool {
    let has_no_tasks_yet = !matches!(graph.status().status, Some(JobState::Running(_)));
    has_no_tasks_yet
        || graph.available_tasks() > 0
        || graph
            .running_tasks()
            .iter()
            .any(|task| busy.contains(&task.executor_id))
}

/// Number of finished tasks that scan files, and of all of them.
pub(crate) fn scan_tasks(graph: &dyn ExecutionGraph) -> (usize, usize) {
    let of_stages = graph.stages().values().map(scan_tasks_of);
    of_stages.fold((0, 0), |(finished, all), of_stage| {
        (finished + of_stage.0, all + of_stage.1)
    })
}

/// Number of finished tasks of a stage that scans files, and of all of them. Each partition is a
/// task.
fn scan_tasks_of(stage: &ExecutionStage) -> (usize, usize) {
    let (plan, finished, all) = match stage {
        ExecutionStage::Running(stage) => (&stage.plan, finished_tasks(stage), stage.partitions),
        ExecutionStage::Successful(stage) => (&stage.plan, stage.partitions, stage.partitions),
        ExecutionStage::Resolved(stage) => (&stage.plan, 0, stage.partitions),
        ExecutionStage::UnResolved(stage) => {
            let partitions = stage.plan.output_partitioning().partition_count();
            (&stage.plan, 0, partitions)
        }
        ExecutionStage::Failed(_) => return (0, 0),
    };
    if scans(plan) { (finished, all) } else { (0, 0) }
}

fn finished_tasks(stage: &RunningStage) -> usize {
    let tasks = stage.task_infos.iter();
    let finished =
        tasks.filter(|task| matches!(&task.task_status, task_status::Status::Successful(_)));
    finished.count()
}

fn scans(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(node.is::<DataSourceExec>()))
        .unwrap_or_default()
}
