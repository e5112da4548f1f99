//! The input of a job: its shards, cut into units.
//!
//! ```text
//! shards ─▶ OpenShard ─▶ UnitSource ─▶ content ─▶ UnitReader ─▶ Unit: parts of one or more shards
//!           one open     RecordSource: TFRecord records, cut to the size of a unit; of a plain file, only their offsets
//!                        or chosen by their numbers, from all shards (chosen.rs)
//!                        RowSource: row groups of Parquet; batches of Arrow, or of Parquet for new shards
//! ```
//!
//! A unit continues in the next shard of its job until it has its size. The row groups of a Parquet
//! file therefore have the same size if it is written from many small shards as if it is written
//! from one.
//!
//! One thread reads at a time, so that this module does as little as possible: workers read the
//! records of plain files, and the row groups of Parquet.

use std::{
    collections::VecDeque,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use tfarrow_codec::{Records, frame::FrameRange};
use tfarrow_columnar::{Batches, ParquetFile, row_group_rows, rows_of};
use tfarrow_dataset::{
    Lost, PartialTail, ReadOptions, Segment, Shard, ShardFormat, ShardReader,
    internals::{CHUNK_BYTES, FrameRanges, RangeFile, ShardAccess},
};

use self::chosen::{ChosenBlock, ChosenOrigin, ChosenSource};
use crate::{Error, Progress, Result, damage::DamageLog, options::Reshard};

mod chosen;

pub(crate) use chosen::ChosenRecords;

/// A part of a job that one worker converts on its own.
pub(crate) struct Unit<C> {
    /// Its number in the job, from 0.
    pub(crate) number: u64,
    /// The number of its output; 0 if the job has one output.
    pub(crate) output: usize,
    /// Its parts in the order of their shards. There is at least one.
    pub(crate) parts: Vec<UnitPart<C>>,
    /// The path of its last shard, for errors at the end of the unit.
    pub(crate) path: Arc<PathBuf>,
}

impl<C: UnitContent> Unit<C> {
    /// Bytes of its shards that were read for it, as stored.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Its number of records or rows.
    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.content.rows()).sum()
    }
}

/// The content of a unit that is from one shard.
pub(crate) struct UnitPart<C> {
    /// The number of the shard.
    pub(crate) shard: usize,
    /// The path of the shard, for errors.
    pub(crate) path: Arc<PathBuf>,
    /// Whether the shard is text.
    pub(crate) is_text: bool,
    /// Bytes of the shard that were read for it, as stored.
    bytes: u64,
    /// The version of the file that was opened. Workers check it after they have read the content.
    pub(crate) version: Arc<SourceVersion>,
    pub(crate) content: C,
}

/// The content of a part of a unit.
pub(crate) trait UnitContent: Send {
    /// Its number of records or rows.
    fn rows(&self) -> u64;

    /// Its bytes, as [`Reshard::Bytes`] and [`UnitSize`] count them.
    fn bytes(&self) -> u64;

    /// The number of blocks that it is read in.
    fn blocks(&self) -> usize;
}

/// Consecutive records of a TFRecord file, in the chunks that they are read in.
pub(crate) struct RecordBlocks(pub(crate) Vec<RecordBlock>);

/// Records of one chunk.
pub(crate) enum RecordBlock {
    /// Records whose offset is known. The worker reads them.
    Range(Arc<RangeFile>, FrameRange),
    /// Records that were read.
    Records(Records),
    /// Records of several shards. The worker reads them.
    Chosen(ChosenBlock),
}

/// The places of the records of a block.
pub(crate) enum BlockOrigin {
    /// A shard, by its number.
    Shard(usize, Arc<PathBuf>),
    /// Several shards.
    Chosen(ChosenOrigin),
}

impl BlockOrigin {
    /// The number and the path of the shard of a record, and the error of the record with its place
    /// there.
    pub(crate) fn locate(
        &self,
        error: tfarrow_codec::Error,
    ) -> (usize, &Path, tfarrow_codec::Error) {
        match self {
            Self::Shard(number, path) => (*number, path, error),
            Self::Chosen(ChosenOrigin { dataset, fetched }) => {
                let (number, error) = dataset.locate(fetched, error);
                let shard = dataset.shards().nth(number);
                let path = shard.map_or(Path::new(""), |shard| shard.path.as_path());
                (number, path, error)
            }
        }
    }

