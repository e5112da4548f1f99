//! The compressed bytes of a shard in memory, and the places at which gzip members may begin in
//! them.
//!
//! ```text
//!            place            stop
//!              │               │
//!  │ kept      │ waiting bytes ▼                    │
//!  ├───────────┼───────────────┬────────────────────┤
//!  │ in doubt  │ member A      │ 1f 8b 08 ...       │
//!  └ offset                                         └ end of the bytes read
//! ```
//!
//! The decoder of a member gets bytes up to `stop` only, so that the place is examined before it is
//! decompressed.

use flate2::{Decompress, FlushDecompress};
use memchr::{memchr, memmem};
use tfarrow_codec::frame::{HEADER, length};

use super::input::{Failure, StoredInput, copy};
use crate::Compression;

/// Number of compressed bytes that are read at once.
const INPUT_BYTES: usize = 512 << 10;
/// Start of a gzip member: the magic number, and the compression method deflate (RFC 1952).
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Number of bytes of a gzip member that are inflated to test whether it begins with a record: more
/// than usual headers of gzip and the codes of a first block take.
const MEMBER_HEAD: usize = 1 << 10;
/// Largest window of deflate, as a power of two.
pub(super) const WINDOW_BITS: u8 = 15;

/// Compressed bytes in memory.
pub(super) struct MemberBuffer {
    buffer: Vec<u8>,
    /// Offset of the first byte of `buffer` in the file.
    offset: u64,
    /// Start of the bytes in `buffer` that are not decompressed yet.
    from: usize,
    /// End of these bytes.
    to: usize,
    /// The first position in `buffer` at which another member may begin. Bytes before it belong to
    /// the current member.
    stop: usize,
    /// `false` for zlib, which has no members.
    is_gzip: bool,
}

impl MemberBuffer {
    /// Creates a buffer for a file that begins with `stored`.
    pub(super) fn new(compression: Compression, stored: &[u8]) -> Self {
        let mut buffer = vec![0; INPUT_BYTES];
        let to = copy(stored, &mut buffer);
        let is_gzip = compression == Compression::Gzip;
        let mut members = Self {
            buffer,
            offset: 0,
            from: 0,
            to,
            stop: 0,
            is_gzip,
        };
        members.begin();
        members
    }

    /// Number of bytes that were read and are not decompressed yet.
    pub(super) fn waiting(&self) -> usize {
        self.to - self.from
    }

    /// The current place: the offset in the file of the first waiting byte.
    pub(super) fn place(&self) -> u64 {
        self.offset + self.from as u64
    }

    /// The waiting bytes of the current member.
    pub(super) fn current(&self) -> &[u8] {
        self.buffer.get(self.from..self.stop).unwrap_or_default()
    }

    /// Removes waiting bytes of the current member, which are decompressed.
    pub(super) fn consume(&mut self, count: usize) {
        self.from = (self.from + count).min(self.stop);
    }

    /// Returns whether another member may begin at the current place.
    pub(super) fn is_at_stop(&self) -> bool {
        self.from == self.stop && self.waiting() > 0
    }

    /// Moves the stop after the first waiting byte.
    pub(super) fn stop_after_byte(&mut self) {
        self.stop = self.from + 1;
    }

    /// Moves the stop to the next position at which a member may begin.
    pub(super) fn find_stop(&mut self) {
        self.stop = self.find_member(self.stop.max(self.from + 1));
    }

    /// Starts a member at the current place.
    pub(super) fn begin(&mut self) {
        self.stop = self.find_member(self.from + 1);
    }

    /// The bytes between an earlier place, which was kept in memory, and the current one.
    pub(super) fn since(&self, place: u64) -> &[u8] {
        self.buffer
            .get(self.position(place)..self.from)
            .unwrap_or_default()
    }

    /// Returns to an earlier place, which was kept in memory.
    pub(super) fn rewind(&mut self, place: u64) {
        self.from = self.position(place);
    }

    fn position(&self, place: u64) -> usize {
        debug_assert!(
            place >= self.offset,
            "the bytes at {place} are not in memory any more"
        );
        (place - self.offset) as usize
    }

    /// Returns whether a gzip member begins at the current place, as far as bytes are waiting.
    pub(super) fn is_magic(&self) -> bool {
        self.is_magic_at(self.from)
    }

    fn is_magic_at(&self, position: usize) -> bool {
        begins_with_magic(self.buffer.get(position..self.to).unwrap_or_default())
    }

