//! A scheduler that cancels jobs whose clients are gone and jobs that are stuck, and tells clients what they need to know of a
//! cluster.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use ballista_core::serde::{
    protobuf::{
        CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
        CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorStoppedParams,
        ExecutorStoppedResult, FailedJob, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams,
        GetJobStatusResult, HeartBeatParams, HeartBeatResult, JobStatus, PollWorkParams, PollWorkResult,
        RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams, RemoveSessionResult,
        UpdateTaskStatusParams, UpdateTaskStatusResult, execute_query_params::Query, execute_query_result,
        job_status::Status as JobState, scheduler_grpc_server::SchedulerGrpc, task_status,
    },
    scheduler::ExecutorSpecification,
};
use ballista_scheduler::{
    scheduler_server::SchedulerServer,
    state::execution_stage::{ExecutionStage, RunningStage},
};
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    datasource::source::DataSourceExec,
    physical_plan::{ExecutionPlan, ExecutionPlanProperties},
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

use crate::ballista::{
    job_failure::JobFailure,
    tasks::{CORES, FINISHED, TASKS, set_number},
};

/// Time after the last request of a client after which its job is cancelled. Clients ask for the state of a job several times a
/// second.
const LEASE: Duration = Duration::from_secs(8);
/// Interval between two looks at the leases.
const LOOK: Duration = Duration::from_secs(1);
/// Time without a task that runs or can run after which a job is stuck. It happens after an executor was lost: Ballista 55 then
/// waits for a stage that has no task left, or for a task that has ended.
const STUCK: Duration = Duration::from_secs(5);

/// The scheduler of Ballista.
type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;
type Answer<T> = Result<Response<T>, Status>;

/// A scheduler with a lease for each running job, which the client renews by asking for the state of the job.
#[derive(Clone)]
pub(crate) struct Leases {
    server: Arc<Server>,
    /// The leases of running jobs, by the ids of the jobs.
    leases: Arc<Mutex<HashMap<String, Lease>>>,
    /// Whether an executor ran tasks at its last request, by its id.
    busy: Arc<Mutex<HashMap<String, bool>>>,
}

/// The lease of a job.
struct Lease {
    /// The last request of the client.
    renewed: Instant,
    /// The last time at which a task of the job ran or could run.
    proceeded: Instant,
    /// Whether the job was cancelled because it was stuck.
    is_stuck: bool,
}

impl Lease {
    fn new() -> Self {
        let now = Instant::now();
        Self { renewed: now, proceeded: now, is_stuck: false }
    }

    /// Notes whether the job proceeds. Returns `true` once, when it is stuck.
    fn looked(&mut self, proceeds: bool) -> bool {
        if proceeds {
            self.proceeded = Instant::now();
        }
        let was_stuck = self.is_stuck;
        self.is_stuck |= self.proceeded.elapsed() >= STUCK;
        self.is_stuck && !was_stuck
    }
}

impl Leases {
    pub(crate) fn new(server: Server) -> Self {
        Self { server: Arc::new(server), leases: Arc::default(), busy: Arc::default() }
    }