    /// The error of a record.
    pub(crate) fn error(&self, error: tfarrow_codec::Error) -> Error {
        let (_, path, error) = self.locate(error);
        Error::codec(path, error)
    }
}

impl RecordBlock {
    /// The records of the shard of this number, and where they are from. `memory` is memory to read
    /// into.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub(crate) fn read(
        self,
        shard: usize,
        path: &Arc<PathBuf>,
        memory: Vec<u8>,
    ) -> Result<(Records, BlockOrigin)> {
        let records = match self {
            Self::Range(file, range) => file.read(&range, memory)?,
            Self::Records(records) => records,
            Self::Chosen(block) => {
                let (records, origin) = block.read()?;
                return Ok((records, BlockOrigin::Chosen(origin)));
            }
        };
        Ok((records, BlockOrigin::Shard(shard, Arc::clone(path))))
    }

    fn rows(&self) -> usize {
        match self {
            Self::Range(_, range) => range.records,
            Self::Records(records) => records.len(),
            Self::Chosen(block) => block.rows(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Range(_, range) => range.bytes,
            Self::Records(records) => records.bytes(),
            Self::Chosen(block) => block.bytes(),
        }
    }
}

impl UnitContent for RecordBlocks {
    fn rows(&self) -> u64 {
        self.0.iter().map(|block| block.rows() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|block| block.bytes() as u64).sum()
    }

    fn blocks(&self) -> usize {
        self.0.len()
    }
}

/// Rows of a Parquet or Arrow file.
pub(crate) enum RowBlock {
    /// The number of a row group of a Parquet file. The worker reads the row group.
    RowGroup(Arc<Shard>, ParquetFile, usize),
    /// Rows that were read, and their bytes.
    Batch(RecordBatch, usize),
}

impl UnitContent for RowBlock {
    fn rows(&self) -> u64 {
        match self {
            Self::RowGroup(_, file, group) => file
                .groups()
                .get(*group)
                .map_or(0, |group| group.num_rows().max(0) as u64),
            Self::Batch(batch, _) => batch.num_rows() as u64,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::RowGroup(_, file, group) => file
                .groups()
                .get(*group)
                .map_or(0, |group| group.total_byte_size().max(0) as u64),
            Self::Batch(_, bytes) => *bytes as u64,
        }
    }

    fn blocks(&self) -> usize {
        1
    }
}

/// Maximum number of workers that one reader of chunks keeps busy.
const READ_AHEAD_WORKERS: usize = 4;

/// Minimum size in bytes of a file whose records workers read by their offsets.
const MIN_BY_OFFSET: u64 = 16 << 20;

/// How shards are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceOptions {
    /// Minimum size in bytes of a plain TFRecord file whose records workers read by their offsets;
    /// `None` for no files. The bytes are then read twice if records are short, which is worth it
    /// for long units, and for many workers. The file is open until a unit with its records is
    /// converted, so that a unit must not be made of many files.
    by_offset: Option<u64>,
    /// Whether a unit of rows can end after any row.
    pub(crate) splits: bool,
    /// The indices of the columns of Parquet and Arrow files that are read, in ascending order;
    /// `None` for all columns.
    pub(crate) columns: Option<Arc<[usize]>>,
    /// Whether bytes and text of Parquet files have the types of the file, not view types.
    pub(crate) stored_types: bool,
}

/// An open shard that is read unit by unit.
pub(crate) trait UnitSource: Sized + Send {
    /// The content of its units.
    type Content: UnitContent;

    /// Opens a shard.
    ///
    /// # Errors
    /// A shard that cannot be opened or read.
    fn open(shard: &Shard, how: &SourceOptions, options: &ReadOptions) -> Result<Self>;

