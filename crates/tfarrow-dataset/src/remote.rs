//! Objects in stores, by URL: `s3://`, `gs://`, `az://`, `abfs://`, `http://` and `https://`.
//!
//! Everything here blocks its caller, as files do; the requests themselves run on a small runtime of their own.
//! Credentials and endpoints come from the usual variables: `AWS_..`, `GOOGLE_..`, `AZURE_..`.

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    fmt,
    future::Future,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::{Buf, Bytes};
use futures::{
    StreamExt, TryFutureExt, TryStreamExt,
    executor::block_on,
    stream::{self, BoxStream},
};
use object_store::{
    ClientConfigKey, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, http::HttpBuilder, parse_url_opts,
    path::Path as Key,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{Receiver, channel},
};
use url::Url;

use crate::{
    Contents, Error, ErrorKind, Result, Shard,
    contents::{Peek, TAIL},
    credentials::check_s3,
    glob::Glob,
    missing::missing_shards,
    names::is_called_shard,
    source::{Resolved, Wanted, stands_beside},
    spec::ShardSpec,
    system::is_store,
};

/// Bytes of one request: so many that what a request costs does not show.
pub(crate) const PART: u64 = 8 << 20;
/// Bytes of an object's first request, since often only its first records are asked for.
const FIRST_PART: u64 = 1 << 20;
/// Requests for one object that are on their way at once.
pub(crate) const AHEAD: usize = 4;
/// How long a request may take, with all its bytes, where `AWS_TIMEOUT` and its like do not say: enough for several parts
/// at once over a slow line.
const REQUEST_TIMEOUT: &str = "180s";
/// Bytes of an object that tell what it holds.
const HEAD: u64 = 4 << 10;
/// Objects that are looked into at once.
pub(crate) const LOOKS: usize = 16;

/// What the variables of S3 begin with.
const S3: &str = "AWS_";
/// The schemes that are read, and what the variables of each begin with.
const SCHEMES: [(&str, &str); 9] = [
    ("s3", S3),
    ("s3a", S3),
    ("gs", "GOOGLE_"),
    ("az", "AZURE_"),
    ("azure", "AZURE_"),
    ("abfs", "AZURE_"),
    ("abfss", "AZURE_"),
    ("http", ""),
    ("https", ""),
];

/// What is wrong with another URL.
pub(crate) const UNKNOWN: &str = "no URL that is known: s3://bucket/.., gs://, az://, abfs://, https://, http:// and \
                                  file:/// are, and paths of files";

/// Whether `source` is the URL of something in a store.
///
/// ```
/// use tfarrow_dataset::is_remote;
/// assert!(is_remote("s3://bucket/train/*.tfrecord") && !is_remote("shards/a.tfrecord"));
/// ```
pub fn is_remote(source: &str) -> bool {
    Location::parse(source).is_some()
}

/// The store that a URL is in, with what the variables say of it. Asked again, it is the same.
///
/// # Errors
/// A URL of no store that is known, and variables that make no sense.
pub fn store_of(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let location = Location::parse(url).ok_or_else(|| usage(url, UNKNOWN))?;
    location.store()
}

/// A URL in its parts.
pub(crate) struct Location<'a> {
    scheme: &'a str,
    /// The bucket, or the host.
    authority: &'a str,
    /// Everything behind, without its first slash; not decoded, since a `?` or a `*` there is meant as a glob.
    pub(crate) path: &'a str,
    /// What a web server is told behind a `?`, a signature say.
    query: Option<&'a str>,
    variables: &'static str,
}

impl<'a> Location<'a> {
    pub(crate) fn parse(source: &'a str) -> Option<Self> {
        let (scheme, rest) = source.split_once("://")?;
        let (_, variables) = SCHEMES.iter().find(|(known, _)| scheme.eq_ignore_ascii_case(known))?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if variables.is_empty() => (rest, Some(query)),
            _ => (rest, None),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        (!authority.is_empty()).then_some(Self { scheme, authority, path, query, variables })
    }

    pub(crate) fn is_http(&self) -> bool {
        self.variables.is_empty()
    }

