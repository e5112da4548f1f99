//! The sizes of the chunks that a stream is read in.

/// Size in bytes of the first chunk of a stream.
const FIRST_CHUNK: usize = 256 << 10;

/// The largest ratio of the size of a chunk, which a length determines, to the bytes that have
/// arrived for it. Memory that no bytes were written to takes no space in most systems.
pub(super) const GROWTH: usize = 8;

/// The size of a chunk. Small at first, so that the first records of a large stream come at once;
/// then the target, or more for a longer record.
#[derive(Clone, Copy, Debug)]
pub struct ChunkSize {
    bytes: usize,
    target: usize,
}

impl ChunkSize {
    /// The size of the first chunk. The target is at least 4 KiB, and at most 1 GiB, because
    /// positions in a chunk are counted in 32 bits.
    pub(super) fn new(target: usize) -> Self {
        let target = target.clamp(4 << 10, 1 << 30);
        Self {
            bytes: target.min(FIRST_CHUNK),
            target,
        }
    }

    /// The size in bytes.
    pub(super) fn bytes(self) -> usize {
        self.bytes
    }

    /// The size in bytes that chunks grow to.
    pub(super) fn target(self) -> usize {
        self.target
    }

    /// Whether the chunk is larger than the target, because a record is.
    pub(super) fn is_grown(self) -> bool {
        self.bytes > self.target
    }

    /// Determines the size of the next chunk; if the chunk has no complete record, its own new
    /// size. `rest` is the number of bytes after the last complete record, for which the chunk has
    /// room, and for more. `need` is the length of the record that they begin, if it is known.
    pub(super) fn advance(&mut self, has_records: bool, rest: usize, need: Option<usize>) {
        if has_records {
            self.bytes = self.bytes.saturating_mul(2).min(self.target).max(rest);
        }
        if rest >= self.bytes {
            self.grow(need);
        }
    }

    /// Grows the chunk for a record that is longer: to `need` bytes, but at most to [`GROWTH`]
    /// times the bytes that it has, because a length may be wrong until its bytes arrive. While the
    /// bytes move to the larger chunk, both are in memory: the last but one chunk has at most a
    /// fraction of the record.
    fn grow(&mut self, need: Option<usize>) {
        let twice = self.bytes.saturating_mul(2);
        self.bytes = match need.map(|need| need.max(self.bytes + 1)) {
            None => twice,
            Some(need) if need <= self.bytes.saturating_mul(GROWTH) => need,
            Some(need) => twice.min(need.div_ceil(GROWTH)),
        };
    }
}