    /// The content of the next unit, of at most `size`; `None` at the end. Calls `on_lost` with the
    /// lost bytes before it.
    ///
    /// # Errors
    /// A shard that cannot be read or decompressed, and errors of `on_lost`.
    fn next(
        &mut self,
        size: UnitSize,
        on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<Self::Content>>;

    /// Bytes read so far of a shard of `len` bytes, as stored; `None` if that is known only at the
    /// end.
    fn bytes_read(&self, len: u64) -> Option<u64>;
}

/// Reads a TFRecord file.
pub(crate) enum RecordSource {
    /// A plain file: its records are found here, and workers read them.
    Ranges(Box<FrameRanges>),
    /// A file that is read from its start to its end.
    Stream(RecordStream),
    /// Records of all shards.
    Chosen(ChosenSource),
}

impl UnitSource for RecordSource {
    type Content = RecordBlocks;

    fn open(shard: &Shard, how: &SourceOptions, options: &ReadOptions) -> Result<Self> {
        let access = match how.by_offset {
            Some(least) if shard.size >= least => ShardAccess::open(shard, options)?,
            _ => ShardAccess::Stream(Box::new(ShardReader::open(shard, options)?)),
        };
        Ok(match access {
            ShardAccess::Ranges(ranges) => Self::Ranges(ranges),
            ShardAccess::Stream(reader) => Self::Stream(RecordStream {
                reader,
                offset: 0,
                pending: None,
            }),
        })
    }

