//! A physical optimizer rule for queries with `input_file_name()`.

use std::sync::Arc;

use datafusion::{
    common::{
        config::ConfigOptions,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    physical_optimizer::{PhysicalOptimizerRule, projection_pushdown::ProjectionPushdown},
    physical_plan::{ExecutionPlan, projection::ProjectionExec},
};
use tfarrow_datafusion::internals::uses_input_file_name;

/// Moves projections with `input_file_name()` into the scan, which evaluates it, before all other
/// rules. Otherwise DataFusion's rules may insert an exchange above a scan of one file, and the
/// projection stays above it, where it fails.
#[derive(Debug)]
pub(crate) struct InputFileName;

impl PhysicalOptimizerRule for InputFileName {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut found = false;
        plan.apply(|node| {
            found |= node
                .downcast_ref::<ProjectionExec>()
                .is_some_and(|node| uses_input_file_name(node.expr()));
            Ok(if found {
                TreeNodeRecursion::Stop
            } else {
                TreeNodeRecursion::Continue
            })
        })?;
        if found {
            ProjectionPushdown::new().optimize(plan, config)
        } else {
            Ok(plan)
        }
    }

    fn name(&self) -> &str {
        "file_names"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
