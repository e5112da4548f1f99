//! What was passed over, for whoever reads on behind damage.

use std::{fmt, sync::Arc};

use crate::Error;

/// Records that a reader passed over.
#[derive(Clone, Debug, Default)]
pub struct SkippedRecords {
    /// How many there were.
    pub records: u64,
    /// How many of them are damaged; the others do not fit what they were read as.
    pub corrupt: u64,
    /// Files that could not be read on to their ends, so that it is not known how many records they have.
    pub files_cut: u64,
    /// What was wrong first.
    pub first: Option<Arc<Error>>,
}

impl fmt::Display for SkippedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |count| if count == 1 { "" } else { "s" };
        write!(f, "passed over {} record{}", self.records, s(self.records))?;
        if self.files_cut > 0 {
            write!(f, ", and the rest of {} file{}", self.files_cut, s(self.files_cut))?;
        }
        match &self.first {
            Some(first) => write!(f, "; the first: {first}"),
            None => Ok(()),
        }
    }
}
