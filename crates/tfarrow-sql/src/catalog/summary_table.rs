//! The statistics of a query as a table, for `SUMMARIZE SELECT ..` and `SUMMARIZE t`.
//!
//! ```text
//! SummaryTable ─ scan ─▶ SummarizeExec    a row for each feature and kind
//!                          └ the plan of the query, in one partition
//! ```

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    catalog::{Session, TableProvider},
    common::{internal_err, tree_node::TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, SessionState, TaskContext},
    logical_expr::{Expr, LogicalPlan, TableType},
    physical_expr::EquivalenceProperties,
    physical_expr::expressions::Column,
    physical_plan::{
        DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PhysicalExpr,
        PlanProperties,
        execution_plan::{Boundedness, CardinalityEffect, EmissionType},
        projection::ProjectionExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, stream};
use tfarrow_codec::Limits;
use tfarrow_datafusion::internals::{PlanFuture, TableRegistry, external};
use tfarrow_stats::{DatasetStatistics, RowStatistics};

use crate::statements::headings::with_headings;

/// Makes the rows of the table from statistics.
pub(super) type SummaryRows = fn(&DatasetStatistics) -> Result<RecordBatch>;

/// The statistics of the rows of a query.
pub(super) struct SummaryTable {
    /// The query.
    pub(super) plan: LogicalPlan,
    /// The schema of `rows`.
    pub(super) schema: SchemaRef,
    pub(super) rows: SummaryRows,
    pub(super) limits: Limits,
    /// Receives the notice of columns that are left out.
    pub(super) registry: Arc<TableRegistry>,
}

impl fmt::Debug for SummaryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryTable")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl TableProvider for SummaryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        _filters: &'life3 [Expr],
        _limit: Option<usize>,
    ) -> PlanFuture<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
    {
        self.plan_scan(state, projection)
    }
}

impl SummaryTable {
    /// Plans the query, and the operator that summarizes its rows.
    fn plan_scan<'a>(
        &'a self,
        state: &'a dyn Session,
        projection: Option<&'a Vec<usize>>,
    ) -> PlanFuture<'a> {
        Box::pin(async move {
            // Features have the names that the columns of the query have in its own result.
            let plan = match state.as_any().downcast_ref::<SessionState>() {
                Some(state) => with_headings(self.plan.clone(), state)?,
                None => self.plan.clone(),
            };
            let input = state.create_physical_plan(&plan).await?;
            let all: Arc<dyn ExecutionPlan> = Arc::new(SummarizeExec::new(
                input,
                Summarized {
                    rows: self.rows,
                    limits: self.limits,
                    registry: Arc::clone(&self.registry),
                },
                Arc::clone(&self.schema),
            ));
            let Some(projection) = projection else {
                return Ok(all);
            };
            let fields = projection
                .iter()
                .filter_map(|index| Some((*index, self.schema.fields().get(*index)?)));
            let columns = fields.map(|(index, field)| {
                let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
                (column, field.name().clone())
            });
            let projected: Arc<dyn ExecutionPlan> =
                Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), all)?);
            Ok(projected)
        })
    }
}

/// The work of a [`SummarizeExec`].
#[derive(Clone)]
struct Summarized {
    rows: SummaryRows,
    limits: Limits,
    registry: Arc<TableRegistry>,
}

/// An operator that reads all rows of its input, and returns their statistics.
struct SummarizeExec {
    input: Arc<dyn ExecutionPlan>,
    work: Summarized,
    properties: Arc<PlanProperties>,
}

impl SummarizeExec {
    fn new(input: Arc<dyn ExecutionPlan>, work: Summarized, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            input,
            work,
            properties: Arc::new(properties),
        }
    }
}

impl fmt::Debug for SummarizeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummarizeExec")
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for SummarizeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            DisplayFormatType::Default | DisplayFormatType::Verbose => f.write_str("SummarizeExec"),
        }
    }
}

impl ExecutionPlan for SummarizeExec {
    fn name(&self) -> &'static str {
        "SummarizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Unknown
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
            Ok([input]) => Ok(Arc::new(Self::new(input, self.work.clone(), self.schema()))),
            Err(children) => internal_err!("SummarizeExec has one input, found {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let work = self.work.clone();
        let schema = self.schema();
        let rows = stream::once(async move { work.of(input).await });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl Summarized {
    /// Reads all rows.
    async fn of(self, mut input: SendableRecordBatchStream) -> Result<RecordBatch> {
        let mut statistics = RowStatistics::new(input.schema(), self.limits).map_err(external)?;
        while let Some(batch) = input.next().await {
            statistics.add(&batch?).map_err(external)?;
        }
        let found = statistics.finish();
        self.registry.notices.notify_losses(&found.inferred.losses);
        (self.rows)(&found.summarize())
    }
}
