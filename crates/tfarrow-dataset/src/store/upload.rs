//! Outputs in object stores: existing objects, and uploads of complete files.

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
use object_store::{
    Attribute, Attributes, MultipartUpload, ObjectStore, PutMode, PutOptions, path::Path as Key,
};
use tokio::sync::Semaphore;

use super::{
    AHEAD, OBJECTS_AT_ONCE, PART,
    location::{Location, invalid_source, is_remote, parse_key},
    object::{Object, head, head_with_attributes},
    wait,
};
use crate::{Error, ErrorKind, Result, process::PerProcess};

/// Maximum number of parts of an object. S3 allows 10,000.
const MAX_PARTS: u64 = 9_000;

/// Returns the permits for requests with parts, of all uploads together: each part is in memory,
/// and all share one connection.
fn permits() -> &'static Semaphore {
    static PERMITS: PerProcess<Semaphore> = PerProcess::new();
    PERMITS.get(|| Semaphore::new(2 * AHEAD))
}

/// The place of an object that may not exist yet: its store, and its key there.
pub(crate) type OutputObject = (Arc<dyn ObjectStore>, Key);

/// Returns the location of an output, or of a folder of outputs, in a store; `None` if it is a path
/// of this machine.
///
/// # Errors
/// The URL is not UTF-8, or that of a web server.
fn location(target: &Path) -> Result<Option<Location<'_>>> {
    if !is_remote(&target.to_string_lossy()) {
        return Ok(None);
    }
    let Some(location) = target.to_str().and_then(Location::parse) else {
        return Err(invalid_source(
            target,
            "the name of an object must be UTF-8",
        ));
    };
    if location.is_http() {
        return Err(invalid_source(
            target,
            "cannot write to a web server: name a folder on this machine, or in an object store",
        ));
    }
    Ok(Some(location))
}

/// Returns the place of the object that an output is; `None` if it is a file.
///
/// # Errors
/// The URL cannot be that of an object, or its store cannot be used.
pub(crate) fn output_object(target: &Path) -> Result<Option<OutputObject>> {
    let Some(location) = location(target)? else {
        return Ok(None);
    };
    if location.path.is_empty() {
        return Err(invalid_source(
            target,
            "names a store without an object in it",
        ));
    }
    let key = parse_key(location.path).map_err(|error| Error::io(target, error))?;
    Ok(Some((location.store()?, key)))
}

/// Returns those of `outputs`, files or objects, that exist.
///
/// # Errors
/// A URL cannot be that of an object, or a request failed.
pub fn existing<'o>(outputs: &[&'o Path]) -> Result<Vec<&'o Path>> {
    let mut found = Vec::new();
    let mut paths = Vec::new();
    let mut objects = Vec::new();
    for output in outputs {
        match output_object(output)? {
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
    let answers = wait(
        stream::iter(objects)
            .map(|(store, key)| async move { exists(&store, &key).await })
            .buffered(OBJECTS_AT_ONCE)
            .collect::<Vec<_>>(),
    );
    let answers = answers.map_err(|error| Error::io("object store", error))?;
    for (path, answer) in paths.into_iter().zip(answers) {
        if answer.map_err(|error| Error::io(path, error.into()))? {
            found.push(path);
        }
    }
    Ok(found)
}

/// An object that has the name of an output.
#[derive(Debug)]
pub struct ExistingObject {
    object: Object,
    note: Option<String>,
}

impl ExistingObject {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.object.size
    }

    /// The [note](crate::CompleteFile::set_note) that it was uploaded with.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Opens the object for reading from its start.
    pub fn open(&self) -> Box<dyn Read + Send> {
        self.object.open_at(0)
    }

    /// Reads the first `count` bytes, or all of a smaller object, with one request.
    ///
    /// # Errors
    /// The request failed, or the object was replaced.
    pub fn first_bytes(&self, count: u64) -> io::Result<Vec<u8>> {
        let object = self.object.clone();
        let bytes = wait(async move { object.first_bytes(count).await })??;
        Ok(bytes.to_vec())
    }
}

/// Finds the object of each of `outputs`, with one request each; `None` for those that do not
/// exist, and for files.
///
/// # Errors
/// A URL cannot be that of an object, or a request failed.
pub fn existing_objects(outputs: &[&Path]) -> Result<Vec<Option<ExistingObject>>> {
    let places = outputs
        .iter()
        .map(|output| output_object(output))
        .collect::<Result<Vec<_>>>()?;
    if places.iter().all(Option::is_none) {
        return Ok(places.iter().map(|_| None).collect());
    }
    let answers = wait(
        stream::iter(places)
            .map(head_of_place)
            .buffered(OBJECTS_AT_ONCE)
            .collect::<Vec<_>>(),
    );
    let answers = answers.map_err(|error| Error::io("object store", error))?;
    let mut objects = Vec::new();
    for (path, answer) in outputs.iter().zip(answers) {
        let found = answer.map_err(|error| Error::io(*path, error.into()))?;
        objects.push(found.map(|(object, attributes)| {
            let note = attributes.get(&note_key()).map(|note| note.to_string());
            ExistingObject { object, note }
        }));
    }
    Ok(objects)
}