    fn next(
        &mut self,
        size: UnitSize,
        on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<RecordBlocks>> {
        let UnitSize {
            mut rows,
            mut bytes,
            blocks: most,
        } = size;
        let mut blocks = Vec::new();
        while rows > 0 && bytes > 0 && blocks.len() < most {
            let Some(block) = self.next_block(rows, bytes, on_lost)? else {
                break;
            };
            rows -= block.rows();
            bytes = bytes.saturating_sub(block.bytes());
            blocks.push(block);
        }
        Ok((!blocks.is_empty()).then_some(RecordBlocks(blocks)))
    }

    fn bytes_read(&self, len: u64) -> Option<u64> {
        Some(match self {
            Self::Chosen(chosen) => chosen.bytes_read(len),
            Self::Ranges(ranges) => ranges.bytes_read(),
            Self::Stream(stream) => stream.offset + stream.reader.bytes_read(),
        })
    }
}

impl RecordSource {
    /// The next records of a chunk: at most `rows`, whose payloads have at most `bytes`, but at
    /// least one.
    fn next_block(
        &mut self,
        rows: usize,
        bytes: usize,
        on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<RecordBlock>> {
        if let Self::Ranges(ranges) = self {
            match ranges.next(rows, bytes) {
                Ok(None) => return Ok(None),
                Ok(Some(range)) => {
                    return Ok(Some(RecordBlock::Range(Arc::clone(ranges.file()), range)));
                }
                Err(error) if !ranges.skips(&error) => return Err(error.into()),
                Err(_) => {
                    let (reader, offset) = ranges.to_reader()?;
                    *self = Self::Stream(RecordStream {
                        reader: Box::new(reader),
                        offset,
                        pending: None,
                    });
                }
            }
        }
        match self {
            Self::Ranges(_) => Ok(None),
            Self::Stream(stream) => stream.next_block(rows, bytes, on_lost),
            Self::Chosen(chosen) => Ok(chosen.next(rows, bytes)?.map(RecordBlock::Chosen)),
        }
    }
}

/// A TFRecord file that is read from its start to its end, or from a corrupt record on.
pub(crate) struct RecordStream {
    reader: Box<ShardReader>,
    /// The offset at which the reader began.
    offset: u64,
    /// Records of the last chunk that did not fit in the last unit.
    pending: Option<Records>,
}

impl RecordStream {
    fn next_block(
        &mut self,
        rows: usize,
        bytes: usize,
        on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<RecordBlock>> {
        let Some(records) = self.next_records(on_lost)? else {
            return Ok(None);
        };
        let count = records.fit(rows, bytes);
        let (records, rest) = records.split_at(count);
        self.pending = Some(rest).filter(|rest| !rest.is_empty());
        Ok(Some(RecordBlock::Records(records)))
    }

    fn next_records(
        &mut self,
        on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<Records>> {
        if let Some(records) = self.pending.take() {
            return Ok(Some(records));
        }
        loop {
            match self.reader.segment()? {
                None => return Ok(None),
                Some(Segment::Records(records)) => return Ok(Some(records)),
                Some(Segment::Lost(lost)) => on_lost(lost)?,
            }
        }
    }
}

/// Reads a Parquet or Arrow file.
pub(crate) enum RowSource {
    /// A Parquet file with one unit for each row group.
    RowGroups {
        shard: Arc<Shard>,
        file: ParquetFile,
        groups: Range<usize>,
    },
    /// A file that is read batch by batch. `pending` are rows of the last batch that did not fit in
    /// the last unit, and their bytes.
    Batches {
        batches: Batches,
        pending: Option<(RecordBatch, usize)>,
    },
}

impl UnitSource for RowSource {
    type Content = RowBlock;

    fn open(shard: &Shard, how: &SourceOptions, _options: &ReadOptions) -> Result<Self> {
        let columns = how.columns.clone();
        if shard.format != ShardFormat::Parquet {
            return Ok(Self::Batches {
                batches: rows_of(shard, columns)?,
                pending: None,
            });
        }
        let file = ParquetFile::open(&shard.path, shard.local_path())?.with_columns(columns);
        let file = if how.stored_types {
            file.with_stored_types()
        } else {
            file
        };
        let groups = 0..file.groups().len();
        if how.splits {
            return Ok(Self::Batches {
                batches: Box::new(row_group_rows(shard, &file, groups)?),
                pending: None,
            });
        }
        Ok(Self::RowGroups {
            shard: Arc::new(shard.clone()),
            file,
            groups,
        })
    }

    fn next(
        &mut self,
        size: UnitSize,
        _on_lost: &mut dyn FnMut(Lost) -> Result<()>,
    ) -> Result<Option<RowBlock>> {
        match self {
            Self::RowGroups {
                shard,
                file,
                groups,
            } => Ok(groups
                .next()
                .map(|group| RowBlock::RowGroup(Arc::clone(shard), file.clone(), group))),
            Self::Batches { batches, pending } => {
                let next = match pending.take() {
                    Some(pending) => Some(pending),
                    None => batches.next().transpose()?.map(|batch| {
                        let bytes = bytes_of(&batch);
                        (batch, bytes)
                    }),
                };
                Ok(next.map(|(batch, bytes)| {
                    let (block, rest) = split(&batch, bytes, size);
                    *pending = rest;
                    block
                }))
            }
        }
    }

    fn bytes_read(&self, len: u64) -> Option<u64> {
        match self {
            Self::RowGroups { file, groups, .. } => {
                Some(len * groups.start as u64 / file.groups().len().max(1) as u64)
            }
            Self::Batches { .. } => None,
        }
    }
}

/// The bytes of the values of a batch, which are less than its memory: all buffers of an
/// uncompressed Arrow batch are in one allocation, which each array counts.
fn bytes_of(batch: &RecordBatch) -> usize {
    fn of(data: &ArrayData) -> usize {
        let nulls = data.nulls().map_or(0, |nulls| nulls.buffer().len());
        let own: usize = data.buffers().iter().map(Buffer::len).sum();
        own + nulls + data.child_data().iter().map(of).sum::<usize>()
    }
    batch
        .columns()
        .iter()
        .map(|column| of(&column.to_data()))
        .sum()
}

/// Splits off the first rows of a batch of `bytes`: as many as fit in `size`, and at least one.
/// Returns them, and the rest with its bytes.
fn split(
    batch: &RecordBatch,
    bytes: usize,
    size: UnitSize,
) -> (RowBlock, Option<(RecordBatch, usize)>) {
    let count = batch.num_rows();
    let row_bytes = bytes / count.max(1);
    let rows = size
        .rows
        .min(size.bytes / row_bytes.max(1))
        .max(1)
        .min(count);
    if rows == count {
        return (RowBlock::Batch(batch.clone(), bytes), None);
    }
    let first_bytes = rows * row_bytes;
    let rest = (batch.slice(rows, count - rows), bytes - first_bytes);
    (
        RowBlock::Batch(batch.slice(0, rows), first_bytes),
        Some(rest),
    )
}

/// How a conversion reads, and where it reports progress and damage.
#[derive(Clone, Copy)]
pub(crate) struct ReadContext<'p> {
    pub(crate) options: ReadOptions,
    /// The number of workers.
    pub(crate) workers: usize,
    pub(crate) progress: &'p Progress,
    pub(crate) damage: &'p DamageLog,
}

impl ReadContext<'_> {
    /// Reports one of these records, which is corrupt, or does not fit, and is skipped.
    pub(crate) fn skip(
        &self,
        origin: &BlockOrigin,
        records: &Records,
        error: tfarrow_codec::Error,
    ) -> Result<()> {
        let index = error.position().record.saturating_sub(records.first());
        let data = records.data(index as usize).unwrap_or_default();
        let (shard, path, error) = origin.locate(error);
        self.damage.record(shard, path, data, error)
    }
}

/// Maximum number of blocks of a unit. Between corrupt bytes, a block may be one short record. It
/// takes 200 bytes of memory nevertheless.
pub(crate) const MAX_BLOCKS: usize = 1 << 16;

/// The maximum size of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitSize {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
}

impl UnitSize {
    fn is_zero(self) -> bool {
        self.rows == 0 || self.bytes == 0 || self.blocks == 0
    }

