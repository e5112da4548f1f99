//! The query planner of a session.

use std::sync::Arc;

use datafusion::{catalog::Session, execution::context::QueryPlanner, logical_expr::LogicalPlan};
use tfarrow_datafusion::internals::PlanFuture;

use crate::{
    engine::{Engine, placed},
    optimizer::{
        cancellation::{Cancellation, cancellable},
        exchanges::with_single_inputs,
        text_errors::with_text_errors,
    },
    write::staging::staged_plan,
};

/// A planner that adds staging of output files to DataFusion's plans, and for plans that run in
/// this process exchanges with single inputs, cancellation, and the columns of text that is not
/// UTF-8 in errors.
#[derive(Debug)]
pub(crate) struct SessionPlanner {
    pub(crate) cancellation: Cancellation,
    /// The engine that runs the plans; `None`: this process.
    pub(crate) engine: Option<Arc<dyn Engine>>,
}

impl QueryPlanner for SessionPlanner {
    fn create_physical_plan<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        plan: &'life1 LogicalPlan,
        state: &'life2 dyn Session,
    ) -> PlanFuture<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
    {
        self.physical_plan(plan, state)
    }
}

impl SessionPlanner {
    /// Plans a statement for the engine of the session, or for this process.
    fn physical_plan<'a>(
        &'a self,
        plan: &'a LogicalPlan,
        state: &'a dyn Session,
    ) -> PlanFuture<'a> {
        Box::pin(async move {
            let plan = staged_plan(plan, state).await?;
            if let Some(engine) = &self.engine {
                return placed(plan, engine);
            }
            let plan = with_single_inputs(plan, state.runtime_env().memory_pool.as_ref())?;
            cancellable(with_text_errors(plan)?, &self.cancellation)
        })
    }
}
