//! Complete records that lie in one chunk of memory.

use std::ops::Range;

use arrow_buffer::Buffer;

use super::{FOOTER, Framer, HEADER, SharedFeatures, Span, crc::masked, framer::too_long, write};
use crate::{Error, ErrorKind, Limits, MOST_RECORD_BYTES, Position, Result, VerifyCrc, slices};

/// Complete records of a stream, which lie one after the other in one reference-counted chunk of
/// memory. A unit of work that is cheap to clone, to split and to send to another thread.
///
/// [`FrameBuffer`](super::FrameBuffer) and [`frame::records`](fn@super::records) make them of
/// TFRecord bytes, and [`from_payloads`](Self::from_payloads) of payloads from anywhere else.
#[derive(Clone, Debug)]
pub struct Records {
    /// The memory that the frames are in.
    chunk: Buffer,
    /// The payload of each record, as a range of the chunk.
    spans: Vec<Span>,
    /// Number of the first record in its shard.
    first: u64,
    /// Offset of the chunk's first byte in its shard; `None` for records that were encoded from
    /// rows.
    offset: Option<u64>,
    /// Features that each record has besides its own.
    shared: SharedFeatures,
}

/// Records that fill less than this fraction of their chunk are copied, so that the chunk is
/// released.
pub(crate) const SPARSE: usize = 4;

