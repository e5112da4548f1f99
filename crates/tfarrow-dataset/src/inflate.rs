//! Decompressing gzip and zlib streams, and finding the next gzip member after a damaged one.
//!
//! A gzip file may have several *members*, one after the other. The decoder of a member that was cut short reads on in
//! the next member, for bytes or for megabytes, before it fails. So the start of a member is searched for while
//! decompressing: wherever the magic number occurs inside of a member, and the bytes from there on inflate to the
//! header of a record, one of two things is true:
//!
//! ```text
//! stored  │ member A ................ 1f 8b 08 ...................... │ ...
//!                                     └ inflates to a record's header
//!
//! 1. A contains these bytes as data, in a stored block, which the decoder copies byte for byte.
//!    The decoder of A outputs 1f for the input 1f: the place becomes a Doubt, and output is held.
//! 2. A was cut short, and member B begins here.
//!    The decoder of A outputs nothing, or another byte: A is damaged (CUT_SHORT), B is read next.
//! ```
//!
//! A doubt is settled when A ends correctly or has read far beyond the place (case 1: the held output is returned), or
//! when A turns out to be damaged. Then `Inflate::decide` inflates the stored bytes from the place on as members of
//! their own, and takes case 2 if that explains them at least as well: the held output is dropped, and reading
//! continues at B.

use std::collections::VecDeque;

use flate2::{Decompress, FlushDecompress, Status};
use memchr::{memchr, memmem};
use tfarrow_codec::frame::{HEADER, length};

use crate::{
    compression::{Compression, Failure, Input, copy},
    error::Damage,
};

/// Number of compressed bytes that are read at once.
const INPUT_BYTES: usize = 512 << 10;
/// Start of a gzip member: the magic number, and the compression method deflate (RFC 1952).
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Number of bytes of a gzip member that are inflated to test whether it begins with a record: more than usual headers
/// of gzip and the codes of a first block take.
const MEMBER_HEAD: usize = 1 << 10;
/// Number of compressed bytes after which a doubt is settled in favour of the current member. A stored block that was
/// cut short takes up to 64 KiB of what follows, and the bytes after it may look valid for a while.
const DOUBTFUL: usize = 128 << 10;
/// Number of decompressed bytes after which a doubt is settled in favour of the current member, and largest step of
/// decompression.
const HELD: usize = 1 << 20;
/// Largest ratio of the work of inflating bytes again to the number of compressed bytes, beyond [`HARMLESS`].
const AGAIN: u64 = 8;
/// Work of starting to inflate a member, in compressed bytes.
const BEGINNING: u64 = 1 << 10;
/// Number of decompressed bytes whose work equals that of one compressed byte.
const INFLATED: u64 = 64;
/// Number of bytes that are decompressed at once while output is held, or members are tried.
const STEP: usize = 64 << 10;
/// Messages for errors at the end of a gzip member, each with the number of bytes of the member after the wrong field.
const AT_END: [(&str, usize); 2] = [("incorrect data check", 4), ("incorrect length check", 0)];
/// Message for compressed bytes that do not inflate. The decoder's own message would depend on the sizes of reads.
const CORRUPT: &str = "it does not inflate";
/// Message for a member in which the next one begins.
const CUT_SHORT: &str = "it is cut short, and another member begins here";
/// Largest window of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;
/// Number of decompressed bytes that any file may have, whatever its compression ratio.
const HARMLESS: u64 = 64 << 20;

/// Decompresses a stream.
pub(crate) struct Inflate {
    engine: Decompress,
    compression: Compression,
    buffer: Vec<u8>,
    /// Start of the compressed bytes in `buffer` that are not decompressed yet.
    from: usize,
    /// End of these bytes.
    to: usize,
    /// The first place in `buffer` where another member may begin. Bytes before it belong to the current member.
    stop: usize,
    /// Places of possible members inside of the current one, in ascending order.
    doubts: VecDeque<Doubt>,
    /// Decompressed bytes that are not returned yet: those before the first doubt are certain.
    held: Vec<u8>,
    /// Work of inflating bytes again, in compressed bytes.
    again: u64,
    state: State,
    /// Damage after the bytes that were decompressed. It is reported after them.
    damage: Option<Damage>,
    /// Number of bytes of a damaged member after the wrong field, if that is at the member's end.
    at_end: Option<usize>,
    /// Largest allowed ratio of decompressed to compressed bytes.
    ratio: u64,
    /// Number of bytes decompressed so far.
    inflated: u64,
}

