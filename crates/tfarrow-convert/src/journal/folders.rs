//! Folders that a conversion creates for its outputs, and removes if they remain empty.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// The folders that were created, the deepest first. Dropping this removes those that are empty.
#[derive(Debug)]
pub(crate) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Creates `folder` and its parents if they do not exist.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        check_folder(folder)?;
        let mut missing = Self(Vec::new());
        for parent in folder.ancestors() {
            if parent.as_os_str().is_empty() || parent.exists() {
                break;
            }
            missing.0.push(parent.to_owned());
        }
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        Ok(missing)
    }

    /// The paths of the folders, each after its parent.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().rev().map(PathBuf::as_path)
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Checks that `folder` exists or can be created: its first parent that exists is a folder.
///
/// # Errors
/// An I/O error with the path that is no folder.
pub(crate) fn check_folder(folder: &Path) -> Result<()> {
    let mut parents = folder
        .ancestors()
        .filter(|path| !path.as_os_str().is_empty());
    match parents.find(|path| path.exists()) {
        Some(path) if !path.is_dir() => Err(Error::io(path, io::ErrorKind::NotADirectory.into())),
        Some(_) | None => Ok(()),
    }
}

/// The path without symbolic links; the path itself if it does not exist.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder of the file `path`; `.` if the path has none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