    /// Returns the first position from `position` on at which a gzip member may begin; the end of
    /// the waiting bytes if there is none.
    fn find_member(&self, position: usize) -> usize {
        if !self.is_gzip {
            return self.to;
        }
        let position = position.min(self.to);
        let bytes = self.buffer.get(position..self.to).unwrap_or_default();
        if let Some(found) = memmem::find(bytes, &MAGIC) {
            return position + found;
        }
        // The buffer may end within the magic number.
        let tail = self.to.saturating_sub(MAGIC.len() - 1).max(position);
        (tail..self.to)
            .find(|position| self.is_magic_at(*position))
            .unwrap_or(self.to)
    }

    /// Returns whether the waiting bytes are a gzip member that begins with the header of a record,
    /// whose length has a valid CRC. The chance of random bytes is 2^-56. The bytes from the place
    /// `keep` on stay in memory.
    ///
    /// # Errors
    /// An error of the source.
    pub(super) fn begins_sound_member(
        &mut self,
        input: &mut StoredInput,
        keep: Option<u64>,
    ) -> Result<bool, Failure> {
        self.gather(MAGIC.len(), input, keep)?;
        if !self.is_magic() {
            return Ok(false);
        }
        self.gather(MEMBER_HEAD, input, keep)?;
        let mut head = [0; HEADER];
        let end = self.to.min(self.from + MEMBER_HEAD);
        let waiting = self.buffer.get(self.from..end).unwrap_or_default();
        let mut engine = Decompress::new_gzip(WINDOW_BITS);
        let inflates = engine
            .decompress(waiting, &mut head, FlushDecompress::None)
            .is_ok();
        Ok(inflates && engine.total_out() == HEADER as u64 && length(&head).is_some())
    }

    /// Skips all bytes up to the end of the file if they are zeros. Returns whether they are.
    ///
    /// # Errors
    /// An error of the source.
    pub(super) fn skip_zeros(&mut self, input: &mut StoredInput) -> Result<bool, Failure> {
        loop {
            let waiting = self.buffer.get(self.from..self.to).unwrap_or_default();
            if waiting.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            (self.from, self.stop) = (self.to, self.to);
            if self.refill(input, None)? == 0 {
                return Ok(true);
            }
        }
    }

    /// Skips `count` bytes if a gzip member begins after them. Returns whether one does.
    ///
    /// # Errors
    /// An error of the source.
    pub(super) fn skip_to_member(
        &mut self,
        count: usize,
        input: &mut StoredInput,
    ) -> Result<bool, Failure> {
        self.gather(count + MAGIC.len(), input, None)?;
        let end = self.from + count;
        if end > self.to || !self.is_magic_at(end) {
            return Ok(false);
        }
        (self.from, self.stop) = (end, self.stop.max(end));
        Ok(self.waiting() > 0)
    }

    /// Moves waiting bytes to `out` as they are, up to the next position at which a member may
    /// begin. Returns their number.
    pub(super) fn take_stored(&mut self, out: &mut [u8]) -> usize {
        let rest = self.buffer.get(self.from + 1..self.to).unwrap_or_default();
        let next = 1 + memchr(MAGIC[0], rest).unwrap_or(rest.len());
        let count = copy(
            self.buffer
                .get(self.from..self.from + next)
                .unwrap_or_default(),
            out,
        );
        self.from += count;
        self.stop = self.stop.max(self.from);
        count
    }

    /// Reads until `count` bytes wait, or the file ends, so that a magic number across two reads is
    /// found.
    ///
    /// # Errors
    /// An error of the source.
    pub(super) fn gather(
        &mut self,
        count: usize,
        input: &mut StoredInput,
        keep: Option<u64>,
    ) -> Result<(), Failure> {
        while self.waiting() < count && self.refill(input, keep)? > 0 {}
        Ok(())
    }

    /// Reads more compressed bytes. Returns their number, 0 at the end of the file. The bytes from
    /// the place `keep` on stay in memory.
    ///
    /// # Errors
    /// An error of the source.
    pub(super) fn refill(
        &mut self,
        input: &mut StoredInput,
        keep: Option<u64>,
    ) -> Result<usize, Failure> {
        self.shift(keep.map_or(self.from, |place| self.position(place)));
        let end = self.to;
        let count = input.read(self.buffer.get_mut(end..).unwrap_or_default())?;
        self.to += count;
        if self.stop == end {
            self.stop = self.find_member(end);
        }
        Ok(count)
    }

    /// Moves the bytes from `start` on to the front of the buffer.
    fn shift(&mut self, start: usize) {
        self.buffer.copy_within(start..self.to, 0);
        self.offset += start as u64;
        (self.from, self.to, self.stop) = (self.from - start, self.to - start, self.stop - start);
    }
}

/// Returns whether bytes begin with the magic number of gzip, or end within it.
pub(super) fn begins_with_magic(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic)
}