    /// Whether the rest of a unit, which is of this size, holds `content`. The last record of a
    /// unit may exceed its size.
    fn holds(self, content: &impl UnitContent) -> bool {
        content.rows() <= 1
            || content.rows() <= self.rows as u64 && content.bytes() <= self.bytes as u64
    }

    /// The size that remains after `content`.
    fn after(self, content: &impl UnitContent) -> Self {
        let rows = usize::try_from(content.rows()).unwrap_or(usize::MAX);
        let bytes = usize::try_from(content.bytes()).unwrap_or(usize::MAX);
        Self {
            rows: self.rows.saturating_sub(rows),
            bytes: self.bytes.saturating_sub(bytes),
            blocks: self.blocks.saturating_sub(content.blocks()),
        }
    }
}

/// Reads the shards of a job, and cuts them into units.
pub(crate) struct UnitReader<'p, S: UnitSource> {
    /// Shards that are not open yet, with their numbers in the data set.
    shards: VecDeque<(usize, Shard)>,
    open: Option<OpenShard<S>>,
    /// A part that did not fit in the last unit.
    pending: Option<UnitPart<S::Content>>,
    size: UnitSize,
    how: SourceOptions,
    reshard: Option<ReshardState>,
    /// The number of the next unit.
    number: u64,
    context: ReadContext<'p>,
}

impl<'p, S: UnitSource> UnitReader<'p, S> {
    pub(crate) fn new(
        shards: Vec<(usize, Shard)>,
        size: UnitSize,
        context: ReadContext<'p>,
    ) -> Self {
        let by_offset = size.bytes > CHUNK_BYTES || context.workers > READ_AHEAD_WORKERS;
        let least = MIN_BY_OFFSET.max(size.bytes as u64 / 4);
        let how = SourceOptions {
            by_offset: by_offset.then_some(least),
            ..SourceOptions::default()
        };
        Self {
            shards: shards.into(),
            open: None,
            pending: None,
            size,
            how,
            reshard: None,
            number: 0,
            context,
        }
    }

