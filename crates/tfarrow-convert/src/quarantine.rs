//! The quarantine: a TFRecord file that keeps the bytes that a conversion had to leave out.

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
    Compression, Contents, ErrorKind, Fault, Lost, OutputFile, ReadOptions, ShardReader, ShardWriter, UNFINISHED,
    existing, is_remote, resolve,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result, Target, folders::folder_of, lock_file::open_locked};

/// Bytes of a stretch that one record of the quarantine holds.
const PIECE: usize = 64 << 20;

/// Whether the file of a quarantine may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// No: the run is refused at its start.
    Refused,
    /// Yes: it is replaced, or removed where nothing was lost.
    Replaced,
    /// Yes, from the run that is resumed: it must hold what this run loses, and is not written.
    Compared,
}

/// A TFRecord file of Examples, one for each piece of what was lost: `data`, `fault`, `file`, `offset` and `record`. Where
/// `stored` is 1, it is bytes of a compressed file that do not inflate, as they are stored, and the offset is the file's.
pub(crate) struct Quarantine {
    path: PathBuf,
    output: Output,
    /// What was added, in any order.
    contents: Sum,
    /// The record and the fault of the stretch of each shard that was told of last: it may go on.
    stretches: HashMap<usize, (u64, String)>,
    /// Keeps a second run from the same file; `None` in a store.
    _lock: Option<Lock>,
}

enum Output {
    /// Written beside its place. `replace` is whether an earlier file is removed where nothing was lost.
    File { writer: Box<ShardWriter<OutputFile>>, replace: bool },
    /// There already, with these records.
    Present(Sum),
}

/// A set of records, whatever their order: workers add to a quarantine as they meet damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    records: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, data: &[u8]) {
        self.records += 1;
        self.hashes = self.hashes.wrapping_add(xxh3_64(data));
    }
}

impl Quarantine {
    /// Begins the quarantine `path`, a file or the URL of an object.
    ///
    /// # Errors
    /// [`Error::Usage`] where the path cannot be a quarantine, where another run writes it, and where a file is there that
    /// is [refused](Earlier::Refused); system errors.
    pub(crate) fn create(path: &Path, earlier: Earlier) -> Result<Self> {
        let name = check_name(path)?;
        if path.to_str().is_some_and(is_remote) {
            return Self::create_object(path, earlier);
        }
        if !folder_of(path).is_dir() {
            return refuse(path, "its folder does not exist; create it first");
        }
        let lock = Lock::of(path, name)?;
        let output = match earlier {
            Earlier::Compared if is_file(path) => Output::Present(records_of(path)?),
            _ => {
                // The rest of a run that was killed.
                let part = path.with_file_name(hidden(name, ".part"));
                let _ = fs::remove_file(&part);
                let replace = earlier == Earlier::Replaced;
                output_file(path, |path| OutputFile::create_at(path, &part, replace), replace)?
            }
        };
        Ok(Self::new(path, output, Some(lock)))
    }

    fn create_object(path: &Path, earlier: Earlier) -> Result<Self> {
        if earlier != Earlier::Replaced && !existing(&[path])?.is_empty() {
            return refuse(path, "is there already; --overwrite replaces it");
        }
        let replace = earlier == Earlier::Replaced;
        let output = output_file(path, |path| OutputFile::create(path, replace), replace)?;
        Ok(Self::new(path, output, None))
    }

    fn new(path: &Path, output: Output, lock: Option<Lock>) -> Self {
        let (contents, stretches) = (Sum::default(), HashMap::new());
        Self { path: path.to_owned(), output, contents, stretches, _lock: lock }
    }

