//! Random access to the records of a data set.
//!
//! ```text
//! numbers [7, 2, 9] ─▶ by place: 2, 7, 9 ─▶ reads, near ones together ─▶ Fetched ─▶ decode 7, 2, 9
//! ```

use std::{collections::VecDeque, io, ops::Range, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;
use tfarrow_codec::{BatchDecoder, OnError, ReaderBuilder, Records};
use tfarrow_dataset::{
    Error, ErrorKind, OnProgress, ReadOptions, Result, Shard,
    internals::{Lock, RandomAccess, RandomReader, try_map},
};

use crate::{
    builder::FRAME_BYTES,
    place::IndexPlace,
    places::{PlaceFinder, RecordPlaces, SEQUENTIAL},
    shard_index::UnusableIndex,
};

/// Number of bytes that near records are read with at once.
const READ_BYTES: u64 = 1 << 20;
/// Number of shards that are open at the same time. Systems allow a process 1,024 files or fewer.
const MOST_OPEN: usize = 128;
/// The row of a record that was skipped: there is no record of this number in memory.
const LOST: u32 = u32::MAX;
/// Number of parts that each thread reads of many records, so that all end at about the same time.
const PARTS: usize = 4;

/// How a [`Dataset`] is opened.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// Where the indexes are; `None` if none is used. The records of a shard without one are found by
    /// the headers of their frames, and those of a compressed shard by reading it once.
    pub indexes: Option<IndexPlace>,
    /// Options for reading.
    pub read: ReadOptions,
    /// Number of threads that open shards. By default one.
    pub threads: usize,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        Self {
            indexes: Some(IndexPlace::Beside),
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
/// use std::{ops::ControlFlow, sync::Arc};
///
/// use arrow_array::{cast::AsArray, types::Int64Type};
/// use arrow_schema::{DataType, Field, Schema};
/// use tfarrow_codec::ReaderBuilder;
/// use tfarrow_dataset::resolve;
/// use tfarrow_index::{Dataset, DatasetOptions};
///
/// let schema = Schema::new(vec![Field::new("label", DataType::Int64, true)]);
/// let builder = ReaderBuilder::new(Arc::new(schema));
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/shards");
/// let options = DatasetOptions::default();
/// let progress = |_, _| ControlFlow::Continue(());
/// let dataset = Dataset::open(resolve(&[folder])?, builder, &options, &progress)?;
/// assert_eq!(dataset.len(), 200);
/// let batch = dataset.take(&[199, 0, 7, 0])?;
/// let labels = batch.column(0).as_primitive::<Int64Type>();
/// assert_eq!(labels.value(1), labels.value(3));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Dataset {
    shards: Vec<DatasetShard>,
    /// For each shard, the number of records in it and the shards before it.
    ends: Vec<u64>,
    unusable: Vec<UnusableIndex>,
    schema: SchemaRef,
    builder: ReaderBuilder,
    read: ReadOptions,
    /// Decoders that no call uses.
    decoders: Lock<Vec<BatchDecoder>>,
    /// The shards that are open, the first one for the longest time.
    open: Lock<VecDeque<(usize, Arc<RandomAccess>)>>,
}

/// A shard, and the places of its records.
#[derive(Debug)]
struct DatasetShard {
    shard: Shard,
    places: RecordPlaces,
}

/// Records in memory, which were read together.
#[derive(Debug)]
pub struct Fetched {
    /// In the order of the data set, each once.
    records: Records,
    frames: Vec<FramePlace>,
    /// The place of each wanted record among `records`.
    rows: Vec<u32>,
    skipped: Vec<Error>,
}

/// A frame that is read.
#[derive(Clone, Copy, Debug)]
struct FramePlace {
    shard: usize,
    /// The number of the record in its shard.
    record: usize,
    /// The offset of the frame in the shard, and its bytes.
    offset: u64,
    bytes: usize,
}

/// Frames that are read at once, and the memory for them.
struct NearRead<'a> {
    frames: &'a [FramePlace],
    memory: Lock<&'a mut [u8]>,
}

impl Fetched {
    /// The number of records that were wanted.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no record was wanted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The payload of a record, by its place among the wanted numbers; `None` if it was skipped, or
    /// there is no such place. Its CRC is checked by [`records`](Self::records), or when it is
    /// decoded.
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        self.records.data(*self.rows.get(place)? as usize)
    }

    /// The records, each once, in the order of the data set.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Takes the errors of the frames that were skipped.
    pub fn take_skipped(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.skipped)
    }
}

