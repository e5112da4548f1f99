//! Reading: the shards of a job, cut into units of work. Serial, and so kept to what costs next to nothing.

use std::{collections::VecDeque, ops::Range, path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use tfarrow_codec::Records;
use tfarrow_dataset::{Contents, ReadOptions, Shard, ShardReader};

use crate::{Error, Progress, Result, columnar, options::Recut};

/// What one worker turns into output on its own.
pub(crate) struct Unit {
    /// Its number in the job, from 0.
    pub(crate) number: u64,
    /// The output that it belongs to: 0, but where shards are cut anew.
    pub(crate) output: usize,
    /// The file that it comes from, for errors.
    pub(crate) path: Arc<PathBuf>,
    pub(crate) work: Work,
}

/// What a unit holds.
pub(crate) enum Work {
    /// Records to decode.
    Records(Vec<Records>),
    /// A row group of a Parquet file, still to be read.
    RowGroup(Shard, ArrowReaderMetadata, usize),
    /// Rows that had to be read to be counted.
    Batches(Vec<RecordBatch>),
}

/// The most that a unit takes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitSize {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Cuts a job's shards into units.
pub(crate) struct UnitReader<'p> {
    shards: VecDeque<Shard>,
    open: Option<Open>,
    size: UnitSize,
    cut: Option<Cutter>,
    number: u64,
    progress: &'p Progress,
}

/// The shard in hand.
struct Open {
    path: Arc<PathBuf>,
    /// Bytes of it that progress knows of, and all that it has.
    told: u64,
    len: u64,
    input: Input,
}

enum Input {
    TfRecord { reader: Box<ShardReader>, pending: Option<Records> },
    Parquet { shard: Shard, metadata: ArrowReaderMetadata, groups: Range<usize> },
    Batches { batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>, pending: Option<RecordBatch> },
}

/// Where new shards end.
struct Cutter {
    recut: Recut,
    /// Records of the whole data set.
    records: u64,
    output: usize,
    /// Records before the output in hand, and records and bytes in it.
    before: u64,
    rows: u64,
    bytes: u64,
}

impl<'p> UnitReader<'p> {
    pub(crate) fn new(shards: Vec<Shard>, size: UnitSize, progress: &'p Progress) -> Self {
        Self { shards: shards.into(), open: None, size, cut: None, number: 0, progress }
    }

    /// Cuts all shards anew. `records` are those of all shards together.
    pub(crate) fn with_recut(mut self, recut: Recut, records: u64) -> Self {
        self.cut = Some(Cutter { recut, records, output: 0, before: 0, rows: 0, bytes: 0 });
        self
    }

    /// The next unit; `None` at the end of the last shard.
    pub(crate) fn next(&mut self) -> Result<Option<Unit>> {
        loop {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.open.is_none() {
                let Some(shard) = self.shards.pop_front() else { return Ok(None) };
                self.open = Some(Open::new(&shard, self.cut.is_some())?);
            }
            let Some(open) = &mut self.open else { continue };
            let output = self.cut.as_mut().map_or(0, Cutter::output);
            let room = self.cut.as_ref().map_or(self.size, |cut| cut.room(self.size));
            let work = open.next(room)?;
            open.tell(self.progress, work.is_none());
            let path = Arc::clone(&open.path);
            let Some(work) = work else {
                self.open = None;
                continue;
            };
            if let Some(cut) = &mut self.cut {
                cut.add(&work);
            }
            self.number += 1;
            return Ok(Some(Unit { number: self.number - 1, output, path, work }));
        }
    }
}

impl UnitReader<'_> {
    /// The rows of all shards, which are read for it where no metadata tells.
    pub(crate) fn count_rows(&mut self) -> Result<u64> {
        let mut rows = 0;
        while let Some(unit) = self.next()? {
            rows += match unit.work {
                Work::Records(blocks) => blocks.iter().map(|records| records.len() as u64).sum(),
                Work::RowGroup(_, metadata, group) => metadata.metadata().row_group(group).num_rows() as u64,
                Work::Batches(batches) => batches.iter().map(|batch| batch.num_rows() as u64).sum(),
            };
        }
        Ok(rows)
    }
}

impl Open {
    fn new(shard: &Shard, in_rows: bool) -> Result<Self> {
        let input = match shard.contents {
            Contents::TfRecord => {
                let reader = Box::new(ShardReader::open(shard, &ReadOptions::default())?);
                Input::TfRecord { reader, pending: None }
            }
            Contents::Parquet if !in_rows => {
                let metadata = columnar::parquet_metadata(&shard.path, shard.local_path())?;
                let groups = 0..metadata.metadata().num_row_groups();
                Input::Parquet { shard: shard.clone(), metadata, groups }
            }
            Contents::Parquet | Contents::Arrow => Input::Batches { batches: columnar::rows(shard)?, pending: None },
        };
        Ok(Self { path: Arc::new(shard.path.clone()), told: 0, len: shard.size, input })
    }

