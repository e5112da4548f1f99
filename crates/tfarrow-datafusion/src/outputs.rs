//! Where the files of a statement go: each is written beside its place, or to a temporary file where that is in a store,
//! and put there when all of the statement are whole.

use std::sync::Arc;

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

    fn is_local(&self) -> bool {
        self.url.as_str().starts_with("file:")
    }

    /// What messages call a path: as a file's, or as a URL.
    pub(crate) fn name(&self, path: &Path) -> String {
        match self.is_local().then(|| LocalFileSystem::new().path_to_filesystem(path)) {
            Some(Ok(file)) => file.display().to_string(),
            _ => format!("{}{path}", self.url.as_str()),
        }
    }

    /// An error where `path` is there and may not be replaced, so that it is said before a query runs for hours.
    pub(crate) async fn refuse_existing(&self, path: &Path) -> Result<(), Error> {
        if self.overwrite {
            return Ok(());
        }
        if self.is_local() {
            let file = LocalFileSystem::new().path_to_filesystem(path).map_err(|error| self.failed(path, error))?;
            return if file.exists() { Err(Error::new(file, ErrorKind::Exists)) } else { Ok(()) };
        }
        match self.store.head(path).await {
            Ok(_) => Err(Error::new(self.name(path), ErrorKind::Exists)),
            // What is wrong with the store is said when something is to be put there: some only take.
            Err(_) => Ok(()),
        }
    }

    /// The names of the files in a folder, in their order; none where it cannot be listed: it may not be there yet.
    pub(crate) async fn names_in(&self, folder: &Path) -> Vec<String> {
        let listed = self.store.list_with_delimiter(Some(folder)).await;
        let objects = listed.map(|listed| listed.objects).unwrap_or_default();
        let mut names: Vec<_> = objects.iter().filter_map(|o| Some(o.location.filename()?.to_owned())).collect();
        names.sort_unstable();
        names
    }

    /// Begins the file of this path.
    pub(crate) async fn create(&self, path: &Path) -> Result<OutputFile, Error> {
        if self.is_local() {
            let file = LocalFileSystem::new().path_to_filesystem(path).map_err(|error| self.failed(path, error))?;
            return OutputFile::create(file, self.overwrite);
        }
        self.refuse_existing(path).await?;
        OutputFile::create_object(Arc::clone(&self.store), path.clone(), self.name(path), self.overwrite)
    }

    fn failed(&self, path: &Path, error: object_store::Error) -> Error {
        Error::io(self.name(path), error.into())
    }
}

/// Puts the files in their places.
pub(crate) async fn persist(files: Vec<WholeFile>) -> Result<()> {
    let mut tasks = JoinSet::new();
    for file in files {
        // Disks and stores are waited for.
        tasks.spawn_blocking(move || file.persist());
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?.map_err(external)?;
    }
    Ok(())
}
