//! One shard of a data set.

use std::{
    fs,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    process,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempPath};
use tfarrow_codec::SharedFeatures;

use super::listed_file::ListedFile;
use crate::{
    Compression, Error, Result, ShardFormat,
    file_names::STDIN,
    format::{payload::Payload, sniff::HeadInfo},
    lock::Lock,
    process::PerProcess,
    sharding::folder_columns::{FolderColumn, columns_of_name, shared_features},
    store::object::Object,
};

/// The temporary copies that this process has made of streams and objects. Some may have been
/// removed already.
static COPIES: PerProcess<Lock<Vec<PathBuf>>> = PerProcess::new();

/// Removes the temporary copies of streams and objects that this process has made: for a program
/// that exits immediately, such as after a signal, without dropping each [`Shard`].
pub fn remove_copies() {
    for copy in COPIES.get(Lock::default).lock().drain(..) {
        let _ = fs::remove_file(copy);
    }
}

/// A temporary copy, which is removed when the process that made it drops it.
#[derive(Debug)]
struct TempCopy {
    path: TempPath,
    /// The id of the process that made it.
    process: u32,
}

impl Drop for TempCopy {
    fn drop(&mut self) {
        if self.process != process::id() {
            self.path.disable_cleanup(true);
        }
    }
}

/// One shard of a data set: a file, an object in a store, a pipe, or standard input.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The path of the file or the URL of the object; `-` for standard input.
    pub path: PathBuf,
    /// The name in the data set: the path below the folder that is read, or below the fixed part of
    /// a glob. It is relative, without `..`.
    pub name: PathBuf,
    /// Size in bytes as stored; 0 for a stream, whose size is not known.
    pub size: u64,
    /// The format. A file that was named itself, and has no known format, counts as TFRecord:
    /// reading it reports the error.
    pub format: ShardFormat,
    head: HeadInfo,
    source: Source,
    /// The temporary copy, which is read instead of the source if there is one.
    copy: Option<Arc<TempCopy>>,
    /// The columns and the number of rows of a CSV or JSON file, once they were inferred. Clones
    /// share them.
    text_columns: Arc<OnceLock<(SchemaRef, u64)>>,
    /// The columns of folders, which are those of the data set.
    folder_columns: Arc<[FolderColumn]>,
}

/// Where the bytes of a shard are.
#[derive(Clone, Debug)]
enum Source {
    /// In a file: at the path of the shard or, if another process named it by a path relative to its
    /// own folder, at this absolute path.
    File(Option<Arc<PathBuf>>),
    /// In a store. An object is larger than the rest of a shard, and most shards are files.
    Object(Arc<Object>),
    /// In standard input, a pipe or a device, which can be read only once.
    Stream,
}

/// The properties of a shard, which can be serialized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardState {
    /// The path, or the URL. Bytes of paths that are no text are replaced.
    path: String,
    name: String,
    size: u64,
    format: ShardFormat,
    compression: Option<Compression>,
}

impl Shard {
    /// Returns the properties that another process can know the shard by.
    pub fn state(&self) -> ShardState {
        ShardState {
            path: self.path.to_string_lossy().into_owned(),
            name: self.name.to_string_lossy().into_owned(),
            size: self.size,
            format: self.format,
            compression: self.head.compression,
        }
    }

    /// Creates a shard with these properties, for messages and reports about it. Its data cannot be
    /// read: the other process may have had a store or a file system of its own.
    pub fn of_state(state: ShardState) -> Self {
        let ShardState {
            path,
            name,
            size,
            format,
            compression,
        } = state;
        let mut shard = Self::file(path.into(), name.into(), size, format);
        shard.head.compression = compression;
        shard
    }

    /// Creates a shard that is a file.
    pub fn file(path: PathBuf, name: PathBuf, size: u64, format: ShardFormat) -> Self {
        Self {
            path,
            name,
            size,
            format,
            head: HeadInfo::default(),
            source: Source::File(None),
            copy: None,
            text_columns: Arc::default(),
            folder_columns: Arc::default(),
        }
    }

