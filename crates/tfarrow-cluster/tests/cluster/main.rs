//! Queries of the built program on a cluster of processes on this machine.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod certificates;
mod failures;
mod losses;
mod peers;
mod processes;
mod queries;
mod tls;
mod web;
