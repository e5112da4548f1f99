//! End to end: the built program, looked at from outside, on the files of `testdata/`. A module a theme.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

mod convert;
mod count;
mod crashes;
mod damage;
#[cfg(unix)]
mod documents;
mod errors;
mod escapes;
mod exact;
mod head;
mod output;
mod recipes;
mod report;
mod schema;
#[rustfmt::skip]
#[expect(unreachable_pub, reason = "it is what the program prints, for any crate")]
mod sequence_schema;
mod side_by_side;
mod sources;
mod sql;
mod stats;
mod validate;