    /// Cancels jobs without a client, and jobs that are stuck; never ends.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let ended: Vec<_> = self.with(|leases| {
                leases.extract_if(|_, lease| lease.renewed.elapsed() >= LEASE).map(|(job, _)| job).collect()
            });
            for job in ended {
                log::warn!("the client of job {job} is gone: the job is cancelled");
                self.cancel(job).await;
            }
            let jobs: Vec<_> = self.with(|leases| leases.keys().cloned().collect());
            for job in jobs {
                let proceeds = self.proceeds(&job).await;
                let is_stuck = self.with(|leases| leases.get_mut(&job).is_some_and(|lease| lease.looked(proceeds)));
                if is_stuck {
                    log::warn!("job {job} is stuck: it is cancelled");
                    self.cancel(job).await;
                }
            }
        }
    }

    async fn cancel(&self, job: String) {
        if let Err(error) = self.server.cancel_job(job.into()).await {
            log::warn!("the job cannot be cancelled: {error}");
        }
    }

    /// Whether a task of a job runs on an executor that is there and runs tasks, or can run. Also true of a job that waits, and of
    /// one that has ended.
    async fn proceeds(&self, job: &str) -> bool {
        let jobs = self.server.state.task_manager.get_running_job_cache();
        let Some(graph) = jobs.get(job).map(|job| Arc::clone(&job.execution_graph)) else { return true };
        let Ok(executors) = self.server.state.executor_manager.get_executors_state().await else { return true };
        let graph = graph.read().await;
        let has_no_tasks_yet = !matches!(graph.status().status, Some(JobState::Running(_)));
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_busy = |id: &String| busy.get(id).is_some_and(|busy| *busy);
        let is_there = |id: &String| executors.iter().any(|(executor, ..)| executor.id == *id) && is_busy(id);
        has_no_tasks_yet
            || graph.available_tasks() > 0
            || graph.running_tasks().iter().any(|task| is_there(&task.executor_id))
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Lease>) -> T) -> T {
        work(&mut self.leases.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of cores of all executors.
    async fn cores(&self) -> Result<usize, Status> {
        let executors = self.server.state.executor_manager.get_executors_state().await;
        let executors = executors.map_err(|error| Status::internal(error.to_string()))?;
        let cores = executors.iter().map(|(executor, ..)| executor.specification.vcores);
        Ok(cores.map(|cores| usize::try_from(cores).unwrap_or(usize::MAX)).fold(0, usize::saturating_add))
    }

    /// Number of finished tasks that scan files, and of all of them; `None` for a job that does not run.
    async fn progress(&self, job_id: &str) -> Option<(usize, usize)> {
        let jobs = self.server.state.task_manager.get_running_job_cache();
        let graph = Arc::clone(&jobs.get(job_id)?.execution_graph);
        let graph = graph.read().await;
        let (mut finished, mut all) = (0, 0);
        for stage in graph.stages().values() {
            let (stage_finished, stage_all) = scan_tasks(stage);
            finished += stage_finished;
            all += stage_all;
        }
        Some((finished, all))
    }
}

/// Number of finished tasks of a stage that scans files, and of all of them. Each partition is a task.
fn scan_tasks(stage: &ExecutionStage) -> (usize, usize) {
    let counted = |plan: &Arc<dyn ExecutionPlan>, finished, all| if scans(plan) { (finished, all) } else { (0, 0) };
    match stage {
        ExecutionStage::Running(stage) => counted(&stage.plan, finished_tasks(stage), stage.partitions),
        ExecutionStage::Successful(stage) => counted(&stage.plan, stage.partitions, stage.partitions),
        ExecutionStage::Resolved(stage) => counted(&stage.plan, 0, stage.partitions),
        ExecutionStage::UnResolved(stage) => {
            counted(&stage.plan, 0, stage.plan.output_partitioning().partition_count())
        }
        ExecutionStage::Failed(_) => (0, 0),
    }
}

fn finished_tasks(stage: &RunningStage) -> usize {
    let is_finished = |status: &task_status::Status| matches!(status, task_status::Status::Successful(_));
    stage.task_infos.iter().filter(|task| is_finished(&task.task_status)).count()
}

fn scans(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        found |= node.is::<DataSourceExec>();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

#[async_trait]
impl SchedulerGrpc for Leases {
    type ExecuteQueryPushStream = BoxStream<'static, Result<GetJobStatusResult, Status>>;

    async fn execute_query(&self, request: Request<ExecuteQueryParams>) -> Answer<ExecuteQueryResult> {
        // Plans of other kinds would be planned here, with files that this process finds.
        if !matches!(request.get_ref().query, Some(Query::PhysicalPlan(_))) {
            return Err(Status::unimplemented("this scheduler takes physical plans of tfarrow only"));
        }
        let answer = self.server.execute_query(request).await?;
        if let Some(execute_query_result::Result::Success(job)) = &answer.get_ref().result {
            self.with(|leases| leases.insert(job.job_id.clone(), Lease::new()));
        }
        Ok(answer)
    }

    async fn get_job_status(&self, request: Request<GetJobStatusParams>) -> Answer<GetJobStatusResult> {
        let job_id = request.get_ref().job_id.clone();
        let mut answer = self.server.get_job_status(request).await?;
        let state = answer.get_ref().status.as_ref().and_then(|status| status.status.as_ref());
        let has_ended = matches!(state, Some(JobState::Failed(_) | JobState::Successful(_)));
        let is_stuck = self.with(|leases| match leases.get_mut(&job_id) {
            Some(lease) if has_ended || lease.is_stuck => leases.remove(&job_id).is_some_and(|lease| lease.is_stuck),
            Some(lease) => {
                lease.renewed = Instant::now();
                false
            }
            None => false,
        });
        if is_stuck {
            let error = JobFailure::ExecutorLost.into_error().to_string();
            let failed = FailedJob { error, ..FailedJob::default() };
            let state = JobStatus { job_id, status: Some(JobState::Failed(failed)), ..JobStatus::default() };
            return Ok(Response::new(GetJobStatusResult { status: Some(state), ..GetJobStatusResult::default() }));
        }
        if let Some((finished, all)) = self.progress(&job_id).await {
            set_number(answer.metadata_mut(), FINISHED, finished);
            set_number(answer.metadata_mut(), TASKS, all);
        }
        Ok(answer)
    }

    async fn create_update_session(
        &self,
        request: Request<CreateUpdateSessionParams>,
    ) -> Answer<CreateUpdateSessionResult> {
        let cores = self.cores().await?;
        let mut answer = self.server.create_update_session(request).await?;
        set_number(answer.metadata_mut(), CORES, cores);
        Ok(answer)
    }

    async fn execute_query_push(&self, _: Request<ExecuteQueryParams>) -> Answer<Self::ExecuteQueryPushStream> {
        Err(Status::unimplemented("clients of this scheduler ask for the state of their jobs"))
    }

    async fn poll_work(&self, request: Request<PollWorkParams>) -> Answer<PollWorkResult> {
        let params = request.get_ref();
        let executor = params.metadata.clone().map(|executor| {
            let cores: Option<ExecutorSpecification> = executor.specification.map(Into::into);
            (executor.id, cores.is_some_and(|cores| params.num_free_vcores < cores.vcores))
        });
        let answer = self.server.poll_work(request).await?;
        if let Some((id, is_busy)) = executor {
            let is_busy = is_busy || !answer.get_ref().tasks.is_empty();
            self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(id, is_busy);
        }
        Ok(answer)
    }

    async fn register_executor(&self, request: Request<RegisterExecutorParams>) -> Answer<RegisterExecutorResult> {
        self.server.register_executor(request).await
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Answer<HeartBeatResult> {
        self.server.heart_beat_from_executor(request).await
    }

    async fn update_task_status(&self, request: Request<UpdateTaskStatusParams>) -> Answer<UpdateTaskStatusResult> {
        self.server.update_task_status(request).await
    }

    async fn remove_session(&self, request: Request<RemoveSessionParams>) -> Answer<RemoveSessionResult> {
        self.server.remove_session(request).await
    }

    async fn get_job_metrics(&self, request: Request<GetJobMetricsParams>) -> Answer<GetJobMetricsResult> {
        self.server.get_job_metrics(request).await
    }

    async fn executor_stopped(&self, request: Request<ExecutorStoppedParams>) -> Answer<ExecutorStoppedResult> {
        self.server.executor_stopped(request).await
    }

    async fn cancel_job(&self, request: Request<CancelJobParams>) -> Answer<CancelJobResult> {
        self.with(|leases| leases.remove(&request.get_ref().job_id));
        SchedulerGrpc::cancel_job(self.server.as_ref(), request).await
    }

    async fn clean_job_data(&self, request: Request<CleanJobDataParams>) -> Answer<CleanJobDataResult> {
        self.server.clean_job_data(request).await
    }
}
