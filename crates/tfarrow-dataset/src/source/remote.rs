//! Shards in object stores and on web servers.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, path::Path as Key};

use super::{
    resolved::{Exclude, FormatFilter, Resolved},
    table_log::table_log_error,
};
use crate::{
    Compression, Error, ErrorKind, Result, Shard, ShardFormat,
    file_names::{
        is_hidden, is_hidden_by, is_numbered_tfrecord, is_reader_index, is_shard_name, is_sidecar,
    },
    format::sniff::{HeadInfo, TAIL},
    sharding::{glob::Glob, missing::missing_shards, spec::ShardSpec},
    store::{
        OBJECTS_AT_ONCE,
        location::{Location, UNKNOWN_URL, invalid_source},
        object::Object,
        wait,
    },
    system::is_store_failure,
};

/// Number of bytes at the start of an object that identify its format.
const HEAD: u64 = 4 << 10;

/// Finds the shards that a URL names: an object, all objects below a folder, those that match a
/// glob, or those of a shard spec; on a web server, one file.
///
/// # Errors
/// There is no shard, or a request failed.
pub(super) fn find(source: &str, filter: FormatFilter, exclude: Exclude<'_>) -> Result<Resolved> {
    let location = Location::parse(source).ok_or_else(|| invalid_source(source, UNKNOWN_URL))?;
    if location.is_http() {
        return find_http(source, &location, filter).map(|shard| Resolved::of([shard]));
    }
    let store = location.store()?;
    if Glob::is_glob(location.path) {
        return find_by_glob(source, &location, &store, filter, exclude);
    }
    let key = location.path.trim_end_matches('/');
    if !key.is_empty()
        && key == location.path
        && let Some(shard) =
            find_object(&location, &store, key, filter).map_err(|error| Error::io(source, error))?
    {
        return Ok(Resolved::of([shard]));
    }
    match ShardSpec::parse(source) {
        Some(spec) => find_by_spec(source, &location, &store, &spec, filter),
        None => find_below(source, &location, &store, filter, exclude),
    }
}

/// Finds one object.
fn find_object(
    location: &Location<'_>,
    store: &Arc<dyn ObjectStore>,
    key: &str,
    filter: FormatFilter,
) -> io::Result<Option<Shard>> {
    match Object::find(store, key)? {
        Some(object) => Ok(Some(named_object(location, object, filter)?)),
        None => Ok(None),
    }
}

fn find_by_spec(
    source: &str,
    location: &Location<'_>,
    store: &Arc<dyn ObjectStore>,
    spec: &ShardSpec,
    filter: FormatFilter,
) -> Result<Resolved> {
    let failed = |error: io::Error| Error::io(source, error);
    let (folder, _) = location.path.rsplit_once('/').unwrap_or_default();
    let mut objects = Vec::new();
    for object in Object::list(store, folder).map_err(failed)? {
        if let Some(name) = below(&object, folder).to_str() {
            objects.push((name.to_owned(), object));
        }
    }
    let mut shards = Vec::new();
    for object in spec.choose(objects)? {
        shards.push(named_object(location, object, filter).map_err(failed)?);
    }
    Ok(Resolved::of(shards))
}

