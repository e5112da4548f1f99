//! The object stores of a session: registered stores first, then stores that are opened by the URL.

use std::sync::Arc;

use datafusion::{
    error::Result,
    execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry},
};
use object_store::ObjectStore;
use tfarrow_datafusion::internals::external;
use tfarrow_dataset::internals::store_of;
use url::Url;

/// A registry that opens stores by URL, so that DataFusion's own formats, and COPY, can use `s3://`
/// without registration.
#[derive(Debug, Default)]
pub(crate) struct UrlStores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for UrlStores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        // Registered stores take precedence.
        self.0
            .get_store(url)
            .or_else(|_| store_of(url.as_str()).map_err(external))
    }
}
