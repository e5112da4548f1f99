//! Writes files and objects that appear under their names only when they are whole, and TFRecord bytes into them.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::write::{GzEncoder, ZlibEncoder};
use object_store::{ObjectStore, path::Path as Key};
use tempfile::{NamedTempFile, TempPath};

use crate::{
    Compression, Error, ErrorKind, Result,
    upload::{Object, object, upload},
};

/// What the names of unfinished files begin with: hidden, so that no source takes them for shards.
pub const UNFINISHED: &str = ".tfarrow-";
const SUFFIX: &str = ".part";

/// A file that is written beside its place and put there once it is whole. Dropped before, it leaves nothing.
///
/// An object in a store is written to a temporary file, and uploaded from there.
#[derive(Debug)]
pub struct OutputFile {
    target: PathBuf,
    /// What it becomes in a store; `None` where it is a file.
    object: Option<Object>,
    temp: NamedTempFile,
    overwrite: bool,
}

impl OutputFile {
    /// Begins the file `target`, a path or the URL of an object, and creates the folders that it is to stand in.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] where a file is there and may not be overwritten, [`ErrorKind::NotAFile`] where a folder or a
    /// device has its name; what the system says. Whether an object is there is asked when it is put there.
    pub fn create(target: impl Into<PathBuf>, overwrite: bool) -> Result<Self> {
        let target = target.into();
        match object(&target)? {
            Some((store, key)) => Self::create_object(store, key, target, overwrite),
            None => Self::create_file(target, None, overwrite),
        }
    }

    /// Begins the file `target`, and has it stand at `part`, in the same folder, until it is put in its place: for who has
    /// to know before where that is.
    ///
    /// # Errors
    /// As [`create`](Self::create), and where something stands at `part`.
    pub fn create_at(target: impl Into<PathBuf>, part: &Path, overwrite: bool) -> Result<Self> {
        Self::create_file(target.into(), Some(part), overwrite)
    }

    fn create_file(target: PathBuf, part: Option<&Path>, overwrite: bool) -> Result<Self> {
        check_target(&target, overwrite)?;
        match begin(&target, part) {
            Ok(temp) => Ok(Self { target, object: None, temp, overwrite }),
            Err(error) => Err(Error::io(target, error)),
        }
    }

    /// Begins the object of this key, whose URL is `target`.
    ///
    /// # Errors
    /// What the system says of the temporary file.
    pub fn create_object(
        store: Arc<dyn ObjectStore>,
        key: Key,
        target: impl Into<PathBuf>,
        overwrite: bool,
    ) -> Result<Self> {
        let temp = NamedTempFile::with_prefix(UNFINISHED).map_err(|error| Error::io(std::env::temp_dir(), error))?;
        Ok(Self { target: target.into(), object: Some((store, key)), temp, overwrite })
    }

    /// Where the file will stand.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Where the file stands until it is put in its place; `None` where it becomes an object.
    pub fn part(&self) -> Option<&Path> {
        self.object.is_none().then(|| self.temp.path())
    }

    /// Ends the file, once the disk has it. It still has to be put in its place.
    ///
    /// # Errors
    /// What the system says. Then nothing is left of it.
    pub fn close(self) -> Result<WholeFile> {
        let Self { target, object, temp, overwrite } = self;
        let synced = temp.as_file().sync_all().and_then(|()| temp.as_file().metadata());
        match synced {
            Ok(metadata) => {
                Ok(WholeFile { target, object, temp: temp.into_temp_path(), overwrite, size: metadata.len() })
            }
            Err(error) => Err(Error::io(target, error)),
        }
    }

    /// Puts the file in its place, once the disk has it.
    ///
    /// # Errors
    /// As [`close`](Self::close) and [`WholeFile::persist`].
    pub fn persist(self) -> Result<()> {
        self.close()?.persist()
    }
}

/// A file that is whole, and not in its place yet. It holds no open file, so that there may be many. Dropped, it leaves
/// nothing.
#[derive(Debug)]
pub struct WholeFile {
    target: PathBuf,
    object: Option<Object>,
    temp: TempPath,
    overwrite: bool,
    size: u64,
}

impl WholeFile {
    /// A file that another run has [left](Self::leave) at `part`, in the folder of `target`.
    ///
    /// # Errors
    /// What the system says.
    pub fn found(part: &Path, target: impl Into<PathBuf>, overwrite: bool) -> Result<Self> {
        let target = target.into();
        let found = fs::metadata(part).and_then(|metadata| Ok((TempPath::try_from_path(part)?, metadata.len())));
        let (temp, size) = found.map_err(|error| Error::io(part, error))?;
        Ok(Self { target, object: None, temp, overwrite, size })
    }

    /// Where the file stands until it is put in its place; `None` where it becomes an object.
    pub fn part(&self) -> Option<&Path> {
        self.object.is_none().then_some(&*self.temp)
    }

