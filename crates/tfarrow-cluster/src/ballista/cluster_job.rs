//! A job: a plan that the scheduler runs.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use ballista_core::{
    JobId,
    serde::protobuf::{
        CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobMetricsParams,
        GetJobStatusParams, KeyValuePair, execute_query_failure_result::Failure,
        execute_query_params::Query, execute_query_result, job_status::Status as JobState,
        operator_metric::Metric,
    },
    version::insert_version_header,
};
use datafusion::{
    common::exec_datafusion_err,
    error::{DataFusionError, Result},
    prelude::SessionConfig,
};
use tfarrow_sql::{TaskError, TaskNotices, TaskProgress};
use tonic::Request;

use crate::ballista::{
    client::{Connection, connected, failed},
    headers::{CORES, FINISHED, NOTICES, TASKS, number},
    job_failure::JobFailure,
    results::Results,
};

/// Times between two requests for the state of a job: the first, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Time without executors after which the user is warned.
const NO_EXECUTORS_TIME: Duration = Duration::from_secs(1);
/// Time for which the scheduler may not know a job: it takes a moment to accept one, and one that
/// was started again knows none.
const UNKNOWN_TIME: Duration = Duration::from_secs(5);
/// Maximum time that a cancelled query waits for the scheduler. The scheduler cancels jobs without
/// a client itself.
const CANCEL_TIME: Duration = Duration::from_millis(300);

/// A job of a scheduler. When this is dropped, the job is cancelled, and its results are removed.
#[derive(Debug)]
pub(crate) struct ClusterJob {
    connection: Connection,
    id: JobId,
    /// Whether the scheduler still runs the job, or keeps its results.
    is_open: AtomicBool,
}

/// The end of a job.
pub(crate) enum Ended {
    /// The results are complete.
    Complete(Results),
    /// A task has failed.
    Failed(TaskError),
    /// Results of a lost executor were read in part, so that the job has to run again.
    ExecutorLost,
}

