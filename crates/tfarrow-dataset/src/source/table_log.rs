//! Folders of tables whose files are listed in a log: a folder also has files that were removed
//! from the table.

use std::{ffi::OsStr, path::Path};

use crate::{Error, ErrorKind};

/// The folders of logs, and the errors for their tables.
const LOGS: [(&str, &str); 2] = [
    (
        "_delta_log",
        "a table of Delta Lake: its log _delta_log lists the files that are current, and others remain in the folder; write the \
         table to other files with a reader of Delta Lake, or name the files",
    ),
    (
        ".hoodie",
        "a table of Apache Hudi: its log .hoodie lists the files that are current, and others remain in the folder; write the \
         table to other files with a reader of Apache Hudi, or name the files",
    ),
];

/// The error for the table `folder` if `name` is that of its log; `None` for another name.
pub(super) fn table_log_error(folder: &Path, name: &OsStr) -> Option<Error> {
    let (_, message) = LOGS.iter().find(|(log, _)| name == *log)?;
    Some(Error::new(folder, ErrorKind::Usage(message)))
}