impl Dataset {
    /// Opens a data set whose records `builder` decodes. `progress` is called with what is read to find
    /// the records of shards without an index.
    ///
    /// # Errors
    /// A shard that cannot be read, has a corrupt length, or can be read only from its start to its
    /// end. Columns that `builder` cannot decode. [`ErrorKind::Stopped`] if `progress` stops.
    pub fn open(
        shards: Vec<Shard>,
        builder: ReaderBuilder,
        options: &DatasetOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self> {
        let decoder = builder.clone().build_batch_decoder();
        let decoder = decoder.map_err(|error| Error::general(ErrorKind::Codec(error)))?;
        let finder = PlaceFinder {
            indexes: options.indexes.as_ref(),
            read: &options.read,
            progress,
        };
        let found = try_map(&shards, options.threads, |_, shard| finder.places(shard))?;
        let mut opened = Vec::with_capacity(shards.len());
        let mut ends = Vec::with_capacity(shards.len());
        let mut unusable = Vec::new();
        let mut end = 0;
        for (shard, (places, of_shard)) in shards.into_iter().zip(found) {
            end += places.count();
            ends.push(end);
            unusable.extend(of_shard);
            let shard = shard.without_folder_columns();
            opened.push(DatasetShard { shard, places });
        }
        Ok(Self {
            shards: opened,
            ends,
            unusable,
            schema: Arc::clone(decoder.schema()),
            builder,
            read: options.read,
            decoders: Lock::new(vec![decoder]),
            open: Lock::default(),
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

    /// The number of bytes of all frames, decompressed.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.places.end()).sum()
    }

    /// Whether any shard is compressed, so that reading one record inflates those before it.
    pub fn is_compressed(&self) -> bool {
        self.shards
            .iter()
            .any(|shard| !shard.places.points.is_empty())
    }

    /// For each shard, the number of records in it and the shards before it.
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The indexes that are not used.
    pub fn unusable(&self) -> &[UnusableIndex] {
        &self.unusable
    }

    /// Decodes the records with these numbers, in this order. A number may be given several times.
    ///
    /// # Errors
    /// A number that is too large, a record that is corrupt, also where such records are skipped by
    /// [`decode`](Self::decode), and a file that was changed.
    pub fn take(&self, numbers: &[u64]) -> Result<RecordBatch> {
        let mut fetched = self.fetch(numbers, 1)?;
        let (batch, skipped) = self.decode(&fetched, 0..numbers.len())?;
        match fetched.take_skipped().into_iter().chain(skipped).next() {
            Some(error) => Err(error),
            None => Ok(batch),
        }
    }

    /// Reads the records with these numbers into memory, on up to `threads` threads. Frames that are
    /// corrupt are skipped with [`OnError::Skip`].
    ///
    /// # Errors
    /// A number that is too large, a frame that is corrupt, and a file that was changed.
    pub fn fetch(&self, numbers: &[u64], threads: usize) -> Result<Fetched> {
        let mut sorted: Vec<(u64, u32)> = numbers.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let mut frames: Vec<FramePlace> = Vec::with_capacity(numbers.len());
        let mut rows = vec![LOST; numbers.len()];
        let mut last = None;
        let mut bytes = 0;
        for (number, place) in sorted {
            if last.replace(number) != Some(number) {
                let frame = self.frame(number)?;
                bytes += frame.bytes;
                frames.push(frame);
            }
            if let Some(row) = rows.get_mut(place as usize) {
                *row = frames.len() as u32 - 1;
            }
        }
        if u32::try_from(bytes).is_err() {
            return Err(Error::general(ErrorKind::Usage(TOO_MUCH)));
        }
        let mut memory = vec![0; bytes];
        self.read(&frames, &mut memory, threads)?;
        let mut fetched = Fetched {
            records: self.cut(&Buffer::default(), &[])?,
            frames,
            rows,
            skipped: Vec::new(),
        };
        let memory = Buffer::from_vec(memory);
        match self.cut(&memory, &fetched.frames) {
            Ok(records) => fetched.records = records,
            Err(_) if self.read.on_error == OnError::Skip => {
                self.cut_valid(&memory, &mut fetched)?
            }
            Err(error) => return Err(error),
        }
        Ok(fetched)
    }

    /// Decodes the records at these places among the wanted numbers of `fetched`, in this order, and
    /// returns the errors of those that were skipped.
    ///
    /// # Errors
    /// A record that is corrupt, unless such records are skipped.
    pub fn decode(
        &self,
        fetched: &Fetched,
        places: Range<usize>,
    ) -> Result<(RecordBatch, Vec<Error>)> {
        let taken = self.decoders.lock().pop();
        let mut decoder = match taken {
            Some(decoder) => decoder,
            None => {
                let built = self.builder.clone().build_batch_decoder();
                built.map_err(|error| Error::general(ErrorKind::Codec(error)))?
            }
        };
        let rows = fetched.rows.get(places).unwrap_or_default();
        let batch = decoder
            .decode_at(&fetched.records, rows)
            .map_err(|error| self.error_of(error, &fetched.frames))?;
        let mut skipped = decoder.take_skipped();
        self.decoders.lock().push(decoder);
        let mut errors = Vec::with_capacity(skipped.len());
        for error in skipped.drain(..) {
            errors.push(self.error_of(error, &fetched.frames));
        }
        Ok((batch, errors))
    }

    /// The place of a record.
    fn frame(&self, number: u64) -> Result<FramePlace> {
        let shard = self.ends.partition_point(|end| *end <= number);
        let before = match shard.checked_sub(1) {
            None => 0,
            Some(last) => self.ends.get(last).copied().unwrap_or(0),
        };
        let record = (number - before) as usize;
        let found = self.shards.get(shard);
        match found.and_then(|shard| shard.places.frame(record)) {
            Some((offset, bytes)) => Ok(FramePlace {
                shard,
                record,
                offset,
                bytes,
            }),
            None => Err(Error::general(ErrorKind::Usage(NO_RECORD))),
        }
    }

    /// Reads frames, in the order of the data set, into memory of their size.
    fn read(&self, frames: &[FramePlace], memory: &mut [u8], threads: usize) -> Result<()> {
        let mut reads = Vec::new();
        let mut left = memory;
        for of_shard in frames.chunk_by(|one, next| one.shard == next.shard) {
            let gap = self.shard_of(of_shard)?.gap();
            let mut rest = of_shard;
            while !rest.is_empty() {
                let (near, others) = rest.split_at(near(rest, gap));
                let bytes = near.iter().map(|frame| frame.bytes).sum();
                let (memory, others_memory) = left.split_at_mut(bytes);
                let memory = Lock::new(memory);
                reads.push(NearRead {
                    frames: near,
                    memory,
                });
                rest = others;
                left = others_memory;
            }
        }
        let of_part = reads.len().div_ceil(threads.max(1) * PARTS).max(1);
        let mut parts = Vec::new();
        for of_shard in reads.chunk_by(|one, next| one.shard() == next.shard()) {
            parts.extend(of_shard.chunks(of_part));
        }
        let done = try_map(&parts, threads, |_, part| {
            let access = self.access(part.first().map_or(0, NearRead::shard))?;
            // A reader of a compressed shard goes on from its position.
            let mut reader = access.reader();
            let mut scratch = Vec::new();
            for read in *part {
                read_near(
                    &mut reader,
                    read.frames,
                    &mut scratch,
                    &mut read.memory.lock(),
                )?;
            }
            Ok(())
        });
        done.map(drop)
    }

    /// The shard of these frames.
    fn shard_of(&self, frames: &[FramePlace]) -> Result<&DatasetShard> {
        let shard = frames
            .first()
            .and_then(|frame| self.shards.get(frame.shard));
        shard.ok_or_else(|| Error::general(ErrorKind::Usage(NO_RECORD)))
    }

    /// Opens a shard, unless it is open.
    fn access(&self, number: usize) -> Result<Arc<RandomAccess>> {
        for (open, access) in &*self.open.lock() {
            if *open == number {
                return Ok(Arc::clone(access));
            }
        }
        let Some(found) = self.shards.get(number) else {
            return Err(Error::general(ErrorKind::Usage(NO_RECORD)));
        };
        let shard = &found.shard;
        let opened = RandomAccess::open(shard, &self.read, Arc::clone(&found.places.points))?;
        let Some(access) = opened else {
            return Err(Error::new(&shard.path, ErrorKind::Usage(SEQUENTIAL)));
        };
        let access = Arc::new(access);
        let mut open = self.open.lock();
        if open.len() >= MOST_OPEN {
            open.pop_front();
        }
        open.push_back((number, Arc::clone(&access)));
        Ok(access)
    }

    /// Cuts the bytes of these frames into records.
    fn cut(&self, memory: &Buffer, frames: &[FramePlace]) -> Result<Records> {
        let records = Records::from_frames(memory.clone(), self.read.limits)
            .map_err(|error| self.error_of(error, frames))?;
        for (index, frame) in frames.iter().enumerate() {
            let payload = records.data(index).map_or(0, <[u8]>::len);
            if payload + FRAME_BYTES as usize != frame.bytes {
                return Err(changed(&self.shard_of(&[*frame])?.shard));
            }
        }
        Ok(records)
    }

    /// Cuts the bytes of the frames of `fetched` into records, and skips those that are corrupt.
    fn cut_valid(&self, memory: &Buffer, fetched: &mut Fetched) -> Result<()> {
        let mut valid = Vec::with_capacity(memory.len());
        let mut kept = Vec::with_capacity(fetched.frames.len());
        let mut rows = Vec::with_capacity(fetched.frames.len());
        let mut at = 0;
        for frame in &fetched.frames {
            let bytes = memory.slice_with_length(at, frame.bytes);
            at += frame.bytes;
            match self.cut(&bytes, &[*frame]) {
                Ok(_) => {
                    rows.push(kept.len() as u32);
                    kept.push(*frame);
                    valid.extend_from_slice(&bytes);
                }
                Err(error) => {
                    rows.push(LOST);
                    fetched.skipped.push(error);
                }
            }
        }
        for row in &mut fetched.rows {
            *row = rows.get(*row as usize).copied().unwrap_or(LOST);
        }
        fetched.records = self.cut(&Buffer::from_vec(valid), &kept)?;
        fetched.frames = kept;
        Ok(())
    }

    /// The error of a record among these frames, with its place in the shard.
    fn error_of(&self, error: tfarrow_codec::Error, frames: &[FramePlace]) -> Error {
        let index = error.position().record as usize;
        let frame = frames.get(index);
        let shard = frame.and_then(|frame| self.shards.get(frame.shard));
        match (frame, shard) {
            (Some(frame), Some(found)) => Error::codec(
                &found.shard.path,
                error.moved(frame.record as u64, frame.offset),
            ),
            _ => Error::general(ErrorKind::Codec(error)),
        }
    }
}

const NO_RECORD: &str = "a record is wanted whose number is not below the number of records";
const TOO_MUCH: &str = "more than 4 GiB of records are wanted at once: take fewer";

fn changed(shard: &Shard) -> Error {
    Error::io(
        &shard.path,
        io::Error::other("the file has changed since its records were found"),
    )
}

impl DatasetShard {
    /// The number of bytes between two reads below which one read is faster: those that take as long
    /// as a call of the system, or a request.
    fn gap(&self) -> u64 {
        if !self.places.points.is_empty() {
            // A reader goes on from its position.
            return 0;
        }
        match self.shard.is_remote() {
            true => 1 << 20,
            false => 4 << 10,
        }
    }
}

impl NearRead<'_> {
    fn shard(&self) -> usize {
        self.frames.first().map_or(0, |frame| frame.shard)
    }
}

/// How many of these frames of a shard are read at once.
fn near(frames: &[FramePlace], gap: u64) -> usize {
    let Some(first) = frames.first() else {
        return 0;
    };
    let mut end = first.offset + first.bytes as u64;
    let mut count = 1;
    for frame in frames.iter().skip(1) {
        let last = frame.offset + frame.bytes as u64;
        if frame.offset > end + gap || last - first.offset > READ_BYTES {
            break;
        }
        end = last;
        count += 1;
    }
    count
}

/// Reads near frames of a shard into memory of their size.
fn read_near(
    reader: &mut RandomReader<'_>,
    near: &[FramePlace],
    scratch: &mut Vec<u8>,
    memory: &mut [u8],
) -> Result<()> {
    let (Some(first), Some(last)) = (near.first(), near.last()) else {
        return Ok(());
    };
    let bytes = (last.offset - first.offset) as usize + last.bytes;
    if bytes == memory.len() {
        return reader.read_at(first.offset, memory);
    }
    scratch.resize(bytes, 0);
    reader.read_at(first.offset, scratch)?;
    let mut left = memory;
    for frame in near {
        let from = (frame.offset - first.offset) as usize;
        let (to, others) = left.split_at_mut(frame.bytes);
        if let Some(from) = scratch.get(from..from + frame.bytes) {
            to.copy_from_slice(from);
        }
        left = others;
    }
    Ok(())
}
