//! DataFusion Ballista as the engine of a session: the scheduler, the executors, and the client.
//!
//! ```text
//! session ─▶ ClusterEngine ─▶ ClusterJob ┄▶ scheduler (SchedulerService) ◀┄ executors (Stages)
//!                                 ▲                                   │
//!                                 └──────────── results ◀┄────────────┘
//! ```
//!
//! Executors ask the scheduler for tasks. A plan is a message of [`PlanCodec`]. docs/cluster.md has
//! the experiments from which the settings follow.

mod client;
mod cluster_job;
mod connections;
mod engine;
mod executor;
mod fetch_service;
mod headers;
mod job_failure;
mod job_folder;
mod leases;
mod progress;
mod results;
mod root;
mod running_jobs;
mod scheduler;
mod service;
mod stages;
mod tls;
mod work_folder;

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::{
    error::Result,
    execution::{SessionState, SessionStateBuilder},
    prelude::SessionConfig,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use tfarrow_sql::{SessionOptions, session_context};

pub use engine::ClusterEngine;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::{SchedulerOptions, run_scheduler};
pub use tls::Tls;

use crate::PlanCodec;

/// Stack size of threads that decode plans, in bytes: that of the threads of `tfarrow sql`.
pub const STACK_BYTES: usize = 16 << 20;
/// Maximum bytes of a message between two processes. A message contains a plan, or at least one
/// row.
const MOST_MESSAGE_BYTES: usize = 256 << 20;

/// The codec of clients and executors.
fn codec() -> PlanCodec {
    PlanCodec::new(inner_codec())
}

/// The codec of Ballista's own operators.
fn inner_codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(BallistaPhysicalExtensionCodec::default())
}

/// The state of a session of a scheduler or an executor, which has all functions of a session that
/// plans.
fn state(config: SessionConfig) -> Result<SessionState> {
    let context = session_context(SessionOptions::default())?;
    Ok(SessionStateBuilder::new_from_existing(context.state())
        .with_config(config)
        .build())
}
