//! Copies of what DataFusion does not copy itself.

use datafusion::execution::TaskContext;

/// The same context, to be changed for a part of a plan.
pub(crate) fn copy_of(context: &TaskContext) -> TaskContext {
    TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    )
}
