//! Warnings: threads of a query gather them, and the calling thread issues them.

use std::{mem, sync::MutexGuard};

use pyo3::prelude::*;
use tfarrow_datafusion::Notice;
use tfarrow_dataset::DamageReport;
use tfarrow_dataset::internals::Lock;

use crate::{errors, remedy::Wording};

/// The warnings of a query, which its threads gather.
#[derive(Debug, Default)]
pub(crate) struct Notices(Lock<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    skipped: DamageReport,
    /// Features without a column.
    unknown: Vec<String>,
    others: Vec<String>,
}

impl Notices {
    /// Adds a notice. Its remedy has the syntax `wording`.
    pub(crate) fn add(&self, notice: &Notice, wording: Wording) {
        let mut gathered = self.gathered();
        match notice {
            Notice::Skipped(skipped) => gathered.skipped.merge(skipped.clone()),
            Notice::Losses(losses) => gathered.others.extend(losses.notes()),
            Notice::UnknownFeatures(unknown) => {
                gathered.unknown.push(match (&unknown.sample, wording) {
                    (Some(sample), Wording::Arguments) => {
                        let remedy = "sample=\"all\" infers it from all records";
                        format!(
                            "{}; the schema was inferred from {sample}: {remedy}",
                            unknown.description()
                        )
                    }
                    _ => unknown.to_string(),
                })
            }
            Notice::UnknownField(_)
            | Notice::NoFeatures(_)
            | Notice::Splits(_)
            | Notice::UnusableIndex(_) => gathered.others.push(notice.to_string()),
        }
    }

    /// Issues the warnings so far, and forgets them.
    ///
    /// # Errors
    /// A warning that a filter of the caller has made an error.
    pub(crate) fn issue(&self, py: Python<'_>) -> PyResult<()> {
        let Gathered {
            skipped,
            unknown,
            others,
        } = mem::take(&mut *self.gathered());
        warn(py, &skipped, &[unknown, others].concat())
    }

    /// Refuses features without a column, for rows that are to have all.
    ///
    /// # Errors
    /// DataError, with the names of the features.
    pub(crate) fn refuse_unknown(&self, py: Python<'_>) -> PyResult<()> {
        match self.gathered().unknown.first() {
            Some(text) => Err(errors::incomplete(py, text)),
            None => Ok(()),
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock()
    }
}

/// Issues Python warnings: one for skipped records if there are any, and one for each of the
/// others.
///
/// # Errors
/// A warning that a filter of the caller has made an error.
pub(crate) fn warn(py: Python<'_>, skipped: &DamageReport, others: &[String]) -> PyResult<()> {
    let skipped = (!skipped.is_empty()).then(|| skipped.to_string());
    warn_all(
        py,
        &skipped
            .into_iter()
            .chain(others.iter().cloned())
            .collect::<Vec<_>>(),
    )
}

/// Issues a Python warning for each text.
///
/// # Errors
/// A warning that a filter of the caller has made an error.
pub(crate) fn warn_all(py: Python<'_>, texts: &[String]) -> PyResult<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let warn = py.import("tfarrow._warn")?.getattr("warn")?;
    texts
        .iter()
        .try_for_each(|text| warn.call1((text,)).map(drop))
}
