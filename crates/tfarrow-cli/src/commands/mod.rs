//! The subcommands, one file or folder each, from the arguments to the exit status. `inspect`,
//! `faults` and `partial` are shared by several of them.

pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod faults;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod merge;
pub(crate) mod partial;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod shell;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod validate;
pub(crate) mod verify;
