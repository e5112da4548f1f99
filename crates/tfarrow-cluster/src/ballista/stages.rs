//! The stages of an executor: what a task runs, and what it reports.

use std::{error::Error, fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use ballista_core::{
    JobId,
    error::BallistaError,
    execution_plans::ShuffleReaderExec,
    serde::protobuf::{
        RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
    },
};
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::{
    common::{exec_err, tree_node::TreeNode},
    datasource::sink::DataSinkExec,
    error::{DataFusionError, Result},
    execution::TaskContext,
    physical_plan::{
        ExecutionPlan, Metric,
        metrics::{Count, MetricValue, MetricsSet},
    },
    prelude::SessionConfig,
};
use tfarrow_dataset::internals::Lock;
use tfarrow_sql::{TaskError, TaskNotices, with_task_notices};

use crate::ballista::{
    connections::Connections,
    headers::NOTICES,
    job_failure::JobFailure,
    job_folder::check_jobs,
    results::has_attempts,
    root::check_files,
    running_jobs::{RunningJob, RunningJobs},
    tls::Tls,
};

/// Makes the tasks of an executor.
pub(crate) struct Stages {
    inner: DefaultExecutionEngine,
    /// The folder outside of which tasks read and write no local files.
    root: Option<PathBuf>,
    jobs: RunningJobs,
}

impl Stages {
    pub(crate) fn new(root: Option<PathBuf>, tls: Option<Tls>, jobs: RunningJobs) -> Self {
        Self {
            inner: DefaultExecutionEngine::with_client_pool(Arc::new(Connections::new(tls))),
            root,
            jobs,
        }
    }

    /// The failure of a task that may not run.
    fn refusal(&self, job: &JobId, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<JobFailure>> {
        if reads_two_attempts(plan)? {
            return Ok(Some(JobFailure::ExecutorLost));
        }
        let checked = check_jobs(job, plan).and_then(|()| match &self.root {
            Some(root) => check_files(plan, root),
            None => Ok(()),
        });
        Ok(checked
            .err()
            .map(|error| JobFailure::Task(TaskError::of(&error))))
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
        // Ballista reports an error that is returned here as that of another attempt, which the
        // scheduler ignores.
        let refusal = self.refusal(&job_id, &plan)?;
        let writes = writes_files(&plan)?;
        let job = self.jobs.of_task(&job_id);
        let notices = Arc::default();
        let plan = with_task_notices(plan, &notices)?;
        let inner = self.inner.create_query_stage_exec(
            job_id, stage_id, task_id, partitions, plan, work_dir, config,
        )?;
        Ok(Arc::new(Stage {
            inner,
            refusal,
            job,
            writes,
            notices,
        }))
    }
}

/// A task.
struct Stage {
    inner: Arc<dyn QueryStageExecutor>,
    /// The failure of a task that may not run.
    refusal: Option<JobFailure>,
    job: RunningJob,
    /// Whether the task writes files, which must not be written again.
    writes: bool,
    notices: Arc<Lock<TaskNotices>>,
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
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone().into_error());
        }
        tokio::select! {
            written = self.inner.execute_query_stage(task_id, context) => {
                written.map_err(|error| portable(error, self.writes))
            }
            () = self.job.ended() => exec_err!("the job has ended"),
        }
    }

    /// The metrics of all operators. Notices are a counter with a name, since no other text of a
    /// task reaches the client.
    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut metrics = self.inner.collect_plan_metrics();
        let notices = self.notices.lock();
        if !notices.is_empty()
            && let (Some(first), Ok(json)) = (metrics.first_mut(), serde_json::to_string(&*notices))
        {
            let name = format!("{NOTICES}{json}").into();
            let count = Count::new();
            count.add(1);
            first.push(Arc::new(Metric::new(
                MetricValue::Count { name, count },
                None,
            )));
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

/// An error of a task that the client can read. Errors of connections between executors stay as
/// they are: the scheduler runs other tasks again after them. A task that `writes` files does not
/// run again after an error of its own.
fn portable(error: DataFusionError, writes: bool) -> DataFusionError {
    let root: &(dyn Error + 'static) = match error.find_root() {
        DataFusionError::External(cause) => match cause.downcast_ref() {
            Some(BallistaError::DataFusionError(cause)) => cause.as_ref(),
            Some(BallistaError::ArrowError(cause)) => cause.as_ref(),
            Some(_) => return error,
            None => &error,
        },
        _ => &error,
    };
    let error = TaskError::of(root);
    JobFailure::Task(if writes { error.not_transient() } else { error }).into_error()
}

/// Returns whether a plan writes files.
pub(crate) fn writes_files(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.is::<DataSinkExec>()))
}

/// Returns whether a plan reads the results of two attempts of a task.
fn reads_two_attempts(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() else {
            return Ok(false);
        };
        for locations in reader.partition.iter() {
            let tasks = locations.iter().map(|location| {
                let id = &location.partition_id;
                (id.stage_id, id.partition_id, location.map_partition_id)
            });
            if has_attempts(tasks) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}
