//! The operator whose input an engine runs.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use datafusion::{
    common::{internal_err, tree_node::TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::EquivalenceProperties,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
        execution_plan::{Boundedness, EmissionType},
    },
};

use crate::engine::Engine;

/// The progress of the tasks that scan files.
#[derive(Clone, Debug, Default)]
pub struct TaskProgress {
    /// Finished tasks in the upper half, all tasks in the lower half.
    counts: Arc<AtomicU64>,
}

impl TaskProgress {
    /// Sets the number of finished tasks, and of all tasks.
    pub fn set(&self, finished: u32, all: u32) {
        self.counts.store(
            u64::from(finished) << 32 | u64::from(all),
            Ordering::Relaxed,
        );
    }

    /// The part of `bytes` that the finished tasks have read. Tasks have about the same number of
    /// bytes.
    pub(crate) fn read_of(&self, bytes: u64) -> u64 {
        let counts = self.counts.load(Ordering::Relaxed);
        let finished = u128::from(counts >> 32);
        let all = u128::from(counts & u64::from(u32::MAX));
        u64::try_from(u128::from(bytes) * finished / all.max(1)).unwrap_or(bytes)
    }
}

/// The operator whose input an engine runs. It has one partition: the rows of all partitions of its
/// input.
#[derive(Debug)]
pub struct RemoteExec {
    input: Arc<dyn ExecutionPlan>,
    engine: Arc<dyn Engine>,
    progress: TaskProgress,
    properties: Arc<PlanProperties>,
}

impl RemoteExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, engine: Arc<dyn Engine>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            input,
            engine,
            progress: TaskProgress::default(),
            properties: Arc::new(properties),
        }
    }

    /// The progress of the tasks.
    pub(crate) fn progress(&self) -> &TaskProgress {
        &self.progress
    }

    /// The plan that the engine runs.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for RemoteExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "engine={}", self.engine.name()),
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "RemoteExec: engine={}", self.engine.name())
            }
        }
    }
}

impl ExecutionPlan for RemoteExec {
    fn name(&self) -> &'static str {
        "RemoteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(input, Arc::clone(&self.engine)))),
            Err(children) => internal_err!("RemoteExec has one input, and not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("RemoteExec has one partition, and no partition {partition}");
        }
        self.engine
            .run(Arc::clone(&self.input), context, self.progress.clone())
    }
}