    /// Bytes of the shards, as stored, before the first unit is read.
    pub(crate) fn bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |open| open.len);
        let others: u64 = self.shards.iter().map(|(_, shard)| shard.size).sum();
        open + others
    }

    /// Reads only the columns with these indices of Parquet and Arrow files. The indices are in
    /// ascending order.
    pub(crate) fn with_columns(mut self, columns: Option<Arc<[usize]>>) -> Self {
        self.how.columns = columns;
        self
    }

    /// Reads bytes and text of Parquet files as the types of the file if `stored_types` is true.
    pub(crate) fn with_stored_types(mut self, stored_types: bool) -> Self {
        self.how.stored_types = stored_types;
        self
    }

    /// Distributes the records of all shards to new shards. `records` is the number of records in
    /// all of them.
    pub(crate) fn with_reshard(mut self, reshard: Reshard, records: u64) -> Self {
        self.how.splits = true;
        self.reshard = Some(ReshardState {
            reshard,
            records,
            output: 0,
            before: 0,
            rows: 0,
            bytes: 0,
        });
        self
    }

    /// The next unit; `None` at the end of the last shard.
    ///
    /// # Errors
    /// As [`UnitSource::next`], a shard that changed while it was read, and [`Error::Cancelled`].
    pub(crate) fn next(&mut self) -> Result<Option<Unit<S::Content>>> {
        let output = self.reshard.as_mut().map_or(0, ReshardState::output);
        let mut size = self
            .reshard
            .as_ref()
            .map_or(self.size, |reshard| reshard.remaining(self.size));
        let mut parts: Vec<UnitPart<S::Content>> = Vec::new();
        while !size.is_zero() {
            let Some(part) = self.next_part(size)? else {
                break;
            };
            // A row group of a source is not cut, so that it can be too large for the rest of a
            // unit.
            if !parts.is_empty() && !size.holds(&part.content) {
                self.pending = Some(part);
                break;
            }
            size = size.after(&part.content);
            if let Some(reshard) = &mut self.reshard {
                reshard.add(&part.content);
            }
            parts.push(part);
        }
        let Some(path) = parts.last().map(|part| Arc::clone(&part.path)) else {
            return Ok(None);
        };
        self.number += 1;
        Ok(Some(Unit {
            number: self.number - 1,
            output,
            parts,
            path,
        }))
    }

    /// The next part of a unit, of at most `size`; `None` at the end of the last shard.
    fn next_part(&mut self, size: UnitSize) -> Result<Option<UnitPart<S::Content>>> {
        if let Some(part) = self.pending.take() {
            return Ok(Some(part));
        }
        loop {
            if self.context.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.open.is_none() {
                let Some((number, shard)) = self.shards.pop_front() else {
                    return Ok(None);
                };
                self.open = Some(OpenShard::new(
                    number,
                    &shard,
                    &self.how,
                    &self.context.options,
                )?);
            }
            let Some(open) = &mut self.open else { continue };
            let content = open.next(size, self.context.damage)?;
            let bytes = open.advance(content.is_none());
            if let Some(content) = content {
                return Ok(Some(UnitPart {
                    shard: open.number,
                    path: Arc::clone(&open.path),
                    is_text: open.is_text,
                    bytes,
                    version: Arc::clone(&open.version),
                    content,
                }));
            }
            self.context.progress.add_bytes(bytes);
            open.version.check()?;
            self.open = None;
        }
    }
}

impl<'p> UnitReader<'p, RecordSource> {
    /// Reads chosen records of a data set, which count as so many bytes. `path` is for errors that are
    /// not about one file.
    pub(crate) fn of_chosen(
        records: Arc<ChosenRecords>,
        bytes: u64,
        path: Arc<PathBuf>,
        size: UnitSize,
        context: ReadContext<'p>,
    ) -> Self {
        let version = SourceVersion {
            path: PathBuf::new(),
            local: PathBuf::new(),
            version: None,
        };
        let open = OpenShard {
            number: 0,
            path,
            is_text: false,
            version: Arc::new(version),
            counted: 0,
            len: bytes,
            source: RecordSource::Chosen(ChosenSource::new(records)),
        };
        Self {
            open: Some(open),
            ..Self::new(Vec::new(), size, context)
        }
    }
}

