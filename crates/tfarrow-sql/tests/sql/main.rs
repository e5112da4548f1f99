//! Tests of SQL over TFRecord through the public API: one test binary, with one module per topic.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cancellation;
mod clauses;
mod common;
mod definitions;
mod dialect;
mod errors;
mod filters;
mod formats;
mod headings;
mod index;
mod limits;
mod listing_tables;
mod memory;
mod options;
mod order;
mod plain_sessions;
mod planning;
mod plans;
mod queries;
mod skip;
mod sources;
mod summarize;
mod tables;
mod unknown;
mod unnest;
mod writes;
