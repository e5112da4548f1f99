//! Reading an index.

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use serde::{Deserialize, Serialize};
use tfarrow_codec::{Limits, Summary, frame::FrameRange};
use tfarrow_columnar::{ParquetFile, row_group_rows};
use tfarrow_dataset::{
    Error, ErrorKind, Result, Shard, ShardFormat,
    internals::{AccessPoint, ShardAddress, ShardIdentity, divide, shown},
};

use crate::{
    builder::{FRAME_BYTES, MOST_BLOCK_BYTES, MOST_SKIPPED},
    file::{
        BYTES, IndexHead, IndexVersion, KEY, LENGTHS, OFFSET, POINT, RECORD, RECORDS, VERSION,
        ZONES,
    },
    sorted::SortedFeature,
};

/// The index of a shard, which is open.
///
/// It is checked before it is used: its checksums, its version, and that the shard is the one that
/// it was made of.
pub struct OpenIndex {
    /// The file of the index.
    file: Shard,
    parquet: ParquetFile,
    head: IndexHead,
}

/// The index of a shard, which is not open: a table has one for each of its files, and the metadata
/// of an open one takes as much memory as many of these.
#[derive(Clone, Debug)]
pub struct ShardIndex {
    /// The file of the index.
    file: Arc<Shard>,
    /// The shard that it was made of.
    identity: ShardIdentity,
    records: u64,
    sorted: Arc<[SortedFeature]>,
}

/// The address of the index of a shard, with which each process that has access to the same files
/// or stores can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexAddress {
    /// The address of the file of the index.
    pub file: ShardAddress,
    /// The shard that it was made of.
    identity: ShardIdentity,
    records: u64,
}

/// A part of a shard, for one of several readers that know nothing of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPart {
    /// The numbers of its records.
    pub records: Range<u64>,
    /// Its share of the bytes of the shard, as it is stored.
    pub bytes: u64,
}

/// The zones of a feature: an element for each block.
#[derive(Clone, Debug)]
pub struct FeatureZones {
    /// Values that are not larger than any value, of the type of the values: int64, float or
    /// binary. Null if the block has no value, or NaN only. Byte strings are cut.
    pub min: ArrayRef,
    /// Values that are not smaller than any value. Null also if there is no such byte string.
    pub max: ArrayRef,
    /// The number of records without the feature.
    pub nulls: Int64Array,
    /// The number of values that are NaN; `None` for a feature that has no floats.
    pub nans: Option<Int64Array>,
    /// Whether all byte strings of the shard are UTF-8.
    pub is_utf8: bool,
}

/// An index that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index {} is not used: {fault}", shown(.path))]
pub struct UnusableIndex {
    /// The path of the index.
    pub path: PathBuf,
    /// The reason.
    pub fault: IndexFault,
}

/// Why an index is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexFault {
    /// The shard is not the one that the index was made of.
    #[error("the shard has changed since the index was made")]
    Changed,
    /// The file was not written by this program: the indexes of other programs have the same name.
    #[error("it is no index of tfarrow")]
    Foreign,
    /// The index has another version of the format.
    #[error("it has version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// The file is damaged, or cannot be read. Contains the reason.
    #[error("{0}")]
    Unreadable(String),
}

impl UnusableIndex {
    /// An index whose blocks or zones cannot be read.
    pub fn of_error(error: Error) -> Self {
        Self {
            path: error.path().unwrap_or(Path::new("")).to_owned(),
            fault: unreadable(error),
        }
    }
}

impl ShardIndex {
    /// Opens the index of `shard`. Copies an index in a store, unless it was copied before.
    ///
    /// # Errors
    /// As [`OpenIndex::open`], and if the shard and its index were replaced by others.
    pub fn open(&self, shard: &Shard) -> Result<OpenIndex, UnusableIndex> {
        let mut file = Shard::clone(&self.file);
        file.spool_for_scan().map_err(UnusableIndex::of_error)?;
        let index = OpenIndex::open(file, shard)?;
        if index.head.shard != self.identity {
            return Err(UnusableIndex {
                path: index.file.path,
                fault: IndexFault::Changed,
            });
        }
        Ok(index)
    }

    /// The file of the index.
    pub fn file(&self) -> &Shard {
        &self.file
    }

    /// The address of the index.
    ///
    /// # Errors
    /// Only this process can read the index, as [`ShardAddress::of`].
    pub fn address(&self) -> Result<IndexAddress> {
        Ok(IndexAddress {
            file: ShardAddress::of(&self.file)?,
            identity: self.identity.clone(),
            records: self.records,
        })
    }

