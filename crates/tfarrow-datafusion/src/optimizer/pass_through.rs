//! A physical operator that passes the rows of its input on, with a check or a copy for each batch.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use datafusion::{
    common::{internal_err, tree_node::TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        execution_plan::CardinalityEffect, stream::RecordBatchStreamAdapter,
    },
};
use futures::stream::BoxStream;

/// The work of a [`PassThroughExec`]: rows, their order and their schema stay the same.
pub trait PassThrough: Clone + fmt::Debug + Send + Sync + 'static {
    /// The name of the operator.
    const NAME: &'static str;

    /// The settings that EXPLAIN shows after the name, if there are any.
    fn settings(&self) -> Option<String> {
        None
    }

    /// Executes one partition of the input, and returns its batches.
    fn execute(
        &self,
        input: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>>;
}

/// An operator with one input, whose batches go through `work`.
#[derive(Debug)]
pub struct PassThroughExec<W> {
    input: Arc<dyn ExecutionPlan>,
    work: W,
}

impl<W> PassThroughExec<W> {
    /// Adds `work` above `input`.
    pub fn new(input: Arc<dyn ExecutionPlan>, work: W) -> Self {
        Self { input, work }
    }

    /// What the operator does.
    pub fn work(&self) -> &W {
        &self.work
    }
}

impl<W: PassThrough> DisplayAs for PassThroughExec<W> {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (format, self.work.settings()) {
            (DisplayFormatType::TreeRender, None) => Ok(()),
            (DisplayFormatType::TreeRender, Some(settings)) => writeln!(f, "{settings}"),
            (DisplayFormatType::Default | DisplayFormatType::Verbose, None) => f.write_str(W::NAME),
            (DisplayFormatType::Default | DisplayFormatType::Verbose, Some(settings)) => {
                write!(f, "{}: {settings}", W::NAME)
            }
        }
    }
}

impl<W: PassThrough> ExecutionPlan for PassThroughExec<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(input, self.work.clone()))),
            Err(children) => internal_err!("{} has one input, found {}", W::NAME, children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batches = self.work.execute(self.input.as_ref(), partition, context)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }
}
