//! Outputs in stores: what is there already, and how a file that is whole becomes an object.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, FuturesUnordered},
};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, path::Path as Key};
use tokio::sync::Semaphore;

use crate::{
    Error, ErrorKind, Result,
    remote::{AHEAD, LOOKS, Location, PART, is_remote, key, meta, usage, wait},
};

/// Parts that an object is put together of, at most: S3 takes 10,000.
const MAX_PARTS: u64 = 9_000;

/// Requests with parts in them that are on their way at once, of all uploads: each is in memory, and all share one line.
static TURNS: Semaphore = Semaphore::const_new(2 * AHEAD);

/// An object: the store, and its key there.
pub(crate) type Object = (Arc<dyn ObjectStore>, Key);

/// Where in a store an output is, or a folder of outputs; `None` where it is on this machine.
fn location(target: &Path) -> Result<Option<Location<'_>>> {
    if !is_remote(&target.to_string_lossy()) {
        return Ok(None);
    }
    let Some(location) = target.to_str().and_then(Location::parse) else {
        return Err(usage(target, "a name that is no UTF-8 is no object's"));
    };
    if location.is_http() {
        return Err(usage(target, "a web server takes no files: name a folder on this machine, or in a store"));
    }
    Ok(Some(location))
}

/// The object that an output is; `None` where it is a file.
pub(crate) fn object(target: &Path) -> Result<Option<Object>> {
    let Some(location) = location(target)? else { return Ok(None) };
    if location.path.is_empty() {
        return Err(usage(target, "names a store, and no object in it"));
    }
    let key = key(location.path).map_err(|error| Error::io(target, error))?;
    Ok(Some((location.store()?, key)))
}

/// The outputs, files or objects, that are there already.
///
/// # Errors
/// What a store says.
pub fn existing<'o>(outputs: &[&'o Path]) -> Result<Vec<&'o Path>> {
    let (mut found, mut paths, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for output in outputs {
        match object(output)? {
            Some(object) => {
                paths.push(*output);
                objects.push(object);
            }
            None if output.exists() => found.push(*output),
            None => {}
        }
    }
    if objects.is_empty() {
        return Ok(found);
    }
    let ask = |(store, key): Object| async move { is_there(&store, &key).await };
    let answers = wait(stream::iter(objects).map(ask).buffered(LOOKS).collect::<Vec<_>>());
    let answers = answers.map_err(|error| Error::io("object store", error))?;
    for (path, answer) in paths.into_iter().zip(answers) {
        if answer.map_err(|error| Error::io(path, error.into()))? {
            found.push(path);
        }
    }
    Ok(found)
}

/// The names of what stands in a folder, of files or of objects; nothing where there is no such folder.
///
/// # Errors
/// What the system or the store says.
pub fn names_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(folder, error);
    let Some(location) = location(folder)? else {
        let entries = match folder.read_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        return entries.map(|entry| Ok(PathBuf::from(entry.map_err(failed)?.file_name()))).collect();
    };
    let (store, key) = (location.store()?, key(location.path).map_err(failed)?);
    let listed = wait(async move { store.list_with_delimiter(Some(&key)).await });
    let listed = listed.and_then(|listed| Ok(listed?)).map_err(failed)?;
    Ok(listed.objects.iter().filter_map(|object| object.location.filename().map(PathBuf::from)).collect())
}

/// Makes the file at `path` this object, whose URL is `target`, and which appears whole.
///
/// # Errors
/// [`ErrorKind::Exists`] where it is there and may not be overwritten; what the system or the store says.
pub(crate) fn upload(path: &Path, target: &Path, (store, key): Object, overwrite: bool) -> Result<()> {
    let failed = |error| Error::io(target, error);
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    match wait(async move { put_new(&store, &key, file, overwrite).await }).and_then(|put| put).map_err(failed)? {
        true => Ok(()),
        false => Err(Error::new(target, ErrorKind::Exists)),
    }
}

