//! The quarantine: a TFRecord file of the corrupt records and bytes that a conversion skips.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use tfarrow_codec::{OnError, ReaderBuilder, WriterBuilder};
use tfarrow_dataset::{
    Compression, ErrorKind, Fault, Lost, OutputFile, Part, ReadOptions, Shard, ShardBatchReader,
    ShardFormat, ShardReader, ShardWriter,
    internals::{UNFINISHED, existing, is_remote},
    resolve,
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
    /// The record and the error of the last lost bytes of each shard: further pieces of them have
    /// no error of their own.
    last_lost: HashMap<usize, (u64, String)>,
    /// The files of other parts, if the conversion is one of a part. Other processes may then write
    /// the same quarantine at the same time.
    others: Option<OtherParts>,
    /// Rejects a second run with the same quarantine; `None` in an object store, and for attempts.
    _lock: Option<QuarantineLock>,
}

/// The paths of the shards of all other parts, as the records of a quarantine name them. The
/// quarantine of one part must not replace that of another.
#[derive(Clone, Debug)]
pub(crate) struct OtherParts(HashSet<String>);

impl OtherParts {
    /// The files of a data set that are not in this part.
    pub(crate) fn of(shards: &[Shard], part: Part) -> Self {
        let own = part.range(shards);
        let others = shards
            .iter()
            .enumerate()
            .filter(|(number, _)| !own.contains(number));
        Self(
            others
                .map(|(_, shard)| shard.path.to_string_lossy().into_owned())
                .collect(),
        )
    }

    /// Checks that the file `path`, if it exists, is not the quarantine of another part.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is, and I/O errors.
    fn check(&self, path: &Path) -> Result<()> {
        if self.0.is_empty() || !exists(path)? {
            return Ok(());
        }
        match self.first_in(path)? {
            None => Ok(()),
            Some(file) => {
                let why =
                    format!("has what was skipped of {file}, which is a shard of another part");
                refuse(
                    path,
                    &format!("{why}: name one quarantine for each part, or remove this file"),
                )
            }
        }
    }

    /// Returns the first of these files that a record of the quarantine `path` names. Records that
    /// are no records of a quarantine name none.
    fn first_in(&self, path: &Path) -> Result<Option<String>> {
        let schema = Arc::new(Schema::new(vec![Field::new("file", DataType::Utf8, true)]));
        let read = ReadOptions {
            on_error: OnError::Skip,
            ..ReadOptions::default()
        };
        for shard in resolve(&[path])?
            .iter()
            .filter(|shard| shard.format == ShardFormat::TfRecord)
        {
            let decoder = ReaderBuilder::new(Arc::clone(&schema)).with_on_error(OnError::Skip);
            let batches = ShardBatchReader::new(ShardReader::open(shard, &read)?, decoder);
            for batch in batches.map_err(|e| Error::codec(path, e))? {
                let batch = batch.map_err(|e| Error::arrow(path, e))?;
                let names = batch
                    .columns()
                    .iter()
                    .filter_map(|column| column.as_string_opt::<i32>())
                    .flatten();
                if let Some(name) = names.flatten().find(|name| self.0.contains(*name)) {
                    return Ok(Some(name.to_owned()));
                }
            }
        }
        Ok(None)
    }
}

enum QuarantineOutput {
    /// A new file. With `replace`, an existing file is removed if there is nothing to quarantine.
    New {
        writer: Box<ShardWriter<OutputFile>>,
        replace: bool,
    },
    /// An existing file with these records.
    Existing(RecordSet),
}

