//! SQL of tfarrow on a cluster.
//!
//! [`PlanCodec`] encodes physical plans with scans and sinks of TFRecord, so that other machines
//! run them. It works with each engine that takes a
//! [`PhysicalExtensionCodec`](datafusion_proto::physical_plan::PhysicalExtensionCodec), and depends
//! on none. [`with_single_tasks`] prepares a plan for engines that run each partition as a task.
//!
//! The feature `ballista` adds the processes of a cluster, with DataFusion Ballista as the engine,
//! and the program `tfarrow-cluster`.

#[cfg(feature = "ballista")]
pub mod ballista;
mod codec;
mod contexts;
mod nodes;
mod single_task;

pub use codec::PlanCodec;
pub use single_task::with_single_tasks;
