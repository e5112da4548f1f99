//! Decompressing TensorFlow's Snappy streams, and finding the next block after a damaged one.
//!
//! ```text
//! Reading ─▶ Ended
//!    │ ▲
//!    ▼ └───────────────────┐
//! Broken ──▶ Passing ──────┤        the block ends where a valid one begins
//!    └─────▶ Searching ────┘        else: up to the next position at which two blocks are valid
//! ```
//!
//! A block has no checksum: it is damaged if its elements do not decompress. Most damaged bytes
//! change values only, so that the CRC of a record shows them.

use std::io;

use memchr::memchr;
use snap::raw::{Decoder, decompress_len};

use super::input::{Failure, StoredInput, copy};
use crate::{
    error::Damage,
    snappy::{BLOCK_HEADER, block_length, start},
};

/// Number of compressed bytes that are read at once.
const INPUT_BYTES: usize = 512 << 10;
/// Maximum bytes of a block, compressed and decompressed. TensorFlow writes blocks of up to 256
/// KiB, and longer ones for longer records.
const MAX_BLOCK: usize = 128 << 20;
/// A ratio of the size of a block to its compressed bytes that no block has: an element of three
/// bytes stands for up to 64.
const MAX_RATIO: usize = 32;
/// Maximum bytes of a block that is found after damage.
const MAX_FOUND: usize = 1 << 20;
/// Number of decompressed bytes of a block that are tested first.
const BEGIN_BYTES: usize = 256;
/// Maximum ratio of the bytes that are decompressed to find blocks to the bytes of the file, beyond
/// [`HARMLESS`].
const AGAIN: u64 = 8;
/// Number of bytes that may be decompressed to find blocks in any file.
const HARMLESS: u64 = 64 << 20;

/// Decompresses a stream.
pub(crate) struct SnappyBlocks {
    /// Compressed bytes, of which those from `from` on wait to be decompressed.
    stored: Vec<u8>,
    from: usize,
    /// Decompressed bytes, of which `returned` were returned.
    block: Vec<u8>,
    returned: usize,
    state: BlockState,
    /// Number of bytes that were decompressed to find blocks.
    work: u64,
    /// Whether all bytes of the file were read.
    is_at_end: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum BlockState {
    /// A block may follow.
    Reading,
    /// After damage of a block.
    Broken,
    /// In a damaged block, of which this number of bytes follow.
    Passing(usize),
    /// Searching for the next block.
    Searching,
    /// At the end.
    Ended,
}

impl SnappyBlocks {
    /// Creates a decompressor of a stream that begins with `stored`.
    pub(crate) fn new(stored: &[u8]) -> Self {
        let stored = stored.to_vec();
        let block = Vec::new();
        let state = BlockState::Reading;
        Self {
            stored,
            from: 0,
            block,
            returned: 0,
            state,
            work: 0,
            is_at_end: false,
        }
    }

    /// Returns the number of bytes that were read and are not decompressed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.stored.len() - self.from
    }

    /// Returns whether blocks are expected.
    pub(crate) fn goes_on(&self) -> bool {
        self.state == BlockState::Reading
    }

    /// Decompresses into `out`, which is not empty. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// An error of the source, or the damage of the stream.
    pub(crate) fn read(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        loop {
            let count = copy(self.block.get(self.returned..).unwrap_or_default(), out);
            if count > 0 {
                self.returned += count;
                return Ok(count);
            }
            if self.state != BlockState::Reading {
                return Ok(0);
            }
            (self.returned, self.state) = (0, BlockState::Broken);
            self.block.clear();
            let ended = self.next_block(input)?;
            self.state = if ended {
                BlockState::Ended
            } else {
                BlockState::Reading
            };
        }
    }

    /// Decompresses the next block. Returns whether the stream has ended instead.
    ///
    /// # Errors
    /// An error of the source, or the damage of the block.
    fn next_block(&mut self, input: &mut StoredInput) -> Result<bool, Failure> {
        self.gather(BLOCK_HEADER, input)?;
        if self.waiting() == 0 {
            return Ok(true);
        }
        let length =
            block_length(self.waiting_bytes()).ok_or(Failure::Damage(Damage::Truncated))?;
        let corrupt = |why: &str| Failure::Damage(Damage::Corrupt(why.to_owned()));
        if length > MAX_BLOCK {
            return Err(corrupt("a block is longer than 128 MiB"));
        }
        self.gather(BLOCK_HEADER + length, input)?;
        let end = self.from + BLOCK_HEADER + length;
        let block = self
            .stored
            .get(self.from + BLOCK_HEADER..end)
            .ok_or(Failure::Damage(Damage::Truncated))?;
        decompress(block, MAX_BLOCK, &mut self.block)
            .ok_or_else(|| corrupt("a block does not decompress"))?;
        self.from = end;
        Ok(false)
    }

    /// Copies the bytes after damage as they are stored, up to the next block. Returns their
    /// number.
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn read_stored(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        let mut count = 0;
        if self.state == BlockState::Broken {
            let end = block_length(self.waiting_bytes()).map(|length| BLOCK_HEADER + length);
            match end.filter(|end| *end <= self.waiting()) {
                Some(end) if self.is_block_at(end, input)? => self.state = BlockState::Passing(end),
                _ => {
                    self.state = BlockState::Searching;
                    count += self.take_candidate(out);
                }
            }
        }
        while count < out.len() && (self.waiting() > 0 || self.refill(input)? > 0) {
            let state = self.state;
            let rest = out.get_mut(count..).unwrap_or_default();
            match state {
                BlockState::Reading => break,
                BlockState::Passing(0) => self.state = BlockState::Reading,
                BlockState::Passing(left) => {
                    let taken = self.take(left, rest);
                    self.state = BlockState::Passing(left - taken);
                    count += taken;
                }
                BlockState::Searching if self.is_block_at(0, input)? => {
                    self.state = BlockState::Reading
                }
                BlockState::Searching | BlockState::Broken | BlockState::Ended => {
                    count += self.take_candidate(rest)
                }
            }
        }
        Ok(count)
    }

