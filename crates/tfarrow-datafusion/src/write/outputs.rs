//! The output files of a statement. Each is written to a temporary file, next to its final path or
//! locally for a store, and gets its name, or is uploaded, after all files of the statement are
//! complete.

use std::{
    fs::File,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use datafusion::{
    common::runtime::JoinSet,
    error::{DataFusionError, Result},
    execution::object_store::ObjectStoreUrl,
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};
use tfarrow_dataset::{CompleteFile, Error, ErrorKind, OutputFile};

use crate::{blocking::blocking, error::external, write::output_folder::OutputFolder};

/// The file system or object store that a statement writes to.
#[derive(Clone, Debug)]
pub struct OutputStore {
    url: ObjectStoreUrl,
    store: Arc<dyn ObjectStore>,
    /// Whether existing files may be replaced.
    overwrite: bool,
}

impl OutputStore {
    /// Outputs in `store`, whose URL is `url`.
    pub fn new(url: ObjectStoreUrl, store: Arc<dyn ObjectStore>, overwrite: bool) -> Self {
        Self {
            url,
            store,
            overwrite,
        }
    }

    /// The local file of a path; `None` for an object store.
    fn file(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        let is_local = self.url.as_str().starts_with("file:");
        let file = is_local
            .then(|| LocalFileSystem::new().path_to_filesystem(path))
            .transpose();
        file.map_err(|error| Error::io(self.url_of(path), error.into()))
    }

    fn url_of(&self, path: &Path) -> String {
        format!("{}{path}", self.url.as_str())
    }

    /// The name of a path in messages: a file name, or a URL.
    pub(crate) fn name(&self, path: &Path) -> String {
        match self.file(path) {
            Ok(Some(file)) => file.display().to_string(),
            _ => self.url_of(path),
        }
    }

    /// Returns an error if `path` exists and may not be replaced, so that it is reported before the
    /// query runs.
    pub async fn refuse_existing(&self, path: &Path) -> Result<(), Error> {
        if self.overwrite {
            return Ok(());
        }
        let is_there = match self.file(path)? {
            Some(file) => file.exists(),
            // Other errors of the store are reported by the upload, because some credentials permit
            // writing only.
            None => self.store.head(path).await.is_ok(),
        };
        if is_there {
            Err(Error::new(self.name(path), ErrorKind::Exists))
        } else {
            Ok(())
        }
    }

    /// The sorted names of the files in a folder; none if the folder cannot be listed, because it
    /// may not exist yet.
    pub(crate) async fn names_in(&self, folder: &Path) -> Vec<String> {
        let listed = self.store.list_with_delimiter(Some(folder)).await;
        let objects = listed.map(|listed| listed.objects).unwrap_or_default();
        let mut names: Vec<_> = objects
            .iter()
            .filter_map(|o| Some(o.location.filename()?.to_owned()))
            .collect();
        names.sort_unstable();
        names
    }

    /// The files of earlier statements in a folder.
    ///
    /// # Errors
    /// The folder cannot be listed. One that does not exist has no files.
    async fn earlier(&self, folder: &OutputFolder) -> Result<Vec<Path>, Error> {
        let mut listed = self.store.list(Some(&folder.path));
        let mut earlier = Vec::new();
        loop {
            match listed.try_next().await {
                Ok(Some(object)) => earlier
                    .extend(Some(object.location).filter(|path| folder.is_of_statement(path))),
                Ok(None) | Err(object_store::Error::NotFound { .. }) => break,
                Err(error) => return Err(Error::io(self.name(&folder.path), error.into())),
            }
        }
        earlier.sort_unstable();
        Ok(earlier)
    }

    /// Returns an error if the folder has files of earlier statements, and these may not be
    /// replaced, so that it is reported before the query runs.
    pub async fn refuse_earlier(&self, folder: &OutputFolder) -> Result<(), Error> {
        if self.overwrite {
            return Ok(());
        }
        match self.earlier(folder).await?.first() {
            Some(file) => Err(Error::new(self.name(file), ErrorKind::Exists)),
            None => Ok(()),
        }
    }

    /// Removes a file of an earlier statement.
    async fn remove(&self, path: &Path) -> Result<(), Error> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Error::io(self.name(path), error.into())),
        }
    }

    /// Locks a folder of this machine, so that statements of several processes give files in it
    /// their names one after the other. There is no lock if the file system has none.
    async fn lock(&self, folder: &OutputFolder) -> Option<File> {
        let path = self.file(&folder.path).ok().flatten()?;
        let locked = blocking(move || {
            let file = File::open(path).map_err(DataFusionError::from)?;
            file.lock().map_err(DataFusionError::from)?;
            Ok(file)
        });
        locked.await.ok()
    }

    /// Creates the output file for this path. Whether an object exists is checked again by the
    /// upload.
    pub fn create(&self, path: &Path) -> Result<OutputFile, Error> {
        match self.file(path)? {
            Some(file) => OutputFile::create(file, self.overwrite),
            None => OutputFile::create_object(
                Arc::clone(&self.store),
                path.clone(),
                self.url_of(path),
                self.overwrite,
            ),
        }
    }
}

