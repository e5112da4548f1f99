//! The schema of anything that implements [`Read`].

use std::io::{self, Read};

use arrow_schema::{ArrowError, SchemaRef};

use super::Summary;
use crate::{FrameBuffer, Layout, Limits, Segment, VerifyCrc};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Infers the schema of TFRecord bytes from the first `max_records` records, or from all of them.
/// No more than a chunk, or one record, is in memory. The bytes must not be compressed.
///
/// ```
/// use tfarrow_codec::{Layout, frame, infer::infer_schema};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut stream = Vec::new();
/// // The `tf.Example` message {"x": 1}.
/// frame::write(&[10, 12, 10, 10, 10, 1, b'x', 18, 5, 26, 3, 10, 1, 1], &mut stream);
/// // `stream` is anything that implements `Read`, for example a `File`.
/// assert_eq!(infer_schema(stream.as_slice(), Layout::Auto, Some(1000))?.field(0).name(), "x");
/// # Ok(()) }
/// ```
///
/// # Errors
/// A source that fails, corrupt or truncated records, and a feature of more than one kind. The
/// codec's own [`Error`](crate::Error), with the position of the record, is in
/// [`ArrowError::ExternalError`].
pub fn infer_schema<R: Read>(
    mut reader: R,
    layout: Layout,
    max_records: Option<usize>,
) -> Result<SchemaRef, ArrowError> {
    let mut summary = Summary::new(0);
    let mut buffer = FrameBuffer::new(READ_BYTES, Limits::default());
    let mut left = max_records.unwrap_or(usize::MAX);
    let mut has_ended = false;
    while left > 0 {
        match buffer.next(has_ended)? {
            Some(Segment::Records(records)) => {
                let count = records.len().min(left);
                let (records, _) = records.split_at(count);
                summary.observe(&records, VerifyCrc::Always)?;
                left -= count;
            }
            Some(Segment::Lost(_)) => {}
            None if has_ended => break,
            None => has_ended = fill(&mut buffer, &mut reader)?,
        }
    }
    Ok(summary.schema(layout, None)?)
}

/// Fills a chunk, so that there are many records in it. Returns whether the source has ended.
fn fill(buffer: &mut FrameBuffer, reader: &mut impl Read) -> io::Result<bool> {
    while !buffer.is_full() {
        match reader.read(buffer.spare()) {
            Ok(0) => return Ok(true),
            Ok(count) => buffer.advance(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;
    use crate::frame;

    /// A source of one byte at a time that counts its bytes, and is interrupted before each.
    struct Slow<'b>(&'b [u8], usize, bool);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = to.len().min(1).min(self.0.len() - self.1);
            to[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }

    /// The `tf.Example` message `{"x": [1; count]}`.
    fn example(count: u8) -> Vec<u8> {
        let mut bytes = vec![
            10,
            11 + count,
            10,
            9 + count,
            10,
            1,
            b'x',
            18,
            4 + count,
            26,
            2 + count,
            10,
            count,
        ];
        bytes.extend(std::iter::repeat_n(1, count.into()));
        bytes
    }

    #[test]
    fn the_first_records_decide_and_the_rest_is_not_read() {
        let mut stream = Vec::new();
        for _ in 0..20_000 {
            frame::write(&example(1), &mut stream);
        }
        frame::write(&example(2), &mut stream);
        let of = |most| {
            infer_schema(stream.as_slice(), Layout::Auto, most)
                .unwrap()
                .field(0)
                .data_type()
                .clone()
        };
        assert_eq!(of(Some(20_000)), DataType::Int64);
        assert!(
            matches!(of(Some(20_001)), DataType::List(_)) && matches!(of(None), DataType::List(_))
        );
        let mut slow = Slow(&stream, 0, false);
        assert_eq!(
            *infer_schema(&mut slow, Layout::Auto, Some(1))
                .unwrap()
                .field(0)
                .data_type(),
            DataType::Int64
        );
        assert!(
            slow.1 <= READ_BYTES && stream.len() > 2 * READ_BYTES,
            "{} of {}",
            slow.1,
            stream.len()
        );
    }

    #[test]
    fn errors_have_the_position_of_the_record() {
        let mut stream = Vec::new();
        frame::write(&example(1), &mut stream);
        frame::write(&example(1), &mut stream);
        let truncated = infer_schema(&stream[..stream.len() - 1], Layout::Auto, None).unwrap_err();
        assert!(
            truncated.to_string().contains("record 1 (byte "),
            "{truncated}"
        );
        assert!(infer_schema(&stream[..stream.len() - 1], Layout::Auto, Some(1)).is_ok());
    }
}