    /// Adds a stretch, or a part of one, of the shard of this number, the file `path`.
    ///
    /// # Errors
    /// System errors.
    pub(crate) fn add_lost(&mut self, shard: usize, path: &Path, lost: &Lost) -> Result<()> {
        if let Some(error) = &lost.error {
            self.stretches.insert(shard, (Fault::record_of(error), error.to_string()));
        }
        let (record, fault) = self.stretches.get(&shard).cloned().unwrap_or_default();
        // Damage that has cost no bytes is added as well.
        let nothing = lost.error.is_some() && lost.bytes.is_empty();
        let pieces = lost.bytes.chunks(PIECE).chain(nothing.then_some(&[][..]));
        for (index, piece) in pieces.enumerate() {
            let offset = lost.offset + (index * PIECE) as u64;
            self.add(path, (record, offset), &fault, piece, lost.is_stored)?;
        }
        Ok(())
    }

    /// Adds bytes of the file `file`.
    ///
    /// # Errors
    /// System errors.
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
        // Between the header of a frame and its footer.
        self.contents.add(frame.get(12..frame.len().saturating_sub(4)).unwrap_or_default());
        match &mut self.output {
            Output::File { writer, .. } => {
                std::io::Write::write_all(writer, &frame).map_err(|e| Error::io(&self.path, e))
            }
            Output::Present(_) => Ok(()),
        }
    }

    /// Ends the quarantine, which gets its name now. Where nothing was lost there is none.
    ///
    /// # Errors
    /// [`Error::Differs`] where a file is there that holds something else; system errors.
    pub(crate) fn finish(self) -> Result<()> {
        let wrap = |e| Error::io(&self.path, e);
        match self.output {
            Output::Present(records) if records == self.contents => Ok(()),
            Output::Present(_) => Err(Error::Differs { path: self.path }),
            Output::File { writer, .. } if self.contents.records > 0 => Ok(writer.finish().map_err(wrap)?.persist()?),
            Output::File { writer, replace } => {
                drop(writer);
                if replace && is_file(&self.path) { fs::remove_file(&self.path).map_err(wrap) } else { Ok(()) }
            }
        }
    }
}

fn refuse<T>(path: &Path, why: &str) -> Result<T> {
    Err(Error::Usage(format!("{}: {why}", path.display())))
}

/// The name of the file, which must be one that a quarantine can have.
fn check_name(path: &Path) -> Result<&OsStr> {
    let Some(name) = path.file_name().filter(|_| path.as_os_str() != "-") else {
        return refuse(path, "the quarantine is a file");
    };
    if path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
        return refuse(path, "is a folder, and the quarantine is a file");
    }
    if name.to_string_lossy().starts_with(UNFINISHED) {
        return refuse(path, "is a name of unfinished files; name the quarantine otherwise");
    }
    match Target::from_path(path) {
        Some((target, _)) if target != Target::TfRecord => {
            refuse(path, &format!("the quarantine is TFRecord, and this is called {}", target.name()))
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
) -> Result<Output> {
    let file = match create(path) {
        Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
            return refuse(path, "is there already; --overwrite replaces it");
        }
        file => file?,
    };
    let (_, compression) = Compression::of_name(path.to_str().unwrap_or_default());
    Ok(Output::File { writer: Box::new(ShardWriter::new(file, compression.unwrap_or_default())), replace })
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The records of the quarantine that is at `path`.
fn records_of(path: &Path) -> Result<Sum> {
    let mut sum = Sum::default();
    for shard in resolve(&[path])? {
        if shard.contents != Contents::TfRecord {
            return refuse(path, "is there already, and is not a quarantine; name another file");
        }
        let mut reader = ShardReader::open(&shard, &ReadOptions::default())?;
        while let Some(records) = reader.next()? {
            (0..records.len()).filter_map(|index| records.data(index)).for_each(|data| sum.add(data));
        }
    }
    Ok(sum)
}

/// A locked file beside the quarantine, removed at the end.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn of(path: &Path, name: &OsStr) -> Result<Self> {
        let own = path.with_file_name(hidden(name, ".lock"));
        match open_locked(&own).map_err(|e| Error::io(&own, e))? {
            Some(file) => Ok(Self { path: own, _file: file }),
            None => refuse(path, "another run writes its quarantine here; wait for its end, or name another file"),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
