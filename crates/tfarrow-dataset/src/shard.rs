//! One shard of a data set.

use std::{
    fs::{self, File},
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tempfile::{NamedTempFile, TempPath};

use crate::{Compression, Contents, Error, Payload, Result, contents::Peek, remote::Object};

/// The copies of streams that this program has made. Those that are no longer there do no harm.
static COPIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the copies of what can be read only once: for a program that ends at once, as a signal asks it to.
pub fn remove_copies() {
    for copy in COPIES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(copy);
    }
}

/// The source that is standard input.
pub(crate) const STDIN: &str = "-";

/// One file of a data set, or standard input.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Where it is; `-` for standard input.
    pub path: PathBuf,
    /// Its name in the data set: the path below the folder, or below a glob's fixed part. Never absolute, never with
    /// `..` in it.
    pub name: PathBuf,
    /// Its size in bytes as it is stored; 0 for a stream, whose size is not known.
    pub size: u64,
    /// What it holds. A file that was named as it is, and holds nothing known, is said to be TFRecord: reading it
    /// tells what is wrong.
    pub contents: Contents,
    peek: Peek,
    stream: bool,
    spool: Option<Arc<TempPath>>,
    object: Option<Object>,
}

impl Shard {
    /// A plain file.
    pub fn file(path: PathBuf, name: PathBuf, size: u64, contents: Contents) -> Self {
        let peek = Peek::default();
        Self { path, name, size, contents, peek, stream: false, spool: None, object: None }
    }

    /// Standard input, or what else can be read only once: a pipe, a device.
    pub(crate) fn stream(path: PathBuf, name: PathBuf) -> Self {
        Self { stream: true, ..Self::file(path, name, 0, Contents::TfRecord) }
    }

    /// An object in a store, whose URL is `path`.
    pub(crate) fn remote(path: PathBuf, name: PathBuf, size: u64, contents: Contents, object: Object) -> Self {
        Self { object: Some(object), ..Self::file(path, name, size, contents) }
    }

    /// The same, with what its first bytes tell.
    pub(crate) fn with_peek(self, peek: Peek) -> Self {
        Self { peek, ..self }
    }

    /// Takes what its first bytes tell.
    pub(crate) fn peek(&mut self, peek: Peek) {
        self.peek = peek;
    }

    /// How it is compressed, where the first bytes were read and tell: a sound record follows, or nothing at all.
    pub fn compression(&self) -> Option<Compression> {
        self.peek.compression
    }

    /// The kind of its records, as far as the first bytes were read and tell.
    pub fn payload(&self) -> Payload {
        self.peek.payload
    }

    /// The object that it is, where it lies in a store and its first bytes were not read.
    pub(crate) fn unread_object(&self) -> Option<&Object> {
        self.object.as_ref().filter(|_| self.is_remote() && self.peek.compression.is_none())
    }

    /// Whether it lies in a store, and no copy of it here.
    pub fn is_remote(&self) -> bool {
        self.object.is_some() && self.spool.is_none()
    }

    /// Whether this is standard input, spooled or not.
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new(STDIN)
    }

    /// Whether it can be read only once and from its beginning: standard input or a pipe, not spooled.
    pub fn is_stream(&self) -> bool {
        self.stream && self.spool.is_none()
    }

    /// Whether it is a web server's that others cannot read as they like: one that sends no parts of files, or that was
    /// asked with a query; not spooled.
    pub fn is_odd_object(&self) -> bool {
        self.spool.is_none() && self.object.as_ref().is_some_and(|object| !object.is_plain())
    }

    /// The path of a plain file with the shard's bytes: its own, or that of the copy that [`spool`](Self::spool) made. Of a
    /// shard that is a stream or remote there is none before.
    pub fn local_path(&self) -> &Path {
        self.spool.as_ref().map_or(self.path.as_path(), |temp| temp.as_ref())
    }

    /// Copies a stream, or an odd object, to a temporary file, so that it can be read twice and as one likes; others need no
    /// copy. Says anew what the shard holds and how large it is. The copy is removed with the last clone of the shard.
    ///
    /// # Errors
    /// What the system says.
    pub fn spool(&mut self) -> Result<()> {
        if self.is_stream() || self.is_odd_object() { self.copy() } else { Ok(()) }
    }

    fn copy(&mut self) -> Result<()> {
        let wrap = |error| Error::io(&self.path, error);
        let mut source = self.open().map_err(wrap)?;
        let mut copy = NamedTempFile::with_prefix(".tfarrow-").map_err(wrap)?;
        COPIES.lock().unwrap_or_else(PoisonError::into_inner).push(copy.path().to_owned());
        self.size = io::copy(&mut source, &mut copy).map_err(wrap)?;
        let copy = copy.into_temp_path();
        let by_name = || Contents::of_name(&self.path);
        let (contents, peek) = Contents::look(&copy)?;
        self.contents = contents.or_else(by_name).unwrap_or(Contents::TfRecord);
        self.peek = peek;
        self.spool = Some(Arc::new(copy));
        Ok(())
    }

    /// Copies what holds Parquet or Arrow, which cannot be read from front to back, and is standard input or remote.
    ///
    /// # Errors
    /// What the system says.
    pub fn spool_columnar(&mut self) -> Result<()> {
        if self.is_remote() && self.contents != Contents::TfRecord {
            return self.copy();
        }
        if !self.is_stdin() || !self.is_stream() {
            return Ok(());
        }
        let mut stdin = io::stdin().lock();
        let head = stdin.fill_buf().map_err(|error| Error::io(&self.path, error))?;
        let is_columnar = head.starts_with(b"PAR1") || head.starts_with(b"ARROW1");
        // What was looked at is still there for whoever reads.
        drop(stdin);
        if is_columnar { self.spool() } else { Ok(()) }
    }

    /// Opens it for reading.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        if self.is_stdin() && self.is_stream() {
            return Ok(Box::new(io::stdin()));
        }
        match &self.object {
            Some(object) if self.spool.is_none() => Ok(object.open()),
            _ => Ok(Box::new(File::open(self.local_path())?)),
        }
    }
}
