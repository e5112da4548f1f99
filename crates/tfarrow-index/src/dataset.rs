//! Random access to the records of a data set.
//!
//! ```text
//! take [7, 2, 9] ─▶ by place: 2, 7, 9 ─▶ reads, near ones together ─▶ frames in the order 7, 2, 9 ─▶ decode
//! ```

use std::{io, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{BatchDecoder, Layout, ReaderBuilder, RecordType, Records, Summary, VerifyCrc};
use tfarrow_dataset::{
    Error, ErrorKind, ReadOptions, Result, Segment, Shard, ShardReader,
    internals::{AccessPoint, Lock, RandomAccess, RandomReader, try_map},
};

use crate::{
    builder::{FRAME_BYTES, lengths_of},
    place::IndexPlace,
};

/// Number of bytes that near records are read with at once.
const READ_BYTES: u64 = 1 << 20;

/// How a [`Dataset`] is opened.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// Where the indexes are; `None` if none is used. A shard without one is read once.
    pub indexes: Option<IndexPlace>,
    /// The layout of features in columns.
    pub layout: Layout,
    /// The type of the records; `None`: inferred from all of them.
    pub record_type: Option<RecordType>,
    /// Options for reading.
    pub read: ReadOptions,
    /// Number of threads that open shards. By default one.
    pub threads: usize,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        Self {
            indexes: Some(IndexPlace::Beside),
            layout: Layout::Auto,
            record_type: None,
            read: ReadOptions::default(),
            threads: 1,
        }
    }
}

/// The records of TFRecord files, plain or compressed by gzip or zlib, by their numbers from 0 in
/// the order of the files.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tfarrow_dataset::resolve;
/// use tfarrow_index::{Dataset, DatasetOptions};
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/shards");
/// let dataset = Dataset::open(resolve(&[folder])?, &DatasetOptions::default())?;
/// assert_eq!(dataset.len(), 200);
/// let batch = dataset.take(&[199, 0, 7, 0])?;
/// assert_eq!(batch.num_rows(), 4);
/// assert_eq!(batch.column(0).slice(1, 1).as_ref(), batch.column(0).slice(3, 1).as_ref());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Dataset {
    shards: Vec<DatasetShard>,
    /// For each shard, the number of records in it and the shards before it.
    ends: Vec<u64>,
    schema: SchemaRef,
    builder: ReaderBuilder,
    options: DatasetOptions,
    /// Decoders that no call uses.
    decoders: Lock<Vec<BatchDecoder>>,
}

/// A shard, and the places of its records.
#[derive(Debug)]
struct DatasetShard {
    access: RandomAccess,
    /// The offset of each frame, and the end of the last one.
    offsets: Vec<u64>,
}

/// A frame that is read.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    shard: usize,
    /// The number of the record in its shard.
    record: usize,
    /// The offset of the frame in the shard, and its bytes.
    offset: u64,
    bytes: usize,
    /// The place of the frame among those that are returned.
    at: usize,
}

impl Dataset {
    /// Opens a data set. A shard without a usable index is read once.
    ///
    /// # Errors
    /// A shard that cannot be read, is damaged, or can be read only from its start to its end. A
    /// feature of several kinds.
    pub fn open(shards: Vec<Shard>, options: &DatasetOptions) -> Result<Self> {
        let opened = try_map(&shards, options.threads, |number, shard| {
            open_shard(shard, number as u32, options)
        })?;
        let codec = |error| Error::general(ErrorKind::Codec(error));
        let limits = options.read.limits;
        let mut summary = Summary::with_limits(0, limits).with_record_type(options.record_type);
        let mut dataset_shards = Vec::with_capacity(shards.len());
        let mut ends = Vec::with_capacity(shards.len());
        let mut end = 0;
        for (shard, of_shard) in opened {
            end += shard.offsets.len() as u64 - 1;
            ends.push(end);
            summary.merge(&of_shard).map_err(codec)?;
            dataset_shards.push(shard);
        }
        let schema = summary.schema(options.layout, options.record_type);
        let schema = schema.map_err(codec)?;
        Ok(Self {
            shards: dataset_shards,
            ends,
            builder: ReaderBuilder::new(Arc::clone(&schema)).with_limits(limits),
            schema,
            options: options.clone(),
            decoders: Lock::default(),
        })
    }