/// Renames or uploads the files of a statement to their final paths in a folder. The files of
/// earlier statements there are an error, or are replaced as a whole.
pub async fn persist_in(
    folder: &OutputFolder,
    store: &OutputStore,
    files: Vec<CompleteFile>,
) -> Result<()> {
    let lock = store.lock(folder).await;
    store.refuse_earlier(folder).await.map_err(external)?;
    let mut replaced = store.earlier(folder).await.map_err(external)?;
    replaced.retain(|path| {
        !files
            .iter()
            .any(|file| file.target() == FilePath::new(&store.name(path)))
    });
    let mut files = files;
    files.sort_unstable_by(|a, b| a.target().cmp(b.target()));
    // Of statements that write to the folder of a store at the same time, the one that creates the
    // first file goes on.
    let rest = files.split_off(files.len().min(1));
    persist(files).await?;
    persist(rest).await?;
    for path in &replaced {
        store.remove(path).await.map_err(external)?;
    }
    drop(lock);
    Ok(())
}

/// Renames or uploads the files to their final paths. If one fails, the error includes the number
/// of files that did not.
pub async fn persist(files: Vec<CompleteFile>) -> Result<()> {
    let mut tasks = JoinSet::new();
    let all = files.len();
    for file in files {
        // Renames and uploads block.
        tasks.spawn_blocking(move || file.persist());
    }
    // Renames and uploads that have started cannot be cancelled, so that all of them are awaited.
    let mut complete = 0;
    let mut first = None;
    while let Some(done) = tasks.join_next().await {
        let done = done.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
        match done.and_then(|persisted| persisted.map_err(external)) {
            Ok(()) => complete += 1,
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(error) if complete == 0 => Err(error),
        Some(error) => Err(error.context(format!(
            "{complete} of {all} files of the statement have been written"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// With one blocking thread, the first file fails before the others start.
    #[test]
    fn a_file_that_cannot_be_renamed_is_named_and_the_others_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |index| folder.path().join(format!("{index}.csv"));
        let files = (0..9).map(|index| {
            let mut file = OutputFile::create(path(index), false).unwrap();
            file.write_all(b"1").unwrap();
            file.close().unwrap()
        });
        let files: Vec<_> = files.collect();
        std::fs::write(path(0), "another's").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let error = runtime
            .block_on(persist(files))
            .unwrap_err()
            .strip_backtrace();
        assert!(
            error.contains("8 of 9 files of the statement") && error.contains("0.csv"),
            "{error}"
        );
        for index in 0..9 {
            let expect = if index == 0 { "another's" } else { "1" };
            assert_eq!(std::fs::read_to_string(path(index)).unwrap(), expect);
        }
    }
}
