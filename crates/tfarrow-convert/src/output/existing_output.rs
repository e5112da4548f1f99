//! Existing outputs of a resumed conversion, or of another attempt at a part: compared with the new
//! bytes, and not written.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use tfarrow_columnar::checksums::hash;
use tfarrow_dataset::internals::{ExistingObject, existing_objects, is_remote};
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result, error::Differs};

/// An existing file or object that compares the bytes that are written to it with its own. The
/// first different byte is an error.
pub(crate) struct ExistingOutput {
    path: PathBuf,
    file: BufReader<Box<dyn Read + Send>>,
    /// Bytes that were compared.
    bytes: u64,
}

/// Bytes that are read and compared at once.
const BUFFER_BYTES: usize = 64 << 10;

impl ExistingOutput {
    /// Opens the output `path` for comparison; `None` if there is no regular file, or no object, of
    /// this name.
    ///
    /// # Errors
    /// I/O errors, and requests that fail.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        Ok(existing(path)?.map(|file| Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            bytes: 0,
        }))
    }

    /// Returns the XXH3 of the bytes of the output `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// I/O errors, and requests that fail.
    pub(crate) fn hash(path: &Path) -> Result<Option<u64>> {
        let Some(mut file) = existing(path)? else {
            return Ok(None);
        };
        let mut hasher = Xxh3::new();
        hash(&mut file, u64::MAX, &mut hasher).map_err(|e| Error::io(path, e))?;
        Ok(Some(hasher.digest()))
    }

    /// Ends the comparison after the last byte. Returns the size of the file.
    ///
    /// # Errors
    /// [`Error::Differs`] if the file is longer, and I/O errors.
    pub(crate) fn close(mut self) -> Result<u64> {
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(self.bytes),
            Ok(_) => Err(Error::Differs { path: self.path }),
            Err(e) => Err(Error::io(&self.path, e)),
        }
    }
}

/// Opens a regular file or an object; `None` if there is none of this name.
fn existing(path: &Path) -> Result<Option<Box<dyn Read + Send>>> {
    if path.to_str().is_some_and(is_remote) {
        return Ok(existing_object(path)?.map(|object| object.open()));
    }
    if !is_file(path) {
        return Ok(None);
    }
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    Ok(Some(Box::new(file)))
}

/// Whether there is a regular file, or an object, of this name.
///
/// # Errors
/// Requests that fail.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match path.to_str().is_some_and(is_remote) {
        true => Ok(existing_object(path)?.is_some()),
        false => Ok(is_file(path)),
    }
}

fn existing_object(url: &Path) -> Result<Option<ExistingObject>> {
    Ok(existing_objects(&[url])?.pop().flatten())
}

/// Whether there is a regular file of this name.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

impl Write for ExistingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = [0; BUFFER_BYTES];
        let bytes = bytes.get(..BUFFER_BYTES).unwrap_or(bytes);
        let existing = buffer.get_mut(..bytes.len()).unwrap_or_default();
        match self.file.read_exact(existing) {
            Ok(()) if existing == bytes => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_bytes_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let compare = |bytes: &[u8]| -> Result<u64> {
            let mut file = ExistingOutput::open(&path)?.unwrap();
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
        assert!(
            ExistingOutput::open(&folder.path().join("b"))
                .unwrap()
                .is_none()
        );
        assert!(ExistingOutput::open(folder.path()).unwrap().is_none());
    }
}
