//! Outputs in stores: what is there already, and how a file that is whole becomes an object.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart, path::Path as Key};

use crate::{
    Error, ErrorKind, Result,
    remote::{AHEAD, LOOKS, Location, PART, is_remote, key, wait},
};

/// Parts that an object is put together of, at most: S3 takes 10,000.
const MAX_PARTS: u64 = 9_000;

/// An object: the store, and its key there.
type Object = (Arc<dyn ObjectStore>, Key);

/// Whether an output goes to a store.
pub(crate) fn is_object(target: &Path) -> bool {
    target.to_str().is_some_and(is_remote)
}

/// The object that an output is; `None` where it is a file.
fn object(target: &Path) -> Result<Option<Object>> {
    let Some(location) = target.to_str().and_then(Location::parse) else { return Ok(None) };
    if location.is_http() {
        let why = "a web server takes no files: name a folder on this machine, or in a store";
        return Err(Error::io(target, io::Error::new(io::ErrorKind::Unsupported, why)));
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
    let Some(first) = paths.first() else { return Ok(found) };
    let ask = |(store, key): Object| async move { is_there(&store, &key).await };
    let answers = wait(stream::iter(objects).map(ask).buffered(LOOKS).try_collect::<Vec<_>>());
    let answers = answers.and_then(|answers| Ok(answers?)).map_err(|error| Error::io(first, error))?;
    found.extend(paths.iter().zip(answers).filter(|(_, is_there)| *is_there).map(|(path, _)| *path));
    Ok(found)
}

/// The names of what stands in a folder, of files or of objects; nothing where there is no such folder.
///
/// # Errors
/// What the system or the store says.
pub fn names_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(folder, error);
    let Some((store, key)) = object(folder)? else {
        let entries = match folder.read_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        return entries.map(|entry| Ok(PathBuf::from(entry.map_err(failed)?.file_name()))).collect();
    };
    let listed = wait(async move { store.list_with_delimiter(Some(&key)).await });
    let listed = listed.and_then(|listed| Ok(listed?)).map_err(failed)?;
    Ok(listed.objects.iter().filter_map(|object| object.location.filename().map(PathBuf::from)).collect())
}

/// Makes the file at `path` the object `target`, which appears whole.
///
/// # Errors
/// [`ErrorKind::Exists`] where it is there and may not be overwritten; what the system or the store says.
pub(crate) fn upload(path: &Path, target: &Path, overwrite: bool) -> Result<()> {
    let failed = |error| Error::io(target, error);
    let Some((store, key)) = object(target)? else { return Err(failed(io::ErrorKind::InvalidInput.into())) };
    let file = File::open(path).map_err(failed)?;
    let put = async move {
        if !overwrite && is_there(&store, &key).await? {
            return Ok(false);
        }
        put(store.as_ref(), &key, file).await.map(|()| true)
    };
    match wait(put).and_then(|put| put).map_err(failed)? {
        true => Ok(()),
        false => Err(Error::new(target, ErrorKind::Exists)),
    }
}

async fn is_there(store: &Arc<dyn ObjectStore>, key: &Key) -> object_store::Result<bool> {
    match store.head(key).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the file in its parts, each in one go, which hardly blocks: it was written just now.
async fn put(store: &dyn ObjectStore, key: &Key, mut file: File) -> io::Result<()> {
    let size = file.metadata()?.len();
    let part = PART.max(size.div_ceil(MAX_PARTS));
    let mut next = move || {
        let mut bytes = Vec::new();
        (&mut file).take(part).read_to_end(&mut bytes).map(|_| Bytes::from(bytes))
    };
    if size <= part {
        store.put(key, next()?.into()).await?;
        return Ok(());
    }
    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(key).await?, part as usize);
    let sent = async {
        loop {
            upload.wait_for_capacity(AHEAD).await?;
            match next()? {
                bytes if bytes.is_empty() => return Ok(()),
                bytes => upload.put(bytes),
            }
        }
    };
    match sent.await {
        Ok(()) => upload.finish().await.map(drop).map_err(io::Error::from),
        Err(error) => {
            // Parts of an object that never comes to be are paid for. The error at hand says more than a second one.
            upload.abort().await.ok();
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::executor::block_on;
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn a_file_becomes_an_object_whatever_its_size() {
        let (store, key) = (InMemory::new(), Key::from("a/b"));
        for size in [0, 1, PART, PART + 1, 2 * PART, 2 * PART + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            block_on(put(&store, &key, file.reopen().unwrap())).unwrap();
            let stored = block_on(async { store.get(&key).await.unwrap().bytes().await.unwrap() });
            assert!(stored == bytes, "{size}");
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
