//! Records that are chosen by their numbers, and read at their places.
//!
//! ```text
//! ChosenRecords   positions of an order ─▶ numbers     which records, in which order
//! ChosenSource    numbers of the next block            one thread at a time
//! ChosenBlock     numbers ─▶ records                   the worker that converts them
//! ```

use std::{ops::Range, sync::Arc};

use tfarrow_codec::Records;
use tfarrow_dataset::internals::CHUNK_BYTES;
use tfarrow_index::{Dataset, Fetched};
use tfarrow_loader::{Order, Selection};

use crate::Result;

/// Some records of a data set, in an order.
#[derive(Debug)]
pub(crate) struct ChosenRecords {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) selection: Selection,
    pub(crate) order: Order,
}

impl ChosenRecords {
    /// Their number.
    pub(crate) fn count(&self) -> u64 {
        self.order.count()
    }

    /// The part of the data set's records that they are.
    pub(crate) fn share(&self) -> f64 {
        self.count() as f64 / self.dataset.len().max(1) as f64
    }

    /// The number of the record at a position of the order.
    fn number(&self, position: u64) -> u64 {
        self.selection.record(self.order.record(position))
    }
}

/// Cuts chosen records into blocks.
pub(crate) struct ChosenSource {
    records: Arc<ChosenRecords>,
    /// The positions that are left.
    positions: Range<u64>,
}

/// Chosen records that a worker reads together.
pub(crate) struct ChosenBlock {
    records: Arc<ChosenRecords>,
    numbers: Vec<u64>,
    bytes: usize,
}

impl ChosenSource {
    pub(crate) fn new(records: Arc<ChosenRecords>) -> Self {
        let positions = 0..records.count();
        Self { records, positions }
    }

    /// The next records: at most `rows`, of at most `bytes`, but at least one.
    ///
    /// # Errors
    /// A record that the data set does not have.
    pub(crate) fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<ChosenBlock>> {
        let Range { start, end } = self.positions;
        // The records of a round are best read together, for example from one place of a gzip file.
        let (end, bytes) = match self.records.order.round() {
            Some(round) => (end.min((start / round + 1) * round), bytes),
            None => (end, bytes.min(CHUNK_BYTES)),
        };
        let mut numbers = Vec::new();
        let mut total = 0;
        for position in start..end.min(start.saturating_add(rows as u64)) {
            let number = self.records.number(position);
            let own = self.records.dataset.record_bytes(number)?;
            if total + own > bytes && !numbers.is_empty() {
                break;
            }
            total += own;
            numbers.push(number);
        }
        self.positions.start += numbers.len() as u64;
        Ok((!numbers.is_empty()).then(|| ChosenBlock {
            records: Arc::clone(&self.records),
            numbers,
            bytes: total,
        }))
    }

    /// The bytes of the part that was read, of a part of `len` bytes.
    pub(crate) fn bytes_read(&self, len: u64) -> u64 {
        let count = self.records.count();
        let done = u128::from(len) * u128::from(self.positions.start) / u128::from(count.max(1));
        done as u64
    }
}

impl ChosenBlock {
    pub(crate) fn rows(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the records.
    ///
    /// # Errors
    /// A frame that is corrupt, and a file that was changed.
    pub(crate) fn read(self) -> Result<(Records, ChosenOrigin)> {
        let dataset = Arc::clone(&self.records.dataset);
        let fetched = dataset.fetch(&self.numbers, 1)?;
        let records = fetched.records().clone();
        Ok((records, ChosenOrigin { dataset, fetched }))
    }
}

/// The places of chosen records that were read.
pub(crate) struct ChosenOrigin {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) fetched: Fetched,
}