/// The shard that is being read.
struct OpenShard<S> {
    /// Its number in the data set.
    number: usize,
    path: Arc<PathBuf>,
    is_text: bool,
    version: Arc<SourceVersion>,
    /// Bytes that are counted as read, and bytes of the shard, as stored.
    counted: u64,
    len: u64,
    source: S,
}

impl<S: UnitSource> OpenShard<S> {
    fn new(
        number: usize,
        shard: &Shard,
        how: &SourceOptions,
        options: &ReadOptions,
    ) -> Result<Self> {
        let version = Arc::new(SourceVersion::of(shard, options)?);
        let source = S::open(shard, how, options)?;
        let path = Arc::new(shard.path.clone());
        let is_text = shard.format.is_text();
        Ok(Self {
            number,
            path,
            is_text,
            version,
            counted: 0,
            len: shard.size,
            source,
        })
    }

    fn next(&mut self, size: UnitSize, damage: &DamageLog) -> Result<Option<S::Content>> {
        self.source
            .next(size, &mut |lost| damage.lost(self.number, &self.path, lost))
    }

    /// Bytes of the shard that were read since the last call. At the end, all bytes count as read.
    fn advance(&mut self, ended: bool) -> u64 {
        let read = self.source.bytes_read(self.len).unwrap_or(self.counted);
        let read = if ended { self.len.max(read) } else { read };
        let more = read.saturating_sub(self.counted);
        self.counted += more;
        more
    }
}

/// The version of a file that was opened.
pub(crate) struct SourceVersion {
    path: PathBuf,
    /// The local file with its bytes: a copy, if the shard is remote.
    local: PathBuf,
    /// `None` for a shard that may grow, or that is not a local file.
    version: Option<FileVersion>,
}

/// The size of a file and the time of the last write to it, which show whether it was changed.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion(u64, Option<SystemTime>);

impl SourceVersion {
    fn of(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let may_grow = options.of_payload(shard.payload()).partial_tail == PartialTail::Ignore;
        let is_fixed = !may_grow && !shard.is_stream() && !shard.is_remote();
        let local = shard.local_path().to_owned();
        let version = is_fixed
            .then(|| FileVersion::of(&local))
            .transpose()
            .map_err(|e| Error::io(&shard.path, e))?;
        Ok(Self {
            path: shard.path.clone(),
            local,
            version,
        })
    }

    /// Checks that the file was not changed while it was read: some of its records would be old and
    /// some new.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(before) = &self.version else {
            return Ok(());
        };
        match FileVersion::of(&self.local) {
            Ok(now) if now == *before => Ok(()),
            Ok(_) => Err(Error::SourceChanged {
                path: self.path.clone(),
                source: None,
            }),
            Err(error) => Err(Error::SourceChanged {
                path: self.path.clone(),
                source: Some(error),
            }),
        }
    }
}

impl FileVersion {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self(metadata.len(), metadata.modified().ok()))
    }
}

/// The position among the new shards.
struct ReshardState {
    reshard: Reshard,
    /// Records of all shards.
    records: u64,
    /// The number of the current output.
    output: usize,
    /// Records before the current output, and records and bytes in it.
    before: u64,
    rows: u64,
    bytes: u64,
}

impl ReshardState {
    /// The number of the output that the next unit belongs to.
    fn output(&mut self) -> usize {
        if self.is_full() {
            self.output += 1;
            self.before += self.rows;
            (self.rows, self.bytes) = (0, 0);
        }
        self.output
    }

    fn is_full(&self) -> bool {
        match self.reshard {
            Reshard::Shards(_) => {
                self.rows >= self.rows_wanted() && self.before + self.rows < self.records
            }
            Reshard::Bytes(bytes) => self.bytes >= bytes,
        }
    }

    /// The number of records that the current output gets; no maximum if the size of outputs is in
    /// bytes.
    fn rows_wanted(&self) -> u64 {
        let Reshard::Shards(shards) = self.reshard else {
            return u64::MAX;
        };
        let records = u128::from(self.records);
        let shards = u128::from(shards.max(1));
        let output = self.output as u128;
        let start = (records * output / shards) as u64;
        let end = (records * (output + 1) / shards) as u64;
        end - start
    }

