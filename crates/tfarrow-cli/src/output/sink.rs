//! The destination of results: standard output, or a file that gets its name when all results are
//! complete.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    path::Path,
    sync::Arc,
};

use tfarrow_dataset::{OutputFile, internals::Lock};
use tfarrow_report::text::Screen;

use super::{pager::Pager, terminal};

/// Bytes that are written at a time.
const BUFFER: usize = 64 << 10;

/// A writer of results, with a buffer, which the owner has to flush.
pub(crate) type Out = BufWriter<Sink>;

/// The destination of results. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Sink {
    #[default]
    Stdout,
    /// Standard output, or a pager where the text is longer than the screen.
    Pager(Arc<Lock<Pager>>),
    /// A file; `None` after it was persisted.
    File(Arc<Lock<Option<OutputFile>>>),
}

impl Sink {
    /// A file, or an object in a store; standard output for `-`.
    ///
    /// # Errors
    /// The file exists and `overwrite` is `false`, or cannot be created.
    pub(crate) fn of(path: &Path, overwrite: bool) -> tfarrow_dataset::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        Ok(Self::File(Arc::new(Lock::new(Some(OutputFile::create(
            path, overwrite,
        )?)))))
    }

    /// Where one result is written to: a pager, if this is standard output and a terminal.
    pub(crate) fn paged(&self) -> Self {
        match self {
            Self::Stdout => Pager::of_terminal().map_or(Self::Stdout, |pager| {
                Self::Pager(Arc::new(Lock::new(pager)))
            }),
            other => other.clone(),
        }
    }

    /// A writer to it.
    pub(crate) fn writer(&self) -> Out {
        BufWriter::with_capacity(BUFFER, self.clone())
    }

    /// The screen that tables fit.
    pub(crate) fn screen(&self) -> Screen {
        match self {
            Self::Stdout | Self::Pager(_) => terminal::screen(),
            Self::File(_) => Screen::plain(None),
        }
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Pager(_) => true,
            Self::File(_) => false,
        }
    }

    /// Waits until the user closes the pager, if this is one.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(crate) fn show(&self) -> io::Result<()> {
        match self {
            Self::Pager(pager) => pager.lock().finish(),
            Self::Stdout | Self::File(_) => Ok(()),
        }
    }

    /// Gives the file its name. Standard output stays as it is.
    ///
    /// # Errors
    /// The file cannot be written, or exists by now.
    pub(crate) fn persist(&self) -> tfarrow_dataset::Result<()> {
        match self {
            Self::Stdout | Self::Pager(_) => Ok(()),
            Self::File(file) => file.lock().take().map_or(Ok(()), OutputFile::persist),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match self {
            Self::Stdout => return io::stdout().write(bytes),
            Self::Pager(pager) => return pager.lock().write(bytes),
            Self::File(file) => file,
        };
        let mut file = file.lock();
        let Some(file) = file.as_mut() else {
            return Err(io::Error::other("the file is complete"));
        };
        file.write(bytes).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.path().display()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().flush(),
            // The file is written to the disk when it gets its name, and `show` ends the text of a
            // pager.
            Self::Pager(_) | Self::File(_) => Ok(()),
        }
    }
}
