//! One object of a store, or one file of a web server.

use std::{
    collections::HashSet,
    fmt,
    io::{self, Read},
    process,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use futures::{
    StreamExt, TryFutureExt, TryStreamExt,
    executor::block_on,
    stream::{self, BoxStream},
};
use object_store::{
    Attributes, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt,
    path::Path as Key,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, channel};

use super::{AHEAD, PART, location::parse_key, runtime::runtime, wait};
use crate::{
    file_names::INDEX_SUFFIX,
    store_error::{REPLACED, without_variant},
};

/// Number of bytes of an object's first request: often only the first records are needed.
const FIRST_PART: u64 = 1 << 20;

/// The address of an object, without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectAddress {
    /// The key in its store.
    pub key: String,
    /// ETag of the version.
    pub tag: Option<String>,
    /// Whether the store returns ranges of bytes.
    pub has_ranges: bool,
}

/// An object that exists.
#[derive(Clone)]
pub(crate) struct Object {
    store: Arc<dyn ObjectStore>,
    pub(crate) key: Key,
    /// Size in bytes.
    pub(crate) size: u64,
    /// ETag of the version, so that reading fails, instead of mixing two versions, if the object is
    /// replaced.
    tag: Option<String>,
    /// The time of the last change; `None` if another process found the object.
    changed: Option<String>,
    /// The ETag, or the time of the last change if the store has no ETags.
    pub(crate) version: String,
    /// Set if the store returns ranges of bytes. Some web servers do not.
    pub(crate) has_ranges: bool,
    /// Set if the URL has a query or a password, which requests need in addition to the key.
    has_secret: bool,
    /// Set if the listing in which the object was found has no index of it.
    pub(crate) lacks_index: bool,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Object {
    /// Creates an object from the metadata that its store returned.
    pub(crate) fn new(store: &Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        let changed = meta.last_modified.to_rfc3339();
        let version = meta.e_tag.clone().unwrap_or_else(|| changed.clone());
        let store = Arc::clone(store);
        let key = meta.location;
        let changed = Some(changed);
        Self {
            store,
            key,
            size: meta.size,
            tag: meta.e_tag,
            changed,
            version,
            has_ranges: true,
            has_secret: false,
            lacks_index: false,
        }
    }

    /// Creates an object that another process has found.
    pub(crate) fn at(
        store: Arc<dyn ObjectStore>,
        key: Key,
        size: u64,
        address: ObjectAddress,
    ) -> Self {
        let ObjectAddress {
            key: _,
            tag,
            has_ranges,
        } = address;
        // Only a conversion that is resumed compares versions, and it finds its objects itself.
        let version = tag.clone().unwrap_or_default();
        Self {
            store,
            key,
            size,
            tag,
            changed: None,
            version,
            has_ranges,
            has_secret: false,
            lacks_index: false,
        }
    }

    /// The address of the object, without the query and the password of the URL.
    pub(crate) fn address(&self) -> ObjectAddress {
        ObjectAddress {
            key: self.key.to_string(),
            tag: self.tag.clone(),
            has_ranges: self.has_ranges,
        }
    }

    /// Returns whether requests for ranges fail if the object was replaced.
    pub(crate) fn has_tag(&self) -> bool {
        self.tag.is_some()
    }

    /// Returns whether the URL has a query or a password.
    pub(crate) fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// Finds the object with a key; `None` if there is none.
    ///
    /// # Errors
    /// The key is invalid, or the request failed.
    pub(crate) fn find(store: &Arc<dyn ObjectStore>, key: &str) -> io::Result<Option<Self>> {
        let key = parse_key(key)?;
        let client = Arc::clone(store);
        let meta = wait(async move { head(client.as_ref(), &key).await })??;
        Ok(meta.map(|meta| Self::new(store, meta)))
    }

    /// Finds a file on a web server; `None` if there is none. Requests its first byte, and not its
    /// metadata: a signed URL may allow only that.
    ///
    /// # Errors
    /// The request failed.
    pub(crate) async fn find_http(
        store: &Arc<dyn ObjectStore>,
        key: &Key,
        has_secret: bool,
    ) -> object_store::Result<Option<Self>> {
        let first = GetOptions {
            range: Some(GetRange::Bounded(0..1)),
            ..GetOptions::default()
        };
        let (answer, has_ranges) = match store.get_opts(key, first).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            // The server does not support ranges, or the file is empty.
            Err(_) => (store.get(key).await, false),
            first => (first, true),
        };
        match answer {
            Ok(file) => Ok(Some(Self {
                has_ranges,
                has_secret,
                ..Self::new(store, file.meta)
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects whose keys begin with the segments of `prefix`, and notes which have no
    /// index.
    ///
    /// # Errors
    /// The prefix is invalid, or the request failed.
    pub(crate) fn list(store: &Arc<dyn ObjectStore>, prefix: &str) -> io::Result<Vec<Self>> {
        let key = parse_key(prefix)?;
        let client = Arc::clone(store);
        let metas: Vec<_> = wait(async move { client.list(Some(&key)).try_collect().await })??;
        let mut indexed = HashSet::new();
        for meta in &metas {
            let key = meta.location.as_ref();
            indexed.extend(key.strip_suffix(INDEX_SUFFIX).map(str::to_owned));
        }
        let mut objects = Vec::with_capacity(metas.len());
        for meta in metas {
            let mut object = Self::new(store, meta);
            object.lacks_index = !indexed.contains(object.key.as_ref());
            objects.push(object);
        }
        Ok(objects)
    }

    /// Reads the object with this name in the folder of this one. `None` if it does not exist,
    /// cannot be read, or has more than `most` bytes.
    pub(crate) fn read_beside(&self, name: &str, most: u64) -> Option<Bytes> {
        let store = Arc::clone(&self.store);
        let key = self.key.parent()?.join(name);
        let read = async move {
            let found = store
                .get(&key)
                .await
                .ok()
                .filter(|found| found.meta.size <= most)?;
            found.bytes().await.ok()
        };
        wait(read).ok()?
    }

    /// Returns whether another program can read the object by its URL, and any part of it.
    pub(crate) fn is_plain(&self) -> bool {
        self.has_ranges && !self.has_secret
    }

    /// Reads the bytes from `from` to `to`, without the byte at `to`.
    ///
    /// # Errors
    /// The request failed, or the object was replaced.
    pub(crate) async fn bytes(&self, from: u64, to: u64) -> object_store::Result<Bytes> {
        // An empty range would be an error.
        if from >= to {
            return Ok(Bytes::new());
        }
        self.get(Some(GetRange::Bounded(from..to)))
            .await?
            .bytes()
            .await
    }

    /// Fills `to` with the bytes at `from`, by one request. Blocks the thread.
    ///
    /// # Errors
    /// The request failed, the object was replaced, or it has fewer bytes.
    pub(crate) fn read_exact_at(&self, from: u64, to: &mut [u8]) -> io::Result<()> {
        let object = self.clone();
        let end = from.saturating_add(to.len() as u64);
        let bytes = wait(async move { object.bytes(from, end).await })??;
        if bytes.len() < to.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.copy_from_slice(bytes.get(..to.len()).unwrap_or_default());
        Ok(())
    }

    /// Requests a range, or all bytes.
    ///
    /// # Errors
    /// The request failed, or the object was replaced.
    async fn get(&self, range: Option<GetRange>) -> object_store::Result<GetResult> {
        let options = GetOptions {
            range,
            if_match: self.tag.clone(),
            ..GetOptions::default()
        };
        let answer = self.store.get_opts(&self.key, options).await?;
        self.check_version(&answer.meta)?;
        Ok(answer)
    }

    /// Checks that an answer has the version that was found: some web servers ignore the ETag of a
    /// request. Without an ETag, the time of the last change and the size are compared.
    ///
    /// # Errors
    /// The object was replaced.
    fn check_version(&self, answer: &ObjectMeta) -> object_store::Result<()> {
        let is_same = match (&self.tag, &answer.e_tag) {
            (Some(tag), Some(other)) => tag == other,
            _ => {
                let has_changed = self
                    .changed
                    .as_ref()
                    .is_some_and(|at| *at != answer.last_modified.to_rfc3339());
                !has_changed && self.size == answer.size
            }
        };
        if is_same {
            return Ok(());
        }
        Err(object_store::Error::Precondition {
            path: self.key.to_string(),
            source: REPLACED.into(),
        })
    }

    /// Reads at least the first `count` bytes, or all.
    ///
    /// # Errors
    /// The request failed, or the object was replaced.
    pub(crate) async fn first_bytes(&self, count: u64) -> object_store::Result<Bytes> {
        if self.has_ranges {
            return self.bytes(0, self.size.min(count)).await;
        }
        let mut head = Vec::new();
        let mut bytes = self.complete().await?;
        while head.len() < count as usize
            && let Some(some) = bytes.try_next().await?
        {
            head.extend(some);
        }
        Ok(head.into())
    }

    /// Reads all bytes in one request.
    async fn complete(
        &self,
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        Ok(self.get(None).await?.into_stream())
    }

    /// Reads the bytes from `from` on, in order. Several requests run at the same time. A store
    /// without ranges returns all bytes.
    async fn stream(
        &self,
        from: u64,
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        if !self.has_ranges {
            return self.complete().await;
        }
        let object = self.clone();
        Ok(stream::iter(parts(from, self.size))
            .map(move |(from, to)| {
                let object = object.clone();
                async move { object.bytes(from, to).await }
            })
            .buffered(AHEAD)
            .boxed())
    }

    /// Opens the object for reading from the byte `from` on; the store must return ranges for
    /// another one than the first. Requests run ahead of the reader.
    pub(crate) fn open_at(&self, from: u64) -> Box<dyn Read + Send> {
        let (send, parts) = channel(1);
        let object = self.clone();
        runtime().spawn(async move {
            let mut parts = object.stream(from).try_flatten_stream().boxed();
            while let Some(part) = parts.next().await {
                let is_last = part.is_err();
                // Sending fails once the reader is dropped.
                if send.send(part).await.is_err() || is_last {
                    return;
                }
            }
        });
        Box::new(ObjectReader {
            parts,
            part: Bytes::new(),
            process: process::id(),
        })
    }
}

/// Requests the metadata of an object; `None` if there is none with this key.
///
/// # Errors
/// The request failed.
pub(super) async fn head(
    store: &dyn ObjectStore,
    key: &Key,
) -> object_store::Result<Option<ObjectMeta>> {
    match store.head(key).await {
        Ok(meta) => Ok(Some(meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Requests the metadata of an object and its attributes; `None` if there is none with this key.
///
/// # Errors
/// The request failed.
pub(super) async fn head_with_attributes(
    store: &Arc<dyn ObjectStore>,
    key: &Key,
) -> object_store::Result<Option<(Object, Attributes)>> {
    match store
        .get_opts(
            key,
            GetOptions {
                head: true,
                ..GetOptions::default()
            },
        )
        .await
    {
        Ok(found) => Ok(Some((Object::new(store, found.meta), found.attributes))),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The ranges in which an object of `size` bytes is requested from the byte `first` on.
fn parts(first: u64, size: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = std::iter::successors(Some(first), move |from| Some(part_end(*from, first)));
    starts
        .take_while(move |from| *from < size)
        .map(move |from| (from, part_end(from, first).min(size)))
}

/// The end of the part from the byte `from` on, in a sufficiently large object that is requested
/// from the byte `first` on.
fn part_end(from: u64, first: u64) -> u64 {
    from + if from == first { FIRST_PART } else { PART }
}

/// Reads the parts of an object in order.
struct ObjectReader {
    parts: Receiver<object_store::Result<Bytes>>,
    /// The rest of the current part.
    part: Bytes,
    /// The id of the process that sends the requests.
    process: u32,
}

impl Read for ObjectReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            // A forked child would wait forever. This is no finding about the object: see
            // `is_machine`.
            if self.process != process::id() {
                let why = "opened before the process forked: open it again in the child";
                return Err(io::Error::new(io::ErrorKind::NotConnected, why));
            }
            match block_on(self.parts.recv()) {
                Some(part) => self.part = part.map_err(|error| without_variant(error.into()))?,
                None => return Ok(0),
            }
        }
        let count = to.len().min(self.part.len());
        self.part
            .split_to(count)
            .copy_to_slice(to.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn store(bytes: Vec<u8>) -> Arc<dyn ObjectStore> {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        block_on(store.put(&Key::from("a"), bytes.into())).unwrap();
        store
    }

    fn open(store: &Arc<dyn ObjectStore>) -> Box<dyn Read + Send> {
        Object::find(store, "a").unwrap().unwrap().open_at(0)
    }

    #[test]
    fn objects_of_all_sizes_are_read_completely() {
        for size in [
            0,
            1,
            FIRST_PART - 1,
            FIRST_PART,
            FIRST_PART + 1,
            FIRST_PART + 2 * PART + 5,
        ] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let mut read = Vec::new();
            open(&store(bytes.clone())).read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size}");
        }
    }

    #[test]
    fn a_reader_of_another_process_fails() {
        let (_send, parts) = channel(1);
        let mut reader = ObjectReader {
            parts,
            part: Bytes::from_static(b"x"),
            process: process::id() + 1,
        };
        let mut read = Vec::new();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert_eq!(read, b"x");
        assert!(crate::system::is_machine(&error), "{error}");
    }

    #[test]
    fn two_versions_of_an_object_are_not_mixed() {
        let size = (FIRST_PART + 8 * PART) as usize;
        let store = store(vec![1; size]);
        let mut read = open(&store);
        let mut first = [0; 10];
        read.read_exact(&mut first).unwrap();
        block_on(store.put(&Key::from("a"), vec![2; size].into())).unwrap();
        let mut rest = Vec::new();
        let read = read.read_to_end(&mut rest);
        assert!(
            read.is_err() || rest.iter().all(|byte| *byte == 1),
            "two versions were mixed"
        );
    }

    #[test]
    fn a_store_that_ignores_the_tag_does_not_mix_versions() {
        let store = store(vec![1; 10]);
        // The request has no tag, so that the store returns any version.
        let object = Object {
            tag: None,
            ..Object::find(&store, "a").unwrap().unwrap()
        };
        assert_eq!(block_on(object.bytes(0, 10)).unwrap(), vec![1; 10]);
        block_on(store.put(&Key::from("a"), vec![2; 11].into())).unwrap();
        let error = block_on(object.bytes(0, 10)).unwrap_err();
        assert_eq!(without_variant(error.into()).to_string(), REPLACED);
    }

    #[test]
    fn versions_are_compared_by_tag_or_else_by_date_and_size() {
        let store = store(vec![1; 10]);
        let object = Object::find(&store, "a").unwrap().unwrap();
        let found = block_on(store.head(&Key::from("a"))).unwrap();
        let later = found.last_modified + std::time::Duration::from_secs(1);
        let tag = |tag: &str| Some(tag.to_owned());
        for (e_tag, last_modified, size, is_same) in [
            (found.e_tag.clone(), found.last_modified, 10, true),
            (found.e_tag.clone(), later, 10, true),
            (tag("other"), found.last_modified, 10, false),
            (None, found.last_modified, 10, true),
            (None, later, 10, false),
            (None, found.last_modified, 11, false),
        ] {
            let answer = ObjectMeta {
                e_tag,
                last_modified,
                size,
                ..found.clone()
            };
            assert_eq!(object.check_version(&answer).is_ok(), is_same, "{answer:?}");
        }
    }
}