    /// Whether the shard is still the one that the index was made of.
    pub fn is_of(&self, shard: &Shard) -> bool {
        shard
            .identity()
            .is_ok_and(|identity| identity == self.identity)
    }

    /// The number of records of the shard.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The features whose values do not decrease from record to record.
    pub fn sorted(&self) -> &[SortedFeature] {
        &self.sorted
    }
}

impl IndexAddress {
    /// The index at this address. `file` is the shard of [`file`](Self::file).
    pub fn index(self, mut file: Shard) -> ShardIndex {
        file.format = ShardFormat::Parquet;
        ShardIndex {
            file: Arc::new(file),
            identity: self.identity,
            records: self.records,
            // The order of rows is decided where the query is planned.
            sorted: Arc::default(),
        }
    }
}

impl fmt::Debug for OpenIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenIndex")
            .field("path", &self.file.path)
            .finish_non_exhaustive()
    }
}

impl OpenIndex {
    /// Opens the index at the path of `file` of the shard `shard`.
    ///
    /// # Errors
    /// The file is no index, is damaged or has another version, or the shard is not the one that it
    /// was made of.
    pub fn open(file: Shard, shard: &Shard) -> Result<Self, UnusableIndex> {
        match checked(&file, shard) {
            Ok((parquet, head)) => Ok(Self {
                file,
                parquet,
                head,
            }),
            Err(fault) => Err(UnusableIndex {
                path: file.path,
                fault,
            }),
        }
    }

    /// Closes the index.
    pub fn close(self) -> ShardIndex {
        ShardIndex {
            file: Arc::new(self.file),
            identity: self.head.shard,
            records: self.head.records,
            sorted: self.head.sorted.into(),
        }
    }

    /// The number of records of the shard.
    pub fn records(&self) -> u64 {
        self.head.records
    }

    /// The summary of all records, as records of the shard with this number.
    ///
    /// # Errors
    /// More names than the limits allow.
    pub fn summary(&self, shard: u32, limits: Limits) -> Result<Summary> {
        let state = self.head.summary.clone().of_shard(shard);
        Summary::from_state(state, limits, None)
            .map_err(|error| Error::general(ErrorKind::Codec(error)))
    }

    /// The blocks, in the order of the shard. Every record is in one of them. The offsets are those
    /// in the decompressed shard.
    ///
    /// # Errors
    /// The index is damaged, or cannot be read.
    pub fn blocks(&self) -> Result<Vec<FrameRange>> {
        let mut blocks = Vec::new();
        let mut next_record = 0;
        let mut next_offset = 0;
        for batch in self.columns(&[RECORD, RECORDS, OFFSET, BYTES])? {
            let batch = batch?;
            let [first, records, offset, bytes] =
                [RECORD, RECORDS, OFFSET, BYTES].map(|name| integers(&batch, name));
            let (Some(first), Some(records), Some(offset), Some(bytes)) =
                (first, records, offset, bytes)
            else {
                return Err(self.damaged("a column has another type"));
            };
            for row in 0..batch.num_rows() {
                let block = FrameRange {
                    first: number(first, row),
                    records: number(records, row) as usize,
                    offset: number(offset, row),
                    bytes: number(bytes, row) as usize,
                };
                let follows = block.first == next_record && block.offset == next_offset;
                if !follows || !is_possible(&block) {
                    return Err(self.damaged("its blocks do not follow each other"));
                }
                next_record += block.records as u64;
                next_offset += block.bytes as u64;
                blocks.push(block);
            }
        }
        if next_record != self.head.records {
            return Err(self.damaged("its blocks do not have all records"));
        }
        Ok(blocks)
    }

