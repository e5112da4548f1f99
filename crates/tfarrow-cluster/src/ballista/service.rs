//! The requests of clients and executors: the scheduler of Ballista answers them, and this service
//! adds leases and headers.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use ballista_core::serde::{
    protobuf::{
        CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult,
        CreateUpdateSessionParams, CreateUpdateSessionResult, ExecuteQueryParams,
        ExecuteQueryResult, ExecutorStoppedParams, ExecutorStoppedResult, FailedJob,
        GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult,
        HeartBeatParams, HeartBeatResult, JobStatus, PollWorkParams, PollWorkResult,
        RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams, RemoveSessionResult,
        UpdateTaskStatusParams, UpdateTaskStatusResult, execute_query_params::Query,
        execute_query_result, job_status::Status as JobState, scheduler_grpc_server::SchedulerGrpc,
    },
    scheduler::{ExecutorMetadata, ExecutorSpecification},
};
use ballista_scheduler::{
    scheduler_server::SchedulerServer,
    state::{execution_graph::ExecutionGraphBox, executor_manager::ExecutorManager},
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::stream::BoxStream;
use tfarrow_dataset::internals::Lock;
use tokio::sync::RwLock;
use tonic::{Request, Response, Status, metadata::MetadataValue};

use crate::ballista::{
    headers::{CORES, EXECUTOR, FINISHED, SCHEDULER_VERSION, TASKS, set_number},
    job_failure::JobFailure,
    leases::Leases,
    progress::{proceeds, scan_tasks},
};

/// Interval between two checks of the leases.
const CHECK: Duration = Duration::from_secs(1);

type Answer<T> = Result<Response<T>, Status>;
type JobStates = BoxStream<'static, Result<GetJobStatusResult, Status>>;
/// The stages and tasks of a job.
type Graph = Arc<RwLock<ExecutionGraphBox>>;
/// Returns the graph of a job; `None` for a job that does not run.
type GraphOf = dyn Fn(&str) -> Option<Graph> + Send + Sync;

/// A scheduler that cancels jobs whose clients are gone and jobs that are stuck, and returns the
/// number of cores and the progress of jobs in headers.
///
/// `server` and `graph_of` are trait objects, because Ballista's types have parameters for the
/// messages of plans: rustc would prove that these are `Sync` for each kind of request, in 4 s.
#[derive(Clone)]
pub(crate) struct SchedulerService {
    /// The scheduler of Ballista.
    server: Arc<dyn SchedulerGrpc<ExecuteQueryPushStream = JobStates>>,
    executors: ExecutorManager,
    graph_of: Arc<GraphOf>,
    leases: Arc<Leases>,
    /// The ids of the executors that ran tasks at their last request.
    busy: Arc<Lock<HashSet<String>>>,
}

impl SchedulerService {
    pub(crate) fn new(server: SchedulerServer<LogicalPlanNode, PhysicalPlanNode>) -> Self {
        let tasks = server.state.task_manager.clone();
        let executors = server.state.executor_manager.clone();
        Self {
            server: Arc::new(server),
            executors,
            graph_of: Arc::new(move |job: &str| {
                let running = tasks.get_running_job_cache();
                let job = running.get(job)?;
                Some(Arc::clone(&job.execution_graph))
            }),
            leases: Arc::default(),
            busy: Arc::default(),
        }
    }

    /// Cancels jobs without a client, and jobs that are stuck; never ends.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(CHECK).await;
            for job in self.leases.take_expired(Instant::now()) {
                log::warn!("the client of job {job} is gone: the job is cancelled");
                self.cancel(job).await;
            }
            let Ok(executors) = self.executors().await else {
                continue;
            };
            let busy = self.busy_of(&executors);
            for job in self.leases.jobs() {
                // A job that the scheduler does not run has ended.
                let Some(graph) = (self.graph_of)(&job) else {
                    continue;
                };
                let proceeds = proceeds(graph.read().await.as_ref(), &busy);
                if self.leases.record(&job, proceeds, Instant::now()) {
                    log::warn!("job {job} is stuck: it is cancelled");
                    self.cancel(job).await;
                }
            }
        }
    }

    async fn cancel(&self, job: String) {
        if let Err(error) = self
            .server
            .cancel_job(Request::new(CancelJobParams { job_id: job }))
            .await
        {
            log::warn!("the job cannot be cancelled: {error}");
        }
    }

    async fn executors(&self) -> Result<Vec<ExecutorMetadata>, Status> {
        let executors = self.executors.get_executors_state().await;
        let executors = executors.map_err(|error| Status::internal(error.to_string()))?;
        Ok(executors
            .into_iter()
            .map(|(executor, ..)| executor)
            .collect())
    }

    /// The ids of the executors that run tasks. Executors that are gone are removed.
    fn busy_of(&self, executors: &[ExecutorMetadata]) -> HashSet<String> {
        let mut busy = self.busy.lock();
        busy.retain(|id| executors.iter().any(|executor| executor.id == *id));
        busy.clone()
    }

    /// Number of cores of all executors.
    async fn cores(&self) -> Result<usize, Status> {
        let mut cores = 0_usize;
        for executor in self.executors().await? {
            let own = usize::try_from(executor.specification.vcores).unwrap_or(usize::MAX);
            cores = cores.saturating_add(own);
        }
        Ok(cores)
    }
}

