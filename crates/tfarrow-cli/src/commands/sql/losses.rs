//! What the scans of a session pass over: added up for each statement, and told behind its answer.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tfarrow_dataset::SkippedRecords;

use crate::failure;

/// What was passed over.
#[derive(Default)]
pub(super) struct Losses {
    /// Since the statement in hand began.
    skipped: Mutex<SkippedRecords>,
    /// Whether anything was told of any statement.
    told: AtomicBool,
}

impl Losses {
    /// Adds what a scan tells of.
    pub(super) fn add(&self, skipped: SkippedRecords) {
        self.lock().merge(skipped);
    }

    /// Begins with a statement. Threads that have read ahead of the end of the last one may have met what is no part of an
    /// answer.
    pub(super) fn begin(&self) {
        *self.lock() = SkippedRecords::default();
    }

    /// Tells what there is of the statement in hand.
    pub(super) fn tell(&self) {
        let skipped = mem::take(&mut *self.lock());
        if !skipped.is_empty() {
            failure::say(&skipped.to_string());
            self.told.store(true, Ordering::Relaxed);
        }
    }

    /// Whether anything was told.
    pub(super) fn are_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, SkippedRecords> {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
