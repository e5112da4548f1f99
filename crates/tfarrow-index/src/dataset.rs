//! Random access to the records of a data set.
//!
//! ```text
//! numbers [7, 2, 9] ─▶ by place: 2, 7, 9 ─▶ reads, near ones together ─▶ Fetched: 7, 2, 9 ─▶ decode
//! ```

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    ops::Range,
    sync::Arc,
};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use arrow_select::{filter::filter_record_batch, take::take};
use tfarrow_codec::{BatchDecoder, OnError, ReaderBuilder, Records};
use tfarrow_dataset::{
    Error, ErrorKind, OnProgress, ReadOptions, Result, Shard,
    internals::{Lock, RandomAccess, RandomReader, try_map},
};

use crate::{
    builder::FRAME_BYTES,
    images::{ImageColumn, ImageColumnError},
    place::IndexPlace,
    places::{PlaceFinder, RecordPlaces, SEQUENTIAL},
    shard_index::UnusableIndex,
};

/// Number of bytes that near records are read with at once.
const READ_BYTES: u64 = 1 << 20;
/// Number of bytes from which a record is read by itself, because a call of the system takes less
/// time than a copy.
const LARGE_BYTES: usize = 32 << 10;
/// Number of buffers that are kept for later reads, and the least size of each: those of whole rounds
/// of a loader, whose pages the system would make anew.
const KEPT_BUFFERS: usize = 4;
const KEPT_BYTES: usize = 1 << 20;
/// Number of shards that are open at the same time. Systems allow a process 1,024 files or fewer.
const MOST_OPEN: usize = 128;
/// Number of bytes between two reads of a file below which one read is faster: those that are copied
/// in the time of a call of the system.
const FILE_GAP: u64 = 4 << 10;
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
    shard_columns: Vec<ShardColumn>,
    /// The columns of images, and their places among the columns of a batch.
    images: Vec<(usize, ImageColumn)>,
    read: ReadOptions,
    /// Decoders that no call uses.
    decoders: Lock<Vec<BatchDecoder>>,
    /// Memory that no call uses.
    buffers: Arc<Lock<Vec<Vec<u8>>>>,
    /// The shards that are open, the first one for the longest time.
    open: Lock<VecDeque<(usize, Arc<RandomAccess>)>>,
}

/// A column with one value for all records of a shard, such as that of a folder `split=train`.
#[derive(Clone, Debug)]
pub struct ShardColumn {
    /// Its place among the columns of a batch.
    pub place: usize,
    /// Its field.
    pub field: FieldRef,
    /// The value of each shard, in the order of the data set.
    pub values: ArrayRef,
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
    /// In the order in which they are wanted, but for those that were skipped.
    records: Records,
    frames: Vec<FramePlace>,
    /// The places of the records that were skipped, among those that are wanted.
    lost: Vec<usize>,
    skipped: Vec<Error>,
    /// The number of records that are wanted.
    wanted: usize,
    buffers: Arc<Lock<Vec<Vec<u8>>>>,
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

/// Frames that are wanted one after the other, and follow each other in their shard as well.
struct Run<'m> {
    shard: usize,
    offset: u64,
    /// The memory for them.
    memory: &'m mut [u8],
}

impl Fetched {
    /// The number of records that are wanted.
    pub fn len(&self) -> usize {
        self.wanted
    }

    /// Whether no record is wanted.
    pub fn is_empty(&self) -> bool {
        self.wanted == 0
    }

    /// The records, in the order in which they are wanted, but for those that were skipped. Their CRCs
    /// are checked when they are decoded.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Takes the errors of the frames that were skipped.
    pub fn take_skipped(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.skipped)
    }

    /// The index of the first record at or after a place among those that are wanted.
    fn index(&self, place: usize) -> usize {
        place - self.lost.partition_point(|lost| *lost < place)
    }
}

impl FramePlace {
    /// The error of its record, with its place in the shard.
    fn moved(&self, error: tfarrow_codec::Error) -> tfarrow_codec::Error {
        error.moved(self.record as u64, self.offset)
    }
}

