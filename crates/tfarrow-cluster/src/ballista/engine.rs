//! A cluster as the engine of a session.

use std::sync::Arc;

use ballista_core::{extension::SessionConfigExt, optimizer::with_ballista_optimizer_rules};
use datafusion::{
    arrow::record_batch::RecordBatch,
    common::exec_datafusion_err,
    error::Result,
    execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext},
    physical_plan::{ExecutionPlan, stream::RecordBatchStreamAdapter},
};
use futures::{
    StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};
use tfarrow_sql::{Engine, TaskProgress, with_whole_files};

use crate::{
    ballista::{
        MOST_MESSAGE_BYTES,
        client::Connection,
        cluster_job::{ClusterJob, Ended},
        codec,
        stages::writes_files,
        tls::Tls,
    },
    with_single_tasks,
};

/// Number of partitions per core of the cluster: executors that finish early take more of them.
const PARTITIONS_PER_CORE: usize = 3;
/// Number of cores that is assumed of a cluster whose executors have not started yet.
const ASSUMED_CORES: usize = 4;
/// Bytes of a result that are fetched before its first row is returned.
const HELD_BYTES: usize = 64 << 20;
/// Maximum number of times that a query runs, if executors are lost while it runs.
const ATTEMPTS: usize = 4;

/// A cluster of Ballista as the engine of a session.
#[derive(Clone, Debug)]
pub struct ClusterEngine {
    connection: Connection,
}

impl ClusterEngine {
    /// Connects to the scheduler at `address`, `HOST:PORT`. `on_message` is called with warnings
    /// for the user.
    ///
    /// # Errors
    /// No scheduler of tfarrow is there.
    pub async fn connect(address: String, tls: Option<Tls>, on_message: fn(&str)) -> Result<Self> {
        Ok(Self {
            connection: Connection::open(address, tls, on_message).await?,
        })
    }

    /// Runs a plan until it is complete, and returns its rows. As long as it has returned no row,
    /// it runs again if executors are lost after their results were read, and with whole files
    /// after an error of a piece. A plan that writes files runs again only after an error of a
    /// piece, which is an error of its input: otherwise the files may be there.
    async fn rows(
        self,
        mut bytes: Vec<u8>,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        progress: TaskProgress,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut attempt = 1;
        loop {
            let job = ClusterJob::submit(&self.connection, bytes.clone(), context.session_config())
                .await?;
            let ended = job.end(&progress).await?;
            let lost = match ended {
                Ended::Complete(results) => {
                    let mut batches = results.fetch();
                    match first_batches(&mut batches).await {
                        Err(lost) => lost,
                        Ok(first) => {
                            job.notices().await?.send(&plan);
                            let end = stream::once(async move { job.remove_results().await });
                            let end = end.filter_map(|()| future::ready(None));
                            return Ok(stream::iter(first)
                                .map(Ok)
                                .chain(batches)
                                .chain(end)
                                .boxed());
                        }
                    }
                }
                Ended::Failed(error) => {
                    job.remove_results().await;
                    if !error.is_of_piece() {
                        return Err(error.into_error(&plan));
                    }
                    bytes = encoded(with_whole_files(Arc::clone(&plan))?)?;
                    continue;
                }
                Ended::ExecutorLost => {
                    exec_datafusion_err!("an executor was lost while the query ran")
                }
            };
            job.remove_results().await;
            if writes_files(&plan)? {
                return Err(lost.context(
                    "the statement may have written its files; look at them before it runs again",
                ));
            }
            if attempt == ATTEMPTS {
                return Err(lost.context(format!("executors were lost in {ATTEMPTS} attempts")));
            }
            attempt += 1;
        }
    }
}

/// Fetches the first batches of a result, or all of a short one: an executor that is lost later
/// than that has none of its rows.
async fn first_batches(
    batches: &mut BoxStream<'_, Result<RecordBatch>>,
) -> Result<Vec<RecordBatch>> {
    let mut first = Vec::new();
    let mut bytes = 0;
    while bytes < HELD_BYTES
        && let Some(batch) = batches.try_next().await?
    {
        bytes += batch.get_array_memory_size();
        first.push(batch);
    }
    Ok(first)
}

/// The message of a plan whose partitions run as tasks.
fn encoded(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    codec().encode(with_single_tasks(plan)?)
}

impl Engine for ClusterEngine {
    fn name(&self) -> String {
        format!("ballista {}", self.connection.address)
    }

    fn prepare(&self, mut session: SessionStateBuilder) -> SessionStateBuilder {
        let cores = if self.connection.cores == 0 {
            ASSUMED_CORES
        } else {
            self.connection.cores
        };
        let config = session
            .config()
            .take()
            .unwrap_or_default()
            .upgrade_for_ballista();
        let config = config
            .with_target_partitions(cores.saturating_mul(PARTITIONS_PER_CORE))
            .set_usize("ballista.scheduler.max_partitions_per_task", 1)
            .set_usize("ballista.client.grpc_max_message_size", MOST_MESSAGE_BYTES);
        let optimizer = session.optimizer().take().unwrap_or_default();
        let rules = with_ballista_optimizer_rules(&optimizer.rules);
        session.with_config(config).with_optimizer_rules(rules)
    }

    fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        progress: TaskProgress,
    ) -> Result<SendableRecordBatchStream> {
        let schema = plan.schema();
        let bytes = encoded(Arc::clone(&plan))?;
        let batches = stream::once(self.clone().rows(bytes, plan, context, progress)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
