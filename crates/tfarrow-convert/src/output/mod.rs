//! The outputs of jobs: files and objects that get their names when they are complete, existing
//! outputs, and streams.
//!
//! ```text
//! Destination ─▶ Output: takes bytes ─▶ ClosedOutput: complete ─▶ persist: the file gets its name
//! ```

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tfarrow_columnar::checksums::transferred;
use tfarrow_dataset::{CompleteFile, ErrorKind, OutputFile, internals::Lock};
use xxhash_rust::xxh3::Xxh3;

use self::{existing_output::ExistingOutput, made_of::MadeOf};
use crate::{Error, Result, earlier::Earlier, journal::Journal};

pub(crate) mod attempts;
pub(crate) mod existing_output;
pub(crate) mod made_of;

/// The place of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    /// The stream of the conversion's options.
    Stream,
}

impl Destination {
    /// The path of a file; `None` for a stream.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stream => None,
        }
    }

    /// The name in error messages.
    pub(crate) fn name(&self) -> &Path {
        self.file().unwrap_or(Path::new("standard output"))
    }
}

/// The stream for the output of a conversion to `-`, such as standard output. Clones share it.
#[derive(Clone)]
pub struct OutputStream(Arc<Lock<dyn io::Write + Send>>);

impl OutputStream {
    /// A stream that writes to `stream`.
    pub fn new(stream: impl io::Write + Send + 'static) -> Self {
        Self(Arc::new(Lock::new(stream)))
    }
}

impl fmt::Debug for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputStream")
    }
}

impl io::Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().flush()
    }
}

/// An output that takes bytes.
pub(crate) enum Output {
    /// A file that gets its name after it is complete, and the hash of its bytes so far.
    File(OutputFile, Box<Xxh3>),
    /// An existing file or object whose bytes are compared.
    Existing(ExistingOutput),
    /// A stream, and the number of bytes that were written to it.
    Stream(OutputStream, u64),
}

/// How the outputs of a job are opened.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// The policy for an existing output.
    pub(crate) earlier: Earlier,
    /// Whether other processes may write the same output at the same time, as attempts at a part
    /// do.
    pub(crate) is_attempt: bool,
    /// The stream of [`Destination::Stream`].
    pub(crate) stream: Option<OutputStream>,
}

impl Output {
    /// Opens an output. With a journal, the journal lists its unfinished file.
    ///
    /// # Errors
    /// A file that exists and is not replaced, a stream that is missing in the options, and I/O
    /// errors.
    pub(crate) fn create(
        destination: &Destination,
        OutputOptions {
            earlier,
            is_attempt,
            stream,
        }: &OutputOptions,
        journal: Option<&Journal>,
    ) -> Result<Self> {
        let path = match (destination, stream) {
            (Destination::File(path), _) => path,
            (Destination::Stream, Some(stream)) => return Ok(Self::Stream(stream.clone(), 0)),
            (Destination::Stream, None) => {
                return Err(Error::Usage(
                    "the destination `-` needs a stream in the options".to_owned(),
                ));
            }
        };
        if *earlier == Earlier::Compared
            && let Some(existing) = ExistingOutput::open(path)?
        {
            return Ok(Self::Existing(existing));
        }
        let overwrite = *earlier == Earlier::Replaced;
        let file = match journal {
            Some(journal) => OutputFile::create_at(path, &journal.start_output(path)?, overwrite)?,
            None if *is_attempt => match attempts::create(path, overwrite) {
                Err(error) => return Self::named_meanwhile(path, *earlier, error),
                file => file?,
            },
            None => OutputFile::create(path, overwrite)?,
        };
        Ok(Self::File(file, Box::default()))
    }

    /// Returns the existing output for comparison, if another attempt has given its file this name
    /// after it was found to be free: `error` says so.
    ///
    /// # Errors
    /// The error, if it is another one.
    fn named_meanwhile(
        path: &Path,
        earlier: Earlier,
        error: tfarrow_dataset::Error,
    ) -> Result<Self> {
        let may_exist = earlier == Earlier::Compared && matches!(error.kind(), ErrorKind::Exists);
        match may_exist
            .then(|| ExistingOutput::open(path))
            .transpose()?
            .flatten()
        {
            Some(existing) => Ok(Self::Existing(existing)),
            None => Err(error.into()),
        }
    }

    /// Completes the output after its last byte.
    ///
    /// # Errors
    /// [`Error::Differs`] for an existing file that is longer, and I/O errors.
    pub(crate) fn close(self) -> Result<ClosedOutput> {
        match self {
            Self::File(file, hash) => Ok(ClosedOutput::File(file.close()?, hash.digest())),
            Self::Existing(file) => file.close().map(ClosedOutput::Existing),
            Self::Stream(mut stream, bytes) => {
                io::Write::flush(&mut stream)
                    .map_err(|e| Error::io(Destination::Stream.name(), e))?;
                Ok(ClosedOutput::Stream(bytes))
            }
        }
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, hash) => {
                let count = file.write(bytes)?;
                hash.update(transferred(bytes, count)?);
                Ok(count)
            }
            Self::Existing(file) => file.write(bytes),
            Self::Stream(stream, written) => {
                let count = stream.write(bytes)?;
                *written += count as u64;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Existing(file) => file.flush(),
            Self::Stream(stream, _) => stream.flush(),
        }
    }
}

