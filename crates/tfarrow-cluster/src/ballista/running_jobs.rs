//! The jobs whose tasks an executor runs. Ballista cancels no task of an executor that asks for
//! tasks, so that the executor asks whether their jobs still run.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use ballista_core::{
    JobId,
    serde::protobuf::{GetJobStatusParams, job_status::Status as JobState},
};
use tfarrow_dataset::internals::Lock;
use tokio::sync::watch;
use tonic::{Request, metadata::MetadataValue};

use crate::ballista::{client::SchedulerClient, headers::EXECUTOR};

/// Interval between two requests for the state of a job.
const INTERVAL: Duration = Duration::from_secs(2);

/// The jobs whose tasks run in this process.
pub(crate) struct RunningJobs {
    scheduler: SchedulerClient,
    /// The watches of jobs; those of jobs without tasks are gone.
    by_job: Lock<HashMap<JobId, Weak<watch::Sender<bool>>>>,
}

/// The watch of a job, which ends with its last task.
pub(crate) struct RunningJob {
    has_ended: Arc<watch::Sender<bool>>,
}

impl RunningJobs {
    pub(crate) fn new(scheduler: SchedulerClient) -> Self {
        Self {
            scheduler,
            by_job: Lock::default(),
        }
    }

    /// The watch of the job of a new task. Must be called in a runtime of tokio.
    pub(crate) fn of_task(&self, job: &JobId) -> RunningJob {
        let mut by_job = self.by_job.lock();
        if let Some(has_ended) = by_job.get(job).and_then(Weak::upgrade) {
            return RunningJob { has_ended };
        }
        let has_ended = Arc::new(watch::Sender::new(false));
        by_job.retain(|_, watch| watch.strong_count() > 0);
        by_job.insert(job.clone(), Arc::downgrade(&has_ended));
        tokio::spawn(watch_job(
            self.scheduler.clone(),
            job.clone(),
            Arc::downgrade(&has_ended),
        ));
        RunningJob { has_ended }
    }
}

impl RunningJob {
    /// Waits until the scheduler no longer runs the job.
    pub(crate) async fn ended(&self) {
        // There is no error: the sender is a part of this.
        _ = self
            .has_ended
            .subscribe()
            .wait_for(|has_ended| *has_ended)
            .await;
    }
}

/// Asks for the state of a job until it has ended, or has no task here.
async fn watch_job(mut scheduler: SchedulerClient, job: JobId, watch: Weak<watch::Sender<bool>>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(has_ended) = watch.upgrade() else {
            return;
        };
        let mut request = Request::new(GetJobStatusParams {
            job_id: job.clone().into(),
        });
        request
            .metadata_mut()
            .insert(EXECUTOR, MetadataValue::from_static("1"));
        // A scheduler that cannot be reached may still run the job.
        let Ok(answer) = scheduler.get_job_status(request).await else {
            continue;
        };
        let state = answer.into_inner().status.and_then(|status| status.status);
        if !matches!(state, Some(JobState::Queued(_) | JobState::Running(_))) {
            has_ended.send_replace(true);
            return;
        }
    }
}
