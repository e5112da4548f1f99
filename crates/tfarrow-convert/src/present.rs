//! Outputs that are there already when a conversion is resumed: compared with what the conversion makes, and not written.

use std::{
    fmt,
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// A file that takes the bytes of an output, and fails at the first one that it does not hold already.
pub(crate) struct PresentFile {
    path: PathBuf,
    file: BufReader<File>,
    bytes: u64,
}

/// Bytes that are compared at once.
const COMPARED: usize = 64 << 10;

impl PresentFile {
    /// Opens the output `path` for comparison; `None` where no regular file has the name.
    ///
    /// # Errors
    /// System errors.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Ok(Some(Self { path: path.to_owned(), file: BufReader::with_capacity(COMPARED, file), bytes: 0 }))
    }

    /// Ends the comparison: the file must end where the output does. Returns its bytes.
    ///
    /// # Errors
    /// [`Error::Differs`], and system errors.
    pub(crate) fn close(mut self) -> Result<u64> {
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(self.bytes),
            Ok(_) => Err(Error::Differs { path: self.path }),
            Err(e) => Err(Error::io(&self.path, e)),
        }
    }
}

impl Write for PresentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = [0; COMPARED];
        let bytes = bytes.get(..COMPARED).unwrap_or(bytes);
        let held = held.get_mut(..bytes.len()).unwrap_or_default();
        match self.file.read_exact(held) {
            Ok(()) if held == bytes => {}
            Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e),
            _ => return Err(io::Error::other(Differs)),
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Marks a difference among the I/O errors that the Parquet and Arrow writers pass on.
#[derive(Debug)]
pub(crate) struct Differs;

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output differs from the file that is there already")
    }
}

impl std::error::Error for Differs {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_pass() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let compare = |bytes: &[u8]| -> Result<u64> {
            let mut file = PresentFile::open(&path)?.unwrap();
            file.write_all(bytes).map_err(|e| Error::io(&path, e))?;
            file.close()
        };
        assert_eq!(compare(&bytes).unwrap(), 200_000);
        let mut changed = bytes.clone();
        changed[199_999] ^= 1;
        let longer = [&bytes[..], b"x"].concat();
        for other in [&changed[..], &bytes[..199_999], &longer, b""] {
            let error = compare(other).unwrap_err();
            assert!(matches!(error, Error::Differs { .. }), "{error}");
        }
        assert!(PresentFile::open(&folder.path().join("b")).unwrap().is_none());
        assert!(PresentFile::open(folder.path()).unwrap().is_none());
    }
}
