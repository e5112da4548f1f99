//! One shard, read by several threads.
//!
//! ```text
//! thread 1: read piece 0 ─▶ cut, enter ─▶ use its records ─▶ read piece 3 ─▶ ..
//! thread 2: read piece 1 ───▶ (wait) ──▶ cut, enter ─▶ use its records ─▶ ..
//! thread 3: read piece 2 ───────▶ (wait) ─────▶ cut, enter ─▶ ..
//! ```
//!
//! Each thread takes the next records and works on them while they are in the cache of its core.
//! Threads read different pieces of a plain file at the same time, and take turns only to find
//! where the records of a piece begin and to read the rest of its last record: microseconds, unless
//! records are longer than pieces. Compressed files, pipes and objects in stores are read by one
//! thread at a time. A plain file in which corrupt bytes are skipped is read so from its first
//! corrupt length on, because the end of the corrupt range has to be searched for.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tfarrow_codec::{
    OnError, Records, SharedFeatures,
    frame::{FrameRange, Framer, Span},
};

use super::{
    access_points::AccessPoint,
    block_reader::{BlockReader, IsWanted},
    positioned_file::PositionedFile,
    random_access::RandomAccess,
};
use crate::{
    Error, ErrorKind, PartialTail, ReadOptions, Result, Segment, Shard, ShardReader,
    lock::{Lock, wait_while},
};

/// A shard that several threads read.
pub struct SharedReader(Access);

enum Access {
    /// One thread reads at a time.
    Serial(Box<Mutex<ShardReader>>),
    /// Threads read at the same time.
    Parallel(Box<PlainFile>),
    /// Threads read blocks at the same time.
    Blocks(Box<BlockReader>),
}

/// The part of a shard that a thread has taken.
#[derive(Debug)]
pub struct Taken {
    /// The next records, or skipped bytes. Skipped bytes are returned with [`OnError::Skip`] only.
    pub segment: Segment,
    /// Number of bytes of the shard, as it is stored, that were read for the segment.
    pub bytes: u64,
}

impl SharedReader {
    /// Opens a shard.
    ///
    /// # Errors
    /// As [`ShardReader::open`].
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let reader = ShardReader::open(shard, options)?;
        let Some(file) = PositionedFile::of(&reader, shard)? else {
            return Ok(reader.into());
        };
        let options = ReadOptions {
            partial_tail: reader.partial_tail(),
            ..*options
        };
        Ok(Self(Access::Parallel(Box::new(PlainFile::new(
            file, shard, options,
        )))))
    }

    /// Opens a shard of which some blocks are read, whose places are known from an index. `points` are
    /// access points before the blocks of a gzip or zlib file. `is_wanted` decides about each block
    /// before it is read. `None` if the shard can be read only from its start to its end.
    ///
    /// From a block on that is not at its place, the shard is read as [`open`](Self::open) does, also
    /// blocks that are not wanted.
    ///
    /// # Errors
    /// As [`ShardReader::open`].
    pub fn open_blocks(
        shard: &Shard,
        options: &ReadOptions,
        blocks: Vec<FrameRange>,
        points: Vec<AccessPoint>,
        is_wanted: Box<IsWanted>,
    ) -> Result<Option<Self>> {
        let access = RandomAccess::open(shard, options, points)?;
        Ok(access.map(|access| {
            Self(Access::Blocks(Box::new(BlockReader::new(
                access, options, blocks, is_wanted,
            ))))
        }))
    }

    /// Takes the next part of the shard and returns the result of `enter` for it; `None` at the
    /// end.
    ///
    /// `enter` is called by one thread at a time, in the order of the shard. An error is the last
    /// item. `memory` is memory to read into, for example that of [`Records::reclaim`].
    pub fn next<T>(
        &self,
        memory: Option<Vec<u8>>,
        enter: impl FnOnce(Result<Taken>) -> T,
    ) -> Option<T> {
        match &self.0 {
            // After a panic of another thread, the position of the reader is unknown: the shard
            // ends.
            Access::Serial(reader) => next_of(&mut *reader.lock().ok()?, enter),
            Access::Parallel(file) => file.next(memory.unwrap_or_default(), enter),
            Access::Blocks(blocks) => blocks.next(memory.unwrap_or_default(), |read| {
                enter(read.map(|(segment, bytes)| Taken { segment, bytes }))
            }),
        }
    }
}

impl From<ShardReader> for SharedReader {
    fn from(reader: ShardReader) -> Self {
        Self(Access::Serial(Box::new(Mutex::new(reader))))
    }
}

