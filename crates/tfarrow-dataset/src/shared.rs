//! One shard, read by several threads.
//!
//! Each takes the records that come next and works on them where they are: in its own cache. Of a plain file, threads
//! read different pieces at once, and take turns only to find where records begin and to read the rest of the last one:
//! the work of microseconds, unless records are longer than pieces.
//! What is compressed, or comes through a pipe, they read in turn; so they do where they go on behind damage, whose end has
//! to be looked for.

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tfarrow_codec::{
    OnError, Records,
    frame::{Framer, Span},
};

use crate::{Compression, Error, PartialTail, ReadOptions, Result, Shard, ShardReader, SkippedRecords, lock::lock};

/// A shard that several threads read.
pub struct SharedReader(Way);

enum Way {
    /// With what was passed over, for whoever asks: that may be somebody whom the one whose turn it is waits for.
    InTurn(Box<Mutex<ShardReader>>, Mutex<SkippedRecords>),
    AtOnce(PlainFile),
}

/// What a thread has taken.
#[derive(Debug)]
pub struct Taken {
    /// The records that come next.
    pub records: Records,
    /// The bytes of the shard, as it is stored, that were read for them.
    pub bytes: u64,
}

impl SharedReader {
    /// Opens a shard.
    ///
    /// # Errors
    /// As [`ShardReader::open`].
    pub fn open(shard: &Shard, options: &ReadOptions) -> Result<Self> {
        let reader = ShardReader::open(shard, options)?;
        let is_plain = reader.compression() == Compression::None && !shard.is_stream() && !shard.is_remote();
        if !is_plain || options.on_error == OnError::Skip || cfg!(not(unix)) {
            return Ok(reader.into());
        }
        let file = PlainFile::open(shard, options).map_err(|error| Error::io(&shard.path, error))?;
        // What says that it has nothing may have something all the same, as files of the system's own do.
        Ok(if file.size == 0 { reader.into() } else { Self(Way::AtOnce(file)) })
    }

    /// The next records, as `enter` takes them: threads are let in one at a time, in the shard's order, so that what
    /// `enter` does is in that order too. `None` once there is nothing more. An error is the last that is let in.
    ///
    /// `memory` is filled again, where the last records that were taken have given it back.
    pub fn next<T>(&self, memory: Option<Vec<u8>>, enter: impl FnOnce(Result<Taken>) -> T) -> Option<T> {
        match &self.0 {
            Way::InTurn(reader, lost) => {
                // A reader that has panicked is at its end: what it would say next is not what comes next.
                let mut reader = reader.lock().ok()?;
                let before = reader.bytes_read();
                let next = reader.next();
                lock(lost).merge(reader.lost());
                let records = next.transpose()?;
                let bytes = reader.bytes_read() - before;
                Some(enter(records.map(|records| Taken { records, bytes })))
            }
            Way::AtOnce(file) => file.next(memory.unwrap_or_default(), enter),
        }
    }
}

impl SharedReader {
    /// What was passed over since this was last asked. It waits for nobody's turn.
    pub fn lost(&self) -> SkippedRecords {
        match &self.0 {
            Way::InTurn(_, lost) => std::mem::take(&mut lock(lost)),
            Way::AtOnce(_) => SkippedRecords::default(),
        }
    }
}

impl From<ShardReader> for SharedReader {
    fn from(reader: ShardReader) -> Self {
        Self(Way::InTurn(Box::new(Mutex::new(reader)), Mutex::default()))
    }
}

/// A plain file in pieces of one size. A record belongs to the piece that its first byte lies in.
struct PlainFile {
    path: PathBuf,
    file: File,
    size: u64,
    piece: u64,
    /// The first piece that no thread has taken yet.
    free: AtomicU64,
    /// Up to where records were cut: a piece that lies before it need not be read.
    front: AtomicU64,
    turns: Mutex<Turns>,
    /// Somebody's turn is over.
    passed: Condvar,
    partial_tail: PartialTail,
}

struct Turns {
    /// The piece whose turn it is.
    piece: u64,
    framer: Framer,
    /// What came behind the last records that were let in.
    failure: Option<Error>,
    done: bool,
}