/// Requests the object at a place with its attributes; `None` if there is none, and for a file.
async fn head_of_place(
    place: Option<OutputObject>,
) -> object_store::Result<Option<(Object, Attributes)>> {
    let Some((store, key)) = place else {
        return Ok(None);
    };
    head_with_attributes(&store, &key).await
}

/// The attribute of an object that has its note. Its name has letters alone: Azure allows no
/// hyphens, and some proxies drop headers with underscores.
fn note_key() -> Attribute {
    Attribute::Metadata("tfarrowmadeof".into())
}

/// Returns the names of the files or objects in a folder; none if there is no such folder.
///
/// # Errors
/// An I/O error, or a request failed.
pub fn names_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(folder, error);
    let Some(location) = location(folder)? else {
        let entries = match folder.read_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        return entries
            .map(|entry| Ok(PathBuf::from(entry.map_err(failed)?.file_name())))
            .collect();
    };
    let store = location.store()?;
    let key = parse_key(location.path).map_err(failed)?;
    let listed = wait(async move { store.list_with_delimiter(Some(&key)).await });
    let listed = listed.and_then(|listed| Ok(listed?)).map_err(failed)?;
    Ok(listed
        .objects
        .iter()
        .filter_map(|object| object.location.filename().map(PathBuf::from))
        .collect())
}

/// Uploads the file at `path` as an object, whose URL is `target`, with a note in its attributes.
/// The object appears when it is complete.
///
/// # Errors
/// [`ErrorKind::Exists`] if the object exists and `overwrite` is `false`, an I/O error, or a
/// request failed.
pub(crate) fn upload(
    path: &Path,
    target: &Path,
    (store, key): OutputObject,
    overwrite: bool,
    note: Option<String>,
) -> Result<()> {
    let failed = |error| Error::io(target, error);
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let attributes: Attributes = note.map(|note| (note_key(), note)).into_iter().collect();
    let put = wait(async move { put_new(&store, &key, file, overwrite, attributes).await });
    match put.and_then(|put| put).map_err(failed)? {
        true => Ok(()),
        false => Err(Error::new(target, ErrorKind::Exists)),
    }
}

/// Puts an object, and returns whether it did: `false` if the object exists and `overwrite` is
/// `false`. If two programs complete a new object of several parts within the time of one request,
/// the last one replaces the other, because stores have no condition for that.
async fn put_new(
    store: &Arc<dyn ObjectStore>,
    key: &Key,
    file: File,
    overwrite: bool,
    attributes: Attributes,
) -> io::Result<bool> {
    if !overwrite && exists(store, key).await? {
        return Ok(false);
    }
    let mode = if overwrite {
        PutMode::Overwrite
    } else {
        PutMode::Create
    };
    match put(store.as_ref(), key, &file, mode, attributes.clone()).await {
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        // The store does not support the condition of PutMode::Create.
        Err(
            object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. },
        ) if !overwrite => {
            put(store.as_ref(), key, &file, PutMode::Overwrite, attributes).await?;
            Ok(true)
        }
        put => Ok(put.map(|()| true)?),
    }
}

async fn exists(store: &Arc<dyn ObjectStore>, key: &Key) -> object_store::Result<bool> {
    Ok(head(store.as_ref(), key).await?.is_some())
}

/// Puts a file in one request, or in parts if it is large.
async fn put(
    store: &dyn ObjectStore,
    key: &Key,
    file: &File,
    mode: PutMode,
    attributes: Attributes,
) -> object_store::Result<()> {
    let size = file.metadata().map_err(generic)?.len();
    let part = PART.max(size.div_ceil(MAX_PARTS));
    if size <= part {
        let _permit = permits().acquire().await;
        let options = PutOptions {
            mode,
            attributes,
            ..PutOptions::default()
        };
        store
            .put_opts(key, read(file, 0, size).await?.into(), options)
            .await?;
        return Ok(());
    }
    let mut upload = store.put_multipart_opts(key, attributes.into()).await?;
    let sent = async {
        put_parts(upload.as_mut(), file, size, part).await?;
        // The upload may have taken minutes, in which another program has put the object.
        if mode == PutMode::Create && head(store, key).await?.is_some() {
            let source = io::Error::from(io::ErrorKind::AlreadyExists).into();
            return Err(object_store::Error::AlreadyExists {
                path: key.to_string(),
                source,
            });
        }
        Ok(())
    };
    match sent.await {
        Ok(()) => upload.complete().await.map(drop),
        Err(error) => {
            // Stores charge for parts of an upload that is not aborted. The first error is more
            // useful than a second one.
            upload.abort().await.ok();
            Err(error)
        }
    }
}

