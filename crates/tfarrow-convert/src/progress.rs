//! The progress of a conversion, which another thread can read, and its cancellation.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// Counters of a running conversion.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    files: AtomicU64,
    cancelled: AtomicBool,
    resumable: AtomicBool,
}

impl Progress {
    /// Total bytes to read, as the sources are stored, over all passes; 0 if that is not known.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Bytes of the records converted so far, or read by the pass that infers columns, as the
    /// sources are stored.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Records converted so far.
    pub fn records(&self) -> u64 {
        self.records.load(Relaxed)
    }

    /// Files that are complete and have their names. They remain if the conversion fails.
    pub fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Cancels the conversion: it ends with [`Error::Cancelled`](crate::Error::Cancelled), and
    /// removes unfinished outputs.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether a failed conversion has completed outputs and can be
    /// [resumed](crate::ConvertOptions::resume).
    pub fn is_resumable(&self) -> bool {
        self.resumable.load(Relaxed)
    }

    pub(crate) fn set_resumable(&self, resumable: bool) {
        self.resumable.store(resumable, Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Whether a scan continues.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.is_cancelled() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Resets all counters, and sets the total.
    pub(crate) fn restart(&self, total: u64) {
        self.total.store(total, Relaxed);
        self.bytes.store(0, Relaxed);
        self.records.store(0, Relaxed);
        self.files.store(0, Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_records(&self, records: u64) {
        self.records.fetch_add(records, Relaxed);
    }

    pub(crate) fn add_files(&self, files: u64) {
        self.files.fetch_add(files, Relaxed);
    }
}

/// The progress of one unit. Its bytes are added in proportion to its converted records, because
/// reading is ahead of conversion.
pub(crate) struct UnitProgress<'p> {
    progress: &'p Progress,
    /// Bytes and records of the unit.
    bytes: u64,
    records: u64,
    /// Bytes and records that were added.
    added_bytes: u64,
    added_records: u64,
}

impl<'p> UnitProgress<'p> {
    /// The progress of a unit with this number of bytes, as stored, and records.
    pub(crate) fn new(progress: &'p Progress, bytes: u64, records: u64) -> Self {
        Self {
            progress,
            bytes,
            records,
            added_bytes: 0,
            added_records: 0,
        }
    }

    /// Adds converted records of the unit.
    pub(crate) fn add(&mut self, records: u64) {
        self.progress.add_records(records);
        self.added_records += records;
        let part = u128::from(self.bytes) * u128::from(self.added_records)
            / u128::from(self.records.max(1));
        self.add_bytes_up_to(u64::try_from(part).unwrap_or(u64::MAX).min(self.bytes));
    }

    /// Adds the rest of the bytes, which includes those of skipped records.
    pub(crate) fn finish(&mut self) {
        self.add_bytes_up_to(self.bytes);
    }

    /// Number of converted records of the unit.
    pub(crate) fn converted_records(&self) -> u64 {
        self.added_records
    }

    fn add_bytes_up_to(&mut self, bytes: u64) {
        self.progress
            .add_bytes(bytes.saturating_sub(self.added_bytes));
        self.added_bytes = bytes.max(self.added_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_unit_are_added_with_its_records() {
        let progress = Progress::default();
        let mut unit = UnitProgress::new(&progress, 1000, 10);
        unit.add(3);
        assert_eq!((progress.bytes(), progress.records()), (300, 3));
        unit.add(5);
        assert_eq!((progress.bytes(), progress.records()), (800, 8));
        unit.finish();
        unit.finish();
        assert_eq!((progress.bytes(), progress.records()), (1000, 8));
        let mut empty = UnitProgress::new(&progress, 24, 0);
        empty.add(0);
        empty.finish();
        assert_eq!(progress.bytes(), 1024);
    }
}