impl Records {
    /// Creates the records at `spans` of `chunk`, which lies at `offset` in its shard. `first` is
    /// the number of the first record. Each span has to lie in the chunk together with its header
    /// and footer, in order and without gaps.
    pub fn new(chunk: Buffer, spans: Vec<Span>, first: u64, offset: u64) -> Self {
        debug_assert!(
            spans
                .last()
                .is_none_or(|last| last.frame().end <= chunk.len()),
            "a record ends after its chunk"
        );
        debug_assert!(
            spans
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.frame().end == b.frame().start))
        );
        Self {
            chunk,
            spans,
            first,
            offset: Some(offset),
            shared: SharedFeatures::default(),
        }
    }

    /// Creates records of payloads that have no frames, such as Kafka messages, elements of a Beam
    /// collection or records of another container format.
    ///
    /// The payloads are copied once, and get the frames that [`frame::write`](super::write())
    /// makes. The first record has the number 0 and the offset 0.
    ///
    /// ```
    /// use arrow_array::{cast::AsArray, types::Int64Type};
    /// use tfarrow_codec::{ReaderBuilder, Layout, Records, Summary, VerifyCrc};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// // Two `tf.Example` messages, {"x": 1} and {"x": 2}.
    /// let example = |x: u8| [10, 12, 10, 10, 10, 1, b'x', 18, 5, 26, 3, 10, 1, x];
    /// let messages = [example(1), example(2)];
    /// let records = Records::from_payloads(messages.iter().map(|message| &message[..]))?;
    /// let mut summary = Summary::new(0);
    /// summary.observe(&records, VerifyCrc::Never)?;
    /// let schema = summary.schema(Layout::Auto, None)?;
    /// let batch = ReaderBuilder::new(schema).build_batch_decoder()?.decode(&records)?;
    /// assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the record's number if a payload is longer than
    /// [`MOST_RECORD_BYTES`]. Decoders reject records of more than 4 GiB in total.
    pub fn from_payloads<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Result<Self> {
        let mut frames = Vec::new();
        let mut spans = Vec::new();
        for payload in payloads {
            if payload.len() > MOST_RECORD_BYTES {
                let kind = too_long(payload.len() as u64, MOST_RECORD_BYTES);
                return Err(Error::at(kind, spans.len() as u64, frames.len() as u64));
            }
            spans.push(Span {
                start: frames.len() + HEADER,
                len: payload.len(),
            });
            write(payload, &mut frames);
        }
        Ok(Self::new(Buffer::from_vec(frames), spans, 0, 0))
    }

    /// Creates records of bytes that are complete frames, such as an [`Encoder`](crate::Encoder)
    /// writes, without a copy. The first record has the number 0 and the offset 0.
    ///
    /// ```
    /// use tfarrow_codec::{Limits, Records, frame};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let mut frames = Vec::new();
    /// frame::write(b"one", &mut frames);
    /// assert_eq!(Records::from_frames(frames, Limits::default())?.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A length that is corrupt or exceeds [`Limits::record_bytes`], and bytes that end inside a
    /// frame.
    pub fn from_frames(frames: impl Into<Buffer>, limits: Limits) -> Result<Self> {
        let chunk = frames.into();
        let mut framer = Framer::new(limits);
        let mut spans = Vec::new();
        let end = framer.cut(&chunk, 0, &mut spans)?;
        framer.finish(slices::part(&chunk, end..))?;
        Ok(Self::new(chunk, spans, 0, 0))
    }

    /// Creates records of the frames that an [`Encoder`](crate::Encoder) has written for
    /// consecutive rows of a file, such as a Parquet file. The first one has the number `first`.
    /// They have no [offset](Self::offset), and errors about them name a row.
    ///
    /// # Errors
    /// Those of [`from_frames`](Self::from_frames), which frames of an encoder do not cause.
    pub fn from_rows(frames: impl Into<Buffer>, first: u64) -> Result<Self> {
        let records = Self::from_frames(frames, Limits::default())?;
        Ok(Self {
            first,
            offset: None,
            ..records
        })
    }

    /// No records.
    pub fn empty() -> Self {
        Self::new(Buffer::default(), Vec::new(), 0, 0)
    }

    /// Creates records of messages that are parts of other records, at `spans` of `chunk`. They
    /// have neither frames nor CRCs, so that they can be decoded only with [`VerifyCrc::Never`].
    pub(crate) fn of_parts(chunk: Buffer, spans: Vec<Span>) -> Self {
        Self {
            chunk,
            spans,
            first: 0,
            offset: None,
            shared: SharedFeatures::default(),
        }
    }

    /// Creates records that are all at the same place of memory, which no stream has: many bytes of
    /// payloads in little memory, for tests of limits.
    #[cfg(test)]
    pub(crate) fn repeated(payload: &[u8], count: usize) -> Self {
        let mut frame = Vec::new();
        write(payload, &mut frame);
        let span = Span {
            start: HEADER,
            len: payload.len(),
        };
        Self {
            spans: vec![span; count],
            ..Self::new(Buffer::from_vec(frame), Vec::new(), 0, 0)
        }
    }

    /// Copies the records out of a chunk of which they fill a small part, so that holding them
    /// never takes much more memory than they have bytes: corruption can leave one record in a
    /// chunk of megabytes.
    pub(super) fn detached(self) -> Self {
        let frames = self.frames();
        if frames.len() > self.chunk.capacity() / SPARSE {
            return self;
        }
        let start = self.spans.first().map_or(0, |span| span.frame().start);
        let chunk = Buffer::from_vec(frames.to_vec());
        let spans = self
            .spans
            .iter()
            .map(|span| Span {
                start: span.start - start,
                ..*span
            })
            .collect();
        Self {
            chunk,
            spans,
            offset: self.offset.map(|offset| offset + start as u64),
            ..self
        }
    }

    /// Returns the records with these features, which each of them has besides its own: a feature
    /// of a record replaces the shared one of its name. Summaries and decoders read them as
    /// features of the records.
    pub fn with_shared_features(self, shared: &SharedFeatures) -> Self {
        Self {
            shared: shared.clone(),
            ..self
        }
    }

    /// The features that each record has besides its own.
    pub fn shared_features(&self) -> &SharedFeatures {
        &self.shared
    }

    /// Returns the memory that the records lie in, if nothing else holds it, so that it can be
    /// filled again.
    pub fn reclaim(self) -> Option<Vec<u8>> {
        self.chunk.into_vec().ok()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns `true` if there is no record.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Number of the first record in its shard, counted from 0.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of bytes of the shard that these records take, frames included.
    pub fn bytes(&self) -> usize {
        self.spans
            .iter()
            .map(|span| HEADER + span.len + FOOTER)
            .sum()
    }

    /// Payload of the record at `index`, counted from the first of these records; `None` if `index`
    /// is not below [`len`](Self::len).
    pub fn data(&self, index: usize) -> Option<&[u8]> {
        self.chunk.get(self.spans.get(index)?.payload())
    }

    /// Calls `check` with the records and then with those after each record that it rejects, until
    /// it accepts all of them: the loop of every reader that skips records.
    ///
    /// An error of `check` has the [position](Error::position) of the record that it rejects.
    /// `skip` gets the accepted records before it, the record itself and the error. Returns the
    /// records after the last rejected one.
    ///
    /// ```
    /// use tfarrow_codec::{Error, Limits, Records, VerifyCrc, frame};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let mut frames = Vec::new();
    /// [b"one", b"two", b"six"].map(|payload| frame::write(payload, &mut frames));
    /// frames[19 + 12] ^= 1;
    /// let records = Records::from_frames(frames, Limits::default())?;
    /// let mut skipped = Vec::new();
    /// let rest = records.skip_rejected(
    ///     |records| records.verify(VerifyCrc::Always),
    ///     |good, bad, error| {
    ///         skipped.push((good.len(), bad.first(), error.position().record));
    ///         Ok::<_, Error>(())
    ///     },
    /// )?;
    /// assert_eq!(skipped, [(1, 1, 1)]);
    /// assert_eq!(rest.first(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The first error of `skip`.
    pub fn skip_rejected<E>(
        mut self,
        mut check: impl FnMut(&Self) -> Result<()>,
        mut skip: impl FnMut(Self, Self, Error) -> Result<(), E>,
    ) -> Result<Self, E> {
        while let Err(error) = check(&self) {
            let record = error.position().record;
            debug_assert!(
                record >= self.first && record - self.first < self.len() as u64,
                "an error of another record"
            );
            let index = record.saturating_sub(self.first) as usize;
            let (good, rest) = self.split_at(index);
            let (bad, rest) = rest.split_at(1);
            skip(good, bad, error)?;
            self = rest;
        }
        Ok(self)
    }

    /// The records as they are in the shard: complete frames one after the other, CRCs included.
    pub fn frames(&self) -> &[u8] {
        let (Some(first), Some(last)) = (self.spans.first(), self.spans.last()) else {
            return &[];
        };
        self.slice(first.frame().start, last.frame().end)
    }

    /// Returns the [`frames`](Self::frames) in the memory of the records, without a copy unless
    /// they are a small part of it.
    pub fn into_frames(self) -> Buffer {
        let records = self.detached();
        let (Some(first), Some(last)) = (records.spans.first(), records.spans.last()) else {
            return Buffer::default();
        };
        let start = first.frame().start;
        records
            .chunk
            .slice_with_length(start, last.frame().end - start)
    }

    /// Some of the records, by their indices, without a copy of their bytes. Indices that no record
    /// has are left out.
    ///
    /// ```
    /// use tfarrow_codec::Records;
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let records = Records::from_payloads([b"one", b"two", b"six"].map(|payload| &payload[..]))?;
    /// let last = records.part(1..9);
    /// assert_eq!(last.iter().collect::<Vec<_>>(), [b"two", b"six"]);
    /// assert_eq!(last.first(), 1);
    /// # Ok(()) }
    /// ```
    pub fn part(&self, indices: Range<usize>) -> Self {
        let end = indices.end.min(self.spans.len());
        let start = indices.start.min(end);
        Self {
            chunk: self.chunk.clone(),
            spans: self.spans.get(start..end).unwrap_or_default().to_vec(),
            first: self.first + start as u64,
            offset: self.offset,
            shared: self.shared.clone(),
        }
    }

    /// Payload of each record.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans
            .iter()
            .map(|span| self.slice(span.start, span.start + span.len))
    }

    /// Bytes of the chunk. The spans are checked when the records are made.
    fn slice(&self, start: usize, end: usize) -> &[u8] {
        debug_assert!(
            start <= end && end <= self.chunk.len(),
            "a record ends after its chunk"
        );
        slices::part(&self.chunk, start..end)
    }

    /// Splits the records in two without a copy: the first `count`, or all if there are fewer, and
    /// the others.
    ///
    /// ```
    /// use tfarrow_codec::Records;
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// let records = Records::from_payloads([b"a".as_slice(), b"bb", b"ccc"])?;
    /// // As many records as have at most 2 rows and 100 bytes of payload.
    /// let count = records.fit(2, 100);
    /// let (first, others) = records.split_at(count);
    /// assert_eq!((first.len(), others.len(), others.first()), (2, 1, 2));
    /// # Ok(()) }
    /// ```
    pub fn split_at(mut self, count: usize) -> (Self, Self) {
        let rest = self.spans.split_off(count.min(self.spans.len()));
        let first = self.first + self.spans.len() as u64;
        let rest = Self {
            chunk: self.chunk.clone(),
            spans: rest,
            first,
            offset: self.offset,
            shared: self.shared.clone(),
        };
        (self, rest)
    }

    /// Returns these records, and those after them, from which they were [split](Self::split_at).
    pub(crate) fn joined(mut self, rest: Self) -> Self {
        debug_assert_eq!(
            self.first + self.len() as u64,
            rest.first,
            "records that follow each other"
        );
        self.spans.extend(rest.spans);
        self
    }

    /// Returns the number of records at the front that are at most `rows` records and have at most
    /// `bytes` bytes of payload together; at least 1 if there is a record. Use it with
    /// [`split_at`](Self::split_at) to bound the size of a batch.
    pub fn fit(&self, rows: usize, bytes: usize) -> usize {
        let mut sum = 0usize;
        let mut count = 0usize;
        for span in self.spans.iter().take(rows) {
            sum = sum.saturating_add(span.len);
            if sum > bytes {
                break;
            }
            count += 1;
        }
        count.max(1).min(self.spans.len())
    }

    /// The memory that the records lie in.
    pub(crate) fn chunk(&self) -> &Buffer {
        &self.chunk
    }

    /// Position in [`chunk`](Self::chunk) of each record's payload.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Checks the CRC of the payload of the record at `index`.
    ///
    /// # Errors
    /// [`ErrorKind::DataCrc`] with the position of the record if the CRC does not match.
    #[inline]
    pub fn check_crc(&self, index: usize) -> Result<()> {
        let Some(span) = self.spans.get(index) else {
            return Ok(());
        };
        let end = span.start + span.len;
        let footer = self
            .chunk
            .get(end..)
            .and_then(<[u8]>::first_chunk::<FOOTER>);
        debug_assert!(footer.is_some(), "a record has no footer");
        let found = footer.map_or(0, |crc| u32::from_le_bytes(*crc));
        let expected = masked(self.slice(span.start, end));
        if expected == found {
            Ok(())
        } else {
            Err(self.error(ErrorKind::DataCrc { expected, found }, index))
        }
    }

    /// Checks the CRC of the payload of each record if `verify` is [`VerifyCrc::Always`], and
    /// nothing otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::DataCrc`] of the first record whose CRC does not match.
    pub fn verify(&self, verify: VerifyCrc) -> Result<()> {
        match verify {
            VerifyCrc::Always => (0..self.len()).try_for_each(|index| self.check_crc(index)),
            VerifyCrc::OnParseFailure | VerifyCrc::Never => Ok(()),
        }
    }

    /// Number and offset in its shard of the record at `index`, counted from the first of these
    /// records. The offset is 0 for a record that has none.
    pub fn position(&self, index: usize) -> Position {
        let offset = self.offset(index).unwrap_or_default();
        Position {
            record: self.first + index as u64,
            offset,
            feature: None,
        }
    }

    /// Offset in its shard of the record at `index`; `None` if the records were encoded from the
    /// rows of a file of another format.
    pub fn offset(&self, index: usize) -> Option<u64> {
        let start = self.spans.get(index).map_or(0, |span| span.frame().start);
        self.offset.map(|offset| offset + start as u64)
    }

    /// Returns the error that a value of the record at `index` does not have the type that a reader
    /// declared for it.
    pub fn misfit(&self, index: usize, feature: &str, expected: String, found: String) -> Error {
        self.error(ErrorKind::Declared { expected, found }, index)
            .with_feature(feature)
    }

    /// Returns the error that the records of a batch have more of `what` together than a batch can
    /// have.
    pub(crate) fn overflow(&self, what: &'static str, found: u64, limit: u64) -> Error {
        self.error(
            ErrorKind::BatchLimit {
                what,
                limit,
                found,
                records: self.len() as u64,
            },
            0,
        )
    }

    /// Returns an error in the record at `index`.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind, index: usize) -> Error {
        let error = Error::new(kind, self.position(index));
        if self.offset.is_some() {
            error
        } else {
            error.of_row()
        }
    }
}
