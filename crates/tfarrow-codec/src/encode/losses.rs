//! Losses: values that would change are errors, or are counted if losses are allowed.

use std::fmt::Display;

use crate::{Error, ErrorKind, Position, Result};

/// The number of times that one kind of change was made to one column.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) column: String,
    pub(super) what: &'static str,
    pub(super) times: u64,
}

/// Records the losses of one column in one batch.
///
/// ```text
/// lossy = false    refuse: error           count: nothing to count
/// lossy = true     refuse: Ok              count: added to Encoder::losses
/// ```
pub(super) struct Ledger<'a> {
    column: &'a str,
    lossy: bool,
    /// Number of the first record of the batch.
    first: u64,
    losses: &'a mut Vec<Loss>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(column: &'a str, lossy: bool, first: u64, losses: &'a mut Vec<Loss>) -> Self {
        Self { column, lossy, first, losses }
    }

    /// Returns an error for row `row` of the batch, unless losses are allowed. `found` describes the value, and
    /// `instead` a remedy.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] with the number of the record.
    pub(super) fn refuse(&self, row: usize, found: impl Display, instead: &str) -> Result<()> {
        if self.lossy {
            return Ok(());
        }
        let record = self.first + row as u64;
        let message = format!("row {record} has {found}; {instead}, or allow the change with --lossy");
        Err(self.error(record, ErrorKind::Lossy(message)))
    }

    /// Adds `times` changes of the kind `what`.
    pub(super) fn count(&mut self, what: &'static str, times: u64) {
        let known = self.losses.iter_mut().find(|loss| loss.what == what && loss.column == self.column);
        match known {
            Some(loss) => loss.times += times,
            None if times > 0 => self.losses.push(Loss { column: self.column.to_owned(), what, times }),
            None => {}
        }
    }

    /// Makes an error of a record of this column.
    fn error(&self, record: u64, kind: ErrorKind) -> Error {
        Error::new(kind, Position { record, offset: 0, feature: Some(self.column.into()) })
    }
}