/// Passes the next part of a shard to `enter`; `None` at the end.
fn next_of<T>(reader: &mut ShardReader, enter: impl FnOnce(Result<Taken>) -> T) -> Option<T> {
    let before = reader.bytes_read();
    let segment = reader.segment().transpose()?;
    let bytes = reader.bytes_read() - before;
    Some(enter(segment.map(|segment| Taken { segment, bytes })))
}

/// A plain file in pieces of one size. A record belongs to the piece that contains its first byte.
struct PlainFile {
    shard: Shard,
    options: ReadOptions,
    /// The features that all records have by the folders of the shard.
    shared: SharedFeatures,
    file: PositionedFile,
    /// Number of bytes of the file.
    size: u64,
    /// Number of bytes of a piece.
    piece: u64,
    /// The first piece that no thread has taken.
    free: AtomicU64,
    /// Offset of the first byte that may still be needed: a piece before it need not be read.
    front: AtomicU64,
    turns: Lock<Turns>,
    /// Notified at the end of each turn.
    turn_ended: Condvar,
}

struct Turns {
    /// The piece whose turn it is.
    piece: u64,
    framer: Framer,
    /// The error after the last records that were returned.
    failure: Option<Error>,
    /// Reads the file from the first corrupt length on.
    rest: Option<ShardReader>,
    done: bool,
}

/// A piece in memory: the first `filled` bytes, which lie at the offset `at` of the file.
struct Piece {
    at: u64,
    memory: Vec<u8>,
    filled: usize,
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        self.memory.get(..self.filled).unwrap_or_default()
    }
}

impl PlainFile {
    fn new(file: PositionedFile, shard: &Shard, options: ReadOptions) -> Self {
        let framer = Framer::new(options.limits);
        Self {
            shard: shard.clone(),
            options,
            shared: shard.shared_features(),
            size: file.size(),
            file,
            piece: options.chunk_bytes.clamp(1, 1 << 30) as u64,
            free: AtomicU64::new(0),
            front: AtomicU64::new(0),
            turns: Lock::new(Turns {
                piece: 0,
                framer,
                failure: None,
                rest: None,
                done: false,
            }),
            turn_ended: Condvar::new(),
        }
    }

    fn next<T>(&self, mut memory: Vec<u8>, enter: impl FnOnce(Result<Taken>) -> T) -> Option<T> {
        let _guard = PanicGuard(self);
        loop {
            // A thread that takes a piece waits for its turn before it returns, so that no other
            // thread waits in vain.
            let number = self.free.fetch_add(1, Ordering::Relaxed);
            let at = number.saturating_mul(self.piece);
            let read = self.read(at, memory);
            let mut turns = self.turn(number, at);
            if let Some(failure) = turns.failure.take() {
                turns.done = true;
                return Some(enter(Err(failure)));
            }
            if turns.done {
                return None;
            }
            if let Some(rest) = &mut turns.rest {
                return next_of(rest, enter);
            }
            if at >= self.size {
                return None;
            }
            let taken = match read.and_then(|piece| self.cut(&mut turns, piece)) {
                Ok(Cut {
                    segment: Some(segment),
                    bytes,
                    ..
                }) => Ok(Taken { segment, bytes }),
                Ok(Cut { memory: unused, .. }) => {
                    memory = unused;
                    self.end_turn(turns);
                    continue;
                }
                Err(error) => {
                    turns.done = true;
                    Err(error)
                }
            };
            let entered = enter(taken);
            self.end_turn(turns);
            return Some(entered);
        }
    }

    /// Number of pieces of the file.
    fn pieces(&self) -> u64 {
        self.size.div_ceil(self.piece)
    }

    fn end_turn(&self, mut turns: MutexGuard<'_, Turns>) {
        turns.piece += 1;
        let front = if turns.rest.is_some() {
            self.size
        } else {
            turns.framer.offset()
        };
        self.front.store(front, Ordering::Relaxed);
        drop(turns);
        self.turn_ended.notify_all();
    }

