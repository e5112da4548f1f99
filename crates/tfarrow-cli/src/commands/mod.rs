//! What the program does: a file a command, each from its arguments to the exit status.

mod columnar;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod head;
pub(crate) mod schema;
pub(crate) mod sql;