    /// Creates a shard that can be read only once: standard input, a pipe, a device.
    pub(crate) fn stream(path: PathBuf, name: PathBuf) -> Self {
        Self {
            source: Source::Stream,
            ..Self::file(path, name, 0, ShardFormat::TfRecord)
        }
    }

    /// Creates a shard that is an object in a store, whose URL is `path`.
    pub(crate) fn remote(
        path: PathBuf,
        name: PathBuf,
        size: u64,
        format: ShardFormat,
        object: Object,
    ) -> Self {
        Self {
            source: Source::Object(Arc::new(object)),
            ..Self::file(path, name, size, format)
        }
    }

    /// Returns the shard with the absolute path of its file; `None` if that is its path.
    pub(crate) fn with_located(mut self, located: Option<PathBuf>) -> Self {
        if let Some(path) = located {
            self.source = Source::File(Some(Arc::new(path)));
        }
        self
    }

    /// Returns the shard with properties that its first bytes show.
    pub(crate) fn with_head(self, head: HeadInfo) -> Self {
        Self { head, ..self }
    }

    /// Sets the properties that the first bytes show.
    pub(crate) fn set_head(&mut self, head: HeadInfo) {
        self.head = head;
    }

    /// The compression, if the first bytes were read, and a valid record follows or the file has no
    /// data.
    pub fn compression(&self) -> Option<Compression> {
        self.head.compression
    }

    /// The kind of the records, as far as the first bytes were read and determine it.
    pub fn payload(&self) -> Payload {
        self.head.payload
    }

    /// The version of the data: the ETag of an object, or the time of the last change of a file, or
    /// of an object whose store has no ETags. `None` if it is not known.
    pub fn version(&self) -> Option<String> {
        if let Source::Object(object) = &self.source {
            return Some(object.version.clone());
        }
        let changed = fs::metadata(self.local_path())
            .and_then(|metadata| metadata.modified())
            .ok()?;
        let changed = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(changed.as_nanos().to_string())
    }

    /// The path, or the URL, of the file beside the shard whose name is that of the shard followed by
    /// `suffix`. `None` for a shard that has no place of its own: standard input, a pipe, or a URL
    /// with a query.
    pub fn path_beside(&self, suffix: &str) -> Option<PathBuf> {
        let has_secret = self.object().is_some_and(Object::has_secret);
        if self.reads_once() || self.copy.is_some() || has_secret {
            return None;
        }
        let mut path = self.located().as_os_str().to_owned();
        path.push(suffix);
        Some(path.into())
    }

    /// Returns whether the listing in which an object was found shows that it has no index beside it.
    pub fn lacks_index(&self) -> bool {
        self.object().is_some_and(|object| object.lacks_index)
    }

    /// Returns whether each read of a range fails if the data has another version. A store without
    /// ETags cannot check it.
    pub(crate) fn checks_version(&self) -> bool {
        self.object().is_none_or(Object::has_tag)
    }

    /// The columns of a CSV or JSON file, and its number of rows: those of an earlier call for this
    /// shard or a clone of it, or the result of `infer`, which reads the file.
    ///
    /// # Errors
    /// Those of `infer`.
    pub fn text_columns(
        &self,
        infer: impl FnOnce() -> Result<(SchemaRef, u64)>,
    ) -> Result<(SchemaRef, u64)> {
        match self.text_columns.get() {
            Some(known) => Ok(known.clone()),
            // If two threads infer at the same time, the results are equal.
            None => infer().map(|inferred| self.text_columns.get_or_init(|| inferred).clone()),
        }
    }

    /// Returns whether the columns of a CSV or JSON file are known.
    pub fn has_text_columns(&self) -> bool {
        self.text_columns.get().is_some()
    }

    /// The columns of the folders `key=value` that the shard is in below its source, which rows and
    /// records have besides their own. All shards that [`resolve`](crate::resolve) returns together
    /// have the same columns.
    pub fn folder_columns(&self) -> &[FolderColumn] {
        &self.folder_columns
    }

    /// Sets the columns of folders.
    pub(crate) fn set_folder_columns(&mut self, columns: Arc<[FolderColumn]>) {
        self.folder_columns = columns;
    }

