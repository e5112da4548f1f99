//! Batches that hold little, where rows are long.
//!
//! DataFusion's operators gather rows by number: 8192 images of 100 kB each are most of a gigabyte in every sort, join
//! or exchange, whatever the memory limit. So a plan over long records is run with batches of fewer rows. And its views
//! keep every buffer alive that a row of a batch points into: a batch that a merge has made holds one of each of its
//! inputs, until it is copied.

use std::{fmt, sync::Arc};

use arrow_array::{
    Array, ArrayRef, GenericByteViewArray, ListArray, RecordBatch, RecordBatchOptions, cast::AsArray,
    types::ByteViewType,
};
use arrow_schema::DataType;
use datafusion::{
    common::{
        config::{ConfigOptions, ExecutionOptions},
        internal_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    datasource::source::DataSourceExec,
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, execution_plan::CardinalityEffect,
        execution_plan::replace_children_if_necessary, sorts::sort_preserving_merge::SortPreservingMergeExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::StreamExt;

use crate::{
    context::copy_of,
    source::{BATCH_SIZE, TfRecordSource},
};

/// Bytes of a batch of long rows.
///
/// Where a sort that has spilled merges, it holds two streams at least, two batches of each, and reserves twice what they
/// take: half of what it has set aside, so that it can always go on.
fn batch_bytes(options: &ExecutionOptions) -> usize {
    options.sort_spill_reservation_bytes / 8
}

/// Bytes that a merge reserves for each of its streams of such batches.
pub(crate) fn merge_stream_bytes(options: &ExecutionOptions) -> usize {
    4 * batch_bytes(options)
}

/// A rule for plans over long records: where a batch of them would be too long, a plan runs with a smaller `batch_size`,
/// and what sorts hand to a merge, which holds a batch of each, is compact.
///
/// [`session_context`](crate::session_context) has it. Another session's state is built with it:
///
/// ```
/// use std::sync::Arc;
/// use datafusion::{execution::SessionStateBuilder, prelude::SessionContext};
/// use tfarrow_datafusion::{LongRows, SessionContextTfRecordExt};
/// # fn main() -> datafusion::error::Result<()> {
/// let state = SessionStateBuilder::new().with_default_features().with_physical_optimizer_rule(Arc::new(LongRows));
/// let context = SessionContext::new_with_state(state.build());
/// context.enable_tfrecord()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct LongRows;

impl PhysicalOptimizerRule for LongRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let bytes = batch_bytes(&config.execution);
        let row = longest_row(plan.as_ref());
        if bytes == 0 || row.saturating_mul(BATCH_SIZE) <= bytes {
            return Ok(plan);
        }
        let rows = (bytes / row).clamp(1, config.execution.batch_size.get());
        let merged = plan.transform_up(|node| match node.is::<SortPreservingMergeExec>() {
            true => compact_inputs(node, rows).map(Transformed::yes),
            false => Ok(Transformed::no(node)),
        })?;
        Ok(Arc::new(CompactBatchesExec { input: merged.data, rows }))
    }

    fn name(&self) -> &'static str {
        "long_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn compact_inputs(node: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let compact = |input: &Arc<_>| Arc::new(CompactBatchesExec { input: Arc::clone(input), rows }) as _;
    let inputs = node.children().into_iter().map(compact).collect();
    replace_children_if_necessary(node, inputs)
}

/// Bytes of a row of the scan that has the longest, on average.
fn longest_row(plan: &dyn ExecutionPlan) -> usize {
    let scan = plan.downcast_ref::<DataSourceExec>().and_then(|scan| scan.downcast_to_file_source::<TfRecordSource>());
    let own = scan.map_or(0, |(_, source)| source.row_bytes());
    plan.children().into_iter().map(|child| longest_row(child.as_ref())).fold(own, usize::max)
}

/// Runs a plan with batches of so many rows, whatever the session says, and lets none hold much more than its rows.
#[derive(Debug)]
struct CompactBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl DisplayAs for CompactBatchesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "batch_size={}", self.rows),
            _ => write!(f, "CompactBatchesExec: batch_size={}", self.rows),
        }
    }
}

impl ExecutionPlan for CompactBatchesExec {
    fn name(&self) -> &'static str {
        "CompactBatchesExec"
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

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self { input, rows: self.rows })),
            Err(children) => internal_err!("CompactBatchesExec has one input, found {}", children.len()),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config = context.session_config().clone().with_batch_size(self.rows);
        let context = copy_of(&context).with_session_config(config);
        let batches = self.input.execute(partition, Arc::new(context))?.map(|batch| compact(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// The batch, with copies of the values of views that hold more than twice of what they show.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(compact_array).collect::<Result<_>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &rows)?)
}

fn compact_array(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::BinaryView => compact_views(array.as_binary_view()),
        DataType::Utf8View => compact_views(array.as_string_view()),
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, compact_array(lists.values())?, nulls)?)
        }
        _ => Arc::clone(array),
    })
}

fn compact_views<T: ByteViewType>(views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    match held / 2 > views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => Arc::new(views.clone()),
    }
}