/// The number of records in a set, and the sum of their hashes. It does not depend on their order,
/// which depends on timing.
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
            true => Err(Error::Exists {
                path: path.to_owned(),
                others: 0,
            }),
            false => Ok(()),
        }
    }

    /// Creates the quarantine `path`, a file or the URL of an object. With `others`, those of a
    /// part, several processes may write it at the same time as attempts at the same part.
    ///
    /// # Errors
    /// [`Error::Usage`] if the path cannot be a quarantine, if another run writes it, if it is the
    /// quarantine of another part, or if it exists and is [refused](Earlier::Refused); I/O errors.
    pub(crate) fn create(
        path: &Path,
        earlier: Earlier,
        others: Option<OtherParts>,
    ) -> Result<Self> {
        let is_attempt = others.is_some();
        let name = check_name(path)?;
        let is_object = path.to_str().is_some_and(is_remote);
        if !is_object && !folder_of(path).is_dir() {
            return refuse(path, NO_FOLDER);
        }
        if let Some(others) = &others {
            others.check(path)?;
        }
        let lock = (!is_object && !is_attempt)
            .then(|| QuarantineLock::of(path, name))
            .transpose()?;
        let output = match earlier {
            Earlier::Compared if exists(path)? => QuarantineOutput::Existing(records_of(path)?),
            // Whether a file exists is checked when its temporary file is created.
            Earlier::Refused if is_object && exists(path)? => {
                return Err(Error::Exists {
                    path: path.to_owned(),
                    others: 0,
                });
            }
            _ => {
                let replace = earlier == Earlier::Replaced;
                let created = if is_attempt || is_object {
                    attempts::create(path, replace)
                } else {
                    // A run that was killed leaves its unfinished file. The lock is held, so that
                    // no run writes it.
                    let part = path.with_file_name(hidden(name, ".part"));
                    let _ = fs::remove_file(&part);
                    OutputFile::create_at(path, &part, replace)
                };
                match new_output(path, created, replace) {
                    // Another attempt has named its file since it was found to be missing.
                    Err(Error::Exists { .. }) if is_attempt && earlier == Earlier::Compared => {
                        QuarantineOutput::Existing(records_of(path)?)
                    }
                    output => output?,
                }
            }
        };
        let contents = RecordSet::default();
        let last_lost = HashMap::new();
        Ok(Self {
            path: path.to_owned(),
            output,
            contents,
            last_lost,
            others,
            _lock: lock,
        })
    }

    /// Adds lost bytes, or a further piece of them. `shard` is the number of the shard, and `path`
    /// its path.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn add_lost(&mut self, shard: usize, path: &Path, lost: &Lost) -> Result<()> {
        if let Some(error) = &lost.error {
            self.last_lost
                .insert(shard, (Fault::record_of(error), error.to_string()));
        }
        let last = self.last_lost.get(&shard).cloned();
        debug_assert!(last.is_some(), "the first piece of lost bytes has an error");
        let (record, fault) = last.unwrap_or_default();
        // An error without lost bytes is a record as well.
        let is_empty = lost.error.is_some() && lost.bytes.is_empty();
        let pieces = lost
            .bytes
            .chunks(PIECE_BYTES)
            .chain(is_empty.then_some(&[][..]));
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
            (
                "file",
                Arc::new(StringArray::from_iter_values([file.to_string_lossy()])),
            ),
            (
                "offset",
                Arc::new(Int64Array::from_iter_values([offset as i64])),
            ),
            (
                "record",
                Arc::new(Int64Array::from_iter_values([record as i64])),
            ),
            (
                "stored",
                Arc::new(Int64Array::from_iter_values([i64::from(is_stored)])),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).map_err(|e| Error::arrow(&self.path, e))?;
        let mut frame = Vec::new();
        let encoder = WriterBuilder::new().build_encoder(batch.schema());
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
    /// [`Error::Differs`] if an existing file has other records, [`Error::Usage`] if the quarantine
    /// of another part has appeared at its path; I/O errors.
    pub(crate) fn finish(self) -> Result<()> {
        if let (QuarantineOutput::New { replace: true, .. }, Some(others)) =
            (&self.output, &self.others)
        {
            others.check(&self.path)?;
        }
        match self.output {
            QuarantineOutput::Existing(records) if records == self.contents => Ok(()),
            QuarantineOutput::Existing(_) => Err(Error::Differs { path: self.path }),
            QuarantineOutput::New { writer, .. } if self.contents.records > 0 => {
                let file = writer.finish().map_err(|e| Error::io(&self.path, e))?;
                match file.persist() {
                    Err(error) if self.others.is_some() && exists(&self.path)? => {
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
                if replace && is_file(&self.path) {
                    fs::remove_file(&self.path).map_err(|e| Error::io(&self.path, e))
                } else {
                    Ok(())
                }
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
        return refuse(
            path,
            "is a name of unfinished files; name the quarantine otherwise",
        );
    }
    match Target::from_path(path) {
        Some((target, _)) if target != Target::TfRecord => refuse(
            path,
            &format!(
                "the quarantine is a TFRecord file, but the name says {}",
                target.name()
            ),
        ),
        _ => Ok(name),
    }
}

fn hidden(name: &OsStr, suffix: &str) -> OsString {
    let mut hidden = OsString::from(UNFINISHED);
    hidden.push(name);
    hidden.push(suffix);
    hidden
}

/// The output to the file `created`.
fn new_output(
    path: &Path,
    created: tfarrow_dataset::Result<OutputFile>,
    replace: bool,
) -> Result<QuarantineOutput> {
    let file = match created {
        Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
            return Err(Error::Exists {
                path: path.to_owned(),
                others: 0,
            });
        }
        file => file?,
    };
    let (_, compression) = Compression::of_name(path.to_str().unwrap_or_default());
    Ok(QuarantineOutput::New {
        writer: Box::new(ShardWriter::new(file, compression.unwrap_or_default())),
        replace,
    })
}

/// Reads the records of an existing quarantine.
fn records_of(path: &Path) -> Result<RecordSet> {
    let mut set = RecordSet::default();
    for shard in resolve(&[path])? {
        if shard.format != ShardFormat::TfRecord {
            return refuse(
                path,
                "already exists, and is not a quarantine; name another file",
            );
        }
        let mut reader = ShardReader::open(&shard, &ReadOptions::default())?;
        while let Some(records) = reader.next()? {
            (0..records.len())
                .filter_map(|index| records.data(index))
                .for_each(|data| set.add(data));
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
            Some(file) => Ok(Self {
                path: own,
                _file: file,
            }),
            None => refuse(
                path,
                "another run writes its quarantine here; wait until it ends, or name another file",
            ),
        }
    }
}

impl Drop for QuarantineLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
