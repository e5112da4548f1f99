//! Some blocks of a shard, whose places are known, read by several threads.
//!
//! ```text
//! thread 1: take block 0 ─▶ read ─────▶ enter ─▶ use its records ─▶ take block 7 ─▶ ..
//! thread 2: take block 3 ─▶ read ─▶ (wait) ─▶ enter ─▶ ..
//! ```
//!
//! From a block on that cannot be read, the shard is read as without an index, by one thread at a
//! time: damage is the same error, or skipped in the same way.

use std::{
    sync::{Condvar, MutexGuard},
    thread,
};

use tfarrow_codec::{Records, frame::FrameRange};

use super::{frame_ranges::RangeCutter, random_access::RandomAccess};
use crate::{
    ReadOptions, Result, Segment, ShardReader,
    lock::{Lock, wait_while},
};

/// Decides whether a block is read, when a thread is about to read it.
pub type IsWanted = dyn Fn(&FrameRange) -> bool + Send + Sync;

/// Blocks of a shard.
pub(super) struct BlockReader {
    access: RandomAccess,
    options: ReadOptions,
    cutter: RangeCutter,
    is_wanted: Box<IsWanted>,
    state: Lock<BlockTurns>,
    /// Notified at the end of each turn.
    turn_ended: Condvar,
}

struct BlockTurns {
    /// The blocks that no thread has taken, in the order of the file.
    left: std::vec::IntoIter<FrameRange>,
    /// Number of blocks that threads have taken.
    taken: u64,
    /// The block whose turn it is.
    turn: u64,
    /// Whether reading has ended, but for the rest.
    done: bool,
    /// Reads on from the block that cannot be read.
    rest: Option<Rest>,
}

/// The rest of a shard.
struct Rest {
    reader: ShardReader,
    /// The offset of the first record that was not returned.
    offset: u64,
}

impl BlockReader {
    pub(super) fn new(
        access: RandomAccess,
        options: &ReadOptions,
        blocks: Vec<FrameRange>,
        is_wanted: Box<IsWanted>,
    ) -> Self {
        Self {
            cutter: RangeCutter::new(access.shard(), options.limits),
            access,
            options: *options,
            is_wanted,
            state: Lock::new(BlockTurns {
                left: blocks.into_iter(),
                taken: 0,
                turn: 0,
                done: false,
                rest: None,
            }),
            turn_ended: Condvar::new(),
        }
    }

    /// Reads the next wanted block, and returns the result of `enter` for its records and its number
    /// of bytes; `None` at the end.
    pub(super) fn next<T>(
        &self,
        memory: Vec<u8>,
        enter: impl FnOnce(Result<(Segment, u64)>) -> T,
    ) -> Option<T> {
        let _guard = PanickedBlock(self);
        let Some((number, block)) = self.take() else {
            return next_of_rest(&mut self.state.lock(), enter);
        };
        let most = self.access.most_bytes();
        let read = self.cutter.read(&block, memory, most, |bytes| {
            self.access.reader().read_at(block.offset, bytes)
        });
        let mut turns = self.turn(number);
        if turns.done {
            return next_of_rest(&mut turns, enter);
        }
        let entered = if let Ok(records) = read {
            Some(enter(Ok((Segment::Records(records), block.bytes as u64))))
        } else {
            turns.done = true;
            match self.rest(&block) {
                Ok(rest) => {
                    turns.rest = Some(rest);
                    next_of_rest(&mut turns, enter)
                }
                Err(error) => Some(enter(Err(error))),
            }
        };
        turns.turn += 1;
        drop(turns);
        self.turn_ended.notify_all();
        entered
    }

    /// The rest of the shard from a block on.
    fn rest(&self, block: &FrameRange) -> Result<Rest> {
        let reader = self
            .access
            .sequential(&self.options, block.first, block.offset)?;
        Ok(Rest {
            reader,
            offset: block.offset,
        })
    }

    /// The next wanted block, and its number among those that are read.
    fn take(&self) -> Option<(u64, FrameRange)> {
        let mut turns = self.state.lock();
        if turns.done {
            return None;
        }
        let mut block = turns.left.by_ref().find(|block| (self.is_wanted)(block))?;
        // A request for several blocks takes hardly longer than a request for one.
        while let Some(next) = turns.left.as_slice().first().copied()
            && next.first == block.first + block.records as u64
            && block.bytes + next.bytes <= self.access.joined_bytes()
        {
            turns.left.next();
            if !(self.is_wanted)(&next) {
                break;
            }
            block.records += next.records;
            block.bytes += next.bytes;
        }
        let number = turns.taken;
        turns.taken += 1;
        Some((number, block))
    }

    /// Waits for the turn of this block, or until reading has ended.
    fn turn(&self, number: u64) -> MutexGuard<'_, BlockTurns> {
        wait_while(&self.turn_ended, self.state.lock(), |turns| {
            !turns.done && turns.turn != number
        })
    }
}

/// Passes the next part of the rest to `enter`; `None` at the end, or if there is no rest.
fn next_of_rest<T>(
    turns: &mut BlockTurns,
    enter: impl FnOnce(Result<(Segment, u64)>) -> T,
) -> Option<T> {
    let rest = turns.rest.as_mut()?;
    loop {
        let before = rest.reader.bytes_read();
        let segment = rest.reader.segment().transpose()?;
        let bytes = rest.reader.bytes_read() - before;
        let segment = match segment {
            Ok(Segment::Records(records)) => match from_offset(records, rest.offset) {
                Some(records) => Ok(Segment::Records(records)),
                None => continue,
            },
            other => other,
        };
        return Some(enter(segment.map(|segment| (segment, bytes))));
    }
}

/// The records at or after an offset; `None` if all are before it.
fn from_offset(records: Records, offset: u64) -> Option<Records> {
    let mut number = 0;
    while number < records.len() && records.offset(number).is_some_and(|at| at < offset) {
        number += 1;
    }
    (number < records.len()).then(|| records.split_at(number).1)
}

/// Ends the reading if the thread that has the turn panics.
struct PanickedBlock<'a>(&'a BlockReader);

impl Drop for PanickedBlock<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.lock().done = true;
            self.0.turn_ended.notify_all();
        }
    }
}
