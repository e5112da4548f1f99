//! How a shard is compressed: told by its bytes, undone while it is read, done while it is written.
//!
//! A file that begins with a length whose CRC holds is plain TFRecord, whatever magic number these bytes also are: a
//! first record of 35,615 bytes begins like gzip, one of 40,056 like zlib.

use std::{fmt, io, io::Read};

use flate2::{Decompress, FlushDecompress, Status};
use tfarrow_codec::frame::{HEADER, length};

use crate::{error::Damage, names::strip_ending};

/// How a shard is compressed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As gzip does (RFC 1952), in one member or several.
    Gzip,
    /// As zlib does (RFC 1950).
    Zlib,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Gzip, Self::Zlib];

    /// What the names of compressed files end in, after the last dot.
    pub const ENDINGS: [(&str, Self); 4] =
        [("gz", Self::Gzip), ("gzip", Self::Gzip), ("zz", Self::Zlib), ("zlib", Self::Zlib)];

    /// The name that options use.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
        }
    }

    /// The compression of this name, if any.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }

    /// What the names of such files end in, dot and all.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zlib => ".zlib",
        }
    }

    /// The compression that a file's name asks for, if any, and the name without it.
    ///
    /// ```
    /// use tfarrow_dataset::Compression;
    /// assert_eq!(Compression::of_name("a.tfrecord.GZ"), ("a.tfrecord", Some(Compression::Gzip)));
    /// assert_eq!(Compression::of_name("a.tfrecord"), ("a.tfrecord", None));
    /// ```
    pub fn of_name(name: &str) -> (&str, Option<Self>) {
        let (stem, compression) = Self::of_name_bytes(name.as_bytes());
        (name.get(..stem.len()).unwrap_or(name), compression)
    }

    /// As [`of_name`](Self::of_name), for names that need not be text.
    pub(crate) fn of_name_bytes(name: &[u8]) -> (&[u8], Option<Self>) {
        let dotted = |ending| strip_ending(strip_ending(name, ending)?, ".");
        let known = Self::ENDINGS.iter().find_map(|(ending, compression)| Some((dotted(ending)?, *compression)));
        known.map_or((name, None), |(stem, compression)| (stem, Some(compression)))
    }

    /// What a file that begins with `head` is compressed with.
    pub fn of(head: &[u8]) -> Self {
        if length(head).is_some() {
            return Self::None;
        }
        match *head {
            [0x1f, 0x8b] | [0x1f, 0x8b, 0x08, ..] => Self::Gzip,
            // The compression method is 8, the window at most 32 KiB, there is no preset dictionary, and the two bytes
            // are a multiple of 31.
            [cmf, flg, ..]
                if cmf & 0x0f == 8 && cmf >> 4 <= 7 && flg & 0x20 == 0 && u16::from_be_bytes([cmf, flg]) % 31 == 0 =>
            {
                Self::Zlib
            }
            _ => Self::None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a stream cannot be read on.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Damage(Damage),
}

/// Compressed bytes that are read at once.
const INPUT_BYTES: usize = 512 << 10;
/// What a gzip member begins with: its magic number, and that it is deflated.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Bytes of a gzip member that are looked at to tell whether it begins with a record: more than a header of gzip has, and
/// the codes of a first block.
const MEMBER_HEAD: usize = 1 << 10;
/// How far before the place where bytes do not inflate the next member is looked for: a stored block that was cut short
/// takes up to 64 KiB of what follows for its own, and what comes then may look right for a while.
const LOOK_BACK: usize = 128 << 10;
/// How many times as many bytes may be inflated again as there are.
const AGAIN: u64 = 8;
/// What is said of a gzip member that is wrong at what is, or seems to be, its very end.
const AT_END: [&str; 2] = ["incorrect data check", "incorrect length check"];
/// The largest window that deflate has, as a power of two.
const WINDOW_BITS: u8 = 15;
/// Bytes of a file that are looked at to tell what it is.
const HEAD_BYTES: usize = 512;

/// The bytes of a shard, inflated.
pub(crate) struct Stream {
    input: Input,
    inflate: Option<Inflate>,
    compression: Compression,
    stored: Vec<u8>,
    /// The first bytes of the payload, which were read to tell what it is, and how many of them were handed on.
    head: Vec<u8>,
    given: usize,
    /// What went wrong while the head was inflated; reported once what there is of it is handed on.
    failure: Option<Failure>,
}

/// The bytes of a shard as they are stored.
struct Input {
    source: Box<dyn Read + Send>,
    bytes: u64,
}

impl Input {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.source.read(out) {
                Ok(count) => {
                    self.bytes += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Io(error)),
            }
        }
    }
}