fn find_below(
    source: &str,
    location: &Location<'_>,
    store: &Arc<dyn ObjectStore>,
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> Result<Resolved> {
    let failed = |error: io::Error| Error::io(source, error);
    let folder = location.path.trim_end_matches('/');
    let objects = Object::list(store, folder).map_err(failed)?;
    let count = objects.len();
    for object in &objects {
        if let Some(error) = log_error(source, &below(object, folder)) {
            return Err(error);
        }
    }
    let names = Names {
        is_named: &|below| !is_hidden(below),
        by_glob: false,
    };
    let found = select(location, folder, objects, names, filter, exclude).map_err(failed)?;
    let found = Resolved {
        missing: missing_shards(&found.shards),
        ..found
    };
    found.or_none(
        source,
        format!("no such object, and of {count} objects below that name none is a shard"),
    )
}

fn find_by_glob(
    source: &str,
    location: &Location<'_>,
    store: &Arc<dyn ObjectStore>,
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> Result<Resolved> {
    let failed = |error: io::Error| Error::io(source, error);
    let glob =
        Glob::new(location.path).map_err(|error| Error::new(source, ErrorKind::Glob(error)))?;
    let prefix = glob.prefix.to_string_lossy().into_owned();
    let objects = Object::list(store, &prefix).map_err(failed)?;
    let count = objects.len();
    let names = Names {
        is_named: &|below| names_object(&glob, below),
        by_glob: true,
    };
    let found = select(location, &prefix, objects, names, filter, exclude).map_err(failed)?;
    found.or_none(
        source,
        format!("of {count} objects there, none that is a shard matches"),
    )
}

/// Returns whether a glob names an object, by the path of the object below the prefix.
fn names_object(glob: &Glob, below: &Path) -> bool {
    if !glob.matches(below) {
        return false;
    }
    let shown = if is_numbered_tfrecord(below) {
        below.parent().unwrap_or(below)
    } else {
        below
    };
    for first in ['_', '.'] {
        if !glob.names_prefix(first) && has_hidden_part(shown, first) {
            return false;
        }
    }
    true
}

/// Returns the one file that the URL of a web server names.
fn find_http(source: &str, location: &Location<'_>, filter: FormatFilter) -> Result<Shard> {
    let failed = |error: io::Error| Error::io(location.url(location.path), error);
    if location.path.is_empty() || location.path.ends_with('/') || Glob::is_glob(location.path) {
        return Err(invalid_source(
            source,
            "web servers cannot list files: name each file",
        ));
    }
    let key = Key::from_url_path(location.path)
        .map_err(|error| failed(object_store::Error::from(error).into()))?;
    let store = location.store()?;
    let has_secret = location.has_secret();
    let found = wait(async move { Object::find_http(&store, &key, has_secret).await });
    match found.and_then(|object| Ok(object?)).map_err(failed)? {
        Some(object) => named_object(location, object, filter).map_err(failed),
        None => Err(failed(io::ErrorKind::NotFound.into())),
    }
}

/// Returns whether a component of the path is hidden by its first character, `first`.
fn has_hidden_part(path: &Path, first: char) -> bool {
    path.iter().any(|part| is_hidden_by(part, first))
}

/// The error for an object that is part of the log of a table, by its path below the folder
/// `source`.
fn log_error(source: &str, below: &Path) -> Option<Error> {
    let folders = below.parent()?.ancestors();
    folders
        .filter_map(Path::file_name)
        .find_map(|name| table_log_error(Path::new(source), name))
}

/// Returns the path of an object below a folder.
fn below(object: &Object, folder: &str) -> PathBuf {
    let key = object.key.as_ref();
    PathBuf::from(
        key.strip_prefix(folder)
            .unwrap_or(key)
            .trim_start_matches('/'),
    )
}

/// Determines the format of an object by its first bytes, its last bytes and its name, as
/// [`ShardFormat::sniff`] does for files.
async fn sniff(object: &Object) -> object_store::Result<(Option<ShardFormat>, HeadInfo)> {
    let (known, head) = ShardFormat::of_head(object.first_bytes(HEAD).await?);
    if known.is_some() {
        return Ok((known, head));
    }
    let tail = match object.has_ranges {
        true => {
            object
                .bytes(object.size.saturating_sub(TAIL), object.size)
                .await?
        }
        false => Bytes::new(),
    };
    Ok((
        ShardFormat::of_tail(&tail)
            .or_else(|| ShardFormat::of_name(Path::new(object.key.as_ref()))),
        head,
    ))
}

/// Does the same. With [`FormatFilter::ToVerify`], an object that cannot be read counts as
/// TFRecord: reading it reports the error.
async fn sniff_filtered(
    object: &Object,
    filter: FormatFilter,
) -> object_store::Result<(Option<ShardFormat>, HeadInfo)> {
    match sniff(object).await {
        Err(error) if filter == FormatFilter::ToVerify && !is_store_failure(&error) => {
            Ok((Some(ShardFormat::TfRecord), HeadInfo::default()))
        }
        sniffed => sniffed,
    }
}

/// Returns the shard that an object is, whatever its format.
fn named_object(
    location: &Location<'_>,
    object: Object,
    filter: FormatFilter,
) -> io::Result<Shard> {
    let client = object.clone();
    let (format, head) = wait(async move { sniff_filtered(&client, filter).await })??;
    let format = ShardFormat::of_named(format, &head, Path::new(object.key.as_ref()));
    let name = object.key.filename().unwrap_or("records").into();
    let path = PathBuf::from(location.url(object.key.as_ref()));
    Ok(Shard::remote(path, name, object.size, format, object).with_head(head))
}

/// Reads the first bytes of the objects among `shards` that were found by name, several at once,
/// and determines their [compression](Shard::compression) and the [kind of their
/// records](Shard::payload).
///
/// # Errors
/// The first object that cannot be read.
pub fn read_heads(shards: &mut [Shard]) -> Result<()> {
    let mut unread = Vec::new();
    for (index, shard) in shards.iter().enumerate() {
        if let Some(object) = shard.unread_object() {
            unread.push((index, object.clone()));
        }
    }
    let sniffed: Vec<_> = wait(
        stream::iter(unread)
            .map(|(index, object)| async move { (index, sniff(&object).await) })
            .buffered(OBJECTS_AT_ONCE)
            .collect(),
    )
    .map_err(|error| Error::io("", error))?;
    for (index, sniffed) in sniffed {
        let Some(shard) = shards.get_mut(index) else {
            continue;
        };
        let (format, head) = sniffed.map_err(|error| Error::io(&shard.path, error.into()))?;
        if format == Some(ShardFormat::TfRecord) {
            shard.set_head(head);
        }
    }
    Ok(())
}

/// The compression of an object, by its first bytes, as [`Shard::compression`].
///
/// # Errors
/// The request failed, or the object was replaced.
pub(crate) fn object_compression(object: &Object) -> io::Result<Option<Compression>> {
    let object = object.clone();
    let head = wait(async move { object.first_bytes(HEAD).await })??;
    let (_, head) = ShardFormat::of_head(head);
    Ok(head.compression)
}

/// The names of the objects that a source names.
#[derive(Clone, Copy)]
struct Names<'n> {
    /// Whether the source names an object, by the path of the object below the prefix.
    is_named: &'n dyn Fn(&Path) -> bool,
    /// Whether the source is a glob, not a folder.
    by_glob: bool,
}

/// An object that a source names.
struct NamedObject {
    /// The path below the prefix.
    name: PathBuf,
    object: Object,
    format: Option<ShardFormat>,
    head: HeadInfo,
}

/// Selects the objects below `prefix` that are shards. The format of an object that is not named
/// like a shard is determined by its bytes.
fn select(
    location: &Location<'_>,
    prefix: &str,
    objects: Vec<Object>,
    names: Names<'_>,
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> io::Result<Resolved> {
    let mut found = Resolved::default();
    let mut not_empty = Vec::new();
    for object in objects {
        let name = below(&object, prefix);
        if !(names.is_named)(&name) {
            continue;
        }
        let is_format = is_shard_name(&name) || ShardFormat::of_name(&name).is_some();
        if object.size > 0 || filter != FormatFilter::Files && is_format {
            not_empty.push((name, object));
        } else {
            found.skipped_files.empty += 1;
        }
    }
    for object in sniff_all(not_empty, filter)? {
        add(&mut found, object, location, names.by_glob, filter);
    }
    exclude(&mut found);
    filter.prefer(&mut found, names.by_glob);
    found.remove_events();
    Ok(found)
}

/// Determines the formats of objects, several at once.
fn sniff_all(
    objects: Vec<(PathBuf, Object)>,
    filter: FormatFilter,
) -> io::Result<Vec<NamedObject>> {
    let sniffed =
        stream::iter(objects).map(move |(name, object)| sniff_named(name, object, filter));
    Ok(wait(sniffed.buffered(OBJECTS_AT_ONCE).try_collect())??)
}

/// Determines the format of an object, which is not read if its name shows that it is TFRecord.
async fn sniff_named(
    name: PathBuf,
    object: Object,
    filter: FormatFilter,
) -> object_store::Result<NamedObject> {
    let (format, head) = if filter == FormatFilter::Files || is_shard_name(&name) {
        (Some(ShardFormat::TfRecord), HeadInfo::default())
    } else {
        sniff_filtered(&object, filter).await?
    };
    Ok(NamedObject {
        name,
        object,
        format,
        head,
    })
}

/// Adds an object to the shards, or to the skipped files.
fn add(
    found: &mut Resolved,
    named: NamedObject,
    location: &Location<'_>,
    by_glob: bool,
    filter: FormatFilter,
) {
    let NamedObject {
        name,
        object,
        mut format,
        head,
    } = named;
    if head.empty_text(&name).is_some() {
        found.skipped_files.empty += 1;
        return;
    }
    if is_reader_index(&name) {
        found.skipped_files.by_name += 1;
        return;
    }
    if format.is_none() {
        format = filter.text(&name, by_glob);
    }
    if format.is_none() && by_glob && !is_sidecar(&name) {
        format = Some(ShardFormat::TfRecord);
    }
    let path = PathBuf::from(location.url(object.key.as_ref()));
    match format {
        None if is_sidecar(&name) => found.skipped_files.by_name += 1,
        None => found.skipped_files.other(path),
        Some(format) if !filter.accepts(format) => found.skipped_files.unwanted(path),
        Some(format) => {
            let shard = Shard::remote(path, name, object.size, format, object);
            found.shards.push(shard.with_head(head));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use object_store::{ObjectStoreExt, memory::InMemory};

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
    fn objects_found_by_name_are_read_together() {
        let mut frame = Vec::new();
        tfarrow_codec::frame::write(b"\x0a\x0a\x0a\x08\x0a\x01x\x12\x03\x1a\x01\x01", &mut frame);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        std::io::Write::write_all(&mut gzip, &frame).unwrap();
        let store = store(&[
            ("d/a-00000-of-00003", frame.clone()),
            ("d/a-00001-of-00003", gzip.finish().unwrap()),
            (
                "d/a-00002-of-00003",
                b"damaged, and no more than that".to_vec(),
            ),
        ]);
        let location = Location::parse("s3://b/d").unwrap();
        let objects = Object::list(&store, "d").unwrap();
        let names = Names {
            is_named: &|_| true,
            by_glob: false,
        };
        let found = select(&location, "d", objects, names, FormatFilter::All, &|_| ()).unwrap();
        let mut shards = found.shards;
        let compressions =
            |shards: &[Shard]| shards.iter().map(Shard::compression).collect::<Vec<_>>();
        // The names identify them as shards, so that no byte was read.
        assert_eq!(compressions(&shards), [None, None, None]);
        read_heads(&mut shards).unwrap();
        assert_eq!(
            compressions(&shards),
            [Some(Compression::None), Some(Compression::Gzip), None]
        );
        block_on(store.delete(&Key::from("d/a-00002-of-00003"))).unwrap();
        let error = read_heads(&mut shards).unwrap_err().to_string();
        assert!(error.starts_with("s3://b/d/a-00002-of-00003: "), "{error}");
    }

    #[test]
    fn objects_are_selected_by_the_rules_for_files() {
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
            // Damaged files: one is recognized by its name, one by its end.
            ("d/zeros.parquet", vec![0; 50]),
            ("d/hit", b"?RROW1..ARROW1".to_vec()),
            ("d/full_disk.parquet", Vec::new()),
            ("e/other.tfrecord", frame),
        ]);
        let location = Location::parse("s3://b/d").unwrap();
        let objects = Object::list(&store, "d").unwrap();
        assert_eq!(objects.len(), 10);
        let visible = |below: &Path| !has_hidden_part(below, '_');
        let names = Names {
            is_named: &visible,
            by_glob: false,
        };
        let found = select(&location, "d", objects, names, FormatFilter::All, &|_| ()).unwrap();
        assert_eq!(
            found.skipped_files.to_string(),
            "skipped: 1 for the name, 1 empty, 1 of no known format (such as s3://b/d/notes)"
        );
        let shard = |shard: &Shard| {
            (
                shard.path.to_str().unwrap().to_owned(),
                shard.name.clone(),
                shard.format,
            )
        };
        let expect = [
            ("empty.tfrecord", ShardFormat::TfRecord),
            ("full_disk.parquet", ShardFormat::Parquet),
            ("hit", ShardFormat::Arrow),
            ("train-00000-of-00002", ShardFormat::TfRecord),
            ("x=1/odd", ShardFormat::TfRecord),
            ("zeros.parquet", ShardFormat::Parquet),
        ];
        let expect =
            expect.map(|(name, format)| (format!("s3://b/d/{name}"), PathBuf::from(name), format));
        assert_eq!(found.shards.iter().map(shard).collect::<Vec<_>>(), expect);
    }
}
