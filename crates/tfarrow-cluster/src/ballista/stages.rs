//! The stages of an executor: what a task runs, and what it reports.

use std::{
    error::Error,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use ballista_core::{
    JobId,
    error::BallistaError,
    execution_plans::ShuffleReaderExec,
    serde::{
        protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport},
        scheduler::PartitionLocation,
    },
};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    error::{DataFusionError, Result},
    execution::TaskContext,
    physical_plan::{
        ExecutionPlan, Metric,
        metrics::{Count, MetricValue, MetricsSet},
    },
    prelude::SessionConfig,
};
use tfarrow_datafusion::{TaskError, TaskNotices, with_task_notices};

use crate::ballista::{
    connections::Connections, headers::NOTICES, job_failure::JobFailure, results::has_attempts, root::check_files,
    tls::Tls,
};

/// Makes the tasks of an executor.
pub(crate) struct Stages {
    inner: DefaultExecutionEngine,
    /// The folder outside of which tasks read and write no local files.
    root: Option<PathBuf>,
}

impl Stages {
    pub(crate) fn new(root: Option<PathBuf>, tls: Option<Tls>) -> Self {
        Self { inner: DefaultExecutionEngine::with_client_pool(Arc::new(Connections::new(tls))), root }
    }
}

impl ExecutionEngine for Stages {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        check_attempts(&plan)?;
        if let Some(root) = &self.root {
            check_files(&plan, root).map_err(portable)?;
        }
        let notices = Arc::default();
        let plan = with_task_notices(plan, &notices)?;
        let inner =
            self.inner.create_query_stage_exec(job_id, stage_id, task_id, partitions, plan, work_dir, config)?;
        Ok(Arc::new(Stage { inner, notices }))
    }
}

/// A task.
struct Stage {
    inner: Arc<dyn QueryStageExecutor>,
    notices: Arc<Mutex<TaskNotices>>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        self.inner.execute_query_stage(task_id, context).await.map_err(portable)
    }

    /// The metrics of all operators. Notices are a counter with a name, since no other text of a task reaches the client.
    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut metrics = self.inner.collect_plan_metrics();
        let notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.is_empty()
            && let (Some(first), Ok(json)) = (metrics.first_mut(), serde_json::to_string(&*notices))
        {
            let (name, count) = (format!("{NOTICES}{json}").into(), Count::new());
            count.add(1);
            first.push(Arc::new(Metric::new(MetricValue::Count { name, count }, None)));
        }
        metrics
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

/// An error of a task that the client can read. Errors of connections between executors stay as they are: the scheduler runs other
/// tasks again after them.
fn portable(error: DataFusionError) -> DataFusionError {
    let root: &(dyn Error + 'static) = match error.find_root() {
        DataFusionError::External(cause) => match cause.downcast_ref() {
            Some(BallistaError::DataFusionError(cause)) => cause.as_ref(),
            Some(BallistaError::ArrowError(cause)) => cause.as_ref(),
            Some(_) => return error,
            None => &error,
        },
        _ => &error,
    };
    JobFailure::Task(TaskError::of(root)).into_error()
}

/// Refuses input from two attempts of a task.
fn check_attempts(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let task = |location: &PartitionLocation| {
        let id = &location.partition_id;
        (id.stage_id, id.partition_id, location.map_partition_id)
    };
    plan.apply(|node| {
        if let Some(reader) = node.downcast_ref::<ShuffleReaderExec>()
            && reader.partition.iter().any(|locations| has_attempts(locations.iter().map(task)))
        {
            return Err(JobFailure::ExecutorLost.into_error());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