    fn next(&mut self, room: UnitSize) -> Result<Option<Work>> {
        match &mut self.input {
            Input::TfRecord { reader, pending } => next_records(reader, pending, room),
            Input::Parquet { shard, metadata, groups } => {
                Ok(groups.next().map(|group| Work::RowGroup(shard.clone(), metadata.clone(), group)))
            }
            Input::Batches { batches, pending } => next_batch(batches, pending, room),
        }
    }

    /// Tells how much more of the shard was read.
    fn tell(&mut self, progress: &Progress, ended: bool) {
        let read = match &self.input {
            Input::TfRecord { reader, .. } => reader.bytes_read(),
            Input::Parquet { metadata, groups, .. } => {
                self.len * groups.start as u64 / metadata.metadata().num_row_groups().max(1) as u64
            }
            Input::Batches { .. } => self.told,
        };
        let read = if ended { self.len.max(read) } else { read };
        progress.add_bytes(read.saturating_sub(self.told));
        self.told = read.max(self.told);
    }
}

fn next_records(reader: &mut ShardReader, pending: &mut Option<Records>, room: UnitSize) -> Result<Option<Work>> {
    let UnitSize { mut rows, mut bytes } = room;
    let mut blocks = Vec::new();
    while rows > 0 && bytes > 0 {
        let Some(records) = pending.take().map_or_else(|| reader.next(), |records| Ok(Some(records)))? else { break };
        let fit = records.fit(rows, bytes);
        let (records, rest) = records.split_at(fit);
        *pending = Some(rest).filter(|rest| !rest.is_empty());
        rows -= records.len();
        bytes = bytes.saturating_sub(records.bytes());
        blocks.push(records);
    }
    Ok((!blocks.is_empty()).then_some(Work::Records(blocks)))
}

fn next_batch(
    batches: &mut Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    pending: &mut Option<RecordBatch>,
    room: UnitSize,
) -> Result<Option<Work>> {
    let Some(batch) = pending.take().map_or_else(|| batches.next().transpose(), |batch| Ok(Some(batch)))? else {
        return Ok(None);
    };
    let bytes_a_row = batch.get_array_memory_size() / batch.num_rows().max(1);
    let rows = room.rows.min(room.bytes / bytes_a_row.max(1)).clamp(1, batch.num_rows().max(1));
    let rows = rows.min(batch.num_rows());
    let rest = batch.slice(rows, batch.num_rows() - rows);
    *pending = Some(rest).filter(|rest| rest.num_rows() > 0);
    Ok(Some(Work::Batches(vec![batch.slice(0, rows)])))
}

impl Cutter {
    /// The output that the next unit belongs to.
    fn output(&mut self) -> usize {
        if self.is_full() {
            self.output += 1;
            self.before += self.rows;
            (self.rows, self.bytes) = (0, 0);
        }
        self.output
    }

    fn is_full(&self) -> bool {
        match self.recut {
            Recut::Shards(_) => self.rows >= self.rows_wanted() && self.before + self.rows < self.records,
            Recut::Bytes(bytes) => self.bytes >= bytes,
        }
    }

    /// The records of the output in hand, where outputs are counted.
    fn rows_wanted(&self) -> u64 {
        let Recut::Shards(shards) = self.recut else { return u64::MAX };
        let end = |output: u128| (u128::from(self.records) * output / u128::from(shards.max(1))) as u64;
        end(self.output as u128 + 1) - end(self.output as u128)
    }

    /// What still fits into the output in hand, at most a unit.
    fn room(&self, size: UnitSize) -> UnitSize {
        match self.recut {
            Recut::Shards(_) => {
                let left = self.rows_wanted().saturating_sub(self.rows);
                UnitSize { rows: usize::try_from(left).unwrap_or(usize::MAX).clamp(1, size.rows), ..size }
            }
            Recut::Bytes(bytes) => {
                let left = usize::try_from(bytes - self.bytes).unwrap_or(usize::MAX);
                UnitSize { bytes: left.clamp(1, size.bytes), ..size }
            }
        }
    }

    fn add(&mut self, work: &Work) {
        let (rows, bytes) = match work {
            Work::Records(blocks) => (blocks.iter().map(Records::len).sum(), blocks.iter().map(Records::bytes).sum()),
            Work::Batches(batches) => (
                batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
                batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>(),
            ),
            Work::RowGroup(..) => (0, 0),
        };
        self.rows += rows as u64;
        self.bytes += bytes as u64;
    }
}
