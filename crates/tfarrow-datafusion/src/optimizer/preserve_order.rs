//! A physical optimizer rule that preserves the order of rows of queries without an ORDER BY.

use std::sync::Arc;

use datafusion::{
    common::config::ConfigOptions,
    datasource::{
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        sink::DataSinkExec,
        source::DataSourceExec,
    },
    error::Result,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan, Partitioning,
        coalesce_partitions::CoalescePartitionsExec,
        coop::CooperativeExec,
        execution_plan::replace_children_if_necessary,
        filter::FilterExec,
        limit::{GlobalLimitExec, LocalLimitExec},
        projection::ProjectionExec,
        repartition::RepartitionExec,
        scalar_subquery::ScalarSubqueryExec,
        unnest::UnnestExec,
    },
};

use crate::{options::TfRecordOptions, scan::source::TfRecordSource, write::sink::TfRecordSink};

/// A physical optimizer rule for queries without sort, join, group or window: rows are in the order
/// of the files, and of the records in each file, unless `tfarrow.preserve_order` is false.
///
/// Such a plan scans its files as one partition. A scan of TFRecord still uses all cores, because
/// it decodes and filters a file on several threads, and reads the next files ahead. A scan of
/// Parquet, Arrow, CSV or JSON uses one core.
///
/// Sessions of `tfarrow_sql::session_context` have this rule. To add it to another session, as the
/// last rule that moves operators:
///
/// ```
/// use std::sync::Arc;
/// use datafusion::{execution::SessionStateBuilder, prelude::SessionContext};
/// use tfarrow_datafusion::{PreserveOrder, SessionContextTfRecordExt};
/// # fn main() -> datafusion::error::Result<()> {
/// let state = SessionStateBuilder::new().with_default_features().with_physical_optimizer_rule(Arc::new(PreserveOrder));
/// let context = SessionContext::new_with_state(state.build());
/// context.enable_tfrecord()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct PreserveOrder;

impl PhysicalOptimizerRule for PreserveOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let of_session = config
            .extensions
            .get::<TfRecordOptions>()
            .is_none_or(|options| options.preserve_order);
        Ok(in_order(&plan, of_session)?.unwrap_or(plan))
    }

    fn name(&self) -> &'static str {
        "preserve_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the plan with one partition whose rows are in order; `None` if the plan has no order to
/// preserve.
fn in_order(
    plan: &Arc<dyn ExecutionPlan>,
    of_session: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return scan_in_order(scan, of_session);
    }
    if !keeps_order(plan.as_ref()) {
        return Ok(None);
    }
    // A scalar subquery has several inputs; the first one provides the rows.
    let children = plan.children();
    let Some((first, others)) = children.split_first() else {
        return Ok(None);
    };
    let Some(first) = in_order(first, of_session)? else {
        return Ok(None);
    };
    if plan.is::<RepartitionExec>() {
        // With a single partition, the exchange is not needed.
        return Ok(Some(first));
    }
    let children = std::iter::once(first)
        .chain(others.iter().map(|other| Arc::clone(other)))
        .collect();
    replace_children_if_necessary(Arc::clone(plan), children).map(Some)
}

/// Returns whether an operator preserves the order of the rows of a single partition.
fn keeps_order(plan: &dyn ExecutionPlan) -> bool {
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
    }
    if let Some(exec) = plan.downcast_ref::<DataSinkExec>() {
        let sink = exec.sink().downcast_ref::<TfRecordSink>();
        return sink.is_none_or(TfRecordSink::preserves_order);
    }
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnnestExec>()
        || plan.is::<ScalarSubqueryExec>()
}

/// Returns the scan with all files in one group, in order; `None` if its options do not ask for the
/// order.
fn scan_in_order(
    scan: &DataSourceExec,
    of_session: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Ok(None);
    };
    let source = config.file_source().downcast_ref::<TfRecordSource>();
    if !source.map_or(of_session, TfRecordSource::preserves_order) {
        return Ok(None);
    }
    let files: Vec<_> = config
        .file_groups
        .iter()
        .flat_map(FileGroup::iter)
        .cloned()
        .collect();
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(vec![FileGroup::new(files)])
        .with_preserve_order(true)
        .build();
    Ok(Some(DataSourceExec::from_data_source(config)))
}
