//! Hidden files beside the outputs that one run holds locked, so that a second run is refused.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
};

/// Opens the file at `path`, which is created where there is none, and locks it. The system drops the lock when its holder
/// ends or dies. `None` where another process holds the lock.
///
/// Any user may have put something else under the name: symbolic links are not followed, and nothing waits for the other
/// end of a pipe.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where the path is not a regular file; system errors.
pub(crate) fn open_locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Not every file system has locks.
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // The last holder may have removed the file between the two calls; then another file has the name, or none.
        if is_same_file(&file, path) {
            return Ok(Some(file));
        }
    }
}

/// Opens a regular file for reading and writing, and creates it where there is none.
fn open(path: &Path) -> io::Result<File> {
    let not_ours = || io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file of tfarrow; remove it");
    // A look before the file is opened, since opening a device may have effects; the flags cover the time in between.
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(not_ours());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_ours()) }
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
    fn a_second_holder_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = open_locked(&path).unwrap().unwrap();
        assert!(open_locked(&path).unwrap().is_none());
        drop(first);
        assert!(open_locked(&path).unwrap().is_some());
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_or_a_link_in_place_of_the_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(place("pipe")).status().unwrap().success());
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