impl Stream {
    /// Reads as much of `source` as it takes to tell what it is.
    ///
    /// # Errors
    /// What the system says. Damage is not reported here, but by [`read`](Self::read).
    pub(crate) fn new(source: Box<dyn Read + Send>, inflate_ratio: usize) -> Result<Self, Failure> {
        let mut input = Input { source, bytes: 0 };
        let mut stored = vec![0; HEAD_BYTES];
        let count = fill(&mut stored, HEADER, |out| input.read(out))?;
        stored.truncate(count);
        let compression = Compression::of(&stored);
        let inflate = Inflate::new(compression, &stored, inflate_ratio);
        let head = stored.clone();
        let mut stream = Self { input, inflate, compression, stored, head, given: 0, failure: None };
        if stream.inflate.is_some() {
            stream.inflate_head();
        }
        Ok(stream)
    }

    fn inflate_head(&mut self) {
        let mut head = vec![0; HEAD_BYTES];
        let mut filled = 0;
        while filled < HEADER {
            match self.read_on(head.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        head.truncate(filled);
        self.head = head;
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// The first bytes of the payload: all of it, or at least a header's length.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The first bytes as they are stored.
    pub(crate) fn stored_head(&self) -> &[u8] {
        &self.stored
    }

    /// Whether something went wrong while the head was inflated.
    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether what went wrong is that these bytes do not inflate.
    pub(crate) fn corrupt(&self) -> bool {
        matches!(self.failure, Some(Failure::Damage(Damage::Corrupt(_))))
    }

    /// Bytes read of the shard as it is stored, less those that wait to be inflated.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let waiting = self.inflate.as_ref().map_or(0, Inflate::waiting);
        self.input.bytes - waiting as u64
    }

    /// The same, where those that are tried a second time behind damage are not counted twice: never less than before.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.stored_bytes() + self.inflate.as_ref().map_or(0, |inflate| inflate.tried as u64)
    }

    /// Reads into `out`, which is not empty, and returns how many bytes; none at the end.
    ///
    /// # Errors
    /// What the system says, or in which way the compressed bytes are damaged. What was inflated before comes first.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        let head = self.head.get(self.given..).unwrap_or_default();
        if !head.is_empty() {
            let count = copy(head, out);
            self.given += count;
            return Ok(count);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.read_on(out)
    }

    /// Reads bytes behind the place where they no longer inflate, as they are stored, up to the next gzip member that begins
    /// with a record: from there on they [inflate](Self::inflates) again.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn read_stored(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.inflate.as_mut().map_or(Ok(0), |inflate| inflate.read_stored(&mut self.input, out))
    }

    /// Whether bytes are inflated that a damaged member has taken for its own.
    pub(crate) fn tries_again(&self) -> bool {
        self.inflate.as_ref().is_some_and(|inflate| inflate.tried > 0)
    }

    /// Whether there are compressed bytes that are yet to be inflated.
    pub(crate) fn inflates(&self) -> bool {
        self.inflate.as_ref().is_some_and(|inflate| inflate.state == State::Inside)
    }

    fn read_on(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        match &mut self.inflate {
            None => self.input.read(out),
            Some(inflate) => inflate.read(&mut self.input, out),
        }
    }
}

