//! Rows as records: the records that a conversion to TFRecord would write, made in memory for the
//! threads of a scan.
//!
//! ```text
//! RowFile ─▶ RowGroups ─┬▶ RowPart (thread 1): read a batch, encode it ─▶ EncodedRows
//! a shard    unopened,  └▶ RowPart (thread 2): read a batch, encode it ─▶ EncodedRows
//!            open
//! ```
//!
//! Each thread takes a row group of its own while there are some, and then helps with one that is
//! open. Threads of the same row group take turns to read a batch, and encode and observe at the
//! same time. Arrow, CSV and JSON files count as one row group.

use std::{
    io::{self, Read},
    iter, mem,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use tfarrow_codec::{
    Encoder, Limits, RecordType, Records, WriterBuilder,
    schema::{RECORD_TYPE, record_type_of, role_of},
};
use tfarrow_columnar::{
    BATCH_ROWS, Batches, ParquetFile, TextFile, arrow_batches, row_group_rows, schema_within,
};
use tfarrow_dataset::{Error, Result, Shard, ShardFormat, internals::Lock};

use crate::{options::InferOptions, row_losses::RowLosses};

/// Maximum bytes of the arrays that are encoded at once.
const ENCODE_BYTES: usize = 4 << 20;

/// How the rows of a data set become records, and what is lost by that.
pub(crate) struct RowEncoding {
    /// The type of the records of files that state none.
    record_type: Option<RecordType>,
    limits: Limits,
    losses: Arc<Lock<RowLosses>>,
}

impl RowEncoding {
    pub(crate) fn new(options: &InferOptions) -> Self {
        // Records are observed as what they are; a schema of raw records is made of any records.
        let record_type = options
            .record_type
            .filter(|record_type| *record_type != RecordType::Raw);
        Self {
            record_type,
            limits: options.read.limits,
            losses: Arc::default(),
        }
    }

    /// The losses of all files, after these were read.
    pub(crate) fn into_losses(self) -> RowLosses {
        mem::take(&mut *self.losses.lock())
    }
}

/// A file of rows that several threads read as records.
#[derive(Clone)]
pub(crate) struct RowFile(Arc<FileState>);

struct FileState {
    shard: Shard,
    schema: SchemaRef,
    builder: WriterBuilder,
    groups: RowGroups,
    losses: Arc<Lock<RowLosses>>,
}

impl RowFile {
    /// Opens a file; `None` if it is TFRecord.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn open(shard: &Shard, options: &RowEncoding) -> Result<Option<Self>> {
        let Some(schema) = schema_within(shard, &options.limits)? else {
            return Ok(None);
        };
        let groups = RowGroups::open(shard)?;
        let builder = encoder_builder(&schema, options.record_type);
        let losses = Arc::clone(&options.losses);
        Ok(Some(Self(Arc::new(FileState {
            shard: shard.clone(),
            schema,
            builder,
            groups,
            losses,
        }))))
    }

    /// Takes a part of the file for the calling thread; `None` if other threads have all parts.
    /// Parts that are taken and read one after the other are in the order of the file.
    pub(crate) fn take(&self) -> Option<RowPart> {
        let group = self.0.groups.take()?;
        Some(RowPart {
            file: Arc::clone(&self.0),
            group,
            encoder: None,
            frames: None,
            has_failed: false,
        })
    }
}

/// Consecutive rows as records.
pub(crate) struct EncodedRows {
    pub(crate) records: Records,
    /// Number of bytes of the shard, as it is stored, that were read for them.
    pub(crate) bytes: u64,
}

/// The records of a file that states their type, in order, and this type; `None` for another file,
/// and for one of messages, which its rows show in full. Values are changed where they must be.
///
/// # Errors
/// A file that cannot be opened. Rows that cannot be read are errors of the iterator.
pub fn stated_records(
    shard: &Shard,
    limits: &Limits,
) -> Result<Option<(RecordType, impl Iterator<Item = Result<Records>>)>> {
    let Some(schema) = schema_within(shard, limits)? else {
        return Ok(None);
    };
    if !states_type(&schema) || record_type_of(&schema) == RecordType::Message {
        return Ok(None);
    }
    Ok(records(shard, limits)?.map(|records| (record_type_of(&schema), records)))
}

/// The records that a conversion of a file to TFRecord writes, in order; `None` for a file that is
/// TFRecord.
fn records(
    shard: &Shard,
    limits: &Limits,
) -> Result<Option<impl Iterator<Item = Result<Records>> + Send + use<>>> {
    let options = RowEncoding {
        record_type: None,
        limits: *limits,
        losses: Arc::default(),
    };
    let Some(file) = RowFile::open(shard, &options)? else {
        return Ok(None);
    };
    let parts = iter::from_fn(move || file.take()).flatten();
    Ok(Some(parts.map(|part| part.map(|encoded| encoded.records))))
}

