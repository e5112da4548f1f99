//! Plans that are encoded and decoded: the same operators, the same rows; and errors for bytes that
//! are no plan.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod corrupt_bytes;
mod indexes;
mod round_trip;
mod tasks;
mod writes;
