//! The quarantine: a TFRecord file of the corrupt records and bytes that a conversion skips.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use tfarrow_codec::EncoderBuilder;
use tfarrow_dataset::{
    Compression, ErrorKind, Fault, Lost, OutputFile, ReadOptions, ShardFormat, ShardReader, ShardWriter, UNFINISHED,
    existing, is_remote, resolve,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Error, Result, Target,
    earlier::Earlier,
    journal::{folders::folder_of, lock_file::open_locked},
    output::{
        attempts,
        existing_output::{exists, is_file},
    },
};

/// Maximum bytes of lost data in one record of the quarantine.
const PIECE_BYTES: usize = 64 << 20;

const NO_FOLDER: &str = "its folder does not exist; create it first";

/// An open quarantine: a TFRecord file of Examples, with these features:
///
/// | feature | value |
/// |---|---|
/// | `data` | the lost bytes, or a piece of them |
/// | `fault` | the error |
/// | `file` | the path of the shard |
/// | `record`, `offset` | the position in the decompressed shard |
/// | `stored` | 1 for compressed bytes that cannot be decompressed: `offset` is then a position in the stored file |
pub(crate) struct Quarantine {
    path: PathBuf,
    output: QuarantineOutput,
    /// The records that were added.
    contents: RecordSet,
    /// The record and the error of the last lost bytes of each shard: further pieces of them have no error of their own.
    last_lost: HashMap<usize, (u64, String)>,
    /// Whether other processes may write the same quarantine at the same time.
    is_attempt: bool,
    /// Rejects a second run with the same quarantine; `None` in an object store, and for attempts.
    _lock: Option<QuarantineLock>,
}

enum QuarantineOutput {
    /// A new file. With `replace`, an existing file is removed if there is nothing to quarantine.
    New { writer: Box<ShardWriter<OutputFile>>, replace: bool },
    /// An existing file with these records.
    Existing(RecordSet),
}

/// The number of records in a set, and the sum of their hashes. It does not depend on their order, which depends on timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RecordSet {
    records: u64,
    hashes: u64,
}

impl RecordSet {
    fn add(&mut self, data: &[u8]) {
        self.records += 1;
        self.hashes = self.hashes.wrapping_add(xxh3_64(data));
    }
}

impl Quarantine {
    /// Checks that the quarantine `path` can be created, without creating it.
    ///
    /// # Errors
    /// As [`create`](Self::create), but for another run that writes it.
    pub(crate) fn check(path: &Path, earlier: Earlier) -> Result<()> {
        check_name(path)?;
        if !path.to_str().is_some_and(is_remote) && !folder_of(path).is_dir() {
            return refuse(path, NO_FOLDER);
        }
        match earlier == Earlier::Refused && !existing(&[path])?.is_empty() {
            true => Err(Error::Exists { path: path.to_owned(), others: 0 }),
            false => Ok(()),
        }
    }

    /// Creates the quarantine `path`, a file or the URL of an object. Several processes may write it at the same time as
    /// attempts at the same part.
    ///
    /// # Errors
    /// [`Error::Usage`] if the path cannot be a quarantine, if another run writes it, or if it exists and is
    /// [refused](Earlier::Refused); I/O errors.
    pub(crate) fn create(path: &Path, earlier: Earlier, is_attempt: bool) -> Result<Self> {
        let name = check_name(path)?;
        let is_object = path.to_str().is_some_and(is_remote);
        if !is_object && !folder_of(path).is_dir() {
            return refuse(path, NO_FOLDER);
        }
        let lock = (!is_object && !is_attempt).then(|| QuarantineLock::of(path, name)).transpose()?;
        let output = match earlier {
            Earlier::Compared if exists(path)? => QuarantineOutput::Existing(records_of(path)?),
            // Whether a file exists is checked when its temporary file is created.
            Earlier::Refused if is_object && exists(path)? => {
                return Err(Error::Exists { path: path.to_owned(), others: 0 });
            }
            _ => {
                let replace = earlier == Earlier::Replaced;
                let create = |path: &Path| match is_attempt || is_object {
                    true => attempts::create(path, replace),
                    false => {
                        // A run that was killed leaves its unfinished file. The lock is held, so that no run writes it.
                        let part = path.with_file_name(hidden(name, ".part"));
                        let _ = fs::remove_file(&part);
                        OutputFile::create_at(path, &part, replace)
                    }
                };
                output_file(path, create, replace)?
            }
        };
        let (contents, last_lost) = (RecordSet::default(), HashMap::new());
        Ok(Self { path: path.to_owned(), output, contents, last_lost, is_attempt, _lock: lock })
    }

