//! The query planner of a session.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::{
    catalog::Session, error::Result, execution::context::QueryPlanner, logical_expr::LogicalPlan,
    physical_plan::ExecutionPlan,
};

use crate::{
    engine::{Engine, placed},
    optimizer::{
        cancellation::{Cancellation, cancellable},
        exchanges::with_single_inputs,
    },
    write::staging::staged_plan,
};

/// A planner that adds staging of output files to DataFusion's plans, and for plans that run in this process exchanges with
/// single inputs and cancellation.
#[derive(Debug)]
pub(crate) struct SessionPlanner {
    pub(crate) cancellation: Cancellation,
    /// The engine that runs the plans; `None`: this process.
    pub(crate) engine: Option<Arc<dyn Engine>>,
}

#[async_trait]
impl QueryPlanner for SessionPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = staged_plan(plan, state).await?;
        if let Some(engine) = &self.engine {
            return placed(plan, engine);
        }
        let plan = with_single_inputs(plan, state.runtime_env().memory_pool.as_ref())?;
        cancellable(plan, &self.cancellation)
    }
}
