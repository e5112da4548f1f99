//! `input_file_name()` in any expression.

use std::sync::Arc;

use datafusion::{
    common::{
        config::ConfigOptions,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    functions::core::input_file_name::InputFileNameFunc,
    physical_expr::projection::ProjectionExpr,
    physical_expr_adapter::rewrite::expr_references_scalar_udf,
    physical_optimizer::{PhysicalOptimizerRule, projection_pushdown::ProjectionPushdown},
    physical_plan::{ExecutionPlan, projection::ProjectionExec},
};

/// Moves projections that ask for the name of a file into the scan, which alone knows it, before all other rules. With
/// one file DataFusion's own rules deal its rows out to all cores first, and the projection stays above that, where it
/// fails.
#[derive(Debug)]
pub(crate) struct FileNames;

impl PhysicalOptimizerRule for FileNames {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut asks = false;
        plan.apply(|node| {
            asks |= node.downcast_ref::<ProjectionExec>().is_some_and(|node| asks_for_names(node.expr()));
            Ok(if asks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if asks { ProjectionPushdown::new().optimize(plan, config) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        "file_names"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a column is made of the name of a file.
pub(crate) fn asks_for_names<'p>(columns: impl IntoIterator<Item = &'p ProjectionExpr>) -> bool {
    columns.into_iter().any(|column| expr_references_scalar_udf::<InputFileNameFunc>(&column.expr))
}