/// A possible member inside of the current one: in a stored block, or before the current one has output.
#[derive(Clone, Copy)]
struct Doubt {
    /// The place of its first byte in `buffer`.
    at: usize,
    /// Number of held bytes that were output before it.
    held: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// In a gzip member, or in the zlib stream.
    Inside,
    /// After a complete member or stream: the file may end, and in gzip another member may begin.
    Between,
    /// After damage of a gzip stream.
    Broken,
    /// Searching for the next gzip member after damage.
    Searching,
    /// At the end.
    Ended,
}

impl Inflate {
    /// Creates a decompressor of a stream that begins with `stored`; `None` without compression. `ratio` is the largest
    /// allowed ratio of decompressed to compressed bytes.
    pub(crate) fn new(compression: Compression, stored: &[u8], ratio: usize) -> Option<Self> {
        let engine = match compression {
            Compression::None => return None,
            Compression::Gzip => Decompress::new_gzip(WINDOW_BITS),
            Compression::Zlib => Decompress::new(true),
        };
        let mut buffer = vec![0; INPUT_BYTES];
        let to = copy(stored, &mut buffer);
        let mut inflate = Self {
            engine,
            compression,
            buffer,
            from: 0,
            to,
            stop: 0,
            doubts: VecDeque::new(),
            held: Vec::new(),
            again: 0,
            state: State::Inside,
            damage: None,
            at_end: None,
            ratio: ratio as u64,
            inflated: 0,
        };
        inflate.stop = inflate.beginning(1);
        Some(inflate)
    }