/// Keeps the memory for later reads.
impl Drop for Fetched {
    fn drop(&mut self) {
        let records = std::mem::replace(&mut self.records, Records::empty());
        let buffer = records.reclaim().unwrap_or_default();
        let mut buffers = self.buffers.lock();
        if buffer.len() >= KEPT_BYTES && buffers.len() < KEPT_BUFFERS {
            buffers.push(buffer);
        }
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
            shard_columns: Vec::new(),
            images: Vec::new(),
            read: options.read,
            decoders: Lock::new(vec![decoder]),
            buffers: Arc::default(),
            open: Lock::default(),
        })
    }

    /// Adds columns with one value for all records of a shard, in the order of their places.
    pub fn with_shard_columns(mut self, columns: Vec<ShardColumn>) -> Self {
        let mut fields = self.schema.fields().to_vec();
        for column in &columns {
            fields.insert(column.place.min(fields.len()), Arc::clone(&column.field));
        }
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        self.shard_columns = columns;
        self
    }

    /// Decodes columns of images to pixels. A record whose image does not decode is corrupt.
    ///
    /// # Errors
    /// A column that does not have one byte string a record, and pixels of more than 2 GB.
    pub fn with_images(mut self, images: Vec<ImageColumn>) -> Result<Self, ImageColumnError> {
        let mut fields = self.schema.fields().to_vec();
        for image in images {
            let found = fields
                .iter_mut()
                .enumerate()
                .find(|(_, field)| *field.name() == image.name);
            let Some((place, field)) = found else {
                return Err(ImageColumnError::NoColumn(image.name));
            };
            *field = image.field(field)?;
            self.images.push((place, image));
        }
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }

    /// Number of bytes of the pixels of a record's images.
    pub fn pixel_bytes(&self) -> u64 {
        let bytes = self
            .images
            .iter()
            .map(|(_, image)| image.pixel_bytes() as u64);
        bytes.sum()
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

    /// Whether reading one record takes long: a shard is compressed, so that others before the record
    /// are inflated, or in a store.
    pub fn is_slow(&self) -> bool {
        for found in &self.shards {
            // An empty compressed file has access points or none.
            if found.places.count() > 0 && found.gap() != FILE_GAP {
                return true;
            }
        }
        false
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
        let mut frames = Vec::with_capacity(numbers.len());
        let mut bytes = 0;
        for number in numbers {
            let frame = self.frame(*number)?;
            bytes += frame.bytes;
            frames.push(frame);
        }
        if u32::try_from(bytes).is_err() {
            return Err(Error::general(ErrorKind::Usage(TOO_MUCH)));
        }
        let kept = match bytes >= KEPT_BYTES {
            true => self.buffers.lock().pop(),
            false => None,
        };
        let mut memory = kept.unwrap_or_default();
        memory.resize(bytes, 0);
        self.read(&frames, &mut memory, threads)?;
        let memory = Buffer::from_vec(memory);
        let mut lost = Vec::new();
        let mut skipped = Vec::new();
        let records = match self.cut(&memory, &frames) {
            Ok(records) => records,
            Err(_) if self.read.on_error == OnError::Skip => {
                let valid = self.valid(&memory, &mut frames, &mut lost, &mut skipped);
                self.cut(&Buffer::from_vec(valid), &frames)?
            }
            Err(error) => return Err(error),
        };
        Ok(Fetched {
            records,
            frames,
            lost,
            skipped,
            wanted: numbers.len(),
            buffers: Arc::clone(&self.buffers),
        })
    }

    /// Decodes the records at these places among those that are wanted, and returns the errors of
    /// those that were skipped.
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
        let indices = fetched.index(places.start)..fetched.index(places.end);
        let frames = fetched.frames.get(indices.clone()).unwrap_or_default();
        let decoded = decoder.decode(&fetched.records.part(indices));
        let mut errors = Vec::new();
        for error in decoder.take_skipped() {
            errors.push(self.error_of(error, &fetched.frames));
        }
        let batch = decoded
            .map_err(|error| self.error_of(error, &fetched.frames))
            .and_then(|batch| self.completed(batch, &decoder, frames, &mut errors));
        self.decoders.lock().push(decoder);
        Ok((batch?, errors))
    }

    /// Adds the columns of shards to the batch that a decoder has made last, and decodes the images.
    fn completed(
        &self,
        batch: RecordBatch,
        decoder: &BatchDecoder,
        frames: &[FramePlace],
        skipped: &mut Vec<Error>,
    ) -> Result<RecordBatch> {
        if self.shard_columns.is_empty() && self.images.is_empty() {
            return Ok(batch);
        }
        let rows = batch.num_rows();
        let mut of_rows = Vec::with_capacity(rows);
        for row in 0..rows {
            of_rows.extend(frames.get(decoder.record_of(row)).copied());
        }
        let mut columns = batch.columns().to_vec();
        self.add_shard_columns(&mut columns, &of_rows)?;
        let is_valid = self.decode_images(&mut columns, &of_rows, skipped)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow)?;
        match is_valid.contains(&false) {
            true => filter_record_batch(&batch, &BooleanArray::from(is_valid)).map_err(arrow),
            false => Ok(batch),
        }
    }

    /// Adds the columns of shards to the columns of the records of these frames.
    fn add_shard_columns(&self, columns: &mut Vec<ArrayRef>, frames: &[FramePlace]) -> Result<()> {
        if self.shard_columns.is_empty() {
            return Ok(());
        }
        let mut shards = Vec::with_capacity(frames.len());
        for frame in frames {
            shards.push(frame.shard as u32);
        }
        let shards = UInt32Array::from(shards);
        for column in &self.shard_columns {
            let values = take(&column.values, &shards, None).map_err(arrow)?;
            columns.insert(column.place.min(columns.len()), values);
        }
        Ok(())
    }

    /// Decodes the columns of images of the records of these frames. Returns which rows have all their
    /// images, and adds the errors of the others, which are skipped.
    fn decode_images(
        &self,
        columns: &mut [ArrayRef],
        frames: &[FramePlace],
        skipped: &mut Vec<Error>,
    ) -> Result<Vec<bool>> {
        let mut is_valid = vec![true; frames.len()];
        for (place, image) in &self.images {
            let Some(column) = columns.get_mut(*place) else {
                continue;
            };
            let (pixels, faults) = image.decode(column);
            *column = pixels;
            for (row, reason) in faults {
                let error = tfarrow_codec::Error::of_value(row as u64, 0, &image.name, reason);
                let error = self.error_of(error, frames);
                if self.read.on_error != OnError::Skip {
                    return Err(error);
                }
                let was_valid = is_valid.get_mut(row).is_some_and(std::mem::take);
                if was_valid {
                    skipped.push(error);
                }
            }
        }
        Ok(is_valid)
    }

    /// The features of the records that were decoded so far which have no column.
    pub fn unknown_features(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for decoder in self.decoders.lock().iter() {
            for (name, _) in decoder.unknown_features() {
                names.insert(name.to_owned());
            }
        }
        names
    }

    /// The shards, in the order of the data set.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.shards.iter().map(|found| &found.shard)
    }

    /// The number of the record whose frame is at an offset of a shard, decompressed; `None` if there
    /// is none.
    pub fn number_at(&self, shard: usize, offset: u64) -> Option<u64> {
        let found = self.shards.get(shard)?;
        let record = found.places.record_at(offset)?;
        Some(self.records_before(shard) + record as u64)
    }

    /// The number of records of the shards before the one with this number, which may be the number of
    /// shards.
    pub fn records_before(&self, shard: usize) -> u64 {
        let last = shard.checked_sub(1).and_then(|last| self.ends.get(last));
        last.copied().unwrap_or(0)
    }

    /// The number of bytes of a record, without the 16 bytes of its frame.
    ///
    /// # Errors
    /// A number that is too large.
    pub fn record_bytes(&self, number: u64) -> Result<usize> {
        let frame = self.frame(number)?;
        Ok(frame.bytes - FRAME_BYTES as usize)
    }

    /// The place of a record.
    fn frame(&self, number: u64) -> Result<FramePlace> {
        let shard = self.ends.partition_point(|end| *end <= number);
        let record = (number - self.records_before(shard)) as usize;
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

    /// Reads frames into memory of their size, in this order.
    fn read(&self, frames: &[FramePlace], memory: &mut [u8], threads: usize) -> Result<()> {
        let mut runs = Vec::with_capacity(frames.len());
        let mut left = memory;
        let mut rest = frames;
        while let Some(first) = rest.first() {
            let (of_run, others) = rest.split_at(run_of(rest));
            let bytes = of_run.iter().map(|frame| frame.bytes).sum();
            let (memory, others_memory) = left.split_at_mut(bytes);
            runs.push(Run {
                shard: first.shard,
                offset: first.offset,
                memory,
            });
            rest = others;
            left = others_memory;
        }
        runs.sort_unstable_by_key(|run| (run.shard, run.offset));
        let of_part = match threads {
            0 | 1 => runs.len().max(1),
            _ => runs.len().div_ceil(threads * PARTS).max(1),
        };
        let mut parts = Vec::new();
        for of_shard in runs.chunk_by_mut(|one, next| one.shard == next.shard) {
            parts.extend(of_shard.chunks_mut(of_part).map(Lock::new));
        }
        let done = try_map(&parts, threads, |_, part| self.read_part(&mut part.lock()));
        done.map(drop)
    }

    /// Reads runs of one shard, in the order of the shard.
    fn read_part(&self, mut runs: &mut [Run<'_>]) -> Result<()> {
        let Some(first) = runs.first() else {
            return Ok(());
        };
        let gap = self.shard(first.shard)?.gap();
        let access = self.access(first.shard)?;
        // A reader of a compressed shard goes on from its position.
        let mut reader = access.reader();
        let mut scratch = Vec::new();
        while !runs.is_empty() {
            let (near, others) = runs.split_at_mut(near(runs, gap));
            read_near(&mut reader, near, &mut scratch)?;
            runs = others;
        }
        Ok(())
    }

    fn shard(&self, number: usize) -> Result<&DatasetShard> {
        let shard = self.shards.get(number);
        shard.ok_or_else(|| Error::general(ErrorKind::Usage(NO_RECORD)))
    }

    /// Opens a shard, unless it is open.
    fn access(&self, number: usize) -> Result<Arc<RandomAccess>> {
        for (open, access) in &*self.open.lock() {
            if *open == number {
                return Ok(Arc::clone(access));
            }
        }
        let found = self.shard(number)?;
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
                return Err(changed(&self.shard(frame.shard)?.shard));
            }
        }
        Ok(records)
    }

    /// The bytes of the frames that are not corrupt. Removes the others, and adds their places and
    /// their errors.
    fn valid(
        &self,
        memory: &Buffer,
        frames: &mut Vec<FramePlace>,
        lost: &mut Vec<usize>,
        skipped: &mut Vec<Error>,
    ) -> Vec<u8> {
        let mut valid = Vec::with_capacity(memory.len());
        let mut kept = Vec::with_capacity(frames.len());
        let mut at = 0;
        for (place, frame) in frames.iter().enumerate() {
            let bytes = memory.slice_with_length(at, frame.bytes);
            at += frame.bytes;
            match self.cut(&bytes, &[*frame]) {
                Ok(_) => {
                    kept.push(*frame);
                    valid.extend_from_slice(&bytes);
                }
                Err(error) => {
                    lost.push(place);
                    skipped.push(error);
                }
            }
        }
        *frames = kept;
        valid
    }

    /// The number of the shard of a record that was fetched, and the error of the record with its place
    /// in the shard.
    pub fn locate(
        &self,
        fetched: &Fetched,
        error: tfarrow_codec::Error,
    ) -> (usize, tfarrow_codec::Error) {
        match fetched.frames.get(error.position().record as usize) {
            Some(frame) => (frame.shard, frame.moved(error)),
            None => (0, error),
        }
    }

    /// The error of a record among these frames, with its place in the shard.
    fn error_of(&self, error: tfarrow_codec::Error, frames: &[FramePlace]) -> Error {
        let index = error.position().record as usize;
        let frame = frames.get(index);
        let shard = frame.and_then(|frame| self.shards.get(frame.shard));
        match (frame, shard) {
            (Some(frame), Some(found)) => Error::codec(&found.shard.path, frame.moved(error)),
            _ => Error::general(ErrorKind::Codec(error)),
        }
    }
}

