//! The outputs of jobs: files that get their names when they are complete, existing files, and streams.
//!
//! ```text
//! Destination ─▶ Output: takes bytes ─▶ ClosedOutput: complete ─▶ persist: the file gets its name
//! ```

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tfarrow_columnar::checksums::transferred;
use tfarrow_dataset::{CompleteFile, OutputFile};
use xxhash_rust::xxh3::Xxh3;

use self::existing_file::ExistingFile;
use crate::{Error, Result, journal::Journal};

pub(crate) mod existing_file;
pub(crate) mod ordered;

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
pub struct OutputStream(Arc<Mutex<dyn io::Write + Send>>);

impl OutputStream {
    /// A stream that writes to `stream`.
    pub fn new(stream: impl io::Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

impl fmt::Debug for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputStream")
    }
}

impl io::Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// An output that takes bytes.
pub(crate) enum Output {
    /// A file that gets its name after it is complete, and the hash of its bytes so far.
    File(OutputFile, Box<Xxh3>),
    /// An existing file whose bytes are compared.
    Existing(ExistingFile),
    /// A stream, and the number of bytes that were written to it.
    Stream(OutputStream, u64),
}

/// How the outputs of a job are opened.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Whether an existing file is replaced.
    pub(crate) overwrite: bool,
    /// The stream of [`Destination::Stream`].
    pub(crate) stream: Option<OutputStream>,
}

impl Output {
    /// Opens an output. With a journal, the journal lists its unfinished file.
    ///
    /// # Errors
    /// A file that exists and is not replaced, a stream that is missing in the options, and I/O errors.
    pub(crate) fn create(
        destination: &Destination,
        OutputOptions { overwrite, stream }: &OutputOptions,
        journal: Option<&Journal>,
    ) -> Result<Self> {
        let path = match (destination, stream) {
            (Destination::File(path), _) => path,
            (Destination::Stream, Some(stream)) => return Ok(Self::Stream(stream.clone(), 0)),
            (Destination::Stream, None) => {
                return Err(Error::Usage("the destination `-` needs a stream in the options".to_owned()));
            }
        };
        if journal.is_some_and(Journal::resumes)
            && !overwrite
            && let Some(existing) = ExistingFile::open(path)?
        {
            return Ok(Self::Existing(existing));
        }
        let file = match journal {
            Some(journal) => OutputFile::create_at(path, &journal.start_output(path)?, *overwrite)?,
            None => OutputFile::create(path, *overwrite)?,
        };
        Ok(Self::File(file, Box::default()))
    }

    /// Completes the output after its last byte.
    ///
    /// # Errors
    /// [`Error::Differs`] for an existing file that is longer, and I/O errors.
    pub(crate) fn close(self) -> Result<ClosedOutput> {
        match self {
            Self::File(file, hash) => Ok(ClosedOutput::File(file.close()?, hash.digest())),
            Self::Existing(file) => file.close().map(ClosedOutput::Named),
            Self::Stream(mut stream, bytes) => {
                io::Write::flush(&mut stream).map_err(|e| Error::io(Destination::Stream.name(), e))?;
                Ok(ClosedOutput::Named(bytes))
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
    /// The number of bytes of an existing file, which has its name, or of a stream.
    Named(u64),
}

impl ClosedOutput {
    /// Keeps a file that has no name yet on the disk, for a resumed run.
    pub(crate) fn keep_uncommitted(self) {
        if let Self::File(file, _) = self {
            file.leave();
        }
    }

    /// Gives a file the name `destination`, which must be in the folder of the file. Returns the bytes of the output.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn persist(self, destination: &Destination) -> Result<u64> {
        match (self, destination.file()) {
            (Self::File(file, _), Some(path)) => {
                let size = file.size();
                file.persist_as(path)?;
                Ok(size)
            }
            (Self::File(file, _), None) => {
                debug_assert!(false, "the output of a stream is not a file");
                Err(Error::Usage(format!("internal error: a file of {} bytes has no name", file.size())))
            }
            (Self::Named(bytes), _) => Ok(bytes),
        }
    }
}
