//! Reading a file that was listed with its size.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// A file that has at least as many bytes as when it was listed. If a file is truncated while it is
/// read, it may end between two records, and would be taken for a complete file with fewer records.
pub(crate) struct ListedFile {
    file: File,
    /// Offset of the next byte.
    at: u64,
    /// Size in bytes when the file was listed.
    listed: u64,
}

impl ListedFile {
    /// Opens a file for reading from the byte `from` on.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn open_at(path: &Path, from: u64, listed: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if from > 0 {
            file.seek(SeekFrom::Start(from))?;
        }
        Ok(Self {
            file,
            at: from,
            listed,
        })
    }
}

impl Read for ListedFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(to)?;
        self.at += count as u64;
        if count == 0 && !to.is_empty() {
            check_size(self.at, self.listed)?;
        }
        Ok(count)
    }
}

/// Checks that a file of `size` bytes has as many as when it was listed.
///
/// # Errors
/// It has fewer.
pub(crate) fn check_size(size: u64, listed: u64) -> io::Result<()> {
    if size >= listed {
        return Ok(());
    }
    let text = format!(
        "the file was truncated while it was read: it had {listed} bytes, and ends at byte {size}"
    );
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
}