/// Reads the rows of a file of another format as the bytes of a TFRecord file: those that its
/// conversion to TFRecord writes.
///
/// # Errors
/// A file that cannot be opened. For rows that cannot be read, the error of the reader contains
/// that of this crate.
pub fn record_bytes(shard: &Shard, limits: &Limits) -> Result<Box<dyn Read + Send>> {
    match records(shard, limits)? {
        Some(records) => Ok(Box::new(RecordBytes {
            records,
            frames: None,
            at: 0,
        })),
        None => shard.open().map_err(|error| Error::io(&shard.path, error)),
    }
}

/// The bytes of records, which are encoded as they are read.
struct RecordBytes<R> {
    records: R,
    /// The records that are being read.
    frames: Option<Records>,
    /// The number of their bytes that were read.
    at: usize,
}

impl<R: Iterator<Item = Result<Records>>> Read for RecordBytes<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let frames = self.frames.as_ref().map_or(&[][..], Records::frames);
            let mut rest = frames.get(self.at..).unwrap_or_default();
            if !rest.is_empty() {
                let count = rest.read(to)?;
                self.at += count;
                return Ok(count);
            }
            (self.frames, self.at) = (None, 0);
            match self.records.next() {
                Some(records) => self.frames = Some(records.map_err(io::Error::other)?),
                None => return Ok(0),
            }
        }
    }
}

/// Whether the metadata of a schema, or of its columns, has the type of the records, as `convert`
/// writes it.
fn states_type(schema: &Schema) -> bool {
    schema.metadata().contains_key(RECORD_TYPE)
        || schema.fields().iter().any(|field| role_of(field).is_some())
}

/// The builder of an encoder that changes values where it must. `record_type` is the type of the
/// records of a schema that states none.
fn encoder_builder(schema: &Schema, record_type: Option<RecordType>) -> WriterBuilder {
    let builder = WriterBuilder::new().with_lossy(true);
    record_type
        .filter(|_| !states_type(schema))
        .into_iter()
        .fold(builder, WriterBuilder::with_record_type)
}

/// The row groups of a file: those that no thread has taken, and those that are being read.
struct RowGroups {
    parquet: Option<ParquetFile>,
    /// Whether batches are small already, and `total` and `read` are numbers of rows. They are not
    /// for Arrow.
    counts_rows: bool,
    state: Lock<GroupState>,
    /// The size of the file in bytes, its number of rows or batches, and how many of these were
    /// read.
    size: u64,
    total: u64,
    read: AtomicU64,
}

struct GroupState {
    untaken: Range<usize>,
    open: Vec<Arc<RowGroup>>,
}

/// A row group that threads read batch by batch.
struct RowGroup {
    /// Its number.
    number: usize,
    rows: Lock<GroupRows>,
}

/// The rows of a row group.
enum GroupRows {
    Unopened,
    /// `pending` are rows of the last batch that were not encoded, and `row` is the number of the
    /// next row in the file.
    Open {
        batches: Batches,
        pending: Option<RecordBatch>,
        row: u64,
    },
    Ended,
}

impl RowGroups {
    fn open(shard: &Shard) -> Result<Self> {
        let (parquet, untaken, open, total) = if shard.format == ShardFormat::Parquet {
            let file = ParquetFile::open(&shard.path, shard.local_path())?;
            let untaken = 0..file.groups().len();
            let total = file.rows();
            (Some(file), untaken, Vec::new(), total)
        } else {
            let (total, batches): (_, Batches) = if shard.format.is_text() {
                let (file, rows) = TextFile::open(shard)?;
                (rows, Box::new(file.rows()?))
            } else {
                let (count, batches) = arrow_batches(shard, None)?;
                (count as u64, Box::new(batches))
            };
            let rows = GroupRows::Open {
                batches,
                pending: None,
                row: 0,
            };
            let open = vec![Arc::new(RowGroup {
                number: 0,
                rows: Lock::new(rows),
            })];
            (None, 0..0, open, total)
        };
        Ok(Self {
            parquet,
            counts_rows: shard.format != ShardFormat::Arrow,
            state: Lock::new(GroupState { untaken, open }),
            size: shard.size,
            total,
            read: AtomicU64::new(0),
        })
    }

    /// Takes a row group of its own for a thread, or one that is open.
    fn take(&self) -> Option<Arc<RowGroup>> {
        let mut state = self.state.lock();
        if let Some(number) = state.untaken.next() {
            let group = Arc::new(RowGroup {
                number,
                rows: Lock::new(GroupRows::Unopened),
            });
            state.open.push(Arc::clone(&group));
            return Some(group);
        }
        state.open.first().cloned()
    }

    /// Removes a row group that was read, or cannot be read.
    fn end(&self, group: &Arc<RowGroup>) {
        self.state
            .lock()
            .open
            .retain(|open| !Arc::ptr_eq(open, group));
    }

