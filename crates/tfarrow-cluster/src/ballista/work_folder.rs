//! The folder of an executor for shuffles, results and spilled rows.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use tempfile::{Builder, TempDir};

/// The beginning of the name of each folder.
const PREFIX: &str = "executor-";

/// A new folder in the work folder of executors, which is removed at the end of the process. The
/// next executor with the same work folder removes those of processes that were killed.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    folder: TempDir,
    /// The lock of the folder, which ends with the process.
    _lock: File,
}

impl WorkFolder {
    /// Creates a folder in `parent`, which is created as well.
    ///
    /// # Errors
    /// A folder cannot be created, or not be locked.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        // Another process would remove a folder that is not locked yet.
        let start = File::open(parent)?;
        start.lock()?;
        for entry in parent.read_dir()? {
            let entry = entry?;
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PREFIX.as_bytes())
            {
                remove_abandoned(&entry.path());
            }
        }
        let folder = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folder of a process that has ended, if it can be removed.
fn remove_abandoned(folder: &Path) {
    let is_abandoned = File::open(folder).is_ok_and(|lock| lock.try_lock().is_ok());
    if is_abandoned && let Err(error) = fs::remove_dir_all(folder) {
        log::warn!(
            "{}: the folder of an executor that has ended: {error}",
            folder.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_processes_are_removed() {
        let parent = TempDir::new().unwrap();
        let work = parent.path().join("work");
        let first = WorkFolder::create(&work).unwrap();
        let abandoned = work.join("executor-abandoned");
        fs::create_dir_all(abandoned.join("job/1")).unwrap();
        fs::create_dir(work.join("data")).unwrap();
        let second = WorkFolder::create(&work).unwrap();
        assert!(
            first.path().is_dir()
                && second.path().is_dir()
                && work.join("data").is_dir()
                && !abandoned.exists()
        );
        drop((first, second));
        assert_eq!(work.read_dir().unwrap().count(), 1);
    }
}
