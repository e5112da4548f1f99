//! The records of a file that a scan reads.

use std::ops::Range;

use datafusion::datasource::listing::PartitionedFile;
use tfarrow_codec::{Records, frame::FrameRange};

/// The records of a file that a scan reads, by their numbers in the file; an extension of a
/// [`PartitionedFile`]. All records by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRange(pub Range<u64>);

impl Default for RecordRange {
    fn default() -> Self {
        Self(0..u64::MAX)
    }
}

impl RecordRange {
    /// The range of `file`; all records if it has none.
    pub fn of(file: &PartitionedFile) -> Self {
        file.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Whether all records are read.
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether records of a block are in the range.
    pub(crate) fn has_some_of(&self, block: &FrameRange) -> bool {
        self.0.start < block.first + block.records as u64 && block.first < self.0.end
    }

    /// The records of a chunk that are in the range; `None` if the range ends before them.
    pub(crate) fn of_chunk(&self, records: Records) -> Option<Records> {
        let from = self.0.start.saturating_sub(records.first());
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let to = self.0.end.saturating_sub(records.first());
        let to = usize::try_from(to).unwrap_or(usize::MAX);
        if to == 0 {
            return None;
        }
        let (records, _) = records.split_at(to);
        Some(records.split_at(from).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_cuts_the_records_of_each_chunk() {
        let mut bytes = Vec::new();
        (0..6).for_each(|_| tfarrow_codec::frame::write(b"x", &mut bytes));
        let all = Records::from_frames(bytes, tfarrow_codec::Limits::default()).unwrap();
        let (first, second) = all.split_at(4);
        let cut = |range: Range<u64>| {
            let range = RecordRange(range);
            let found = [&first, &second].map(|chunk| range.of_chunk(chunk.clone()));
            found.map(|records| records.map(|records| (records.first(), records.len())))
        };
        assert_eq!(cut(0..u64::MAX), [Some((0, 4)), Some((4, 2))]);
        assert_eq!(cut(1..3), [Some((1, 2)), None]);
        assert_eq!(cut(3..5), [Some((3, 1)), Some((4, 1))]);
        assert_eq!(cut(5..6), [Some((4, 0)), Some((5, 1))]);
    }
}
