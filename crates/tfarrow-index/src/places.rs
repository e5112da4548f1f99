//! The places of the records of a shard: by its index, by a text index, by the headers of its
//! frames, or by reading it.

use std::sync::Arc;

use tfarrow_dataset::{
    Compression, Error, ErrorKind, OnProgress, ReadOptions, Result, Segment, Shard, ShardReader,
    internals::{AccessPoint, FrameRanges, RandomAccess, ShardAccess},
};

use crate::{
    builder::{FRAME_BYTES, lengths_of},
    place::IndexPlace,
    shard_index::{OpenIndex, UnusableIndex},
};

/// Number of records that are found by their headers between two reports of progress.
const REPORTED: u64 = 1 << 16;

/// The places of the records of a shard.
#[derive(Debug, Default)]
pub(crate) struct RecordPlaces {
    /// The offset of each frame, in the decompressed shard, and the end of the last one.
    offsets: Vec<u64>,
    /// The end of each frame, if there are lost bytes between some of them; otherwise a frame ends
    /// where the next one begins.
    ends: Option<Vec<u64>>,
    /// The access points of a compressed shard.
    pub(crate) points: Arc<[AccessPoint]>,
}

/// How places are found.
#[derive(Clone, Copy)]
pub(crate) struct PlaceFinder<'a> {
    pub(crate) indexes: Option<&'a IndexPlace>,
    pub(crate) read: &'a ReadOptions,
    pub(crate) progress: &'a OnProgress<'a>,
}

impl RecordPlaces {
    /// The places of records of these lengths, which follow each other.
    fn of_lengths(lengths: &[u32]) -> Self {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut offset = 0;
        offsets.push(offset);
        for length in lengths {
            offset += u64::from(*length) + FRAME_BYTES;
            offsets.push(offset);
        }
        Self {
            offsets,
            ..Self::default()
        }
    }

    /// The number of records.
    pub(crate) fn count(&self) -> u64 {
        (self.offsets.len() as u64).saturating_sub(1)
    }

    /// The offset of the frame of a record, and the number of its bytes.
    pub(crate) fn frame(&self, record: usize) -> Option<(u64, usize)> {
        let [offset, next] = self.offsets.get(record..record + 2)? else {
            return None;
        };
        let end = match &self.ends {
            Some(ends) => *ends.get(record)?,
            None => *next,
        };
        Some((*offset, end.checked_sub(*offset)? as usize))
    }

    /// The number of the record whose frame is at an offset.
    pub(crate) fn record_at(&self, offset: u64) -> Option<usize> {
        let (_, starts) = self.offsets.split_last()?;
        starts.binary_search(&offset).ok()
    }

    /// The end of the last frame.
    pub(crate) fn end(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }
}

