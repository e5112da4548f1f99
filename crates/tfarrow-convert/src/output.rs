//! Outputs: where the bytes of a file go, before it has its name and after.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tfarrow_dataset::{OutputFile, WholeFile};
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result, journal::Journal, present::PresentFile};

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    /// The stream of the conversion's options.
    Stream,
}

impl Destination {
    /// Its path; `None` for a stream.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stream => None,
        }
    }

    /// Its name in errors.
    pub(crate) fn name(&self) -> &Path {
        self.file().unwrap_or(Path::new("standard output"))
    }
}

/// A stream that takes the output of a conversion to `-`, such as standard output. Clones share it.
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

/// An output that takes bytes: a file that gets its name once it is complete, an existing file whose bytes are compared, or
/// a stream.
pub(crate) enum Output {
    /// With the hash of the bytes that it has taken.
    File(OutputFile, Box<Xxh3>),
    Present(PresentFile),
    /// With the number of bytes that it has taken.
    Stream(OutputStream, u64),
}

/// How the outputs of a job are opened.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Whether an existing file is replaced.
    pub(crate) overwrite: bool,
    /// Takes the output whose destination is a stream.
    pub(crate) stream: Option<OutputStream>,
}

impl Output {
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
            && let Some(present) = PresentFile::open(path)?
        {
            return Ok(Self::Present(present));
        }
        let file = match journal {
            Some(journal) => OutputFile::create_at(path, &journal.begin(path)?, *overwrite)?,
            None => OutputFile::create(path, *overwrite)?,
        };
        Ok(Self::File(file, Box::default()))
    }

    /// Ends the output, which has taken all bytes.
    pub(crate) fn close(self) -> Result<ClosedOutput> {
        match self {
            Self::File(file, hash) => Ok(ClosedOutput::File(file.close()?, hash.digest())),
            Self::Present(file) => file.close().map(ClosedOutput::Named),
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
                hash.update(bytes.get(..count).unwrap_or_default());
                Ok(count)
            }
            Self::Present(file) => file.write(bytes),
            Self::Stream(stream, taken) => {
                let count = stream.write(bytes)?;
                *taken += count as u64;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Present(file) => file.flush(),
            Self::Stream(stream, _) => stream.flush(),
        }
    }
}

/// An output that has all its bytes.
pub(crate) enum ClosedOutput {
    /// A file without its name, and the hash of its bytes.
    File(WholeFile, u64),
    /// So many bytes that need no name: of a file that had it before, or of a stream.
    Named(u64),
}

impl ClosedOutput {
    /// Keeps a file without its name on the disk, for a resumed run.
    pub(crate) fn keep_uncommitted(self) {
        if let Self::File(file, _) = self {
            file.leave();
        }
    }

    /// Gives a file the name `destination`, in the folder that it was created in. Returns the bytes of the output.
    pub(crate) fn persist(self, destination: &Destination) -> Result<u64> {
        match (self, destination.file()) {
            (Self::File(file, _), Some(path)) => {
                let size = file.size();
                file.persist_as(path)?;
                Ok(size)
            }
            (Self::File(file, _), None) => {
                debug_assert!(false, "a stream is no file");
                Ok(file.size())
            }
            (Self::Named(bytes), _) => Ok(bytes),
        }
    }
}
