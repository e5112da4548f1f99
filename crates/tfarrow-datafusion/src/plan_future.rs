//! The future of a plan.
//!
//! DataFusion declares its traits with `async_trait`. Functions of these traits whose futures hold
//! an [`Expr`] or a [`LogicalPlan`] are written without this macro in this crate, and return the
//! future of a function whose lifetimes have no bounds. rustc proves that a future is `Send`, here
//! that all types of a syntax tree are `Sync`. It keeps the proof of a function without bounds for
//! all others, and repeats it in each function with bounds, which takes 8 s each time.
//!
//! [`Expr`]: datafusion::logical_expr::Expr
//! [`LogicalPlan`]: datafusion::logical_expr::LogicalPlan

use std::sync::Arc;

use datafusion::{error::Result, physical_plan::ExecutionPlan};
use futures::future::BoxFuture;

/// The future of a function that plans.
pub type PlanFuture<'a> = BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>>;