impl ClusterJob {
    /// Submits a plan.
    ///
    /// # Errors
    /// The scheduler cannot be reached, or refuses the plan.
    pub(crate) async fn submit(
        connection: &Connection,
        plan: Vec<u8>,
        config: &SessionConfig,
    ) -> Result<Self> {
        let connection = connection.clone();
        let mut settings = Vec::new();
        for entry in config.options().entries() {
            // Those of the engine that are set.
            if !entry.key.starts_with("tfarrow.") && entry.value.is_some() {
                settings.push(KeyValuePair {
                    key: entry.key,
                    value: entry.value,
                });
            }
        }
        let mut request = Request::new(ExecuteQueryParams {
            session_id: connection.session.clone(),
            settings,
            operation_id: uuid::Uuid::now_v7().to_string(),
            query: Some(Query::PhysicalPlan(plan)),
        });
        insert_version_header(request.metadata_mut());
        let answer = connection.scheduler.clone().execute_query(request).await;
        let answer = answer.map_err(|status| failed(&connection.address, &status))?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(success)) => Ok(Self {
                connection,
                id: success.job_id.into(),
                is_open: AtomicBool::new(true),
            }),
            Some(execute_query_result::Result::Failure(failure)) => {
                Err(refused(&connection, failure.failure))
            }
            None => Err(refused(&connection, None)),
        }
    }

    /// Waits for the end of the job.
    ///
    /// # Errors
    /// The scheduler cannot be reached.
    pub(crate) async fn end(&self, progress: &TaskProgress) -> Result<Ended> {
        let mut wait = FIRST_WAIT;
        let mut known = Instant::now();
        let mut no_executors = NoExecutorsWarning::new();
        loop {
            let params = GetJobStatusParams {
                job_id: self.id.clone().into(),
            };
            let answer = self
                .connection
                .scheduler
                .clone()
                .get_job_status(params)
                .await;
            let answer = answer.map_err(|status| self.failed(&status))?;
            let headers = answer.metadata();
            if let (Some(finished), Some(all)) = (number(headers, FINISHED), number(headers, TASKS))
            {
                progress.set(finished, all);
            }
            if no_executors.is_due(number(headers, CORES)) {
                let address = &self.connection.address;
                let text =
                    format!("the scheduler at {address} has no executors: the query waits for one");
                (self.connection.on_message)(&text);
            }
            match answer.into_inner().status.and_then(|status| status.status) {
                Some(JobState::Successful(job)) => {
                    return Ok(
                        match Results::new(job.partition_location, self.connection.tls.clone()) {
                            Some(results) => Ended::Complete(results),
                            None => Ended::ExecutorLost,
                        },
                    );
                }
                Some(JobState::Failed(job)) => {
                    return Ok(match JobFailure::of_text(&job.error) {
                        Some(JobFailure::Task(error)) => Ended::Failed(error),
                        Some(JobFailure::ExecutorLost) => Ended::ExecutorLost,
                        None => Ended::Failed(TaskError::text(format!(
                            "the query failed: {}",
                            job.error.trim()
                        ))),
                    });
                }
                Some(JobState::Queued(_) | JobState::Running(_)) => known = Instant::now(),
                None if known.elapsed() < UNKNOWN_TIME => {}
                None => {
                    let address = &self.connection.address;
                    return Err(exec_datafusion_err!(
                        "the scheduler at {address} was started again, and lost the query"
                    ));
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The notices of the scans of all tasks.
    ///
    /// # Errors
    /// The scheduler cannot be reached.
    pub(crate) async fn notices(&self) -> Result<TaskNotices> {
        let params = GetJobMetricsParams {
            job_id: self.id.clone().into(),
        };
        let answer = self
            .connection
            .scheduler
            .clone()
            .get_job_metrics(params)
            .await;
        let stages = answer
            .map_err(|status| self.failed(&status))?
            .into_inner()
            .stages;
        let mut notices = TaskNotices::default();
        for stage in stages {
            let mut of_stage = TaskNotices::default();
            for metric in stage
                .operators
                .into_iter()
                .flat_map(|operator| operator.metrics)
            {
                let Some(Metric::Count(count)) = metric.metric else {
                    continue;
                };
                let Some(json) = count.name.strip_prefix(NOTICES) else {
                    continue;
                };
                let task = serde_json::from_str(json);
                of_stage
                    .merge_task(task.map_err(|error| DataFusionError::External(Box::new(error)))?);
            }
            notices.merge(of_stage);
        }
        Ok(notices)
    }

    /// Removes the results from the executors.
    pub(crate) async fn remove_results(&self) {
        self.is_open.store(false, Ordering::Relaxed);
        let params = removal(self.id.clone().into());
        // The scheduler removes results itself after some time.
        _ = self
            .connection
            .scheduler
            .clone()
            .clean_job_data(params)
            .await;
    }

    fn failed(&self, status: &tonic::Status) -> DataFusionError {
        failed(&self.connection.address, status)
    }
}

/// The warning of a cluster without executors, which a job gives once.
struct NoExecutorsWarning {
    /// The last time at which there was an executor.
    seen: Instant,
    is_given: bool,
}

impl NoExecutorsWarning {
    fn new() -> Self {
        Self {
            seen: Instant::now(),
            is_given: false,
        }
    }

    /// Whether to give the warning now. `cores` is the number of cores of all executors.
    fn is_due(&mut self, cores: Option<u32>) -> bool {
        if cores != Some(0) {
            self.seen = Instant::now();
        }
        let is_due = !self.is_given && self.seen.elapsed() >= NO_EXECUTORS_TIME;
        self.is_given |= is_due;
        is_due
    }
}

/// The error of a plan that the scheduler refuses.
fn refused(connection: &Connection, reason: Option<Failure>) -> DataFusionError {
    let reason = match reason {
        Some(
            Failure::SessionNotFound(text)
            | Failure::PlanParsingFailure(text)
            | Failure::SqlParsingFailure(text),
        ) => text,
        None => "no reason is given".to_owned(),
    };
    exec_datafusion_err!(
        "the scheduler at {} refuses the plan: {reason}",
        connection.address
    )
}

/// The request to remove the results of all stages of a job.
fn removal(job_id: String) -> CleanJobDataParams {
    CleanJobDataParams {
        job_id,
        remove_stage_ids: Vec::new(),
    }
}

impl Drop for ClusterJob {
    fn drop(&mut self) {
        if !*self.is_open.get_mut() {
            return;
        }
        let address = self.connection.address.clone();
        let tls = self.connection.tls.clone();
        let job_id = String::from(self.id.clone());
        // The runtime of the session may be about to end, and its connection with it.
        let cancelling = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                let mut scheduler = connected(&address, tls.as_ref()).await.ok()?;
                scheduler
                    .cancel_job(CancelJobParams {
                        job_id: job_id.clone(),
                    })
                    .await
                    .ok()?;
                scheduler.clean_job_data(removal(job_id)).await.ok()
            })
        });
        let deadline = Instant::now() + CANCEL_TIME;
        while !cancelling.is_finished() && Instant::now() < deadline {
            thread::sleep(FIRST_WAIT);
        }
    }
}
