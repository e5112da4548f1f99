//! Where the files of a statement go: each is written beside its place, or to a temporary file where that is in a store,
//! and put there when all of the statement are whole.

use std::{path::PathBuf, sync::Arc};

use datafusion::{
    common::runtime::JoinSet,
    error::{DataFusionError, Result},
    execution::object_store::ObjectStoreUrl,
};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};
use tfarrow_dataset::{Error, ErrorKind, OutputFile, WholeFile};

use crate::error::external;

/// A file system, or a store.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    url: ObjectStoreUrl,
    store: Arc<dyn ObjectStore>,
    /// Whether files that are there may be replaced.
    overwrite: bool,
}

impl Outputs {
    /// In `store`, which `url` names.
    pub(crate) fn new(url: ObjectStoreUrl, store: Arc<dyn ObjectStore>, overwrite: bool) -> Self {
        Self { url, store, overwrite }
    }

    /// The file that a path is of; `None` in a store.
    fn file(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        let is_local = self.url.as_str().starts_with("file:");
        let file = is_local.then(|| LocalFileSystem::new().path_to_filesystem(path)).transpose();
        file.map_err(|error| Error::io(self.url_of(path), error.into()))
    }

    fn url_of(&self, path: &Path) -> String {
        format!("{}{path}", self.url.as_str())
    }

    /// What messages call a path: as a file's, or as a URL.
    pub(crate) fn name(&self, path: &Path) -> String {
        match self.file(path) {
            Ok(Some(file)) => file.display().to_string(),
            _ => self.url_of(path),
        }
    }

    /// An error where `path` is there and may not be replaced, so that it is said before a query runs for hours.
    pub(crate) async fn refuse_existing(&self, path: &Path) -> Result<(), Error> {
        if self.overwrite {
            return Ok(());
        }
        let is_there = match self.file(path)? {
            Some(file) => file.exists(),
            // What is wrong with the store is said when something is to be put there: some only take.
            None => self.store.head(path).await.is_ok(),
        };
        if is_there { Err(Error::new(self.name(path), ErrorKind::Exists)) } else { Ok(()) }
    }

    /// The names of the files in a folder, in their order; none where it cannot be listed: it may not be there yet.
    pub(crate) async fn names_in(&self, folder: &Path) -> Vec<String> {
        let listed = self.store.list_with_delimiter(Some(folder)).await;
        let objects = listed.map(|listed| listed.objects).unwrap_or_default();
        let mut names: Vec<_> = objects.iter().filter_map(|o| Some(o.location.filename()?.to_owned())).collect();
        names.sort_unstable();
        names
    }

    /// Begins the file of this path. Whether an object is there is asked once more when it is put there.
    pub(crate) fn create(&self, path: &Path) -> Result<OutputFile, Error> {
        match self.file(path)? {
            Some(file) => OutputFile::create(file, self.overwrite),
            None => OutputFile::create_object(Arc::clone(&self.store), path.clone(), self.url_of(path), self.overwrite),
        }
    }
}

/// Puts the files in their places. Where one cannot be put there, the error says how many others are there.
pub(crate) async fn persist(files: Vec<WholeFile>) -> Result<()> {
    let (mut tasks, all) = (JoinSet::new(), files.len());
    for file in files {
        // Disks and stores are waited for.
        tasks.spawn_blocking(move || file.persist());
    }
    // A file that is on its way cannot be called back, so that all are waited for.
    let (mut whole, mut first) = (0, None);
    while let Some(done) = tasks.join_next().await {
        let done = done.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
        match done.and_then(|persisted| persisted.map_err(external)) {
            Ok(()) => whole += 1,
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(error) if whole == 0 => Err(error),
        Some(error) => {
            Err(error.context(format!("{whole} of {all} files of the statement are whole and in their places")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// With one thread for the disk, the first file fails while all others wait for their turn.
    #[test]
    fn a_file_that_cannot_be_put_there_stops_no_other_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |index| folder.path().join(format!("{index}.csv"));
        let files = (0..9).map(|index| {
            let mut file = OutputFile::create(path(index), false).unwrap();
            file.write_all(b"1").unwrap();
            file.close().unwrap()
        });
        let files: Vec<_> = files.collect();
        std::fs::write(path(0), "another's").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let error = runtime.block_on(persist(files)).unwrap_err().strip_backtrace();
        assert!(error.contains("8 of 9 files of the statement") && error.contains("0.csv"), "{error}");
        for index in 0..9 {
            let expect = if index == 0 { "another's" } else { "1" };
            assert_eq!(std::fs::read_to_string(path(index)).unwrap(), expect);
        }
    }
}
