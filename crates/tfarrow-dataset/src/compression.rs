//! How a shard is compressed: told by its bytes, undone while it is read, done while it is written.
//!
//! A file that begins with a length whose CRC holds is plain TFRecord, whatever magic number these bytes also are: a
//! first record of 35,615 bytes begins like gzip, one of 40,056 like zlib.

use std::{io, io::Read, mem};

use tfarrow_codec::{
    FrameBuffer, Limits, OnError, Segment,
    frame::{FOOTER, HEADER, length},
    named_values,
};

use crate::{error::Damage, inflate::Inflate, looks, names::strip_ending};

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

named_values!(Compression {
    None = "none": "Do not compress",
    Gzip = "gzip": "gzip (RFC 1952)",
    Zlib = "zlib": "zlib (RFC 1950)",
});

impl Compression {
    /// What the names of compressed files end in, after the last dot.
    pub const ENDINGS: [(&str, Self); 4] =
        [("gz", Self::Gzip), ("gzip", Self::Gzip), ("zz", Self::Zlib), ("zlib", Self::Zlib)];

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

/// Why a stream cannot be read on.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Damage(Damage),
}

/// Bytes of a file that are looked at to tell what it is.
const HEAD_BYTES: usize = 512;
/// Bytes in which a record is searched for where the first bytes of a file are those of another format.
const SEARCHED: usize = 4 << 20;

/// The bytes of a shard, inflated.
pub(crate) struct Stream {
    input: Input,
    inflate: Option<Inflate>,
    compression: Compression,
    stored: Vec<u8>,
    /// The first bytes of the payload, which were read to tell what it is, and how many of them were handed on.
    head: Vec<u8>,
    given: usize,
    /// How many stored bytes were used at most: those behind damage may be tried again.
    used: u64,
    /// What went wrong while the head was inflated; reported once what there is of it is handed on.
    failure: Option<Failure>,
    /// Whether the bytes hold a record as they are stored, though they begin like another format.
    holds_record: bool,
}

/// The bytes of a shard as they are stored.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    /// The first bytes, as long as it is not settled what they are; and those that are read once more.
    kept: Option<Vec<u8>>,
    again: io::Cursor<Vec<u8>>,
    /// How many were read.
    pub(crate) bytes: u64,
}

impl Input {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self { source, kept: Some(Vec::new()), again: io::Cursor::default(), bytes: 0 }
    }

    /// Reads into `out`, and returns how many bytes; none at the end.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.read_once(out) {
                Ok(count) => {
                    self.bytes += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Io(error)),
            }
        }
    }

    fn read_once(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.again.read(out)?;
        if count > 0 {
            return Ok(count);
        }
        let count = self.source.read(out)?;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(out.get(..count).unwrap_or_default());
        }
        // So long a beginning is not searched.
        self.kept.take_if(|kept| kept.len() > SEARCHED);
        Ok(count)
    }
}

impl Stream {
    /// Reads as much of `source` as it takes to tell what it is.
    ///
    /// # Errors
    /// What the system says. Damage is not reported here, but by [`read`](Self::read).
    pub(crate) fn new(source: Box<dyn Read + Send>, inflate_ratio: usize) -> Result<Self, Failure> {
        let mut input = Input::new(source);
        let mut stored = vec![0; HEAD_BYTES];
        let count = fill(&mut stored, HEADER, |out| input.read(out))?;
        stored.truncate(count);
        let compression = Compression::of(&stored);
        Ok(Self::of(input, stored, compression, inflate_ratio))
    }

    /// Of bytes that begin with `stored`, which was read off `input`.
    fn of(input: Input, stored: Vec<u8>, compression: Compression, inflate_ratio: usize) -> Self {
        let inflate = Inflate::new(compression, &stored, inflate_ratio);
        let head = stored.clone();
        let (given, used, failure, holds_record) = (0, 0, None, false);
        let mut stream = Self { input, inflate, compression, stored, head, given, used, failure, holds_record };
        if stream.inflate.is_some() {
            stream.inflate_head();
        }
        stream
    }

    /// Settles whether bytes that begin like another format, or like a compressed file that holds no record, are a plain
    /// shard whose first length is corrupt: a length of 40,056 begins like zlib, one of 640 like a Python pickle.
    /// Nothing may have been [read](Self::read) before.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn settle(&mut self, inflate_ratio: usize) -> Result<(), Failure> {
        let Some(mut kept) = self.input.kept.take() else { return Ok(()) };
        let is_sound = length(&self.head).is_some() || self.head.is_empty() && !self.failed();
        let is_other = self.compression != Compression::None || looks::known(&self.stored).is_some();
        if is_sound || !is_other || looks::is_archive(&self.stored) {
            return Ok(());
        }
        let (Input { mut source, .. }, room) =
            (mem::replace(&mut self.input, Input::new(Box::new(io::empty()))), SEARCHED);
        source.by_ref().take(room.saturating_sub(kept.len()) as u64).read_to_end(&mut kept).map_err(Failure::Io)?;
        let holds_record = match self.compression {
            // Its blocks may hold records as they are.
            Compression::Gzip => is_followed_by_header(&kept),
            Compression::None | Compression::Zlib => holds_record(&kept),
        };
        let mut again = io::Cursor::new(kept);
        again.set_position(self.stored.len() as u64);
        let input = Input { source, kept: None, again, bytes: self.stored.len() as u64 };
        let compression = if holds_record { Compression::None } else { self.compression };
        *self = Self { holds_record, ..Self::of(input, mem::take(&mut self.stored), compression, inflate_ratio) };
        Ok(())
    }

    /// Whether [`settle`](Self::settle) has found a record in bytes that begin like another format.
    pub(crate) fn holds_record(&self) -> bool {
        self.holds_record
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

    /// The same, and never less than before.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.max(self.stored_bytes())
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

    /// Reads bytes behind the place where they no longer inflate, as they are stored, up to the next gzip member: from there
    /// on they [inflate](Self::inflates) again.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn read_stored(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.inflate.as_mut().map_or(Ok(0), |inflate| inflate.read_stored(&mut self.input, out))
    }

    /// Whether there are compressed bytes that are yet to be inflated.
    pub(crate) fn inflates(&self) -> bool {
        self.inflate.as_ref().is_some_and(Inflate::goes_on)
    }

    fn read_on(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.used = self.used_bytes();
        match &mut self.inflate {
            None => self.input.read(out),
            Some(inflate) => inflate.read(&mut self.input, out),
        }
    }
}

/// Returns `true` if these bytes of a plain stream contain a record whose CRCs match.
pub(crate) fn holds_record(bytes: &[u8]) -> bool {
    let buffer = FrameBuffer::new(bytes.len(), Limits::default()).with_on_error(OnError::Skip);
    buffer.segments(bytes).any(|segment| matches!(segment, Ok(Segment::Records(_))))
}

/// Whether a frame follows the one that these bytes begin with, if its length is right and only the length's CRC is not.
fn is_followed_by_header(bytes: &[u8]) -> bool {
    let next = || {
        let data = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        length(bytes.get(data.checked_add(HEADER + FOOTER)?..)?)
    };
    next().is_some()
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

/// Copies as much as there is, and there is room for; returns how much.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}