    /// Returns the shard with another name in its data set, and the columns of these folder keys.
    pub fn with_name(self, name: PathBuf, keys: &[&str]) -> Self {
        let folder_columns = columns_of_name(&name, keys);
        Self {
            name,
            folder_columns,
            ..self
        }
    }

    /// Returns the shard without columns of folders, for a reader that has these columns otherwise,
    /// or needs none.
    pub fn without_folder_columns(self) -> Self {
        Self {
            folder_columns: Arc::default(),
            ..self
        }
    }

    /// Returns the shard without the columns of these folder keys.
    pub fn without_folder_keys(self, keys: &[String]) -> Self {
        let others = self
            .folder_columns
            .iter()
            .filter(|column| !keys.contains(&column.key))
            .cloned();
        Self {
            folder_columns: others.collect(),
            ..self
        }
    }

    /// The columns of folders as features that all records of the shard have.
    pub(crate) fn shared_features(&self) -> SharedFeatures {
        shared_features(&self.folder_columns)
    }

    /// The object, if the shard is one.
    pub(crate) fn object(&self) -> Option<&Object> {
        match &self.source {
            Source::Object(object) => Some(object),
            Source::File(_) | Source::Stream => None,
        }
    }

    /// The path of the file itself, without a local copy.
    pub(crate) fn located(&self) -> &Path {
        match &self.source {
            Source::File(Some(path)) => path,
            Source::File(None) | Source::Object(_) | Source::Stream => &self.path,
        }
    }

    /// The object whose first bytes were not read, if the shard is one.
    pub(crate) fn unread_object(&self) -> Option<&Object> {
        self.object()
            .filter(|_| self.is_remote() && self.head.compression.is_none())
    }

    /// Returns whether the shard is in a store, without a local copy.
    pub fn is_remote(&self) -> bool {
        matches!(self.source, Source::Object(_)) && self.copy.is_none()
    }