    /// Returns the number of bytes that were read and are not decompressed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.to - self.from
    }

    /// Returns whether the stream is inside of a member, so that compressed bytes are expected.
    pub(crate) fn goes_on(&self) -> bool {
        self.state == State::Inside
    }

    /// Decompresses into `out`, which is not empty. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// An error of the system, or the damage of the stream.
    pub(crate) fn read(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Failure> {
        loop {
            if self.damage.is_some() {
                self.decide(input);
            }
            let count = self.hand_on(out);
            if count > 0 {
                return Ok(count);
            }
            if let Some(damage) = self.damage.take() {
                let goes_on = self.compression == Compression::Gzip && !matches!(damage, Damage::Bomb { .. });
                self.state = if goes_on { State::Broken } else { State::Ended };
                return Err(Failure::Damage(damage));
            }
            if !matches!(self.state, State::Inside | State::Between) {
                return Ok(0);
            }
            let at_end = self.waiting() == 0 && self.refill(input)? == 0;
            if self.state == State::Between {
                self.next_member(at_end, input)?;
                continue;
            }
            // A bomb is detected before memory is allocated for more of it.
            let most = out.len().min(HELD);
            let count =
                if self.doubts.is_empty() { self.step(out.get_mut(..most).unwrap_or_default()) } else { self.hold() };
            self.inflated += count as u64;
            let used = input.bytes - self.waiting() as u64;
            if self.inflated > HARMLESS && self.inflated / self.ratio.max(1) > used {
                self.doubts.clear();
                self.damage = Some(Damage::Bomb { limit: self.ratio });
            }
            if count > 0 && self.doubts.is_empty() && self.held.is_empty() {
                return Ok(count);
            }
            // All bytes before the next place where a member may begin are decompressed, and returned or held.
            if count == 0 && self.state == State::Inside && self.damage.is_none() {
                if at_end {
                    self.damage = Some(Damage::Truncated);
                } else if self.from == self.stop && self.waiting() > 0 {
                    self.meet(input)?;
                }
            }
        }
    }

    /// Returns held bytes that are not in doubt.
    fn hand_on(&mut self, out: &mut [u8]) -> usize {
        let sure = self.doubts.front().map_or(self.held.len(), |doubt| doubt.held);
        let count = copy(self.held.get(..sure).unwrap_or_default(), out);
        self.held.drain(..count);
        self.doubts.iter_mut().for_each(|doubt| doubt.held -= count);
        count
    }

    /// Decompresses up to `stop` or until `out` is full. Returns the number of bytes in `out`.
    fn step(&mut self, out: &mut [u8]) -> usize {
        let (before_in, before_out) = (self.engine.total_in(), self.engine.total_out());
        let waiting = self.buffer.get(self.from..self.stop).unwrap_or_default();
        let status = self.engine.decompress(waiting, out, FlushDecompress::None);
        let taken = (self.engine.total_in() - before_in) as usize;
        let count = (self.engine.total_out() - before_out) as usize;
        match status {
            Ok(Status::StreamEnd) => {
                self.state = State::Between;
                // The member is complete, so that possible members in it were its data.
                self.doubts.clear();
            }
            // The decoder makes progress whenever it has input and space. This prevents an endless loop if it does not.
            Ok(Status::Ok | Status::BufError) if taken == 0 && count == 0 && !waiting.is_empty() => {
                self.damage = Some(Damage::Corrupt(CORRUPT.to_owned()));
            }
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => {
                let at_end = AT_END.into_iter().find(|(why, _)| error.message() == Some(*why));
                self.at_end = at_end.map(|(_, behind)| behind);
                self.damage = Some(Damage::Corrupt(at_end.map_or(CORRUPT, |(why, _)| why).to_owned()));
            }
        }
        self.from = (self.from + taken).min(self.stop);
        count
    }

    /// Decompresses into the held bytes. Returns their number.
    fn hold(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held);
        let before = held.len();
        held.resize(before + STEP, 0);
        let count = self.step(held.get_mut(before..).unwrap_or_default());
        held.truncate(before + count);
        self.held = held;
        // Doubts that the current member has passed by far are settled: it contains the bytes.
        let is_far = |doubt: &Doubt| self.from - doubt.at > DOUBTFUL || self.held.len() - doubt.held > HELD;
        let far = self.doubts.iter().take_while(|doubt| is_far(doubt)).count();
        self.doubts.drain(..far);
        count
    }

    /// Tests whether a member begins at the current place, and whether it is data of the current one: the decoder,
    /// which has returned all output, is given the first byte, which a stored block outputs.
    fn meet(&mut self, input: &mut Input) -> Result<(), Failure> {
        if self.begins_sound_member(input)? {
            let (at, is_begun) = (self.from, self.engine.total_out() > 0);
            let mut byte = [0];
            self.stop = at + 1;
            let count = self.step(&mut byte);
            if is_begun && self.state == State::Inside && (count == 0 || byte[0] != MAGIC[0]) {
                // Replaces the decoder's error, since the bytes are not of its member.
                (self.from, self.at_end) = (at, None);
                self.damage = Some(Damage::Corrupt(CUT_SHORT.to_owned()));
            } else {
                if self.state == State::Inside {
                    self.doubts.push_back(Doubt { at, held: self.held.len() });
                }
                self.held.extend_from_slice(byte.get(..count).unwrap_or_default());
                self.inflated += count as u64;
            }
        }
        self.stop = self.beginning(self.stop.max(self.from + 1));
        Ok(())
    }

    /// Settles the doubts of a damaged member: the first possible member that explains the bytes is the next one.
    fn decide(&mut self, input: &Input) {
        let used = input.bytes - self.waiting() as u64;
        // Bounds the work on data with many false starts of members.
        let most = HARMLESS.max(used.saturating_mul(AGAIN));
        for doubt in std::mem::take(&mut self.doubts) {
            if self.again > most {
                break;
            }
            if self.may_be_next(doubt) {
                self.again += (self.from - doubt.at) as u64;
                self.held.truncate(doubt.held);
                (self.from, self.at_end) = (doubt.at, None);
                self.damage = Some(Damage::Corrupt(CUT_SHORT.to_owned()));
                break;
            }
        }
    }

    /// Returns whether a possible member is the next one and not data of the current one: no other bytes of the current
    /// member follow it.
    fn may_be_next(&mut self, doubt: Doubt) -> bool {
        let (held, is_cut) = (doubt.held, self.damage == Some(Damage::Truncated));
        let stored = try_members(self.buffer.get(doubt.at..self.from).unwrap_or_default());
        self.again += stored.cost;
        match stored.end {
            End::Followed => false,
            // Both inflate to the end. A file that ends within both is probably still being written, unless a complete
            // member begins here.
            End::Reached => !is_cut || stored.whole > 0,
            // The possible member is damaged. It is not taken for the next one if the current member is only cut off, or
            // failed only at its end.
            End::Damaged if is_cut || self.at_end.is_some() => false,
            // If the current member contains the other, it decompresses to more of it than can be read from the stored
            // bytes, since the data may be spread over several blocks.
            End::Damaged => {
                let inflated = try_members(self.held.get(held..).unwrap_or_default());
                self.again += inflated.cost;
                inflated.whole <= stored.whole && inflated.taken <= stored.taken
            }
        }
    }

    /// Copies the bytes after damage as they are stored, up to the next member: one that begins with a record, or,
    /// after a member that was read to its end, any member.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn read_stored(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Failure> {
        match self.state {
            // The following bytes are decompressed by `read`.
            State::Inside | State::Between => return Ok(0),
            State::Broken => {
                self.state = State::Searching;
                if self.is_at_end(input)? {
                    self.begin_member();
                    return Ok(0);
                }
            }
            State::Searching | State::Ended => {}
        }
        let mut count = 0;
        while count < out.len() && (self.waiting() > 0 || self.refill(input)? > 0) {
            if self.state == State::Searching && self.begins_sound_member(input)? {
                self.begin_member();
                break;
            }
            count += self.pass(out.get_mut(count..).unwrap_or_default());
        }
        Ok(count)
    }

    /// Skips the rest of a damaged member that was read to its end. Returns whether another member begins there.
    fn is_at_end(&mut self, input: &mut Input) -> Result<bool, Failure> {
        let Some(behind) = self.at_end.take() else { return Ok(false) };
        self.gather(behind + MAGIC.len(), input)?;
        let end = self.from + behind;
        if end > self.to || !self.is_magic(end) {
            return Ok(false);
        }
        (self.from, self.stop) = (end, self.stop.max(end));
        Ok(self.waiting() > 0)
    }

    /// Copies waiting bytes as they are, up to the next place where a member may begin.
    fn pass(&mut self, out: &mut [u8]) -> usize {
        let rest = self.buffer.get(self.from + 1..self.to).unwrap_or_default();
        let next = 1 + memchr(MAGIC[0], rest).unwrap_or(rest.len());
        let count = copy(self.buffer.get(self.from..self.from + next).unwrap_or_default(), out);
        self.from += count;
        self.stop = self.stop.max(self.from);
        count
    }

    /// Returns whether the waiting bytes are a gzip member that begins with the header of a record, whose length has a
    /// valid CRC. The chance of random bytes is 2^-56.
    fn begins_sound_member(&mut self, input: &mut Input) -> Result<bool, Failure> {
        self.gather(MAGIC.len(), input)?;
        if !self.is_magic(self.from) {
            return Ok(false);
        }
        self.gather(MEMBER_HEAD, input)?;
        let mut head = [0; HEADER];
        let end = self.to.min(self.from + MEMBER_HEAD);
        let waiting = self.buffer.get(self.from..end).unwrap_or_default();
        let mut engine = Decompress::new_gzip(WINDOW_BITS);
        let inflates = engine.decompress(waiting, &mut head, FlushDecompress::None).is_ok();
        Ok(inflates && engine.total_out() == HEADER as u64 && length(&head).is_some())
    }

    /// Returns whether a gzip member begins at `at`, as far as the bytes are there.
    fn is_magic(&self, at: usize) -> bool {
        begins_with_magic(self.buffer.get(at..self.to).unwrap_or_default())
    }

    /// Returns the first place from `at` on where a gzip member may begin; the end of the waiting bytes if there is
    /// none.
    fn beginning(&self, at: usize) -> usize {
        let at = at.min(self.to);
        let bytes = self.buffer.get(at..self.to).unwrap_or_default();
        if self.compression != Compression::Gzip {
            return self.to;
        }
        memmem::find(bytes, &MAGIC).map_or_else(
            // The buffer may end within the magic number.
            || {
                (self.to.saturating_sub(MAGIC.len() - 1).max(at)..self.to)
                    .find(|at| self.is_magic(*at))
                    .unwrap_or(self.to)
            },
            |found| at + found,
        )
    }

    /// Starts the gzip member at the current place.
    fn begin_member(&mut self) {
        self.engine = Decompress::new_gzip(WINDOW_BITS);
        (self.state, self.at_end) = (State::Inside, None);
        self.stop = self.beginning(self.from + 1);
    }

    /// Starts the gzip member that follows, or ends the stream.
    fn next_member(&mut self, at_end: bool, input: &mut Input) -> Result<(), Failure> {
        if at_end {
            self.state = State::Ended;
            return Ok(());
        }
        self.gather(MAGIC.len(), input)?;
        if self.compression == Compression::Gzip && self.is_magic(self.from) {
            self.begin_member();
        } else {
            self.damage = Some(Damage::Trailing);
        }
        Ok(())
    }

    /// Reads until `bytes` bytes wait, or the file ends, so that a magic number across two reads is seen complete.
    fn gather(&mut self, bytes: usize, input: &mut Input) -> Result<(), Failure> {
        while self.waiting() < bytes && self.refill(input)? > 0 {}
        Ok(())
    }

    /// Reads more compressed bytes. Returns their number.
    fn refill(&mut self, input: &mut Input) -> Result<usize, Failure> {
        self.shift();
        let end = self.to;
        let count = input.read(self.buffer.get_mut(end..).unwrap_or_default())?;
        self.to += count;
        if self.stop == end {
            self.stop = self.beginning(end);
        }
        Ok(count)
    }

    /// Moves the waiting bytes, and those in doubt, to the front of the buffer.
    fn shift(&mut self) {
        let passed = self.doubts.front().map_or(self.from, |doubt| doubt.at);
        self.buffer.copy_within(passed..self.to, 0);
        (self.from, self.to, self.stop) = (self.from - passed, self.to - passed, self.stop - passed);
        self.doubts.iter_mut().for_each(|doubt| doubt.at -= passed);
    }
}

