//! SQL of tfarrow on a cluster.
//!
//! [`PlanCodec`] encodes physical plans with scans and sinks of TFRecord, so that other machines run them. It works with each
//! engine that takes a [`PhysicalExtensionCodec`](datafusion_proto::physical_plan::PhysicalExtensionCodec), and depends on
//! none.

mod codec;
mod contexts;
mod nodes;

pub use codec::PlanCodec;
