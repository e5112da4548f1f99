//! Undoing gzip and zlib, and finding the next gzip member where one is damaged.
//!
//! A member that was cut short takes the next one for its own: its decoder goes on in it, for bytes or for megabytes. So
//! the next is looked for on the way: where the bytes of a member begin another that begins with a record, either the one in
//! hand holds it as data, or it ends here. To hold it as it is, it has to be in a stored block, which hands on byte for byte
//! what it gets; where the decoder makes something else of it, the member in hand was cut short. Where it hands it on,
//! what is inflated from there on is held back until it is known whose it is.

use std::collections::VecDeque;

use flate2::{Decompress, FlushDecompress, Status};
use memchr::{memchr, memmem};
use tfarrow_codec::frame::{HEADER, length};

use crate::{
    compression::{Compression, Failure, Input, copy},
    error::Damage,
};

/// Compressed bytes that are read at once.
const INPUT_BYTES: usize = 512 << 10;
/// What a gzip member begins with: its magic number, and that it is deflated.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Bytes of a gzip member that are looked at to tell whether it begins with a record: more than a header of gzip mostly has,
/// and the codes of a first block.
const MEMBER_HEAD: usize = 1 << 10;
/// How long it may take to know whose a member is that stands in a stored block, in compressed bytes and in inflated ones: a
/// block that was cut short takes up to 64 KiB of what follows for its own, and what comes then may look right for a while.
const DOUBTFUL: usize = 128 << 10;
const HELD: usize = 1 << 20;
/// How many times as many bytes may be inflated again as there are, past [`HARMLESS`]; what it takes to begin with a member,
/// in these; and how many inflated ones take as long as one that is to be inflated.
const AGAIN: u64 = 8;
const BEGINNING: u64 = 1 << 10;
const INFLATED: u64 = 64;
/// Bytes that are inflated at once where they are held back, or only tried.
const STEP: usize = 64 << 10;
/// What is said of a gzip member that is wrong at its very end, and how many bytes of it are behind what is wrong.
const AT_END: [(&str, usize); 2] = [("incorrect data check", 4), ("incorrect length check", 0)];
/// What is said of bytes that do not inflate, in whichever way: that depends on how they are read.
const CORRUPT: &str = "it does not inflate";
/// What is wrong with a member in which the next begins.
const CUT_SHORT: &str = "it is cut short, and another member begins here";
/// The largest window that deflate has, as a power of two.
const WINDOW_BITS: u8 = 15;
/// Bytes that may come of any file, however short it is: as many as do no harm.
const HARMLESS: u64 = 64 << 20;

/// Undoes compression.
pub(crate) struct Inflate {
    engine: Decompress,
    compression: Compression,
    buffer: Vec<u8>,
    /// What of the buffer waits to be inflated.
    from: usize,
    to: usize,
    /// Where in the buffer, at the earliest, another member may begin: up to there bytes are the member's in hand.
    stop: usize,
    /// Members that the one in hand holds, or was cut short by.
    doubts: VecDeque<Doubt>,
    /// What was inflated behind the first of them; and before it, what is still to be handed on.
    held: Vec<u8>,
    /// Bytes that were inflated again, or what took as long.
    again: u64,
    state: State,
    /// What is wrong behind what was inflated; reported after that.
    damage: Option<Damage>,
    /// How many bytes of a damaged member are behind what is wrong, if that is at its very end.
    at_end: Option<usize>,
    /// How many times as long the bytes may become, and how long they are by now.
    ratio: u64,
    inflated: u64,
}

/// A member that begins in another: in a stored block, or before anything was inflated of that.
#[derive(Clone, Copy)]
struct Doubt {
    /// Where in the buffer.
    at: usize,
    /// How much of what is held comes before it.
    held: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Inside a gzip member, or the zlib stream.
    Inside,
    /// After one that is whole: the file may end, and in gzip the next may begin.
    Between,
    /// Behind damage to gzip, where another member may follow.
    Broken,
    /// While that is looked for.
    Searching,
    Ended,
}

