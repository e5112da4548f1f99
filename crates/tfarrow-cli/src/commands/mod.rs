//! What the program does: a file a command, each from its arguments to the exit status.

pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod diff;
mod faults;
pub(crate) mod head;
mod look;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod validate;
pub(crate) mod verify;