    /// The next rows of a row group, with the number of the first one in the file, and the bytes
    /// that they count as; `None` at the end.
    fn next(&self, shard: &Shard, group: &RowGroup) -> Result<Option<(u64, RecordBatch, u64)>> {
        let mut rows = group.rows.lock();
        if let (GroupRows::Unopened, Some(file)) = (&*rows, &self.parquet) {
            *rows = GroupRows::Ended;
            let batches = Box::new(row_group_rows(shard, file, group.number..group.number + 1)?);
            *rows = GroupRows::Open {
                batches,
                pending: None,
                row: file.first_row(group.number),
            };
        }
        let GroupRows::Open {
            batches,
            pending,
            row,
        } = &mut *rows
        else {
            return Ok(None);
        };
        let rest = pending.take();
        let is_new = rest.is_none();
        let Some(batch) = rest
            .map_or_else(|| batches.next().transpose(), |rest| Ok(Some(rest)))
            .transpose()
        else {
            *rows = GroupRows::Ended;
            return Ok(None);
        };
        let first = *row;
        let (batch, rest) = if self.counts_rows {
            (batch?, None)
        } else {
            split(batch?)
        };
        *row += batch.num_rows() as u64;
        *pending = rest;
        let read = if self.counts_rows {
            batch.num_rows() as u64
        } else {
            u64::from(is_new)
        };
        Ok(Some((first, batch, self.bytes_of(read))))
    }

    /// The bytes that further `read` rows or batches count as: their share of the file.
    fn bytes_of(&self, read: u64) -> u64 {
        let before = self.read.fetch_add(read, Ordering::Relaxed);
        let until = self.bytes_until(before.saturating_add(read));
        u64::try_from(until - self.bytes_until(before)).unwrap_or_default()
    }

    /// The bytes that the first `read` rows or batches count as.
    fn bytes_until(&self, read: u64) -> u128 {
        u128::from(self.size) * u128::from(read) / u128::from(self.total.max(1))
    }
}

/// Splits off the first rows of a batch of an Arrow file, as many as are encoded at once. Returns
/// them and the rest.
fn split(batch: RecordBatch) -> (RecordBatch, Option<RecordBatch>) {
    let rows = batch.num_rows();
    let row_bytes = batch.get_array_memory_size() / rows.max(1);
    let count = (ENCODE_BYTES / row_bytes.max(1)).clamp(1, BATCH_ROWS);
    if count >= rows {
        (batch, None)
    } else {
        (
            batch.slice(0, count),
            Some(batch.slice(count, rows - count)),
        )
    }
}

/// The part of a file that one thread reads: the rows of a row group as records, in order. An error
/// is the last item.
pub(crate) struct RowPart {
    file: Arc<FileState>,
    group: Arc<RowGroup>,
    encoder: Option<Encoder>,
    /// The memory of the frames of the last records, which is filled again if nothing else holds
    /// it.
    frames: Option<Buffer>,
    has_failed: bool,
}

impl RowPart {
    fn read(&mut self) -> Result<Option<EncodedRows>> {
        let FileState { shard, groups, .. } = &*self.file;
        let Some((first, batch, bytes)) = groups.next(shard, &self.group)? else {
            return Ok(None);
        };
        let records = self
            .encode(first, &batch)
            .map_err(|e| Error::codec(&self.file.shard.path, e))?;
        Ok(Some(EncodedRows { records, bytes }))
    }

    fn encode(&mut self, first: u64, batch: &RecordBatch) -> tfarrow_codec::Result<Records> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            None => {
                let (encoder, left_out) = self
                    .file
                    .builder
                    .clone()
                    .build_partial_encoder(Arc::clone(&self.file.schema))?;
                let left_out = left_out.iter().map(ToString::to_string);
                self.file.losses.lock().left_out.extend(left_out);
                self.encoder.insert(encoder)
            }
        };
        // Fresh memory for each batch would take longer to get than to fill.
        let mut frames = self
            .frames
            .take()
            .and_then(|frames| frames.into_vec().ok())
            .unwrap_or_default();
        frames.clear();
        encoder.set_next(first);
        encoder.encode(batch, &mut frames)?;
        let frames = Buffer::from_vec(frames);
        self.frames = Some(frames.clone());
        Records::from_rows(frames, first)
    }
}

impl Iterator for RowPart {
    type Item = Result<EncodedRows>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read();
        if !matches!(read, Ok(Some(_))) {
            self.has_failed = true;
            self.file.groups.end(&self.group);
        }
        read.transpose()
    }
}

/// Adds the changes of values to the losses.
impl Drop for RowPart {
    fn drop(&mut self) {
        let changes = self.encoder.iter().flat_map(Encoder::losses);
        let mut losses = self.file.losses.lock();
        for (column, change, times) in changes {
            *losses
                .changed
                .entry(format!("column {column:?}: {change}"))
                .or_default() += times;
        }
    }
}
