//! Some blocks of a shard, whose places are known, read by several threads.
//!
//! ```text
//! thread 1: take block 0 ─▶ read ─────▶ enter ─▶ use its records ─▶ take block 7 ─▶ ..
//! thread 2: take block 3 ─▶ read ─▶ (wait) ─▶ enter ─▶ ..
//! ```

use std::{
    sync::{Condvar, MutexGuard},
    thread,
};

use tfarrow_codec::{Limits, Records, frame::FrameRange};

use super::{frame_ranges::RangeCutter, random_access::RandomAccess};
use crate::{
    Result,
    lock::{Lock, wait_while},
};

/// Decides whether a block is read, when a thread is about to read it.
pub type IsWanted = dyn Fn(&FrameRange) -> bool + Send + Sync;

/// Blocks of a shard.
pub(super) struct BlockReader {
    access: RandomAccess,
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
    /// Whether an error has ended the reading.
    done: bool,
}

impl BlockReader {
    pub(super) fn new(
        access: RandomAccess,
        limits: Limits,
        blocks: Vec<FrameRange>,
        is_wanted: Box<IsWanted>,
    ) -> Self {
        Self {
            cutter: RangeCutter::new(access.shard(), limits),
            access,
            is_wanted,
            state: Lock::new(BlockTurns {
                left: blocks.into_iter(),
                taken: 0,
                turn: 0,
                done: false,
            }),
            turn_ended: Condvar::new(),
        }
    }

    /// Reads the next wanted block, and returns the result of `enter` for its records and its number
    /// of bytes; `None` at the end.
    pub(super) fn next<T>(
        &self,
        memory: Vec<u8>,
        enter: impl FnOnce(Result<(Records, u64)>) -> T,
    ) -> Option<T> {
        let _guard = PanickedBlock(self);
        let (number, block) = self.take()?;
        let most = self.access.most_bytes();
        let read = self.cutter.read(&block, memory, most, |bytes| {
            self.access.reader().read_at(block.offset, bytes)
        });
        let mut turns = self.turn(number);
        if turns.done {
            return None;
        }
        turns.done = read.is_err();
        let entered = enter(read.map(|records| (records, block.bytes as u64)));
        turns.turn += 1;
        drop(turns);
        self.turn_ended.notify_all();
        Some(entered)
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