    /// Adds lost bytes, or a further piece of them. `shard` is the number of the shard, and `path` its path.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn add_lost(&mut self, shard: usize, path: &Path, lost: &Lost) -> Result<()> {
        if let Some(error) = &lost.error {
            self.last_lost.insert(shard, (Fault::record_of(error), error.to_string()));
        }
        let last = self.last_lost.get(&shard).cloned();
        debug_assert!(last.is_some(), "the first piece of lost bytes has an error");
        let (record, fault) = last.unwrap_or_default();
        // An error without lost bytes is a record as well.
        let is_empty = lost.error.is_some() && lost.bytes.is_empty();
        let pieces = lost.bytes.chunks(PIECE_BYTES).chain(is_empty.then_some(&[][..]));
        for (index, piece) in pieces.enumerate() {
            let offset = lost.offset + (index * PIECE_BYTES) as u64;
            self.add(path, (record, offset), &fault, piece, lost.is_stored)?;
        }
        Ok(())
    }

    /// Adds one record about `data`, which are bytes of the shard `file`.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn add(
        &mut self,
        file: &Path,
        (record, offset): (u64, u64),
        fault: &str,
        data: &[u8],
        is_stored: bool,
    ) -> Result<()> {
        let columns: [(&str, ArrayRef); 6] = [
            ("data", Arc::new(BinaryArray::from_iter_values([data]))),
            ("fault", Arc::new(StringArray::from_iter_values([fault]))),
            ("file", Arc::new(StringArray::from_iter_values([file.to_string_lossy()]))),
            ("offset", Arc::new(Int64Array::from_iter_values([offset as i64]))),
            ("record", Arc::new(Int64Array::from_iter_values([record as i64]))),
            ("stored", Arc::new(Int64Array::from_iter_values([i64::from(is_stored)]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).map_err(|e| Error::arrow(&self.path, e))?;
        let mut frame = Vec::new();
        let encoder = EncoderBuilder::new().build(batch.schema());
        let encoded = encoder.and_then(|mut encoder| encoder.encode(&batch, &mut frame));
        encoded.map_err(|e| Error::codec(&self.path, e))?;
        // The data of a frame is after 12 bytes of length and CRC, and before 4 bytes of CRC.
        let data = frame.get(12..frame.len().saturating_sub(4));
        debug_assert!(data.is_some(), "an encoded record is one frame");
        self.contents.add(data.unwrap_or_default());
        match &mut self.output {
            QuarantineOutput::New { writer, .. } => {
                std::io::Write::write_all(writer, &frame).map_err(|e| Error::io(&self.path, e))
            }
            QuarantineOutput::Existing(_) => Ok(()),
        }
    }

    /// Completes the quarantine, which now gets its name. Without records no file is created.
    ///
    /// # Errors
    /// [`Error::Differs`] if an existing file has other records; I/O errors.
    pub(crate) fn finish(self) -> Result<()> {
        let wrap = |e| Error::io(&self.path, e);
        match self.output {
            QuarantineOutput::Existing(records) if records == self.contents => Ok(()),
            QuarantineOutput::Existing(_) => Err(Error::Differs { path: self.path }),
            QuarantineOutput::New { writer, .. } if self.contents.records > 0 => {
                match writer.finish().map_err(wrap)?.persist() {
                    Err(error) if self.is_attempt && exists(&self.path)? => {
                        // Another attempt has written it in the meantime.
                        match records_of(&self.path)? == self.contents {
                            true => Ok(()),
                            false if matches!(error.kind(), ErrorKind::Exists) => {
                                Err(Error::Differs { path: self.path })
                            }
                            false => Err(error.into()),
                        }
                    }
                    persisted => Ok(persisted?),
                }
            }
            QuarantineOutput::New { writer, replace } => {
                drop(writer);
                if replace && is_file(&self.path) { fs::remove_file(&self.path).map_err(wrap) } else { Ok(()) }
            }
        }
    }
}

fn refuse<T>(path: &Path, why: &str) -> Result<T> {
    Err(Error::Usage(format!("{}: {why}", path.display())))
}

/// The name of the file. Checks that a quarantine can have this name.
fn check_name(path: &Path) -> Result<&OsStr> {
    let Some(name) = path.file_name().filter(|_| path.as_os_str() != "-") else {
        return refuse(path, "the quarantine must be a file");
    };
    if path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
        return refuse(path, "is a folder; the quarantine must be a file");
    }
    if name.to_string_lossy().starts_with(UNFINISHED) {
        return refuse(path, "is a name of unfinished files; name the quarantine otherwise");
    }
    match Target::from_path(path) {
        Some((target, _)) if target != Target::TfRecord => {
            refuse(path, &format!("the quarantine is a TFRecord file, but the name says {}", target.name()))
        }
        _ => Ok(name),
    }
}

fn hidden(name: &OsStr, suffix: &str) -> OsString {
    let mut hidden = OsString::from(UNFINISHED);
    hidden.push(name);
    hidden.push(suffix);
    hidden
}

fn output_file(
    path: &Path,
    create: impl FnOnce(&Path) -> tfarrow_dataset::Result<OutputFile>,
    replace: bool,
) -> Result<QuarantineOutput> {
    let file = match create(path) {
        Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
            return Err(Error::Exists { path: path.to_owned(), others: 0 });
        }
        file => file?,
    };
    let (_, compression) = Compression::of_name(path.to_str().unwrap_or_default());
    Ok(QuarantineOutput::New { writer: Box::new(ShardWriter::new(file, compression.unwrap_or_default())), replace })
}

/// Reads the records of an existing quarantine.
fn records_of(path: &Path) -> Result<RecordSet> {
    let mut set = RecordSet::default();
    for shard in resolve(&[path])? {
        if shard.format != ShardFormat::TfRecord {
            return refuse(path, "already exists, and is not a quarantine; name another file");
        }
        let mut reader = ShardReader::open(&shard, &ReadOptions::default())?;
        while let Some(records) = reader.next()? {
            (0..records.len()).filter_map(|index| records.data(index)).for_each(|data| set.add(data));
        }
    }
    Ok(set)
}

/// A locked file beside the quarantine, which is removed at the end.
struct QuarantineLock {
    path: PathBuf,
    _file: File,
}

impl QuarantineLock {
    fn of(path: &Path, name: &OsStr) -> Result<Self> {
        let own = path.with_file_name(hidden(name, ".lock"));
        match open_locked(&own).map_err(|e| Error::io(&own, e))? {
            Some(file) => Ok(Self { path: own, _file: file }),
            None => refuse(path, "another run writes its quarantine here; wait until it ends, or name another file"),
        }
    }
}

impl Drop for QuarantineLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