impl PlaceFinder<'_> {
    /// The places of the records of a shard, and the indexes of it that cannot be used.
    ///
    /// # Errors
    /// A shard that cannot be read, a corrupt length unless it is skipped, and
    /// [`ErrorKind::Stopped`].
    pub(crate) fn places(&self, shard: &Shard) -> Result<(RecordPlaces, Vec<UnusableIndex>)> {
        let mut unusable = Vec::new();
        let index = match self.indexes.map(|place| place.find(shard)) {
            Some(Ok(index)) => index,
            Some(Err(fault)) => {
                unusable.push(fault);
                None
            }
            None => None,
        };
        if let Some(index) = index {
            match self.indexed(&index, shard) {
                Ok(Some(places)) => return Ok((places, unusable)),
                Ok(None) => {}
                Err(error) => unusable.push(UnusableIndex::of_error(error)),
            }
        }
        let ranges = match ShardAccess::open(shard, self.read)? {
            ShardAccess::Stream(reader) => {
                let places = self.stream_places(shard, reader.compression())?;
                return Ok((places, unusable));
            }
            ShardAccess::Ranges(ranges) => ranges,
        };
        match self.indexes.map(|place| place.find_text(shard)) {
            Some(Ok(Some(offsets))) => {
                let places = RecordPlaces {
                    offsets,
                    ..RecordPlaces::default()
                };
                return Ok((places, unusable));
            }
            Some(Err(fault)) => unusable.push(fault),
            Some(Ok(None)) | None => {}
        }
        Ok((self.outline(shard, *ranges)?, unusable))
    }

    /// The places by an index; `None` if it has none that can be used.
    fn indexed(&self, index: &OpenIndex, shard: &Shard) -> Result<Option<RecordPlaces>> {
        let points: Arc<[AccessPoint]> = index.points(&index.blocks()?)?.into();
        let places = RecordPlaces {
            points: Arc::clone(&points),
            ..RecordPlaces::of_lengths(&index.lengths()?)
        };
        if points.is_empty() {
            return Ok((places.end() == shard.size).then_some(places));
        }
        // No memory is allocated for more than the shard has.
        let access = RandomAccess::open(shard, self.read, points)?;
        let is_possible = access.is_some_and(|access| places.end() <= access.most_bytes());
        Ok(is_possible.then_some(places))
    }

    /// The places of the records of a shard that is read from its start to its end first.
    fn stream_places(&self, shard: &Shard, compression: Compression) -> Result<RecordPlaces> {
        let sequential = || Error::new(&shard.path, ErrorKind::Usage(SEQUENTIAL));
        if shard.is_stream() || compression == Compression::Snappy {
            return Err(sequential());
        }
        let places = self.read_all(shard)?;
        let has_access = compression == Compression::None || !places.points.is_empty();
        match has_access || places.count() == 0 {
            true => Ok(places),
            false => Err(sequential()),
        }
    }

    /// Finds the records of a plain file by their headers.
    fn outline(&self, shard: &Shard, mut ranges: FrameRanges) -> Result<RecordPlaces> {
        let mut lengths = Vec::new();
        let mut bytes = 0;
        loop {
            match ranges.next(1, usize::MAX) {
                Ok(Some(range)) => lengths.push((range.bytes as u64 - FRAME_BYTES) as u32),
                Ok(None) => break,
                Err(error) if ranges.skips(&error) => return self.read_all(shard),
                Err(error) => return Err(error),
            }
            let count = lengths.len() as u64;
            if count.is_multiple_of(REPORTED) {
                self.report(ranges.bytes_read() - bytes, REPORTED)?;
                bytes = ranges.bytes_read();
            }
        }
        let count = lengths.len() as u64;
        self.report(ranges.bytes_read() - bytes, count % REPORTED)?;
        Ok(RecordPlaces::of_lengths(&lengths))
    }

    /// Reads all records of a shard, and collects the access points of a compressed one.
    fn read_all(&self, shard: &Shard) -> Result<RecordPlaces> {
        if let Some((reader, points)) = ShardReader::open_collecting(shard, self.read)? {
            match self.read_places(reader) {
                Ok(places) => {
                    return Ok(RecordPlaces {
                        points: points.take().into(),
                        ..places
                    });
                }
                Err(error) if matches!(error.kind(), ErrorKind::Stopped) => return Err(error),
                // Our own reader has the errors of all other commands.
                Err(_) => {}
            }
        }
        self.read_places(ShardReader::open(shard, self.read)?)
    }

    fn read_places(&self, mut reader: ShardReader) -> Result<RecordPlaces> {
        let mut lengths = Vec::new();
        let mut starts = Vec::new();
        let mut has_gaps = false;
        let mut end = 0;
        let mut bytes = 0;
        while let Some(segment) = reader.segment()? {
            let read = reader.bytes_read();
            let count = match segment {
                Segment::Records(records) => {
                    let mut offset = records.offset(0).unwrap_or(end);
                    has_gaps |= offset != end;
                    for length in lengths_of(&records) {
                        starts.push(offset);
                        lengths.push(length);
                        offset += u64::from(length) + FRAME_BYTES;
                    }
                    end = offset;
                    records.len() as u64
                }
                Segment::Lost(_) => 0,
            };
            self.report(read - bytes, count)?;
            bytes = read;
        }
        if !has_gaps {
            return Ok(RecordPlaces::of_lengths(&lengths));
        }
        let mut ends = Vec::with_capacity(lengths.len());
        for (start, length) in starts.iter().zip(&lengths) {
            ends.push(start + u64::from(*length) + FRAME_BYTES);
        }
        starts.push(end);
        Ok(RecordPlaces {
            offsets: starts,
            ends: Some(ends),
            points: Arc::default(),
        })
    }

    fn report(&self, bytes: u64, records: u64) -> Result<()> {
        match (self.progress)(bytes, records).is_break() {
            true => Err(Error::general(ErrorKind::Stopped)),
            false => Ok(()),
        }
    }
}

pub(crate) const SEQUENTIAL: &str = "its records can be read only from its start to its end: write it as plain TFRecord or gzip first";
