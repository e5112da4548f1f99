//! Smaller batches for plans over long rows.
//!
//! DataFusion's operators buffer rows by count: 8192 images of 100 kB are most of a gigabyte in
//! every sort, join or exchange, whatever the memory limit. A plan over long records therefore runs
//! with fewer rows per batch. View arrays also keep each buffer alive that a row of the batch
//! refers to: a batch from a merge keeps a buffer of each input alive, until its values are copied.
//!
//! Workaround for DataFusion 55: apache/datafusion#25271 (view buffers, open), and batches by
//! bytes, whose pull request 23390 was not merged. Delete when its operators bound the bytes of a
//! batch.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, GenericByteViewArray, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StructArray, cast::AsArray, types::ByteViewType,
};
use arrow_schema::DataType;
use datafusion::{
    common::{
        config::{ConfigOptions, ExecutionOptions},
        tree_node::{Transformed, TreeNode},
    },
    datasource::source::DataSourceExec,
    error::Result,
    execution::TaskContext,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan, execution_plan::replace_children_if_necessary,
        sorts::sort_preserving_merge::SortPreservingMergeExec,
    },
};
use futures::{StreamExt, stream::BoxStream};

use crate::{
    optimizer::pass_through::{PassThrough, PassThroughExec},
    scan::{BATCH_SIZE, source::TfRecordSource},
    task_context::copy_of,
};

/// Maximum bytes of a batch of long rows.
///
/// A sort that merges spilled files holds at least two streams with two batches each, and reserves
/// twice their size. With this bound these take half of the sort's own reservation, so that it can
/// always continue.
fn batch_bytes(options: &ExecutionOptions) -> usize {
    options.sort_spill_reservation_bytes / 8
}

/// Bytes that a merge reserves for each input stream of such batches.
pub fn merge_stream_bytes(options: &ExecutionOptions) -> usize {
    4 * batch_bytes(options)
}

/// A physical optimizer rule for plans over long records: if a batch would be too large, the plan
/// runs with a smaller `batch_size`, and the inputs of merges, which hold a batch of each input,
/// are copied to compact arrays.
///
/// Sessions of `tfarrow_sql::session_context` have this rule. To add it to another session:
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
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
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
        Ok(Arc::new(PassThroughExec::new(
            merged.data,
            CompactBatches { rows },
        )))
    }

    fn name(&self) -> &'static str {
        "long_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn compact_inputs(node: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
    for input in node.children() {
        inputs.push(Arc::new(PassThroughExec::new(
            Arc::clone(input),
            CompactBatches { rows },
        )));
    }
    replace_children_if_necessary(node, inputs)
}

/// Average bytes per row of the scan with the longest rows.
fn longest_row(plan: &dyn ExecutionPlan) -> usize {
    let scan = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(|scan| scan.downcast_to_file_source::<TfRecordSource>());
    let own = scan.map_or(0, |(_, source)| source.row_bytes());
    plan.children()
        .into_iter()
        .map(|child| longest_row(child.as_ref()))
        .fold(own, usize::max)
}

/// Executes a plan with its own `batch_size`, and bounds the memory that each batch keeps alive.
#[derive(Clone, Debug)]
pub struct CompactBatches {
    /// Maximum rows of a batch.
    pub rows: usize,
}

impl PassThrough for CompactBatches {
    const NAME: &'static str = "CompactBatchesExec";

    fn settings(&self) -> Option<String> {
        Some(format!("batch_size={}", self.rows))
    }

    fn execute(
        &self,
        input: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let config = context.session_config().clone().with_batch_size(self.rows);
        let context = copy_of(&context).with_session_config(config);
        let batches = input.execute(partition, Arc::new(context))?;
        Ok(batches.map(|batch| compact(&batch?)).boxed())
    }
}

/// Copies view arrays whose buffers are more than twice as long as the values in the batch.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(compact_array)
        .collect::<Result<_>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns,
        &rows,
    )?)
}

fn compact_array(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::BinaryView => compact_views(array.as_binary_view()),
        DataType::Utf8View => compact_views(array.as_string_view()),
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let offsets = lists.offsets().clone();
            let nulls = lists.nulls().cloned();
            Arc::new(ListArray::try_new(
                Arc::clone(item),
                offsets,
                compact_array(lists.values())?,
                nulls,
            )?)
        }
        DataType::Struct(_) => Arc::new(compact_fields(array.as_struct())?),
        DataType::Map(entries, is_sorted) => {
            let maps = array.as_map();
            let offsets = maps.offsets().clone();
            let nulls = maps.nulls().cloned();
            let entries_array = compact_fields(maps.entries())?;
            Arc::new(MapArray::try_new(
                Arc::clone(entries),
                offsets,
                entries_array,
                nulls,
                *is_sorted,
            )?)
        }
        _ => Arc::clone(array),
    })
}

fn compact_fields(structs: &StructArray) -> Result<StructArray> {
    let columns = structs
        .columns()
        .iter()
        .map(compact_array)
        .collect::<Result<_>>()?;
    let nulls = structs.nulls().cloned();
    Ok(StructArray::try_new_with_length(
        structs.fields().clone(),
        columns,
        nulls,
        structs.len(),
    )?)
}

fn compact_views<T: ByteViewType>(views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views
        .data_buffers()
        .iter()
        .map(|buffer| buffer.capacity())
        .sum();
    match held / 2 > views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => Arc::new(views.clone()),
    }
}
