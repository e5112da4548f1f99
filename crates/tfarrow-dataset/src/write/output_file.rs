//! Output files and objects that get their names only when they are complete.
//!
//! ```text
//! OutputFile ── close ─▶ CompleteFile ── persist ─▶ file, by a rename
//! temporary file         on the disk            └─▶ object, by an upload
//! ```

use std::{
    fs::{self, File},
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, path::Path as Key};
use tempfile::{NamedTempFile, TempPath};

use crate::{
    Error, ErrorKind, Result,
    store::upload::{OutputObject, output_object, upload},
};

/// Prefix of the names of temporary files. It begins with a dot, so that sources skip them.
pub const UNFINISHED: &str = ".tfarrow-";
/// Suffix of the names of temporary files.
const SUFFIX: &str = ".part";

/// An output that is written to a temporary file, in the folder of the target, and renamed when it
/// is complete. If it is dropped before, the temporary file is removed.
///
/// An object in a store is written to a temporary file of this machine, and uploaded from there.
#[derive(Debug)]
pub struct OutputFile {
    target: PathBuf,
    /// The place in a store; `None` for a file.
    object: Option<OutputObject>,
    temp: NamedTempFile,
    overwrite: bool,
}

impl OutputFile {
    /// Creates the temporary file for `target`, a path or the URL of an object, and the folders of
    /// a path.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if the file exists and `overwrite` is `false`, [`ErrorKind::NotAFile`]
    /// if `target` is a folder or a device, or an I/O error. Whether an object exists is checked by
    /// [`persist`](Self::persist).
    pub fn create(target: impl Into<PathBuf>, overwrite: bool) -> Result<Self> {
        let target = target.into();
        match output_object(&target)? {
            Some((store, key)) => Self::create_object(store, key, target, overwrite),
            None => Self::create_file(target, None, overwrite),
        }
    }

    /// Creates the temporary file for the file `target` at the path `part`, in the same folder: for
    /// callers that record the path before the file is created.
    ///
    /// # Errors
    /// As [`create`](Self::create), and a file exists at `part`.
    pub fn create_at(target: impl Into<PathBuf>, part: &Path, overwrite: bool) -> Result<Self> {
        Self::create_file(target.into(), Some(part), overwrite)
    }

    /// Creates the temporary file for `target` as one of several attempts, perhaps of other
    /// machines at the same time. Its name is random after `prefix`, which must begin with
    /// [`UNFINISHED`]. An object has a temporary file as others do.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_attempt(
        target: impl Into<PathBuf>,
        prefix: &str,
        overwrite: bool,
    ) -> Result<Self> {
        let target = target.into();
        match output_object(&target)? {
            Some((store, key)) => Self::create_object(store, key, target, overwrite),
            None => Self::create_named(
                target,
                tempfile::Builder::new().prefix(prefix).suffix(SUFFIX),
                overwrite,
            ),
        }
    }

    fn create_file(target: PathBuf, part: Option<&Path>, overwrite: bool) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        match part.and_then(Path::file_name) {
            Some(name) => builder.prefix(name).rand_bytes(0),
            None => builder.prefix(UNFINISHED).suffix(SUFFIX),
        };
        Self::create_named(target, &mut builder, overwrite)
    }

    fn create_named(
        target: PathBuf,
        builder: &mut tempfile::Builder<'_, '_>,
        overwrite: bool,
    ) -> Result<Self> {
        check_target(&target, overwrite)?;
        match create_temporary(&target, builder) {
            Ok(temp) => Ok(Self {
                target,
                object: None,
                temp,
                overwrite,
            }),
            Err(error) => Err(Error::io(target, error)),
        }
    }

    /// Creates the temporary file for the object with this key, whose URL is `target`.
    ///
    /// # Errors
    /// The temporary file cannot be created.
    pub fn create_object(
        store: Arc<dyn ObjectStore>,
        key: Key,
        target: impl Into<PathBuf>,
        overwrite: bool,
    ) -> Result<Self> {
        let temp = NamedTempFile::with_prefix(UNFINISHED)
            .map_err(|error| Error::io(std::env::temp_dir(), error))?;
        Ok(Self {
            target: target.into(),
            object: Some((store, key)),
            temp,
            overwrite,
        })
    }

    /// The path, or the URL, that the output will have.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// The path of the temporary file; `None` if the output is an object.
    pub fn part(&self) -> Option<&Path> {
        self.object.is_none().then(|| self.temp.path())
    }

    /// Writes the file to the disk and closes it. It does not have its name yet.
    ///
    /// # Errors
    /// An I/O error. The temporary file is removed.
    pub fn close(self) -> Result<CompleteFile> {
        let Self {
            target,
            object,
            temp,
            overwrite,
        } = self;
        let synced = temp
            .as_file()
            .sync_all()
            .and_then(|()| temp.as_file().metadata());
        match synced {
            Ok(metadata) => {
                let temp = temp.into_temp_path();
                let size = metadata.len();
                Ok(CompleteFile {
                    target,
                    object,
                    temp,
                    overwrite,
                    size,
                    note: None,
                })
            }
            Err(error) => Err(Error::io(target, error)),
        }
    }

    /// Writes the file to the disk and gives it its name, or uploads it.
    ///
    /// # Errors
    /// As [`close`](Self::close) and [`CompleteFile::persist`].
    pub fn persist(self) -> Result<()> {
        self.close()?.persist()
    }
}

