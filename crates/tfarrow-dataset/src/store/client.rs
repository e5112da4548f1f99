//! Clients that connect again in each process.

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    path::Path,
};

use crate::{process::PerProcess, store_error::plain};

/// Maximum number of objects that a listing returns.
const MAX_LISTED: usize = 1_000_000;

type Connect = dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync;

/// A client for a store, which objects keep. A client has connections, which tasks of its process
/// serve, and locks; so a forked child needs one of its own.
pub(super) struct StoreClient {
    /// The description of the store.
    name: String,
    connect: Box<Connect>,
    clients: PerProcess<Arc<dyn ObjectStore>>,
}

impl StoreClient {
    /// Creates the client of this process with `connect`, which other processes call at their first
    /// request.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(super) fn open(
        connect: impl Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let client = connect()?;
        let clients = PerProcess::new();
        clients.get(|| Arc::clone(&client));
        Ok(Self {
            name: client.to_string(),
            connect: Box::new(connect),
            clients,
        })
    }

    /// Creates a client of the store `name` that calls `connect` at its first request.
    pub(super) fn deferred(
        name: String,
        connect: impl Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            connect: Box::new(connect),
            clients: PerProcess::new(),
        }
    }

    /// Returns the client of this process.
    fn client(&self) -> Result<&dyn ObjectStore> {
        if let Some(client) = self.clients.existing() {
            return Ok(client.as_ref());
        }
        // If several threads connect at the same time, the first client is kept.
        let client = (self.connect)()?;
        Ok(self.clients.get(|| Arc::clone(&client)).as_ref())
    }
}

/// Returns the names of a listing, and an error if it has more than `most`: it may never end.
fn limited(
    names: BoxStream<'static, Result<ObjectMeta>>,
    most: usize,
) -> BoxStream<'static, Result<ObjectMeta>> {
    names
        .enumerate()
        .map(move |(number, name)| match number < most {
            true => name,
            false => Err(Error::Generic {
                store: "remote",
                source: format!(
                    "more than {most} objects have this prefix: name a folder below it"
                )
                .into(),
            }),
        })
        .boxed()
}

/// Returns a stream that is an error.
fn failed<T: Send + 'static>(error: Error) -> BoxStream<'static, Result<T>> {
    stream::once(future::ready(Err(error))).boxed()
}

impl fmt::Debug for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClient")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

// The default of a method would hide the method of the store.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for StoreClient {
    async fn put_opts(
        &self,
        path: &Path,
        bytes: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.client()?
            .put_opts(path, bytes, options)
            .await
            .map_err(plain)
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.client()?
            .put_multipart_opts(path, options)
            .await
            .map_err(plain)
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.client()?.get_opts(path, options).await.map_err(plain)
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.client()?.get_ranges(path, ranges).await.map_err(plain)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.client().map_or_else(failed, |client| {
            client.delete_stream(paths).map_err(plain).boxed()
        })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let names = self
            .client()
            .map_or_else(failed, |client| client.list(prefix).map_err(plain).boxed());
        limited(names, MAX_LISTED)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let names = self.client().map_or_else(failed, |client| {
            client
                .list_with_offset(prefix, offset)
                .map_err(plain)
                .boxed()
        });
        limited(names, MAX_LISTED)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.client()?
            .list_with_delimiter(prefix)
            .await
            .map_err(plain)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.client()?
            .copy_opts(from, to, options)
            .await
            .map_err(plain)
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.client()?
            .rename_opts(from, to, options)
            .await
            .map_err(plain)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{TryStreamExt, executor::block_on};
    use object_store::{ObjectStoreExt, memory::InMemory};

    use super::*;

    fn memory() -> Arc<dyn ObjectStore> {
        Arc::new(InMemory::new())
    }

    /// A client as a forked child has it: connected in another process only.
    fn of_another_process(
        connect: impl Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync + 'static,
    ) -> StoreClient {
        StoreClient::deferred("memory".to_owned(), connect)
    }

    #[test]
    fn a_client_connects_once_in_a_process() {
        let connected = Arc::new(AtomicUsize::new(0));
        let connect = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move || -> Result<Arc<dyn ObjectStore>> {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(memory())
            }
        };
        let clients = [
            StoreClient::open(connect(&connected)).unwrap(),
            of_another_process(connect(&connected)),
        ];
        for client in clients {
            block_on(client.put(&Path::from("a"), vec![7_u8].into())).unwrap();
            let read = block_on(async {
                client
                    .get(&Path::from("a"))
                    .await
                    .unwrap()
                    .bytes()
                    .await
                    .unwrap()
            });
            assert_eq!(read, vec![7]);
        }
        assert_eq!(connected.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_listing_that_does_not_end_is_an_error() {
        let store = memory();
        block_on(store.put(&Path::from("a"), vec![7_u8].into())).unwrap();
        let name = block_on(store.head(&Path::from("a"))).unwrap();
        let endless = stream::repeat_with(move || Ok(name.clone())).boxed();
        let listed: Result<Vec<_>> = block_on(limited(endless, 100).try_collect());
        assert!(
            listed
                .unwrap_err()
                .to_string()
                .contains("more than 100 objects have this prefix")
        );
        let store = memory();
        assert_eq!(
            block_on(limited(store.list(None), 0).try_collect::<Vec<_>>()).unwrap(),
            []
        );
    }

    #[test]
    fn a_client_that_cannot_connect_again_fails() {
        let client = of_another_process(|| {
            Err(Error::Generic {
                store: "memory",
                source: "no route".into(),
            })
        });
        assert!(block_on(client.get(&Path::from("a"))).is_err());
        let listed: Result<Vec<_>> = block_on(client.list(None).try_collect());
        assert!(listed.unwrap_err().to_string().contains("no route"));
    }
}
