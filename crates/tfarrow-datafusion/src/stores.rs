//! The object stores of a session: those that were registered, and for any other URL the one that it says.

use std::sync::Arc;

use datafusion::{
    error::Result,
    execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry},
};
use object_store::ObjectStore;
use tfarrow_dataset::store_of;
use url::Url;

use crate::error::external;

/// Finds stores by URL, so that also DataFusion's own formats, and COPY, know `s3://` without being told.
#[derive(Debug, Default)]
pub(crate) struct Stores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Stores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        // What was registered comes first.
        self.0.get_store(url).or_else(|_| store_of(url.as_str()).map_err(external))
    }
}