    /// Leaves the file where it is, for another run to find. What is to become an object is removed.
    pub fn leave(self) {
        if self.object.is_none() {
            let _ = self.temp.keep();
        }
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] where a file has come to stand there that may not be overwritten; what the system says.
    /// Then nothing is left of it.
    pub fn persist(self) -> Result<()> {
        let Self { target, object, temp, overwrite, .. } = self;
        put(temp, &target, object, overwrite)
    }

    /// Puts the file in its place under another name than it was created for. Both are in one folder, or both are
    /// objects: a file is moved, never copied.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub fn persist_as(self, target: &Path) -> Result<()> {
        put(self.temp, target, object(target)?, self.overwrite)
    }
}

/// Uploads a file that becomes an object, and moves another.
fn put(temp: TempPath, target: &Path, object: Option<Object>, overwrite: bool) -> Result<()> {
    if let Some(object) = object {
        return upload(&temp, target, object, overwrite);
    }
    let placed = if overwrite { replace(temp, target) } else { place(temp, target) };
    match placed {
        Ok(()) => {
            sync_folder(target);
            Ok(())
        }
        Err(error) if !overwrite && error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Error::new(target, ErrorKind::Exists))
        }
        Err(error) => Err(Error::io(target, error)),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.as_file_mut().write(bytes).map_err(|error| match self.object.is_some() {
            // It is not the store that is full.
            true => io::Error::new(error.kind(), format!("{error}, in {}", self.temp.path().display())),
            false => error,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.as_file_mut().flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.temp.as_file_mut().seek(position)
    }
}

fn check_target(target: &Path, overwrite: bool) -> Result<()> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(target, error)),
        // A rename replaces whatever has the name. That is never meant for a folder, a pipe or a device.
        Ok(_) if fs::metadata(target).is_ok_and(|metadata| !metadata.is_file()) => {
            Err(Error::new(target, ErrorKind::NotAFile))
        }
        Ok(_) if overwrite => Ok(()),
        Ok(_) => Err(Error::new(target, ErrorKind::Exists)),
    }
}

fn begin(target: &Path, part: Option<&Path>) -> io::Result<NamedTempFile> {
    let folder = folder_of(target);
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    match part.and_then(Path::file_name) {
        Some(name) => builder.prefix(name).rand_bytes(0),
        None => builder.prefix(UNFINISHED).suffix(SUFFIX),
    };
    // Temporary files are private by default; this one is to be like any file that is created, as the umask says.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn replace(temp: TempPath, target: &Path) -> io::Result<()> {
    temp.persist(target).map_err(|error| error.error)
}

/// Gives the file its name unless another has it. Not every file system can do this in one step.
fn place(temp: TempPath, target: &Path) -> io::Result<()> {
    match temp.persist_noclobber(target) {
        Ok(()) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(error.error),
        Err(_) if fs::symlink_metadata(target).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => replace(error.path, target),
    }
}

/// Has the disk note the new name. Not every file system can, and the file itself is safe already.
fn sync_folder(target: &Path) {
    if let Ok(folder) = File::open(folder_of(target)) {
        folder.sync_all().ok();
    }
}

/// Writes the bytes of TFRecord frames, compressed or not.
pub struct ShardWriter<W: Write> {
    sink: Sink<W>,
}

enum Sink<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zlib(ZlibEncoder<W>),
}

impl<W: Write> ShardWriter<W> {
    /// Writes to `sink`, compressed as TensorFlow does it: at zlib's own level.
    pub fn new(sink: W, compression: Compression) -> Self {
        let level = flate2::Compression::default();
        let sink = match compression {
            Compression::None => Sink::Plain(sink),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(sink, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(sink, level)),
        };
        Self { sink }
    }

    /// The sink, which has what is compressed so far.
    pub fn get_mut(&mut self) -> &mut W {
        match &mut self.sink {
            Sink::Plain(sink) => sink,
            Sink::Gzip(encoder) => encoder.get_mut(),
            Sink::Zlib(encoder) => encoder.get_mut(),
        }
    }

    /// Writes what is left, and hands back the sink. Without it a compressed shard is cut off.
    ///
    /// # Errors
    /// What the sink says.
    pub fn finish(self) -> io::Result<W> {
        match self.sink {
            Sink::Plain(mut sink) => {
                sink.flush()?;
                Ok(sink)
            }
            Sink::Gzip(encoder) => encoder.finish(),
            Sink::Zlib(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for ShardWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Plain(sink) => sink.write(bytes),
            Sink::Gzip(sink) => sink.write(bytes),
            Sink::Zlib(sink) => sink.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(sink) => sink.flush(),
            Sink::Gzip(sink) => sink.flush(),
            Sink::Zlib(sink) => sink.flush(),
        }
    }
}

impl<W: Write> fmt::Debug for ShardWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compression = match self.sink {
            Sink::Plain(_) => Compression::None,
            Sink::Gzip(_) => Compression::Gzip,
            Sink::Zlib(_) => Compression::Zlib,
        };
        f.debug_struct("ShardWriter").field("compression", &compression).finish_non_exhaustive()
    }
}