    /// Divides the records of the shard into at most `count` parts of about the same size, of about
    /// `least` bytes or more as they are stored. `None` if there are fewer than two, or if the shard
    /// can be read from its start only.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    pub fn divide(&self, count: usize, least: u64) -> Result<Option<Vec<IndexedPart>>> {
        let blocks = self.blocks()?;
        let stored = self.head.shard.size();
        let bytes: u64 = blocks.iter().map(|block| block.bytes as u64).sum();
        // The frames of a plain file are all of its bytes.
        let has_places = bytes == stored || self.has_points();
        let most = stored / least.max(1);
        let count = count.min(usize::try_from(most).unwrap_or(usize::MAX));
        if !has_places || count < 2 {
            return Ok(None);
        }
        let sizes: Vec<u64> = blocks.iter().map(|block| block.bytes as u64).collect();
        let mut parts = Vec::with_capacity(count);
        for range in divide(&sizes, count) {
            let of_part = blocks.get(range).unwrap_or_default();
            let (Some(first), Some(last)) = (of_part.first(), of_part.last()) else {
                continue;
            };
            let held = last.offset + last.bytes as u64 - first.offset;
            parts.push(IndexedPart {
                records: first.first..last.first + last.records as u64,
                bytes: (u128::from(held) * u128::from(stored) / u128::from(bytes)) as u64,
            });
        }
        Ok((parts.len() > 1).then_some(parts))
    }

    /// Whether the shard is a compressed one with access points.
    fn has_points(&self) -> bool {
        self.parquet.stored_schema().index_of(POINT).is_ok()
    }

    /// The access points of a gzip or zlib file, among them those before each of these blocks; none for
    /// other shards. They are in the order of the file.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    pub fn points(&self, wanted: &[FrameRange]) -> Result<Vec<AccessPoint>> {
        let mut points: Vec<AccessPoint> = Vec::new();
        let (true, Some(first), Some(last)) = (self.has_points(), wanted.first(), wanted.last())
        else {
            return Ok(points);
        };
        let blocks = self.blocks()?;
        let begin = blocks.partition_point(|block| block.first < first.first);
        let end = blocks.partition_point(|block| block.first <= last.first);
        let (groups, row) = self.groups_of(begin..end);
        let mut blocks = blocks.get(row..).unwrap_or_default().iter();
        for batch in self.columns_of(groups, &[POINT])? {
            let batch = batch?;
            let Some(of_blocks) = points_of(&batch) else {
                return Err(self.damaged("a column has another type"));
            };
            for point in of_blocks {
                let offset = blocks.next().map_or(0, |block| block.offset);
                let is_after = points.last().is_none_or(|last| last.offset <= point.offset);
                if !is_after || !is_before(&point, offset) {
                    return Err(self.damaged("an access point is not before its block"));
                }
                if points.last() != Some(&point) {
                    points.push(point);
                }
            }
        }
        Ok(points)
    }

    /// The row groups with these rows, and the first row of the first of them.
    fn groups_of(&self, rows: Range<usize>) -> (Range<usize>, usize) {
        let mut groups = 0..0;
        let mut first_row = 0;
        let mut row = 0;
        for (number, group) in self.parquet.groups().iter().enumerate() {
            let end = row + group.num_rows().max(0) as usize;
            if end <= rows.start {
                groups = number + 1..number + 1;
                first_row = end;
            } else if row < rows.end {
                groups.end = number + 1;
            }
            row = end;
        }
        (groups, first_row)
    }

    /// The number of bytes of the payload of each record.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    pub fn lengths(&self) -> Result<Vec<u32>> {
        let mut lengths = Vec::new();
        for batch in self.columns(&[LENGTHS])? {
            let batch = batch?;
            let lists = batch
                .columns()
                .first()
                .and_then(|it| it.as_list_opt::<i32>());
            let values = lists.and_then(|lists| lists.values().as_primitive_opt::<Int64Type>());
            let Some(values) = values else {
                return Err(self.damaged("a column has another type"));
            };
            for value in values.values() {
                let Ok(length) = u32::try_from(*value) else {
                    return Err(self.damaged("a length is negative, or too long"));
                };
                lengths.push(length);
            }
        }
        if lengths.len() as u64 != self.head.records {
            return Err(self.damaged("it does not have the lengths of all records"));
        }
        Ok(lengths)
    }

    /// Whether the feature `name` has zones.
    fn has_zones(&self, name: &str) -> bool {
        let schema = self.parquet.stored_schema();
        schema.field_with_name(&format!("{ZONES}{name}")).is_ok()
    }

    /// The zones of a feature; `None` if it is no scalar in all records, or has none.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    pub fn zones(&self, name: &str) -> Result<Option<FeatureZones>> {
        if !self.has_zones(name) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for batch in self.columns(&[&format!("{ZONES}{name}")])? {
            let batch = batch?;
            let Some(zones) = batch.columns().first().and_then(|it| it.as_struct_opt()) else {
                return Err(self.damaged("a column has another type"));
            };
            parts.push(zones.clone());
        }
        let mut arrays: Vec<&dyn arrow_array::Array> = Vec::with_capacity(parts.len());
        for part in &parts {
            arrays.push(part);
        }
        let joined = arrow_select::concat::concat(&arrays);
        let joined = joined.map_err(|error| self.damaged(&error.to_string()))?;
        let zones = joined.as_struct();
        let (Some(min), Some(max), Some(nulls)) = (
            zones.column_by_name("min"),
            zones.column_by_name("max"),
            zones
                .column_by_name("nulls")
                .and_then(|it| it.as_primitive_opt()),
        ) else {
            return Err(self.damaged("a zone has other fields"));
        };
        let nans = zones.column_by_name("nans");
        let nans = nans.and_then(|it| it.as_primitive_opt()).cloned();
        Ok(Some(FeatureZones {
            min: Arc::clone(min),
            max: Arc::clone(max),
            nulls: nulls.clone(),
            nans,
            is_utf8: self.head.summary.is_utf8(name),
        }))
    }

    /// The rows of these columns.
    fn columns(&self, names: &[&str]) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        self.columns_of(0..self.parquet.groups().len(), names)
    }

    /// The rows of these columns in some row groups.
    fn columns_of(
        &self,
        groups: Range<usize>,
        names: &[&str],
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let schema = self.parquet.stored_schema();
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            match schema.index_of(name) {
                Ok(index) => wanted.push(index),
                Err(_) => return Err(self.damaged(&format!("it has no column {name}"))),
            }
        }
        wanted.sort_unstable();
        let parquet = self.parquet.clone().with_columns(Some(wanted.into()));
        row_group_rows(&self.file, &parquet, groups)
    }

    fn damaged(&self, why: &str) -> Error {
        let text = format!("the index is damaged: {why}");
        Error::io(
            &self.file.path,
            io::Error::new(io::ErrorKind::InvalidData, text),
        )
    }
}

