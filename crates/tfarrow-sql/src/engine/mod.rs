//! Engines that run the plans of a session elsewhere, such as on a cluster.
//!
//! ```text
//! session ─▶ plan ─▶ RemoteExec ─▶ Engine ┄▶ tasks ─▶ rows
//!              ▲                               │
//!              └── TaskNotices, TaskError ◀────┘
//! ```
//!
//! The session plans queries: it finds files, infers schemas, and applies its rules and options. An
//! [`Engine`] only runs plans. The tasks of an engine run in other processes, and return what they
//! skip and their errors as [`TaskNotices`] and [`TaskError`]. The session reports both as those of
//! its own scans. Nothing here depends on an engine.

mod placement;
mod remote_exec;
mod task_error;
mod task_notices;
mod whole_files;

use std::{fmt, path::Path, sync::Arc};

use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    error::Result,
    execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext},
    physical_plan::ExecutionPlan,
};
use tfarrow_datafusion::TfRecordSource;
use tfarrow_dataset::Shard;

pub(crate) use placement::placed;
pub use remote_exec::{RemoteExec, TaskProgress};
pub use task_error::TaskError;
pub use task_notices::{TaskNotices, with_task_notices};
pub(crate) use whole_files::may_end_early;
pub use whole_files::with_whole_files;

/// An engine that runs the physical plans of a session.
pub trait Engine: fmt::Debug + Send + Sync {
    /// The name that EXPLAIN ANALYZE shows.
    fn name(&self) -> String;

    /// Changes the settings and the rules with which a session plans.
    fn prepare(&self, session: SessionStateBuilder) -> SessionStateBuilder;

    /// Runs a plan, and returns the rows of all of its partitions, in their order. The engine
    /// updates `progress`, and cancels the tasks when the stream is dropped.
    ///
    /// # Errors
    /// The engine cannot run the plan. Errors of tasks are items of the stream.
    fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        progress: TaskProgress,
    ) -> Result<SendableRecordBatchStream>;
}

/// The scan of TFRecord files by an operator, if it is one.
fn scan_of(node: &dyn ExecutionPlan) -> Option<(&FileScanConfig, &TfRecordSource)> {
    node.downcast_ref::<DataSourceExec>()?
        .downcast_to_file_source::<TfRecordSource>()
}

/// The paths of the files of a scan.
fn paths(config: &FileScanConfig) -> impl Iterator<Item = &Path> {
    let files = config.file_groups.iter().flat_map(|group| group.iter());
    files
        .filter_map(|file| file.extension::<Shard>())
        .map(|shard| shard.path.as_path())
}

/// The scan of a plan that reads the file `path`.
fn source_of(plan: &Arc<dyn ExecutionPlan>, path: &Path) -> Option<TfRecordSource> {
    let mut found = None;
    let visited = plan.apply(|node| {
        let scan =
            scan_of(node.as_ref()).filter(|(config, _)| paths(config).any(|known| known == path));
        found = scan.map(|(_, source)| source.clone());
        Ok(if found.is_some() {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    visited.ok().and(found)
}
