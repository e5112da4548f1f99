//! Records that were passed over, for whoever wants to go on without them.

use crate::{Category, Error};

/// How many records were left out of their batches, and why the first one was.
#[derive(Debug, Default)]
pub struct Skipped {
    /// Records left out.
    pub records: u64,
    /// How many of them are damaged: their CRC does not hold.
    pub corrupt: u64,
    /// What is wrong with each, those of a batch in the order of its columns.
    pub errors: Vec<Error>,
}

impl Skipped {
    /// Whether an error is about one record, so that others can be had without it.
    pub(crate) fn takes(error: &Error) -> bool {
        matches!(error.category(), Category::Corrupt | Category::Data)
    }

    /// Counts one more.
    pub fn add(&mut self, error: Error) {
        self.records += 1;
        self.corrupt += u64::from(error.category() == Category::Corrupt);
        self.errors.push(error);
    }
}