    /// Returns whether the shard is standard input, with or without a local copy.
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new(STDIN)
    }

    /// Returns whether the source can be read only once, with or without a local copy.
    pub(crate) fn reads_once(&self) -> bool {
        matches!(self.source, Source::Stream)
    }

    /// Returns whether the shard can be read only once and from its start: standard input or a
    /// pipe, without a local copy.
    pub fn is_stream(&self) -> bool {
        self.reads_once() && self.copy.is_none()
    }

    /// Returns whether the shard is a file of a web server that cannot be read in parts, or by its
    /// path alone, because the server supports no ranges or the URL has a query; without a local
    /// copy.
    pub fn needs_local_copy(&self) -> bool {
        self.is_remote() && self.object().is_some_and(|object| !object.is_plain())
    }

    /// The path to open: that of the local copy that [`spool`](Self::spool) made, or else
    /// [`path`](Self::path). It is not a file's path if the shard [is a stream](Self::is_stream) or
    /// [is remote](Self::is_remote).
    pub fn local_path(&self) -> &Path {
        match &self.copy {
            Some(copy) => &copy.path,
            None => self.located(),
        }
    }

    /// Copies the shard to a temporary file if it can be read only once, or cannot be read in
    /// parts, and determines its format and size. Does nothing for other shards. The copy is
    /// removed when the last clone of the shard is dropped in the process that made it: a child
    /// that it forks can read the copy until then.
    ///
    /// # Errors
    /// An I/O error.
    pub fn spool(&mut self) -> Result<()> {
        if self.is_stream() || self.needs_local_copy() {
            self.make_copy()
        } else {
            Ok(())
        }
    }

    /// Copies the shard to a temporary file as [`spool`](Self::spool) does, and also if it is of
    /// another format than TFRecord in a store, which cannot be read from start to end once.
    ///
    /// # Errors
    /// An I/O error.
    pub fn spool_for_scan(&mut self) -> Result<()> {
        self.spool()?;
        if self.is_remote() {
            self.spool_columnar()
        } else {
            Ok(())
        }
    }

    fn make_copy(&mut self) -> Result<()> {
        let wrap = |error| Error::io(&self.path, error);
        let mut source = self.open().map_err(wrap)?;
        let mut copy = NamedTempFile::with_prefix(".tfarrow-").map_err(wrap)?;
        COPIES
            .get(Lock::default)
            .lock()
            .push(copy.path().to_owned());
        self.size = io::copy(&mut source, &mut copy).map_err(wrap)?;
        let copy = copy.into_temp_path();
        let (format, head) = ShardFormat::sniff_head(&copy)?;
        let format = format.or_else(|| ShardFormat::of_name(&self.path));
        self.format = ShardFormat::of_named(format, &head, &self.path);
        self.head = head;
        self.copy = Some(Arc::new(TempCopy {
            path: copy,
            process: process::id(),
        }));
        Ok(())
    }

    /// Copies the shard to a temporary file if it is Parquet or Arrow, which cannot be read from
    /// start to end, and is standard input or remote. Does nothing for other shards.
    ///
    /// # Errors
    /// An I/O error.
    pub fn spool_columnar(&mut self) -> Result<()> {
        if self.is_remote() && self.format != ShardFormat::TfRecord {
            return self.make_copy();
        }
        if !self.is_stdin() || !self.is_stream() {
            return Ok(());
        }
        let mut stdin = io::stdin().lock();
        let head = stdin
            .fill_buf()
            .map_err(|error| Error::io(&self.path, error))?;
        let is_columnar = ShardFormat::columnar_of_head(head).is_some();
        // The bytes stay in the buffer of standard input for the next reader.
        drop(stdin);
        if is_columnar { self.spool() } else { Ok(()) }
    }

    /// Reads all bytes of the shard, as they are stored; only the first ones of a shard that does
    /// not begin with `magic`.
    ///
    /// # Errors
    /// An I/O error, and more than `most` bytes.
    pub fn read_all(&self, magic: &[u8], most: u64) -> Result<Vec<u8>> {
        let wrap = |error| Error::io(&self.path, error);
        let mut bytes = Vec::new();
        let mut file = self.open().map_err(wrap)?;
        file.by_ref()
            .take(magic.len() as u64)
            .read_to_end(&mut bytes)
            .map_err(wrap)?;
        if bytes != magic {
            return Ok(bytes);
        }
        let rest = most.saturating_add(1).saturating_sub(bytes.len() as u64);
        file.take(rest).read_to_end(&mut bytes).map_err(wrap)?;
        if bytes.len() as u64 > most {
            return Err(wrap(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file has more than {most} bytes"),
            )));
        }
        Ok(bytes)
    }

    /// Opens a plain file or object for reading from the byte `from` on. Reading fails if the file
    /// has become shorter than when it was listed.
    pub(crate) fn open_at(&self, from: u64) -> io::Result<Box<dyn Read + Send>> {
        match &self.source {
            Source::Object(object) if self.copy.is_none() => Ok(object.open_at(from)),
            _ => Ok(Box::new(ListedFile::open_at(
                self.local_path(),
                from,
                self.size,
            )?)),
        }
    }

    /// Opens the shard for reading from its start, as it is stored. Reading fails if the file has
    /// become shorter than when it was listed.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        if self.is_stdin() && self.is_stream() {
            return Ok(Box::new(io::stdin()));
        }
        self.open_at(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_another_magic_number_is_not_read() {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), b"magic and more").unwrap();
        let shard = Shard::file(
            file.path().to_owned(),
            "a".into(),
            14,
            ShardFormat::TfRecord,
        );
        assert_eq!(shard.read_all(b"magic", 100).unwrap(), b"magic and more");
        assert_eq!(shard.read_all(b"other", 100).unwrap(), b"magic");
        assert!(shard.read_all(b"magic", 13).is_err());
    }

    #[test]
    fn a_copy_is_removed_only_by_the_process_that_made_it() {
        let made_by = |process| {
            let path = NamedTempFile::new().unwrap().into_temp_path();
            let copy = TempCopy { path, process };
            let name = copy.path.to_path_buf();
            drop(copy);
            name
        };
        assert!(!made_by(process::id()).exists());
        let left = made_by(process::id() + 1);
        assert!(left.exists());
        fs::remove_file(left).unwrap();
    }
}