/// A complete output.
pub(crate) enum ClosedOutput {
    /// A file without its name, and the hash of its bytes.
    File(CompleteFile, u64),
    /// The number of bytes of an existing file, which has its name.
    Existing(u64),
    /// The number of bytes of a stream.
    Stream(u64),
}

impl ClosedOutput {
    /// Keeps a file that has no name yet on the disk, for a resumed run.
    pub(crate) fn keep_uncommitted(self) {
        if let Self::File(file, _) = self {
            file.leave();
        }
    }

    /// Notes what a file was made of, and its number of records, if it becomes an object.
    pub(crate) fn note(&mut self, made_of: &MadeOf, records: u64) {
        if let Self::File(file, _) = self {
            file.set_note(made_of.note(records));
        }
    }

    /// Returns the output with another name, that of a file in the same folder, for
    /// [`persist`](Self::persist).
    ///
    /// # Errors
    /// The name cannot be that of an object.
    pub(crate) fn named(self, destination: Destination) -> Result<Self> {
        match (self, destination) {
            (Self::File(file, hash), Destination::File(path)) => {
                Ok(Self::File(file.with_target(path)?, hash))
            }
            (other, _) => Ok(other),
        }
    }

    /// Whether the output is a file or an object, and not a stream.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self, Self::Stream(_))
    }

    /// Gives a file its name. Returns the bytes of the output. If another process has given an
    /// equal file this name in the meantime, that file is kept.
    ///
    /// # Errors
    /// [`Error::Differs`] if another process has written a different file in the meantime, and I/O
    /// errors.
    pub(crate) fn persist(self, options: &OutputOptions) -> Result<u64> {
        match self {
            Self::File(file, hash) => {
                let path = file.target().to_owned();
                let size = file.size();
                match file.persist() {
                    Ok(()) => Ok(size),
                    Err(error) if options.is_attempt || options.earlier == Earlier::Compared => {
                        unless_equal(&path, hash, error).map(|()| size)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Self::Existing(bytes) | Self::Stream(bytes) => Ok(bytes),
        }
    }
}

/// Returns the error of naming an output, unless another process has written the same bytes under
/// its name.
fn unless_equal(path: &Path, hash: u64, error: tfarrow_dataset::Error) -> Result<()> {
    match ExistingOutput::hash(path)? {
        Some(existing) if existing == hash => Ok(()),
        Some(_) if matches!(error.kind(), ErrorKind::Exists) => Err(Error::Differs {
            path: path.to_owned(),
        }),
        Some(_) | None => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use io::Write;

    use super::*;

    fn options(earlier: Earlier) -> OutputOptions {
        OutputOptions {
            earlier,
            is_attempt: true,
            stream: None,
        }
    }

    fn written(destination: &Destination, earlier: Earlier, bytes: &[u8]) -> ClosedOutput {
        let mut output = Output::create(destination, &options(earlier), None).unwrap();
        output.write_all(bytes).unwrap();
        output.close().unwrap()
    }

    #[test]
    fn an_output_that_was_named_before_the_temporary_file_was_created_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "same").unwrap();
        let exists = || attempts::create(&path, false).unwrap_err();
        for (bytes, is_same) in [(b"same", true), (b"late", false)] {
            let mut output = Output::named_meanwhile(&path, Earlier::Compared, exists()).unwrap();
            assert_eq!(output.write_all(bytes).is_ok(), is_same);
        }
        assert!(Output::named_meanwhile(&path, Earlier::Refused, exists()).is_err());
        let other = attempts::create(folder.path(), false).unwrap_err();
        assert!(Output::named_meanwhile(folder.path(), Earlier::Compared, other).is_err());
    }

    #[test]
    fn attempts_that_race_leave_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let destination = Destination::File(path.clone());
        for earlier in [Earlier::Compared, Earlier::Replaced] {
            let [first, second, third, late] = [b"same", b"same", b"same", b"late"]
                .map(|bytes| written(&destination, earlier, bytes));
            assert_eq!(first.persist(&options(earlier)).unwrap(), 4);
            assert_eq!(second.persist(&options(earlier)).unwrap(), 4);
            // Another attempt has ended, and has removed all temporary files.
            attempts::remove([path.as_path()].into_iter());
            assert_eq!(third.persist(&options(earlier)).unwrap(), 4);
            let error = late.persist(&options(earlier)).unwrap_err();
            assert_eq!(
                matches!(error, Error::Differs { .. }),
                earlier == Earlier::Compared,
                "{error}"
            );
            assert_eq!(fs::read(&path).unwrap(), b"same");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            fs::remove_file(&path).unwrap();
        }
    }
}