/// The result of inflating bytes as gzip members.
struct Tried {
    end: End,
    /// Number of complete members.
    whole: u64,
    /// Number of bytes that they take, with those of a damaged one up to its damage.
    taken: u64,
    /// The work, in compressed bytes.
    cost: u64,
}

/// The end of bytes that were inflated as gzip members.
enum End {
    /// All bytes belong to valid members, the last of which may be incomplete.
    Reached,
    /// Other bytes follow a complete member.
    Followed,
    /// A member does not inflate.
    Damaged,
}

/// Inflates the members at the start of `bytes`, one after the other.
fn try_members(bytes: &[u8]) -> Tried {
    let mut out = vec![0; STEP];
    let (mut whole, mut taken, mut cost) = (0, 0, 0);
    loop {
        let mut engine = Decompress::new_gzip(WINDOW_BITS);
        let ended = loop {
            let (before_in, before_out) = (engine.total_in(), engine.total_out());
            let waiting = bytes.get((taken + before_in) as usize..).unwrap_or_default();
            match engine.decompress(waiting, &mut out, FlushDecompress::None) {
                Ok(Status::StreamEnd) => break None,
                Ok(_) if engine.total_in() > before_in || engine.total_out() > before_out => {}
                Ok(_) => break Some(End::Reached),
                Err(_) => break Some(End::Damaged),
            }
        };
        taken += engine.total_in();
        cost += BEGINNING + engine.total_in() + engine.total_out() / INFLATED;
        whole += u64::from(ended.is_none());
        let rest = bytes.get(taken as usize..).unwrap_or_default();
        let end = match ended {
            None if rest.is_empty() => Some(End::Reached),
            None if !begins_with_magic(rest) => Some(End::Followed),
            ended => ended,
        };
        if let Some(end) = end {
            return Tried { end, whole, taken, cost };
        }
    }
}

/// Returns whether bytes begin with the magic number of gzip, or end within it.
fn begins_with_magic(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic)
}
