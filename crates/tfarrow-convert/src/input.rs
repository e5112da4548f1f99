//! Reading: the shards of a job, cut into units of work. Serial, and so kept to what costs next to nothing.

use std::{collections::VecDeque, fs, io, ops::Range, path::PathBuf, sync::Arc, time::SystemTime};

use arrow_array::RecordBatch;
use tfarrow_codec::Records;
use tfarrow_dataset::{Contents, PartialTail, ReadOptions, Segment, Shard, ShardReader};

use crate::{
    Error, Progress, Result,
    columnar::{self, ParquetFile},
    damage::Damage,
    options::Recut,
};

/// What one worker turns into output on its own.
pub(crate) struct Unit {
    /// Its number in the job, from 0.
    pub(crate) number: u64,
    /// The output that it belongs to: 0, but where shards are cut anew.
    pub(crate) output: usize,
    /// The number of the shard that it comes from, and its path, for errors.
    pub(crate) shard: usize,
    pub(crate) path: Arc<PathBuf>,
    /// Bytes of the shard, as stored, that were read for it.
    pub(crate) bytes: u64,
    pub(crate) work: Work,
}

/// How a conversion reads, and who is told of what.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'p> {
    pub(crate) options: ReadOptions,
    pub(crate) progress: &'p Progress,
    pub(crate) damage: &'p Damage,
}

/// What a unit holds.
pub(crate) enum Work {
    /// Records to decode.
    Records(Vec<Records>),
    /// A row group of a Parquet file, still to be read.
    RowGroup(Shard, ParquetFile, usize),
    /// Rows that had to be read to be counted.
    Batches(Vec<RecordBatch>),
}

impl Work {
    /// Its records, or rows.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Records(blocks) => blocks.iter().map(|records| records.len() as u64).sum(),
            Self::RowGroup(_, file, group) => {
                file.groups().get(*group).map_or(0, |group| group.num_rows().max(0) as u64)
            }
            Self::Batches(batches) => batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        }
    }
}

/// The most that a unit takes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitSize {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Cuts a job's shards into units.
pub(crate) struct UnitReader<'p> {
    /// With their numbers in the data set.
    shards: VecDeque<(usize, Shard)>,
    open: Option<Open>,
    size: UnitSize,
    cut: Option<Cutter>,
    number: u64,
    reading: Reading<'p>,
}

/// The shard in hand.
struct Open {
    number: usize,
    path: Arc<PathBuf>,
    /// Where its bytes are, and what it was when it was opened.
    local: PathBuf,
    state: Option<State>,
    /// Bytes of it that were counted as read, and all that it has.
    counted: u64,
    len: u64,
    input: Input,
}

enum Input {
    TfRecord { reader: Box<ShardReader>, pending: Option<Records> },
    Parquet { shard: Shard, file: ParquetFile, groups: Range<usize> },
    Batches { batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>, pending: Option<RecordBatch> },
}

/// What tells whether a file is still what it was: its size, and when it was last written to.
#[derive(Debug, PartialEq, Eq)]
struct State(u64, Option<SystemTime>);

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
    pub(crate) fn new(shards: Vec<(usize, Shard)>, size: UnitSize, reading: Reading<'p>) -> Self {
        Self { shards: shards.into(), open: None, size, cut: None, number: 0, reading }
    }

    /// Cuts all shards anew. `records` are those of all shards together.
    pub(crate) fn with_recut(mut self, recut: Recut, records: u64) -> Self {
        self.cut = Some(Cutter { recut, records, output: 0, before: 0, rows: 0, bytes: 0 });
        self
    }

    /// The next unit; `None` at the end of the last shard.
    pub(crate) fn next(&mut self) -> Result<Option<Unit>> {
        loop {
            if self.reading.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.open.is_none() {
                let Some((number, shard)) = self.shards.pop_front() else { return Ok(None) };
                self.open = Some(Open::new(number, &shard, self.cut.is_some(), &self.reading.options)?);
            }
            let Some(open) = &mut self.open else { continue };
            let output = self.cut.as_mut().map_or(0, Cutter::output);
            let room = self.cut.as_ref().map_or(self.size, |cut| cut.room(self.size));
            let work = open.next(room, self.reading.damage)?;
            let bytes = open.advance(work.is_none());
            let (shard, path) = (open.number, Arc::clone(&open.path));
            let Some(work) = work else {
                self.reading.progress.add_bytes(bytes);
                open.check_state()?;
                self.open = None;
                continue;
            };
            if let Some(cut) = &mut self.cut {
                cut.add(&work);
            }
            self.number += 1;
            return Ok(Some(Unit { number: self.number - 1, output, shard, path, bytes, work }));
        }
    }
}

impl UnitReader<'_> {
    /// The rows of all shards, which are read for it where no metadata tells.
    pub(crate) fn count_rows(&mut self) -> Result<u64> {
        let mut rows = 0;
        while let Some(unit) = self.next()? {
            rows += unit.work.rows();
        }
        Ok(rows)
    }
}