    /// The URL of the store, and of a key in it. A query is left out: it is often long, and a secret.
    fn url(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.authority)
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        static STORES: Mutex<Option<HashMap<String, Arc<dyn ObjectStore>>>> = Mutex::new(None);
        // A query is often a signature, for one file: it is not kept.
        if let Some(query) = self.query {
            let store = self.web_server(&format!("{}?{query}", self.url("")));
            return store.map_err(|error| Error::io(self.url(""), error));
        }
        let base = self.url("");
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let stores = stores.get_or_insert_default();
        if let Some(store) = stores.get(&base) {
            return Ok(Arc::clone(store));
        }
        if self.variables == S3 {
            check_s3().map_err(|error| Error::io(&base, error))?;
        }
        let store = if self.is_http() { self.web_server(&base) } else { self.made(&base) };
        let store = store.map_err(|error| Error::io(self.url(""), error))?;
        stores.insert(base, Arc::clone(&store));
        Ok(store)
    }

    fn web_server(&self, base: &str) -> io::Result<Arc<dyn ObjectStore>> {
        let server = HttpBuilder::new()
            .with_url(base)
            .with_config(ClientConfigKey::Timeout, REQUEST_TIMEOUT)
            .with_config(ClientConfigKey::AllowHttp, self.scheme.eq_ignore_ascii_case("http").to_string());
        Ok(Arc::new(server.build()?))
    }

    fn made(&self, base: &str) -> io::Result<Arc<dyn ObjectStore>> {
        let url = Url::parse(base).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Arc::from(parse_url_opts(&url, self.options())?.0))
    }

    /// What the variables say. Whoever names an endpoint without TLS wants it so.
    fn options(&self) -> Vec<(String, String)> {
        let timeout = ("timeout".to_owned(), REQUEST_TIMEOUT.to_owned());
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let named = env::vars_os().filter_map(text).filter(|(name, _)| name.starts_with(self.variables));
        // What the variables say comes last, and counts.
        let mut options = vec![timeout];
        options.extend(named.map(|(name, value)| (name.to_ascii_lowercase(), value)));
        if options.iter().any(|(name, value)| name.contains("endpoint") && value.starts_with("http://")) {
            options.push(("allow_http".to_owned(), "true".to_owned()));
        }
        options
    }
}

pub(crate) fn usage(source: impl Into<PathBuf>, why: &str) -> Error {
    Error::io(source, io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()))
}

/// One object.
#[derive(Clone)]
pub(crate) struct Object {
    store: Arc<dyn ObjectStore>,
    key: Key,
    size: u64,
    /// What tells this version of it from others, so that one that is replaced meanwhile is not read half and half.
    tag: Option<String>,
    /// Whether it is to be had in parts. Not every web server sends any.
    in_parts: bool,
    /// Whether it takes more than its key to have it: the query of a URL.
    has_query: bool,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Object {
    fn new(store: &Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        let (store, key) = (Arc::clone(store), meta.location);
        Self { store, key, size: meta.size, tag: meta.e_tag, in_parts: true, has_query: false }
    }

    /// Whether others than this program, who know its URL, can read it as they like.
    pub(crate) fn is_plain(&self) -> bool {
        self.in_parts && !self.has_query
    }

    async fn bytes(&self, from: u64, to: u64) -> object_store::Result<Bytes> {
        // There is no range of nothing.
        if from >= to {
            return Ok(Bytes::new());
        }
        let range = Some(GetRange::Bounded(from..to));
        let options = GetOptions { range, if_match: self.tag.clone(), ..GetOptions::default() };
        self.store.get_opts(&self.key, options).await?.bytes().await
    }

    /// What it holds, told as of a file.
    async fn contents(&self) -> object_store::Result<(Option<Contents>, Peek)> {
        let mut head = Vec::new();
        if self.in_parts {
            head.extend(self.bytes(0, self.size.min(HEAD)).await?);
        } else {
            let mut bytes = self.whole().await?;
            while head.len() < HEAD as usize
                && let Some(some) = bytes.try_next().await?
            {
                head.extend(some);
            }
        }
        let (known, peek) = Contents::of_head(head.into());
        if known.is_some() {
            return Ok((known, peek));
        }
        let tail = match self.in_parts {
            true => self.bytes(self.size.saturating_sub(TAIL), self.size).await?,
            false => Bytes::new(),
        };
        Ok((Contents::of_tail(&tail).or_else(|| Contents::of_name(Path::new(self.key.as_ref()))), peek))
    }

    /// The same, for who may want to hear in its turn that it cannot be read.
    async fn contents_for(&self, wanted: Wanted) -> object_store::Result<(Option<Contents>, Peek)> {
        match self.contents().await {
            Err(error) if wanted == Wanted::ToVerify && !is_store(&error) => {
                Ok((Some(Contents::TfRecord), Peek::default()))
            }
            contents => contents,
        }
    }

    /// Its bytes in one answer.
    async fn whole(&self) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        let options = GetOptions { if_match: self.tag.clone(), ..GetOptions::default() };
        Ok(self.store.get_opts(&self.key, options).await?.into_stream())
    }

