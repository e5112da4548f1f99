//! Blocking work of async functions.

use datafusion::{
    common::runtime::SpawnedTask,
    error::{DataFusionError, Result},
};

/// Runs blocking work on a thread of the runtime that may block.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join_unwind().await;
    done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
}
