//! The records that the scans of one statement skip, reported after its result.

use std::{
    mem,
    sync::atomic::{AtomicBool, Ordering},
};

use tfarrow_datafusion::sql_advice;
use tfarrow_dataset::DamageReport;
use tfarrow_dataset::internals::Lock;
use tfarrow_report::text::escape;

use crate::stderr;

/// A count of skipped records that scans of all threads add to.
#[derive(Default)]
pub(super) struct SkipReport {
    /// Records skipped since the current statement began.
    skipped: Lock<DamageReport>,
    /// Whether the current statement writes its rows to files.
    writes: AtomicBool,
    /// Whether any statement skipped records, or wrote files without some of the features.
    any: AtomicBool,
}

impl SkipReport {
    /// Adds the records that a scan skipped.
    pub(super) fn add(&self, skipped: DamageReport) {
        self.skipped.lock().merge(skipped);
    }

    /// Begins a statement. Threads of the previous one may have read past its result, so their
    /// counts are dropped.
    pub(super) fn begin(&self) {
        *self.skipped.lock() = DamageReport::default();
    }

    /// Sets whether the current statement writes its rows to files.
    pub(super) fn set_writes(&self, writes: bool) {
        self.writes.store(writes, Ordering::Relaxed);
    }

    /// Notes that a scan found features without a column, which are lost if the statement writes
    /// files.
    pub(super) fn leave_out(&self) {
        if self.writes.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Prints the records that the current statement skipped, if there are any.
    pub(super) fn print(&self) {
        let skipped = mem::take(&mut *self.skipped.lock());
        if !skipped.is_empty() {
            let advice = skipped
                .first()
                .and_then(|first| sql_advice(&first.remedies()));
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            stderr::print(&escape(&format!("{skipped}{advice}")));
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any statement skipped records, or wrote files without some of the features.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }
}
