//! What would change a value: refused, or counted.

use std::fmt::Display;

use crate::{Error, ErrorKind, Position, Result};

/// How often one thing happened to one column.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) column: String,
    pub(super) what: &'static str,
    pub(super) times: u64,
}

/// The losses of one column in one batch.
pub(super) struct Ledger<'a> {
    column: &'a str,
    lossy: bool,
    /// The number of the batch's first record.
    first: u64,
    losses: &'a mut Vec<Loss>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(column: &'a str, lossy: bool, first: u64, losses: &'a mut Vec<Loss>) -> Self {
        Self { column, lossy, first, losses }
    }

    /// Refuses what stands in row `row` of the batch, unless losses are allowed. `instead` says what helps besides.
    pub(super) fn refuse(&self, row: usize, found: impl Display, instead: &str) -> Result<()> {
        if self.lossy {
            return Ok(());
        }
        let record = self.first + row as u64;
        let message = format!("row {record} has {found}; {instead}, or allow the change with --lossy");
        Err(self.error(record, ErrorKind::Lossy(message)))
    }

    /// Notes what was done to that many values.
    pub(super) fn count(&mut self, what: &'static str, times: u64) {
        let known = self.losses.iter_mut().find(|loss| loss.what == what && loss.column == self.column);
        match known {
            Some(loss) => loss.times += times,
            None if times > 0 => self.losses.push(Loss { column: self.column.to_owned(), what, times }),
            None => {}
        }
    }

    fn error(&self, record: u64, kind: ErrorKind) -> Error {
        Error::new(kind, Position { record, offset: 0, feature: Some(self.column.into()) })
    }
}