/// Whether the object was put: not where it is there and may not be overwritten. Of two who put a new object of several
/// parts at the same moment, the last wins: stores know no condition there.
async fn put_new(store: &Arc<dyn ObjectStore>, key: &Key, file: File, overwrite: bool) -> io::Result<bool> {
    if !overwrite && is_there(store, key).await? {
        return Ok(false);
    }
    let mode = if overwrite { PutMode::Overwrite } else { PutMode::Create };
    match put(store.as_ref(), key, &file, mode).await {
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        // The store does not know the condition.
        Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) if !overwrite => {
            put(store.as_ref(), key, &file, PutMode::Overwrite).await?;
            Ok(true)
        }
        put => Ok(put.map(|()| true)?),
    }
}

async fn is_there(store: &Arc<dyn ObjectStore>, key: &Key) -> object_store::Result<bool> {
    Ok(meta(store.as_ref(), key).await?.is_some())
}

/// Puts the file there in one request, or in parts where it is large.
async fn put(store: &dyn ObjectStore, key: &Key, file: &File, mode: PutMode) -> object_store::Result<()> {
    let size = file.metadata().map_err(generic)?.len();
    let part = PART.max(size.div_ceil(MAX_PARTS));
    if size <= part {
        let _turn = TURNS.acquire().await;
        store.put_opts(key, read(file, 0, size).await?.into(), mode.into()).await?;
        return Ok(());
    }
    let mut upload = store.put_multipart(key).await?;
    match put_parts(upload.as_mut(), file, size, part).await {
        Ok(()) => upload.complete().await.map(drop),
        Err(error) => {
            // Parts of an object that never comes to be are paid for. The error at hand says more than a second one.
            upload.abort().await.ok();
            Err(error)
        }
    }
}

async fn put_parts(upload: &mut dyn MultipartUpload, file: &File, size: u64, part: u64) -> object_store::Result<()> {
    let mut sent = FuturesUnordered::new();
    let mut from = 0;
    while from < size {
        let turn = TURNS.acquire().await;
        let bytes = read(file, from, part.min(size - from)).await?;
        from += part;
        let put = upload.put_part(bytes.into());
        sent.push(async move {
            let _turn = turn;
            put.await
        });
        // Parts are on their way while others are waited for alone: what is done makes room, at most `AHEAD` are left.
        while sent.len() >= AHEAD {
            sent.try_next().await?;
        }
    }
    while sent.try_next().await?.is_some() {}
    Ok(())
}

/// Bytes of the file, read on a thread that may block.
async fn read(file: &File, from: u64, count: u64) -> object_store::Result<Bytes> {
    let mut file = file.try_clone().map_err(generic)?;
    let read = move || {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::with_capacity(count as usize);
        file.take(count).read_to_end(&mut bytes)?;
        Ok(Bytes::from(bytes))
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other).and_then(|read| read).map_err(generic)
}

fn generic(error: io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "the temporary file", source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::executor::block_on;
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn a_file_becomes_an_object_whatever_its_size() {
        let (store, key): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), Key::from("a/b"));
        for size in [0, 1, PART, PART + 1, 2 * PART, 2 * PART + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let (file, there) = (file.reopen().unwrap(), Arc::clone(&store));
            let put = |overwrite| {
                let (store, key, file) = (Arc::clone(&there), key.clone(), file.try_clone().unwrap());
                wait(async move { put_new(&store, &key, file, overwrite).await }).unwrap().unwrap()
            };
            assert!(put(true));
            assert!(!put(false), "it is there");
            let stored = block_on(async { store.get(&key).await.unwrap().bytes().await.unwrap() });
            assert!(stored == bytes, "{size}");
        }
    }

    #[test]
    fn what_can_be_no_object_is_refused() {
        for target in ["s3://bucket", "s3://bucket.parquet", "https://host/a.parquet"] {
            let error = object(Path::new(target)).unwrap_err().to_string();
            assert!(error.contains("no object in it") || error.contains("takes no files"), "{error}");
        }
        #[cfg(unix)]
        {
            let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"s3://bucket/\xff");
            assert!(existing(&[Path::new(target)]).unwrap_err().to_string().contains("no UTF-8"));
        }
    }

    #[test]
    fn files_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        std::fs::write(&old, b"x").unwrap();
        assert_eq!(existing(&[&new, &old]).unwrap(), [old.as_path()]);
        assert_eq!(names_in(folder.path()).unwrap(), [Path::new("old")]);
        assert!(names_in(&new).unwrap().is_empty());
    }
}