    /// Waits for the turn of this piece, or until turns are over. A thread after the last piece
    /// waits until all pieces had their turns, because the last one may leave an error, or a `rest`
    /// to read.
    fn turn(&self, number: u64, at: u64) -> MutexGuard<'_, Turns> {
        wait_while(&self.turn_ended, self.turns.lock(), |turns| {
            self.waits(turns, number, at)
        })
    }

    /// Returns whether the thread that took the piece `number`, at the offset `at`, has to wait.
    fn waits(&self, turns: &Turns, number: u64, at: u64) -> bool {
        let are_over = turns.done || turns.failure.is_some() || turns.rest.is_some();
        let is_turn = if at < self.size {
            turns.piece == number
        } else {
            turns.piece >= self.pieces()
        };
        !are_over && !is_turn
    }

    /// Reads the piece at `at`, unless all of it belongs to a record that begins before it.
    fn read(&self, at: u64, mut memory: Vec<u8>) -> Result<Piece> {
        let mut filled = 0;
        if at < self.size && self.front.load(Ordering::Relaxed) < at + self.piece {
            let wanted = self.piece.min(self.size - at) as usize;
            // Most records that end after their piece fit into this room.
            let room = wanted + wanted / 8;
            if memory.len() < room || memory.len() > 2 * room {
                memory = vec![0; room];
            }
            self.file
                .read_at(at, memory.get_mut(..wanted).unwrap_or_default())?;
            filled = wanted;
        }
        Ok(Piece { at, memory, filled })
    }

    /// Finds the records of the piece whose turn it is. An error after them is kept until they were
    /// returned, or is skipped.
    ///
    /// # Errors
    /// The error before the first record of the piece, unless it is skipped.
    fn cut(&self, turns: &mut Turns, mut piece: Piece) -> Result<Cut> {
        let first = turns.framer.record();
        let from = turns.framer.offset();
        let mut spans = Vec::new();
        match self.cut_whole(turns, &mut piece, &mut spans) {
            Ok(()) => {}
            Err(error)
                if self.options.on_error == OnError::Skip
                    && matches!(error.kind(), ErrorKind::Codec(_)) =>
            {
                let record = turns.framer.record();
                let offset = turns.framer.offset();
                turns.rest = Some(ShardReader::resume(
                    &self.shard,
                    &self.options,
                    record,
                    offset,
                )?);
            }
            Err(error) if spans.is_empty() => return Err(error),
            Err(error) => turns.failure = Some(error),
        }
        if spans.is_empty() {
            return Ok(Cut {
                segment: None,
                bytes: 0,
                memory: piece.memory,
            });
        }
        let bytes = turns.framer.offset() - from;
        let records = Records::new(piece.memory.into(), spans, first, piece.at)
            .with_shared_features(&self.shared);
        Ok(Cut {
            segment: Some(Segment::Records(records)),
            bytes,
            memory: Vec::new(),
        })
    }

    /// Finds the records of the piece, and extends the piece to the end of its last record.
    fn cut_whole(&self, turns: &mut Turns, piece: &mut Piece, spans: &mut Vec<Span>) -> Result<()> {
        let wrap = |error| Error::codec(&self.shard.path, error);
        loop {
            let missing = turns
                .framer
                .cut_at(piece.bytes(), piece.at, spans)
                .map_err(wrap)?;
            if missing == 0 {
                return Ok(());
            }
            let more = self.extend(piece, missing)?;
            if more < missing {
                let size = piece.at + piece.filled as u64;
                let error = wrap(turns.framer.truncated_at(piece.bytes(), piece.at, size));
                if self.options.partial_tail == PartialTail::Ignore && error.is_cut_short() {
                    turns.done = true;
                    return Ok(());
                }
                return Err(error);
            }
        }
    }

    /// Reads at most `missing` bytes after the piece, and returns their number: fewer only at the
    /// end of the file.
    fn extend(&self, piece: &mut Piece, missing: usize) -> Result<usize> {
        let end = piece.at + piece.filled as u64;
        // No memory is allocated for more than the file has.
        let there = self.size.saturating_sub(end).min(missing as u64) as usize;
        let long = piece.filled + there;
        if piece.memory.len() < long {
            piece.memory.reserve_exact(long - piece.memory.len());
            piece.memory.resize(long, 0);
        }
        self.file.read_at(
            end,
            piece.memory.get_mut(piece.filled..long).unwrap_or_default(),
        )?;
        piece.filled = long;
        Ok(there)
    }
}

/// The records of a piece, or its memory if it has none.
struct Cut {
    segment: Option<Segment>,
    bytes: u64,
    memory: Vec<u8>,
}

/// Ends the reading if the thread that has the turn panics, so that no other thread waits for its
/// turn.
struct PanicGuard<'a>(&'a PlainFile);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.turns.lock().done = true;
            self.0.turn_ended.notify_all();
        }
    }
}
