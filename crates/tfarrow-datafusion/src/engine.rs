//! Engines that run the plans of a session elsewhere.

use std::{fmt, sync::Arc};

use datafusion::{catalog::Session, error::Result, physical_plan::ExecutionPlan};

/// An engine that runs the physical plans of a session, such as a cluster. The session plans queries: it finds files, infers
/// schemas, and applies its rules and options.
pub trait Engine: fmt::Debug + Send + Sync {
    /// Returns the plan that this process executes in place of `plan`.
    ///
    /// # Errors
    /// The engine cannot run the plan.
    fn place(&self, plan: Arc<dyn ExecutionPlan>, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>>;
}