const NO_RECORD: &str = "a record is wanted whose number is not below the number of records";
const TOO_MUCH: &str = "more than 4 GiB of records are wanted at once: take fewer";

fn arrow(error: ArrowError) -> Error {
    Error::general(ErrorKind::Codec(error.into()))
}

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
            false => FILE_GAP,
        }
    }
}

/// How many of these frames are a run.
fn run_of(frames: &[FramePlace]) -> usize {
    let mut count = 1;
    let mut bytes = 0;
    for pair in frames.windows(2) {
        let [one, next] = pair else {
            break;
        };
        bytes += one.bytes as u64;
        let end = one.offset + one.bytes as u64;
        if one.shard != next.shard || end != next.offset || bytes >= READ_BYTES {
            break;
        }
        count += 1;
    }
    count
}

/// How many of these runs of a shard are read at once.
fn near(runs: &[Run<'_>], gap: u64) -> usize {
    let Some(first) = runs.first() else {
        return 0;
    };
    let mut end = first.end();
    let mut count = 1;
    for pair in runs.windows(2) {
        let [one, next] = pair else {
            break;
        };
        // A call of the system takes less time than a copy of many bytes.
        let is_large = one.memory.len().max(next.memory.len()) >= LARGE_BYTES;
        let is_far = next.offset > end + gap || next.end() - first.offset > READ_BYTES;
        if is_far || (is_large && gap <= FILE_GAP) {
            break;
        }
        end = end.max(next.end());
        count += 1;
    }
    count
}

/// Reads near runs of a shard.
fn read_near(
    reader: &mut RandomReader<'_>,
    near: &mut [Run<'_>],
    scratch: &mut Vec<u8>,
) -> Result<()> {
    if let [run] = near {
        return reader.read_at(run.offset, run.memory);
    }
    let start = near.first().map_or(0, |run| run.offset);
    let end = near.iter().map(Run::end).max().unwrap_or(start);
    scratch.resize((end - start) as usize, 0);
    reader.read_at(start, scratch)?;
    for run in near {
        let from = (run.offset - start) as usize;
        if let Some(bytes) = scratch.get(from..from + run.memory.len()) {
            run.memory.copy_from_slice(bytes);
        }
    }
    Ok(())
}

impl Run<'_> {
    fn end(&self) -> u64 {
        self.offset + self.memory.len() as u64
    }
}
