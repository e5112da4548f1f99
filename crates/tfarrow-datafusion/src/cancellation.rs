//! Cancels queries that compute for long without an output.
//!
//! Tokio stops a task where it awaits. A join of two large tables computes for minutes between two such places: it loops
//! over pairs of rows without an output, or makes batches that the operator above it takes at once. So joins check, for
//! each batch that they make and for each evaluation of their filter, whether their query was cancelled.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::{
    common::{
        exec_err, internal_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::ColumnarValue,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        coop::make_cooperative,
        execution_plan::CardinalityEffect,
        joins::{
            CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
            SymmetricHashJoinExec, utils::JoinFilter,
        },
        recursive_query::RecursiveQueryExec,
        stream::RecordBatchStreamAdapter,
        unnest::UnnestExec,
    },
};
use futures::StreamExt;

/// Cancels the queries of a session: those that were planned before, and none that are planned later. A clone cancels the
/// same queries.
///
/// A query that is cancelled ends with an error. Dropping its stream, or the task that reads it, is still needed: it stops
/// what runs elsewhere, and what waits.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicU64>);

impl Cancellation {
    /// Cancels all queries that were planned so far.
    pub fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The cancellation of one query.
    fn of_query(&self) -> QueryCancellation {
        QueryCancellation { session: self.clone(), at_plan: self.0.load(Ordering::Relaxed) }
    }
}

/// Tells whether one query was cancelled.
#[derive(Clone, Debug)]
struct QueryCancellation {
    session: Cancellation,
    /// How many times queries had been cancelled when this one was planned.
    at_plan: u64,
}

impl QueryCancellation {
    fn check(&self) -> Result<()> {
        match self.session.0.load(Ordering::Relaxed) == self.at_plan {
            true => Ok(()),
            false => exec_err!("the query was cancelled"),
        }
    }
}

/// The plan, with checks in its joins and wherever one row makes many.
pub(crate) fn cancellable(plan: Arc<dyn ExecutionPlan>, session: &Cancellation) -> Result<Arc<dyn ExecutionPlan>> {
    let query = session.of_query();
    let checked = plan.transform_up(|node| {
        if !multiplies(node.as_ref()) {
            return Ok(Transformed::no(node));
        }
        let input = with_checked_filter(&node, &query)?.unwrap_or(node);
        Ok(Transformed::yes(Arc::new(CancellableExec { input, query: query.clone() }) as _))
    })?;
    Ok(checked.data)
}

/// Whether an operator may make any number of rows of each of its input.
fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.is::<NestedLoopJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<SymmetricHashJoinExec>()
        || node.is::<RecursiveQueryExec>()
        || node.is::<UnnestExec>()
}

/// A join whose filter checks before it is evaluated; `None` where there is no filter.
fn with_checked_filter(
    node: &Arc<dyn ExecutionPlan>,
    query: &QueryCancellation,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = join.filter() else { return Ok(None) };
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(checked(filter, query))).build()?;
        return Ok(Some(Arc::new(join)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = join.filter() else { return Ok(None) };
        return join.builder().with_filter(Some(checked(filter, query))).build_exec().map(Some);
    }
    if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        let Some(filter) = join.filter() else { return Ok(None) };
        let join = SortMergeJoinExec::try_new(
            Arc::clone(join.left()),
            Arc::clone(join.right()),
            join.on().to_vec(),
            Some(checked(filter, query)),
            join.join_type(),
            join.sort_options().to_vec(),
            join.null_equality(),
        )?;
        return Ok(Some(Arc::new(join)));
    }
    Ok(None)
}

fn checked(filter: &JoinFilter, query: &QueryCancellation) -> JoinFilter {
    let expression = CancellableExpr { inner: Arc::clone(filter.expression()), query: query.clone() };
    JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// An operator that checks before it hands a batch on.
#[derive(Debug)]
struct CancellableExec {
    input: Arc<dyn ExecutionPlan>,
    query: QueryCancellation,
}

impl DisplayAs for CancellableExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "CancellableExec"),
        }
    }
}

impl ExecutionPlan for CancellableExec {
    fn name(&self) -> &'static str {
        "CancellableExec"
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
            Ok([input]) => Ok(Arc::new(Self { input, query: self.query.clone() })),
            Err(children) => internal_err!("CancellableExec has one input, found {}", children.len()),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let query = self.query.clone();
        // It also yields now and then, so that a task that is aborted ends.
        let batches = make_cooperative(self.input.execute(partition, context)?);
        let checked = batches.map(move |batch| query.check().and(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), checked)))
    }
}

/// An expression that checks before it is evaluated.
#[derive(Debug)]
struct CancellableExpr {
    inner: Arc<dyn PhysicalExpr>,
    query: QueryCancellation,
}

impl PartialEq for CancellableExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for CancellableExpr {}

impl Hash for CancellableExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for CancellableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for CancellableExpr {
    fn data_type(&self, input: &Schema) -> Result<DataType> {
        self.inner.data_type(input)
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.inner.nullable(input)
    }

    fn return_field(&self, input: &Schema) -> Result<FieldRef> {
        self.inner.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.query.check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([inner]) => Ok(Arc::new(Self { inner, query: self.query.clone() })),
            Err(children) => internal_err!("CancellableExpr has one child, found {}", children.len()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
