//! The bytes of a shard as it is stored, at any position: of a file, or of an object in a store.

use std::{
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use rapidgzip_core::ReadAt;

use super::positioned_file::PositionedFile;
use crate::{
    Compression, Error, ReadOptions, Result, Shard, ShardReader, lock::Lock,
    source::object_compression, store::object::Object,
};

/// Number of bytes of an object that are requested at once for a reader of a few bytes: about those
/// between two access points.
const OBJECT_PAGE: u64 = 1 << 20;

/// The bytes of a shard as it is stored.
#[derive(Debug)]
pub(super) enum StoredBytes {
    File(Arc<PositionedFile>),
    Object(Box<ObjectPages>),
}

/// The bytes of an object in a store, which are read a page at a time.
pub(super) struct ObjectPages {
    path: PathBuf,
    object: Object,
    /// Whether the pages after one are requested before they are read.
    reads_ahead: bool,
    page: Lock<ObjectPage>,
}

/// The page that was read last.
#[derive(Default)]
struct ObjectPage {
    at: u64,
    bytes: Vec<u8>,
    /// The bytes after the page, if they are requested ahead.
    rest: Option<Box<dyn Read + Send>>,
}

/// The compression of a shard, by its first bytes; `None` if they are damaged. Those of an object are
/// requested if they are not known.
///
/// # Errors
/// As [`ShardReader::open`].
pub(super) fn compression_of(shard: &Shard, options: &ReadOptions) -> Result<Option<Compression>> {
    match shard.object().filter(|_| shard.is_remote()) {
        None => Ok(Some(ShardReader::open(shard, options)?.compression())),
        Some(_) if shard.compression().is_some() => Ok(shard.compression()),
        Some(object) => object_compression(object).map_err(|error| Error::io(&shard.path, error)),
    }
}

impl StoredBytes {
    /// The bytes of a shard; `None` if it is read from its start to its end only: a pipe, an object of
    /// which no ranges are returned, and any file on systems other than Unix.
    ///
    /// # Errors
    /// An I/O error, and a file that has become shorter since it was listed.
    pub(super) fn of(shard: &Shard) -> Result<Option<Self>> {
        if let Some(object) = shard.object().filter(|_| shard.is_remote()) {
            return Ok(object
                .has_ranges
                .then(|| Self::of_object(&shard.path, object)));
        }
        let file = PositionedFile::local(shard)?;
        Ok(file.map(|file| Self::File(Arc::new(file))))
    }

    fn of_object(path: &Path, object: &Object) -> Self {
        Self::Object(Box::new(ObjectPages {
            path: path.to_owned(),
            object: object.clone(),
            reads_ahead: false,
            page: Lock::default(),
        }))
    }

    /// The same bytes for one reader from the start to the end, before which those of an object are
    /// requested.
    pub(super) fn read_ahead(self) -> Self {
        match self {
            Self::File(_) => self,
            Self::Object(mut pages) => {
                pages.reads_ahead = true;
                Self::Object(pages)
            }
        }
    }

    /// Whether the bytes are those of an object.
    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The path or URL of the shard, for errors.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::Object(pages) => &pages.path,
        }
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File(file) => file.size(),
            Self::Object(pages) => pages.object.size,
        }
    }

    /// The same bytes for another reader, whose pages are its own.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::File(file) => Self::File(Arc::clone(file)),
            Self::Object(pages) => Self::of_object(&pages.path, &pages.object),
        }
    }

    /// Fills `to` with the bytes at `at`, of an object by one request.
    ///
    /// # Errors
    /// An I/O error, and a shard that has fewer bytes, or was replaced.
    pub(super) fn read_exact_at(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let wrap = |error| Error::io(self.path(), error);
        let end = at.checked_add(to.len() as u64);
        if end.is_none_or(|end| end > self.size()) {
            return Err(wrap(io::ErrorKind::UnexpectedEof.into()));
        }
        match self {
            Self::File(file) => file.read_at(at, to),
            Self::Object(pages) => pages.object.read_exact_at(at, to).map_err(wrap),
        }
    }

    /// Reads bytes at `at` into `to`. Returns their number, 0 at the end.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at).
    pub(super) fn read_some_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_some_at(at, to),
            Self::Object(pages) => pages.read_some_at(at, to),
        }
    }
}

impl ReadAt for StoredBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.size())
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        self.read_some_at(offset, to)
    }
}

impl ObjectPages {
    /// Reads bytes at `at`, as [`StoredBytes::read_some_at`].
    fn read_some_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        let mut page = self.page.lock();
        let end = page.at + page.bytes.len() as u64;
        if !(page.at..end).contains(&at) {
            let rest = page.rest.take().filter(|_| at == end);
            *page = self.read_page(at, rest)?;
        }
        let from = (at - page.at) as usize;
        let rest = page.bytes.get(from..).unwrap_or_default();
        let count = rest.len().min(to.len());
        let to = to.get_mut(..count).unwrap_or_default();
        to.copy_from_slice(rest.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Reads the page at `at`, with which `rest` begins.
    fn read_page(&self, at: u64, rest: Option<Box<dyn Read + Send>>) -> io::Result<ObjectPage> {
        let left = self.object.size.saturating_sub(at);
        let mut bytes = vec![0; left.min(OBJECT_PAGE) as usize];
        if !self.reads_ahead {
            self.object.read_exact_at(at, &mut bytes)?;
            return Ok(ObjectPage {
                at,
                bytes,
                rest: None,
            });
        }
        let mut rest = rest.unwrap_or_else(|| self.object.open_at(at));
        rest.read_exact(&mut bytes)?;
        Ok(ObjectPage {
            at,
            bytes,
            rest: Some(rest),
        })
    }
}

impl fmt::Debug for ObjectPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPages")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
