//! Cancellation of queries that compute for a long time without an output.
//!
//! Tokio can only stop a task at an await point. A join of two large tables may compute for minutes
//! between two of them: it compares pairs of rows without an output, or makes batches that the
//! operator above it consumes immediately. Joins, `unnest` and recursive queries therefore check
//! for cancellation before each batch of output, and most joins also before each evaluation of
//! their filter.
//!
//! Workaround for DataFusion 55: apache/datafusion#19358, open. Delete when its joins yield.

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
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    execution::TaskContext,
    logical_expr::ColumnarValue,
    physical_plan::{
        ExecutionPlan, PhysicalExpr,
        coop::make_cooperative,
        joins::{
            CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
            SortMergeJoinExec, SymmetricHashJoinExec, utils::JoinFilter,
        },
        recursive_query::RecursiveQueryExec,
        unnest::UnnestExec,
    },
};
use futures::{StreamExt, stream::BoxStream};
use tfarrow_datafusion::internals::{PassThrough, PassThroughExec};

/// A handle that cancels the queries of a session: those that are already planned, and none that
/// are planned later. Clones cancel the same queries.
///
/// A cancelled query ends with an error. The caller must also drop its stream, or the task that
/// reads it, which stops operators that wait and those that run in other tasks.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicU64>);

impl Cancellation {
    /// Cancels all queries that have been planned so far.
    pub fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The state of a query that is planned now.
    fn of_query(&self) -> QueryCancellation {
        QueryCancellation {
            session: self.clone(),
            at_plan: self.0.load(Ordering::Relaxed),
        }
    }
}

/// Detects whether one query has been cancelled.
#[derive(Clone, Debug)]
struct QueryCancellation {
    session: Cancellation,
    /// Number of cancellations of the session when the query was planned.
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

/// Adds cancellation checks to the joins of a plan, and to other operators that make many rows of
/// one.
pub(crate) fn cancellable(
    plan: Arc<dyn ExecutionPlan>,
    session: &Cancellation,
) -> Result<Arc<dyn ExecutionPlan>> {
    let query = session.of_query();
    let checked = plan.transform_up(|node| {
        if !multiplies(node.as_ref()) {
            return Ok(Transformed::no(node));
        }
        let input = with_checked_filter(&node, &query)?.unwrap_or(node);
        Ok(Transformed::yes(
            Arc::new(PassThroughExec::new(input, query.clone())) as _,
        ))
    })?;
    Ok(checked.data)
}

/// Returns whether an operator may make any number of output rows per input row.
fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.is::<NestedLoopJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<SymmetricHashJoinExec>()
        || node.is::<RecursiveQueryExec>()
        || node.is::<UnnestExec>()
}

/// Returns a join whose filter checks for cancellation; `None` for a join without a filter and for
/// other operators.
fn with_checked_filter(
    node: &Arc<dyn ExecutionPlan>,
    query: &QueryCancellation,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = join.filter() else {
            return Ok(None);
        };
        let join = NestedLoopJoinExecBuilder::from(join)
            .with_filter(Some(checked(filter, query)))
            .build()?;
        return Ok(Some(Arc::new(join)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = join.filter() else {
            return Ok(None);
        };
        return join
            .builder()
            .with_filter(Some(checked(filter, query)))
            .build_exec()
            .map(Some);
    }
    if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        let Some(filter) = join.filter() else {
            return Ok(None);
        };
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
    let expression = CancellableExpr {
        inner: Arc::clone(filter.expression()),
        query: query.clone(),
    };
    JoinFilter::new(
        Arc::new(expression),
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    )
}

/// Checks before each batch.
impl PassThrough for QueryCancellation {
    const NAME: &'static str = "CancellableExec";

    fn execute(
        &self,
        input: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let query = self.clone();
        // A cooperative stream yields regularly, so that an aborted task ends.
        let batches = make_cooperative(input.execute(partition, context)?);
        Ok(batches.map(move |batch| query.check().and(batch)).boxed())
    }
}

/// An expression that checks for cancellation before each evaluation.
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

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([inner]) => Ok(Arc::new(Self {
                inner,
                query: self.query.clone(),
            })),
            Err(children) => {
                internal_err!("CancellableExpr has one child, found {}", children.len())
            }
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