impl Inflate {
    /// Of a file that begins with `stored`; `None` where nothing is compressed.
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

    /// Bytes that were read, and wait to be inflated.
    pub(crate) fn waiting(&self) -> usize {
        self.to - self.from
    }

    /// Whether there are compressed bytes that are yet to be inflated.
    pub(crate) fn goes_on(&self) -> bool {
        self.state == State::Inside
    }

    /// Reads into `out`, which is not empty, and returns how many bytes; none at the end.
    ///
    /// # Errors
    /// What the system says, or in which way the bytes are damaged.
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
            // A bomb is noticed before there is memory for more of it.
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
            // All that stands before a place where another member may begin is inflated, and handed on or held.
            if count == 0 && self.state == State::Inside && self.damage.is_none() {
                if at_end {
                    self.damage = Some(Damage::Truncated);
                } else if self.from == self.stop && self.waiting() > 0 {
                    self.meet(input)?;
                }
            }
        }
    }

    /// Hands on what is held and no longer in doubt.
    fn hand_on(&mut self, out: &mut [u8]) -> usize {
        let sure = self.doubts.front().map_or(self.held.len(), |doubt| doubt.held);
        let count = copy(self.held.get(..sure).unwrap_or_default(), out);
        self.held.drain(..count);
        self.doubts.iter_mut().for_each(|doubt| doubt.held -= count);
        count
    }

    /// Inflates what waits, as far as `out` has room and no other member may begin.
    fn step(&mut self, out: &mut [u8]) -> usize {
        let (before_in, before_out) = (self.engine.total_in(), self.engine.total_out());
        let waiting = self.buffer.get(self.from..self.stop).unwrap_or_default();
        let status = self.engine.decompress(waiting, out, FlushDecompress::None);
        let taken = (self.engine.total_in() - before_in) as usize;
        let count = (self.engine.total_out() - before_out) as usize;
        match status {
            Ok(Status::StreamEnd) => {
                self.state = State::Between;
                // Whatever it holds is its own.
                self.doubts.clear();
            }
            // The engine always goes on where it has input and room. Should it ever not, this is no endless loop.
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

    /// Inflates what waits, and holds it back.
    fn hold(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held);
        let before = held.len();
        held.resize(before + STEP, 0);
        let count = self.step(held.get_mut(before..).unwrap_or_default());
        held.truncate(before + count);
        self.held = held;
        // What the member in hand has come so far behind is its own.
        let is_far = |doubt: &Doubt| self.from - doubt.at > DOUBTFUL || self.held.len() - doubt.held > HELD;
        let far = self.doubts.iter().take_while(|doubt| is_far(doubt)).count();
        self.doubts.drain(..far);
        count
    }

    /// Looks whether a member begins where it may, and whose it is. The decoder, which has handed on all that it had, gets
    /// the first byte of it: a stored block hands it on.
    fn meet(&mut self, input: &mut Input) -> Result<(), Failure> {
        if self.begins_sound_member(input)? {
            let (at, is_begun) = (self.from, self.engine.total_out() > 0);
            let mut byte = [0];
            self.stop = at + 1;
            let count = self.step(&mut byte);
            if is_begun && self.state == State::Inside && (count == 0 || byte[0] != MAGIC[0]) {
                // In the place of whatever the decoder says of bytes that are none of its.
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

    /// Decides whose the members are that are in doubt, where the one in hand is damaged: the first that may be the next is.
    fn decide(&mut self, input: &Input) {
        let used = input.bytes - self.waiting() as u64;
        // Members that are none, but look so, could keep a reader busy for long.
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

    /// Whether a member may be the next, and no data of the one in hand: nothing of that follows it.
    fn may_be_next(&mut self, doubt: Doubt) -> bool {
        let (held, is_cut) = (doubt.held, self.damage == Some(Damage::Truncated));
        let stored = try_members(self.buffer.get(doubt.at..self.from).unwrap_or_default());
        self.again += stored.cost;
        match stored.end {
            End::Followed => false,
            // It goes on as far as the one in hand. Where the file ends with both, that is still being written.
            End::Reached => !is_cut || stored.whole > 0,
            // It is damaged itself; or what holds it is, and that was then not read to its end.
            End::Damaged if is_cut || self.at_end.is_some() => false,
            // What the member in hand holds comes to more as what that makes of it: it may stand in several blocks.
            End::Damaged => {
                let inflated = try_members(self.held.get(held..).unwrap_or_default());
                self.again += inflated.cost;
                inflated.whole <= stored.whole && inflated.taken <= stored.taken
            }
        }
    }

    /// Reads bytes behind damage as they are stored, up to the next member that begins with a record, or, behind one that was
    /// read to its end, up to the next.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn read_stored(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Failure> {
        match self.state {
            // What follows inflates.
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

    /// Goes on behind a damaged member that has been read to its end, and tells whether another begins there.
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

    /// Copies what waits as it is, up to where the next member may begin.
    fn pass(&mut self, out: &mut [u8]) -> usize {
        let rest = self.buffer.get(self.from + 1..self.to).unwrap_or_default();
        let next = 1 + memchr(MAGIC[0], rest).unwrap_or(rest.len());
        let count = copy(self.buffer.get(self.from..self.from + next).unwrap_or_default(), out);
        self.from += count;
        self.stop = self.stop.max(self.from);
        count
    }

    /// Whether what waits is a gzip member that begins with the header of a record. Of bytes that are none, one place in
    /// 2^56 looks like that.
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

    /// Whether one begins in the buffer here.
    fn is_magic(&self, at: usize) -> bool {
        begins_with_magic(self.buffer.get(at..self.to).unwrap_or_default())
    }

    /// Where a gzip member may begin, from here on; where none does, the end of what waits.
    fn beginning(&self, at: usize) -> usize {
        let at = at.min(self.to);
        let bytes = self.buffer.get(at..self.to).unwrap_or_default();
        if self.compression != Compression::Gzip {
            return self.to;
        }
        memmem::find(bytes, &MAGIC).map_or_else(
            // The rest of one may come yet.
            || {
                (self.to.saturating_sub(MAGIC.len() - 1).max(at)..self.to)
                    .find(|at| self.is_magic(*at))
                    .unwrap_or(self.to)
            },
            |found| at + found,
        )
    }

    fn begin_member(&mut self) {
        self.engine = Decompress::new_gzip(WINDOW_BITS);
        (self.state, self.at_end) = (State::Inside, None);
        self.stop = self.beginning(self.from + 1);
    }

    /// Begins the gzip member that follows, or ends.
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

    /// Sees to it that so many bytes wait, where there are as many: what two reads share is looked at whole.
    fn gather(&mut self, bytes: usize, input: &mut Input) -> Result<(), Failure> {
        while self.waiting() < bytes && self.refill(input)? > 0 {}
        Ok(())
    }

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

    /// Makes room behind what waits, and what is in doubt.
    fn shift(&mut self) {
        let passed = self.doubts.front().map_or(self.from, |doubt| doubt.at);
        self.buffer.copy_within(passed..self.to, 0);
        (self.from, self.to, self.stop) = (self.from - passed, self.to - passed, self.stop - passed);
        self.doubts.iter_mut().for_each(|doubt| doubt.at -= passed);
    }
}

/// What comes of bytes that begin with a gzip member.
struct Tried {
    end: End,
    /// Members that are whole.
    whole: u64,
    /// How many of the bytes they take, together with what could be inflated of one that is damaged.
    taken: u64,
    /// How long it took to know.
    cost: u64,
}

enum End {
    /// All of the bytes are members' that are sound, as far as they go.
    Reached,
    /// Something else follows a member that is whole.
    Followed,
    /// A member does not inflate.
    Damaged,
}

/// Inflates the members that stand in these bytes, one behind the other.
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

/// Whether a gzip member begins here, or the bytes end, as far as they are there.
fn begins_with_magic(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic)
}
