//! Lock files: hidden files beside the outputs, which a run locks so that a second run is rejected.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
};

/// Opens the file `path`, creates it if it does not exist, and locks it. The operating system
/// releases the lock when the process ends. `None` if another process holds the lock.
///
/// Another user may have created something else under this name. Symbolic links are therefore not
/// followed, and opening a pipe does not wait for its other end.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the path is not a regular file; I/O errors.
pub(crate) fn open_locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some file systems have no locks.
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // The process that held the lock may have removed the file between the two calls. Then the
        // lock is on a file without a name.
        if is_same_file(&file, path) {
            return Ok(Some(file));
        }
    }
}

/// Opens a regular file for reading and writing, and creates it if it does not exist.
fn open(path: &Path) -> io::Result<File> {
    let not_regular = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "is not a regular file of tfarrow; remove it",
        )
    };
    // The type is checked before the file is opened, since opening a device may have effects. The
    // flags below cover a change between the two calls.
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(not_regular());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_regular())
    }
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_cannot_be_opened_until_the_lock_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = open_locked(&path).unwrap().unwrap();
        assert!(open_locked(&path).unwrap().is_none());
        drop(first);
        assert!(open_locked(&path).unwrap().is_some());
    }

    #[test]
    #[cfg(unix)]
    fn pipes_links_devices_and_folders_are_rejected_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(place("pipe"))
                .status()
                .unwrap()
                .success()
        );
        fs::write(place("victim"), "victim").unwrap();
        std::os::unix::fs::symlink(place("victim"), place("link")).unwrap();
        std::os::unix::fs::symlink(place("nothing"), place("dangling")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place("device")).unwrap();
        fs::create_dir(place("folder")).unwrap();
        for name in ["pipe", "link", "dangling", "device", "folder"] {
            let error = open_locked(&place(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(place("victim")).unwrap(), "victim");
        assert!(!place("nothing").exists());
    }
}