/// Undoes compression.
struct Inflate {
    engine: Decompress,
    compression: Compression,
    buffer: Vec<u8>,
    /// What of the buffer waits to be inflated.
    from: usize,
    to: usize,
    /// Where in the buffer, at the earliest, a member may begin that follows the one in hand.
    behind: usize,
    /// Whether the damaged member seems to have been read to its end.
    at_end: bool,
    /// How many of the bytes that wait were inflated before, as what they are not; and how many were in all.
    tried: usize,
    again: u64,
    state: State,
    /// Damage found in the same step as the last bytes that could be inflated; reported after these.
    damage: Option<Damage>,
    /// How many times as long the bytes may become, and how long they are by now.
    ratio: u64,
    inflated: u64,
}

/// Bytes that may come of any file, however short it is: as many as do no harm.
const HARMLESS: u64 = 64 << 20;

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
    fn new(compression: Compression, stored: &[u8], ratio: usize) -> Option<Self> {
        let engine = engine(compression)?;
        let mut buffer = vec![0; INPUT_BYTES];
        let to = copy(stored, &mut buffer);
        let state = State::Inside;
        let (ratio, inflated) = (ratio as u64, 0);
        Some(Self {
            engine,
            compression,
            buffer,
            from: 0,
            to,
            behind: 1,
            at_end: false,
            tried: 0,
            again: 0,
            state,
            damage: None,
            ratio,
            inflated,
        })
    }

    fn waiting(&self) -> usize {
        self.to - self.from
    }

    fn read_stored(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Failure> {
        match self.state {
            // What follows inflates.
            State::Inside | State::Between => return Ok(0),
            State::Broken => {
                if !self.is_at_end(input)? {
                    self.look_back(input.bytes);
                }
                self.state = State::Searching;
            }
            State::Searching | State::Ended => {}
        }
        let mut count = 0;
        while count < out.len() && (self.waiting() > 0 || self.refill(input)? > 0) {
            // What was tried once is not tried again, so that this ends.
            let may_begin = self.state == State::Searching && self.from >= self.behind;
            if may_begin && self.begins_sound_member(input)? {
                self.begin_member();
                break;
            }
            count += self.pass(out.get_mut(count..).unwrap_or_default());
        }
        Ok(count)
    }

    /// Whether the damaged member has been read to its end: it is said to be wrong there, and the next begins, or nothing.
    fn is_at_end(&mut self, input: &mut Input) -> Result<bool, Failure> {
        self.gather(MAGIC.len(), input)?;
        Ok(self.at_end && (self.waiting() == 0 || self.has_magic()))
    }

    /// Goes back as far as the beginning of the next member may have been taken for a part of the damaged one.
    fn look_back(&mut self, read: u64) {
        let back = self.from.saturating_sub(self.behind).min(LOOK_BACK);
        // Members that are none, but look so, could keep a reader busy for long.
        if self.again + back as u64 <= read.saturating_mul(AGAIN) {
            self.again += back as u64;
            self.tried += back;
            self.from -= back;
        }
    }

    /// Copies what waits as it is, up to where the next member may begin.
    fn pass(&mut self, out: &mut [u8]) -> usize {
        let rest = self.buffer.get(self.from + 1..self.to).unwrap_or_default();
        let next = 1 + rest.iter().position(|byte| *byte == MAGIC[0]).unwrap_or(rest.len());
        let tried = self.tried.min(next);
        let count = copy(self.buffer.get(self.from + tried..self.from + next).unwrap_or_default(), out);
        self.tried -= tried;
        self.from += tried + count;
        count
    }

    /// Whether what waits is a gzip member that begins with the header of a record. Of bytes that are none, one place in
    /// 2^56 looks like that.
    fn begins_sound_member(&mut self, input: &mut Input) -> Result<bool, Failure> {
        self.gather(MAGIC.len(), input)?;
        if !self.has_magic() {
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

    /// Whether what waits begins as a gzip member does, as far as it is there.
    fn has_magic(&self) -> bool {
        let waiting = self.buffer.get(self.from..self.to).unwrap_or_default();
        !waiting.is_empty() && waiting.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic)
    }

    fn begin_member(&mut self) {
        self.engine = Decompress::new_gzip(WINDOW_BITS);
        self.state = State::Inside;
        (self.behind, self.at_end) = (self.from + 1, false);
    }

    fn read(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Failure> {
        loop {
            if let Some(damage) = self.damage.take() {
                return Err(self.broken(damage));
            }
            if !matches!(self.state, State::Inside | State::Between) {
                return Ok(0);
            }
            let at_end = self.waiting() == 0 && self.refill(input)? == 0;
            if self.state == State::Between {
                self.next_member(at_end, input)?;
                continue;
            }
            let count = self.step(out);
            self.inflated += count as u64;
            let used = input.bytes - self.waiting() as u64;
            if self.inflated > HARMLESS && self.inflated / self.ratio.max(1) > used {
                self.state = State::Ended;
                return Err(Failure::Damage(Damage::Bomb { limit: self.ratio }));
            }
            if count > 0 {
                return Ok(count);
            }
            if at_end && self.state == State::Inside {
                self.damage.get_or_insert(Damage::Truncated);
            }
        }
    }

    /// Notes that nothing inflates here any more.
    fn broken(&mut self, damage: Damage) -> Failure {
        self.state = if self.compression == Compression::Gzip { State::Broken } else { State::Ended };
        Failure::Damage(damage)
    }

    fn refill(&mut self, input: &mut Input) -> Result<usize, Failure> {
        self.shift();
        let count = input.read(self.buffer.get_mut(self.to..).unwrap_or_default())?;
        self.to += count;
        Ok(count)
    }

    /// Makes room behind what waits, and what may be looked back at.
    fn shift(&mut self) {
        let passed = self.from.saturating_sub(LOOK_BACK);
        self.buffer.copy_within(passed..self.to, 0);
        (self.from, self.to) = (self.from - passed, self.to - passed);
        self.behind = self.behind.saturating_sub(passed);
    }

    /// Inflates what waits, as far as `out` has room.
    fn step(&mut self, out: &mut [u8]) -> usize {
        let (before_in, before_out) = (self.engine.total_in(), self.engine.total_out());
        let waiting = self.buffer.get(self.from..self.to).unwrap_or_default();
        let status = self.engine.decompress(waiting, out, FlushDecompress::None);
        let taken = (self.engine.total_in() - before_in) as usize;
        let count = (self.engine.total_out() - before_out) as usize;
        match status {
            Ok(Status::StreamEnd) => self.state = State::Between,
            // The engine always goes on where it has input and room. Should it ever not, this is no endless loop.
            Ok(Status::Ok | Status::BufError) if taken == 0 && count == 0 && !waiting.is_empty() => {
                self.damage = Some(Damage::Corrupt("it does not go on".to_owned()));
            }
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => {
                let why = error.message().unwrap_or("it does not inflate");
                self.at_end = AT_END.contains(&why);
                self.damage = Some(Damage::Corrupt(why.to_owned()));
            }
        }
        self.from = (self.from + taken).min(self.to);
        self.tried = self.tried.saturating_sub(taken);
        count
    }

    /// Begins the gzip member that follows, or ends.
    fn next_member(&mut self, at_end: bool, input: &mut Input) -> Result<(), Failure> {
        if at_end {
            self.state = State::Ended;
            return Ok(());
        }
        self.gather(MAGIC.len(), input)?;
        if self.compression == Compression::Gzip && self.has_magic() {
            self.begin_member();
            Ok(())
        } else {
            // The member before was whole.
            self.behind = self.from;
            Err(self.broken(Damage::Trailing))
        }
    }

    /// Sees to it that so many bytes wait, where there are as many: what two reads share is looked at whole.
    fn gather(&mut self, bytes: usize, input: &mut Input) -> Result<(), Failure> {
        while self.waiting() < bytes && self.refill(input)? > 0 {}
        Ok(())
    }
}

fn engine(compression: Compression) -> Option<Decompress> {
    match compression {
        Compression::None => None,
        Compression::Gzip => Some(Decompress::new_gzip(WINDOW_BITS)),
        Compression::Zlib => Some(Decompress::new(true)),
    }
}

/// Reads until `out` holds at least `enough` bytes or there are no more, and returns how many it holds.
fn fill(
    out: &mut [u8],
    enough: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Failure>,
) -> Result<usize, Failure> {
    let mut filled = 0;
    while filled < enough {
        match read(out.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}
