//! Pieces of a plain shard that lie in memory, each read by whoever had time, cut into whole records in the shard's
//! order.

use arrow_buffer::Buffer;

use crate::{
    Limits, Records, Result,
    frame::{Framer, HEADER, Span},
};

/// Cuts the pieces of one shard, one after the other.
///
/// A record belongs to the piece that its first byte lies in, which is made longer where the record ends behind it.
///
/// ```
/// use tfarrow_codec::{Cutter, frame};
/// # fn main() -> tfarrow_codec::Result<()> {
/// let mut shard = Vec::new();
/// frame::write(b"one", &mut shard);
/// frame::write(b"two", &mut shard);
/// let mut cutter = Cutter::default();
/// let mut cut = cutter.begin();
/// // 19 bytes are the first record; of the second, 17 lack.
/// assert_eq!(cutter.cut(&shard[..21], 0, &mut cut)?, 10);
/// assert_eq!(cutter.cut(&shard[..31], 0, &mut cut)?, 7);
/// assert_eq!(cutter.cut(&shard, 0, &mut cut)?, 0);
/// let records = cut.records(shard, 0);
/// assert_eq!(records.iter().collect::<Vec<_>>(), [b"one", b"two"]);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Cutter {
    framer: Framer,
}

/// What was cut from one piece.
#[derive(Debug)]
pub struct Cut {
    spans: Vec<Span>,
    first: u64,
}

impl Cutter {
    /// Cuts a shard of records no longer than `limits` say.
    pub fn new(limits: Limits) -> Self {
        Self { framer: Framer::new(limits) }
    }

    /// The offset in the shard of the next record.
    pub fn offset(&self) -> u64 {
        self.framer.offset
    }

    /// The cut of the next piece, with nothing in it yet.
    pub fn begin(&self) -> Cut {
        Cut { spans: Vec::new(), first: self.framer.record }
    }

    /// Cuts what of `piece`, which lies at the offset `at` of the shard, was not cut before. Returns how many bytes the
    /// piece has to be made longer by to hold the rest of its last record or, where that is not known yet, of its header.
    ///
    /// # Errors
    /// What [`frame`](crate::frame) says of a header. The records before it are in `cut`.
    pub fn cut(&mut self, piece: &[u8], at: u64, cut: &mut Cut) -> Result<usize> {
        let (start, bytes) = self.uncut(piece, at);
        let known = cut.spans.len();
        let taken = self.framer.cut(bytes, &mut cut.spans);
        cut.spans.iter_mut().skip(known).for_each(|span| span.start += start);
        let rest = bytes.get(taken?..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(0);
        }
        Ok(self.framer.need(rest)?.unwrap_or(HEADER).saturating_sub(rest.len()))
    }

    /// Declares that the shard ends in the record at [`offset`](Self::offset), of which `piece`, which lies at `at`, may
    /// hold the header. The shard has `size` bytes.
    ///
    /// # Errors
    /// Always: that the shard is cut off.
    pub fn cut_off(&self, piece: &[u8], at: u64, size: u64) -> Result<()> {
        let (_, bytes) = self.uncut(piece, at);
        self.framer.cut_off(bytes, size.saturating_sub(self.framer.offset))
    }

    /// What of `piece` was not cut yet, and where in it that begins.
    fn uncut<'p>(&self, piece: &'p [u8], at: u64) -> (usize, &'p [u8]) {
        let start = usize::try_from(self.framer.offset.saturating_sub(at)).unwrap_or(usize::MAX);
        (start, piece.get(start..).unwrap_or_default())
    }
}

impl Cut {
    /// Whether no record was cut.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The records, which lie in `piece`, as long as it has become.
    pub fn records(self, piece: Vec<u8>, at: u64) -> Records {
        Records::new(Buffer::from_vec(piece), self.spans, self.first, at)
    }
}