/// A complete output that does not have its name yet. Its temporary file is closed, so that there
/// may be many of them. If it is dropped, the temporary file is removed.
#[derive(Debug)]
pub struct CompleteFile {
    target: PathBuf,
    object: Option<OutputObject>,
    temp: TempPath,
    overwrite: bool,
    size: u64,
    /// A text for the attributes of an object.
    note: Option<String>,
}

impl CompleteFile {
    /// Returns the complete file that another run has [left](Self::leave) at `part`, in the folder
    /// of `target`.
    ///
    /// # Errors
    /// An I/O error.
    pub fn found(part: &Path, target: impl Into<PathBuf>, overwrite: bool) -> Result<Self> {
        let target = target.into();
        let found = fs::metadata(part)
            .and_then(|metadata| Ok((TempPath::try_from_path(part)?, metadata.len())));
        let (temp, size) = found.map_err(|error| Error::io(part, error))?;
        Ok(Self {
            target,
            object: None,
            temp,
            overwrite,
            size,
            note: None,
        })
    }

    /// The path that the file gets, or the URL of the object.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The path of the temporary file; `None` if the output is an object.
    pub fn part(&self) -> Option<&Path> {
        self.object.is_none().then_some(&*self.temp)
    }

    /// Keeps the temporary file, for another run to [find](Self::found). That of an object is
    /// removed.
    pub fn leave(self) {
        if self.object.is_none() {
            let _ = self.temp.keep();
        }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Sets a note of ASCII text, which an object gets as an attribute. A file has none.
    pub fn set_note(&mut self, note: String) {
        self.note = Some(note);
    }

    /// Gives the file its name, or uploads it.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if the file or object exists and may not be overwritten, an I/O error,
    /// or a request failed. The temporary file is removed.
    pub fn persist(self) -> Result<()> {
        let Self {
            target,
            object,
            temp,
            overwrite,
            note,
            ..
        } = self;
        if let Some(object) = object {
            return upload(&temp, &target, object, overwrite, note);
        }
        let renamed = if overwrite {
            rename(temp, &target)
        } else {
            rename_new(temp, &target)
        };
        match renamed {
            Ok(()) => {
                sync_folder(&target);
                Ok(())
            }
            Err(error) if !overwrite && error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::new(target, ErrorKind::Exists))
            }
            Err(error) => Err(Error::io(target, error)),
        }
    }

    /// Returns the file with another name than the one that it was created for. Both are in the
    /// same folder, or both are objects: files are renamed, never copied.
    ///
    /// # Errors
    /// A URL that cannot be that of an object.
    pub fn with_target(self, target: PathBuf) -> Result<Self> {
        Ok(Self {
            object: output_object(&target)?,
            target,
            ..self
        })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp
            .as_file_mut()
            .write(bytes)
            .map_err(|error| match self.object.is_some() {
                // The disk of the temporary file is full, and not the store.
                true => io::Error::new(
                    error.kind(),
                    format!("{error}, in {}", self.temp.path().display()),
                ),
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
        // A rename would replace a link to a folder, a pipe or a device.
        Ok(_) if fs::metadata(target).is_ok_and(|metadata| !metadata.is_file()) => {
            Err(Error::new(target, ErrorKind::NotAFile))
        }
        Ok(_) if overwrite => Ok(()),
        Ok(_) => Err(Error::new(target, ErrorKind::Exists)),
    }
}

fn create_temporary(
    target: &Path,
    builder: &mut tempfile::Builder<'_, '_>,
) -> io::Result<NamedTempFile> {
    let folder = folder_of(target);
    fs::create_dir_all(folder)?;
    // Temporary files are private by default. An output gets the permissions of other new files,
    // which the umask limits.
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

fn rename(temp: TempPath, target: &Path) -> io::Result<()> {
    temp.persist(target).map_err(|error| error.error)
}

/// Renames the file unless the target exists. Not every file system can do both in one step.
fn rename_new(temp: TempPath, target: &Path) -> io::Result<()> {
    match temp.persist_noclobber(target) {
        Ok(()) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(error.error),
        Err(_) if fs::symlink_metadata(target).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => rename(error.path, target),
    }
}

/// Writes the new name to the disk. Errors are ignored: not every file system supports this, and
/// the data is on the disk.
fn sync_folder(target: &Path) {
    if let Ok(folder) = File::open(folder_of(target)) {
        folder.sync_all().ok();
    }
}