async fn put_parts(
    upload: &mut dyn MultipartUpload,
    file: &File,
    size: u64,
    part: u64,
) -> object_store::Result<()> {
    let mut sent = FuturesUnordered::new();
    let mut from = 0;
    while from < size {
        let permit = permits().acquire().await;
        let bytes = read(file, from, part.min(size - from)).await?;
        from += part;
        let put = upload.put_part(bytes.into());
        sent.push(async move {
            let _permit = permit;
            put.await
        });
        // Requests make progress only while they are polled here. At most `AHEAD` are left for the
        // next loop.
        while sent.len() >= AHEAD {
            sent.try_next().await?;
        }
    }
    while sent.try_next().await?.is_some() {}
    Ok(())
}

/// Reads bytes of a file on a thread that may block.
async fn read(file: &File, from: u64, count: u64) -> object_store::Result<Bytes> {
    let mut file = file.try_clone().map_err(generic)?;
    tokio::task::spawn_blocking(move || {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::with_capacity(count as usize);
        file.take(count).read_to_end(&mut bytes)?;
        Ok(Bytes::from(bytes))
    })
    .await
    .map_err(io::Error::other)
    .and_then(|read| read)
    .map_err(generic)
}

fn generic(error: io::Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "the temporary file",
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::executor::block_on;
    use object_store::{ObjectStoreExt, memory::InMemory};

    use super::*;

    #[test]
    fn files_of_all_sizes_are_uploaded() {
        let (store, key): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), Key::from("a/b"));
        for size in [0, 1, PART, PART + 1, 2 * PART, 2 * PART + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let file = file.reopen().unwrap();
            let there = Arc::clone(&store);
            let put = |overwrite| {
                let (store, key, file) =
                    (Arc::clone(&there), key.clone(), file.try_clone().unwrap());
                let attributes: Attributes =
                    [(note_key(), format!("note {size}"))].into_iter().collect();
                wait(async move { put_new(&store, &key, file, overwrite, attributes).await })
                    .unwrap()
                    .unwrap()
            };
            assert!(put(true));
            assert!(!put(false), "the object exists");
            let stored = block_on(async { store.get(&key).await.unwrap().bytes().await.unwrap() });
            assert!(stored == bytes, "{size}");
            let (object, attributes) = block_on(head_with_attributes(&store, &key))
                .unwrap()
                .unwrap();
            let note = attributes.get(&note_key()).map(|note| note.to_string());
            assert_eq!((object.size, note), (size, Some(format!("note {size}"))));
        }
    }

    #[test]
    fn an_object_that_appears_during_an_upload_is_kept() {
        for size in [PART, PART + 1] {
            let store = InMemory::new();
            let key = Key::from("a/b");
            let file = tempfile::tempfile().unwrap();
            file.set_len(size).unwrap();
            block_on(store.put(&key, Bytes::from_static(b"first").into())).unwrap();
            let put = async move {
                // Whether the object exists was asked before another program put it.
                let put = put(&store, &key, &file, PutMode::Create, Attributes::new()).await;
                (put, store.get(&key).await.unwrap().bytes().await.unwrap())
            };
            let (put, stored) = wait(put).unwrap();
            assert!(
                matches!(put, Err(object_store::Error::AlreadyExists { .. })),
                "{put:?}"
            );
            assert_eq!(stored, "first");
        }
    }

    #[test]
    fn urls_that_cannot_be_objects_are_rejected() {
        for target in [
            "s3://bucket",
            "s3://bucket.parquet",
            "https://host/a.parquet",
        ] {
            let error = output_object(Path::new(target)).unwrap_err().to_string();
            assert!(
                error.contains("without an object") || error.contains("to a web server"),
                "{error}"
            );
        }
        #[cfg(unix)]
        {
            let target: &std::ffi::OsStr =
                std::os::unix::ffi::OsStrExt::from_bytes(b"s3://bucket/\xff");
            assert!(
                existing(&[Path::new(target)])
                    .unwrap_err()
                    .to_string()
                    .contains("must be UTF-8")
            );
        }
    }

    #[test]
    fn existing_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        std::fs::write(&old, b"x").unwrap();
        assert_eq!(existing(&[&new, &old]).unwrap(), [old.as_path()]);
        assert_eq!(names_in(folder.path()).unwrap(), [Path::new("old")]);
        assert!(names_in(&new).unwrap().is_empty());
    }
}
