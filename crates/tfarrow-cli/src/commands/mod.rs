//! The subcommands, one file or folder each, from the arguments to the exit status. `inspect`,
//! `faults`, `partial` and `part_settings` are shared by several of them.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod dry_run;
pub(crate) mod faults;
pub(crate) mod head;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod part_settings;
pub(crate) mod partial;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod validate;
pub(crate) mod verify;
