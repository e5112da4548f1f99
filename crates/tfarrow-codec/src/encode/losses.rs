//! Losses: values that would change are errors, or are counted if losses are allowed.

use std::fmt::Display;

use arrow_schema::DataType;

use super::plan::ColumnPlan;
use crate::{Error, ErrorKind, Position, Remedy, Result, Rewrite};

/// The number of times that one kind of change was made to one column.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) column: String,
    pub(super) what: &'static str,
    pub(super) times: u64,
}

impl Loss {
    /// The column, the kind of change, and the number of values.
    pub(super) fn parts(&self) -> (&str, &str, u64) {
        (&self.column, self.what, self.times)
    }
}

/// The changes of values that are allowed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AllowedLosses {
    /// All changes.
    pub(super) all: bool,
    /// Floats of 64 bits become those of 32 bits.
    pub(super) rounding: bool,
}

/// Records the losses of one column in one batch.
///
/// ```text
/// not allowed    refuse: error           count: nothing to count
/// allowed        refuse: Ok              count: added to Encoder::losses
/// ```
pub(super) struct Ledger<'a> {
    plan: &'a ColumnPlan,
    allowed: AllowedLosses,
    /// Number of the first record of the batch.
    first: u64,
    losses: &'a mut Vec<Loss>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        plan: &'a ColumnPlan,
        allowed: AllowedLosses,
        first: u64,
        losses: &'a mut Vec<Loss>,
    ) -> Self {
        Self {
            plan,
            allowed,
            first,
            losses,
        }
    }

    /// Returns an error for row `row` of the batch, unless losses are allowed. `found` describes
    /// the value, and `instead` other values.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] with the number of the record.
    pub(super) fn refuse(&self, row: usize, found: impl Display, instead: &str) -> Result<()> {
        self.refuse_with(row, format_args!("{found}; {instead}"), Vec::new())
    }

    /// Returns an error as [`refuse`](Self::refuse) does, for a value that one of the types `to`
    /// can hold.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] with the number of the record.
    pub(super) fn refuse_type(
        &self,
        row: usize,
        found: impl Display,
        to: &[DataType],
    ) -> Result<()> {
        if self.allowed.all {
            return Ok(());
        }
        let casts = to
            .iter()
            .map(|to| Rewrite::Cast(self.plan.shape.data_type(to.clone())));
        self.refuse_with(row, found, casts.collect())
    }

    /// Returns an error as [`refuse_type`](Self::refuse_type) does, for a float that is rounded to
    /// one of 32 bits.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] with the number of the record, unless rounding is allowed.
    pub(super) fn refuse_rounding(&self, row: usize, found: impl Display) -> Result<()> {
        if self.allowed.rounding {
            Ok(())
        } else {
            self.refuse_type(row, found, &[DataType::Float32])
        }
    }

    /// Returns an error as [`refuse`](Self::refuse) does, for a column that has the type null.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] with the number of the record.
    pub(super) fn refuse_null_type(&self, row: usize, found: impl Display) -> Result<()> {
        self.refuse_with(row, found, vec![Rewrite::SomeType])
    }

    fn refuse_with(&self, row: usize, found: impl Display, rewrites: Vec<Rewrite>) -> Result<()> {
        if self.allowed.all {
            return Ok(());
        }
        let record = self.first + row as u64;
        let remedies = rewrites.into_iter().map(|with| Remedy::Rewrite {
            column: self.plan.name.clone(),
            with,
        });
        let row = Some(record);
        let reason = found.to_string();
        Err(self.error(
            record,
            ErrorKind::Lossy {
                row,
                reason,
                remedies: remedies.collect(),
            },
        ))
    }

    /// Adds `times` changes of the kind `what`.
    pub(super) fn count(&mut self, what: &'static str, times: u64) {
        let known = self
            .losses
            .iter_mut()
            .find(|loss| loss.what == what && loss.column == self.plan.name);
        match known {
            Some(loss) => loss.times += times,
            None if times > 0 => self.losses.push(Loss {
                column: self.plan.name.clone(),
                what,
                times,
            }),
            None => {}
        }
    }

    /// Makes an error of a record of this column.
    fn error(&self, record: u64, kind: ErrorKind) -> Error {
        Error::new(
            kind,
            Position {
                record,
                offset: 0,
                feature: Some(self.plan.name.as_str().into()),
            },
        )
    }
}