impl Open {
    fn new(number: usize, shard: &Shard, in_rows: bool, options: &ReadOptions) -> Result<Self> {
        let may_grow = options.partial_tail == PartialTail::Ignore;
        let state = if may_grow || shard.is_stream() || shard.is_remote() { None } else { Some(State::of(shard)?) };
        let input = match shard.contents {
            Contents::TfRecord => {
                let reader = Box::new(ShardReader::open(shard, options)?);
                Input::TfRecord { reader, pending: None }
            }
            Contents::Parquet if !in_rows => {
                let file = ParquetFile::open(&shard.path, shard.local_path())?;
                let groups = 0..file.groups().len();
                Input::Parquet { shard: shard.clone(), file, groups }
            }
            Contents::Parquet | Contents::Arrow => Input::Batches { batches: columnar::rows(shard)?, pending: None },
        };
        let (path, local) = (Arc::new(shard.path.clone()), shard.local_path().to_owned());
        Ok(Self { number, path, local, state, counted: 0, len: shard.size, input })
    }

    /// Whether the file is still what it was when it was opened: who writes to a file that is read makes a mixture of it.
    fn check_state(&self) -> Result<()> {
        let Some(before) = &self.state else { return Ok(()) };
        match State::at(&self.local) {
            Ok(now) if now == *before => Ok(()),
            Ok(_) => {
                let why = "was changed while it was read; convert it again once nobody writes to it";
                Err(Error::io(&self.path, io::Error::other(why)))
            }
            Err(e) => Err(Error::io(&self.path, io::Error::new(e.kind(), format!("vanished while it was read: {e}")))),
        }
    }

    fn next(&mut self, room: UnitSize, damage: &Damage) -> Result<Option<Work>> {
        match &mut self.input {
            Input::TfRecord { reader, pending } => {
                let mut next = || loop {
                    match reader.segment()? {
                        None => return Ok(None),
                        Some(Segment::Records(records)) => return Ok(Some(records)),
                        Some(Segment::Lost(lost)) => damage.lost(self.number, &self.path, lost)?,
                    }
                };
                next_records(&mut next, pending, room)
            }
            Input::Parquet { shard, file, groups } => {
                Ok(groups.next().map(|group| Work::RowGroup(shard.clone(), file.clone(), group)))
            }
            Input::Batches { batches, pending } => next_batch(batches, pending, room),
        }
    }

    /// Bytes of the shard that were read since this was last called.
    fn advance(&mut self, ended: bool) -> u64 {
        let read = match &self.input {
            Input::TfRecord { reader, .. } => reader.bytes_read(),
            Input::Parquet { file, groups, .. } => self.len * groups.start as u64 / file.groups().len().max(1) as u64,
            Input::Batches { .. } => self.counted,
        };
        let read = if ended { self.len.max(read) } else { read };
        let more = read.saturating_sub(self.counted);
        self.counted += more;
        more
    }
}

fn next_records(
    next: &mut impl FnMut() -> Result<Option<Records>>,
    pending: &mut Option<Records>,
    room: UnitSize,
) -> Result<Option<Work>> {
    let UnitSize { mut rows, mut bytes } = room;
    let mut blocks = Vec::new();
    while rows > 0 && bytes > 0 {
        let Some(records) = pending.take().map_or_else(&mut *next, |records| Ok(Some(records)))? else { break };
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

impl State {
    fn of(shard: &Shard) -> Result<Self> {
        Self::at(shard.local_path()).map_err(|e| Error::io(&shard.path, e))
    }

    fn at(path: &std::path::Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self(metadata.len(), metadata.modified().ok()))
    }
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

#[cfg(test)]
mod tests {
    use tfarrow_codec::frame;
    use tfarrow_dataset::resolve;

    use super::*;

    /// What reading a file says that `change` is made to once its first records were read.
    fn read_while(partial_tail: PartialTail, change: impl Fn(&std::path::Path)) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        (0..1000).for_each(|_| frame::write(&[7; 1000], &mut bytes));
        fs::write(&path, &bytes).unwrap();
        let shard = resolve(&[&path]).unwrap().remove(0);
        let (progress, damage) = (Progress::default(), Damage::new(None, crate::quarantine::Earlier::Refused).unwrap());
        let options = ReadOptions { partial_tail, ..ReadOptions::default() };
        let reading = Reading { options, progress: &progress, damage: &damage };
        let mut reader = UnitReader::new(vec![(0, shard)], UnitSize { rows: 10, bytes: usize::MAX }, reading);
        assert!(reader.next()?.is_some());
        change(&path);
        while reader.next()?.is_some() {}
        Ok(())
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let append = |path: &std::path::Path| {
            let mut bytes = fs::read(path).unwrap();
            frame::write(b"more", &mut bytes);
            fs::write(path, bytes).unwrap();
        };
        assert!(read_while(PartialTail::Fail, |_| ()).is_ok());
        let error = read_while(PartialTail::Fail, append).unwrap_err().to_string();
        assert!(error.contains("a.tfrecord: was changed while it was read"), "{error}");
        let error = read_while(PartialTail::Fail, |path| fs::remove_file(path).unwrap()).unwrap_err().to_string();
        assert!(error.contains("a.tfrecord: vanished while it was read"), "{error}");
        // .. unless it is known to grow.
        assert!(read_while(PartialTail::Ignore, append).is_ok());
        // What is overwritten with other bytes of the same length has another time.
        let overwrite = |path: &std::path::Path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            std::io::Write::write_all(&mut &file, b"other bytes").unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        assert!(read_while(PartialTail::Fail, overwrite).is_err());
    }
}
