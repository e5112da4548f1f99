//! The bytes of a shard as they are stored.

use std::{io, io::Read, mem};

use crate::error::Damage;

/// The reason why a stream cannot be read further.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The source of the bytes failed.
    Io(io::Error),
    /// The compressed bytes are damaged.
    Damage(Damage),
}

/// Number of bytes at the start of a file in which a record is searched for, if the first bytes are
/// those of another format.
const SEARCHED: usize = 4 << 20;

/// Reads the stored bytes of a shard, and can return to the first ones.
pub(crate) struct StoredInput {
    source: Box<dyn Read + Send>,
    /// Copy of all bytes read so far. `None` once there are more than [`SEARCHED`], or the format
    /// is settled.
    kept: Option<Vec<u8>>,
    /// Bytes that are read before those of the source: the first ones, a second time.
    again: io::Cursor<Vec<u8>>,
    /// Number of bytes read.
    pub(crate) bytes: u64,
}

impl StoredInput {
    pub(crate) fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            kept: Some(Vec::new()),
            again: io::Cursor::default(),
            bytes: 0,
        }
    }

    /// Reads into `out`. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// An error of the source.
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
        self.kept.take_if(|kept| kept.len() > SEARCHED);
        Ok(count)
    }

    /// Stops keeping a copy of the bytes, and returns it. `None` if there is none any more.
    pub(crate) fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }

    /// Adds bytes of the source to `kept`, which are the first bytes, up to [`SEARCHED`] bytes.
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn fill_searched(&mut self, kept: &mut Vec<u8>) -> Result<(), Failure> {
        let room = SEARCHED.saturating_sub(kept.len()) as u64;
        self.source
            .by_ref()
            .take(room)
            .read_to_end(kept)
            .map(drop)
            .map_err(Failure::Io)
    }

    /// Returns an input whose first `read` bytes have been read. `kept` are the first bytes of the
    /// same source.
    pub(crate) fn restart(&mut self, kept: Vec<u8>, read: usize) -> Self {
        let source = mem::replace(&mut self.source, Box::new(io::empty()));
        let mut again = io::Cursor::new(kept);
        again.set_position(read as u64);
        Self {
            source,
            kept: None,
            again,
            bytes: read as u64,
        }
    }
}

/// Copies as many bytes as there are and fit. Returns their number.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}