    /// Returns whether two blocks, or a last one, begin `at` bytes after the current place, or the
    /// stream ends there after other bytes.
    ///
    /// # Errors
    /// An error of the source.
    fn is_block_at(&mut self, mut at: usize, input: &mut StoredInput) -> Result<bool, Failure> {
        let mut block = Vec::new();
        for _ in 0..2 {
            self.gather(at + BLOCK_HEADER, input)?;
            if at > 0 && self.waiting() == at {
                return Ok(true);
            }
            let length = block_length(self.waiting_bytes().get(at..).unwrap_or_default());
            let Some(length) = length.filter(|length| (1..=MAX_FOUND).contains(length)) else {
                return Ok(false);
            };
            let end = at + BLOCK_HEADER + length;
            self.gather(end, input)?;
            let Some(stored) = self
                .waiting_bytes()
                .get(at..end)
                .filter(|stored| begins_valid(stored))
            else {
                return Ok(false);
            };
            let is_valid = decompress(
                stored.get(BLOCK_HEADER..).unwrap_or_default(),
                MAX_FOUND,
                &mut block,
            )
            .is_some();
            self.work += (length + block.len()) as u64;
            if !is_valid || self.work > HARMLESS.max(input.bytes.saturating_mul(AGAIN)) {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }

    fn waiting_bytes(&self) -> &[u8] {
        self.stored.get(self.from..).unwrap_or_default()
    }

    /// Moves waiting bytes to `out` as they are, up to the next position at which a block may
    /// begin: the first byte of a length is zero. Returns their number.
    fn take_candidate(&mut self, out: &mut [u8]) -> usize {
        let next = memchr(0, self.waiting_bytes().get(1..).unwrap_or_default());
        self.take(next.map_or(self.waiting(), |next| 1 + next), out)
    }

    /// Moves at most `most` waiting bytes to `out` as they are. Returns their number.
    fn take(&mut self, most: usize, out: &mut [u8]) -> usize {
        let bytes = self.waiting_bytes();
        let count = copy(bytes.get(..most).unwrap_or(bytes), out);
        self.from += count;
        count
    }

    /// Reads until `count` bytes wait, or the file ends.
    ///
    /// # Errors
    /// An error of the source.
    fn gather(&mut self, count: usize, input: &mut StoredInput) -> Result<(), Failure> {
        while self.waiting() < count && self.refill(input)? > 0 {}
        Ok(())
    }

    /// Reads more compressed bytes. Returns their number, 0 at the end of the file. Memory grows
    /// with the bytes that are there, and not with the length of a block.
    ///
    /// # Errors
    /// An error of the source.
    fn refill(&mut self, input: &mut StoredInput) -> Result<usize, Failure> {
        // The search asks for bytes after the end at each place where a block may begin.
        if self.is_at_end {
            return Ok(0);
        }
        self.stored.drain(..self.from);
        self.from = 0;
        let end = self.stored.len();
        self.stored.resize(end + INPUT_BYTES, 0);
        let read = input.read(self.stored.get_mut(end..).unwrap_or_default());
        self.stored
            .truncate(end + read.as_ref().map_or(0, |count| *count));
        self.is_at_end = matches!(read, Ok(0));
        read
    }
}

/// Returns whether the first elements of a block, which `stored` has after its length, are valid: a
/// test that costs less than decompressing the block.
fn begins_valid(stored: &[u8]) -> bool {
    let size = stored
        .get(BLOCK_HEADER..)
        .and_then(|block| decompress_len(block).ok());
    size.is_some_and(|size| start(stored, BEGIN_BYTES).len() >= size.min(BEGIN_BYTES))
}

/// Decompresses the blocks in `stored` after a damaged first one, as far as they have about as many
/// bytes as `stored`.
pub(super) fn decompress_after_damage(stored: &[u8]) -> Vec<u8> {
    let mut input = StoredInput::new(Box::new(io::empty()));
    let mut blocks = SnappyBlocks {
        state: BlockState::Broken,
        ..SnappyBlocks::new(stored)
    };
    let mut found = Vec::new();
    let mut buffer = vec![0; MAX_FOUND];
    while found.len() < stored.len() {
        // Neither end of the stream nor damage of a block, which `Ok(0)` and an error are, ends the
        // search.
        match blocks.read(&mut input, &mut buffer) {
            Ok(count) if count > 0 => {
                found.extend_from_slice(buffer.get(..count).unwrap_or_default())
            }
            _ => match blocks.read_stored(&mut input, &mut buffer) {
                Ok(count) if count > 0 || blocks.goes_on() => {}
                _ => break,
            },
        }
    }
    found
}

/// Decompresses a block of at most `most` bytes into `out`, which is then empty if the block is
/// damaged.
fn decompress(block: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let size = decompress_len(block)
        .ok()
        .filter(|size| *size <= most && size / MAX_RATIO <= block.len())?;
    out.resize(size, 0);
    let decompressed = Decoder::new().decompress(block, out);
    if decompressed.is_err() {
        out.clear();
    }
    decompressed.ok().map(drop)
}
