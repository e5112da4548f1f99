//! The two data sets of a comparison, each of which a thread reads ahead.

use std::{
    collections::VecDeque,
    panic,
    sync::{Arc, mpsc},
    thread,
};

use tfarrow_codec::RecordType;
use tfarrow_dataset::{DamageReport, Shard};

use super::{
    records::{CheckedRecords, LeftOut, RecordReader},
    report::{DiffOptions, RecordPosition},
};
use crate::{Progress, Result};

/// Chunks of records that each side reads ahead.
const CHUNKS_AHEAD: usize = 2;

/// Maximum bytes of records that are held to search them.
const MAX_AHEAD_BYTES: usize = 64 << 20;

/// The shards of both data sets, and the type of their records.
pub(super) struct Sources<'p> {
    pub(super) shards: [Vec<Shard>; 2],
    pub(super) record_type: RecordType,
    pub(super) progress: &'p Progress,
}

impl Sources<'_> {
    /// Bytes of all shards, as stored.
    pub(super) fn bytes(&self) -> u64 {
        self.shards.iter().flatten().map(|shard| shard.size).sum()
    }

    /// Reads both data sets from their start while `compare` runs. Returns its result, and what was
    /// skipped.
    ///
    /// # Errors
    /// Errors of `compare`, to which the sides pass on those of reading.
    pub(super) fn read<T>(
        &self,
        options: &DiffOptions,
        compare: impl FnOnce([DiffSide; 2]) -> Result<T>,
    ) -> Result<(T, [DamageReport; 2])> {
        let left_out = LeftOut::new(options)?;
        thread::scope(|scope| {
            let [(left, left_thread), (right, right_thread)] = self.shards.clone().map(|shards| {
                let encoded = (options.record_type, left_out.clone());
                let mut reader = RecordReader::new(
                    shards,
                    options.read,
                    self.record_type,
                    encoded,
                    self.progress,
                );
                let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
                let thread = scope.spawn(move || {
                    for chunk in reader.by_ref() {
                        let is_last = chunk.is_err();
                        // Sending fails if the comparison has ended with an error.
                        if sender.send(chunk).is_err() || is_last {
                            break;
                        }
                    }
                    reader.skipped
                });
                (
                    DiffSide {
                        chunks,
                        ahead: VecDeque::new(),
                        bytes: 0,
                        number: 0,
                    },
                    thread,
                )
            });
            let found = compare([left, right])?;
            let skipped = [left_thread, right_thread].map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| panic::resume_unwind(panic))
            });
            Ok((found, skipped))
        })
    }
}

/// A record of a chunk.
#[derive(Clone)]
pub(super) struct Record {
    chunk: Arc<CheckedRecords>,
    index: usize,
}

impl Record {
    /// Its bytes.
    pub(super) fn data(&self) -> &[u8] {
        let data = self.chunk.records.data(self.index);
        debug_assert!(data.is_some(), "the index is that of a record");
        data.unwrap_or_default()
    }

    /// Its position.
    pub(super) fn position(&self) -> RecordPosition {
        let offset = self.chunk.offset(self.index);
        RecordPosition {
            path: Arc::clone(&self.chunk.path),
            record: self.chunk.first + self.index as u64,
            offset,
        }
    }
}

/// One of the two data sets.
pub(super) struct DiffSide {
    chunks: mpsc::Receiver<Result<CheckedRecords>>,
    /// The current record and the records after it that were received.
    ahead: VecDeque<Record>,
    /// Bytes of the chunks of these records.
    bytes: usize,
    /// The number of the current record in the data set.
    pub(super) number: u64,
}

impl DiffSide {
    /// The record `ahead` records after the current one; `None` after the last, and beyond
    /// [`MAX_AHEAD_BYTES`].
    pub(super) fn peek(&mut self, ahead: usize) -> Result<Option<Record>> {
        while self.ahead.len() <= ahead && (ahead == 0 || self.bytes < MAX_AHEAD_BYTES) {
            let Ok(chunk) = self.chunks.recv() else { break };
            let chunk = Arc::new(chunk?);
            self.bytes += chunk.records.bytes();
            let before = self.ahead.len();
            self.ahead.extend(chunk.valid().map(|index| Record {
                chunk: Arc::clone(&chunk),
                index,
            }));
            // `advance` does not subtract the bytes of a chunk without valid records.
            self.bytes -= if self.ahead.len() == before {
                chunk.records.bytes()
            } else {
                0
            };
        }
        Ok(self.ahead.get(ahead).cloned())
    }

    /// Makes the next record the current one.
    pub(super) fn advance(&mut self) {
        if let Some(record) = self.ahead.pop_front() {
            let has_more = self
                .ahead
                .front()
                .is_some_and(|next| Arc::ptr_eq(&next.chunk, &record.chunk));
            self.bytes -= if has_more {
                0
            } else {
                record.chunk.records.bytes()
            };
            self.number += 1;
        }
    }
}
