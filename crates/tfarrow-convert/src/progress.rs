//! How far a conversion is, to be looked at from another thread, and the way to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters that go up while a conversion runs.
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
    /// Bytes that will be read in all, as the sources are stored, every pass counted; 0 where that is not known.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Records converted so far.
    pub fn records(&self) -> u64 {
        self.records.load(Relaxed)
    }

    /// Files that are whole and have their names. These stay where the conversion fails.
    pub fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Asks the conversion to stop: it ends soon with [`Error::Cancelled`](crate::Error::Cancelled), and leaves no
    /// unfinished output.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether a conversion that has failed can be [resumed](crate::ConvertOptions::resume), with something done already.
    pub fn is_resumable(&self) -> bool {
        self.resumable.load(Relaxed)
    }

    pub(crate) fn set_resumable(&self, resumable: bool) {
        self.resumable.store(resumable, Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Begins again, with this total.
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