    /// The maximum size of the next unit: the rest of the current output, and at most `size`.
    fn remaining(&self, size: UnitSize) -> UnitSize {
        match self.reshard {
            Reshard::Shards(_) => {
                let left = self.rows_wanted().saturating_sub(self.rows);
                UnitSize {
                    rows: usize::try_from(left)
                        .unwrap_or(usize::MAX)
                        .clamp(1, size.rows),
                    ..size
                }
            }
            Reshard::Bytes(bytes) => {
                let left = usize::try_from(bytes - self.bytes).unwrap_or(usize::MAX);
                UnitSize {
                    bytes: left.clamp(1, size.bytes),
                    ..size
                }
            }
        }
    }

    fn add(&mut self, content: &impl UnitContent) {
        self.rows += content.rows();
        self.bytes += content.bytes();
    }
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::{OnError, frame};
    use tfarrow_dataset::resolve;

    use super::*;

    /// Reads a file in units of at most `size`, and calls `on_unit` with each.
    fn read_units(
        path: &Path,
        options: ReadOptions,
        size: UnitSize,
        mut on_unit: impl FnMut(&Unit<RecordBlocks>),
    ) -> Result<()> {
        let shard = resolve(&[path]).unwrap().remove(0);
        let progress = Progress::default();
        let damage = DamageLog::new(None, crate::earlier::Earlier::Refused, None).unwrap();
        let context = ReadContext {
            options,
            workers: 8,
            progress: &progress,
            damage: &damage,
        };
        let mut reader = UnitReader::<RecordSource>::new(vec![(0, shard)], size, context);
        while let Some(unit) = reader.next()? {
            on_unit(&unit);
        }
        Ok(())
    }

    /// Short records between corrupt bytes, of which each takes the memory of a block.
    #[test]
    fn a_unit_has_a_maximum_number_of_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        for _ in 0..5 {
            frame::write(b"", &mut bytes);
            bytes.push(0xFF);
        }
        fs::write(&path, &bytes).unwrap();
        let options = ReadOptions {
            on_error: OnError::Skip,
            ..ReadOptions::default()
        };
        let size = UnitSize {
            rows: 10,
            bytes: usize::MAX,
            blocks: 2,
        };
        let mut rows = Vec::new();
        read_units(&path, options, size, |unit| rows.push(unit.rows())).unwrap();
        assert_eq!(rows, [2, 2, 1]);
    }

    /// Reads a file, and calls `change` with its path after the first records.
    fn read_while(partial_tail: PartialTail, change: impl Fn(&Path)) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        (0..1000).for_each(|_| frame::write(&[7; 1000], &mut bytes));
        fs::write(&path, &bytes).unwrap();
        let options = ReadOptions {
            partial_tail,
            ..ReadOptions::default()
        };
        let size = UnitSize {
            rows: 10,
            bytes: usize::MAX,
            blocks: MAX_BLOCKS,
        };
        let mut units = 0;
        let result = read_units(&path, options, size, |_| {
            if units == 0 {
                change(&path);
            }
            units += 1;
        });
        assert!(units > 0);
        result
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_rejected() {
        let append = |path: &std::path::Path| {
            let mut bytes = fs::read(path).unwrap();
            frame::write(b"more", &mut bytes);
            fs::write(path, bytes).unwrap();
        };
        assert!(read_while(PartialTail::Fail, |_| ()).is_ok());
        let error = read_while(PartialTail::Fail, append)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.tfrecord: was changed while it was read"),
            "{error}"
        );
        let error = read_while(PartialTail::Fail, |path| fs::remove_file(path).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.tfrecord: was removed while it was read"),
            "{error}"
        );
        // A file that may grow is accepted.
        assert!(read_while(PartialTail::Ignore, append).is_ok());
        // A file that is overwritten with other bytes of the same length has another time.
        let overwrite = |path: &std::path::Path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            std::io::Write::write_all(&mut &file, b"other bytes").unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        assert!(read_while(PartialTail::Fail, overwrite).is_err());
    }
}