    /// Its bytes from front to back, in requests ahead of whoever takes them.
    async fn stream(&self) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        if !self.in_parts {
            return self.whole().await;
        }
        let object = self.clone();
        let part = move |(from, to)| {
            let object = object.clone();
            async move { object.bytes(from, to).await }
        };
        Ok(stream::iter(cuts(self.size)).map(part).buffered(AHEAD).boxed())
    }

    /// Its bytes from front to back. Requests are sent ahead of whoever reads.
    pub(crate) fn open(&self) -> Box<dyn Read + Send> {
        let (send, parts) = channel(1);
        let object = self.clone();
        runtime().spawn(async move {
            let mut parts = object.stream().try_flatten_stream().boxed();
            while let Some(part) = parts.next().await {
                let is_last = part.is_err();
                // Nobody reads on.
                if send.send(part).await.is_err() || is_last {
                    return;
                }
            }
        });
        Box::new(Parts { parts, part: Bytes::new() })
    }
}

/// Where an object of so many bytes is cut.
fn cuts(size: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = std::iter::successors(Some(0), move |from| Some(from + if *from == 0 { FIRST_PART } else { PART }));
    let next = move |from: u64| (from, (from + if from == 0 { FIRST_PART } else { PART }).min(size));
    starts.take_while(move |from| *from < size).map(next)
}

/// The parts of an object as a reader.
struct Parts {
    parts: Receiver<object_store::Result<Bytes>>,
    part: Bytes,
}

impl Read for Parts {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match block_on(self.parts.recv()) {
                Some(part) => self.part = part?,
                None => return Ok(0),
            }
        }
        let count = to.len().min(self.part.len());
        self.part.split_to(count).copy_to_slice(to.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

/// The runtime of all requests.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        #[expect(clippy::expect_used, reason = "without threads nothing else works either")]
        builder.worker_threads(2).thread_name("tfarrow-store").enable_all().build().expect("threads for requests")
    })
}

/// Waits for a request, on any thread.
pub(crate) fn wait<T: Send + 'static>(request: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    block_on(runtime().spawn(request)).map_err(io::Error::other)
}

/// The shards that a URL names: an object, all objects below a folder, those that match a glob, or those of a shard spec.
///
/// # Errors
/// What the store says; where there is no such shard.
pub(crate) fn find(source: &str, wanted: Wanted) -> Result<Resolved> {
    let location = Location::parse(source).ok_or_else(|| usage(source, UNKNOWN))?;
    if location.is_http() {
        return web_file(source, &location, wanted).map(|shard| Resolved::of([shard]));
    }
    let store = location.store()?;
    let failed = |error: io::Error| Error::io(source, error);
    if Glob::is_glob(location.path) {
        let glob = Glob::new(location.path).map_err(|error| Error::new(source, ErrorKind::Glob(error)))?;
        let prefix = glob.prefix.to_string_lossy().into_owned();
        let objects = list(&store, &prefix).map_err(failed)?;
        let count = objects.len();
        let is_named = |below: &Path| {
            let is_hidden = |first| !glob.asks_for(first) && has_part(below, first);
            glob.matches(below) && !is_hidden('_') && !is_hidden('.')
        };
        let found = shards(&location, &prefix, objects, &is_named, true, wanted).map_err(failed)?;
        return found.or_none(source, format!("of {count} objects there, none that is a shard matches"));
    }
    let key = location.path.trim_end_matches('/');
    if !key.is_empty()
        && key == location.path
        && let Some(object) = head(&store, key).map_err(failed)?
    {
        return Ok(Resolved::of([named(&location, object, wanted).map_err(failed)?]));
    }
    if let Some(spec) = ShardSpec::parse(source) {
        let (folder, _) = location.path.rsplit_once('/').unwrap_or_default();
        let objects = list(&store, folder).map_err(failed)?;
        let below = |object: Object| Some((below(&object, folder).to_str()?.to_owned(), object));
        let objects = spec.choose(objects.into_iter().filter_map(below))?;
        let shards = objects.into_iter().map(|object| named(&location, object, wanted).map_err(failed));
        return Ok(Resolved::of(shards.collect::<Result<Vec<_>>>()?));
    }
    let objects = list(&store, key).map_err(failed)?;
    let count = objects.len();
    let is_visible = |below: &Path| !has_part(below, '_') && !has_part(below, '.');
    let found = shards(&location, key, objects, &is_visible, false, wanted).map_err(failed)?;
    let found = Resolved { missing: missing_shards(&found.shards), ..found };
    found.or_none(source, format!("no such object, and of {count} objects below that name none is a shard"))
}