/// A piece in memory: the first `filled` bytes, which lie at `at` in the file.
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
    fn open(shard: &Shard, options: &ReadOptions) -> io::Result<Self> {
        let file = File::open(shard.local_path())?;
        let size = file.metadata()?.len();
        let framer = Framer::new(options.limits);
        Ok(Self {
            path: shard.path.clone(),
            file,
            size,
            piece: options.chunk_bytes.clamp(1, 1 << 30) as u64,
            free: AtomicU64::new(0),
            front: AtomicU64::new(0),
            turns: Mutex::new(Turns { piece: 0, framer, failure: None, done: false }),
            passed: Condvar::new(),
            partial_tail: options.partial_tail,
        })
    }

    fn next<T>(&self, mut memory: Vec<u8>, enter: impl FnOnce(Result<Taken>) -> T) -> Option<T> {
        let _alarm = Alarm(self);
        loop {
            // Whoever takes a piece waits for its turn before it returns, so that nobody waits for it in vain.
            let number = self.free.fetch_add(1, Ordering::Relaxed);
            let at = number.saturating_mul(self.piece);
            let read = self.read(at, memory);
            let mut turns = self.turn(number, at);
            if let Some(failure) = turns.failure.take() {
                turns.done = true;
                return Some(enter(Err(failure)));
            }
            if turns.done || at >= self.size {
                return None;
            }
            let from = turns.framer.offset();
            let first = turns.framer.record();
            let taken = match read.and_then(|piece| self.cut(&mut turns, piece)) {
                Ok((spans, piece)) if spans.is_empty() => {
                    memory = piece.memory;
                    self.pass(turns);
                    continue;
                }
                Ok((spans, piece)) => {
                    let bytes = turns.framer.offset() - from;
                    let records = Records::new(piece.memory.into(), spans, first, piece.at);
                    Ok(Taken { records, bytes })
                }
                Err(error) => {
                    turns.done = true;
                    Err(error)
                }
            };
            let entered = enter(taken);
            self.pass(turns);
            return Some(entered);
        }
    }

    /// Ends the turn.
    fn pass(&self, mut turns: MutexGuard<'_, Turns>) {
        turns.piece += 1;
        self.front.store(turns.framer.offset(), Ordering::Relaxed);
        drop(turns);
        self.passed.notify_all();
    }

    /// Waits for the turn of this piece, or until there are no more.
    fn turn(&self, number: u64, at: u64) -> MutexGuard<'_, Turns> {
        let mut turns = lock(&self.turns);
        while turns.piece != number && at < self.size && !turns.done && turns.failure.is_none() {
            turns = self.passed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        turns
    }

    /// Reads the piece at `at`, unless all of it belongs to a record that begins before it.
    fn read(&self, at: u64, mut memory: Vec<u8>) -> Result<Piece> {
        let mut filled = 0;
        if at < self.size && self.front.load(Ordering::Relaxed) < at + self.piece {
            let wanted = self.piece.min(self.size - at) as usize;
            // Most records that end behind their piece fit behind it.
            let room = wanted + wanted / 8;
            if memory.len() < room || memory.len() > 2 * room {
                memory = vec![0; room];
            }
            filled = self.read_at(at, memory.get_mut(..wanted).unwrap_or_default())?;
        }
        Ok(Piece { at, memory, filled })
    }

    /// Fills `to` with what stands at `at`; short of that only where the file ends.
    fn read_at(&self, at: u64, to: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = to.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_at(&self.file, rest, at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, error)),
            }
        }
        Ok(filled)
    }

    /// Finds the records of the piece whose turn it is. An error after its records is kept until these were returned.
    fn cut(&self, turns: &mut Turns, mut piece: Piece) -> Result<(Vec<Span>, Piece)> {
        let mut spans = Vec::new();
        match self.cut_whole(turns, &mut piece, &mut spans) {
            Err(error) if spans.is_empty() => return Err(error),
            outcome => turns.failure = outcome.err(),
        }
        Ok((spans, piece))
    }

    /// Finds the records of the piece, and extends the piece to the end of its last record.
    fn cut_whole(&self, turns: &mut Turns, piece: &mut Piece, spans: &mut Vec<Span>) -> Result<()> {
        let wrap = |error| Error::codec(&self.path, error);
        loop {
            let missing = turns.framer.cut_at(piece.bytes(), piece.at, spans).map_err(wrap)?;
            if missing == 0 {
                return Ok(());
            }
            let more = self.extend(piece, missing)?;
            if more < missing {
                let size = piece.at + piece.filled as u64;
                let error = wrap(turns.framer.truncated_at(piece.bytes(), piece.at, size));
                if self.partial_tail == PartialTail::Ignore && error.is_cut_short() {
                    turns.done = true;
                    return Ok(());
                }
                return Err(error);
            }
        }
    }

    /// Reads at most `missing` bytes after the piece, and returns their number: fewer only at the end of the file.
    fn extend(&self, piece: &mut Piece, missing: usize) -> Result<usize> {
        let end = piece.at + piece.filled as u64;
        // No memory is allocated for more than the file has.
        let there = self.size.saturating_sub(end).min(missing as u64) as usize;
        let long = piece.filled + there;
        if piece.memory.len() < long {
            piece.memory.reserve_exact(long - piece.memory.len());
            piece.memory.resize(long, 0);
        }
        let more = self.read_at(end, piece.memory.get_mut(piece.filled..long).unwrap_or_default())?;
        piece.filled += more;
        Ok(more)
    }
}

/// Ends the reading where the thread that has it panics, so that no other waits for its turn.
struct Alarm<'a>(&'a PlainFile);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.turns).done = true;
            self.0.passed.notify_all();
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

#[cfg(not(unix))]
fn read_at(_file: &File, _to: &mut [u8], _at: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