    /// The number of records.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns of [`take`](Self::take).
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes the records with these numbers, in this order. A number may be given several times.
    ///
    /// # Errors
    /// A number that is too large, a record that is corrupt, and a file that was changed.
    pub fn take(&self, numbers: &[u64]) -> Result<RecordBatch> {
        let wanted = self.wanted(numbers)?;
        let records = self.read(&wanted)?;
        let taken = self.decoders.lock().pop();
        let mut decoder = match taken {
            Some(decoder) => decoder,
            None => {
                let built = self.builder.clone().build_batch_decoder();
                built.map_err(|error| Error::general(ErrorKind::Codec(error)))?
            }
        };
        let batch = decoder
            .decode(&records)
            .map_err(|error| self.error_of(error, &wanted))?;
        self.decoders.lock().push(decoder);
        Ok(batch)
    }

    /// The records with these numbers, in this order, whose CRCs are checked when they are decoded.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn records(&self, numbers: &[u64]) -> Result<Records> {
        self.read(&self.wanted(numbers)?)
    }

    /// The places of records.
    fn wanted(&self, numbers: &[u64]) -> Result<Vec<Wanted>> {
        let mut wanted = Vec::with_capacity(numbers.len());
        let mut at = 0;
        for number in numbers {
            let shard = self.ends.partition_point(|end| end <= number);
            let before = match shard.checked_sub(1) {
                None => 0,
                Some(last) => self.ends.get(last).copied().unwrap_or(0),
            };
            let record = (number - before) as usize;
            let found = self.shards.get(shard);
            let place = found.and_then(|shard| shard.offsets.get(record..record + 2));
            let Some([offset, end]) = place else {
                return Err(Error::general(ErrorKind::Usage(NO_RECORD)));
            };
            let bytes = (end - offset) as usize;
            wanted.push(Wanted {
                shard,
                record,
                offset: *offset,
                bytes,
                at,
            });
            at += bytes;
        }
        Ok(wanted)
    }

    /// Reads frames, by their places, and returns them in their order.
    fn read(&self, wanted: &[Wanted]) -> Result<Records> {
        let total = wanted.last().map_or(0, |last| last.at + last.bytes);
        let mut frames = vec![0; total];
        let mut sorted = wanted.to_vec();
        sorted.sort_unstable_by_key(|frame| (frame.shard, frame.offset));
        let mut scratch = Vec::new();
        for of_shard in sorted.chunk_by(|one, next| one.shard == next.shard) {
            let number = of_shard.first().map_or(0, |frame| frame.shard);
            let Some(shard) = self.shards.get(number) else {
                break;
            };
            let mut reader = shard.access.reader();
            let mut rest = of_shard;
            while !rest.is_empty() {
                let (near, others) = rest.split_at(shard.near(rest));
                read_near(&mut reader, near, &mut scratch, &mut frames)?;
                rest = others;
            }
        }
        let records = Records::from_frames(frames, self.options.read.limits)
            .map_err(|error| self.error_of(error, wanted))?;
        let mut is_same = records.len() == wanted.len();
        for (record, frame) in records.iter().zip(wanted) {
            is_same &= record.len() + FRAME_BYTES as usize == frame.bytes;
        }
        let first = wanted
            .first()
            .and_then(|first| self.shards.get(first.shard));
        match first {
            Some(shard) if !is_same => Err(changed(shard.access.shard())),
            _ => Ok(records),
        }
    }

    /// The error of a record, with its place in the shard.
    fn error_of(&self, error: tfarrow_codec::Error, wanted: &[Wanted]) -> Error {
        let index = error.position().record as usize;
        let frame = wanted.get(index);
        let shard = frame.and_then(|frame| self.shards.get(frame.shard));
        match (frame, shard) {
            (Some(frame), Some(shard)) => Error::codec(
                &shard.access.shard().path,
                error.moved(frame.record as u64, frame.offset),
            ),
            _ => Error::general(ErrorKind::Codec(error)),
        }
    }
}

const NO_RECORD: &str = "a record is wanted whose number is not below the number of records";
const SEQUENTIAL: &str = "its records can be read only from its start to its end: write it as plain TFRecord or gzip first";

fn changed(shard: &Shard) -> Error {
    Error::io(
        &shard.path,
        io::Error::other("the file has changed since its records were found"),
    )
}