/// Whether a block can have so many records and bytes. Memory is allocated by both.
fn is_possible(block: &FrameRange) -> bool {
    let least = block.records.saturating_mul(FRAME_BYTES as usize);
    block.records > 0 && least <= block.bytes && block.bytes <= MOST_BLOCK_BYTES
}

fn integers<'b>(batch: &'b RecordBatch, name: &str) -> Option<&'b Int64Array> {
    batch.column_by_name(name)?.as_primitive_opt()
}

fn number(column: &Int64Array, row: usize) -> u64 {
    // A negative number becomes a large one, which follows no block.
    column.value(row) as u64
}

/// Whether a block at `offset` can be read from an access point.
fn is_before(point: &AccessPoint, offset: u64) -> bool {
    let is_near = point.offset <= offset && offset - point.offset <= MOST_SKIPPED;
    is_near && [0, AccessPoint::WINDOW_BYTES].contains(&point.window.len())
}

/// The access points of some rows; `None` if the column has another type.
fn points_of(batch: &RecordBatch) -> Option<Vec<AccessPoint>> {
    let rows = batch.column_by_name(POINT)?.as_struct_opt()?;
    let offsets: &Int64Array = rows.column_by_name("offset")?.as_primitive_opt()?;
    let bits: &Int64Array = rows.column_by_name("bits")?.as_primitive_opt()?;
    let windows = rows.column_by_name("window")?.as_binary_opt::<i32>()?;
    let mut points = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        points.push(AccessPoint {
            offset: number(offsets, row),
            bits: number(bits, row),
            window: windows.value(row).to_vec(),
        });
    }
    Some(points)
}

/// Reads the metadata of an index, and checks that it is the index of `shard`.
fn checked(file: &Shard, shard: &Shard) -> Result<(ParquetFile, IndexHead), IndexFault> {
    if file.format != ShardFormat::Parquet {
        return Err(IndexFault::Foreign);
    }
    let parquet = ParquetFile::open(&file.path, file.local_path()).map_err(unreadable)?;
    let head = head_of(&parquet)?;
    if head.shard != shard.identity().map_err(unreadable)? {
        return Err(IndexFault::Changed);
    }
    Ok((parquet.with_stored_types(), head))
}

/// What an index says about its shard.
fn head_of(parquet: &ParquetFile) -> Result<IndexHead, IndexFault> {
    let metadata = parquet.metadata.metadata().file_metadata();
    let entries = metadata.key_value_metadata().into_iter().flatten();
    let mut heads = entries.filter(|entry| entry.key == KEY);
    let Some(head) = heads.find_map(|entry| entry.value.as_deref()) else {
        return Err(IndexFault::Foreign);
    };
    if parquet.verifier.is_none() {
        let why = "another program has rewritten it";
        return Err(IndexFault::Unreadable(why.to_owned()));
    }
    let IndexVersion { version } = from_json(head)?;
    if version != VERSION {
        return Err(IndexFault::Version(version));
    }
    from_json(head)
}

fn from_json<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, IndexFault> {
    serde_json::from_str(json)
        .map_err(|error| IndexFault::Unreadable(format!("its metadata is damaged: {error}")))
}

/// The reason of an error, without the path.
pub(crate) fn unreadable(error: Error) -> IndexFault {
    IndexFault::Unreadable(error.kind().to_string())
}