/// The one file that the URL of a web server names.
fn web_file(source: &str, location: &Location<'_>, wanted: Wanted) -> Result<Shard> {
    let failed = |error: io::Error| Error::io(location.url(location.path), error);
    if location.path.is_empty() || location.path.ends_with('/') || Glob::is_glob(location.path) {
        return Err(usage(source, "a web server lists no files: name each"));
    }
    let key = Key::from_url_path(location.path).map_err(|error| failed(object_store::Error::from(error).into()))?;
    let (store, has_query) = (location.store()?, location.query.is_some());
    let asked = wait(async move { ask_web(&store, &key, has_query).await });
    match asked.and_then(|object| Ok(object?)).map_err(failed)? {
        Some(object) => named(location, object, wanted).map_err(failed),
        None => Err(failed(io::ErrorKind::NotFound.into())),
    }
}

/// What a web server has under this key. It is asked for bytes, as it will be again: a signature may allow that alone.
async fn ask_web(store: &Arc<dyn ObjectStore>, key: &Key, has_query: bool) -> object_store::Result<Option<Object>> {
    let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
    let (asked, in_parts) = match store.get_opts(key, first).await {
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        // It sends no parts, or there are no bytes to send.
        Err(_) => (store.get(key).await, false),
        first => (first, true),
    };
    match asked {
        Ok(got) => Ok(Some(Object { in_parts, has_query, ..Object::new(store, got.meta) })),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a folder or the file itself has a name that begins so.
fn has_part(path: &Path, first: char) -> bool {
    path.iter().any(|part| part.to_string_lossy().starts_with(first))
}

/// The key of this name, as it stands behind a URL's host.
pub(crate) fn key(name: &str) -> io::Result<Key> {
    Key::parse(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

fn head(store: &Arc<dyn ObjectStore>, key: &str) -> io::Result<Option<Object>> {
    let key = self::key(key)?;
    let here = Arc::clone(store);
    let meta = wait(async move { meta(here.as_ref(), &key).await })??;
    Ok(meta.map(|meta| Object::new(store, meta)))
}

/// What a store says of an object; `None` where there is none of this key.
pub(crate) async fn meta(store: &dyn ObjectStore, key: &Key) -> object_store::Result<Option<ObjectMeta>> {
    match store.head(key).await {
        Ok(meta) => Ok(Some(meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn list(store: &Arc<dyn ObjectStore>, prefix: &str) -> io::Result<Vec<Object>> {
    let key = key(prefix)?;
    let here = Arc::clone(store);
    let metas: Vec<_> = wait(async move { here.list(Some(&key)).try_collect().await })??;
    Ok(metas.into_iter().map(|meta| Object::new(store, meta)).collect())
}

/// An object that was named as it is.
fn named(location: &Location<'_>, object: Object, wanted: Wanted) -> io::Result<Shard> {
    let here = object.clone();
    let (contents, peek) = wait(async move { here.contents_for(wanted).await })??;
    let contents = contents.unwrap_or(Contents::TfRecord);
    let name = object.key.filename().unwrap_or("records").into();
    let path = PathBuf::from(location.url(object.key.as_ref()));
    Ok(Shard::remote(path, name, object.size, contents, object).with_peek(peek))
}

/// Reads the first bytes of the objects among `shards` that were found by name alone, several at once: they tell how each is
/// [compressed](Shard::compression) and the [kind of its records](Shard::payload).
///
/// # Errors
/// The store's, of the first object that cannot be read.
pub fn look_into(shards: &mut [Shard]) -> Result<()> {
    let unread: Vec<_> =
        (0..).zip(shards.iter()).filter_map(|(index, it)| Some((index, it.unread_object()?.clone()))).collect();
    let look = |(index, object): (usize, Object)| async move { (index, object.contents().await) };
    let looked: Vec<_> =
        wait(stream::iter(unread).map(look).buffered(LOOKS).collect()).map_err(|error| Error::io("", error))?;
    for (index, looked) in looked {
        let Some(shard) = shards.get_mut(index) else { continue };
        let (contents, peek) = looked.map_err(|error| Error::io(&shard.path, error.into()))?;
        if contents == Some(Contents::TfRecord) {
            shard.peek(peek);
        }
    }
    Ok(())
}

/// Where an object is below a folder.
fn below(object: &Object, folder: &str) -> PathBuf {
    let key = object.key.as_ref();
    PathBuf::from(key.strip_prefix(folder).unwrap_or(key).trim_start_matches('/'))
}

/// Those of the objects that are shards. What the name does not tell of what they hold, their first bytes do.
fn shards(
    location: &Location<'_>,
    prefix: &str,
    objects: Vec<Object>,
    is_wanted: &dyn Fn(&Path) -> bool,
    by_glob: bool,
    wanted: Wanted,
) -> io::Result<Resolved> {
    let objects = objects.into_iter().map(|object| (below(&object, prefix), object));
    let is_called_so = |name: &Path| wanted == Wanted::Files || is_called_shard(name);
    let is_named = |name: &Path| is_called_shard(name) || Contents::of_name(name).is_some();
    let is_shard = |name: &Path, object: &Object| object.size > 0 || wanted != Wanted::Files && is_named(name);
    let (objects, passed_over): (Vec<_>, Vec<_>) =
        objects.filter(|(name, _)| is_wanted(name)).partition(|(name, object)| is_shard(name, object));
    let mut found = Resolved::default();
    found.passed_over.empty = passed_over.len() as u64;
    let objects: Vec<_> = objects.into_iter().map(|(name, object)| (is_called_so(&name), name, object)).collect();
    let look = move |(is_called_so, name, object): (bool, PathBuf, Object)| async move {
        let known = (Some(Contents::TfRecord), Peek::default());
        let (contents, peek) = if is_called_so { known } else { object.contents_for(wanted).await? };
        Ok::<_, object_store::Error>((name, object, contents, peek))
    };
    let looked: Vec<_> = wait(stream::iter(objects).map(look).buffered(LOOKS).try_collect())??;
    for (name, object, contents, peek) in looked {
        let path = PathBuf::from(location.url(object.key.as_ref()));
        match contents.or((by_glob && !stands_beside(&name)).then_some(Contents::TfRecord)) {
            None if stands_beside(&name) => found.passed_over.by_name += 1,
            None => found.passed_over.other(path),
            Some(contents) if !wanted.takes(contents) => found.passed_over.unwanted(path),
            Some(contents) => {
                found.shards.push(Shard::remote(path, name, object.size, contents, object).with_peek(peek));
            }
        }
    }
    wanted.prefer(&mut found, by_glob);
    found.leave_out_events();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;
    use crate::Compression;

    fn store(objects: &[(&str, Vec<u8>)]) -> Arc<dyn ObjectStore> {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for (key, bytes) in objects {
            block_on(store.put(&Key::from(*key), bytes.clone().into())).unwrap();
        }
        store
    }

    #[test]
    fn urls_are_known_by_their_schemes() {
        for url in ["s3://b/x", "gs://b", "S3://b/x*", "https://h/x?y", "abfss://c@a.dfs.core.windows.net/x"] {
            assert!(is_remote(url), "{url}");
        }
        for other in ["a/b", "file:///x", "s3:/b/x", "s3:///x", "ftp://h/x", "://x"] {
            assert!(!is_remote(other), "{other}");
        }
    }

    #[test]
    fn objects_that_were_found_by_name_are_looked_into_together() {
        let mut frame = Vec::new();
        tfarrow_codec::frame::write(b"\x0a\x0a\x0a\x08\x0a\x01x\x12\x03\x1a\x01\x01", &mut frame);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        std::io::Write::write_all(&mut gzip, &frame).unwrap();
        let store = store(&[
            ("d/a-00000-of-00003", frame.clone()),
            ("d/a-00001-of-00003", gzip.finish().unwrap()),
            ("d/a-00002-of-00003", b"damaged, and no more than that".to_vec()),
        ]);
        let location = Location::parse("s3://b/d").unwrap();
        let found = shards(&location, "d", list(&store, "d").unwrap(), &|_| true, false, Wanted::All).unwrap();
        let mut shards = found.shards;
        let compressions = |shards: &[Shard]| shards.iter().map(Shard::compression).collect::<Vec<_>>();
        // Their names say that they are shards.
        assert_eq!(compressions(&shards), [None, None, None]);
        look_into(&mut shards).unwrap();
        assert_eq!(compressions(&shards), [Some(Compression::None), Some(Compression::Gzip), None]);
        block_on(store.delete(&Key::from("d/a-00002-of-00003"))).unwrap();
        let error = look_into(&mut shards).unwrap_err().to_string();
        assert!(error.starts_with("s3://b/d/a-00002-of-00003: "), "{error}");
    }

    #[test]
    fn a_signed_url_is_not_kept_in_memory() {
        let is_kept = |url| Arc::ptr_eq(&store_of(url).unwrap(), &store_of(url).unwrap());
        assert!(is_kept("http://localhost/a"));
        assert!(!is_kept("http://localhost/a?signature=secret"));
    }

    #[test]
    fn an_object_is_read_whole_whatever_its_size() {
        for size in [0, 1, FIRST_PART - 1, FIRST_PART, FIRST_PART + 1, FIRST_PART + 2 * PART + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let store = store(&[("a", bytes.clone())]);
            let mut read = Vec::new();
            head(&store, "a").unwrap().unwrap().open().read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size}");
        }
    }

    #[test]
    fn one_that_is_replaced_meanwhile_is_not_read_half_and_half() {
        let size = (FIRST_PART + 8 * PART) as usize;
        let store = store(&[("a", vec![1; size])]);
        let mut read = head(&store, "a").unwrap().unwrap().open();
        let mut first = [0; 10];
        read.read_exact(&mut first).unwrap();
        block_on(store.put(&Key::from("a"), vec![2; size].into())).unwrap();
        let mut rest = Vec::new();
        let read = read.read_to_end(&mut rest);
        assert!(read.is_err() || rest.iter().all(|byte| *byte == 1), "two versions were mixed");
    }

    #[test]
    fn objects_are_found_as_files_are() {
        let mut frame = Vec::new();
        tfarrow_codec::frame::write(b"x", &mut frame);
        let store = store(&[
            ("d/train-00000-of-00002", frame.clone()),
            ("d/x=1/odd", frame.clone()),
            ("d/notes", b"some text".to_vec()),
            ("d/_hidden/a.tfrecord", frame.clone()),
            ("d/empty.tfrecord", Vec::new()),
            ("d/empty", Vec::new()),
            ("d/info.json", b"{}".to_vec()),
            // Damaged: one is told by its name, one by its end.
            ("d/zeros.parquet", vec![0; 50]),
            ("d/hit", b"?RROW1..ARROW1".to_vec()),
            ("d/full_disk.parquet", Vec::new()),
            ("e/other.tfrecord", frame),
        ]);
        let location = Location::parse("s3://b/d").unwrap();
        let objects = list(&store, "d").unwrap();
        assert_eq!(objects.len(), 10);
        let visible = |below: &Path| !has_part(below, '_');
        let found = shards(&location, "d", objects, &visible, false, Wanted::All).unwrap();
        assert_eq!(
            found.passed_over.to_string(),
            "passed over: 1 for the name, 1 empty, 1 of no known format (such as s3://b/d/notes)"
        );
        let shard = |shard: &Shard| (shard.path.to_str().unwrap().to_owned(), shard.name.clone(), shard.contents);
        let expect = [
            ("empty.tfrecord", Contents::TfRecord),
            ("full_disk.parquet", Contents::Parquet),
            ("hit", Contents::Arrow),
            ("train-00000-of-00002", Contents::TfRecord),
            ("x=1/odd", Contents::TfRecord),
            ("zeros.parquet", Contents::Parquet),
        ];
        let expect = expect.map(|(name, contents)| (format!("s3://b/d/{name}"), PathBuf::from(name), contents));
        assert_eq!(found.shards.iter().map(shard).collect::<Vec<_>>(), expect);
    }
}