impl DatasetShard {
    /// How many of these frames of this shard are read at once.
    fn near(&self, frames: &[Wanted]) -> usize {
        let Some(first) = frames.first() else {
            return 0;
        };
        let gap = self.access.gap();
        let mut end = first.offset + first.bytes as u64;
        let mut count = 1;
        for frame in frames.iter().skip(1) {
            let last = frame.offset + frame.bytes as u64;
            if frame.offset > end + gap || last - first.offset > READ_BYTES {
                break;
            }
            end = end.max(last);
            count += 1;
        }
        count
    }
}

/// Reads near frames to their places in `frames`.
fn read_near(
    reader: &mut RandomReader<'_>,
    near: &[Wanted],
    scratch: &mut Vec<u8>,
    frames: &mut [u8],
) -> Result<()> {
    let (Some(first), Some(last)) = (near.first(), near.last()) else {
        return Ok(());
    };
    if near.len() == 1 {
        let to = frames.get_mut(first.at..first.at + first.bytes);
        return reader.read_at(first.offset, to.unwrap_or_default());
    }
    let bytes = (last.offset - first.offset) as usize + last.bytes;
    scratch.resize(bytes, 0);
    reader.read_at(first.offset, scratch)?;
    for frame in near {
        let from = (frame.offset - first.offset) as usize;
        let to = frames.get_mut(frame.at..frame.at + frame.bytes);
        let from = scratch.get(from..from + frame.bytes);
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

/// The places of the records of a shard, and their summary.
struct Places {
    /// The offset of each frame, and the end of the last one.
    offsets: Vec<u64>,
    /// The access points of a compressed file.
    points: Vec<AccessPoint>,
    summary: Summary,
}

/// Opens a shard by its index, or reads it.
fn open_shard(
    shard: &Shard,
    number: u32,
    options: &DatasetOptions,
) -> Result<(DatasetShard, Summary)> {
    let shard = &shard.clone().without_folder_columns();
    let places = match indexed(shard, number, options) {
        Some(places) => places,
        None => observe(shard, number, options)?,
    };
    let Places {
        offsets,
        points,
        summary,
    } = places;
    let Some(access) = RandomAccess::open(shard, &options.read, points)? else {
        return Err(Error::new(&shard.path, ErrorKind::Usage(SEQUENTIAL)));
    };
    // No memory is allocated for more than the shard has.
    if offsets.last().is_some_and(|end| *end > access.most_bytes()) {
        return Err(changed(shard));
    }
    Ok((DatasetShard { access, offsets }, summary))
}

/// The places of the records of a shard by its index; `None` if it has none that can be used.
fn indexed(shard: &Shard, number: u32, options: &DatasetOptions) -> Option<Places> {
    let place = options.indexes.as_ref()?;
    if options.record_type.is_some() {
        return None;
    }
    let index = place.find(shard).ok()??;
    let offsets = offsets_of(&index.lengths().ok()?);
    let points = index.points(&index.blocks().ok()?).ok()?;
    if points.is_empty() && offsets.last() != Some(&shard.size) {
        return None;
    }
    let summary = index.summary(number, options.read.limits).ok()?;
    Some(Places {
        offsets,
        points,
        summary,
    })
}

/// Reads all records of a shard.
fn observe(shard: &Shard, number: u32, options: &DatasetOptions) -> Result<Places> {
    if let Some((reader, points)) = ShardReader::open_collecting(shard, &options.read)?
        && let Ok(places) = places_of(reader, number, options)
    {
        return Ok(Places {
            points: points.take(),
            ..places
        });
    }
    places_of(ShardReader::open(shard, &options.read)?, number, options)
}

/// The places of the records of a reader, without access points.
fn places_of(mut reader: ShardReader, number: u32, options: &DatasetOptions) -> Result<Places> {
    let limits = options.read.limits;
    let mut summary = Summary::with_limits(number, limits).with_record_type(options.record_type);
    let mut lengths = Vec::new();
    while let Some(segment) = reader.segment()? {
        let Segment::Records(records) = segment else {
            continue;
        };
        let observed = summary.observe(&records, VerifyCrc::Always);
        observed.map_err(|error| Error::codec(reader.path(), error))?;
        lengths.extend(lengths_of(&records));
    }
    Ok(Places {
        offsets: offsets_of(&lengths),
        points: Vec::new(),
        summary,
    })
}

/// The offset of each frame, and the end of the last one.
fn offsets_of(lengths: &[u32]) -> Vec<u64> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    let mut offset = 0;
    offsets.push(offset);
    for length in lengths {
        offset += u64::from(*length) + FRAME_BYTES;
        offsets.push(offset);
    }
    offsets
}