#[async_trait]
impl SchedulerGrpc for SchedulerService {
    type ExecuteQueryPushStream = JobStates;

    async fn execute_query(
        &self,
        request: Request<ExecuteQueryParams>,
    ) -> Answer<ExecuteQueryResult> {
        // Plans of other kinds would be planned here, with files that this process finds.
        if !matches!(request.get_ref().query, Some(Query::PhysicalPlan(_))) {
            return Err(Status::unimplemented(
                "this scheduler takes physical plans only",
            ));
        }
        let answer = self.server.execute_query(request).await?;
        if let Some(execute_query_result::Result::Success(job)) = &answer.get_ref().result {
            self.leases.grant(job.job_id.clone(), Instant::now());
        }
        Ok(answer)
    }

    async fn get_job_status(
        &self,
        request: Request<GetJobStatusParams>,
    ) -> Answer<GetJobStatusResult> {
        if request.metadata().contains_key(EXECUTOR) {
            return self.server.get_job_status(request).await;
        }
        let job_id = request.get_ref().job_id.clone();
        let mut answer = self.server.get_job_status(request).await?;
        let state = answer
            .get_ref()
            .status
            .as_ref()
            .and_then(|status| status.status.as_ref());
        let has_ended = matches!(state, Some(JobState::Failed(_) | JobState::Successful(_)));
        let is_stuck = self.leases.renew(&job_id, Instant::now());
        if is_stuck || has_ended {
            self.leases.end(&job_id);
        }
        if is_stuck {
            let error = JobFailure::ExecutorLost.into_error().to_string();
            let failed = FailedJob {
                error,
                ..FailedJob::default()
            };
            let state = JobStatus {
                job_id,
                status: Some(JobState::Failed(failed)),
                ..JobStatus::default()
            };
            return Ok(Response::new(GetJobStatusResult {
                status: Some(state),
                ..GetJobStatusResult::default()
            }));
        }
        let cores = self.cores().await?;
        set_number(answer.metadata_mut(), CORES, cores);
        if let Some(graph) = (self.graph_of)(&job_id) {
            let (finished, all) = scan_tasks(graph.read().await.as_ref());
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
        answer.metadata_mut().insert(
            SCHEDULER_VERSION,
            MetadataValue::from_static(crate::codec::VERSION),
        );
        set_number(answer.metadata_mut(), CORES, cores);
        Ok(answer)
    }

    async fn execute_query_push(
        &self,
        _: Request<ExecuteQueryParams>,
    ) -> Answer<Self::ExecuteQueryPushStream> {
        Err(Status::unimplemented(
            "clients of this scheduler ask for the state of their jobs",
        ))
    }

    async fn poll_work(&self, request: Request<PollWorkParams>) -> Answer<PollWorkResult> {
        let params = request.get_ref();
        let executor = params.metadata.clone().map(|executor| {
            let cores: Option<ExecutorSpecification> = executor.specification.map(Into::into);
            (
                executor.id,
                cores.is_some_and(|cores| params.num_free_vcores < cores.vcores),
            )
        });
        let answer = self.server.poll_work(request).await?;
        if let Some((id, is_busy)) = executor {
            let mut busy = self.busy.lock();
            if is_busy || !answer.get_ref().tasks.is_empty() {
                busy.insert(id);
            } else {
                busy.remove(&id);
            }
        }
        Ok(answer)
    }

    async fn register_executor(
        &self,
        request: Request<RegisterExecutorParams>,
    ) -> Answer<RegisterExecutorResult> {
        self.server.register_executor(request).await
    }

    async fn heart_beat_from_executor(
        &self,
        request: Request<HeartBeatParams>,
    ) -> Answer<HeartBeatResult> {
        self.server.heart_beat_from_executor(request).await
    }

    async fn update_task_status(
        &self,
        request: Request<UpdateTaskStatusParams>,
    ) -> Answer<UpdateTaskStatusResult> {
        self.server.update_task_status(request).await
    }

    async fn remove_session(
        &self,
        request: Request<RemoveSessionParams>,
    ) -> Answer<RemoveSessionResult> {
        self.server.remove_session(request).await
    }

    async fn get_job_metrics(
        &self,
        request: Request<GetJobMetricsParams>,
    ) -> Answer<GetJobMetricsResult> {
        self.server.get_job_metrics(request).await
    }

    async fn executor_stopped(
        &self,
        request: Request<ExecutorStoppedParams>,
    ) -> Answer<ExecutorStoppedResult> {
        self.server.executor_stopped(request).await
    }

    async fn cancel_job(&self, request: Request<CancelJobParams>) -> Answer<CancelJobResult> {
        self.leases.end(&request.get_ref().job_id);
        self.server.cancel_job(request).await
    }

    async fn clean_job_data(
        &self,
        request: Request<CleanJobDataParams>,
    ) -> Answer<CleanJobDataResult> {
        self.server.clean_job_data(request).await
    }
}
