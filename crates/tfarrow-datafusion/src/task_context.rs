//! Copies of task contexts, which do not implement `Clone`.

use datafusion::execution::TaskContext;

/// Copies a context, for a part of a plan with other settings.
pub fn copy_of(context: &TaskContext) -> TaskContext {
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
