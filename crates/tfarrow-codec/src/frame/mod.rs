//! The frames of a TFRecord stream: `length: u64 | masked CRC of length | payload | masked CRC of
//! payload`.
//!
//! Integers are little-endian, and CRCs are masked CRC32C, as in
//! `tensorflow/core/lib/io/record_writer.h`. A length is used only after its CRC was checked. This
//! module does not read payloads.
//!
//! ```text
//! bytes ─▶ FrameBuffer::{spare, advance} ─▶ FrameBuffer::next ─▶ Segment::Records | Segment::Lost
//! ```
//!
//! - [`records()`] frames a stream that is in memory.
//! - [`FrameBuffer`] frames a stream that arrives in parts, and can skip corrupt bytes (`resync`).
//! - [`Records`] holds complete records, which lie in one reference-counted chunk of memory.
//! - [`Framer`] contains the only loop that cuts bytes into frames; [`Outline`] finds the frames of
//!   a stream without their payloads.
//! - `collector` gathers the frames of one batch for the push [`Decoder`](crate::Decoder).

mod buffer;
mod chunk_size;
mod collector;
mod crc;
mod framer;
mod outline;
mod records;
mod resync;
mod shared_features;

use self::crc::masked;
pub use self::{
    buffer::{FrameBuffer, Lost, Segment},
    chunk_size::ChunkSize,
    framer::{Framer, Span},
    outline::{FrameRange, Outline},
    records::Records,
    resync::{RecordSearch, Searched},
    shared_features::SharedFeatures,
};
pub(crate) use self::{collector::FrameCollector, records::SPARSE};
use crate::{Limits, Result, slices};

/// Number of bytes of a frame's header: the length of the payload, and the CRC of the length.
pub const HEADER: usize = 12;

/// Number of bytes of a frame's footer: the CRC of the payload.
pub const FOOTER: usize = 4;

/// Size in bytes of the chunks in which [`records()`] returns records.
const CHUNK_BYTES: usize = 2 << 20;

/// Returns the length in bytes of the payload of the frame that `bytes` begins with, or `None` if
/// `bytes` is shorter than a header or the CRC of the length does not match.
///
/// Use it to distinguish a TFRecord file from other files: the format has no magic number, and one
/// of 2^32 random headers passes.
pub fn length(bytes: &[u8]) -> Option<u64> {
    let header = bytes.first_chunk::<HEADER>()?;
    let (length, expected, found) = split(header);
    (expected == found).then_some(length)
}

/// Splits a header into the length of the payload, the masked CRC computed from the length, and the
/// masked CRC stored.
fn split(header: &[u8; HEADER]) -> (u64, u32, u32) {
    let [a, b, c, d, e, f, g, h, crc @ ..] = *header;
    let length = [a, b, c, d, e, f, g, h];
    (
        u64::from_le_bytes(length),
        masked(&length),
        u32::from_le_bytes(crc),
    )
}

/// Returns the records of a TFRecord stream that is in memory, in groups of about 2 MiB.
///
/// The stream is copied group by group, so that the [`Records`] do not borrow `bytes`. Payloads are
/// not read: [`Records::verify`] checks their CRCs.
///
/// ```
/// use tfarrow_codec::{Limits, frame};
/// # fn main() -> tfarrow_codec::Result<()> {
/// let mut stream = Vec::new();
/// frame::write(b"one", &mut stream);
/// frame::write(b"two", &mut stream);
/// for records in frame::records(&stream, Limits::default()) {
///     assert_eq!(records?.iter().collect::<Vec<_>>(), [b"one", b"two"]);
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// A length that is corrupt or exceeds [`Limits::record_bytes`], and a stream that ends inside a
/// frame. The records before the error are returned first; the error is the last item.
pub fn records(bytes: &[u8], limits: Limits) -> impl Iterator<Item = Result<Records>> {
    let segments = FrameBuffer::new(CHUNK_BYTES, limits).segments(bytes);
    segments.filter_map(|segment| segment.map(Segment::into_records).transpose())
}

/// Returns each frame of `bytes` with its payload, up to the first frame that is incomplete or has
/// a corrupt length. For frames that the caller has written itself.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut spans = Vec::new();
    // The error has no use here: iteration ends before the frame that it is about.
    Framer::default().cut(bytes, 0, &mut spans).ok();
    spans
        .into_iter()
        .filter_map(|span| Some((bytes.get(span.frame())?, bytes.get(span.payload())?)))
}

/// Appends a record as a frame to `out`: header, payload and footer. The payload may have any
/// length; readers reject more than [`MOST_RECORD_BYTES`](crate::MOST_RECORD_BYTES).
///
/// ```
/// use tfarrow_codec::frame;
/// let mut out = Vec::new();
/// frame::write(b"payload", &mut out);
/// assert_eq!(out.len(), frame::HEADER + 7 + frame::FOOTER);
/// assert_eq!(frame::length(&out), Some(7));
/// ```
pub fn write(payload: &[u8], out: &mut Vec<u8>) {
    begin(payload.len(), out);
    out.extend_from_slice(payload);
    out.extend_from_slice(&masked(payload).to_le_bytes());
}

/// Appends the header of a record whose payload has `length` bytes.
pub(crate) fn begin(length: usize, out: &mut Vec<u8>) {
    let length = (length as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
}

/// Appends the footer of the record whose payload is the part of `out` from `start` to its end.
pub(crate) fn end(start: usize, out: &mut Vec<u8>) {
    debug_assert!(
        start <= out.len(),
        "the payload begins after the end of the output"
    );
    let crc = masked(slices::part(out, start..));
    out.extend_from_slice(&crc.to_le_bytes());
}
